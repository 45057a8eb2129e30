//! Peers whose bytes are no messages, or only the beginning of one. Nobody is discouraged for that.

use crate::actor::{Body, Deed, Nature, Stage};
use lydian_wire::Message;
use lydian_wire::transport::Transport;
use std::time::Duration;

/// What comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A part of a message, then the end.
    Middle,
    /// A part of a message, and then nothing for ever.
    Hangs,
    /// The header of the largest message, and a byte now and then.
    Promises,
    /// Bytes of any kind.
    Noise,
    /// Nothing at all, not even a handshake.
    Mute,
    /// Messages with a checksum that is another's.
    Checksum,
}

impl Cut {
    pub const ALL: [Cut; 6] = [Cut::Middle, Cut::Hangs, Cut::Promises, Cut::Noise, Cut::Mute, Cut::Checksum];
}

#[derive(Debug)]
pub struct Cutting {
    cut: Cut,
    times: u32,
}

impl Cutting {
    pub fn new(cut: Cut) -> Cutting {
        Cutting { cut, times: 30 }
    }
}

impl Nature for Cutting {
    fn ready(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        let mut transport = Transport::v1(crate::chain::params().magic);
        transport.send_message(&Message::Block(body.shown.tip().bytes.clone()));
        let mut bytes = transport.take_output();
        let most = bytes.len() as u64 - 1;
        let cut = usize::try_from(stage.random.between(1, most)).unwrap();
        match self.cut {
            Cut::Middle | Cut::Hangs => stage.deeds.push(Deed::Raw(bytes[..cut].to_vec())),
            Cut::Promises => {
                bytes[16..20].copy_from_slice(&4_000_000_u32.to_le_bytes());
                stage.deeds.push(Deed::Raw(bytes[..24].to_vec()));
            }
            Cut::Noise => {
                let mut noise = vec![0; 3_000];
                stage.random.fill(&mut noise);
                stage.deeds.push(Deed::Raw(noise));
            }
            Cut::Checksum => {
                bytes[20] ^= 1;
                (0..20).for_each(|_| stage.deeds.push(Deed::Raw(bytes.clone())));
            }
            Cut::Mute => {}
        }
        stage.wake(Duration::from_millis(300), 0);
    }

    fn message(&mut self, _: &Message, _: &mut Body, _: &mut Stage<'_>) -> bool {
        // What is said now would be part of what was begun.
        self.cut != Cut::Checksum
    }

    fn woken(&mut self, _: u32, _: &mut Body, stage: &mut Stage<'_>) {
        match self.cut {
            Cut::Middle => stage.deeds.push(Deed::Close),
            Cut::Promises if self.times > 0 => {
                self.times -= 1;
                stage.deeds.push(Deed::Raw(vec![0; 100]));
                stage.wake(Duration::from_millis(100), 0);
            }
            _ => {}
        }
    }
}
