//! Peers that come and go, again and again, and peers that know thousands of addresses.

use super::limits::addresses;
use crate::actor::{Body, Deed, Nature, Stage};
use lydian_wire::Message;
use std::time::Duration;

/// Comes and goes.
#[derive(Debug)]
pub struct Storming {
    left: u32,
    /// How long it stays, about.
    stay: Duration,
}

impl Storming {
    pub fn new(times: u32, stay: Duration) -> Storming {
        Storming { left: times, stay }
    }

    fn come_again(&mut self, stage: &mut Stage<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let stay = self.stay.mul_f64(0.1 + f64::from(u32::try_from(stage.random.below(1_000)).unwrap()) / 500.0);
            stage.deeds.push(Deed::Connect(Duration::from_millis(5)));
            stage.wake(stay, 0);
        }
    }
}

impl Nature for Storming {
    fn begin(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        self.come_again(stage);
    }

    fn woken(&mut self, _: u32, _: &mut Body, stage: &mut Stage<'_>) {
        stage.deeds.push(Deed::Close);
        self.come_again(stage);
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }
}

/// Feeds addresses.
#[derive(Debug)]
pub struct Poisoning {
    left: u32,
}

impl Poisoning {
    pub fn new(messages: u32) -> Poisoning {
        Poisoning { left: messages }
    }

    fn feed(&mut self, stage: &mut Stage<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let addresses = addresses(1_000, stage);
            stage.send(Message::AddrV2(addresses));
            stage.wake(Duration::from_millis(100), 0);
        }
    }
}

impl Nature for Poisoning {
    fn ready(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        self.feed(stage);
    }

    fn woken(&mut self, _: u32, _: &mut Body, stage: &mut Stage<'_>) {
        self.feed(stage);
    }

    fn closed(&mut self, _: &mut Body, _: &mut Stage<'_>) {
        self.left = 0;
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }
}
