//! Peers that check the node's announcements.
//!
//! A peer in high-bandwidth compact block mode must get each new block as a compact block. A peer that connects after a
//! block must not get an announcement of it.

use crate::actor::{Body, Nature, Stage};
use lydian_primitives::BlockHash;
use lydian_wire::Message;
use lydian_wire::message::{CMPCTBLOCKS_VERSION, SendCmpct};

/// Records announcements.
#[derive(Debug)]
pub struct Listening {
    /// The expected compact blocks, in this order.
    expected: Vec<BlockHash>,
    told: Vec<BlockHash>,
}

impl Listening {
    /// Expects the blocks that become active while it is connected.
    pub fn early(expected: Vec<BlockHash>) -> Listening {
        Listening { expected, told: Vec::new() }
    }

    /// Expects no announcements.
    pub fn late() -> Listening {
        Listening { expected: Vec::new(), told: Vec::new() }
    }
}

impl Nature for Listening {
    fn ready(&mut self, _: &mut Body, stage: &mut Stage<'_>) {
        if !self.expected.is_empty() {
            stage.send(Message::SendCmpct(SendCmpct { high_bandwidth: true, version: CMPCTBLOCKS_VERSION }));
        }
    }

    fn message(&mut self, message: &Message, body: &mut Body, _: &mut Stage<'_>) -> bool {
        let is_new = |hash: &BlockHash| body.shown.find(hash).is_none();
        match message {
            Message::CmpctBlock(compact) => self.told.push(compact.header.hash()),
            // An announcement in any other form counts as well, which makes the check fail.
            Message::Headers(headers) => self.told.extend(headers.iter().map(|header| header.hash()).filter(is_new)),
            Message::Inv(inventory) => {
                self.told.extend(inventory.iter().map(|item| BlockHash(item.hash)).filter(is_new))
            }
            _ => {}
        }
        false
    }

    fn is_done(&self) -> bool {
        self.told == self.expected
    }
}
