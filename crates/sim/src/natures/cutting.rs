//! Peers that send bytes that are not messages, or only the start of a message. No peer is discouraged for that.

use crate::actor::{Body, Deed, Nature, Stage};
use lydian_wire::Message;
use lydian_wire::transport::Transport;
use std::time::Duration;

/// What the peer sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Part of a message, then closes.
    Middle,
    /// Part of a message, then nothing.
    Hangs,
    /// A header that announces the largest message, then some bytes from time to time.
    Promises,
    /// Random bytes.
    Noise,
    /// Nothing at all after the handshake.
    Mute,
    /// Messages with a wrong checksum.
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
        // Any response would be taken as part of the message that was started.
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
