//! Peers that compete for inbound slots: they connect, answer pings, and reconnect when they are disconnected.

use crate::actor::{Body, Deed, Nature, Stage};
use std::time::Duration;

/// Reconnects.
#[derive(Debug)]
pub struct Crowding {
    left: u32,
    is_in: bool,
}

impl Crowding {
    pub fn new(times: u32) -> Crowding {
        Crowding { left: times, is_in: false }
    }
}

impl Nature for Crowding {
    fn ready(&mut self, _: &mut Body, _: &mut Stage<'_>) {
        self.is_in = true;
    }

    fn closed(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        self.is_in = false;
        if self.left > 0 {
            self.left -= 1;
            let after = Duration::from_millis(stage.random.between(50, 3_000));
            stage.deeds.push(Deed::Connect(after));
        }
    }

    fn is_done(&self) -> bool {
        self.is_in || self.left == 0
    }
}
