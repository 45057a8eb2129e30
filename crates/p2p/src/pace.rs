//! The number of messages that are processed for one peer: [`MESSAGES_PER_SECOND`], after a burst of
//! [`MESSAGES_BURST`]. Each block sent to the peer allows [`MESSAGES_PER_BLOCK`] more, so that a peer that syncs may
//! ask as fast as it takes the blocks.
//!
//! A message costs the same processor time whether it is useful or not: a hundred peers that send pings as fast as they
//! can would take all of it. Messages above the rate wait, as if the connection were slow. Core has no such limit; it
//! takes one message of each peer in turn.
//!
//! Input: the time, and what is sent. Output: how long the next message must wait. Cost: a few instructions.

use crate::limits::{MESSAGES_BURST, MESSAGES_PER_BLOCK, MESSAGES_PER_SECOND};
use std::time::Duration;

/// The time that one message takes at the allowed rate.
const INTERVAL: Duration = Duration::from_micros(1_000_000 / MESSAGES_PER_SECOND as u64);

/// How far the messages of a peer may be ahead of the rate.
const AHEAD_MAX: Duration = INTERVAL.saturating_mul(MESSAGES_BURST);

/// The pace of one peer.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessagePace {
    /// The time up to which messages are used up at the allowed rate.
    used_until: Duration,
}

impl MessagePace {
    /// Whether a message may be processed; otherwise, how long it must wait.
    pub fn may_take(&self, now: Duration) -> Result<(), Duration> {
        match (self.used_until.max(now) + INTERVAL).checked_sub(now + AHEAD_MAX) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(wait),
        }
    }

    /// Called when a message is processed.
    pub fn take(&mut self, now: Duration) {
        self.used_until = self.used_until.max(now) + INTERVAL;
    }

    /// Called when a block has been sent to the peer.
    pub fn sent_block(&mut self) {
        self.used_until = self.used_until.saturating_sub(INTERVAL * MESSAGES_PER_BLOCK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(pace: &mut MessagePace, now: Duration) -> Result<(), Duration> {
        pace.may_take(now)?;
        pace.take(now);
        Ok(())
    }

    /// Regression test: a hundred peers that sent pings as fast as possible made the sync of an honest peer take three
    /// times as long.
    ///
    /// limit: MESSAGES_BURST at
    /// limit: MESSAGES_BURST above
    /// limit: MESSAGES_PER_SECOND at
    /// limit: MESSAGES_PER_SECOND above
    #[test]
    fn messages_above_the_rate_wait() {
        let start = Duration::from_secs(100);
        let mut pace = MessagePace::default();
        (0..MESSAGES_BURST).for_each(|_| take(&mut pace, start).unwrap());
        assert_eq!(take(&mut pace, start), Err(INTERVAL));
        assert!(take(&mut pace, start + INTERVAL).is_ok() && take(&mut pace, start + INTERVAL).is_err());
        let second = start + INTERVAL + Duration::from_secs(1);
        (0..MESSAGES_PER_SECOND).for_each(|_| take(&mut pace, second).unwrap());
        assert!(take(&mut pace, second).is_err());
        // The burst is available again after a silence, and not twice.
        let late = second + 10 * AHEAD_MAX;
        (0..MESSAGES_BURST).for_each(|_| take(&mut pace, late).unwrap());
        assert!(take(&mut pace, late).is_err());
    }

    /// limit: MESSAGES_PER_BLOCK at
    /// limit: MESSAGES_PER_BLOCK above
    #[test]
    fn a_peer_that_takes_blocks_may_ask_for_more() {
        let mut pace = MessagePace::default();
        let now = Duration::from_secs(1);
        for _ in 0..3 * MESSAGES_BURST {
            (0..MESSAGES_PER_BLOCK).for_each(|_| take(&mut pace, now).unwrap());
            pace.sent_block();
        }
        while take(&mut pace, now).is_ok() {}
        pace.sent_block();
        (0..MESSAGES_PER_BLOCK).for_each(|_| take(&mut pace, now).unwrap());
        assert!(take(&mut pace, now).is_err());
    }
}
