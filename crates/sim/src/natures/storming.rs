//! Peers that connect and disconnect repeatedly, and peers that send thousands of addresses.

use super::limits::addresses;
use crate::actor::{Body, Deed, Nature, Stage};
use lydian_chains::rng::Random;
use lydian_wire::{Endpoint, Message, NetAddr, Services, TimedAddress};
use std::time::Duration;

/// Connects and disconnects.
#[derive(Debug)]
pub struct Storming {
    left: u32,
    /// The approximate duration of a connection.
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

/// Sends addresses.
#[derive(Debug)]
pub struct Poisoning {
    left: u32,
    /// Whether all addresses are the attacker's.
    is_eclipse: bool,
}

/// The number of address groups of the attacker, and the first byte of all its addresses.
const ATTACKER_GROUPS: u64 = 24;
const ATTACKER_BYTE: u64 = 60;

/// Whether the address is the attacker's.
pub fn is_attackers(addr: &NetAddr) -> bool {
    matches!(addr, NetAddr::Ipv4(ip) if u64::from(ip.octets()[0]) == ATTACKER_BYTE)
}

/// Returns addresses of the attacker, all of which accept connections.
pub fn attacker_addresses(count: usize, random: &mut Random, time: u32) -> Vec<TimedAddress> {
    let mut address = || {
        let (group, host) = (random.below(ATTACKER_GROUPS), random.between(1, 0xfffe));
        let number = u32::try_from(ATTACKER_BYTE << 24 | group << 16 | host).unwrap();
        let endpoint = Endpoint::new(NetAddr::Ipv4(number.into()), 8333);
        TimedAddress { time, services: Services::NETWORK | Services::WITNESS, endpoint }
    };
    (0..count).map(|_| address()).collect()
}

impl Poisoning {
    pub fn new(messages: u32) -> Poisoning {
        Poisoning { left: messages, is_eclipse: false }
    }

    pub fn of_attacker(messages: u32) -> Poisoning {
        Poisoning { left: messages, is_eclipse: true }
    }

    fn feed(&mut self, stage: &mut Stage<'_>) {
        if self.left > 0 {
            self.left -= 1;
            let time = u32::try_from(stage.unix).unwrap();
            let addresses =
                if self.is_eclipse { attacker_addresses(1_000, stage.random, time) } else { addresses(1_000, stage) };
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
