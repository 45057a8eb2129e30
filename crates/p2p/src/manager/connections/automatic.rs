//! Automatic connections: which peers are asked for addresses, and which address is connected to next.
//!
//! Core's `ThreadOpenConnections`, `ThreadDNSAddressSeed` and `ProcessAddrFetch`, with one step every half second.
//! [`crate::outbound`] and [`crate::seeding`] make the choices.

use super::{Connections, Destination, Lookup, LookupId, Plan, Slot};
use crate::draw;
use crate::limits::DNS_SEED_ADDRESSES_MAX;
use crate::manager::Action;
use crate::manager::addresses::Addresses;
use crate::manager::context::Context;
use crate::outbound::{FEELER_DELAY_MAX, Outbound, Scene};
use crate::peer::ConnectionKind;
use crate::seeding::DnsSeed;
use lydian_wire::{NetAddr, Services};
use std::time::Duration;

impl Connections {
    /// Initializes, at the first tick, what depends on the time or on data that is loaded by then.
    pub(super) fn begin_choosing(&mut self, context: &mut Context, addresses: &mut Addresses) {
        if self.outbound.is_some() {
            return;
        }
        addresses.begin_seednodes(context);
        let settings = &context.settings.connect;
        let anchors = if settings.chooses_peers { settings.anchors.clone() } else { Vec::new() };
        let (chooses_peers, automatic_max) = (settings.chooses_peers, settings.automatic_max);
        if chooses_peers {
            context.log_info(format!("{} block-relay-only anchors will be tried for connections.", anchors.len()));
        }
        self.outbound = Some(Outbound::new(automatic_max, anchors, context.now, &mut context.random));
        addresses.begin_seeding(context);
    }

    /// Queries DNS seeds.
    pub(super) fn step_seeds(&mut self, context: &mut Context, addresses: &mut Addresses) {
        let seeds = addresses.seeds_to_query(context);
        seeds.into_iter().for_each(|seed| self.ask_seed(context, seed));
        self.log_seeds_found(context, addresses);
    }

    /// Logs the end of DNS seeding once all names were queried and have answered.
    pub(super) fn log_seeds_found(&mut self, context: &mut Context, addresses: &mut Addresses) {
        if !self.lookups.values().any(|lookup| matches!(lookup, Lookup::Seed(_))) {
            addresses.log_seeds_found(context);
        }
    }

    fn ask_seed(&mut self, context: &mut Context, seed: DnsSeed) {
        context.log_info(format!("Loading addresses from DNS seed {}", seed.name));
        if context.settings.connect.has_name_proxy || NetAddr::is_private_name(&seed.name) {
            return self.addr_fetches.push_back(seed.name);
        }
        let lookup = LookupId(self.new_id());
        context.actions.push(Action::Resolve { lookup, host: seed.host.clone(), count_max: DNS_SEED_ADDRESSES_MAX });
        self.lookups.insert(lookup, Lookup::Seed(seed));
    }

    /// Makes the next automatic connection.
    pub(super) fn step_automatic(&mut self, context: &mut Context, addresses: &mut Addresses) {
        if !context.settings.connect.chooses_peers {
            return;
        }
        if let Some(seednode) = addresses.next_seednode(context) {
            self.addr_fetches.push_back(seednode);
        }
        self.fetch_addresses(context, addresses);
        if self.slots_used(context, Slot::Outbound) >= self.outbound_slots(context) {
            return;
        }
        addresses.use_fixed_seeds(context);
        addresses.time_seednodes(context);
        self.choose_peer(context, addresses);
    }

    /// Core's `ProcessAddrFetch`: one at a time, dropped if there is no free slot.
    fn fetch_addresses(&mut self, context: &mut Context, addresses: &mut Addresses) {
        let Some(name) = self.addr_fetches.pop_front() else { return };
        if self.slots_used(context, Slot::Outbound) < self.outbound_slots(context) {
            let (kind, to) = (ConnectionKind::AddrFetch, Destination::Name(name));
            let v2 = context.settings.connect.v2;
            self.open(context, addresses, Plan { kind, to, v2, count_failure: false, slot: Slot::Outbound });
        }
    }

    fn choose_peer(&mut self, context: &mut Context, addresses: &mut Addresses) {
        let is_near_tip = context.is_near_tip();
        let connections: Vec<_> =
            context.peers.values().map(|peer| (peer.kind(), peer.talk.connection.endpoint)).collect();
        let attempts = self.attempts.values();
        let attempts: Vec<_> =
            attempts.filter_map(|attempt| attempt.endpoint().map(|endpoint| (attempt.kind(), endpoint))).collect();
        let added: Vec<_> = self.added.iter().map(|added| added.target.as_str()).collect();
        let scene = Scene {
            now: context.now,
            connections: &connections,
            attempts: &attempts,
            reachable: &context.settings.reachable,
            own: &context.settings.local.own,
            added: &added,
            is_near_tip,
            wants_extra_full_relay: self.extra.tries_full_relay,
            wants_extra_block_relay: self.extra.is_synced,
        };
        let Some(outbound) = &mut self.outbound else { return };
        let Some(wish) = outbound.next(&scene, addresses.tables_mut(), &mut context.random) else { return };
        let is_feeler = wish.kind == ConnectionKind::Feeler;
        let to = wish.address.endpoint;
        match wish.preferred {
            _ if wish.is_anchor => context.log_debug(format!("Trying to make an anchor connection to {to}")),
            Some(network) => {
                context.log_debug(format!("Making network specific connection to {to} on {}.", network.name()))
            }
            None if is_feeler => context.log_debug(format!("Making feeler connection to {to}")),
            None => {}
        }
        let delay = if is_feeler { FEELER_DELAY_MAX.mul_f64(draw::unit(&mut context.random)) } else { Duration::ZERO };
        let plan = Plan {
            kind: wish.kind,
            to: Destination::Address(wish.address),
            v2: context.settings.connect.v2 && wish.address.services.contains(Services::P2P_V2),
            count_failure: wish.count_failure,
            slot: Slot::Outbound,
        };
        self.open_after(context, addresses, plan, delay);
    }
}
