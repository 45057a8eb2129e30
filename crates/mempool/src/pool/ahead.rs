//! [`Ahead`]: chunks whose memory is fetched some time before they are looked at.
//!
//! Input: a transaction of each chunk, in mining order. Output: the chunks. The pool is larger than any cache, and what
//! a block takes from it lies far apart: one transaction after another, a processor waits a dozen times for each. Here
//! the same field of many transactions is read in a row, so that it waits for all of them at once. Cost: at most
//! [`AHEAD`] chunks are read in vain.

use super::snapshot::PoolChunk;
use super::tables::Member;
use std::hint::black_box;

/// Chunks that are read together. Their transactions fit in the second cache.
const AHEAD: usize = 64;

/// What a cache fetches at once.
const LINE_BYTES: usize = 64;

/// An iterator that reads ahead.
pub(super) struct Ahead<'a, I> {
    /// A transaction of each chunk.
    members: I,
    /// The next ones, the first one last.
    read: Vec<PoolChunk<'a>>,
}

impl<'a, I: Iterator<Item = &'a Member>> Ahead<'a, I> {
    pub(super) fn new(members: I) -> Ahead<'a, I> {
        Ahead { members, read: Vec::new() }
    }

    fn read(&mut self) {
        let members: Vec<&Member> = self.members.by_ref().take(AHEAD).collect();
        black_box(members.iter().map(|member| member.cluster.len()).sum::<usize>());
        self.read.extend(members.into_iter().map(PoolChunk::of));
        let entries = || self.read.iter().flat_map(PoolChunk::entries);
        black_box(entries().map(|entry| i64::from(entry.vsize())).sum::<i64>());
        black_box(entries().map(|entry| entry.tx().as_bytes().len()).sum::<usize>());
        black_box(entries().map(|entry| entry.tx().view().weight()).sum::<usize>());
        let lines = |bytes: &[u8]| bytes.iter().step_by(LINE_BYTES).map(|byte| usize::from(*byte)).sum::<usize>();
        black_box(entries().map(|entry| lines(entry.tx().as_bytes())).sum::<usize>());
        self.read.reverse();
    }
}

impl<'a, I: Iterator<Item = &'a Member>> Iterator for Ahead<'a, I> {
    type Item = PoolChunk<'a>;

    fn next(&mut self) -> Option<PoolChunk<'a>> {
        if self.read.is_empty() {
            self.read();
        }
        self.read.pop()
    }
}
