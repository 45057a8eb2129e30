//! Requests of the operator: added nodes, one-time connections, disconnections, bans, disabling and enabling the
//! network.
//!
//! Core's `AddNode`, `ThreadOpenAddedConnections`, the first part of `ThreadOpenConnections`, `DisconnectNode`,
//! `SetNetworkActive`, and `setban`.

use super::{Connections, Destination, Plan, Slot};
use crate::limits::ADDED_NODES_CONNECTED_MAX;
use crate::manager::PeerId;
use crate::manager::addresses::Addresses;
use crate::manager::context::Context;
use crate::outbound::{OUTBOUND_INTERVAL, split};
use crate::peer::ConnectionKind;
use lydian_wire::{Endpoint, Subnet};
use std::collections::VecDeque;
use std::time::Duration;

/// The time until added nodes are checked again, if one was tried, and if none was.
const ADDED_INTERVAL: Duration = Duration::from_secs(60);
const ADDED_INTERVAL_IDLE: Duration = Duration::from_secs(2);

/// The number of rounds after which the pause between two nodes of `-connect` no longer grows.
const SPECIFIED_ROUNDS_COUNTED: u32 = 10;

/// An added node, as reported to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedNode {
    /// As given by the operator.
    pub target: String,
    pub v2: bool,
    /// The address of the connection, and whether it is inbound.
    pub connected: Option<(Endpoint, bool)>,
}

/// A node to keep connected.
#[derive(Clone, Debug)]
pub(in crate::manager) struct Added {
    pub(in crate::manager) target: String,
    pub(in crate::manager) v2: bool,
}

/// The state of the rounds through added nodes.
#[derive(Clone, Debug, Default)]
pub(in crate::manager) struct AddedRounds {
    next: Duration,
    /// The nodes left in this round.
    left: Option<VecDeque<Added>>,
    has_tried: bool,
}

/// The state of the rounds through the nodes of `-connect`.
#[derive(Clone, Debug, Default)]
pub(in crate::manager) struct SpecifiedRounds {
    next: Duration,
    index: usize,
    round: u32,
}

impl Connections {
    /// Keeps a node connected from now on. Returns false if it already was added.
    pub(in crate::manager) fn add_node(&mut self, context: &Context, target: &str, v2: bool) -> bool {
        let port = context.settings.connect.default_port;
        let endpoint = Endpoint::parse(target, port).ok().filter(|endpoint| endpoint.addr.is_valid());
        let is_same = |added: &Added| {
            added.target == target || endpoint.is_some() && Endpoint::parse(&added.target, port).ok() == endpoint
        };
        if self.added.iter().any(is_same) {
            return false;
        }
        self.added.push(Added { target: target.to_owned(), v2 });
        true
    }

    /// Stops keeping a node connected; its connection stays open. Returns false if no node was added with exactly this
    /// text.
    pub(in crate::manager) fn remove_added_node(&mut self, target: &str) -> bool {
        let found = self.added.iter().position(|added| added.target == target);
        found.map(|index| self.added.remove(index)).is_some()
    }

    /// Core's `GetAddedNodeInfo`.
    pub(in crate::manager) fn added_nodes(&self, context: &Context) -> Vec<AddedNode> {
        let node = |added: &Added| AddedNode {
            target: added.target.clone(),
            v2: added.v2,
            connected: self.connection_of(context, &added.target),
        };
        self.added.iter().map(node).collect()
    }

    /// Returns the connection of a node, by its address or, if it is not an address, by its name.
    fn connection_of(&self, context: &Context, target: &str) -> Option<(Endpoint, bool)> {
        let endpoint = Endpoint::parse(target, context.settings.connect.default_port);
        let endpoint = endpoint.ok().filter(|endpoint| endpoint.addr.is_valid());
        let endpoint = endpoint.map(|endpoint| self.classified(context, endpoint));
        let peer = context.peers.values().find(|peer| match endpoint {
            Some(endpoint) => peer.talk.connection.endpoint == endpoint,
            None => peer.link.name == target,
        })?;
        Some((peer.talk.connection.endpoint, peer.kind().is_inbound()))
    }

    /// Connects to a node once: `addnode onetry`.
    pub(in crate::manager) fn connect_once(
        &mut self,
        context: &mut Context,
        addresses: &mut Addresses,
        target: &str,
        v2: bool,
    ) {
        let to = Destination::Name(target.to_owned());
        self.open(
            context,
            addresses,
            Plan { kind: ConnectionKind::Manual, to, v2, count_failure: false, slot: Slot::None },
        );
    }

    /// Makes a connection of a type that is otherwise automatic: `addconnection`, on regtest. Returns false if there is
    /// no free slot.
    pub(in crate::manager) fn add_connection(
        &mut self,
        context: &mut Context,
        addresses: &mut Addresses,
        target: &str,
        kind: ConnectionKind,
        v2: bool,
    ) -> bool {
        let (full, blocks) = split(context.settings.connect.automatic_max);
        let count = context.peers.values().filter(|peer| peer.kind() == kind).count();
        let has_room = match kind {
            ConnectionKind::Inbound | ConnectionKind::Manual => false,
            ConnectionKind::OutboundFullRelay => count < full,
            ConnectionKind::BlockRelayOnly => count < blocks,
            ConnectionKind::AddrFetch | ConnectionKind::Feeler => true,
        };
        if !has_room || self.slots_used(context, Slot::Outbound) >= self.outbound_slots(context) {
            return false;
        }
        let to = Destination::Name(target.to_owned());
        self.open(context, addresses, Plan { kind, to, v2, count_failure: false, slot: Slot::Outbound });
        true
    }

    /// Closes the connection with this name; if it has no other name, that is its address and port.
    pub(in crate::manager) fn disconnect_endpoint(&mut self, context: &mut Context, address: &str) -> bool {
        let found = context.peers.values().find(|peer| peer.link.name == address).map(|peer| peer.id);
        let shown = if context.switches.has_ips() { format!("={address}") } else { String::new() };
        if let Some(id) = found {
            context.leave(id, format!("disconnect by address{shown} match"));
        }
        found.is_some()
    }

    pub(in crate::manager) fn disconnect_peer(&mut self, context: &mut Context, id: PeerId) -> bool {
        let is_there = context.peers.contains_key(&id);
        context.leave(id, "disconnect by id");
        is_there
    }

    /// Closes the connections to all addresses of a subnet.
    pub(in crate::manager) fn disconnect_subnet(&mut self, context: &mut Context, subnet: &Subnet) -> bool {
        let is_in = |id: &PeerId| {
            context.peers.get(id).is_some_and(|peer| subnet.contains(&peer.talk.connection.endpoint.addr))
        };
        let found: Vec<_> = context.peers.keys().copied().filter(is_in).collect();
        let shown = if context.switches.has_ips() { format!("={subnet}") } else { String::new() };
        found.iter().for_each(|id| context.leave(*id, format!("disconnect by subnet{shown} match")));
        !found.is_empty()
    }

    /// Disables or enables the network: `setnetworkactive`. Disabling closes all connections.
    pub(in crate::manager) fn set_network_active(&mut self, context: &mut Context, on: bool) {
        context.log_info(format!("SetNetworkActive: {on}"));
        self.is_active = on;
        if !on {
            self.attempts.clear();
            let ids: Vec<_> = context.peers.keys().copied().collect();
            ids.into_iter().for_each(|id| context.leave(id, "Network not active"));
        }
    }

    pub(in crate::manager) fn is_network_active(&self) -> bool {
        self.is_active
    }

    /// Connects to the nodes of `-connect` repeatedly. As in Core, the pause grows from round to round, up to five
    /// seconds.
    pub(super) fn step_specified(&mut self, context: &mut Context, addresses: &mut Addresses) {
        while context.now.elapsed >= self.specified_rounds.next {
            let settings = &context.settings.connect;
            let Some(target) = settings.specified.get(self.specified_rounds.index) else { return };
            let to = Destination::Name(target.clone());
            let (v2, count) = (settings.v2, settings.specified.len());
            self.open(
                context,
                addresses,
                Plan { kind: ConnectionKind::Manual, to, v2, count_failure: false, slot: Slot::None },
            );
            let rounds = &mut self.specified_rounds;
            rounds.next = context.now.elapsed + OUTBOUND_INTERVAL * rounds.round;
            rounds.index += 1;
            if rounds.index == count {
                rounds.index = 0;
                rounds.round = (rounds.round + 1).min(SPECIFIED_ROUNDS_COUNTED);
                rounds.next += OUTBOUND_INTERVAL;
            }
        }
    }

    /// Connects to added nodes that are not connected, one at a time, as long as there are free slots.
    pub(super) fn step_added(&mut self, context: &mut Context, addresses: &mut Addresses) {
        let rounds = &mut self.added_rounds;
        if context.now.elapsed < rounds.next {
            return;
        }
        let mut left = match rounds.left.take() {
            Some(left) => left,
            None => {
                rounds.has_tried = false;
                let added = self.added.iter();
                added.filter(|added| self.connection_of(context, &added.target).is_none()).cloned().collect()
            }
        };
        let has_room = self.slots_used(context, Slot::Added) < ADDED_NODES_CONNECTED_MAX;
        if has_room && let Some(Added { target, v2 }) = left.pop_front() {
            self.added_rounds.has_tried = true;
            let to = Destination::Name(target);
            self.open(
                context,
                addresses,
                Plan { kind: ConnectionKind::Manual, to, v2, count_failure: false, slot: Slot::Added },
            );
            self.added_rounds.left = Some(left);
            return;
        }
        let rounds = &mut self.added_rounds;
        let pause = if rounds.has_tried { ADDED_INTERVAL } else { ADDED_INTERVAL_IDLE };
        rounds.next = context.now.elapsed + pause;
    }
}
