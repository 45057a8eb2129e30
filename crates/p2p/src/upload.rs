//! The upload limit per day: `-maxuploadtarget`.
//!
//! Input: the number of bytes sent over all connections, the time. Output: whether old blocks are still served.
//!
//! Core's `OutboundTargetReached`. A day starts with the first byte after the end of the previous day. Blocks of the
//! last week and the tip are always served: enough of the target is reserved to send each block of the rest of the day
//! once. Cost: a few additions. It reads no clock.

use crate::time::UnixTime;

/// Core's `MAX_UPLOAD_TIMEFRAME`, in seconds.
pub const TIMEFRAME_S: u64 = 24 * 60 * 60;

/// The expected time between blocks.
const BLOCK_INTERVAL_S: u64 = 10 * 60;

/// Core's `MAX_BLOCK_SERIALIZED_SIZE`.
const BLOCK_BYTES_MAX: u64 = 4_000_000;

/// The state of the current day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadLimit {
    /// In bytes; 0 means no limit.
    target: u64,
    cycle_start: UnixTime,
    sent_in_cycle: u64,
    /// The bytes that are already counted.
    total: u64,
}

/// The values that `getnettotals` reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UploadInfo {
    pub timeframe_s: u64,
    /// In bytes; 0 means no limit.
    pub target: u64,
    pub is_reached: bool,
    pub serves_historical_blocks: bool,
    pub bytes_left: u64,
    pub time_left_s: u64,
}

impl UploadLimit {
    pub fn new(target: u64) -> UploadLimit {
        UploadLimit { target, ..UploadLimit::default() }
    }

    /// Records the total number of bytes sent since the node started: Core's `RecordBytesSent`.
    pub fn note(&mut self, total: u64, now: UnixTime) {
        let new = total.saturating_sub(self.total);
        if new == 0 {
            return;
        }
        self.total = total;
        if self.cycle_start.plus(TIMEFRAME_S) < now {
            (self.cycle_start, self.sent_in_cycle) = (now, 0);
        }
        self.sent_in_cycle = self.sent_in_cycle.saturating_add(new);
    }

    /// Returns whether blocks older than a week are refused.
    pub fn is_reached_for_historical_blocks(&self, now: UnixTime) -> bool {
        let kept_back = self.time_left(now) / BLOCK_INTERVAL_S * BLOCK_BYTES_MAX;
        self.target != 0 && (kept_back >= self.target || self.sent_in_cycle >= self.target - kept_back)
    }

    pub fn is_reached(&self) -> bool {
        self.target != 0 && self.sent_in_cycle >= self.target
    }

    pub fn info(&self, now: UnixTime) -> UploadInfo {
        UploadInfo {
            timeframe_s: TIMEFRAME_S,
            target: self.target,
            is_reached: self.is_reached(),
            serves_historical_blocks: !self.is_reached_for_historical_blocks(now),
            bytes_left: self.target.saturating_sub(self.sent_in_cycle),
            time_left_s: self.time_left(now),
        }
    }

    fn time_left(&self, now: UnixTime) -> u64 {
        match (self.target, self.cycle_start) {
            (0, _) => 0,
            (_, UnixTime::NEVER) => TIMEFRAME_S,
            (_, start) => start.plus(TIMEFRAME_S).0.saturating_sub(now.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: UnixTime = UnixTime(1_700_000_000);

    #[test]
    fn without_a_target_nothing_is_refused() {
        let mut limit = UploadLimit::new(0);
        limit.note(u64::MAX, START);
        let expected = UploadInfo { timeframe_s: 86_400, serves_historical_blocks: true, ..UploadInfo::default() };
        assert_eq!(limit.info(START), expected);
    }

    /// The numbers of Core's feature_maxuploadtarget.py: 800 MB, of which 144 blocks of 4 MB are reserved.
    #[test]
    fn a_day_of_blocks_is_kept_back() {
        let mut limit = UploadLimit::new(800 << 20);
        let room = (800 << 20) - 144 * BLOCK_BYTES_MAX;
        assert_eq!((limit.info(START).time_left_s, limit.is_reached_for_historical_blocks(START)), (86_400, false));
        limit.note(room - 1, START);
        assert!(!limit.is_reached_for_historical_blocks(START));
        limit.note(room, START);
        assert!(limit.is_reached_for_historical_blocks(START) && !limit.is_reached());
        let later = START.plus(12 * 60 * 60);
        assert!(!limit.is_reached_for_historical_blocks(later), "half the day, half the blocks");
        limit.note(800 << 20, later);
        let expected = UploadInfo {
            timeframe_s: 86_400,
            target: 800 << 20,
            is_reached: true,
            serves_historical_blocks: false,
            bytes_left: 0,
            time_left_s: 43_200,
        };
        assert_eq!(limit.info(later), expected);
        let next_day = START.plus(TIMEFRAME_S + 1);
        assert_eq!((limit.info(next_day).time_left_s, limit.is_reached()), (0, true), "until something is sent");
        limit.note((800 << 20) + 7, next_day);
        assert_eq!((limit.info(next_day).bytes_left, limit.is_reached()), ((800 << 20) - 7, false));
        assert!(
            UploadLimit::new(144 * BLOCK_BYTES_MAX).is_reached_for_historical_blocks(START),
            "too little for anything"
        );
    }
}
