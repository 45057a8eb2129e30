//! A node with a `-minimumchainwork` above what a few headers messages have.
//!
//! It downloads the headers twice, and some of its peers send false ones. Input: a seed. Output: a [`Plot`].

use super::Plot;
use crate::actor::{Shown, Verdict};
use crate::heavy::{HEAVY_HEIGHT, heavy, minimum_chain_work};
use crate::link::Wire;
use crate::natures::{Cut, Cutting, Honest, Presync, Stall, Stalling, Trick};
use crate::world::World;
use lydian_chains::rng::Random;
use lydian_p2p::manager::ConnectSettings;
use lydian_p2p::peer::ConnectionKind;
use std::sync::Arc;
use std::time::Duration;

/// Time limit for the chain: each of the liars may be the sync peer in turn, and the node waits 26 minutes for such a
/// chain.
const DEADLINE: Duration = Duration::from_secs(5 * 30 * 60);

/// Builds the world of a seed.
pub(super) fn long(seed: u64, is_logged: bool) -> Plot {
    let random = Random::new(seed, "long");
    let world = World::new(seed, minimum_chain_work(), ConnectSettings::default(), is_logged);
    let mut plot = Plot::new(world, Shown::all(&heavy().honest), DEADLINE, random);
    plot.coins = heavy().coins;
    let mut tricks = Trick::ALL.to_vec();
    for _ in 0..plot.random.between(1, 4) {
        let trick = tricks.swap_remove(plot.random.index(tricks.len()));
        plot.liar(trick);
    }
    if plot.random.chance(300) {
        let kind = plot.kind();
        let mut actor = plot.actor("stalling", kind, Box::new(Stalling::new(Stall::Mute)));
        actor.body.shown = Shown::all(&heavy().honest);
        plot.join(actor, 5);
    }
    if plot.random.chance(300) {
        let actor = plot.actor("cutting", ConnectionKind::Inbound, Box::new(Cutting::new(Cut::Noise)));
        let wire = Wire { is_v2: false, ..plot.fast_wire() };
        plot.world.add(actor, wire, Duration::from_secs(2));
    }
    plot.honest_heavy(ConnectionKind::OutboundFullRelay);
    for _ in 0..plot.random.below(3) {
        let kind = plot.kind();
        plot.honest_heavy(kind);
    }
    plot
}

impl Plot {
    fn liar(&mut self, trick: Trick) {
        let kinds = [ConnectionKind::Inbound, ConnectionKind::OutboundFullRelay, ConnectionKind::BlockRelayOnly];
        let kind = if trick == Trick::Squeezed { kinds[1] } else { kinds[self.random.index(3)] };
        let times = match trick {
            // Between some hundred thousand headers and a million.
            Trick::Restarts => [10, 10, 20, 130][self.random.index(4)],
            _ => u32::try_from(self.random.below(5)).unwrap(),
        };
        let actor = self.actor("lying of work", kind, Box::new(Presync::new(trick, times)));
        self.join(actor, 5);
    }

    /// Adds a peer with all but the last blocks of the chain, which it gets later.
    fn honest_heavy(&mut self, kind: ConnectionKind) {
        let chain = &heavy().honest;
        let first = HEAVY_HEIGHT - u32::try_from(self.random.below(10)).unwrap();
        let changes = (first + 1..=HEAVY_HEIGHT).zip(1_u32..).map(|(height, number)| {
            let time = Duration::from_secs(40) * number;
            (time, Shown { height, chain: Arc::clone(chain) })
        });
        let mut actor = self.actor("honest", kind, Box::new(Honest::new(changes.collect())));
        actor.body.shown = Shown { height: first, chain: Arc::clone(chain) };
        actor.body.verdict = Verdict::Honest;
        self.join(actor, 30);
    }

    fn join(&mut self, actor: crate::actor::Actor, within_seconds: u64) {
        let after = Duration::from_millis(self.random.below(within_seconds * 1_000));
        let wire = self.fast_wire();
        self.world.add(actor, wire, after);
    }

    fn fast_wire(&mut self) -> Wire {
        let wire = self.wire();
        Wire { rate: wire.rate.max(2_000_000), is_shredded: false, ..wire }
    }
}
