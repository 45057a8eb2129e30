//! The progress of a comparison: which run is active, how far the node is, and how long it may still take.
//!
//! Input: the planned runs, the finished runs, and during a run its height four times a second. Output: moments passed
//! to a [`Progress`] that displays them. The height is the one the keeper has received or, without one, the last one in
//! the node's log; only new bytes of the log are read. Cost: none if nothing displays progress. Must never: touch the
//! measured process, or delay its end.

use super::log::Tail;
use super::system;
use lydian_report::results::{Cache, Run};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Time between two moments.
const PERIOD: Duration = Duration::from_millis(250);
/// Below this share, no remaining time is derived from the share.
const SHARE_MIN: f64 = 0.02;

/// Displays the progress of a comparison.
pub trait Progress: Sync {
    /// A run begins.
    fn begins(&self, at: &Moment<'_>);

    /// Whether progress is displayed while a run is active.
    fn is_watched(&self) -> bool;

    /// Called four times a second during a run, if [`Progress::is_watched`].
    fn goes(&self, at: &Moment<'_>);

    /// The run has ended; its result is reported elsewhere.
    fn ends(&self);
}

/// One planned run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub node: String,
    pub cache: Cache,
    pub number: u32,
    /// The number of runs of this node in this cache state.
    pub of: u32,
    /// The height of the chain that the node mined for itself; `None` if it validates that of the comparison.
    pub own_height: Option<u32>,
}

/// The progress of a comparison at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment<'a> {
    pub step: &'a Step,
    /// 1-based position among the runs that were still to be made when the comparison began.
    pub position: usize,
    pub steps: usize,
    pub elapsed_seconds: f64,
    pub height: Option<u32>,
    pub height_end: u32,
    /// The share of the chain's block bytes up to the height.
    pub share: Option<f64>,
    /// Remaining time of this run.
    pub left_seconds: Option<f64>,
    /// Remaining time of the whole comparison.
    pub all_left_seconds: Option<f64>,
}

/// The runs to be made, and how long the finished ones took.
#[derive(Debug, Default)]
pub(super) struct Plan {
    steps: Vec<Step>,
    ended: usize,
    /// The node and wall seconds of each finished run.
    times: Vec<(String, f64)>,
    height_end: u32,
    /// [`lydian_chains::chain_files::ChainFiles::bytes_at`].
    bytes_at: Vec<u64>,
}

impl Plan {
    pub(super) fn new(steps: Vec<Step>, kept: &[Run], height_end: u32, bytes_at: &[u64]) -> Plan {
        let times = kept.iter().map(|run| (run.node.clone(), run.wall_seconds)).collect();
        Plan { steps, ended: 0, times, height_end, bytes_at: bytes_at.to_vec() }
    }

    pub(super) fn ended(&mut self, run: &Run) {
        self.ended += 1;
        self.times.push((run.node.clone(), run.wall_seconds));
    }

    /// Calls `run`, with a thread beside it that reports progress if anything displays it.
    pub(super) fn watch<T>(&self, progress: Option<&dyn Progress>, live: &Live, run: impl FnOnce() -> T) -> T {
        let Some((progress, begin)) = progress.zip(self.moment(0.0, None)) else { return run() };
        progress.begins(&begin);
        let given = if progress.is_watched() { self.beside(progress, live, run) } else { run() };
        progress.ends();
        given
    }

    fn beside<T>(&self, progress: &dyn Progress, live: &Live, run: impl FnOnce() -> T) -> T {
        let has_ended = AtomicBool::new(false);
        let start = system::now();
        thread::scope(|scope| {
            let reporter = scope.spawn(|| {
                let mut tail = Tail::new(&live.log);
                while !has_ended.load(Ordering::Relaxed) {
                    let height = live.height().or_else(|| tail.height());
                    if let Some(moment) = self.moment(start.elapsed().as_secs_f64(), height) {
                        progress.goes(&moment);
                    }
                    thread::park_timeout(PERIOD);
                }
            });
            let given = run();
            has_ended.store(true, Ordering::Relaxed);
            reporter.thread().unpark();
            given
        })
    }

    fn moment(&self, elapsed_seconds: f64, height: Option<u32>) -> Option<Moment<'_>> {
        let step = self.steps.get(self.ended)?;
        let share = height.map(|height| self.share(step, height));
        let left_seconds = self.left(&step.node, elapsed_seconds, share);
        let whole = left_seconds.map(|left| left + elapsed_seconds);
        let later =
            self.steps.iter().skip(self.ended + 1).map(|step| self.mean(&step.node).or(self.mean_of_all()).or(whole));
        let all_left_seconds = left_seconds.and_then(|left| Some(left + later.sum::<Option<f64>>()?));
        Some(Moment {
            step,
            position: self.ended + 1,
            steps: self.steps.len(),
            elapsed_seconds,
            height,
            height_end: step.own_height.unwrap_or(self.height_end),
            share,
            left_seconds,
            all_left_seconds,
        })
    }

    #[allow(clippy::cast_precision_loss, reason = "bytes of a chain lie below 2^52")]
    fn share(&self, step: &Step, height: u32) -> f64 {
        if let Some(end) = step.own_height {
            // The blocks that a node mined alone are all alike.
            return share_of(height, end);
        }
        let at = usize::try_from(height).ok().and_then(|height| self.bytes_at.get(height));
        match at.zip(self.bytes_at.last()) {
            Some((&bytes, &whole)) => bytes as f64 / whole.max(1) as f64,
            None => share_of(height, self.height_end),
        }
    }

    /// Based on the node's earlier runs as long as this one is not slower, otherwise on the share that it has
    /// completed.
    fn left(&self, node: &str, elapsed_seconds: f64, share: Option<f64>) -> Option<f64> {
        let by_runs = self.mean(node).map(|mean| mean - elapsed_seconds).filter(|left| *left > 0.0);
        let by_share = share.filter(|share| *share >= SHARE_MIN).map(|share| elapsed_seconds * (1.0 / share - 1.0));
        by_runs.or(by_share)
    }

    fn mean(&self, node: &str) -> Option<f64> {
        mean(self.times.iter().filter(|(name, _)| name == node).map(|(_, seconds)| *seconds))
    }

    fn mean_of_all(&self) -> Option<f64> {
        mean(self.times.iter().map(|(_, seconds)| *seconds))
    }
}

fn share_of(height: u32, end: u32) -> f64 {
    (f64::from(height) / f64::from(end.max(1))).min(1.0)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// Where the height of the active run comes from.
#[derive(Debug)]
pub(super) struct Live {
    /// The height that the keeper received, plus one; 0 if it has received none.
    heard: AtomicU64,
    log: PathBuf,
}

impl Live {
    pub(super) fn new(log: PathBuf) -> Live {
        Live { heard: AtomicU64::new(0), log }
    }

    pub(super) fn hear(&self, height: u32) {
        self.heard.store(u64::from(height) + 1, Ordering::Relaxed);
    }

    fn height(&self) -> Option<u32> {
        self.heard.load(Ordering::Relaxed).checked_sub(1).and_then(|height| u32::try_from(height).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(node: &str, number: u32) -> Step {
        Step { node: node.into(), cache: Cache::Warm, number, of: 2, own_height: None }
    }

    fn took(node: &str, wall_seconds: f64) -> Run {
        Run { wall_seconds, ..Run::not_started(node, 1, Cache::Warm, String::new()) }
    }

    fn left(plan: &Plan, elapsed: f64, height: Option<u32>) -> (Option<f64>, Option<f64>) {
        let moment = plan.moment(elapsed, height).unwrap();
        (moment.left_seconds, moment.all_left_seconds)
    }

    #[test]
    fn time_left_comes_from_earlier_runs_or_from_the_height() {
        let steps = vec![step("a", 1), step("b", 1), step("a", 2), step("b", 2)];
        let mut plan = Plan::new(steps, &[], 100, &[]);
        assert_eq!(left(&plan, 1.0, None), (None, None), "nothing is known yet");
        assert_eq!(left(&plan, 1.0, Some(1)), (None, None), "too early to tell");
        // A quarter took 5 s: 15 s remain, and then three more runs of 20 s.
        assert_eq!(left(&plan, 5.0, Some(25)), (Some(15.0), Some(75.0)));
        plan.ended(&took("a", 30.0));
        // For b only its height is known; after it, a takes 30 s again, and b as long as the mean of all runs.
        assert_eq!(left(&plan, 5.0, Some(50)), (Some(5.0), Some(5.0 + 30.0 + 30.0)));
        plan.ended(&took("b", 10.0));
        assert_eq!(left(&plan, 12.0, Some(1)), (Some(18.0), Some(28.0)));
        // Slower than before: the estimate uses the height.
        assert_eq!(left(&plan, 40.0, Some(80)), (Some(10.0), Some(20.0)));
        assert_eq!(left(&plan, 40.0, None), (None, None));
        let moment = plan.moment(0.0, None).unwrap();
        assert_eq!((moment.position, moment.steps, moment.step.number), (3, 4, 2));
        plan.ended(&took("a", 30.0));
        plan.ended(&took("b", 30.0));
        assert_eq!(plan.moment(0.0, None), None);
    }

    #[test]
    fn runs_that_were_kept_count_too() {
        let plan = Plan::new(vec![step("a", 2)], &[took("a", 8.0)], 10, &[]);
        assert_eq!(left(&plan, 2.0, None), (Some(6.0), Some(6.0)));
        assert_eq!(left(&plan, 2.0, Some(10)), (Some(6.0), Some(6.0)));
    }

    /// A chain whose last block has most of the bytes.
    #[test]
    fn a_share_is_one_of_bytes() {
        let plan = Plan::new(vec![step("a", 1)], &[], 3, &[100, 200, 300, 1_000]);
        assert_eq!(left(&plan, 6.0, Some(2)).0, Some(14.0));
        assert_eq!(plan.moment(6.0, Some(2)).unwrap().share, Some(0.3));
        assert_eq!(left(&plan, 6.0, Some(3)).0, Some(0.0));
        assert_eq!(plan.moment(6.0, Some(9)).unwrap().share, Some(1.0), "higher than the chain");
        let own = Plan::new(vec![Step { own_height: Some(8), ..step("a", 1) }], &[], 3, &[100, 200, 300, 1_000]);
        let moment = own.moment(6.0, Some(2)).unwrap();
        assert_eq!((moment.share, moment.height_end), (Some(0.25), 8), "a chain of its own");
    }
}
