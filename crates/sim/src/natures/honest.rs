//! Peers that behave correctly: they serve blocks, extend their chain, and switch to a better one when it appears.

use crate::actor::{Body, Nature, Shown, Stage};
use std::time::Duration;

/// The changes of the chain that it shows, each with its time since the peer was added.
#[derive(Default)]
pub struct Honest {
    changes: Vec<(Duration, Shown)>,
    next: usize,
}

impl std::fmt::Debug for Honest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "with {} changes, {} of them done", self.changes.len(), self.next)
    }
}

impl Honest {
    pub fn new(changes: Vec<(Duration, Shown)>) -> Honest {
        Honest { changes, next: 0 }
    }
}

impl Nature for Honest {
    fn begin(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        for (after, _) in &self.changes {
            stage.wake(*after, 0);
        }
    }

    fn woken(&mut self, _: u32, body: &mut Body, stage: &mut Stage<'_>) {
        if let Some((_, shown)) = self.changes.get(self.next) {
            self.next += 1;
            body.shown = shown.clone();
            body.announce(stage);
        }
    }

    fn is_done(&self) -> bool {
        self.next == self.changes.len()
    }
}
