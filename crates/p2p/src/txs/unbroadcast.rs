//! When the transactions that no peer has requested yet are announced again.
//!
//! Bitcoin Core's `ReattemptInitialBroadcast`; the mempool keeps the set of these transactions. Input: the time.
//! Output: every 10 to 15 minutes, that it is time. Cost: none to speak of.

use crate::draw;
use rand_chacha::ChaCha20Rng;
use std::time::Duration;

/// The minimum time between two attempts.
const INTERVAL_MIN: Duration = Duration::from_secs(10 * 60);
/// A random time below this is added, in milliseconds: the attempts must not identify the node.
const INTERVAL_SPREAD_MS: usize = 5 * 60 * 1000;

/// The time of the next attempt. Times are of [`crate::Moment::elapsed`], as Core's scheduler.
#[derive(Debug, Default)]
pub struct Unbroadcast {
    /// `None` until the first call.
    next: Option<Duration>,
}

impl Unbroadcast {
    /// Returns whether the transactions are to be announced again now.
    pub fn is_due(&mut self, now: Duration, random: &mut ChaCha20Rng) -> bool {
        let is_due = self.next.is_some_and(|next| now >= next);
        if is_due || self.next.is_none() {
            let spread = Duration::from_millis(draw::below(random, INTERVAL_SPREAD_MS) as u64);
            self.next = Some(now + INTERVAL_MIN + spread);
        }
        is_due
    }

    /// Makes the next attempt due earlier by `delta`: `mockscheduler`.
    pub fn mock_forward(&mut self, delta: Duration) {
        self.next = self.next.map(|next| next.saturating_sub(delta));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    #[test]
    fn attempts_are_ten_to_fifteen_minutes_apart() {
        let random = &mut ChaCha20Rng::seed_from_u64(1);
        let mut set = Unbroadcast::default();
        let mut attempts = vec![0];
        for second in 0..100_000 {
            if set.is_due(Duration::from_secs(second), random) {
                attempts.push(second);
            }
        }
        let pauses: Vec<_> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(pauses.iter().all(|pause| (600..=901).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().max().unwrap() - pauses.iter().min().unwrap() > 60, "{pauses:?}");
        let now = Duration::from_secs(100_000);
        set.mock_forward(Duration::from_secs(900));
        assert!(set.is_due(now, random) && !set.is_due(now, random));
    }
}
