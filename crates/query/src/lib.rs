//! Answers for servers: history, coins and balance of a script, transactions, merkle proofs, headers.
//!
//! Input: the hash of a script, a txid, a height. Output: typed answers, each from one moment of chain, index and
//! mempool. [`Query`] answers; it reads through three small traits, so that a server need not run in the process of the
//! node: [`Chain`] (headers and bytes of blocks), [`ScriptIndex`] (transactions by number and by script) and [`Pool`]
//! (the mempool by script). [`NodeChain`], [`NodeIndex`] and [`NodePool`] are those of this node. What changes the node
//! is behind [`Calls`]. Blocks that the node has pruned come through [`BlockSource`].
//!
//! Invariants: an answer that would mix two chains is computed again; lists are in the order of the chain, then of the
//! Electrum protocol for unconfirmed transactions; an error says what is missing, and an answer is never empty for lack
//! of an index. No JSON, no socket, no clock.

#![forbid(unsafe_code)]

mod allowance;
mod blocks;
mod chain;
mod details;
mod error;
mod fees;
mod index;
mod kept;
pub mod limits;
mod merkle;
mod parts;
mod pool;
mod pruned;
mod query;
mod rows;
mod several;
mod sizes;
mod source;
mod status;
mod sums;
mod transactions;
mod txids;
mod undo;

pub use allowance::{Allowance, Payer};
pub use blocks::BlockPage;
pub use chain::NodeChain;
pub use details::{Detailed, Found, Page, Question, ScriptStats, Spending};
pub use error::QueryError;
pub use index::{Feeder, NodeIndex};
pub use lydian_index::ScriptHash;
pub use merkle::MerkleProof;
pub use parts::{CoinParts, History, HistoryParts, PART};
pub use pool::NodePool;
pub use pruned::{BlockSource, BlockTaker, PrunedBlocks};
pub use query::{Balance, Coin, Confirmed, OutpointStatus, PoolEntry, Query, Settings, Source};
pub use rows::{PoolRows, Unseen};
pub use several::{Summary, SummaryEntry};
pub use sizes::BlockSizes;
pub use source::{
    BlockInfo, BlockPlace, CallError, Calls, Chain, FeeRow, Located, Numbered, Pool, PoolFees, PoolRow, PoolScript,
    PoolTotals, PoolTouched, ScriptIndex, SpentOutput, Taken, Touched,
};
pub use transactions::Transactions;
