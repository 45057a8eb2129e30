//! More peers connect than there are inbound slots.
//!
//! Peers that connected long before an attacker keep their slots, whatever the attacker does. If all of the attacker's
//! addresses are in one group, no other peer loses its slot either. Input: a seed. Output: a [`Plot`].

use super::Plot;
use crate::actor::{Actor, Shown, Verdict};
use crate::ground::ground;
use crate::link::Wire;
use crate::natures::{Crowding, Honest};
use crate::world::World;
use lydian_chains::rng::Random;
use lydian_consensus::U256;
use lydian_p2p::manager::ConnectSettings;
use lydian_p2p::peer::ConnectionKind;
use lydian_wire::{Endpoint, NetAddr};
use std::time::Duration;

/// Slots that are not for inbound peers, as in Core.
const OUTBOUND_PLACES: usize = 8 + 2 + 1;

/// Peers that `SelectNodeToEvict` protects for some property. Half of the rest is protected for the longest connection
/// time.
const PROTECTED: usize = 4 + 8 + 4 + 8 + 4;

/// Builds the world of a seed.
pub(super) fn crowd(seed: u64, is_logged: bool) -> Plot {
    let mut random = Random::new(seed, "crowd");
    let old = usize::try_from(random.between(1, 8)).unwrap();
    let places = PROTECTED + 2 * old;
    let has_many_groups = random.chance(500);
    let connect = ConnectSettings { automatic_max: OUTBOUND_PLACES + places, ..ConnectSettings::default() };
    let world = World::new(seed, U256::ZERO, connect, is_logged);
    let mut plot = Plot::new(world, Shown::all(&ground().honest), Duration::from_secs(120), random);
    plot.inbound_max = places;
    plot.honest(ConnectionKind::OutboundFullRelay);
    for _ in 0..old {
        plot.guest(Duration::from_secs(1), Duration::from_secs(4));
    }
    for number in 0..places + 20 {
        let group = if has_many_groups { plot.random.below(40) } else { 0 };
        let address = 60 << 24 | group << 16 | (number as u64 + 1);
        let endpoint = Endpoint::new(NetAddr::Ipv4(u32::try_from(address).unwrap().into()), 8333);
        let times = u32::try_from(plot.random.below(6)).unwrap();
        let mut actor = Actor::new("crowding", endpoint, ConnectionKind::Inbound, Box::new(Crowding::new(times)));
        actor.body.verdict = Verdict::Spared;
        let wire = Wire { is_v2: plot.random.chance(100), is_shredded: false, ..plot.wire() };
        let after = Duration::from_millis(plot.random.between(7_000, 25_000));
        plot.world.add(actor, wire, after);
    }
    if !has_many_groups {
        // At least two of the attacker's peers are unprotected at any time, so one of them is evicted.
        let most = u64::try_from(old).unwrap().saturating_sub(1);
        for _ in 0..plot.random.below(5).min(most.saturating_sub(1)) {
            plot.guest(Duration::from_secs(20), Duration::from_secs(30));
        }
    }
    plot
}

impl Plot {
    /// Adds an honest inbound peer that has the node's chain.
    fn guest(&mut self, from: Duration, to: Duration) {
        let mut actor = self.actor("guest", ConnectionKind::Inbound, Box::new(Honest::default()));
        actor.body.verdict = Verdict::Honest;
        let wire = Wire { is_shredded: false, ..self.wire() };
        let after = Duration::from_millis(
            self.random.between(u64::try_from(from.as_millis()).unwrap(), u64::try_from(to.as_millis()).unwrap()),
        );
        self.world.add(actor, wire, after);
    }
}
