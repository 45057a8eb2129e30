//! [`Order`]: a block that a reader of this node needs and that is not on disk, because pruning deleted it.
//!
//! Input: a hash. Output: the block or the reason why there is none, passed to a [`BlockTaker`] once for each order. An
//! order that is dropped without an answer is answered by that: the network has ended. Data only;
//! `manager/blocks/orders.rs` carries orders out.

use crate::limits::ORDER_TIMEOUT;
use lydian_primitives::{Block, BlockHash};
use std::fmt::{self, Debug};
use std::sync::Arc;

/// The reader's side of an order. It is called by the manager's thread, so it must not wait.
pub trait BlockTaker: Debug + Send + Sync {
    /// The result of an order. A block that arrives after the time limit is passed on too, after the failure.
    fn take(&self, hash: &BlockHash, result: Result<Arc<Block>, OrderFailure>);
}

/// Why an ordered block is not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderFailure {
    /// No connected peer has the block and serves blocks of any age.
    NoPeer,
    /// Peers have the block, and none of them could be asked in time: each has too many other requests to answer.
    NoneFree,
    /// None of the peers that were asked sent it.
    NotSent { asked: usize },
    /// The peers that were asked have not answered in time.
    TimedOut { asked: usize },
    /// Too many other blocks are ordered.
    TooMany,
    /// Core's `LoadingBlocks`: blocks of peers are ignored.
    Loading,
    /// The network has ended.
    Ended,
}

impl fmt::Display for OrderFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderFailure::NoPeer => f.write_str("no peer that has all blocks is connected"),
            OrderFailure::NoneFree => {
                write!(f, "time-out: all peers that have it were busy for {} s", ORDER_TIMEOUT.as_secs())
            }
            OrderFailure::NotSent { asked } => write!(f, "no peer sent it, of {asked} asked"),
            OrderFailure::TimedOut { asked } => {
                write!(f, "time-out: no peer sent it within {} s, of {asked} asked", ORDER_TIMEOUT.as_secs())
            }
            OrderFailure::TooMany => f.write_str("too many other blocks are being fetched; try again"),
            OrderFailure::Loading => f.write_str("blocks on disk are being loaded; try again later"),
            OrderFailure::Ended => f.write_str("the network has ended"),
        }
    }
}

/// A block that is to be fetched from a peer, and not to be stored.
#[derive(Debug)]
pub struct Order {
    hash: BlockHash,
    taker: Arc<dyn BlockTaker>,
    is_answered: bool,
}

impl Order {
    /// The header of the block must be known.
    pub fn new(hash: BlockHash, taker: Arc<dyn BlockTaker>) -> Order {
        Order { hash, taker, is_answered: false }
    }

    pub(crate) fn hash(&self) -> BlockHash {
        self.hash
    }

    pub(crate) fn taker(&self) -> &Arc<dyn BlockTaker> {
        &self.taker
    }

    pub(crate) fn answer(mut self, result: Result<Arc<Block>, OrderFailure>) {
        self.is_answered = true;
        self.taker.take(&self.hash, result);
    }
}

impl Drop for Order {
    fn drop(&mut self) {
        if !self.is_answered {
            self.taker.take(&self.hash, Err(OrderFailure::Ended));
        }
    }
}
