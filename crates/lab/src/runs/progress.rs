//! Where a comparison stands, for people who wait: which run is on, how high the node is, how long it may still take.
//!
//! Input: the runs planned, those that have ended, and while one is on its height four times a second. Output: moments handed to whoever draws them.
//! The height is the one that the keeper has heard, or the last one in the node's log, of which only what is new is read. Cost: with nobody
//! watching none. Must never: touch the measured process, or hold up its end.

use super::log::Tail;
use super::results::{Cache, Run};
use super::system;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Between two moments.
const PERIOD: Duration = Duration::from_millis(250);
/// Below this share nothing is concluded from it.
const SHARE_MIN: f64 = 0.02;

/// Who shows moments.
pub trait Progress: Sync {
    /// A run begins.
    fn begins(&self, at: &Moment<'_>);

    /// Whether anybody looks while a run is on.
    fn is_watched(&self) -> bool;

    /// Where somebody does: four times a second.
    fn goes(&self, at: &Moment<'_>);

    /// The run has ended; what is told of it comes elsewhere.
    fn ends(&self);
}

/// One run of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub node: String,
    pub cache: Cache,
    pub number: u32,
    /// Runs of this node in this state of the cache.
    pub of: u32,
}

/// Where a comparison stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment<'a> {
    pub step: &'a Step,
    /// The how many-th of the runs still to be made when the comparison began.
    pub position: usize,
    pub steps: usize,
    pub elapsed_seconds: f64,
    pub height: Option<u32>,
    pub height_end: u32,
    /// Of the bytes of the chain's blocks, those up to the height.
    pub share: Option<f64>,
    /// Of this run.
    pub left_seconds: Option<f64>,
    /// Of the whole comparison.
    pub all_left_seconds: Option<f64>,
}

/// The runs to be made and how long the ended ones took.
#[derive(Debug, Default)]
pub(super) struct Plan {
    steps: Vec<Step>,
    ended: usize,
    /// Of each node the wall seconds of its runs.
    times: Vec<(String, f64)>,
    height_end: u32,
    /// [`super::chain_files::ChainFiles::bytes_at`].
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

    /// Calls `run`, with a thread beside it that tells where it stands, if anybody wants to know.
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
            let teller = scope.spawn(|| {
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
            teller.thread().unpark();
            given
        })
    }

    fn moment(&self, elapsed_seconds: f64, height: Option<u32>) -> Option<Moment<'_>> {
        let step = self.steps.get(self.ended)?;
        let share = height.map(|height| self.share(height));
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
            height_end: self.height_end,
            share,
            left_seconds,
            all_left_seconds,
        })
    }

    #[allow(clippy::cast_precision_loss, reason = "bytes of a chain lie below 2^52")]
    fn share(&self, height: u32) -> f64 {
        let at = usize::try_from(height).ok().and_then(|height| self.bytes_at.get(height));
        match at.zip(self.bytes_at.last()) {
            Some((&bytes, &whole)) => bytes as f64 / whole.max(1) as f64,
            None => (f64::from(height) / f64::from(self.height_end.max(1))).min(1.0),
        }
    }

    /// By the node's earlier runs as long as this one is not slower; else by the share it has done.
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

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// What the run that is on tells of its height.
#[derive(Debug)]
pub(super) struct Live {
    /// What the keeper heard, plus one; 0 when nothing.
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
        Step { node: node.into(), cache: Cache::Warm, number, of: 2 }
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
        assert_eq!(left(&plan, 1.0, None), (None, None), "nobody knows");
        assert_eq!(left(&plan, 1.0, Some(1)), (None, None), "too early to tell");
        // A quarter in 5 s: 15 s to go, and three more of 20 s.
        assert_eq!(left(&plan, 5.0, Some(25)), (Some(15.0), Some(75.0)));
        plan.ended(&took("a", 30.0));
        // Nothing of b is known but its height; then a again takes 30 s, and b as long as the mean of all.
        assert_eq!(left(&plan, 5.0, Some(50)), (Some(5.0), Some(5.0 + 30.0 + 30.0)));
        plan.ended(&took("b", 10.0));
        assert_eq!(left(&plan, 12.0, Some(1)), (Some(18.0), Some(28.0)));
        // Slower than before: by its height.
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

    /// A chain whose last block is most of it.
    #[test]
    fn a_share_is_one_of_bytes() {
        let plan = Plan::new(vec![step("a", 1)], &[], 3, &[100, 200, 300, 1_000]);
        assert_eq!(left(&plan, 6.0, Some(2)).0, Some(14.0));
        assert_eq!(plan.moment(6.0, Some(2)).unwrap().share, Some(0.3));
        assert_eq!(left(&plan, 6.0, Some(3)).0, Some(0.0));
        assert_eq!(plan.moment(6.0, Some(9)).unwrap().share, Some(1.0), "higher than the chain");
    }
}
