//! Power loss: chooses which unsynced changes are found on disk afterwards.
//!
//! Input: a state and a seed. Output: the state after the restart, in which everything is durable.
//!
//! Invariants: synced data survives; a name refers to what it was when its directory was last synced or to any later
//! value, independently of other names; an unsynced byte is the written byte, zero, or whatever was on disk before; a
//! byte that was overwritten and not synced is the new one, the old one or any other.
//! Must never: alter synced bytes.

use super::state::{Entry, Inode, Name, State, parent_of};
use lydian_stdx::SplitMix64;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Within one write, the system writes pages in any order.
const PAGE_SIZE: usize = 4096;

pub(super) fn power_loss(before: &State, seed: u64) -> State {
    let mut random = SplitMix64::new(seed);
    let mut after = State { next_file: before.next_file, capacity: before.capacity, ..State::new(seed) };
    // Parents come before their children.
    for (path, name) in &before.names {
        let choice = random.below(name.pending.len() + 1);
        let found = if choice == 0 { name.durable } else { name.pending[choice - 1] };
        if let Some(entry) = found
            && has_directory(&after.names, path)
        {
            after.names.insert(path.clone(), Name { durable: found, pending: Vec::new() });
            if let Entry::File(id) = entry
                && let Some(inode) = before.files.get(&id)
            {
                after
                    .files
                    .entry(id)
                    .or_insert_with(|| Inode { bytes: survive(inode, &mut random), ..Inode::default() });
            }
        }
    }
    after
}

fn has_directory(names: &BTreeMap<PathBuf, Name>, path: &Path) -> bool {
    let parent = parent_of(path);
    parent.parent().is_none() || names.get(parent).is_some_and(|name| name.durable == Some(Entry::Directory))
}

/// Returns the bytes of a file found on disk after power loss.
fn survive(inode: &Inode, random: &mut SplitMix64) -> Arc<Vec<u8>> {
    if inode.pending.is_empty() && inode.doomed.is_empty() && inode.overwrites.is_empty() {
        return Arc::clone(&inode.bytes);
    }
    let mut bytes = inode.bytes.to_vec();
    inode.overwrites.survive(&mut bytes, random);
    if inode.pending.is_empty() && inode.doomed.is_empty() {
        return Arc::new(bytes);
    }
    let mut unsafe_ranges: Vec<Range<usize>> = inode.doomed.iter().chain(&inode.pending).cloned().collect();
    unsafe_ranges.sort_by_key(|range| range.start);
    let lost = match random.below(4) {
        0 => unsafe_ranges,
        1 => Vec::new(),
        2 => lose_writes(&unsafe_ranges, random),
        _ => lose_pages(&unsafe_ranges, random),
    };
    let is_stale = random.below(2) == 0;
    for range in &lost {
        for byte in &mut bytes[range.clone()] {
            *byte = if is_stale { random.byte() } else { 0 };
        }
    }
    // The size is written separately from the bytes: it may include bytes that were lost, but not omit bytes that were
    // written.
    let is_long = random.below(2) == 0;
    let mut end = bytes.len();
    for range in lost.iter().rev().filter(|_| !is_long) {
        if range.end == end {
            end = range.start;
        }
    }
    bytes.truncate(end);
    Arc::new(bytes)
}

/// Loses any subset of the writes, and the end of the last one that is kept.
fn lose_writes(writes: &[Range<usize>], random: &mut SplitMix64) -> Vec<Range<usize>> {
    let (kept, mut lost): (Vec<_>, Vec<_>) = writes.iter().cloned().partition(|_| random.below(2) == 0);
    if let Some(last) = kept.last() {
        let cut = last.start + random.below(last.len() + 1);
        lost.push(cut..last.end);
        lost.sort_by_key(|range| range.start);
    }
    lost
}

/// Loses any subset of the pages, regardless of the write that they belong to.
fn lose_pages(writes: &[Range<usize>], random: &mut SplitMix64) -> Vec<Range<usize>> {
    let mut lost = Vec::new();
    let (mut page, mut is_lost) = (usize::MAX, false);
    for write in writes {
        let mut start = write.start;
        while start < write.end {
            if start / PAGE_SIZE != page {
                page = start / PAGE_SIZE;
                is_lost = random.below(2) == 0;
            }
            let end = write.end.min((page + 1) * PAGE_SIZE);
            if is_lost {
                lost.push(start..end);
            }
            start = end;
        }
    }
    lost
}
