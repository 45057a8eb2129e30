//! [`accept_headers`]: many headers into the tree and the index log at once. Input: headers, hashed. Output: how far they were taken.
//!
//! Invariant: headers are recorded in the order of their ids, since nobody else changes the tree between entering and recording them. Cost:
//! about 0.5 us a header. No clock, no lock of its own.

use crate::store::{BlockStore, IndexEntry};
use crate::tree::{HeaderTree, RefusedAt};
use lydian_consensus::Params;
use lydian_primitives::HashedHeader;

/// Takes headers in until one is refused: Core's `ProcessNewBlockHeaders`. Gives how many of them were new.
///
/// What was taken before the refused one stays. `now` is the clock's time, in seconds since 1970.
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
