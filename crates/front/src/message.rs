//! What a node sends in its feed, and what it is asked. The bytes are in `wire`, documented in `docs/formats/feed.md`.

use lydian_engine::Tip;
use lydian_index::{Place, ScriptHash};
use lydian_primitives::{BlockHash, Header, Height, Transaction, Txid};
use lydian_query::{BlockInfo, PoolFees, SpentOutput};
use std::sync::Arc;

/// The version of stream, questions and answers. A client that knows another one refuses the node.
pub const FEED_VERSION: u32 = 1;

/// A message of the stream.
///
/// A stream is `Hello`, then a snapshot: `Reset`, the `Added` of each transaction in the order in which they came (of
/// ties, in the order of Core's `getrawmempool`), and `State`. Then changes follow, in groups: any number of `Added`
/// and `Removed`, and a `State`, which says what the mempool is now. Only then are they to be used: the mempool at a
/// `State` is one that the node had. A node that has lost changes, or whose client reads too slowly, begins again with
/// `Reset`. A `State` comes at least every second, so that a silence of [`crate::limits::SILENCE_MAX`] means that the
/// node, or the way to it, is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Hello(Hello),
    Reset,
    Added(PoolTx),
    Removed(Txid),
    State(State),
}

/// Who sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    pub version: u32,
    /// Names the chain.
    pub genesis: BlockHash,
    /// Random for each start of the node: sequence numbers of two epochs have nothing to do with each other.
    pub epoch: u64,
}

/// A transaction of the mempool.
#[derive(Clone, Debug)]
pub struct PoolTx {
    pub tx: Arc<Transaction>,
    /// In satoshis.
    pub fee: i64,
    /// In virtual bytes.
    pub vsize: i64,
    /// When it came, as the node counts: orders [`lydian_query::Pool::recent`].
    pub sequence: u64,
    /// Seconds since 1970.
    pub time: i64,
    /// The script and the value of the output that each input spends, in their order.
    pub spent: Vec<(ScriptHash, i64)>,
}

/// By the bytes of the transaction.
impl PartialEq for PoolTx {
    fn eq(&self, other: &PoolTx) -> bool {
        let numbers = |of: &PoolTx| (of.fee, of.vsize, of.sequence, of.time);
        self.tx.as_bytes() == other.tx.as_bytes() && numbers(self) == numbers(other) && self.spent == other.spent
    }
}

impl Eq for PoolTx {}

/// The node at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The number of the mempool's next change.
    pub sequence: u64,
    /// The block that the mempool builds on.
    pub pool_tip: Tip,
    /// The block that may be announced.
    pub tip: Tip,
    pub fees: PoolFees,
}

/// A question to a node, with what [`lydian_query::Chain`] and [`lydian_query::Pool`] are asked. The answer is the
/// variant of [`Answer`] of the same name, or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// At most [`crate::limits::HEADERS_MAX`].
    Headers {
        from: Height,
        count: u32,
    },
    /// At most [`crate::limits::HASHES_MAX`].
    Hashes {
        from: Height,
        count: u32,
    },
    Txids(Height),
    BlockInfo(BlockHash),
    Block(BlockHash),
    Spent(BlockHash),
    /// The places, and the hash of the block of each as the asker knows the chain: a transaction is `None` if another
    /// block is at the height. At most [`crate::limits::PLACES_MAX`] places.
    Transactions(Vec<(Place, BlockHash)>),
    /// Whether the blocks at these heights were pruned. At most [`crate::limits::PLACES_MAX`] heights.
    Pruned(Vec<Height>),
    PoolTxids,
    PoolChunks,
    Estimate {
        target: u32,
        is_conservative: bool,
    },
    /// What each transaction of a block spends, unless it has more bytes than this.
    Undo {
        hash: BlockHash,
        bytes_max: u64,
    },
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Headers(Vec<Header>),
    Hashes(Vec<BlockHash>),
    Txids(Option<(BlockHash, Vec<Txid>)>),
    BlockInfo(Option<BlockInfo>),
    /// The bytes of the block.
    Block(Option<Vec<u8>>),
    Spent(Option<Vec<SpentOutput>>),
    /// The bytes of each transaction, in the order of the places. If they are many bytes, these are the first ones, and
    /// at least one: the others are to be asked for again.
    Transactions(Vec<Option<Vec<u8>>>),
    Pruned(Vec<bool>),
    PoolTxids(Vec<Txid>),
    PoolChunks(Vec<(i64, i64)>),
    Estimate(Option<i64>),
    /// The undo data of the block, in Bitcoin Core's form.
    Undo(Option<Vec<u8>>),
    /// Why there is none.
    Failed(AnswerError),
}

/// Why a node does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerError {
    /// Another node, or the same one later, may answer: it is stopping, or its chain moves.
    TryAnother(String),
    /// It is the answer: one sentence.
    Final(String),
}
