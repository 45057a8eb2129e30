//! Queries of a history. Input: names of series and a time range. Output: one point for each step of the range, in the
//! finest step that is kept for the range and gives at most [`HISTORY_POINTS_MAX`] points.

use super::format::Values;
use super::series::Sum;
use super::{History, HistoryError};
use crate::limits::HISTORY_POINTS_MAX;
use lydian_stdx::saturating_usize;
use std::sync::atomic::Ordering;

/// Steps of an answer in seconds, each a multiple of the step of the tier that it is made from.
const STEPS: &[u64] =
    &[10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 172_800];

/// The latest time of a query, in the year 36,812.
const TIME_MAX: u64 = 1 << 40;

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Seconds between two points.
    pub step: u64,
    /// The start of the first point, in seconds since 1970: a multiple of the step.
    pub from: u64,
    /// The names in their order, each with its points; `None` where nothing was recorded.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}

impl History {
    /// The values of series from `from` (included) to `to`, in seconds since 1970. A time further back than the history
    /// reaches is left out.
    pub fn query(&self, names: &[&str], from: u64, to: u64) -> Result<Answer, HistoryError> {
        let column = |name: &&str| {
            let column = self.columns.iter().position(|column| column.name == **name);
            column.ok_or_else(|| HistoryError::UnknownSeries { name: (*name).to_owned() })
        };
        let columns: Vec<usize> = names.iter().map(column).collect::<Result<_, _>>()?;
        if from >= to.min(TIME_MAX) {
            return Err(HistoryError::Range);
        }
        let to = to.min(TIME_MAX);
        let from = from.max(to.saturating_sub(self.file.tier(usize::MAX).span()));
        let (tier, step) = self.step_of(from, to);
        let start = from - from % step;
        let count = saturating_usize((to - start).div_ceil(step));
        let mut points = vec![vec![Sum::default(); count]; columns.len()];
        let mut add = |time: u64, get: &dyn Fn(usize) -> Option<f64>| {
            let index = saturating_usize((time - start) / step);
            for (points, column) in points.iter_mut().zip(&columns) {
                if let (Some(point), Some(value), Some(of)) =
                    (points.get_mut(index), get(*column), self.columns.get(*column))
                {
                    point.add(value, of.combine);
                }
            }
        };
        let last = self.last.load(Ordering::Acquire);
        let current = self.file.start(tier, last);
        let mut is_current_read = false;
        self.file.each(tier, start, to, &mut |time, values: Values<'_>| {
            is_current_read |= time == current;
            add(time, &|column| values.get(column));
        });
        // The interval of a coarser tier that has not ended is combined now.
        if tier > 0 && !is_current_read && (start..to).contains(&current) {
            let row = self.combined(current, current + self.file.tier(tier).step);
            add(current, &|column| row.get(column).copied().flatten());
        }
        let values = points.iter().zip(&columns).map(|(points, column)| {
            let combine = self.columns.get(*column).map(|column| column.combine);
            points.iter().map(|point| point.value(combine?)).collect()
        });
        Ok(Answer { step, from: start, series: names.iter().map(|name| (*name).to_owned()).zip(values).collect() })
    }

    /// The tier and the step of an answer.
    fn step_of(&self, from: u64, to: u64) -> (usize, u64) {
        let last = self.last.load(Ordering::Acquire);
        let fits = |step: u64| (to - (from - from % step)).div_ceil(step) <= HISTORY_POINTS_MAX as u64;
        // A range that begins slightly before what a tier keeps is still read from it.
        let reaches = |tier: usize| {
            let span = self.file.tier(tier).span();
            from + span / 100 + self.file.tier(tier).step >= last.saturating_sub(span)
        };
        let coarsest = self.file.tiers() - 1;
        let source = |step: u64| (0..=coarsest).rev().find(|tier| step.is_multiple_of(self.file.tier(*tier).step));
        let usable = |step: &u64| Some((source(*step)?, *step)).filter(|(tier, _)| *tier == coarsest || reaches(*tier));
        let steps = STEPS.iter().filter(|step| fits(**step));
        let longest = STEPS.last().copied().unwrap_or(1);
        steps.filter_map(usable).next().unwrap_or((coarsest, longest))
    }
}
