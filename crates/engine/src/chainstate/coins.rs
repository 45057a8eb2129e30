//! [`Chainstate`]: the coins of one chain, and where they stand: what exists once for each chain that is validated.
//!
//! Today there is one. A node that starts from a UTXO snapshot has two over one header tree and one block store
//! (ADR 12): everything that is needed a second time is here, everything in
//! [`super::manager::ChainstateManager`] besides is shared. The chain itself, with its totals, is in the header tree.

use super::journal::{Change, Journal};
use lydian_chain::HeaderId;
use lydian_coins::Coins;
use std::sync::atomic::AtomicU64;
use std::sync::{Condvar, Mutex};

/// The coins of one chain: Core's `Chainstate`.
#[derive(Debug)]
pub(crate) struct Chainstate {
    pub(crate) coins: Coins,
    /// The coins of the recent past, the block up to which each partition is applied, and the settled block.
    pub(crate) journal: Journal<HeaderId, dyn Change>,
    /// Held while the settled block moves; locked before the tree.
    pub(crate) settling: Mutex<()>,
    /// Notified when the settled block has moved.
    pub(crate) settled_moved: Condvar,
    /// When the last checkpoint was made, by the meter's clock.
    pub(crate) checkpointed: AtomicU64,
}

impl Chainstate {
    /// The coins stand at `tip`.
    pub(crate) fn new(coins: Coins, tip: HeaderId) -> Chainstate {
        Chainstate {
            coins,
            journal: Journal::new(tip),
            settling: Mutex::default(),
            settled_moved: Condvar::new(),
            checkpointed: AtomicU64::default(),
        }
    }
}
