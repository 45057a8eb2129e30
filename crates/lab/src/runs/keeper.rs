//! Runs beside a node that does not exit by itself: queries its tip and stops the node there.
//!
//! Input: an adapter, a job, the run. Output: the result of the run, with the heights and the answer that the node
//! reported meanwhile. Cost: one query every 50 ms for nodes that implement [`Adapter::tip`], none for others. Must
//! never: outlive the run.

use super::adapter::{Adapter, Job};
use super::progress::Live;
use super::system;
use lydian_report::results::Answer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const PERIOD: Duration = Duration::from_millis(50);

/// What the node reported.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    /// Whether the node is queried while it runs.
    pub(super) is_asked: bool,
    /// Heights in the order reported, each with the seconds since 1970 at which it was first seen.
    pub(super) heights: Vec<(f64, u32)>,
    /// The answer at the height of the tip, with the seconds since 1970.
    pub(super) end: Option<(f64, Answer)>,
}

pub(super) fn keep<T>(adapter: &dyn Adapter, job: &Job, live: &Live, run: impl FnOnce() -> T) -> (T, Kept) {
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let keeper = scope.spawn(|| watch(adapter, job, live, &has_ended));
        let given = run();
        has_ended.store(true, Ordering::Relaxed);
        (given, keeper.join().unwrap_or_default())
    })
}

fn watch(adapter: &dyn Adapter, job: &Job, live: &Live, has_ended: &AtomicBool) -> Kept {
    let mut kept = Kept::default();
    while let Some(tip) = adapter.tip(job) {
        kept.is_asked = true;
        if has_ended.load(Ordering::Relaxed) {
            break;
        }
        if let Ok(answer) = tip
            && kept.end.is_none()
        {
            let now = system::unix_seconds();
            live.hear(answer.height);
            if kept.heights.last().is_none_or(|(_, height)| *height != answer.height) {
                kept.heights.push((now, answer.height));
            }
            kept.end = (answer.height >= job.height).then_some((now, answer));
        }
        if kept.end.is_some() && adapter.stop(job).is_ok() {
            break;
        }
        thread::sleep(PERIOD);
    }
    kept
}
