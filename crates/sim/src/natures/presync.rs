//! Peers that lie while a long chain of headers is downloaded twice: first to measure its work, then to keep it.
//!
//! No peer is punished for that, because a peer may have switched to another chain. A header that breaks a rule is
//! punished.

use crate::actor::{Body, Deed, Nature, Shown, Stage, Verdict};
use crate::heavy::{SQUEEZED_FORK, heavy};
use lydian_primitives::{BlockHash, Header};
use lydian_wire::{Locator, Message};
use std::sync::Arc;
use std::time::Duration;

/// Number of headers in a full message.
const FULL: usize = 2_000;

/// The kind of lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trick {
    /// A different chain in each pass.
    OtherChain,
    /// No response from some point of the second pass on.
    Stops,
    /// A message in the second pass that is not full, as if the chain ended there.
    Short,
    /// Less work than required.
    TooLittle,
    /// Full messages with too little work, then again from the start.
    Restarts,
    /// A header with more work than is allowed at its height.
    Squeezed,
    /// Disconnects in the second pass, and reconnects.
    Leaves,
}

impl Trick {
    pub const ALL: [Trick; 7] = [
        Trick::OtherChain,
        Trick::Stops,
        Trick::Short,
        Trick::TooLittle,
        Trick::Restarts,
        Trick::Squeezed,
        Trick::Leaves,
    ];
}

#[derive(Debug)]
pub struct Presync {
    trick: Trick,
    /// How often it repeats its behaviour.
    left: u32,
    /// The highest header sent since the start of the pass.
    reached: u32,
    is_second: bool,
    shows_other: bool,
    told: u32,
    is_owing: bool,
}

impl Presync {
    pub fn new(trick: Trick, times: u32) -> Presync {
        let (left, is_second, shows_other) = (times, false, false);
        Presync { trick, left, reached: 0, is_second, shows_other, told: 0, is_owing: false }
    }

    fn chain(&self, body: &Body) -> Shown {
        if self.shows_other { Shown::all(&heavy().other) } else { body.shown.clone() }
    }

    fn answer(&mut self, locator: &Locator, body: &Body, stage: &mut Stage<'_>) {
        let shown = self.chain(body);
        let from = shown.chain.fork_height(locator, shown.height);
        if from == 0 && self.reached > 0 {
            self.is_second = !self.is_second;
            self.reached = 0;
            if self.trick == Trick::OtherChain && self.left > 0 {
                self.left -= 1;
                self.shows_other = !self.shows_other;
            }
        }
        let shown = self.chain(body);
        if self.is_second && self.trick != Trick::OtherChain {
            return self.cheat(&shown, from, stage);
        }
        let last = shown.height.min(from + 2_000);
        self.reached = self.reached.max(last);
        self.send_headers(&shown, from, last, stage);
    }

    /// Responds in the second pass.
    fn cheat(&mut self, shown: &Shown, from: u32, stage: &mut Stage<'_>) {
        let last = shown.height.min(from + 2_000);
        self.reached = last;
        if self.left > 0 {
            self.left -= 1;
            return self.send_headers(shown, from, last, stage);
        }
        match self.trick {
            Trick::Short => self.send_headers(shown, from, last.min(from + 1_500), stage),
            Trick::Leaves if self.told < 40 => {
                self.is_second = false;
                stage.deeds.push(Deed::Close);
                stage.deeds.push(Deed::Connect(Duration::from_millis(500)));
            }
            Trick::Leaves => self.send_headers(shown, from, last, stage),
            _ => {}
        }
    }

    fn send_headers(&mut self, shown: &Shown, from: u32, last: u32, stage: &mut Stage<'_>) {
        self.told += 1;
        stage.send(Message::Headers((from + 1..=last).map(|height| shown.chain.at(height).header).collect()));
    }

    /// Sends four messages, then starts again.
    fn restart(&mut self, locator: &Locator, body: &Body, stage: &mut Stage<'_>) {
        let from = body.shown.chain.fork_height(locator, body.shown.height);
        let from = if from < body.shown.height { from } else { 0 };
        if from == 0 {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
        }
        let shown = body.shown.clone();
        self.send_headers(&shown, from, shown.height.min(from + 2_000), stage);
    }

    /// Sends the first message, then the second with too much work in one header. The node checks that header against
    /// the rules in the second pass, or at once if it has the headers below it.
    fn squeeze(&mut self, locator: &Locator, stage: &mut Stage<'_>) {
        let headers = &heavy().squeezed;
        let known =
            |hash: &BlockHash| headers[..SQUEEZED_FORK as usize].iter().position(|header| header.hash() == *hash);
        let from = locator.hashes.iter().find_map(known).map_or(0, |at| at + 1);
        let message: Vec<Header> = headers[from..].iter().take(FULL).copied().collect();
        if from > 0 {
            self.told += 1;
            if self.told > 1 || from < FULL {
                self.is_owing = true;
                stage.deserve(Verdict::Discouraged);
            }
        }
        stage.send(Message::Headers(message));
    }
}

impl Nature for Presync {
    fn begin(&mut self, body: &mut Body, _: &mut Stage<'_>) {
        body.shown = match self.trick {
            Trick::TooLittle => Shown { height: 8_500, chain: Arc::clone(&heavy().honest) },
            Trick::Restarts => Shown { height: 8_000, chain: Arc::clone(&heavy().honest) },
            _ => Shown::all(&heavy().honest),
        };
    }

    fn ready(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        (self.reached, self.is_second) = (0, false);
        // A peer that gets no `getheaders` starts by itself.
        if body.kind.is_inbound() && self.trick != Trick::Squeezed {
            self.reached = 2_000;
            let shown = body.shown.clone();
            self.send_headers(&shown, 0, 2_000, stage);
        }
    }

    fn message(&mut self, message: &Message, body: &mut Body, stage: &mut Stage<'_>) -> bool {
        let Message::GetHeaders(locator) = message else { return false };
        match self.trick {
            Trick::TooLittle => return false,
            Trick::Restarts => self.restart(locator, body, stage),
            Trick::Squeezed => self.squeeze(locator, stage),
            Trick::OtherChain | Trick::Stops | Trick::Short | Trick::Leaves => self.answer(locator, body, stage),
        }
        true
    }

    fn closed(&mut self, _: &mut Body, _: &mut Stage<'_>) {
        self.is_owing = false;
    }

    fn is_done(&self) -> bool {
        !self.is_owing
    }
}
