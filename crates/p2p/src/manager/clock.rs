//! Our clock compared with those of the outbound peers. It only warns; no time is adjusted.
//!
//! Input: the offset in each `version` message. Output: log lines, the median.

use super::context::Context;
use crate::time_offsets::{CLOCK_OUT_OF_SYNC, TimeOffsets};
use lydian_engine::LogLevel;

/// The offsets of the last outbound peers.
#[derive(Debug, Default)]
pub(super) struct Clock(TimeOffsets);

impl Clock {
    /// An outbound peer's clock differs from ours by this number of seconds.
    pub(super) fn note(&mut self, context: &mut Context, seconds: i64) {
        self.0.add(seconds);
        let samples = self.0.len();
        context.log_debug(format!("Added time offset {seconds:+}s, total samples {samples}"));
        if self.0.is_out_of_sync() {
            context.log_at(LogLevel::Warning, CLOCK_OUT_OF_SYNC.to_owned());
        }
    }

    /// Returns the median, positive if the peers are ahead.
    pub(super) fn median_s(&self) -> i64 {
        self.0.median_s()
    }

    pub(super) fn is_out_of_sync(&self) -> bool {
        self.0.is_out_of_sync()
    }
}
