//! Block filters for peers (BIP-0157): what may be asked for, and where the answers come from.
//!
//! Input: requests that the manager has checked. Output: the messages that answer them, made when they are next to be
//! sent: a peer may ask for a thousand filters at once. Core's `ProcessGetCFilters`, `ProcessGetCFHeaders` and
//! `ProcessGetCFCheckPt`.

use lydian_primitives::{BlockHash, Height};
use lydian_wire::Message;
use std::fmt::Debug;
use std::sync::Arc;

/// The type of basic filters.
pub const BASIC_FILTER: u8 = 0;

/// Filters of a `getcfilters`: Core's `MAX_GETCFILTERS_SIZE`.
pub const CFILTERS_COUNT_MAX: u32 = 1_000;

/// Filter hashes of a `getcfheaders`: Core's `MAX_GETCFHEADERS_SIZE`.
pub const CFHEADERS_COUNT_MAX: u32 = 2_000;

/// Blocks between two headers of a `cfcheckpt`: Core's `CFCHECKPT_INTERVAL`.
pub const CHECKPOINT_INTERVAL: u32 = 1_000;

/// What a peer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterRequest {
    /// The filter of a block.
    Filter(BlockHash),
    /// The hashes of the filters from a height up to a block, and the filter header before them.
    Headers { from: Height, stop: BlockHash },
    /// Every thousandth filter header up to a block.
    Checkpoints { height: Height, stop: BlockHash },
}

/// An index of block filters.
pub trait FilterSource: Debug + Send + Sync {
    /// The answer to a request; `None` if the index does not have all of it. Waits for the disk.
    fn answer(&self, request: &FilterRequest) -> Option<Message>;
}

/// An answer that is made when it is next.
#[derive(Clone, Debug)]
pub struct FilterAnswer {
    pub source: Arc<dyn FilterSource>,
    pub request: FilterRequest,
}
