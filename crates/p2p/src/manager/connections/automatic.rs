//! Automatic connections: which peers are asked for addresses, and which address is connected to next.
//!
//! Core's `ThreadOpenConnections`, `ThreadDNSAddressSeed` and `ProcessAddrFetch`, with one step every half second.
//! [`crate::outbound`] and [`crate::seeding`] make the choices.

use super::{Destination, Lookup, LookupId, Plan, Slot};
use crate::draw;
use crate::fixed_seeds::fixed_seeds_source;
use crate::limits::DNS_SEED_ADDRESSES_MAX;
use crate::manager::{Action, PeerManager};
use crate::outbound::{FEELER_DELAY_MAX, Outbound, Scene};
use crate::peer::ConnectionKind;
use crate::seeding::{DnsSeed, PEERS_ENOUGH, Seeding, SeedingSettings};
use lydian_engine::{LogLevel, LogLine};
use lydian_wire::{NetAddr, Services};
use std::time::Duration;

/// The time until the next `-seednode` is asked: Core's `ADD_NEXT_SEEDNODE`.
const NEXT_SEEDNODE: Duration = Duration::from_secs(10);

/// The `-seednode` nodes that were not asked yet.
#[derive(Clone, Debug, Default)]
pub(in crate::manager) struct Seednodes {
    left: Vec<String>,
    last: Duration,
    is_due: bool,
}

impl PeerManager {
    /// Initializes, at the first tick, what depends on the time or on data that is loaded by then.
    pub(in crate::manager) fn begin_choosing(&mut self) {
        if self.connector.outbound.is_some() {
            return;
        }
        let settings = &self.connector.settings;
        let (now, random) = (self.context.now, &mut self.context.random);
        let mut left = if settings.chooses_peers { settings.seednodes.clone() } else { Vec::new() };
        draw::shuffle(&mut left, random);
        let seeding = SeedingSettings {
            dns: settings.dns_seed,
            force_dns: settings.force_dns_seed,
            names: settings.dns_seeds.clone(),
            fixed: settings.fixed_seeds,
            chooses_peers: settings.chooses_peers,
            has_seednodes: !settings.seednodes.is_empty(),
            has_added_nodes: !settings.added.is_empty(),
        };
        let anchors = if settings.chooses_peers { settings.anchors.clone() } else { Vec::new() };
        if settings.chooses_peers {
            let text = format!("{} block-relay-only anchors will be tried for connections.", anchors.len());
            self.context.actions.push(Action::Log(LogLine::new(LogLevel::Info, text)));
        }
        let is_due = self.addrman.is_empty() && !left.is_empty();
        self.connector.seednodes = Seednodes { left, last: now.mockable, is_due };
        self.connector.outbound = Some(Outbound::new(settings.automatic_max, anchors, now, random));
        self.connector.seeding =
            Some(Seeding::new(self.context.settings.params.chain, seeding, &self.addrman, now, random));
    }

    /// Queries DNS seeds.
    pub(in crate::manager) fn step_seeds(&mut self) {
        let of_kind = self.context.peers.values().filter(|peer| peer.kind() == ConnectionKind::OutboundFullRelay);
        let peers = of_kind.filter(|peer| peer.is_ready()).count();
        let Some(seeding) = &mut self.connector.seeding else { return };
        let seeds = seeding.names(peers, &self.addrman, self.context.now);
        let lines = seeding.take_lines();
        lines.into_iter().for_each(|line| self.context.log_info(line));
        seeds.into_iter().for_each(|seed| self.ask_seed(seed));
        self.log_seeds_found();
    }

    /// Logs the end of DNS seeding once all names were queried and have answered.
    pub(in crate::manager) fn log_seeds_found(&mut self) {
        let is_open = self.connector.lookups.values().any(|lookup| matches!(lookup, Lookup::Seed(_)));
        if !is_open && self.connector.seeding.as_mut().is_some_and(Seeding::ends) {
            self.context.log_info(format!("{} addresses found from DNS seeds", self.connector.seed_addresses));
        }
    }

    fn ask_seed(&mut self, seed: DnsSeed) {
        self.context.log_info(format!("Loading addresses from DNS seed {}", seed.name));
        if self.connector.settings.has_name_proxy || NetAddr::is_private_name(&seed.name) {
            return self.connector.addr_fetches.push_back(seed.name);
        }
        let lookup = LookupId(self.connector.new_id());
        self.context.actions.push(Action::Resolve {
            lookup,
            host: seed.host.clone(),
            count_max: DNS_SEED_ADDRESSES_MAX,
        });
        self.connector.lookups.insert(lookup, Lookup::Seed(seed));
    }

    /// Makes the next automatic connection.
    pub(in crate::manager) fn step_automatic(&mut self) {
        if !self.connector.chooses_peers() {
            return;
        }
        self.ask_seednode();
        self.fetch_addresses();
        if self.slots_used(Slot::Outbound) >= self.outbound_slots() {
            return;
        }
        self.use_fixed_seeds();
        self.time_seednodes();
        self.choose_peer();
    }

    fn ask_seednode(&mut self) {
        if !std::mem::take(&mut self.connector.seednodes.is_due) {
            return;
        }
        let Some(seednode) = self.connector.seednodes.left.pop() else { return };
        self.context.log_info(if self.addrman.is_empty() {
            format!("Empty addrman, adding seednode ({seednode}) to addrfetch")
        } else {
            format!(
                "Couldn't connect to peers from addrman after {} seconds. Adding seednode ({seednode}) to addrfetch",
                NEXT_SEEDNODE.as_secs()
            )
        });
        self.connector.addr_fetches.push_back(seednode);
    }

    fn time_seednodes(&mut self) {
        let full = self.context.peers.values().filter(|peer| peer.kind() == ConnectionKind::OutboundFullRelay).count();
        let seednodes = &mut self.connector.seednodes;
        if !seednodes.left.is_empty()
            && full < PEERS_ENOUGH
            && self.context.now.mockable > seednodes.last + NEXT_SEEDNODE
        {
            seednodes.last = self.context.now.mockable;
            seednodes.is_due = true;
        }
    }

    /// Core's `ProcessAddrFetch`: one at a time, dropped if there is no free slot.
    fn fetch_addresses(&mut self) {
        let Some(name) = self.connector.addr_fetches.pop_front() else { return };
        if self.slots_used(Slot::Outbound) < self.outbound_slots() {
            let (kind, to) = (ConnectionKind::AddrFetch, Destination::Name(name));
            let v2 = self.connector.settings.v2;
            self.open(Plan { kind, to, v2, count_failure: false, slot: Slot::Outbound });
        }
    }

    fn use_fixed_seeds(&mut self) {
        let Some(seeding) = &mut self.connector.seeding else { return };
        let seeds =
            seeding.fixed(&self.context.settings.reachable, &self.addrman, self.context.now, &mut self.context.random);
        let lines = seeding.take_lines();
        lines.into_iter().for_each(|line| self.context.log_info(line));
        if !seeds.is_empty() {
            for seed in &seeds {
                self.context.log_debug(format!("Added hardcoded seed: {}", seed.endpoint));
            }
            self.addrman.add(&seeds, &fixed_seeds_source(), 0, self.context.now.unix);
            self.context.log_info(format!("Added {} fixed seeds from reachable networks.", seeds.len()));
        }
    }

    fn choose_peer(&mut self) {
        let is_near_tip = self.context.is_near_tip();
        let connections: Vec<_> =
            self.context.peers.values().map(|peer| (peer.kind(), peer.talk.connection.endpoint)).collect();
        let attempts = self.connector.attempts.values();
        let attempts: Vec<_> =
            attempts.filter_map(|attempt| attempt.endpoint().map(|endpoint| (attempt.kind(), endpoint))).collect();
        let added: Vec<_> = self.connector.added.iter().map(|added| added.target.as_str()).collect();
        let scene = Scene {
            now: self.context.now,
            connections: &connections,
            attempts: &attempts,
            reachable: &self.context.settings.reachable,
            own: &self.context.settings.local.own,
            added: &added,
            is_near_tip,
            wants_extra_full_relay: self.tries_extra_peer,
            wants_extra_block_relay: self.connector.extra.is_synced,
        };
        let Some(outbound) = &mut self.connector.outbound else { return };
        let Some(wish) = outbound.next(&scene, &mut self.addrman, &mut self.context.random) else { return };
        let is_feeler = wish.kind == ConnectionKind::Feeler;
        let to = wish.address.endpoint;
        match wish.preferred {
            _ if wish.is_anchor => self.context.log_debug(format!("Trying to make an anchor connection to {to}")),
            Some(network) => {
                self.context.log_debug(format!("Making network specific connection to {to} on {}.", network.name()))
            }
            None if is_feeler => self.context.log_debug(format!("Making feeler connection to {to}")),
            None => {}
        }
        let delay =
            if is_feeler { FEELER_DELAY_MAX.mul_f64(draw::unit(&mut self.context.random)) } else { Duration::ZERO };
        let plan = Plan {
            kind: wish.kind,
            to: Destination::Address(wish.address),
            v2: self.connector.settings.v2 && wish.address.services.contains(Services::P2P_V2),
            count_failure: wish.count_failure,
            slot: Slot::Outbound,
        };
        self.open_after(plan, delay);
    }
}
