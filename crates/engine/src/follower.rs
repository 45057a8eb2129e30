//! A consumer of the chain, such as an index, statistics or a mempool. The engine feeds it in height order from one
//! task at a time; at startup it is rewound or replayed to the tip of the coins.
//!
//! Invariants that a follower keeps: its rows and its tip become durable together, at [`Follower::checkpoint`] or
//! earlier, and after a crash it is at a tip it once had. It never sees a block that is not committed.

use lydian_coins::Tip;
use lydian_consensus::Coin;
use lydian_primitives::{Block, Height};
use std::fmt::Debug;

/// A consumer of the chain.
pub trait Follower: Debug + Send {
    /// The name for messages.
    fn name(&self) -> &str;

    /// The block up to which the follower is durable; `None` if that is the genesis block.
    fn durable_tip(&self) -> Option<Tip>;

    /// A block joined the chain.
    fn connect(&mut self, block: &ConnectedBlock<'_>) -> Result<(), FollowerError>;

    /// The block left the chain; it was the last one connected.
    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<(), FollowerError>;

    /// Makes everything durable; `tip` is the last block connected.
    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError>;
}

/// A block of the chain with the coins it spent.
#[derive(Clone, Copy, Debug)]
pub struct ConnectedBlock<'a> {
    pub height: Height,
    pub block: &'a Block,
    /// Coins spent, in the order of the inputs, without the coinbase.
    pub spent: &'a [Coin],
}

/// Why a follower cannot continue: one sentence that names its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerError(pub String);
