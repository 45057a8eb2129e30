//! An attacker owns nearly every address that the node knows.
//!
//! The node chooses its own peers. It must find an honest one nevertheless: a peer to which it connected before
//! (tried), saved as an anchor, or given by the operator. Input: a seed. Output: a [`Plot`].

use super::Plot;
use crate::actor::{Actor, Shown, Verdict};
use crate::ground::ground;
use crate::link::Wire;
use crate::natures::{Honest, Poisoning, attacker_addresses};
use crate::world::{ATTACKER_HEIGHT, World};
use lydian_chains::rng::Random;
use lydian_consensus::U256;
use lydian_p2p::UnixTime;
use lydian_p2p::manager::ConnectSettings;
use lydian_p2p::peer::ConnectionKind;
use lydian_wire::{Endpoint, NetAddr, Services, TimedAddress};
use std::time::Duration;

/// Time limit for finding an honest peer: the attacker may have filled all ten slots, and feelers and extra peers take
/// a while.
const DEADLINE: Duration = Duration::from_secs(15 * 60);

/// How the node knows the honest addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hope {
    Tried,
    Anchor,
    Added,
}

/// Builds the world of a seed.
pub(super) fn eclipse(seed: u64, is_logged: bool) -> Plot {
    let mut random = Random::new(seed, "eclipse");
    let hope = [Hope::Tried, Hope::Anchor, Hope::Added][random.index(3)];
    let honest: Vec<Endpoint> =
        (0..4_u32).map(|number| Endpoint::new(NetAddr::Ipv4((0x0901_0101 + (number << 16)).into()), 8333)).collect();
    let now = UnixTime(crate::ground::NOW);
    let known = |endpoint: &Endpoint| TimedAddress {
        time: now.minus(3_600).to_u32(),
        services: Services::NETWORK | Services::WITNESS,
        endpoint: *endpoint,
    };
    let connect = ConnectSettings {
        chooses_peers: true,
        default_port: 8333,
        added: if hope == Hope::Added { vec![honest[0].to_string()] } else { Vec::new() },
        anchors: if hope == Hope::Anchor { honest[..2].iter().map(known).collect() } else { Vec::new() },
        ..ConnectSettings::default()
    };
    let mut world = World::new(seed, U256::ZERO, connect, is_logged);
    let addrman = world.node.manager.addrman_mut();
    for _ in 0..random.between(1, 8) {
        let addresses = attacker_addresses(1_000, &mut random, now.minus(600).to_u32());
        let source = addresses[0].endpoint.addr;
        addrman.add(&addresses, &source, 0, now);
    }
    if hope == Hope::Tried {
        for endpoint in &honest {
            addrman.add(&[known(endpoint)], &endpoint.addr, 0, now);
            addrman.good(endpoint, now.minus(3_600));
        }
    }
    let mut plot = Plot::new(world, Shown::all(&ground().honest), DEADLINE, random);
    for endpoint in honest {
        let mut actor = Actor::new("honest", endpoint, ConnectionKind::OutboundFullRelay, Box::new(Honest::default()));
        actor.body.verdict = Verdict::Honest;
        actor.body.knows_v1_only = plot.random.chance(400);
        let wire = Wire { is_shredded: false, ..plot.wire() };
        plot.world.enter(actor, wire);
    }
    for _ in 0..plot.random.between(1, 6) {
        let nature = Poisoning::of_attacker(u32::try_from(plot.random.between(1, 20)).unwrap());
        let mut actor = plot.actor("poisoning", ConnectionKind::Inbound, Box::new(nature));
        actor.body.shown.height = ATTACKER_HEIGHT;
        let wire = plot.wire();
        plot.world.add(actor, wire, Duration::from_secs(1));
    }
    plot
}
