//! Decides whether two series of runs differ, with noise taken into account.
//!
//! Input: the values of one figure, old and new, where less is better. Output: a verdict with its reason. With five
//! runs or more on both sides, the rank-sum test decides (its exact permutation distribution, ties included); with
//! fewer, whether the ranges from minimum to maximum are disjoint. A single run has no range; `ONE_RUN_SPREAD` is
//! assumed for it. Cost: the square of the number of runs times their rank sum.

use crate::results::{Outcome, Run, Spread, rounded};
use serde::Serialize;

/// With this number of runs on both sides the rank-sum test can reach `SIGNIFICANCE`.
const RUNS_FOR_TEST: usize = 5;
const SIGNIFICANCE: f64 = 0.05;
/// The assumed deviation of a single run, in time and memory: whole processes on a shared machine.
pub(super) const ONE_RUN_SPREAD: f64 = 0.10;
/// The same for bytes written and sent.
pub(super) const ONE_RUN_SPREAD_BYTES: f64 = 0.02;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster, or less.
    Better,
    /// Slower, or more, or more runs fail.
    Worse,
    NoDifference,
    CannotTell,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    pub change: Option<f64>,
    pub verdict: Verdict,
    pub reason: String,
}

/// The decision on a node without counted runs, old, new, or both.
pub(super) fn without_runs(is_old_empty: bool, is_new_empty: bool) -> Decision {
    let (verdict, reason) = match (is_old_empty, is_new_empty) {
        (false, true) => (Verdict::Worse, "no run counts any more"),
        (true, false) => (Verdict::CannotTell, "no old run counts"),
        _ => (Verdict::CannotTell, "no run counts, old or new"),
    };
    Decision { change: None, verdict, reason: reason.to_owned() }
}

/// Decides whether a node's runs succeed as often as before; `None` if they do. A wrong answer always counts as worse.
pub(super) fn endings((counted, of): (usize, usize), new: &[Run]) -> Option<Decision> {
    let ended = |outcome| new.iter().filter(|run| run.outcome == outcome).count();
    let (wrong, now, all) = (ended(Outcome::WrongAnswer), ended(Outcome::Counted), new.len());
    let reason = if wrong > 0 {
        format!("{wrong} of {all} new runs gave a wrong answer")
    } else if all == 0 {
        "it was not run in this state of the cache".to_owned()
    } else if now * of < counted * all {
        format!("{now} of {all} runs count, before {counted} of {of}")
    } else {
        return None;
    };
    Some(Decision { change: None, verdict: Verdict::Worse, reason })
}

/// The noise to expect in a figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noise {
    /// Differences up to this are meaningless, in the figure's unit.
    pub(super) nothing: f64,
    /// The relative deviation to expect of a single run.
    pub(super) one_run: f64,
}

/// Decides one figure; a change of `threshold` or less counts as no difference.
pub(super) fn decide(old: &[f64], new: &[f64], threshold: f64, Noise { nothing, one_run }: Noise) -> Decision {
    let (Some(before), Some(now)) = (Spread::of(old.to_vec()), Spread::of(new.to_vec())) else {
        let reason = "every run on one side was disturbed: read the CPU time".to_owned();
        return Decision { change: None, verdict: Verdict::CannotTell, reason };
    };
    let difference = now.median - before.median;
    let change = (before.median > 0.0).then(|| rounded(difference / before.median));
    let is_beyond = difference.abs() > nothing && change.is_none_or(|change| change.abs() > threshold);
    let noise = |spread: &Spread, runs: usize| {
        let half = if runs > 1 { (spread.max - spread.min) / 2.0 } else { spread.median * one_run };
        if half <= nothing || spread.median <= 0.0 { 0.0 } else { half / spread.median }
    };
    let noise = noise(&before, old.len()).max(noise(&now, new.len()));
    let (is_apart, how) = apart(old, new, (&before, &now), one_run);
    let (verdict, reason) = match (is_beyond, is_apart) {
        (true, true) => (if difference < 0.0 { Verdict::Better } else { Verdict::Worse }, how),
        (true, false) => (Verdict::CannotTell, how),
        (false, _) if noise <= threshold => (Verdict::NoDifference, "within the threshold".to_owned()),
        (false, _) => {
            let one = if old.len().min(new.len()) == 1 { ", a single run by so much as other runs do" } else { "" };
            (Verdict::CannotTell, format!("the runs may spread by {:.1} %{one}", noise * 100.0))
        }
    };
    Decision { change, verdict, reason }
}

/// Whether the two series differ, and how that was decided.
fn apart(old: &[f64], new: &[f64], (before, now): (&Spread, &Spread), one_run: f64) -> (bool, String) {
    if old.len().min(new.len()) >= RUNS_FOR_TEST {
        let p = rank_sum_p(old, new);
        return (p < SIGNIFICANCE, format!("rank-sum test, p = {p:.3}"));
    }
    let range = |spread: &Spread, runs: usize| {
        let slack = if runs > 1 { 0.0 } else { spread.median * one_run };
        (spread.min - slack, spread.max + slack)
    };
    let ((low_old, high_old), (low_new, high_new)) = (range(before, old.len()), range(now, new.len()));
    let is_apart = high_old < low_new || high_new < low_old;
    let one = match old.len().min(new.len()) {
        1 => format!(", a single run taken to be within {:.0} %", one_run * 100.0),
        _ => String::new(),
    };
    (is_apart, format!("the ranges of the runs {}{one}", if is_apart { "are apart" } else { "overlap" }))
}

/// Two-sided p of the rank sum, exact: the share of all ways to divide the values whose rank sum is at least as far
/// from the middle.
fn rank_sum_p(old: &[f64], new: &[f64]) -> f64 {
    let mut all: Vec<f64> = old.iter().chain(new).copied().collect();
    all.sort_by(f64::total_cmp);
    // Twice the mean rank of equal values: an integer.
    let rank = |value: f64| {
        let below = all.iter().filter(|&&other| other < value).count();
        let up_to = all.iter().filter(|&&other| other <= value).count();
        below + up_to + 1
    };
    let ranks: Vec<usize> = all.iter().map(|&value| rank(value)).collect();
    let observed: usize = old.iter().map(|&value| rank(value)).sum();
    let total: usize = ranks.iter().sum();
    // ways[chosen][sum]: the number of choices of `chosen` values with this sum of ranks.
    let mut ways = vec![vec![0.0f64; total + 1]; old.len() + 1];
    if let Some(none) = ways.first_mut().and_then(|sums| sums.first_mut()) {
        *none = 1.0;
    }
    for &rank in &ranks {
        for chosen in (1..ways.len()).rev() {
            let (fewer, more) = ways.split_at_mut(chosen);
            let (Some(from), Some(to)) = (fewer.last(), more.first_mut()) else { continue };
            for (sum, slot) in to.iter_mut().enumerate().skip(rank) {
                *slot += from.get(sum - rank).copied().unwrap_or(0.0);
            }
        }
    }
    let Some(sums) = ways.last() else { return 1.0 };
    // The middle is old.len() / all.len() of the total; distances are compared as integers.
    let distance = |sum: usize| (sum * all.len()).abs_diff(total * old.len());
    let far: f64 =
        sums.iter().enumerate().filter(|(sum, _)| distance(*sum) >= distance(observed)).map(|(_, n)| n).sum();
    far / sums.iter().sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_sum_test_has_the_p_of_the_tables() {
        // Five against five, completely apart: 2 of C(10, 5) = 252.
        let low = [1.0, 2.0, 3.0, 4.0, 5.0];
        let high = [6.0, 7.0, 8.0, 9.0, 10.0];
        assert!((rank_sum_p(&low, &high) - 2.0 / 252.0).abs() < 1e-12);
        assert!((rank_sum_p(&high, &low) - 2.0 / 252.0).abs() < 1e-12);
        assert_eq!(rank_sum_p(&low, &low), 1.0);
        // Ranks 1 2 3 4 6 against 5 7 8 9 10: sums 15 and 16 below, twice: (1 + 1) x 2 of 252.
        assert!((rank_sum_p(&[1.0, 2.0, 3.0, 4.0, 6.0], &[5.0, 7.0, 8.0, 9.0, 10.0]) - 4.0 / 252.0).abs() < 1e-12);
        // All equal: nothing is far from the middle.
        assert_eq!(rank_sum_p(&[2.0; 5], &[2.0; 6]), 1.0);
    }

    const TIME: Noise = Noise { nothing: 0.02, one_run: ONE_RUN_SPREAD };
    const BYTES: Noise = Noise { nothing: 1e6, one_run: ONE_RUN_SPREAD_BYTES };

    fn verdict(old: &[f64], new: &[f64]) -> Verdict {
        decide(old, new, 0.05, TIME).verdict
    }

    #[test]
    fn five_runs_are_compared_by_ranks() {
        let old = [10.0, 10.1, 10.2, 10.3, 10.4];
        assert_eq!(verdict(&old, &[11.0, 11.1, 11.2, 11.3, 11.4]), Verdict::Worse);
        assert_eq!(verdict(&old, &[9.0, 9.1, 9.2, 9.3, 9.4]), Verdict::Better);
        assert_eq!(verdict(&old, &[10.1, 10.2, 10.2, 10.3, 10.5]), Verdict::NoDifference);
        // The median is 10 % higher, but the runs overlap.
        assert_eq!(verdict(&[8.0, 9.0, 10.0, 13.0, 14.0], &[8.5, 9.5, 11.0, 13.5, 14.5]), Verdict::CannotTell);
        // One slow run among five does not hide the difference in medians and ranks.
        assert_eq!(verdict(&old, &[11.0, 11.1, 11.2, 11.3, 30.0]), Verdict::Worse);
        // Separated by ranks, but by less than the threshold.
        assert_eq!(verdict(&old, &[10.45, 10.46, 10.47, 10.48, 10.49]), Verdict::NoDifference);
    }

    #[test]
    fn three_runs_are_compared_by_their_ranges() {
        assert_eq!(verdict(&[10.0, 10.1, 10.2], &[11.0, 11.1, 11.2]), Verdict::Worse);
        assert_eq!(verdict(&[10.0, 10.1, 11.0], &[10.9, 11.1, 11.2]), Verdict::CannotTell);
        assert_eq!(verdict(&[10.0, 10.1, 10.2], &[10.0, 10.2, 10.3]), Verdict::NoDifference);
        assert_eq!(verdict(&[9.0, 10.1, 12.0], &[10.0, 10.2, 10.3]), Verdict::CannotTell);
    }

    #[test]
    fn one_run_each_shows_large_differences_only() {
        assert_eq!(verdict(&[10.0], &[20.0]), Verdict::Worse);
        assert_eq!(verdict(&[20.0], &[10.0]), Verdict::Better);
        assert_eq!(verdict(&[10.0], &[11.5]), Verdict::CannotTell);
        assert_eq!(verdict(&[10.0], &[10.1]), Verdict::CannotTell);
        assert!(decide(&[10.0], &[20.0], 0.05, TIME).reason.contains("a single run taken to be within 10 %"));
    }

    #[test]
    fn what_is_smaller_than_the_clock_is_nothing() {
        assert_eq!(verdict(&[0.03, 0.04, 0.03], &[0.04, 0.045, 0.045]), Verdict::NoDifference);
        assert_eq!(verdict(&[0.03, 0.04, 0.03], &[0.09, 0.08, 0.09]), Verdict::Worse);
        assert_eq!(decide(&[0.0, 0.0], &[5e5, 5e5], 0.05, BYTES).verdict, Verdict::NoDifference);
        let from_nothing = decide(&[0.0, 0.0], &[5e6, 5e6], 0.05, BYTES);
        assert_eq!(decide(&[3e8], &[3.01e8], 0.05, BYTES).verdict, Verdict::NoDifference);
        assert_eq!(decide(&[3e8], &[3.3e8], 0.05, BYTES).verdict, Verdict::Worse);
        assert_eq!((from_nothing.verdict, from_nothing.change), (Verdict::Worse, None));
    }

    #[test]
    fn a_side_without_undisturbed_runs_cannot_be_compared() {
        assert_eq!(verdict(&[], &[1.0]), Verdict::CannotTell);
        assert_eq!(without_runs(false, true).verdict, Verdict::Worse);
        assert_eq!(without_runs(true, false).verdict, Verdict::CannotTell);
    }
}
