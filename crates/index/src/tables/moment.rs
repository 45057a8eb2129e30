//! [`Moment`]: what the tables have at one moment, for a reader: of an index of this node, or of a copy in a store.

use super::places::{Heights, Place};
use super::segment::{Rows, Segment};
use super::tail::Group;
use lydian_engine::Tip;
use std::collections::VecDeque;
use std::sync::Arc;

/// Segments, and the blocks behind them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment<'a> {
    pub(super) segments: &'a Arc<Vec<Segment>>,
    pub(super) groups: &'a VecDeque<Group>,
    pub(super) heights: &'a Heights,
    pub(super) tip: Option<Tip>,
    pub(super) epoch: u64,
}

impl<'a> Moment<'a> {
    /// The height behind the last segment.
    pub(super) fn written(&self) -> u32 {
        self.segments.last().map_or(0, |segment| segment.heights.end)
    }

    /// The first height of each group, and its rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = (u32, &'a Arc<Rows>)> {
        self.groups.iter().map(|group| (group.from, &group.rows))
    }

    /// The transactions of a key in the blocks that are in memory.
    pub(super) fn find_in_memory(&self, key: u64) -> Vec<(u64, Place)> {
        let mut found = Vec::new();
        for group in self.groups {
            let first = self.heights.first(group.from);
            let numbers = group.find(key).map(|place| first + u64::from(place));
            found.extend(numbers.filter_map(|number| Some((number, group.place(self.heights, number)?))));
        }
        found
    }

    /// The group in memory that has a transaction.
    pub(super) fn group_of(&self, number: u64) -> Option<&'a Group> {
        self.groups.iter().rev().find(|group| self.heights.first(group.from) <= number)
    }
}
