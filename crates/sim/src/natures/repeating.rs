//! Peers that send a block again that is known to be invalid.
//!
//! Core discourages only outbound peers for that: an inbound peer may not know better. But a defect that is visible in
//! the bytes of the block alone (`CheckBlock`) is found before the node looks up whether the block is known, and every
//! peer is punished for it.

use crate::actor::{Body, Nature, Shown, Stage, Verdict};
use crate::chain::{Chain, Fault};
use crate::ground::BAD_FORK;
use lydian_wire::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the block or its header is sent.
const TIMES: u32 = 3;

/// How often it checks whether the block is known to be invalid.
const LOOKS: u32 = 100;

/// Waits until the block is known to be invalid, and sends it.
#[derive(Debug)]
pub struct Repeating {
    chain: Arc<Chain>,
    /// Whether the first peer that sent it was disconnected for it.
    is_found: Arc<AtomicBool>,
    fault: Fault,
    sent: u32,
    looks: u32,
    is_waiting: bool,
}

impl Repeating {
    pub fn new(fault: Fault, is_found: &Arc<AtomicBool>) -> Repeating {
        let found = crate::ground::ground().bad.iter().find(|(other, _)| *other == fault);
        let (chain, is_found) = (Arc::clone(&found.unwrap().1), Arc::clone(is_found));
        Repeating { chain, is_found, fault, sent: 0, looks: 0, is_waiting: true }
    }
}

impl Nature for Repeating {
    fn ready(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        stage.wake(Duration::from_millis(300), 0);
    }

    fn woken(&mut self, _: u32, body: &mut Body, stage: &mut Stage<'_>) {
        self.looks += 1;
        if !body.is_ready || self.sent == TIMES || self.looks > LOOKS {
            self.is_waiting = false;
            return;
        }
        if self.is_found.load(Ordering::Relaxed) {
            self.sent += 1;
            let shows_itself = self.fault == Fault::TwoCoinbases && self.sent >= 2;
            let is_spared = body.kind.is_inbound() && !shows_itself;
            stage.deserve(if is_spared { Verdict::Honest } else { Verdict::Discouraged });
            let headers = (1..=BAD_FORK + 1).map(|height| self.chain.at(height).header).collect();
            // First the headers, then the block itself, then the headers again.
            stage.send(match self.sent {
                2 => Message::Block(self.chain.at(BAD_FORK + 1).bytes.clone()),
                _ => Message::Headers(headers),
            });
        }
        stage.wake(Duration::from_millis(300), 0);
    }

    fn begin(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        // Otherwise it shows the honest chain.
        body.shown = Shown { height: BAD_FORK, chain: Arc::clone(&stage.ground.honest) };
    }

    fn closed(&mut self, _: &mut Body, _: &mut Stage<'_>) {
        self.is_waiting = false;
    }

    fn is_done(&self) -> bool {
        !self.is_waiting
    }
}
