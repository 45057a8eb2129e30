//! Reads of all coins, as in Core's `gettxoutsetinfo`. Input: the coin store. Output: the coins at the tip, or their
//! hashes and sums, in one ordered pass.
//!
//! The coins are pinned at a checkpoint, which is made first if the last one is not at the tip, as Core flushes its
//! coins; a run in progress makes it between two blocks. Only the checkpoint delays blocks; the coins of its tip stay
//! readable while blocks are validated. Cost: a
//! double SHA-256 over about 70 bytes and a 3,072-bit multiplication per coin, if asked for; no memory but that of the
//! scan.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::event::Unobserved;
use lydian_coins::{PinnedCoins, Tip};
use lydian_consensus::Coin;
use lydian_consensus::utxo_hash::{bogosize, serialize_coin};
use lydian_hash::{Elements, MuHash3072, Sha256};
use lydian_primitives::{Amount, OutPoint};
use std::ops::ControlFlow;

/// Totals and hashes over all coins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UtxoHashes {
    pub tip: Tip,
    pub coins: u64,
    pub total: Amount,
    /// In internal byte order; displayed reversed.
    pub hash_serialized_3: [u8; 32],
    pub muhash: [u8; 32],
}

impl UtxoHashes {
    /// Reads every coin. `tip` is that of the pinned coins.
    pub fn of(tip: Tip, pinned: &PinnedCoins) -> Result<UtxoHashes, EngineError> {
        let (mut serialized, mut muhash) = (Sha256::new(), SetHash::default());
        let (mut coins, mut total) = (0, 0);
        each_ordered(pinned, &mut |outpoint, coin| {
            let bytes = serialize_coin(outpoint, coin);
            serialized.update(&bytes);
            muhash.insert(&bytes);
            coins += 1;
            total += coin.value.0;
        })?;
        let (hash_serialized_3, muhash) = (serialized.finalize_double(), muhash.finalize());
        Ok(UtxoHashes { tip, coins, total: Amount(total), hash_serialized_3, muhash })
    }
}

/// The requested hash of all coins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UtxoHash {
    None,
    HashSerialized3,
    Muhash,
}

/// The data of Core's `gettxoutsetinfo`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoinsSummary {
    pub tip: Tip,
    pub coins: u64,
    /// Transactions with an unspent output.
    pub transactions: u64,
    /// Core's size measure of the set, independent of its storage.
    pub bogosize: u64,
    pub total: Amount,
    /// In internal byte order; displayed reversed.
    pub hash: Option<[u8; 32]>,
    pub disk_bytes: u64,
}

/// Elements in a batch of [`SetHash`]: enough for the lanes, and few enough for the processor's cache.
const BATCH: usize = 1_024;

impl Engine {
    /// Pins the coins at the tip, with the tip. Blocks wait for the checkpoint that this may need, not for the scans of
    /// the pinned coins. If blocks are being validated, it does not wait for the last one: the run makes the checkpoint
    /// where it stands.
    pub fn pin_coins(&self) -> Result<(Tip, PinnedCoins), EngineError> {
        let turns = &self.chainstate().turns;
        let begun = turns.counts();
        loop {
            let seen = turns.counts();
            if seen.checkpoints > begun.checkpoints {
                let pinned = self.chainstate().active.coins.pin()?;
                if let Some(tip) = pinned.tip() {
                    return Ok((tip, pinned));
                }
            }
            let pinned = self.shared.try_write(|chainstate| {
                let tip = chainstate.tip();
                if chainstate.active.coins.tip() != Some(tip) {
                    chainstate.checkpoint(&Unobserved)?;
                }
                // A pin that fails has changed nothing, so further changes are possible.
                Ok(chainstate.active.coins.pin().map(|pinned| (tip, pinned)))
            });
            if let Some(pinned) = pinned {
                return Ok(pinned??);
            }
            turns.wait(seen);
        }
    }

    /// The hashes of the coins at the tip, as in Core's `gettxoutsetinfo`. Reads every coin.
    pub fn utxo_hashes(&self) -> Result<UtxoHashes, EngineError> {
        let (tip, pinned) = self.pin_coins()?;
        UtxoHashes::of(tip, &pinned)
    }

    /// Sums over all coins at the tip, and the requested hash. Reads every coin.
    pub fn coins_summary(&self, kind: UtxoHash) -> Result<CoinsSummary, EngineError> {
        let (tip, pinned) = self.pin_coins()?;
        let (mut serialized, mut muhash) = (Sha256::new(), SetHash::default());
        let (mut coins, mut transactions, mut size, mut total) = (0, 0, 0, 0);
        let mut last = None;
        each_ordered(&pinned, &mut |outpoint, coin| {
            match kind {
                UtxoHash::None => {}
                UtxoHash::HashSerialized3 => {
                    serialized.update(&serialize_coin(outpoint, coin));
                }
                UtxoHash::Muhash => {
                    muhash.insert(&serialize_coin(outpoint, coin));
                }
            }
            // Coins come ordered by transaction.
            if last.replace(outpoint.txid) != Some(outpoint.txid) {
                transactions += 1;
            }
            coins += 1;
            size += bogosize(coin.as_ref());
            total += coin.value.0;
        })?;
        let hash = match kind {
            UtxoHash::None => None,
            UtxoHash::HashSerialized3 => Some(serialized.finalize_double()),
            UtxoHash::Muhash => Some(muhash.finalize()),
        };
        let disk_bytes = pinned.disk_bytes();
        Ok(CoinsSummary { tip, coins, transactions, bogosize: size, total: Amount(total), hash, disk_bytes })
    }
}

/// A MuHash into which elements are inserted in batches, many times as fast as one by one.
#[derive(Debug, Default)]
struct SetHash {
    muhash: MuHash3072,
    batch: Elements,
}

impl SetHash {
    fn insert(&mut self, element: &[u8]) {
        self.batch.push(&[element]);
        if self.batch.len() == BATCH {
            self.muhash.insert_many(&self.batch);
            self.batch.clear();
        }
    }

    fn finalize(mut self) -> [u8; 32] {
        self.muhash.insert_many(&self.batch);
        self.muhash.finalize()
    }
}

/// Visits all coins, ordered by txid bytes and output index.
fn each_ordered(pinned: &PinnedCoins, visit: &mut dyn FnMut(&OutPoint, &Coin)) -> Result<(), EngineError> {
    let _: ControlFlow<()> = pinned.export(&mut |outpoint, coin| {
        visit(outpoint, coin);
        ControlFlow::Continue(())
    })?;
    Ok(())
}
