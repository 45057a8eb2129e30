//! [`QueryError`]: why there is no answer. Its text is one sentence that names the argument.

use crate::limits::FETCHES_PER_REQUEST_MAX;
use lydian_engine::EngineError;
use lydian_index::IndexError;
use lydian_primitives::{BlockHash, Height, Txid};
use std::fmt;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// The node keeps no index of scripts.
    NoIndex,
    /// The index does not have the whole chain yet.
    IndexBehind { height: u32, of: u32 },
    /// No block of the chain has this height.
    NoHeight { height: u32, tip: u32 },
    /// No transaction of the chain or of the mempool has this txid.
    NoTransaction(Txid),
    /// The transaction is not in the block at this height.
    NotInBlock { txid: Txid, height: u32 },
    /// The block has fewer transactions.
    NoPosition { height: u32, position: u32, transactions: usize },
    /// The last height of a proof must not be lower than the header that is proved.
    ProofHeight { height: u32, last: u32, tip: u32 },
    /// The block was pruned, and nothing can fetch it.
    Pruned(Height),
    /// The block was pruned, and no peer sent it.
    NotFetched { hash: BlockHash, height: Height, reason: String },
    /// The block was pruned, and too many requests wait for such blocks.
    FetchesBusy { hash: BlockHash, height: Height },
    /// The answer needs more pruned blocks than a request may have fetched.
    TooManyFetches { needed: usize },
    /// The block was pruned, and is not fetched for this client.
    FetchRefused(String),
    /// The chain moves so often that no answer is from one moment.
    Moving,
    /// The node stops.
    Stopping,
    /// A file cannot be read, or is damaged; or the index failed.
    Failed(String),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::NoIndex => f.write_str("the node keeps no index of scripts: start it with -addressindex"),
            QueryError::IndexBehind { height, of } => {
                write!(f, "the index of scripts is being built: it has {height} of {of} blocks")
            }
            QueryError::NoHeight { height, tip } => write!(f, "height {height} is above the tip {tip}"),
            QueryError::NoTransaction(txid) => write!(f, "no transaction has the txid {txid}"),
            QueryError::NotInBlock { txid, height } => {
                write!(f, "transaction {txid} is not in the block at height {height}")
            }
            QueryError::NoPosition { height, position, transactions } => {
                write!(f, "there is no transaction {position}: the block at height {height} has {transactions}")
            }
            QueryError::ProofHeight { height, last, tip } => {
                write!(f, "cp_height {last} must be between the height {height} and the tip {tip}")
            }
            QueryError::Pruned(height) => write!(f, "the block at height {height} was pruned"),
            QueryError::NotFetched { hash, height, reason } => {
                write!(
                    f,
                    "block {hash} at height {height} is pruned and cannot be fetched: {reason}",
                    height = height.0
                )
            }
            QueryError::FetchesBusy { hash, height } => {
                let height = height.0;
                write!(
                    f,
                    "block {hash} at height {height} is pruned, and too many requests wait for such blocks: try again"
                )
            }
            QueryError::TooManyFetches { needed } => write!(
                f,
                "the answer needs at least {needed} deleted blocks, and a request may have {FETCHES_PER_REQUEST_MAX} \
                 fetched; with -addressindex=full, histories and unspent outputs need none"
            ),
            QueryError::Moving => f.write_str("the chain is being reorganised: try again"),
            QueryError::Stopping => f.write_str("the node is stopping"),
            QueryError::FetchRefused(reason) | QueryError::Failed(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for QueryError {}

impl From<IndexError> for QueryError {
    fn from(error: IndexError) -> QueryError {
        QueryError::Failed(error.to_string())
    }
}

impl From<EngineError> for QueryError {
    fn from(error: EngineError) -> QueryError {
        QueryError::Failed(error.to_string())
    }
}
