//! A consumer of the chain, such as an index, statistics or a mempool: [`Follower`].
//!
//! Input: the blocks of the active chain, from the genesis block on, in height order; blocks that leave it, from the
//! tip down. Output: whatever the follower makes of them. The engine calls one follower from one thread at a time; the
//! part of its work that needs no order is its [`Prepare`], which any number of workers call at once.
//!
//! A follower that is at the tip when blocks are validated is fed by the run. One that stands below is brought to the
//! tip from block and undo files, in the background. After an error it gets no more calls; the node goes on without it,
//! unless the setting says that followers are required or the disk is full.
//!
//! Invariants that a follower keeps: the record that names its tip becomes durable only inside
//! [`Follower::checkpoint`], so that it is never ahead of the coins; what it has written above that tip does no harm
//! when those blocks are connected again. It never sees a block that is not committed, except in [`Prepare`].

use lydian_chain::ChainTotals;
use lydian_coins::Tip;
use lydian_consensus::Coin;
use lydian_disk::{DiskError, DiskErrorKind};
use lydian_primitives::{Block, Height};
use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// A consumer of the chain.
pub trait Follower: Debug + Send {
    /// The name for messages, and for `getindexinfo`.
    fn name(&self) -> &str;

    /// Whether it keeps data on disk. One that does not, such as a mempool, begins at the tip, is never fed blocks that
    /// were connected before, and holds no block back from pruning.
    fn has_files(&self) -> bool {
        true
    }

    /// The block up to which it is durable, at which it stands when the engine is opened; `None` before the genesis
    /// block. Blocks above are kept from pruning, also if the follower failed.
    fn durable_tip(&self) -> Option<Tip>;

    /// The part of the work that needs no order. Asked once, when the engine is opened.
    fn preparer(&self) -> Option<Arc<dyn Prepare>> {
        None
    }

    /// A block joined the chain. With a [`Follower::preparer`], `rows` is what it made of this block, and this call
    /// should take at most 100 ns for each input; without one it is `None`.
    fn connect(&mut self, block: &ConnectedBlock<'_>, rows: Option<Rows>) -> Result<(), FollowerError>;

    /// The block left the chain; it was the last one connected.
    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError>;

    /// Records a tip: `tip`, the last block connected, or any block below it whose rows are durable. Everything that
    /// the engine stores is durable up to `tip`. No block is validated meanwhile, so work that takes longer than 0.1 s
    /// belongs to a thread of the follower.
    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError>;

    /// Deletes everything: the next call is for the genesis block.
    fn clear(&mut self) -> Result<(), FollowerError>;
}

/// What a follower gave up with a block that left the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// That block.
    Block,
    /// Blocks below it, too: the follower stands at its durable tip, which is below the block, and the catch-up brings
    /// it to the chain again.
    ToDurableTip,
}

/// The part of a follower's work that needs no order.
pub trait Prepare: Debug + Send + Sync {
    /// Makes rows of a block, numbered relative to it. The block's scripts may not be verified yet: if the block turns
    /// out to be invalid, the rows are dropped.
    fn prepare(&self, block: &BlockWithSpent<'_>) -> Rows;
}

/// A block with the coins it spends.
#[derive(Clone, Copy, Debug)]
pub struct BlockWithSpent<'a> {
    pub height: Height,
    pub block: &'a Block,
    /// Coins spent, in the order of the inputs, without the coinbase.
    pub spent: &'a [Coin],
}

/// A block of the chain with the coins it spent.
#[derive(Clone, Copy, Debug)]
pub struct ConnectedBlock<'a> {
    pub height: Height,
    pub block: &'a Block,
    /// Coins spent, in the order of the inputs, without the coinbase.
    pub spent: &'a [Coin],
    /// The transactions and outputs of the chain below: the numbers, from 0, of the block's first transaction and of
    /// its first output. (The offset of a transaction inside the block is `lydian_primitives::Tx::offset`.)
    pub below: ChainTotals,
}

impl<'a> ConnectedBlock<'a> {
    /// The block as [`Prepare`] gets it.
    pub fn with_spent(&self) -> BlockWithSpent<'a> {
        BlockWithSpent { height: self.height, block: self.block, spent: self.spent }
    }
}

/// What a [`Prepare`] made of a block, with its size in memory, which counts in the bound of the run.
pub struct Rows {
    bytes: usize,
    content: Box<dyn Any + Send>,
}

impl Rows {
    pub fn new<T: Any + Send>(content: T, bytes: usize) -> Rows {
        Rows { bytes, content: Box::new(content) }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The content.
    ///
    /// # Panics
    /// If it has another type: a follower gets only the rows of its own preparer.
    pub fn take<T: Any + Send>(self) -> T {
        match self.content.downcast() {
            Ok(content) => *content,
            Err(_) => panic!("the rows of a follower's own preparer"),
        }
    }
}

impl Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// Why a follower cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerError {
    /// One sentence that names the file.
    pub reason: String,
    /// The node ends, as it does when it cannot store a block.
    pub is_disk_full: bool,
}

impl FollowerError {
    pub fn new(reason: impl Into<String>) -> FollowerError {
        FollowerError { reason: reason.into(), is_disk_full: false }
    }
}

impl From<DiskError> for FollowerError {
    fn from(error: DiskError) -> FollowerError {
        FollowerError { reason: error.to_string(), is_disk_full: error.kind == DiskErrorKind::NoSpace }
    }
}
