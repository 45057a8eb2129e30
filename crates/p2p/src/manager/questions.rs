//! Requests of the operator and of the node: the public face of the parts.
//!
//! Input: calls of [`PeerManager::ask`] and of the manager's owner. Output: answers, and what the parts do because of
//! them. Nothing here decides anything.

use super::{Action, AddedNode, PeerId, PeerManager};
use crate::local_address::LocalAddress;
use crate::memory::PeerMemory;
use crate::peer::ConnectionKind;
use crate::time::Moment;
use crate::traffic::TrafficTotals;
use crate::{AddrMan, Bans};
use lydian_engine::LogSwitches;
use lydian_primitives::BlockHash;
use lydian_wire::Subnet;
use std::sync::Arc;
use std::time::Duration;

/// This node.
impl PeerManager {
    /// Returns the actions since the last call.
    pub fn take_actions(&mut self) -> Vec<Action> {
        self.addresses.log_changes(&mut self.context);
        std::mem::take(&mut self.context.actions)
    }

    /// Returns the account of a peer's memory.
    pub(crate) fn memory(&self, id: PeerId) -> Option<&PeerMemory> {
        self.context.peers.get(&id).map(|peer| &peer.memory)
    }

    /// Sets what is logged from now on. Before the first call, everything is logged.
    pub fn set_log_switches(&mut self, switches: LogSwitches) {
        self.context.switches = switches;
        self.addresses.follow_switches(&self.context);
    }

    /// Returns our own addresses, as far as they are known.
    pub fn local_addresses(&self) -> Vec<LocalAddress> {
        self.context.settings.local.own.list()
    }

    /// Returns the byte counters of all connections.
    pub fn traffic(&self) -> &Arc<TrafficTotals> {
        self.blocks.upload().traffic()
    }

    /// Returns the median clock offset of outbound peers; positive if they are ahead.
    pub fn median_time_offset_s(&self) -> i64 {
        self.clock.median_s()
    }
}

/// Addresses and bans.
impl PeerManager {
    /// Returns the address manager.
    pub fn addrman(&self) -> &AddrMan {
        self.addresses.tables()
    }

    pub fn addrman_mut(&mut self) -> &mut AddrMan {
        self.addresses.tables_mut()
    }

    /// Returns the banned and discouraged addresses.
    pub fn bans(&self) -> &Bans {
        self.addresses.bans()
    }

    /// Returns the ban list for changes.
    pub fn bans_mut(&mut self) -> &mut Bans {
        self.addresses.bans_mut()
    }

    /// Bans a subnet for this number of seconds, or until this Unix time if `is_absolute`; 0 means the default time.
    /// Closes its connections. Returns false if there is already a ban that lasts as long.
    pub fn ban(&mut self, subnet: Subnet, seconds: u64, is_absolute: bool) -> bool {
        let is_new = self.addresses.ban(&mut self.context, subnet, seconds, is_absolute);
        self.disconnect_subnet(&subnet);
        is_new
    }

    /// Removes the ban of exactly this subnet.
    pub fn unban(&mut self, subnet: &Subnet) -> bool {
        self.addresses.unban(&mut self.context, subnet)
    }

    /// The node shuts down cleanly: writes everything that must be kept.
    pub fn end(&mut self, now: Moment) {
        self.context.now = now;
        let of_kind = self.context.peers.values().filter(|peer| peer.kind() == ConnectionKind::BlockRelayOnly);
        let anchors: Vec<_> = of_kind.map(|peer| peer.link.address).collect();
        let anchors = self.context.settings.connect.chooses_peers.then_some(anchors);
        self.addresses.save_at_end(&mut self.context, anchors.as_deref());
    }

    /// Makes waiting tasks due earlier by `delta`: Core's `MockForward`, for `mockscheduler`.
    pub(super) fn mock_forward(&mut self, delta: Duration, now: Moment) {
        self.context.now = now;
        self.connections.mock_forward(&self.context, delta);
        self.addresses.mock_forward(&self.context, delta);
        self.transactions.mock_forward(&mut self.context, delta);
        self.run_scheduled();
    }
}

/// Connections.
impl PeerManager {
    /// Keeps a node connected from now on. Returns false if it already was added.
    pub fn add_node(&mut self, target: &str, v2: bool) -> bool {
        self.connections.add_node(&self.context, target, v2)
    }

    /// Stops keeping a node connected; its connection stays open. Returns false if no node was added with exactly this
    /// text.
    pub fn remove_added_node(&mut self, target: &str) -> bool {
        self.connections.remove_added_node(target)
    }

    /// Core's `GetAddedNodeInfo`.
    pub fn added_nodes(&self) -> Vec<AddedNode> {
        self.connections.added_nodes(&self.context)
    }

    /// Connects to a node once: `addnode onetry`.
    pub fn connect_once(&mut self, target: &str, v2: bool) {
        self.connections.connect_once(&mut self.context, &mut self.addresses, target, v2);
    }

    /// Makes a connection of a type that is otherwise automatic: `addconnection`, on regtest. Returns false if there is
    /// no free slot.
    pub fn add_connection(&mut self, target: &str, kind: ConnectionKind, v2: bool) -> bool {
        self.connections.add_connection(&mut self.context, &mut self.addresses, target, kind, v2)
    }

    /// Closes the connection with this name; if it has no other name, that is its address and port.
    pub fn disconnect_endpoint(&mut self, address: &str) -> bool {
        let is_found = self.connections.disconnect_endpoint(&mut self.context, address);
        self.route();
        is_found
    }

    /// Closes the connections to all addresses of a subnet.
    pub fn disconnect_subnet(&mut self, subnet: &Subnet) -> bool {
        let is_found = self.connections.disconnect_subnet(&mut self.context, subnet);
        self.route();
        is_found
    }

    /// Disables or enables the network: `setnetworkactive`. Disabling closes all connections.
    pub fn set_network_active(&mut self, on: bool) {
        self.connections.set_network_active(&mut self.context, on);
        self.route();
    }

    pub fn is_network_active(&self) -> bool {
        self.connections.is_network_active()
    }

    /// Returns whether one more outbound connection than usual should be made.
    pub fn tries_extra_peer(&self) -> bool {
        self.connections.tries_extra_peer()
    }

    /// Queues a ping to every peer for the next tick.
    pub fn ping_all(&mut self) {
        self.context.peers.values_mut().for_each(|peer| peer.talk.queue_ping());
    }

    /// Requests a block with a known header from a peer; the error is Core's text.
    pub fn fetch_block(&mut self, id: PeerId, hash: &BlockHash, now: Moment) -> Result<(), &'static str> {
        self.context.now = now;
        self.blocks.fetch_block(&mut self.context, id, hash)
    }
}
