//! Peers that do not serve the blocks requested from them. No peer is discouraged for that.

use crate::actor::{Body, Deed, Nature, Stage};
use lydian_primitives::BlockHash;
use lydian_wire::Message;
use std::time::Duration;

/// How the peer stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// Sends nothing.
    Mute,
    /// Sends a block byte by byte. v1 only: the bytes bypass the transport.
    Drips,
    /// Sends `notfound` for blocks whose headers it has sent.
    NotFound,
    /// Sends one of three blocks.
    Gaps,
    /// Requests much and reads nothing.
    Deaf,
}

impl Stall {
    pub const ALL: [Stall; 5] = [Stall::Mute, Stall::Drips, Stall::NotFound, Stall::Gaps, Stall::Deaf];
}

#[derive(Debug)]
pub struct Stalling {
    stall: Stall,
    /// Bytes of the block that are left to send.
    drops: Vec<u8>,
    asked: usize,
}

impl Stalling {
    pub fn new(stall: Stall) -> Stalling {
        Stalling { stall, drops: Vec::new(), asked: 0 }
    }

    fn drip(&mut self, stage: &mut Stage<'_>) {
        if let Some(byte) = self.drops.pop() {
            stage.deeds.push(Deed::Raw(vec![byte]));
            stage.wake(Duration::from_millis(700), 0);
        }
    }
}

impl Nature for Stalling {
    fn message(&mut self, message: &Message, body: &mut Body, stage: &mut Stage<'_>) -> bool {
        let Message::GetData(inventory) = message else { return false };
        match self.stall {
            Stall::Mute => {}
            Stall::Deaf => stage.deeds.push(Deed::Deafen),
            Stall::NotFound => stage.send(Message::NotFound(inventory.clone())),
            Stall::Gaps => {
                for item in inventory {
                    self.asked += 1;
                    if self.asked % 3 == 1 {
                        body.give(item, stage);
                    }
                }
            }
            Stall::Drips => {
                let made = inventory.iter().find_map(|item| body.shown.find(&BlockHash(item.hash)));
                if let (Some(made), true) = (made, self.drops.is_empty()) {
                    let mut transport = lydian_wire::transport::Transport::v1(crate::chain::params().magic);
                    transport.send_message(&Message::Block(made.bytes.clone()));
                    self.drops = transport.take_output();
                    self.drops.reverse();
                    self.drip(stage);
                }
            }
        }
        true
    }

    fn woken(&mut self, _: u32, _: &mut Body, stage: &mut Stage<'_>) {
        self.drip(stage);
    }
}
