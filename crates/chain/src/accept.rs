//! [`accept_headers`]: adds many headers to the tree and the index log at once. Input: hashed headers. Output: how many
//! were accepted.
//!
//! Invariant: headers are recorded in the order of their ids, because the caller has exclusive access to the tree until
//! they are recorded. Cost: about 0.5 us per header. Reads no clock and takes no lock of its own.

use crate::store::{BlockStore, IndexEntry};
use crate::tree::{HeaderTree, RefusedAt};
use lydian_consensus::Params;
use lydian_primitives::HashedHeader;

/// Adds headers until one is refused: Core's `ProcessNewBlockHeaders`. Returns the number of new headers.
///
/// Headers before the refused one stay in the tree. `now` is the current time in seconds since 1970.
pub fn accept_headers(
    tree: &mut HeaderTree,
    store: &BlockStore,
    headers: &[HashedHeader],
    now: i64,
    params: &Params,
) -> (usize, Result<(), RefusedAt>) {
    let mut entries = Vec::with_capacity(headers.len());
    let taken = tree.accept_headers(headers, now, params, &mut |id, header| {
        entries.push(IndexEntry::Header { id, header: *header });
    });
    store.record(&entries);
    (entries.len(), taken)
}
