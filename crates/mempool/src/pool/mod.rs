//! The pool of unconfirmed transactions: acceptance, replacement, eviction, and what blocks do to it.
//!
//! Input: transactions, blocks, the time. Output: verdicts, a [`Snapshot`] for readers, the [`Feed`] of changes.

mod accept;
mod ahead;
mod bands;
mod chain;
mod check;
mod cluster;
mod entry;
mod feed;
mod index;
mod min_fee;
mod package;
mod projection;
mod slots;
mod snapshot;
mod store;
mod tables;
mod template;
mod txids;
mod usage;

pub use accept::Accepted;
pub(crate) use accept::{Chain, ChainCoins, How, Package};
pub use bands::{BAND_COUNT, BAND_RATES, Band, Bands, band_of};
pub use cluster::{ChunkView, ClusterView, MiningRank, Sums};
pub use entry::{Entry, LockPoints};
pub use feed::{Behind, Change, ChangeKind, Feed, RemovalReason};
pub use package::{PackageResult, TxResult};
pub use projection::{ProjectedBlock, Projection};
pub use snapshot::{PoolChunk, PoolInfo, Snapshot};
pub(crate) use store::Pool;
pub use tables::Member;
pub use template::{BlockContent, BlockOptions};
pub use txids::TxidMap;
pub use usage::dynamic_usage;
