//! [`Wait`]: what a call waits for, and [`TipWatch`], which reports that the tip moved. Input: wakes, from every thread
//! that moves the tip. Output: the end of a wait, at the latest at its time or when the node stops.
//!
//! A call that waits holds no thread: its handler leaves a [`Wait`] with the call, the server polls it, and the answer
//! is written after.

use crate::context::Context;
use crate::error::RpcError;
use lydian_primitives::BlockHash;
use std::time::Duration;
use tokio::sync::watch;

/// Counts the moves of the tip.
#[derive(Debug)]
pub struct TipWatch(watch::Sender<u64>);

impl Default for TipWatch {
    fn default() -> TipWatch {
        TipWatch(watch::Sender::new(0))
    }
}

impl TipWatch {
    /// The tip moved, or waits shall end.
    pub fn wake(&self) {
        self.0.send_modify(|moves| *moves += 1);
    }

    /// Resolves with every move after this call.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// What ends a wait before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// This block is the tip.
    Block(BlockHash),
    /// The tip has this height at least.
    Height(i32),
    /// The tip is not this block.
    OtherThan(BlockHash),
    /// Nothing, not even the node's stop.
    Time,
}

/// A call that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) until: Until,
    /// By the steady clock; `None` for no end.
    pub(crate) end_micros: Option<u64>,
    /// Writes the answer.
    pub(crate) finish: fn(&Context, &mut Vec<u8>) -> Result<(), RpcError>,
}

impl Wait {
    /// Whether the answer may be written.
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
        // An engine that is gone ends the wait too; the answer reports it.
        let Ok(engine) = context.engine() else { return true };
        let tip = engine.tip();
        match self.until {
            Until::Block(hash) => tip.hash == hash,
            Until::Height(height) => i64::from(tip.height.0) >= i64::from(height),
            Until::OtherThan(hash) => tip.hash != hash,
            Until::Time => false,
        }
    }

    /// Resolves when it is over.
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

    /// Sleeps until it is over, for callers that have no server.
    pub(crate) fn block(&self, context: &Context) {
        while !self.is_over(context) {
            std::thread::park_timeout(BLOCKED_STEP);
        }
    }

    fn left(&self, context: &Context) -> Option<Duration> {
        self.end_micros.map(|end| Duration::from_micros(end.saturating_sub(context.host.steady_micros())))
    }
}

/// After so long a wait without end is looked at again.
const WITHOUT_END: Duration = Duration::from_secs(3_600);

const BLOCKED_STEP: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_seen_whenever_it_comes() {
        let watch = TipWatch::default();
        let early = watch.subscribe();
        watch.wake();
        assert!(early.has_changed().unwrap());
        assert!(!watch.subscribe().has_changed().unwrap(), "only moves after the call count");
    }
}
