//! [`Ending`]: the end of all sessions of a front end, at a steady pace.
//!
//! Input: the time. Output: sessions that are asked to end, each server's in its own order.

use lydian_serve::{DRAIN_TIME, Drain};
use std::time::Duration;

/// The sessions of all servers, while they end.
#[derive(Debug)]
pub(super) struct Ending {
    drains: Vec<Drain>,
    began: Duration,
}

impl Ending {
    pub(super) fn new(drains: Vec<Drain>, now: Duration) -> Ending {
        Ending { drains, began: now }
    }

    /// Asks those to end that are due, all from [`DRAIN_TIME`] on. Returns whether the rest needs no more steps: none
    /// is open, or all were asked and the servers wait for their answers.
    pub(super) fn step(&mut self, now: Duration) -> bool {
        let elapsed = now.saturating_sub(self.began);
        let open: usize = self.drains.iter_mut().map(|drain| drain.step(elapsed)).sum();
        open == 0 || elapsed >= DRAIN_TIME
    }

    /// The number of sessions that are open.
    pub(super) fn open(&mut self) -> usize {
        self.drains.iter_mut().map(|drain| drain.step(Duration::ZERO)).sum()
    }
}
