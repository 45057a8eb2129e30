//! Blocks off the path to the best header: a branch with equal work, and blocks that a peer announces or the operator
//! submits.
//!
//! Input: a seed. Output: a [`Plot`].

use super::Plot;
use crate::actor::{Actor, Shown, Verdict};
use crate::ground::{HONEST_HEIGHT, SOON, ground};
use crate::link::Wire;
use crate::natures::{ANNOUNCED, Announcing, Branching, Honest, Listening};
use crate::world::World;
use lydian_chains::rng::Random;
use lydian_consensus::U256;
use lydian_p2p::manager::ConnectSettings;
use lydian_p2p::peer::ConnectionKind;
use std::time::Duration;

/// Time by which the node has requested everything that the honest peers have.
const SETTLED: Duration = Duration::from_secs(40);

/// Number of blocks that the operator submits.
const SUBMITTED: u32 = 2;

/// Builds the world of a seed.
pub(super) fn listeners(seed: u64, is_logged: bool) -> Plot {
    let mut random = Random::new(seed, "listeners");
    let has_branch = random.chance(500);
    let world = World::new(seed, U256::ZERO, ConnectSettings::default(), is_logged);
    let mut plot = Plot::new(world, Shown::all(&ground().honest), Duration::from_secs(120), random);
    let height = if has_branch { HONEST_HEIGHT } else { HONEST_HEIGHT - SUBMITTED - ANNOUNCED };
    for _ in 0..plot.random.between(1, 3) {
        let kind = plot.kind();
        let actor = plot.actor("honest", kind, Box::new(Honest::default()));
        plot.guest_at(actor, height, Duration::from_secs(1));
    }
    if has_branch {
        plot.set_clock();
        let kind = plot.kind();
        let actor = plot.actor("branching", kind, Box::new(Branching::default()));
        plot.guest_at(actor, HONEST_HEIGHT, SETTLED);
    } else {
        plot.world.unix_begin = SOON;
        plot.announcements(height);
    }
    plot
}

impl Plot {
    /// One peer announces blocks. Then the operator submits two more: one peer must get announcements of both, and a
    /// peer that connects afterwards must get none.
    fn announcements(&mut self, height: u32) {
        let announced = height + ANNOUNCED;
        let kind = self.kind();
        let actor = self.actor("announcing", kind, Box::new(Announcing::new(SETTLED, announced)));
        self.guest_at(actor, height, SETTLED - Duration::from_secs(10));
        let hashes = (announced + 1..=HONEST_HEIGHT).map(|height| ground().honest.at(height).hash);
        let early = Listening::early(hashes.collect());
        let actor = self.actor("early", ConnectionKind::Inbound, Box::new(early));
        let settled = SETTLED + SETTLED / 2;
        self.guest_at(actor, announced, settled);
        // The node next checks its chain a tenth of a second later.
        let submitted = settled + SETTLED / 2 + Duration::from_millis(10);
        self.world.submit(submitted, announced + 1, HONEST_HEIGHT);
        let actor = self.actor("late", ConnectionKind::Inbound, Box::new(Listening::late()));
        self.guest_at(actor, announced, submitted + Duration::from_millis(1));
    }

    /// Adds an honest peer over a fast wire.
    fn guest_at(&mut self, mut actor: Actor, height: u32, after: Duration) {
        actor.body.verdict = Verdict::Honest;
        actor.body.shown.height = height;
        let wire = Wire { rate: 20_000_000, latency: Duration::from_millis(1), is_shredded: false, ..self.wire() };
        self.world.add(actor, wire, after);
    }
}
