//! [`Wait`]: the condition that a call waits for.
//!
//! Input: the changes of the tip. Output: the end of a wait, at the latest after its timeout or when the node stops.
//!
//! A waiting call holds no thread: its handler stores a [`Wait`] with the call, the server polls it, and the answer is
//! written afterwards.

use crate::context::Context;
use crate::error::RpcError;
use crate::result::{Answer, Form};
use lydian_primitives::BlockHash;
use std::time::Duration;

/// The condition that ends a wait before its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// This block is the tip.
    Block(BlockHash),
    /// The tip has at least this height.
    Height(i32),
    /// The tip is not this block.
    OtherThan(BlockHash),
    /// There is a new template to mine on: the tip is not the one of the last template, or the mempool has changed when
    /// it is looked at, after [`POLL_FIRST`] and then every [`POLL_NEXT`], as in Core.
    OtherTemplate { tip: BlockHash, updates: u32, since_micros: u64, rules: Rules },
    /// Nothing: the wait takes its whole time, even if the node stops.
    Time,
}

/// When a long poll looks at the mempool for the first time, and how often then.
const POLL_FIRST: Duration = Duration::from_secs(60);
const POLL_NEXT: Duration = Duration::from_secs(10);

/// The rules that a miner's program understands, as far as they matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rules {
    pub(crate) has_segwit: bool,
    pub(crate) has_signet: bool,
}

/// A waiting call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    until: Until,
    /// By the steady clock; `None`: no timeout.
    end_micros: Option<u64>,
    /// Writes the answer.
    finish: fn(&Context, Until, &mut Vec<u8>) -> Result<(), RpcError>,
}

/// An answer that is produced when a wait is over.
pub(crate) trait Finish: Answer + Sized {
    /// `until` is what was waited for.
    fn finish(context: &Context, until: Until) -> Result<Self, RpcError>;
}

/// An answer, or the promise of one when the wait of the call is over.
#[derive(Debug)]
pub(crate) enum Later<T> {
    Now(T),
    Waiting,
}

impl<T: Answer> Answer for Later<T> {
    const FORM: Form = T::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        if let Later::Now(answer) = self {
            answer.write(out);
        }
    }
}

fn finish<T: Finish>(context: &Context, until: Until, out: &mut Vec<u8>) -> Result<(), RpcError> {
    T::finish(context, until)?.write(out);
    Ok(())
}

impl Wait {
    pub(crate) fn new<T: Finish>(until: Until, end_micros: Option<u64>) -> Wait {
        Wait { until, end_micros, finish: finish::<T> }
    }

    /// Writes the answer.
    pub(crate) fn finish(&self, context: &Context, out: &mut Vec<u8>) -> Result<(), RpcError> {
        (self.finish)(context, self.until, out)
    }

    /// Returns whether the answer may be written.
    pub(crate) fn is_over(&self, context: &Context) -> bool {
        if self.left(context).is_some_and(|left| left.is_zero()) {
            return true;
        }
        if self.until == Until::Time {
            return false;
        }
        if context.is_stopping() {
            return true;
        }
        // The wait also ends if the engine is gone; the answer reports that.
        let Ok(engine) = context.engine() else { return true };
        let tip = engine.settled_tip();
        match self.until {
            Until::Block(hash) => tip.hash == hash,
            Until::Height(height) => i64::from(tip.height.0) >= i64::from(height),
            Until::OtherThan(hash) => tip.hash != hash,
            Until::OtherTemplate { tip: hash, updates, since_micros, .. } => {
                let is_time = is_time_to_look(since_micros, context.host.steady_micros());
                tip.hash != hash || (is_time && has_changed(context, updates))
            }
            Until::Time => false,
        }
    }

    /// Resolves when the wait is over.
    pub(crate) async fn over(&self, context: &Context) {
        let mut moves = context.tips.subscribe();
        while !self.is_over(context) {
            let left = self.left(context).unwrap_or(WITHOUT_END);
            tokio::select! {
                _ = moves.changed() => {}
                () = tokio::time::sleep(left) => {}
            }
        }
    }

    /// Blocks until the wait is over, for callers without a server.
    pub(crate) fn block(&self, context: &Context) {
        while !self.is_over(context) {
            std::thread::park_timeout(BLOCKED_STEP);
        }
    }

    /// The time after which the condition is looked at again, if nothing happens before.
    fn left(&self, context: &Context) -> Option<Duration> {
        if let Until::OtherTemplate { since_micros, .. } = self.until {
            return Some(until_next_look(since_micros, context.host.steady_micros()));
        }
        self.end_micros.map(|end| Duration::from_micros(end.saturating_sub(context.host.steady_micros())))
    }
}

/// Whether a long poll that began at `since` looks at the mempool.
fn is_time_to_look(since: u64, now: u64) -> bool {
    since.saturating_add(micros(POLL_FIRST)) <= now
}

/// The time until it looks at the mempool again; never zero.
fn until_next_look(since: u64, now: u64) -> Duration {
    let first = since.saturating_add(micros(POLL_FIRST));
    Duration::from_micros(match first > now {
        true => first - now,
        false => micros(POLL_NEXT) - (now - first) % micros(POLL_NEXT),
    })
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Whether the mempool changed since it was at this number of changes.
fn has_changed(context: &Context, updates: u32) -> bool {
    context.mempool().is_ok_and(|mempool| mempool.snapshot().info().updates != updates)
}

/// A wait without timeout is checked again after this time.
const WITHOUT_END: Duration = Duration::from_secs(3_600);

const BLOCKED_STEP: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_poll_looks_after_a_minute_and_then_every_ten_seconds() {
        let at = |seconds: u64| 7_000_000 + seconds * 1_000_000;
        let looks = [0, 59, 60, 61, 69, 70, 75]
            .map(|now| (is_time_to_look(at(0), at(now)), until_next_look(at(0), at(now)).as_secs()));
        let (no, yes) = (false, true);
        assert_eq!(looks, [(no, 60), (no, 1), (yes, 10), (yes, 9), (yes, 1), (yes, 10), (yes, 5)]);
        assert_eq!(until_next_look(at(0), at(60) - 1), Duration::from_micros(1));
    }
}
