//! What the next commit row is: [`reserve`] and [`compose`].
//!
//! Input: the row, what the embedded index has, and the generations that were written meanwhile. Output: another row,
//! or none if nothing changes. Nothing is written here, and no clock is read.

use crate::commit::{Commit, Leftover, Retired};
use crate::runs;
use crate::store::{DeltaHeight, DeltaKey};
use lydian_index::{Export, IndexError, RemoteContent, RemoteSegment, SegmentFacts};
use lydian_primitives::BlockHash;
use std::collections::BTreeMap;
use std::ops::Range;

/// New deltas of one commit: a bound of what is written without a row that names it.
const DELTAS_PER_COMMIT: u32 = 256;

/// Blocks of the largest segments that are kept apart by their size: those of two and a half years.
const TIER_BLOCKS_MAX: u32 = 131_072;

/// A generation that the store is to have: segments of the embedded index, as one.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) facts: SegmentFacts,
    /// The segments, counted from the first.
    pub(crate) parts: Range<usize>,
}

/// What the embedded index has at one moment.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) export: Export,
    pub(crate) targets: Vec<Target>,
}

impl Plan {
    /// `before`: an earlier one, whose targets are taken over if there are the same segments.
    pub(crate) fn new(export: Export, before: Option<Plan>) -> Result<Plan, IndexError> {
        if let Some(before) = before.filter(|before| before.export.has_segments_of(&export)) {
            return Ok(Plan { export, targets: before.targets });
        }
        let heights: Vec<Range<u32>> = export.heights().collect();
        let mut targets = Vec::new();
        for parts in tiers(&heights, export.sealed()) {
            targets.extend(export.facts(parts.clone())?.map(|facts| Target { facts, parts }));
        }
        Ok(Plan { export, targets })
    }

    fn is_target(&self, facts: &SegmentFacts) -> bool {
        self.targets.iter().any(|target| target.facts == *facts)
    }

    /// Whether the blocks of a segment are on the chain of the index.
    fn has(&self, facts: &SegmentFacts) -> Result<bool, IndexError> {
        Ok(self.is_target(facts) || self.export.hash(facts.heights.end.saturating_sub(1))? == Some(facts.hash))
    }

    /// The segments of the index that a generation is made of, counted from the first; `None` if it has others.
    pub(crate) fn parts_of(&self, facts: &SegmentFacts) -> Result<Option<Range<usize>>, IndexError> {
        let first = self.export.heights().position(|heights| heights.start == facts.heights.start);
        let last = self.export.heights().position(|heights| heights.end == facts.heights.end);
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        let parts = first..last + 1;
        Ok((self.export.facts(parts.clone())?.as_ref() == Some(facts)).then_some(parts))
    }

    /// The generations of the row whose blocks are on the chain of the index, and some more; targets come first.
    fn known(&self, commit: &Commit, more: &[RemoteSegment]) -> Result<Vec<RemoteSegment>, IndexError> {
        let mut known = Vec::new();
        for segment in commit.content.segments.iter().chain(more) {
            if self.has(&segment.facts)? {
                known.push(segment.clone());
            }
        }
        known.sort_by_key(|segment| !self.is_target(&segment.facts));
        Ok(known)
    }
}

/// Which segments become one generation: those of a size, so that a reader asks at most five. Segments of
/// [`TIER_BLOCKS_MAX`] and more are one size. The last segment is for itself if it is not sealed, since a
/// reorganisation may reach it; those below that are not sealed belong to the smallest size.
fn tiers(heights: &[Range<u32>], sealed: u32) -> Vec<Range<usize>> {
    let tier = |heights: &Range<u32>| (heights.end - heights.start).min(TIER_BLOCKS_MAX);
    let is_open = heights.last().is_some_and(|last| last.end > sealed);
    let settled = heights.get(..heights.len() - usize::from(is_open)).unwrap_or_default();
    let mut all: Vec<Range<usize>> = Vec::new();
    for parts in settled.chunk_by(|one, next| tier(one) == tier(next)) {
        let from = all.last().map_or(0, |last| last.end);
        all.push(from..from + parts.len());
    }
    if is_open {
        all.push(settled.len()..heights.len());
    }
    all
}

/// Generations from height 0 on that follow each other: as far as they reach, then as few as possible, then those that
/// are named first.
fn cover(known: &[RemoteSegment]) -> Vec<RemoteSegment> {
    let mut sorted: Vec<&RemoteSegment> = known.iter().collect();
    sorted.sort_by_key(|segment| segment.facts.heights.end);
    // The best ones up to each height.
    let mut paths: BTreeMap<u32, Vec<&RemoteSegment>> = BTreeMap::from([(0, Vec::new())]);
    for segment in sorted {
        let Range { start, end } = segment.facts.heights;
        let Some(path) = paths.get(&start).map(|below| [&below[..], &[segment]].concat()) else { continue };
        if paths.get(&end).is_none_or(|other| other.len() > path.len()) {
            paths.insert(end, path);
        }
    }
    paths.pop_last().map(|(_, path)| path.into_iter().cloned().collect()).unwrap_or_default()
}

/// The row with numbers for the generations that the store does not have, and without those that are no longer to be
/// written. `None` if there are neither.
pub(crate) fn reserve(commit: &Commit, plan: &Plan, now: u64) -> Result<Option<Commit>, IndexError> {
    // Numbers are given below.
    let target = |target: &Target| RemoteSegment { generation: u64::MAX, facts: target.facts.clone() };
    let targets: Vec<RemoteSegment> = plan.targets.iter().map(target).collect();
    let cover = cover(&plan.known(commit, &targets)?);
    let is_there = |facts: &SegmentFacts| commit.content.segments.iter().any(|known| known.facts == *facts);
    let wanted: Vec<&SegmentFacts> =
        cover.iter().map(|segment| &segment.facts).filter(|facts| !is_there(facts)).collect();
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
    let segments = cover(&plan.known(commit, finished)?);
    let hashes = hashes(commit, plan, &segments)?;
    if segments == commit.content.segments && hashes == commit.content.hashes {
        return Ok(None);
    }
    let content = RemoteContent { segments, hashes, epoch: commit.content.epoch };
    let mut next = Commit { content, ..commit.clone() };
    let mut blocks = Vec::new();
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
        let end = next.tip().map_or(0, |(height, _)| height.saturating_add(1));
        blocks = runs::cut(&mut next, fork(commit, plan)?.min(end));
    }
    // A clock that was wrong would keep them for ever.
    next.retired.iter_mut().for_each(|retired| retired.since = retired.since.min(now));
    let is_named = |segment: &RemoteSegment| next.content.segments.contains(segment);
    let left = commit.content.segments.iter().filter(|segment| !is_named(segment));
    let left: Vec<Leftover> = left.cloned().map(Leftover::Generation).collect();
    next.writing.retain(|segment| !next.content.segments.contains(segment));
    let deltas = take_series(&mut next, plan.export.sealed());
    next.retired.extend(left.into_iter().chain(deltas).chain(blocks).map(|what| Retired { since: now, what }));
    Ok(Some(next))
}

/// A height below which all blocks of the row are on the chain of the index: the fork, unless it is in a generation.
fn fork(commit: &Commit, plan: &Plan) -> Result<u32, IndexError> {
    let (mut low, mut high) = (commit.written(), commit.tip().map_or(0, |(height, _)| height.saturating_add(1)));
    let first = low;
    while low < high {
        let middle = low + (high - low) / 2;
        match commit.delta_hash(middle) == plan.export.hash(middle)? {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    if low > first {
        return Ok(low);
    }
    for segment in commit.content.segments.iter().rev() {
        if plan.has(&segment.facts)? {
            return Ok(segment.facts.heights.end);
        }
    }
    Ok(0)
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
