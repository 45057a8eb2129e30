//! What the next commit row is: [`reserve`] and [`compose`].
//!
//! Input: the row, what the embedded index has, and the generations that were written meanwhile. Output: another row,
//! or none if nothing changes. Nothing is written here, and no clock is read.

use crate::commit::{Commit, Leftover, Retired};
use crate::store::{DeltaHeight, DeltaKey};
use lydian_index::{Export, IndexError, RemoteContent, RemoteSegment, SegmentFacts};
use lydian_primitives::BlockHash;
use std::ops::Range;

/// New deltas of one commit: a bound of what is written without a row that names it.
const DELTAS_PER_COMMIT: u32 = 256;

/// What the embedded index has at one moment.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) export: Export,
    pub(crate) segments: Vec<SegmentFacts>,
}

impl Plan {
    /// `before`: an earlier one, whose facts are taken over if there are the same segments.
    pub(crate) fn new(export: Export, before: Option<Plan>) -> Result<Plan, IndexError> {
        let segments = match before.filter(|before| before.export.has_segments_of(&export)) {
            Some(before) => before.segments,
            None => export.segments()?,
        };
        Ok(Plan { export, segments })
    }

    /// Whether the blocks of a segment are on the chain of the index.
    fn has(&self, facts: &SegmentFacts) -> Result<bool, IndexError> {
        let is_own = self.segments.contains(facts);
        Ok(is_own || self.export.hash(facts.heights.end.saturating_sub(1))? == Some(facts.hash))
    }

    /// Generations from height 0 on that follow each other: of several that begin at a height, the longest.
    fn cover(&self, commit: &Commit, finished: &[RemoteSegment]) -> Result<Vec<RemoteSegment>, IndexError> {
        let (mut cover, mut from) = (Vec::new(), 0);
        loop {
            let mut longest: Option<&RemoteSegment> = None;
            for segment in commit.content.segments.iter().chain(finished) {
                let Range { start, end } = segment.facts.heights;
                let is_longer = longest.is_none_or(|longest| longest.facts.heights.end < end);
                if start == from && is_longer && self.has(&segment.facts)? {
                    longest = Some(segment);
                }
            }
            let Some(longest) = longest else { return Ok(cover) };
            from = longest.facts.heights.end;
            cover.push(longest.clone());
        }
    }
}

/// The row with numbers for the segments that the store does not have, and without those that are no longer to be
/// written. `None` if there are neither.
pub(crate) fn reserve(commit: &Commit, plan: &Plan, now: u64) -> Result<Option<Commit>, IndexError> {
    let cover = plan.cover(commit, &[])?;
    let is_inside = |inner: &Range<u32>, outer: &Range<u32>| outer.start <= inner.start && inner.end <= outer.end;
    let is_there = |facts: &SegmentFacts| cover.iter().any(|known| is_inside(&facts.heights, &known.facts.heights));
    let wanted: Vec<&SegmentFacts> = plan.segments.iter().filter(|facts| !is_there(facts)).collect();
    let is_reserved = |facts: &SegmentFacts| commit.writing.iter().any(|segment| segment.facts == *facts);
    let mut next = commit.clone();
    next.writing.retain(|segment| wanted.contains(&&segment.facts));
    let left = commit.writing.iter().filter(|segment| !wanted.contains(&&segment.facts));
    next.retired.extend(left.map(|segment| Retired { since: now, what: Leftover::Generation(segment.clone()) }));
    for facts in wanted.into_iter().filter(|facts| !is_reserved(facts)) {
        next.writing.push(RemoteSegment { generation: next.next, facts: facts.clone() });
        next.next += 1;
    }
    Ok((next.writing != commit.writing).then_some(next))
}

/// The row with what the index has, as far as the store has it or will have with the new deltas. `None` if that is what
/// the row has.
pub(crate) fn compose(
    commit: &Commit,
    plan: &Plan,
    finished: &[RemoteSegment],
    now: u64,
) -> Result<Option<Commit>, IndexError> {
    let segments = plan.cover(commit, finished)?;
    let hashes = hashes(commit, plan, &segments)?;
    if segments == commit.content.segments && hashes == commit.content.hashes {
        return Ok(None);
    }
    let content = RemoteContent { segments, hashes, epoch: commit.content.epoch };
    let mut next = Commit { content, ..commit.clone() };
    let are_left = match commit.tip() {
        Some((height, hash)) => {
            next.tip().is_none_or(|(tip, _)| tip < height) || plan.export.hash(height)? != Some(hash)
        }
        None => false,
    };
    if are_left {
        // What is still being written may bring it further.
        let is_valid = commit.tip().is_some_and(|(height, hash)| plan.export.hash(height) == Ok(Some(hash)));
        if is_valid {
            return Ok(None);
        }
        next.content.epoch += 1;
    }
    // A clock that was wrong would keep them for ever.
    next.retired.iter_mut().for_each(|retired| retired.since = retired.since.min(now));
    let is_named = |segment: &RemoteSegment| next.content.segments.contains(segment);
    let left = commit.content.segments.iter().filter(|segment| !is_named(segment));
    let left: Vec<Leftover> = left.cloned().map(Leftover::Generation).collect();
    next.writing.retain(|segment| !next.content.segments.contains(segment));
    let deltas = take_series(&mut next, plan.export.sealed());
    next.retired.extend(left.into_iter().chain(deltas).map(|what| Retired { since: now, what }));
    Ok(Some(next))
}

/// The hashes of the blocks behind the generations: those whose deltas the store has, and then those of the index.
fn hashes(commit: &Commit, plan: &Plan, segments: &[RemoteSegment]) -> Result<Vec<BlockHash>, IndexError> {
    let from = segments.last().map_or(0, |segment| segment.facts.heights.end);
    let in_memory = plan.export.written();
    let mut hashes = Vec::new();
    if from < in_memory {
        // The index has no rows of these blocks any more. The store may have: if the last is the same, so are all.
        let last = commit.delta_hash(in_memory - 1).filter(|_| commit.delta_heights.start <= from);
        if last.is_none() || last != plan.export.hash(in_memory - 1)? {
            return Ok(hashes);
        }
        hashes.extend((from..in_memory).map_while(|height| commit.delta_hash(height)));
        if hashes.len() < (in_memory - from) as usize {
            return Ok(Vec::new());
        }
    }
    let (mut height, mut new) = (in_memory, 0);
    for hash in plan.export.hashes() {
        if height >= from {
            let is_known = commit.delta_heights.start <= from && commit.delta_hash(height) == Some(hash);
            new += u32::from(!is_known);
            if new > DELTAS_PER_COMMIT {
                break;
            }
            hashes.push(hash);
        }
        height += 1;
    }
    Ok(hashes)
}

/// Sets the series of the row's deltas. Returns what is no longer named.
fn take_series(next: &mut Commit, sealed: u32) -> Option<Leftover> {
    let (from, old) = (next.written(), next.delta_heights.clone());
    let end = next.tip().map_or(0, |(height, _)| height.saturating_add(1));
    let series = next.series;
    if from < old.start && !next.content.hashes.is_empty() {
        // Deltas of these heights were retired, and must not be written again under the same keys.
        next.series = next.next;
        next.next += 1;
        next.delta_heights = from..end;
        // Some that no row named may have been written above.
        let heights = old.start..old.end.saturating_add(DELTAS_PER_COMMIT);
        return Some(Leftover::Deltas { series, heights });
    }
    let start = old.start.max(from.min(sealed));
    next.delta_heights = start..old.end.max(end).max(start);
    (start > old.start).then_some(Leftover::Deltas { series, heights: old.start..start })
}

/// The deltas that one row names and the one before does not.
pub(crate) fn new_deltas(commit: &Commit, next: &Commit) -> Vec<DeltaKey> {
    let is_known = |height: u32, hash: &BlockHash| {
        next.series == commit.series && commit.delta_hash(height).as_ref() == Some(hash)
    };
    let all = (next.written()..).zip(&next.content.hashes);
    let new = all.filter(|(height, hash)| !is_known(*height, hash));
    new.map(|(height, hash)| DeltaKey { at: DeltaHeight { series: next.series, height }, hash: *hash }).collect()
}
