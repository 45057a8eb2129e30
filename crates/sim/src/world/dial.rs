//! Connection attempts of the node: they reach listening peers, peers of one attacker, or time out.
//!
//! Input: the attempts that the manager makes. Output: connections or failures, each after a plausible time.

use super::{Event, World};
use crate::actor::{Actor, Verdict};
use crate::link::Wire;
use crate::natures::{Lie, Lying, Stall, Stalling, attacker_addresses, is_attackers};
use lydian_p2p::driver;
use lydian_p2p::manager::{AttemptFailure, AttemptId};
use lydian_p2p::peer::ConnectionKind;
use lydian_p2p::proxies::Target;
use lydian_wire::Endpoint;
use std::time::Duration;

/// Time until an attempt without an answer fails.
const NO_ANSWER: Duration = Duration::from_secs(2);

/// Limit for the number of peers in one world, above which the attacker accepts no more connections.
const STRANGERS_MAX: usize = 150;

/// Height of the chain that the attacker shows.
pub const ATTACKER_HEIGHT: u32 = 20;

/// An attempt in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dial {
    pub(super) attempt: AttemptId,
    kind: ConnectionKind,
    endpoint: Endpoint,
    v2: bool,
}

impl World {
    pub(super) fn try_to_connect(&mut self, attempt: AttemptId, kind: ConnectionKind, target: &Target, v2: bool) {
        let Target::Endpoint(endpoint) = target else { panic!("no name is dialled here: {target}") };
        let dial = Dial { attempt, kind, endpoint: *endpoint, v2 };
        let answers = self.listener(endpoint).is_some() || is_attackers(&endpoint.addr);
        let after = if answers { Duration::from_millis(self.random.between(2, 300)) } else { NO_ANSWER };
        self.at(after, Event::Dialled(dial));
    }

    /// Returns the actor that listens at this address and is not connected to the node.
    fn listener(&self, endpoint: &Endpoint) -> Option<usize> {
        let listens = |index: &usize| self.actors[*index].body.endpoint == *endpoint && self.standing[*index].is_none();
        (0..self.actors.len()).find(listens)
    }

    pub(super) fn dialled(&mut self, dial: Dial) {
        let Dial { attempt, kind, endpoint, v2 } = dial;
        let has_room = self.actors.len() < STRANGERS_MAX;
        let index = match self.listener(&endpoint) {
            Some(index) => index,
            None if is_attackers(&endpoint.addr) && has_room => self.stranger(endpoint, kind),
            None => {
                let failure = AttemptFailure::Target { reason: "timeout".to_owned() };
                return driver::drive(self, driver::Event::AttemptFailed { attempt, failure });
            }
        };
        self.actors[index].body.kind = kind;
        self.wires[index].is_v2 = v2;
        self.stand(index, Some(attempt));
        self.look_at_groups();
    }

    /// Adds another peer of the attacker.
    fn stranger(&mut self, endpoint: Endpoint, kind: ConnectionKind) -> usize {
        let (name, nature): (_, Box<dyn crate::actor::Nature>) = match self.random.below(5) {
            0 => ("sybil", Box::new(Stalling::new(Stall::Mute))),
            1 => ("sybil", Box::new(Lying::new(Lie::Withheld))),
            2 | 3 => ("sybil", Box::new(Lying::new(Lie::Ends))),
            _ => ("sybil", Box::new(Lying::new(Lie::Silent))),
        };
        let mut actor = Actor::new(name, endpoint, kind, nature);
        actor.body.verdict = Verdict::Spared;
        actor.body.shown.height = ATTACKER_HEIGHT;
        let time = self.moment().unix.to_u32();
        actor.body.addresses = attacker_addresses(1_000, &mut self.random, time);
        let wire = Wire { rate: 2_000_000, latency: Duration::from_millis(20), is_shredded: false, is_v2: true };
        self.enter(actor, wire)
    }

    /// Checks that no two outbound peers that the node chose to keep are in the same group.
    fn look_at_groups(&mut self) {
        let is_kept = |kind| matches!(kind, ConnectionKind::OutboundFullRelay | ConnectionKind::BlockRelayOnly);
        let standing = self.links.values().filter(|link| link.farewell.is_none()).map(|link| link.actor);
        let kept = standing.map(|actor| &self.actors[actor].body).filter(|body| is_kept(body.kind));
        let mut groups: Vec<_> = kept.map(|body| body.endpoint.addr.netgroup()).collect();
        let count = groups.len();
        groups.sort();
        groups.dedup();
        self.has_twin_groups |= groups.len() < count;
    }
}
