//! Log lines about `headers` messages, with Bitcoin Core's texts.
//!
//! Input: values of a download. Output: lines for the log.

use super::sync::{HeadersSync, HeadersSyncEnd, HeadersSyncPhase};
use lydian_consensus::U256;
use lydian_primitives::BlockHash;

/// A line about the headers of one peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HeadersNote {
    /// The download of a chain whose work is not known to be sufficient starts.
    Started {
        height: u32,
        max_commitments: u64,
        minimum_work: U256,
    },
    /// The chain has shown enough work.
    Transition {
        height: u32,
        from: u32,
    },
    Ended {
        end: HeadersSyncEnd,
        was_presync: bool,
        height: u32,
    },
    /// A low-work chain that has ended is ignored.
    LowWork {
        height: u32,
    },
    /// The first header does not connect.
    Unconnected {
        first: BlockHash,
        parent: BlockHash,
        best_height: u32,
    },
    /// More headers of the download are requested.
    More {
        from: BlockHash,
    },
}

impl HeadersNote {
    /// Returns the note about the effect of a message on a download.
    pub(super) fn of(sync: &HeadersSync, was_presync: bool) -> Option<HeadersNote> {
        let (current, buffered) = sync.heights();
        if let Some(end) = sync.end() {
            let at_next = !matches!(end, HeadersSyncEnd::Complete | HeadersSyncEnd::Incomplete);
            let height = match (was_presync, end) {
                (true, HeadersSyncEnd::NotContinuous) => current,
                (true, _) => current + u32::from(at_next),
                (false, _) => buffered + u32::from(at_next),
            };
            return Some(HeadersNote::Ended { end, was_presync, height });
        }
        let is_transition = was_presync && sync.phase() == HeadersSyncPhase::Redownload;
        is_transition.then_some(HeadersNote::Transition { height: current, from: buffered })
    }

    /// Returns the log line, of the category `net`.
    pub fn sentence(&self, id: u64) -> String {
        match self {
            HeadersNote::Started { height, max_commitments, minimum_work } => format!(
                "Initial headers sync started with peer={id}: height={height}, max_commitments={max_commitments}, min_work={minimum_work}"
            ),
            HeadersNote::Transition { height, from } => format!(
                "Initial headers sync transition with peer={id}: reached sufficient work at height={height}, redownloading from height={from}"
            ),
            HeadersNote::Ended { end, was_presync, height } => ended(*end, *was_presync, *height, id),
            HeadersNote::LowWork { height } => format!("Ignoring low-work chain (height={height}) from peer={id}"),
            HeadersNote::Unconnected { first, parent, best_height } => format!(
                "received header {first}: missing prev block {parent}, sending getheaders ({best_height}) to end (peer={id})"
            ),
            HeadersNote::More { from } => format!("more getheaders (from {from}) to peer={id}"),
        }
    }
}

fn ended(end: HeadersSyncEnd, was_presync: bool, height: u32, id: u64) -> String {
    use HeadersSyncEnd as End;
    match (end, was_presync) {
        (End::Complete, _) => {
            format!("Initial headers sync complete with peer={id}: releasing all at height={height} (redownload phase)")
        }
        (End::Incomplete, true) => format!(
            "Initial headers sync aborted with peer={id}: incomplete headers message at height={height} (presync phase)"
        ),
        (End::Incomplete, false) => format!(
            "Initial headers sync aborted with peer={id}: incomplete headers message at height={height} (redownload phase)"
        ),
        (End::NotContinuous, true) => format!(
            "Initial headers sync aborted with peer={id}: non-continuous headers at height={height} (presync phase)"
        ),
        (End::NotContinuous, false) => format!(
            "Initial headers sync aborted with peer={id}: non-continuous headers at height={height} (redownload phase)"
        ),
        (End::DifficultyTransition, true) => format!(
            "Initial headers sync aborted with peer={id}: invalid difficulty transition at height={height} (presync phase)"
        ),
        (End::DifficultyTransition, false) => format!(
            "Initial headers sync aborted with peer={id}: invalid difficulty transition at height={height} (redownload phase)"
        ),
        (End::TooLong, _) => format!(
            "Initial headers sync aborted with peer={id}: exceeded max commitments at height={height} (presync phase)"
        ),
        (End::CommitmentOverrun, _) => format!(
            "Initial headers sync aborted with peer={id}: commitment overrun at height={height} (redownload phase)"
        ),
        (End::CommitmentMismatch, _) => format!(
            "Initial headers sync aborted with peer={id}: commitment mismatch at height={height} (redownload phase)"
        ),
    }
}
