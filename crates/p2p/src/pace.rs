//! How much is processed for one peer: [`MESSAGES_PER_SECOND`], after a burst of [`MESSAGES_BURST`]. A message counts
//! as one, plus one for each [`MESSAGE_UNIT_BYTES`] of it. Each block sent to the peer allows [`MESSAGES_PER_BLOCK`]
//! more, so that a peer that syncs may ask as fast as it takes the blocks. Requested headers count as one message,
//! requested transactions as none; and a transaction that the mempool accepts does not count.
//!
//! A message costs the same processor time whether it is useful or not, and so does one that is dropped because of its
//! checksum: a hundred peers that send pings, addresses or garbage as fast as they can would take all of it. Messages
//! above the rate wait, as if the connection were slow. Core has no such limit; it takes one message of each peer in
//! turn.
//!
//! Input: the time, and what is received and sent. Output: how long the next message must wait. Cost: a few
//! instructions.

use crate::limits::{MESSAGE_UNIT_BYTES, MESSAGES_BURST, MESSAGES_PER_BLOCK, MESSAGES_PER_SECOND};
use std::time::Duration;

/// What `count` messages of `bytes` bytes in all count.
pub fn message_units(count: u64, bytes: u64) -> u64 {
    count.saturating_add(bytes / MESSAGE_UNIT_BYTES)
}

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
    /// Whether a message may be processed; otherwise, how long it must wait. A large one may exceed the burst; the next
    /// ones then wait longer.
    pub fn may_take(&self, now: Duration) -> Result<(), Duration> {
        match (self.used_until.max(now) + INTERVAL).checked_sub(now + AHEAD_MAX) {
            None | Some(Duration::ZERO) => Ok(()),
            Some(wait) => Err(wait),
        }
    }

    /// Whether half of the burst is available.
    pub fn is_rested(&self, now: Duration) -> bool {
        self.used_until <= now + AHEAD_MAX / 2
    }

    /// Called when `count` messages of `bytes` bytes in all are processed or dropped.
    pub fn take(&mut self, count: u64, bytes: u64, now: Duration) {
        let units = u32::try_from(message_units(count, bytes)).unwrap_or(u32::MAX);
        self.used_until = self.used_until.max(now).saturating_add(INTERVAL.saturating_mul(units));
    }

    /// Gives back what messages took that were useful.
    pub fn give_back(&mut self, units: u64) {
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        self.used_until = self.used_until.saturating_sub(INTERVAL.saturating_mul(units));
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
        pace.take(1, 0, now);
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

    /// Regression test: peers that sent a thousand addresses in each message made the sync of an honest peer take 34
    /// times as long.
    ///
    /// limit: MESSAGE_UNIT_BYTES at
    /// limit: MESSAGE_UNIT_BYTES above
    #[test]
    fn a_message_counts_by_its_size() {
        let now = Duration::from_secs(1);
        let left = |bytes| {
            let mut pace = MessagePace::default();
            pace.take(1, bytes, now);
            let mut left = 0;
            while take(&mut pace, now).is_ok() {
                left += 1;
            }
            left
        };
        assert_eq!(left(MESSAGE_UNIT_BYTES - 1), MESSAGES_BURST - 1);
        assert_eq!(left(MESSAGE_UNIT_BYTES), MESSAGES_BURST - 2);
        assert_eq!(left(u64::from(MESSAGES_BURST) * MESSAGE_UNIT_BYTES), 0);
        // The largest message uses up more than the burst, and is waited for.
        let mut pace = MessagePace::default();
        pace.take(1, 2 * u64::from(MESSAGES_BURST) * MESSAGE_UNIT_BYTES, now);
        assert_eq!(pace.may_take(now), Err(AHEAD_MAX + 2 * INTERVAL));
        pace.take(u64::MAX, u64::MAX, now);
        assert!(pace.may_take(now).is_err());
    }
}
