//! Full validation without a barrier between blocks: the pipeline, its window, and the feed of followers. Sole writer
//! of chain and coins.
//!
//! Input: blocks, from any source. Output: the verdicts of the plain validator (`lydian_consensus::PlainValidator`, the
//! specification), a chain and coins that survive crashes, and a feed of connected and disconnected blocks. The steps
//! of a block: read, parse, check and link in any order; fund in height order, sharded by outpoint; check inputs and
//! verify in any order; commit in height order.
//!
//! Invariants: no setting changes a verdict; a block is invalid only for breaking a rule, never because of a disk
//! error; nothing committed to disk is lost. The crate reads no clock. No thread outlives a call, except the one that
//! reviews blocks at the tip and the one that brings followers there, which end with the engine.
//!
//! The folders, of which each uses only those before it: `chainstate` (stores, tree, settings, locks), `run` (the
//! pipeline), `best_chain` (the search, acceptance, reorganisations, import), `review` (blocks at the tip, again),
//! `catch_up` (followers below the tip), then the file `engine` (the entry point), and `read` (everything that changes
//! nothing).

#![forbid(unsafe_code)]

mod best_chain;
mod catch_up;
mod chainstate;
mod engine;
mod error;
mod event;
mod follower;
mod initial;
pub mod limits;
mod log;
mod meter;
mod read;
mod review;
mod run;

pub use best_chain::activate::Advance;
pub use best_chain::import::{Import, ImportFiles, RefusedHeader};
pub use best_chain::reindex::Reindex;
pub use chainstate::arrivals::Origin;
pub use chainstate::assumed::AssumeValid;
pub use chainstate::followers::Standing;
pub use chainstate::reviews::{ReviewCounts, Reviews};
pub use chainstate::settings::{Cancel, Layout, Settings};
pub use chainstate::wipe::{WIPE_FILES, Wipe, wipe};
pub use engine::{AcceptedHeaders, Engine, Opened, Submission};
pub use error::EngineError;
pub use event::{
    Arrival, BlockSource, BlockTimes, BranchTip, Event, Observer, Reading, SettledBlock, TipUpdate, Unobserved,
    UnreadableReason,
};
pub use follower::{BlockWithSpent, ConnectedBlock, Follower, FollowerError, Left, Prepare, Rows};
pub use initial::{INITIAL_DOWNLOAD_OVER, InitialDownload, TIP_AGE_SECONDS_DEFAULT};
pub use log::{LogLevel, LogLine, LogPlace, LogSwitches};
pub use lydian_chain::{ChainTotals, HeaderId, Node, Pruned, StoredBytes};
pub use lydian_coins::Tip;
pub use meter::{Meter, NoClock, Snapshot, Stage, StageClock, StageTime};
pub use read::branches::{Branch, Branches, Fork, Leaves};
pub use read::check::{Inconsistency, LastBlocks, LastBlocksEnd};
pub use read::followers::FollowerInfo;
pub use read::proposal::BadProposal;
pub use read::snapshot::ChainSnapshot;
pub use read::utxo::{CoinsSummary, UtxoHash, UtxoHashes};
pub use read::view::{ChainTip, ChainTipStatus, HeaderInfo};
