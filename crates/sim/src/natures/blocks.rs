//! Peers that send bad or unrequested blocks. A peer is punished for a block that breaks a rule, but not for one that
//! is merely superfluous.

use crate::actor::{Body, Nature, Shown, Stage, Verdict};
use crate::chain::Fault;
use lydian_primitives::{BlockHash, HEADER_SIZE, Header};
use lydian_wire::Message;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The kind of block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// A chain of valid headers, one block of which breaks a rule.
    Chain(Fault),
    /// Valid headers with other block data.
    Mutated,
    /// The last bytes are missing.
    Truncated,
    /// All blocks of the chain, unrequested, from the first one.
    Unasked,
    /// A block with an unknown parent.
    Orphan,
    /// The requested blocks, three times each.
    Thrice,
    /// Blocks other than those requested.
    Others,
}

impl Bad {
    pub const ALL: [Bad; 12] = [
        Bad::Chain(Fault::Signature),
        Bad::Chain(Fault::Amount),
        Bad::Chain(Fault::Coinbase),
        Bad::Chain(Fault::NoCoin),
        Bad::Chain(Fault::TwoCoinbases),
        Bad::Chain(Fault::NoHeight),
        Bad::Mutated,
        Bad::Truncated,
        Bad::Unasked,
        Bad::Orphan,
        Bad::Thrice,
        Bad::Others,
    ];
}

#[derive(Debug)]
pub struct BadBlocks {
    bad: Bad,
    next: u32,
    has_more: bool,
    /// How often it sends each block of a bad chain.
    copies: u32,
    /// Whether it was disconnected for its behaviour.
    is_found: Arc<AtomicBool>,
}

impl BadBlocks {
    pub fn new(bad: Bad, copies: u32) -> BadBlocks {
        let has_more = matches!(bad, Bad::Unasked | Bad::Chain(_));
        BadBlocks { bad, next: 1, has_more, copies, is_found: Arc::default() }
    }

    /// Set when the peer was disconnected for its behaviour.
    pub fn is_found(&self) -> &Arc<AtomicBool> {
        &self.is_found
    }

    fn push(&mut self, body: &Body, stage: &mut Stage<'_>) {
        stage.send(Message::Block(body.shown.chain.at(self.next).bytes.clone()));
        self.next += 1;
        self.has_more = self.next <= body.shown.height;
        if self.has_more {
            stage.wake(Duration::from_millis(5), 0);
        }
    }
}

/// Whether the header has too little work.
fn bytes_hash_is_high(bytes: &[u8]) -> bool {
    let header = bytes.first_chunk::<HEADER_SIZE>().map(Header::parse);
    header.is_none_or(|header| header.hash().0[31] >= 0x7f)
}

impl Nature for BadBlocks {
    fn begin(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        if let Bad::Chain(fault) = self.bad {
            let found = stage.ground.bad.iter().find(|(other, _)| *other == fault);
            body.shown = Shown::all(&Arc::clone(&found.unwrap().1));
        }
    }

    fn ready(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        match self.bad {
            Bad::Unasked => self.push(body, stage),
            Bad::Orphan => {
                let mut bytes = body.shown.chain.at(50).bytes.clone();
                stage.random.fill(&mut bytes[4..36]);
                while bytes_hash_is_high(&bytes) {
                    stage.random.fill(&mut bytes[4..36]);
                }
                stage.deserve(Verdict::Discouraged);
                stage.send(Message::Block(bytes));
            }
            _ => {}
        }
    }

    fn message(&mut self, message: &Message, body: &mut Body, stage: &mut Stage<'_>) -> bool {
        let Message::GetData(inventory) = message else { return false };
        for item in inventory {
            let Some(made) = body.shown.find(&BlockHash(item.hash)) else { continue };
            let (height, mut bytes) = (made.height, made.bytes.clone());
            match self.bad {
                Bad::Chain(_) => {
                    (0..self.copies).for_each(|_| body.give(item, stage));
                    self.has_more &= height <= crate::ground::BAD_FORK;
                    if height > crate::ground::BAD_FORK {
                        stage.deserve(Verdict::Discouraged);
                    }
                }
                Bad::Mutated => {
                    // A byte of the last output of the last transaction, before its lock time.
                    let at = bytes.len() - 10;
                    bytes[at] ^= 1;
                    stage.deserve(Verdict::Discouraged);
                    stage.send(Message::Block(bytes));
                }
                Bad::Truncated => {
                    bytes.truncate(bytes.len() - 3);
                    stage.send(Message::Block(bytes));
                }
                Bad::Thrice => (0..3).for_each(|_| body.give(item, stage)),
                Bad::Others => {
                    let other = body.shown.chain.at(body.shown.height - height).bytes.clone();
                    stage.send(Message::Block(other));
                }
                Bad::Unasked | Bad::Orphan => {}
            }
        }
        true
    }

    fn woken(&mut self, _: u32, body: &mut Body, stage: &mut Stage<'_>) {
        self.push(body, stage);
    }

    fn closed(&mut self, body: &mut Body, _: &mut Stage<'_>) {
        self.is_found.store(body.verdict == Verdict::Discouraged, Ordering::Relaxed);
        self.has_more = false;
    }

    fn is_done(&self) -> bool {
        !self.has_more
    }
}
