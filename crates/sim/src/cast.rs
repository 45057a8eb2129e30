//! Who plays: a world from a seed. Input: a seed. Output: a [`World`] with peers, and what must become of it ([`Plot`]).

use crate::actor::{Actor, Shown, Verdict};
use crate::ground::{HONEST_HEIGHT, ground};
use crate::link::Wire;
use crate::natures::{Honest, Stall, Stalling};
use crate::world::World;
use lydian_consensus::U256;
use lydian_lab::rng::Random;
use lydian_p2p::peer::ConnectionKind;
use lydian_wire::{Endpoint, NetAddr};
use std::sync::Arc;
use std::time::Duration;

/// A world and its end.
#[derive(Debug)]
pub struct Plot {
    pub world: World,
    /// The chain that the node must have in the end, and its height.
    pub end: Shown,
    /// By when.
    pub deadline: Duration,
}

/// The cast of a seed.
pub fn cast(seed: u64, is_logged: bool) -> Plot {
    let mut random = Random::new(seed, "cast");
    let world = World::new(seed, U256::ZERO, is_logged);
    let mut plot = Plot { world, end: Shown::all(&ground().honest), deadline: Duration::from_secs(60) };
    plot.honest(&mut random);
    plot.stalling(&mut random);
    plot
}

impl Plot {
    fn honest(&mut self, random: &mut Random) {
        let from = u32::try_from(random.between(100, u64::from(HONEST_HEIGHT))).unwrap();
        let first = Shown { height: from, chain: Arc::clone(&ground().honest) };
        let mut changes = Vec::new();
        let mut time = Duration::from_secs(1);
        for height in from + 1..=HONEST_HEIGHT {
            time += Duration::from_millis(random.between(10, 1_000));
            changes.push((time, Shown { height, chain: Arc::clone(&ground().honest) }));
        }
        let mut actor = self.actor("honest", ConnectionKind::OutboundFullRelay, Box::new(Honest::new(changes)));
        actor.body.shown = first;
        actor.body.verdict = Verdict::Honest;
        let after = Duration::from_millis(random.below(2_000));
        self.world.add(actor, wire(random), after);
    }

    fn stalling(&mut self, random: &mut Random) {
        let stall = [Stall::Mute, Stall::Drips, Stall::NotFound, Stall::Gaps, Stall::Deaf][random.index(5)];
        let actor = self.actor("stalling", ConnectionKind::OutboundFullRelay, Box::new(Stalling::new(stall)));
        let wire = Wire { is_v2: stall != Stall::Drips && random.chance(500), ..wire(random) };
        let after = Duration::from_millis(random.below(2_000));
        self.world.add(actor, wire, after);
    }

    fn actor(&self, name: &'static str, kind: ConnectionKind, nature: Box<dyn crate::actor::Nature>) -> Actor {
        let number = u32::try_from(self.world.actors.len()).unwrap();
        let address = NetAddr::Ipv4((0x0801_0101 + (number << 16)).into());
        Actor::new(name, Endpoint::new(address, 8333), kind, nature)
    }
}

/// A wire of this world: from a modem to a cable, from next door to the other side of the earth.
pub fn wire(random: &mut Random) -> Wire {
    let rates = [50_000, 300_000, 2_000_000, 20_000_000];
    Wire {
        rate: rates[random.index(rates.len())],
        latency: Duration::from_millis(random.between(1, 150)),
        is_shredded: random.chance(150),
        is_v2: random.chance(500),
    }
}
