//! Only one peer has the last blocks, and it has a property for which the node treats it differently.
//!
//! Input: a seed. Output: a [`Plot`].

use super::Plot;
use crate::actor::{Actor, Shown, Verdict};
use crate::ground::{SOON, ground};
use crate::natures::{Honest, Twin};
use crate::world::World;
use lydian_chains::rng::Random;
use lydian_consensus::U256;
use lydian_p2p::manager::ConnectSettings;
use lydian_p2p::peer::{ConnectionKind, Permissions};
use lydian_wire::Services;
use std::sync::Arc;
use std::time::Duration;

/// The property of the only source.
#[derive(Clone, Copy, Debug)]
enum Sole {
    /// It is inbound, while the node has peers that it prefers for its initial download.
    Inbound,
    /// It does not offer `NODE_NETWORK`, and announces blocks.
    NoNetwork,
    /// It is trusted, and sends mutated twins first.
    Twin,
}

/// Height up to which the initial download lasts: these blocks are older than a day.
const INITIAL_HEIGHT: u32 = 25;

/// Height above which blocks are so recent that they are requested when they are announced.
const RECENT_HEIGHT: u32 = 125;

/// Builds the world of a seed.
pub(super) fn sources(seed: u64, is_logged: bool) -> Plot {
    let mut random = Random::new(seed, "sources");
    let sole = [Sole::Inbound, Sole::NoNetwork, Sole::Twin][random.index(3)];
    let world = World::new(seed, U256::ZERO, ConnectSettings::default(), is_logged);
    let mut plot = Plot::new(world, Shown::all(&ground().honest), Duration::from_secs(120), random);
    let (height, others) = match sole {
        Sole::Inbound => {
            (plot.random.between(0, INITIAL_HEIGHT.into()), [ConnectionKind::OutboundFullRelay, ConnectionKind::Manual])
        }
        Sole::NoNetwork => {
            plot.world.unix_begin = SOON;
            (
                plot.random.between(RECENT_HEIGHT.into(), 130),
                [ConnectionKind::OutboundFullRelay, ConnectionKind::Inbound],
            )
        }
        Sole::Twin => {
            plot.set_clock();
            (
                plot.random.between(RECENT_HEIGHT.into(), 134),
                [ConnectionKind::OutboundFullRelay, ConnectionKind::Inbound],
            )
        }
    };
    let height = u32::try_from(height).unwrap();
    for _ in 0..plot.random.between(1, 3) {
        let kind = others[plot.random.index(2)];
        let mut actor = plot.actor("short", kind, Box::new(Honest::default()));
        actor.body.shown.height = height;
        actor.body.verdict = Verdict::Honest;
        plot.enter(actor, false);
    }
    let mut actor = plot.sole(sole, height);
    actor.body.verdict = Verdict::Honest;
    plot.enter(actor, false);
    plot
}

impl Plot {
    fn sole(&mut self, sole: Sole, height: u32) -> Actor {
        match sole {
            Sole::Inbound => self.actor("sole", ConnectionKind::Inbound, Box::new(Honest::default())),
            Sole::NoNetwork => {
                let chain = &ground().honest;
                let grow = |height: u32| {
                    let time = Duration::from_secs(u64::from(30 + height - RECENT_HEIGHT));
                    (time, Shown { height, chain: Arc::clone(chain) })
                };
                let changes = (height + 1..=chain.height()).map(grow).collect();
                let mut actor = self.actor("no network", ConnectionKind::Inbound, Box::new(Honest::new(changes)));
                actor.body.services = Services::WITNESS;
                actor.body.shown.height = height;
                actor
            }
            Sole::Twin => {
                let mut actor = self.actor("twin", ConnectionKind::Manual, Box::new(Twin::new(height)));
                if self.random.chance(500) {
                    (actor.body.kind, actor.body.permissions) = (ConnectionKind::Inbound, Permissions::NO_BAN);
                }
                actor
            }
        }
    }
}
