//! Builds a world from a seed. Input: a seed. Output: a [`World`] with peers, and the required outcome ([`Plot`]).
//!
//! There is always an honest peer that the node connects to. The seed decides on the others: more honest ones, and
//! malicious ones of all kinds.

mod crowd;
mod eclipse;
mod listeners;
mod long;
mod relay;
mod sources;

use crate::actor::{Actor, Nature, Shown, Verdict};
use crate::chain::Fault;
use crate::ground::{HONEST_HEIGHT, RIVAL_FORK, SOON, ground};
use crate::link::Wire;
use crate::natures::{
    Bad, BadBlocks, Cut, Cutting, Flood, Flooding, Honest, Lie, Limit, Limits, Lying, Poisoning, Repeating, Stall,
    Stalling, Storming,
};
use crate::world::{Mocked, World};
use lydian_chains::rng::Random;
use lydian_consensus::U256;
use lydian_p2p::manager::ConnectSettings;
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_wire::{Endpoint, NetAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A world and its required outcome.
#[derive(Debug)]
pub struct Plot {
    pub world: World,
    /// The chain that the node must have in the end, and its height.
    pub end: Shown,
    /// The time limit for that.
    pub deadline: Duration,
    /// The hash of the UTXO set in the end.
    pub coins: [u8; 32],
    /// Number of inbound slots.
    pub inbound_max: usize,
    random: Random,
    /// Bad blocks that are not assigned yet. A chain with a bad block is shown by one peer only: whether a second one
    /// is punished would depend on which came first.
    faults_left: Vec<Bad>,
}

/// Builds the cast of a seed.
pub fn cast(seed: u64, is_logged: bool) -> Plot {
    if seed % 5 == 4 {
        return eclipse::eclipse(seed, is_logged);
    }
    match seed % 25 {
        7 => return long::long(seed, is_logged),
        13 => return crowd::crowd(seed, is_logged),
        3 => return sources::sources(seed, is_logged),
        11 => return listeners::listeners(seed, is_logged),
        2 | 17 => return relay::relay(seed, is_logged),
        _ => {}
    }
    let world = World::new(seed, U256::ZERO, ConnectSettings::default(), is_logged);
    let mut random = Random::new(seed, "cast");
    let is_reorganised = random.chance(400);
    let end = Shown::all(if is_reorganised { &ground().rival } else { &ground().honest });
    let mut plot = Plot::new(world, end, Duration::from_secs(120), random);
    plot.set_clock();
    if seed % 4 == 1 {
        plot.world.mocked = Some(mocked(seed));
    }
    plot.honest(ConnectionKind::OutboundFullRelay);
    for _ in 0..plot.random.below(4) {
        let kind = plot.kind();
        plot.honest(kind);
    }
    for _ in 0..plot.random.below(8) {
        plot.villain();
    }
    plot
}

/// A period in which the node's clock is stopped, up to 50 seconds wrong: less than the minute after which a silent
/// peer is disconnected.
fn mocked(seed: u64) -> Mocked {
    let mut random = Random::new(seed, "clock");
    let from = Duration::from_millis(random.between(500, 15_000));
    let to = from + Duration::from_millis(random.between(1_000, 10_000));
    let wrong_by_s = i64::try_from(random.between(0, 100)).unwrap() - 50;
    Mocked { from, to, wrong_by_s }
}

impl Plot {
    fn new(world: World, end: Shown, deadline: Duration, random: Random) -> Plot {
        let coins = ground().coins_of(&end.tip().hash).unwrap_or_default();
        Plot { world, end, deadline, coins, inbound_max: usize::MAX, random, faults_left: Bad::ALL.to_vec() }
    }

    /// Sets a correct clock: the last block is some hours old, or new.
    fn set_clock(&mut self) {
        if self.random.chance(300) {
            self.world.unix_begin = SOON;
        }
    }

    fn honest(&mut self, kind: ConnectionKind) {
        let random = &mut self.random;
        let chain = &ground().honest;
        let last = if self.end.chain.find(&chain.tip().hash).is_some() { HONEST_HEIGHT } else { RIVAL_FORK + 6 };
        let from = u32::try_from(random.between(100, u64::from(last))).unwrap();
        let mut changes = Vec::new();
        let mut time = Duration::from_secs(1);
        for height in from + 1..=last {
            time += Duration::from_millis(random.between(10, 1_000));
            changes.push((time, Shown { height, chain: Arc::clone(chain) }));
        }
        if last != HONEST_HEIGHT {
            time += Duration::from_millis(random.between(10, 5_000));
            changes.push((time, self.end.clone()));
        }
        let mut actor = self.actor("honest", kind, Box::new(Honest::new(changes)));
        actor.body.shown = Shown { height: from, chain: Arc::clone(chain) };
        actor.body.verdict = Verdict::Honest;
        self.enter(actor, false);
    }

    fn villain(&mut self) {
        let kind = self.kind();
        let random = &mut self.random;
        let (name, nature, wants_v1): (_, Box<dyn Nature>, bool) = match random.below(8) {
            0 => {
                let stall = Stall::ALL[random.index(Stall::ALL.len())];
                ("stalling", Box::new(Stalling::new(stall)), stall == Stall::Drips)
            }
            1 => ("lying", Box::new(Lying::new(Lie::ALL[random.index(Lie::ALL.len())])), false),
            2 => {
                let flood = Flood::ALL[random.index(Flood::ALL.len())];
                let count = u32::try_from(random.between(10, 2_000)).unwrap();
                ("flooding", Box::new(Flooding::new(flood, count, random.chance(500))), false)
            }
            3 => {
                let limit = Limit::ALL[random.index(Limit::ALL.len())];
                return self.limits(limit);
            }
            4 => ("cutting", Box::new(Cutting::new(Cut::ALL[random.index(Cut::ALL.len())])), true),
            5 if !self.faults_left.is_empty() => {
                let bad = self.faults_left.swap_remove(random.index(self.faults_left.len()));
                let nature = BadBlocks::new(bad, 1 + u32::from(random.chance(500)));
                if let Bad::Chain(fault) = bad {
                    self.repeaters(fault, nature.is_found());
                }
                ("bad blocks", Box::new(nature), false)
            }
            6 => {
                let stay = Duration::from_millis(random.between(1, 2_000));
                let times = u32::try_from(random.between(2, 25)).unwrap();
                ("storming", Box::new(Storming::new(times, stay)), false)
            }
            _ => ("poisoning", Box::new(Poisoning::new(u32::try_from(random.between(1, 20)).unwrap())), false),
        };
        let mut actor = self.actor(name, kind, nature);
        if self.random.chance(50) {
            actor.body.permissions = Permissions::NO_BAN;
        }
        self.enter(actor, wants_v1);
    }

    /// Adds peers that send a bad block again once it is known.
    fn repeaters(&mut self, fault: Fault, is_found: &Arc<AtomicBool>) {
        for kind in [ConnectionKind::Inbound, ConnectionKind::OutboundFullRelay] {
            if self.random.chance(400) {
                let actor = self.actor("repeating", kind, Box::new(Repeating::new(fault, is_found)));
                self.enter(actor, false);
            }
        }
    }

    /// Adds a peer that sends a message at or above its limit, over a fast wire because messages can be large, and over
    /// a connection that relays addresses.
    fn limits(&mut self, limit: Limit) {
        let kinds = [ConnectionKind::Inbound, ConnectionKind::OutboundFullRelay];
        let kind = kinds[self.random.index(2)];
        let is_above = self.random.chance(500);
        let actor = self.actor("limits", kind, Box::new(Limits::new(limit, is_above)));
        let wire = Wire { rate: 20_000_000, is_shredded: false, ..self.wire() };
        let after = Duration::from_millis(self.random.below(5_000));
        self.world.add(actor, wire, after);
    }

    fn enter(&mut self, actor: Actor, wants_v1: bool) {
        let wire = self.wire();
        let wire = Wire { is_v2: wire.is_v2 && !wants_v1, ..wire };
        let after = Duration::from_millis(self.random.below(5_000));
        self.world.add(actor, wire, after);
    }

    fn kind(&mut self) -> ConnectionKind {
        let kinds = [
            ConnectionKind::Inbound,
            ConnectionKind::Inbound,
            ConnectionKind::OutboundFullRelay,
            ConnectionKind::OutboundFullRelay,
            ConnectionKind::BlockRelayOnly,
            ConnectionKind::Manual,
        ];
        kinds[self.random.index(kinds.len())]
    }

    fn actor(&self, name: &'static str, kind: ConnectionKind, nature: Box<dyn Nature>) -> Actor {
        let number = u32::try_from(self.world.actors.len()).unwrap();
        let address = NetAddr::Ipv4((0x0801_0101 + (number << 16)).into());
        Actor::new(name, Endpoint::new(address, 8333), kind, nature)
    }

    /// From a modem to a cable, from the same city to the other side of the earth.
    fn wire(&mut self) -> Wire {
        let random = &mut self.random;
        let rates = [50_000, 300_000, 2_000_000, 20_000_000];
        Wire {
            rate: rates[random.index(rates.len())],
            latency: Duration::from_millis(random.between(1, 150)),
            is_shredded: random.chance(150),
            is_v2: random.chance(500),
        }
    }
}
