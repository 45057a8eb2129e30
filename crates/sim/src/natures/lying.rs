//! Peers that lie about headers. Core discourages a peer for some of the lies; most only waste time.

use crate::actor::{Body, Nature, Shown, Stage, Verdict};
use lydian_primitives::{BlockHash, Header};
use lydian_wire::{Inv, InvType, Message};
use std::time::Duration;

/// The kind of lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A header in the middle is missing.
    Gap,
    /// The hash of a header is above its target.
    NoWork,
    /// More headers than a message may have.
    TooMany,
    /// The target is not the required one.
    WrongBits,
    /// An obsolete version.
    WrongVersion,
    /// A time before those of its ancestors.
    OldTime,
    /// A time in the future, for which a peer is not punished because clocks may be wrong.
    Future,
    /// Headers with unknown parents, repeatedly.
    Orphans,
    /// Hashes of blocks that do not exist.
    Inventions,
    /// The first headers of the chain, then empty responses, as if the chain ended there.
    Ends,
    /// No response to any `getheaders`.
    Silent,
    /// A chain with the most work, of which no block is ever sent.
    Withheld,
    /// The same first headers in response to every request, so that the end is never reached.
    Loops,
}

impl Lie {
    pub const ALL: [Lie; 13] = [
        Lie::Gap,
        Lie::NoWork,
        Lie::TooMany,
        Lie::WrongBits,
        Lie::WrongVersion,
        Lie::OldTime,
        Lie::Future,
        Lie::Orphans,
        Lie::Inventions,
        Lie::Ends,
        Lie::Silent,
        Lie::Withheld,
        Lie::Loops,
    ];
}

/// How often a repeated lie is sent.
const TIMES: u32 = 20;

#[derive(Debug)]
pub struct Lying {
    lie: Lie,
    told: u32,
    is_waiting: bool,
}

impl Lying {
    pub fn new(lie: Lie) -> Lying {
        Lying { lie, told: 0, is_waiting: true }
    }

    /// Returns the headers of a lie that is sent at once, on blocks that the node may have.
    fn headers(&self, body: &Body, stage: &mut Stage<'_>) -> Vec<Header> {
        let chain = &body.shown.chain;
        let mut headers: Vec<Header> = (1..=60).map(|height| chain.at(height).header).collect();
        let last = &mut headers[59];
        match self.lie {
            Lie::Gap => drop(headers.remove(usize::try_from(stage.random.between(1, 50)).unwrap())),
            Lie::NoWork => spoil(last, |_| {}, false),
            Lie::TooMany => headers = headers.into_iter().cycle().take(2_001).collect(),
            Lie::WrongBits => spoil(last, |header| header.bits = 0x207f_fffe, true),
            Lie::WrongVersion => spoil(last, |header| header.version = 1, true),
            Lie::OldTime => spoil(last, |header| header.time -= 100 * 600, true),
            Lie::Future => {
                let time = u32::try_from(stage.unix).unwrap() + 3 * 60 * 60;
                spoil(last, |header| header.time = time, true);
            }
            _ => {}
        }
        headers
    }

    fn send_again(&mut self, stage: &mut Stage<'_>) {
        self.told += 1;
        let mut strange = [0; 32];
        stage.random.fill(&mut strange);
        let mut header = stage.ground.honest.at(1).header;
        header.prev_block = BlockHash(strange);
        spoil(&mut header, |_| {}, true);
        let inv = Inv::block(InvType::BLOCK, BlockHash(strange));
        stage.send(if self.lie == Lie::Orphans { Message::Headers(vec![header]) } else { Message::Inv(vec![inv]) });
        if self.told < TIMES {
            stage.wake(Duration::from_millis(50), 0);
        }
    }
}

/// Changes a header and searches for a nonce that meets the target, or one that does not.
fn spoil(header: &mut Header, change: impl FnOnce(&mut Header), has_work: bool) {
    change(header);
    // The target's highest byte is 0x7f.
    let is_found = |high: u8| if has_work { high < 0x7f } else { high > 0x7f };
    while !is_found(header.hash().0[31]) {
        header.nonce = header.nonce.wrapping_add(1);
    }
}

impl Nature for Lying {
    fn begin(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        if self.lie == Lie::Withheld {
            body.shown = Shown::all(&stage.ground.withheld);
        }
        self.is_waiting = !matches!(self.lie, Lie::Withheld | Lie::Silent | Lie::Ends | Lie::Loops);
    }

    fn ready(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        self.is_waiting = false;
        let verdict = match self.lie {
            Lie::Gap | Lie::NoWork | Lie::TooMany | Lie::WrongBits | Lie::WrongVersion | Lie::OldTime => {
                Verdict::Discouraged
            }
            Lie::Orphans | Lie::Inventions => return self.send_again(stage),
            Lie::Future => Verdict::Spared,
            Lie::Ends | Lie::Silent | Lie::Withheld | Lie::Loops => return,
        };
        stage.deserve(verdict);
        let headers = self.headers(body, stage);
        stage.send(Message::Headers(headers));
    }

    fn message(&mut self, message: &Message, body: &mut Body, stage: &mut Stage<'_>) -> bool {
        match (self.lie, message) {
            (Lie::Silent, Message::GetHeaders(_)) => true,
            (Lie::Withheld, Message::GetData(_)) => true,
            (Lie::Ends, Message::GetHeaders(locator)) => {
                let shown = Shown { height: 30, ..body.shown.clone() };
                stage.send(shown.answer(locator));
                true
            }
            (Lie::Loops, Message::GetHeaders(_)) => {
                if self.told < TIMES {
                    self.told += 1;
                    stage.send(Message::Headers((1..=100).map(|height| body.shown.chain.at(height).header).collect()));
                }
                true
            }
            _ => false,
        }
    }

    fn woken(&mut self, _: u32, _: &mut Body, stage: &mut Stage<'_>) {
        self.send_again(stage);
    }

    fn closed(&mut self, _: &mut Body, _: &mut Stage<'_>) {
        self.is_waiting = false;
    }

    fn is_done(&self) -> bool {
        !self.is_waiting
    }
}
