//! [`BlockRun`]: which blocks of the chain are in the store.
//!
//! Input: the runs of a commit row. Output: where a block is, what is missing, and the runs after a reorganisation.
//! Every run has a number of its own, under which the row gives each height to one block only: what a reorganisation
//! reaches is removed, and the blocks that replace it get another number. So no removal meets a block that a row names.
//! A run may be empty: then its number waits for blocks from its height on.

use crate::commit::{Commit, Leftover};
use crate::limits::BLOCKS_PER_COMMIT_MAX;
use std::ops::Range;

/// Blocks that follow each other, with their bytes in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockRun {
    /// A part of their keys.
    pub series: u64,
    pub heights: Range<u32>,
}

/// Whether no height belongs to two runs, and lower ones come first.
pub(crate) fn are_in_order(runs: &[BlockRun]) -> bool {
    let is_range = |run: &BlockRun| run.heights.start <= run.heights.end;
    runs.iter().all(is_range) && runs.is_sorted_by(|one, next| one.heights.end <= next.heights.start)
}

/// The series of the block at a height, if it is in the store.
pub(crate) fn series_at(runs: &[BlockRun], height: u32) -> Option<u64> {
    let run = runs.get(runs.partition_point(|run| run.heights.end <= height))?;
    run.heights.contains(&height).then_some(run.series)
}

/// Heights without blocks in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) heights: Range<u32>,
    /// The number of runs below it. The last of them ends where the gap begins, unless there is none.
    pub(crate) below: usize,
}

/// What is missing below a height.
pub(crate) fn gaps(runs: &[BlockRun], end: u32) -> Vec<Gap> {
    let mut all = Vec::new();
    let mut from = 0;
    let starts = runs.iter().map(|run| (run.heights.start, run.heights.end));
    for (below, (start, next)) in starts.chain([(end, end)]).enumerate() {
        if from < start.min(end) {
            all.push(Gap { heights: from..start.min(end), below });
        }
        from = from.max(next);
    }
    all
}

/// How far a run may have blocks that no row names: up to the next run, or as many as a row may name at once.
fn reach(runs: &[BlockRun], at: usize) -> Option<u32> {
    let end = runs.get(at)?.heights.end.saturating_add(BLOCKS_PER_COMMIT_MAX);
    Some(runs.get(at + 1).map_or(end, |next| next.heights.start.min(end)))
}

/// Takes the blocks from a height on out of a row. Returns what is to be removed.
pub(crate) fn cut(next: &mut Commit, from: u32) -> Vec<Leftover> {
    let runs = &next.blocks;
    let reached = (0..runs.len()).filter_map(|at| {
        let (run, reach) = (runs.get(at)?, reach(runs, at)?);
        let heights = run.heights.start.max(from)..reach;
        (reach > from).then_some(Leftover::Blocks { series: run.series, heights })
    });
    let reached: Vec<Leftover> = reached.filter(|left| !is_empty(left)).collect();
    if reached.is_empty() {
        return reached;
    }
    next.blocks.retain(|run| run.heights.start < from);
    next.blocks.iter_mut().for_each(|run| run.heights.end = run.heights.end.min(from));
    // The numbers above are used up from there on.
    next.blocks.push(BlockRun { series: next.next, heights: from..from });
    next.next += 1;
    reached
}

fn is_empty(left: &Leftover) -> bool {
    matches!(left, Leftover::Blocks { heights, .. } if heights.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(series: u64, heights: Range<u32>) -> BlockRun {
        BlockRun { series, heights }
    }

    #[test]
    fn a_block_is_found_in_its_run_and_what_is_missing_in_none() {
        let runs = [run(1, 0..100), run(2, 100..100), run(3, 500..600)];
        assert!(are_in_order(&runs));
        let at = [0, 99, 100, 499, 500, 599, 600].map(|height| series_at(&runs, height));
        assert_eq!(at, [Some(1), Some(1), None, None, Some(3), Some(3), None]);
        let gap = |heights, below| Gap { heights, below };
        assert_eq!(gaps(&runs, 700), [gap(100..500, 2), gap(600..700, 3)]);
        assert_eq!(gaps(&runs, 300), [gap(100..300, 2)]);
        assert_eq!((gaps(&runs, 100), gaps(&[], 5)), (vec![], vec![gap(0..5, 0)]));
        assert_eq!(gaps(&[run(1, 4..4)], 6), [gap(0..4, 0), gap(4..6, 1)]);
        let backwards = [run(1, std::ops::Range { start: 5, end: 4 })];
        let wrong: [&[BlockRun]; 3] = [&[run(1, 0..5), run(2, 4..6)], &[run(1, 3..5), run(2, 0..2)], &backwards];
        assert!(wrong.iter().all(|runs| !are_in_order(runs)));
    }
}
