//! [`Question`]: a question or a request of the operator for the manager, each with the type of its answer.
//!
//! Input: a question with a [`Reply`]. Output: the answer, sent to the reply. Nothing here decides anything: a question
//! is passed to the part that it concerns. Invariant: each question is answered once, immediately, except for orders.
//! Cost: that of the part; the largest answer is a copy of the address tables.

use super::{AddedNode, PeerId, PeerInfo, PeerManager};
use crate::addrman::{AddrInfo, Position};
use crate::bans::Ban;
use crate::local_address::LocalAddress;
use crate::order::Order;
use crate::peer::ConnectionKind;
use crate::proxies::Proxies;
use crate::time::{Moment, UnixTime};
use crate::txs::orphanage::OrphanInfo;
use crate::upload::UploadInfo;
use lydian_primitives::{BlockHash, Txid, Wtxid};
use lydian_wire::{Command, Endpoint, Message, NetAddr, Network, Services, Subnet, TimedAddress};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Where the answer to a question goes.
#[derive(Debug)]
pub struct Reply<T>(SyncSender<T>);

impl<T> Reply<T> {
    /// Returns a reply, and the receiver that gets the answer. The receiver fails if the reply is dropped unused.
    pub fn pair() -> (Reply<T>, Receiver<T>) {
        let (sender, receiver) = sync_channel(1);
        (Reply(sender), receiver)
    }

    fn send(self, answer: T) {
        // There is room for the only answer. If the receiver is gone, the answer is not needed.
        let _ = self.0.try_send(answer);
    }
}

/// A question or a request of the operator.
#[derive(Debug)]
pub enum Question {
    /// All peers with open connections, by id.
    Peers(Reply<Vec<PeerInfo>>),
    Network(Reply<NetworkInfo>),
    Traffic(Reply<TrafficInfo>),
    /// The networks that we can connect to.
    Reachable(Reply<BTreeSet<Network>>),
    AddedNodes(Reply<Vec<AddedNode>>),
    /// `addnode`. The default of `v2` is whether this node supports it.
    Node {
        command: NodeCommand,
        target: String,
        v2: Option<bool>,
        reply: Reply<Result<(), NodeRefusal>>,
    },
    /// `addconnection`.
    AddConnection {
        target: String,
        kind: ConnectionKind,
        v2: bool,
        reply: Reply<Result<(), NodeRefusal>>,
    },
    /// Closes the connection with this name or address. The answer is whether there is one.
    DisconnectEndpoint {
        endpoint: String,
        reply: Reply<bool>,
    },
    DisconnectPeer {
        id: PeerId,
        reply: Reply<bool>,
    },
    /// Disables or enables the network. The answer is the new state.
    SetNetworkActive {
        on: bool,
        reply: Reply<bool>,
    },
    /// Queues a ping to every peer.
    Ping(Reply<()>),
    /// Requests a block with a known header from a peer. The error is Core's text.
    FetchBlock {
        id: PeerId,
        hash: BlockHash,
        reply: Reply<Result<(), &'static str>>,
    },
    /// Fetches a deleted block for a reader of this node, from any peer that has it. The order has its own answer.
    Order(Order),
    /// Sends a message unchanged: `sendmsgtopeer`. The answer is false if the peer is gone or its handshake is not
    /// complete.
    SendMessage {
        id: PeerId,
        command: Command,
        payload: Vec<u8>,
        reply: Reply<bool>,
    },
    /// Makes waiting tasks due earlier by `delta`: `mockscheduler`.
    MockForward {
        delta: Duration,
        reply: Reply<()>,
    },
    /// Adds an address to the tables, and moves it to the tried table if `is_tried`.
    AddAddress {
        addr: NetAddr,
        port: u16,
        is_tried: bool,
        reply: Reply<Result<(), AddressRefusal>>,
    },
    /// At most `count` random addresses, 0 for all, without banned and discouraged ones.
    Addresses {
        count: usize,
        network: Option<Network>,
        reply: Reply<Vec<TimedAddress>>,
    },
    /// The number of addresses in the tables: for each network, or of all networks for `None`.
    AddressCounts {
        networks: Vec<Option<Network>>,
        reply: Reply<Vec<AddressCounts>>,
    },
    /// The entries of the new and of the tried table.
    AddressTables(Reply<[AddressTable; 2]>),
    /// Whether a subnet is banned or, if `is_single`, whether any ban covers its only address.
    IsBanned {
        subnet: Subnet,
        is_single: bool,
        now: UnixTime,
        reply: Reply<bool>,
    },
    /// Bans a subnet, see [`PeerManager::ban`].
    Ban {
        subnet: Subnet,
        seconds: u64,
        is_absolute: bool,
        reply: Reply<bool>,
    },
    /// Removes the ban of exactly this subnet. The answer is whether there was one.
    Unban {
        subnet: Subnet,
        reply: Reply<bool>,
    },
    /// The bans that are in force at this time.
    Bans {
        now: UnixTime,
        reply: Reply<BTreeMap<Subnet, Ban>>,
    },
    ClearBans(Reply<()>),
    /// Announces a transaction of the mempool to all peers that do not know it: the last step of `sendrawtransaction`.
    Announce {
        txid: Txid,
        wtxid: Wtxid,
        reply: Reply<()>,
    },
    /// The transactions whose parents are missing, by wtxid.
    Orphans(Reply<Vec<OrphanInfo>>),
}

/// The second argument of `addnode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeCommand {
    /// Keep the node connected from now on.
    Add,
    /// Stop keeping it connected; its connection stays open.
    Remove,
    /// Connect to it once.
    OneTry,
}

/// Why a node is not added, removed or connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRefusal {
    /// The v2 transport was requested, and this node does not support it.
    V2Disabled,
    AlreadyAdded,
    NotAdded,
    /// There is no free slot for this kind of connection.
    NoSlot,
}

/// The table that refused an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressRefusal {
    New,
    Tried,
}

/// The state of the network: `getnetworkinfo`.
#[derive(Clone, Debug)]
pub struct NetworkInfo {
    /// What this node announces about itself.
    pub services: Services,
    pub user_agent: Vec<u8>,
    pub ignores_transactions: bool,
    /// The median clock offset of outbound peers; positive if they are ahead.
    pub time_offset_s: i64,
    pub is_active: bool,
    pub inbound: usize,
    pub outbound: usize,
    /// The networks that we can connect to.
    pub reachable: BTreeSet<Network>,
    pub proxies: Proxies,
    /// Our own addresses, as far as they are known.
    pub addresses: Vec<LocalAddress>,
}

/// The bytes of all connections: `getnettotals`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficInfo {
    pub received: u64,
    pub sent: u64,
    /// The state of `-maxuploadtarget`.
    pub upload: UploadInfo,
}

/// Numbers of addresses in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressCounts {
    pub new: usize,
    pub tried: usize,
}

/// The entries of a table with their positions.
pub type AddressTable = Vec<(AddrInfo, Position)>;

impl PeerManager {
    /// Answers a question of the operator.
    pub fn ask(&mut self, question: Question, now: Moment) {
        self.context.now = now;
        match question {
            Question::Peers(reply) => reply.send(self.peers(now)),
            Question::Network(reply) => reply.send(self.network_info(now)),
            Question::Traffic(reply) => reply.send(self.traffic_info()),
            Question::Reachable(reply) => reply.send(self.context.settings.reachable.clone()),
            Question::AddedNodes(reply) => reply.send(self.added_nodes()),
            Question::Node { command, target, v2, reply } => reply.send(self.change_node(command, &target, v2)),
            Question::AddConnection { target, kind, v2, reply } => reply.send(self.connect_as(&target, kind, v2)),
            Question::DisconnectEndpoint { endpoint, reply } => reply.send(self.disconnect_endpoint(&endpoint)),
            Question::DisconnectPeer { id, reply } => reply.send(self.disconnect_peer(id)),
            Question::SetNetworkActive { on, reply } => {
                self.set_network_active(on);
                reply.send(self.is_network_active());
            }
            Question::Ping(reply) => {
                self.ping_all();
                reply.send(());
            }
            Question::FetchBlock { id, hash, reply } => reply.send(self.fetch_block(id, &hash, now)),
            Question::Order(order) => self.blocks.order(&mut self.context, order),
            Question::SendMessage { id, command, payload, reply } => reply.send(self.send_raw(id, command, payload)),
            Question::MockForward { delta, reply } => {
                self.mock_forward(delta, now);
                reply.send(());
            }
            Question::AddAddress { addr, port, is_tried, reply } => reply.send(self.add_address(addr, port, is_tried)),
            Question::Addresses { count, network, reply } => reply.send(self.some_addresses(count, network)),
            Question::AddressCounts { networks, reply } => reply.send(self.address_counts(&networks)),
            Question::AddressTables(reply) => reply.send([false, true].map(|is_tried| self.address_table(is_tried))),
            Question::IsBanned { subnet, is_single: true, now, reply } => {
                reply.send(self.bans().is_banned(&subnet.network(), now));
            }
            Question::IsBanned { subnet, now, reply, .. } => reply.send(self.bans().is_subnet_banned(&subnet, now)),
            Question::Ban { subnet, seconds, is_absolute, reply } => reply.send(self.ban(subnet, seconds, is_absolute)),
            Question::Unban { subnet, reply } => reply.send(self.unban(&subnet)),
            Question::Bans { now, reply } => reply.send(self.bans_mut().list(now).clone()),
            Question::ClearBans(reply) => {
                self.addresses.clear_bans(&mut self.context);
                reply.send(());
            }
            Question::Announce { txid, wtxid, reply } => {
                self.transactions.announce(&txid, &wtxid);
                reply.send(());
            }
            Question::Orphans(reply) => reply.send(self.transactions.orphans()),
        }
    }

    fn network_info(&self, now: Moment) -> NetworkInfo {
        let (settings, peers) = (&self.context.settings, self.peers(now));
        let inbound = peers.iter().filter(|peer| peer.kind.is_inbound()).count();
        NetworkInfo {
            services: settings.local.services,
            user_agent: settings.local.user_agent.clone(),
            ignores_transactions: settings.local.ignores_transactions,
            time_offset_s: self.median_time_offset_s(),
            is_active: self.is_network_active(),
            inbound,
            outbound: peers.len() - inbound,
            reachable: settings.reachable.clone(),
            proxies: settings.connect.proxies.clone(),
            addresses: self.local_addresses(),
        }
    }

    fn traffic_info(&mut self) -> TrafficInfo {
        let upload = self.blocks.upload_mut().info(&self.context);
        TrafficInfo { received: self.traffic().received(), sent: self.traffic().sent(), upload }
    }

    fn change_node(&mut self, command: NodeCommand, target: &str, v2: Option<bool>) -> Result<(), NodeRefusal> {
        let v2 = v2.unwrap_or(self.supports_v2());
        self.check_v2(v2)?;
        match command {
            NodeCommand::Add => self.add_node(target, v2).then_some(()).ok_or(NodeRefusal::AlreadyAdded),
            NodeCommand::Remove => self.remove_added_node(target).then_some(()).ok_or(NodeRefusal::NotAdded),
            NodeCommand::OneTry => {
                self.connect_once(target, v2);
                Ok(())
            }
        }
    }

    fn connect_as(&mut self, target: &str, kind: ConnectionKind, v2: bool) -> Result<(), NodeRefusal> {
        self.check_v2(v2)?;
        self.add_connection(target, kind, v2).then_some(()).ok_or(NodeRefusal::NoSlot)
    }

    fn supports_v2(&self) -> bool {
        self.context.settings.local.services.contains(Services::P2P_V2)
    }

    fn check_v2(&self, is_wanted: bool) -> Result<(), NodeRefusal> {
        if is_wanted && !self.supports_v2() { Err(NodeRefusal::V2Disabled) } else { Ok(()) }
    }

    fn disconnect_peer(&mut self, id: PeerId) -> bool {
        let is_found = self.connections.disconnect_peer(&mut self.context, id);
        self.route();
        is_found
    }

    fn send_raw(&mut self, id: PeerId, command: Command, payload: Vec<u8>) -> bool {
        let is_there = self.context.peers.get(&id).is_some_and(|peer| peer.is_ready() && !peer.is_leaving);
        if is_there {
            self.context.send(id, Message::Unknown { command, payload });
        }
        is_there
    }

    fn add_address(&mut self, addr: NetAddr, port: u16, is_tried: bool) -> Result<(), AddressRefusal> {
        let has_cjdns = self.context.settings.reachable.contains(&Network::Cjdns);
        let addr = if has_cjdns { addr.maybe_cjdns() } else { addr };
        let (unix, endpoint) = (self.context.now.unix, Endpoint { addr, port });
        let services = Services::NETWORK | Services::WITNESS;
        let address = TimedAddress { time: unix.to_u32(), services, endpoint };
        let tables = self.addrman_mut();
        if tables.add(&[address], &addr, 0, unix) == 0 {
            return Err(AddressRefusal::New);
        }
        if is_tried && !tables.good(&endpoint, unix) { Err(AddressRefusal::Tried) } else { Ok(()) }
    }

    fn some_addresses(&mut self, count: usize, network: Option<Network>) -> Vec<TimedAddress> {
        let unix = self.context.now.unix;
        let mut addresses = self.addrman_mut().get_addr(count, 0, network, true, unix);
        let bans = self.bans();
        addresses.retain(|address| {
            let addr = &address.endpoint.addr;
            !bans.is_discouraged(addr) && !bans.is_banned(addr, unix)
        });
        addresses
    }

    fn address_counts(&self, networks: &[Option<Network>]) -> Vec<AddressCounts> {
        let size = |network, in_new| self.addrman().size(network, Some(in_new));
        networks.iter().map(|one| AddressCounts { new: size(*one, true), tried: size(*one, false) }).collect()
    }

    fn address_table(&self, is_tried: bool) -> AddressTable {
        self.addrman().entries(is_tried).map(|(info, at)| (info.clone(), at)).collect()
    }
}
