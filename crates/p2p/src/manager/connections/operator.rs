//! Requests of the operator: added nodes, one-time connections, disconnections, bans, disabling and enabling the
//! network.
//!
//! Core's `AddNode`, `ThreadOpenAddedConnections`, the first part of `ThreadOpenConnections`, `DisconnectNode`,
//! `SetNetworkActive`, and `setban`.

use super::{Destination, Plan, Slot};
use crate::limits::ADDED_NODES_CONNECTED_MAX;
use crate::manager::{PeerId, PeerManager};
use crate::outbound::{OUTBOUND_INTERVAL, split};
use crate::peer::ConnectionKind;
use crate::{AddrMan, Bans};
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

impl PeerManager {
    /// Returns the address manager.
    pub fn addrman(&self) -> &AddrMan {
        &self.addrman
    }

    pub fn addrman_mut(&mut self) -> &mut AddrMan {
        &mut self.addrman
    }

    /// Keeps a node connected from now on. Returns false if it already was added.
    pub fn add_node(&mut self, target: &str, v2: bool) -> bool {
        let port = self.connector.settings.default_port;
        let endpoint = Endpoint::parse(target, port).ok().filter(|endpoint| endpoint.addr.is_valid());
        let is_same = |added: &Added| {
            added.target == target || endpoint.is_some() && Endpoint::parse(&added.target, port).ok() == endpoint
        };
        if self.connector.added.iter().any(is_same) {
            return false;
        }
        self.connector.added.push(Added { target: target.to_owned(), v2 });
        true
    }

    /// Stops keeping a node connected; its connection stays open. Returns false if no node was added with exactly this
    /// text.
    pub fn remove_added_node(&mut self, target: &str) -> bool {
        let found = self.connector.added.iter().position(|added| added.target == target);
        found.map(|index| self.connector.added.remove(index)).is_some()
    }

    /// Core's `GetAddedNodeInfo`.
    pub fn added_nodes(&self) -> Vec<AddedNode> {
        let node = |added: &Added| AddedNode {
            target: added.target.clone(),
            v2: added.v2,
            connected: self.connection_of(&added.target),
        };
        self.connector.added.iter().map(node).collect()
    }

    /// Returns the connection of a node, by its address or, if it is not an address, by its name.
    fn connection_of(&self, target: &str) -> Option<(Endpoint, bool)> {
        let endpoint = Endpoint::parse(target, self.connector.settings.default_port);
        let endpoint = endpoint.ok().filter(|endpoint| endpoint.addr.is_valid());
        let endpoint = endpoint.map(|endpoint| self.classified(endpoint));
        let peer = self.context.peers.values().find(|peer| match endpoint {
            Some(endpoint) => peer.talk.connection.endpoint == endpoint,
            None => peer.link.name == target,
        })?;
        Some((peer.talk.connection.endpoint, peer.kind().is_inbound()))
    }

    /// Connects to a node once: `addnode onetry`.
    pub fn connect_once(&mut self, target: &str, v2: bool) {
        let to = Destination::Name(target.to_owned());
        self.open(Plan { kind: ConnectionKind::Manual, to, v2, count_failure: false, slot: Slot::None });
    }

    /// Makes a connection of a type that is otherwise automatic: `addconnection`, on regtest. Returns false if there is
    /// no free slot.
    pub fn add_connection(&mut self, target: &str, kind: ConnectionKind, v2: bool) -> bool {
        let (full, blocks) = split(self.connector.settings.automatic_max);
        let count = self.context.peers.values().filter(|peer| peer.kind() == kind).count();
        let has_room = match kind {
            ConnectionKind::Inbound | ConnectionKind::Manual => false,
            ConnectionKind::OutboundFullRelay => count < full,
            ConnectionKind::BlockRelayOnly => count < blocks,
            ConnectionKind::AddrFetch | ConnectionKind::Feeler => true,
        };
        if !has_room || self.slots_used(Slot::Outbound) >= self.outbound_slots() {
            return false;
        }
        let to = Destination::Name(target.to_owned());
        self.open(Plan { kind, to, v2, count_failure: false, slot: Slot::Outbound });
        true
    }

    /// Closes the connection with this name; if it has no other name, that is its address and port.
    pub fn disconnect_endpoint(&mut self, address: &str) -> bool {
        let found = self.context.peers.values().find(|peer| peer.link.name == address).map(|peer| peer.id);
        let shown = if self.context.switches.has_ips() { format!("={address}") } else { String::new() };
        if let Some(id) = found {
            self.leave(id, format!("disconnect by address{shown} match"));
        }
        found.is_some()
    }

    pub fn disconnect_peer(&mut self, id: PeerId) -> bool {
        let is_there = self.context.peers.contains_key(&id);
        self.leave(id, "disconnect by id");
        is_there
    }

    /// Closes the connections to all addresses of a subnet.
    pub fn disconnect_subnet(&mut self, subnet: &Subnet) -> bool {
        let is_in = |id: &PeerId| {
            self.context.peers.get(id).is_some_and(|peer| subnet.contains(&peer.talk.connection.endpoint.addr))
        };
        let found: Vec<_> = self.context.peers.keys().copied().filter(is_in).collect();
        let shown = if self.context.switches.has_ips() { format!("={subnet}") } else { String::new() };
        found.iter().for_each(|id| self.leave(*id, format!("disconnect by subnet{shown} match")));
        !found.is_empty()
    }

    /// Disables or enables the network: `setnetworkactive`. Disabling closes all connections.
    pub fn set_network_active(&mut self, on: bool) {
        self.context.log_info(format!("SetNetworkActive: {on}"));
        self.connector.is_active = on;
        if !on {
            self.connector.attempts.clear();
            let ids: Vec<_> = self.context.peers.keys().copied().collect();
            ids.into_iter().for_each(|id| self.leave(id, "Network not active"));
        }
    }

    pub fn is_network_active(&self) -> bool {
        self.connector.is_active
    }

    /// Bans a subnet for this number of seconds, or until this Unix time if `is_absolute`; 0 means the default time.
    /// Closes its connections. Returns false if there is already a ban that lasts as long.
    pub fn ban(&mut self, subnet: Subnet, seconds: u64, is_absolute: bool) -> bool {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let is_new = self.bans.ban(subnet, seconds, is_absolute, self.context.now.unix);
        self.save_bans();
        self.disconnect_subnet(&subnet);
        is_new
    }

    /// Removes the ban of exactly this subnet.
    pub fn unban(&mut self, subnet: &Subnet) -> bool {
        let was_banned = self.bans.unban(subnet);
        if was_banned {
            self.context.log_debug(format!("Removed banned node address/subnet: {subnet}"));
        }
        self.save_bans();
        was_banned
    }

    pub fn clear_bans(&mut self) {
        self.bans.clear();
        self.save_bans();
    }

    /// Returns the ban list for changes.
    pub fn bans_mut(&mut self) -> &mut Bans {
        &mut self.bans
    }

    /// Connects to the nodes of `-connect` repeatedly. As in Core, the pause grows from round to round, up to five
    /// seconds.
    pub(in crate::manager) fn step_specified(&mut self) {
        while self.context.now.elapsed >= self.connector.specified_rounds.next {
            let settings = &self.connector.settings;
            let Some(target) = settings.specified.get(self.connector.specified_rounds.index) else { return };
            let to = Destination::Name(target.clone());
            let (v2, count) = (settings.v2, settings.specified.len());
            self.open(Plan { kind: ConnectionKind::Manual, to, v2, count_failure: false, slot: Slot::None });
            let rounds = &mut self.connector.specified_rounds;
            rounds.next = self.context.now.elapsed + OUTBOUND_INTERVAL * rounds.round;
            rounds.index += 1;
            if rounds.index == count {
                rounds.index = 0;
                rounds.round = (rounds.round + 1).min(SPECIFIED_ROUNDS_COUNTED);
                rounds.next += OUTBOUND_INTERVAL;
            }
        }
    }

    /// Connects to added nodes that are not connected, one at a time, as long as there are free slots.
    pub(in crate::manager) fn step_added(&mut self) {
        let rounds = &mut self.connector.added_rounds;
        if self.context.now.elapsed < rounds.next {
            return;
        }
        let mut left = match rounds.left.take() {
            Some(left) => left,
            None => {
                rounds.has_tried = false;
                let added = self.connector.added.iter();
                added.filter(|added| self.connection_of(&added.target).is_none()).cloned().collect()
            }
        };
        let has_room = self.slots_used(Slot::Added) < ADDED_NODES_CONNECTED_MAX;
        if has_room && let Some(Added { target, v2 }) = left.pop_front() {
            self.connector.added_rounds.has_tried = true;
            let to = Destination::Name(target);
            self.open(Plan { kind: ConnectionKind::Manual, to, v2, count_failure: false, slot: Slot::Added });
            self.connector.added_rounds.left = Some(left);
            return;
        }
        let rounds = &mut self.connector.added_rounds;
        let pause = if rounds.has_tried { ADDED_INTERVAL } else { ADDED_INTERVAL_IDLE };
        rounds.next = self.context.now.elapsed + pause;
    }
}
