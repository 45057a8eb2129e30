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
                let is_looked_at = since_micros.saturating_add(micros(POLL_FIRST)) <= context.host.steady_micros();
                tip.hash != hash || (is_looked_at && has_changed(context, updates))
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
            let (first, now) = (since_micros.saturating_add(micros(POLL_FIRST)), context.host.steady_micros());
            return Some(Duration::from_micros(match first > now {
                true => first - now,
                false => micros(POLL_NEXT) - (now - first) % micros(POLL_NEXT),
            }));
        }
        self.end_micros.map(|end| Duration::from_micros(end.saturating_sub(context.host.steady_micros())))
    }
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
