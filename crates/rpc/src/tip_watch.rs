//! [`TipWatch`]: reports changes of the tip to calls that wait.

use tokio::sync::watch;

/// Counts the changes of the tip.
#[derive(Debug)]
pub struct TipWatch(watch::Sender<u64>);

impl Default for TipWatch {
    fn default() -> TipWatch {
        TipWatch(watch::Sender::new(0))
    }
}

impl TipWatch {
    /// Signals that the tip changed or that waits should end.
    pub fn wake(&self) {
        self.0.send_modify(|moves| *moves += 1);
    }

    /// Resolves at every change after this call.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

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
