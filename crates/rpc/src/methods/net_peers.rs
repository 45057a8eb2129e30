//! Methods about single peers: their state, connecting and disconnecting.

use super::net::ask;
use crate::error::{RpcError, code};
use crate::help;
use crate::json::{Amount, Double};
use crate::method::{Arg, Call, Category, Kind, Method, answer, parse_hash};
use crate::table::find;
use lydian_consensus::Chain;
use lydian_p2p::manager::{AddedNode, PeerId, PeerInfo, PeerManager};
use lydian_p2p::peer::ConnectionKind;
use lydian_primitives::{BlockHash, Height, to_hex};
use lydian_wire::Services;
use serde::Serialize as DeriveSerialize;
use serde::ser::{Serialize, SerializeMap, Serializer};

const V2_HELP: &str = "whether to try the v2 transport (BIP-0324) first";

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "addconnection",
        category: Category::Hidden,
        help: "Opens a connection of a type that is otherwise opened automatically (-regtest only). For tests.",
        args: &[
            Arg::new("address", Kind::Text, "the address with its port"),
            Arg::new("connection_type", Kind::Text, "outbound-full-relay, block-relay-only, addr-fetch or feeler"),
            Arg::new("v2transport", Kind::Bool, V2_HELP),
        ],
        result: "{address, connection_type}",
        examples: &["\"192.168.0.6:8333\" \"outbound-full-relay\" true"],
        remark: "",
        call: addconnection,
    },
    Method {
        name: "addnode",
        category: Category::Network,
        help: "Adds or removes a peer that is kept connected, or connects to a peer once.\n\
               At most 8 such peers are connected at a time, in addition to -maxconnections. They are not disconnected for misbehaving.",
        args: &[
            Arg::new("node", Kind::Text, "a host name or an address, with or without a port"),
            Arg::new("command", Kind::Text, "\"add\", \"remove\" or \"onetry\""),
            Arg::new("v2transport", Kind::Bool, V2_HELP).hint("set by -v2transport"),
        ],
        result: "null",
        examples: &["\"192.168.0.6:8333\" \"onetry\" true"],
        remark: "",
        call: addnode,
    },
    Method {
        name: "disconnectnode",
        category: Category::Network,
        help: "Disconnects a peer, given by its address as in getpeerinfo, or by its id.",
        args: &[
            Arg::new("address", Kind::Text, "the address; empty if nodeid is given").hint("fallback to nodeid"),
            Arg::new("nodeid", Kind::Number, "the id").hint("fallback to address"),
        ],
        result: "null",
        examples: &["\"192.168.0.6:8333\"", "\"\" 1"],
        remark: "",
        call: disconnectnode,
    },
    Method {
        name: "getaddednodeinfo",
        category: Category::Network,
        help: "Lists the peers added with addnode, or returns one of them.",
        args: &[Arg::new("node", Kind::Text, "the peer, as it was added").hint("all nodes")],
        result: "[{addednode, connected, addresses: [{address, connected: inbound or outbound}]}, ...]",
        examples: &["\"192.168.0.201\""],
        remark: "",
        call: getaddednodeinfo,
    },
    Method {
        name: "getblockfrompeer",
        category: Category::Blockchain,
        help: "Requests a block from a peer. The header of the block must be known.\nThe peer may not have the block or may not send it; a peer that does not answer at all is disconnected.",
        args: &[
            Arg::new("blockhash", Kind::Hex, "the block hash"),
            Arg::new("peer_id", Kind::Number, "the id of the peer, from getpeerinfo"),
        ],
        result: "{}: the block was requested",
        examples: &["\"00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09\" 0"],
        remark: "",
        call: getblockfrompeer,
    },
    Method {
        name: "getpeerinfo",
        category: Category::Network,
        help: "Lists all connected peers.",
        args: &[],
        result: "[{id, addr, addrbind, addrlocal, network, services, servicesnames, relaytxes, last_inv_sequence, inv_to_send, lastsend, lastrecv, \
                 last_transaction, last_block, bytessent, bytesrecv, conntime, timeoffset, pingtime, minping, pingwait, version, subver, inbound, \
                 bip152_hb_to, bip152_hb_from, presynced_headers, synced_headers, synced_blocks, inflight, addr_relay_enabled, addr_processed, \
                 addr_rate_limited, permissions, minfeefilter, bytessent_per_msg, bytesrecv_per_msg, connection_type, transport_protocol_type, \
                 session_id}, ...]",
        examples: &[""],
        remark: "",
        call: getpeerinfo,
    },
];

#[derive(Debug, DeriveSerialize)]
struct PeerAnswer {
    id: u64,
    addr: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    addrbind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    addrlocal: Option<String>,
    network: &'static str,
    services: String,
    servicesnames: Vec<String>,
    relaytxes: bool,
    last_inv_sequence: u64,
    inv_to_send: u64,
    lastsend: u64,
    lastrecv: u64,
    last_transaction: u64,
    last_block: u64,
    bytessent: u64,
    bytesrecv: u64,
    conntime: u64,
    timeoffset: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pingtime: Option<Double>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minping: Option<Double>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pingwait: Option<Double>,
    version: i32,
    subver: String,
    inbound: bool,
    bip152_hb_to: bool,
    bip152_hb_from: bool,
    presynced_headers: i64,
    synced_headers: i64,
    synced_blocks: i64,
    inflight: Vec<u32>,
    addr_relay_enabled: bool,
    addr_processed: u64,
    addr_rate_limited: u64,
    permissions: Vec<&'static str>,
    minfeefilter: Amount,
    bytessent_per_msg: ByMessage,
    bytesrecv_per_msg: ByMessage,
    connection_type: &'static str,
    transport_protocol_type: String,
    session_id: String,
}

impl PeerAnswer {
    fn new(peer: PeerInfo) -> PeerAnswer {
        let traffic = &peer.traffic;
        let (transport, session_id) = traffic.transport();
        let height = |height: Option<Height>| height.map_or(-1, |height| i64::from(height.0));
        let is_some_time = |time: &std::time::Duration| !time.is_zero();
        let seconds = |time: std::time::Duration| Double(time.as_secs_f64());
        PeerAnswer {
            id: peer.id.0,
            addr: peer.name,
            addrbind: peer.bind.addr.is_valid().then(|| peer.bind.to_string()),
            addrlocal: peer.addr_local.addr.is_valid().then(|| peer.addr_local.to_string()),
            network: peer.network.name(),
            services: format!("{:016x}", peer.services.0),
            servicesnames: peer.services.names(),
            relaytxes: peer.relays_transactions,
            // For a mempool that never changed.
            last_inv_sequence: u64::from(peer.relays_transactions),
            inv_to_send: 0,
            lastsend: traffic.last_send().0,
            lastrecv: traffic.last_receive().0,
            last_transaction: 0,
            last_block: peer.last_block.0,
            bytessent: traffic.sent(),
            bytesrecv: traffic.received(),
            conntime: peer.connected.0,
            timeoffset: peer.time_offset_s,
            pingtime: peer.ping_times.map(|(last, _)| last).filter(is_some_time).map(seconds),
            minping: peer.ping_times.map(|(_, least)| seconds(least)),
            pingwait: peer.ping_wait.filter(is_some_time).map(seconds),
            version: peer.version,
            inbound: peer.kind.is_inbound(),
            bip152_hb_to: peer.high_bandwidth_to,
            bip152_hb_from: peer.high_bandwidth_from,
            presynced_headers: height(peer.presynced_headers),
            synced_headers: height(peer.synced_headers),
            synced_blocks: height(peer.synced_blocks),
            inflight: peer.in_flight.iter().map(|height| height.0).collect(),
            addr_relay_enabled: peer.is_addr_relay_enabled,
            addr_processed: peer.addr_processed,
            addr_rate_limited: peer.addr_rate_limited,
            permissions: peer.permissions.names(),
            minfeefilter: Amount(peer.fee_filter.0),
            bytessent_per_msg: ByMessage(traffic.sent_by_message()),
            bytesrecv_per_msg: ByMessage(traffic.received_by_message()),
            connection_type: peer.kind.name(),
            transport_protocol_type: transport.to_string(),
            session_id: session_id.map(|id| to_hex(&id)).unwrap_or_default(),
            subver: peer.user_agent,
        }
    }
}

/// Bytes by message type.
#[derive(Debug)]
struct ByMessage(Vec<(String, u64)>);

impl Serialize for ByMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, bytes) in &self.0 {
            map.serialize_entry(name, bytes)?;
        }
        map.end()
    }
}

fn getpeerinfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let peers = ask(call.context, |manager, now| manager.peers(now))?;
    answer(out, &peers.into_iter().map(PeerAnswer::new).collect::<Vec<_>>())
}

fn speaks_v2(manager: &PeerManager) -> bool {
    manager.local().services.contains(Services::P2P_V2)
}

fn addnode(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let (node, command) = (call.text(0)?.to_owned(), call.text(1)?.to_owned());
    if !["onetry", "add", "remove"].contains(&&command[..]) {
        return Err(RpcError::misc(help_of("addnode")));
    }
    let v2 = call.given(2).map(|v2| v2.as_bool()).transpose()?;
    ask(call.context, move |manager, _| {
        let v2 = v2.unwrap_or(speaks_v2(manager));
        if v2 && !speaks_v2(manager) {
            return Err(RpcError::parameter("Error: v2transport requested but not enabled (see -v2transport)"));
        }
        match &command[..] {
            "add" if manager.add_node(&node, v2) => Ok(()),
            "add" => Err(RpcError::new(code::CLIENT_NODE_ALREADY_ADDED, "Error: Node already added")),
            "remove" if manager.remove_added_node(&node) => Ok(()),
            "remove" => {
                let words = "Error: Node could not be removed. It has not been added previously.";
                Err(RpcError::new(code::CLIENT_NODE_NOT_ADDED, words))
            }
            _ => {
                manager.connect_once(&node, v2);
                Ok(())
            }
        }
    })??;
    answer(out, &())
}

#[derive(Debug, DeriveSerialize)]
struct NewConnection {
    address: String,
    connection_type: String,
}

fn addconnection(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    if call.context.settings.params.chain != Chain::Regtest {
        return Err(RpcError::misc("addconnection is for regression testing (-regtest mode) only."));
    }
    let address = call.text(0)?.to_owned();
    let connection_type = call.text(1)?.trim_matches(SPACES).to_owned();
    let kinds = [
        ConnectionKind::OutboundFullRelay,
        ConnectionKind::BlockRelayOnly,
        ConnectionKind::AddrFetch,
        ConnectionKind::Feeler,
    ];
    let Some(kind) = kinds.into_iter().find(|kind| kind.name() == connection_type) else {
        return Err(RpcError::parameter(help_of("addconnection")));
    };
    let v2 = call.arg(2).as_bool()?;
    let target = address.clone();
    ask(call.context, move |manager, _| {
        if v2 && !speaks_v2(manager) {
            let words = "Error: Adding v2transport connections requires -v2transport init flag to be set.";
            return Err(RpcError::parameter(words));
        }
        match manager.add_connection(&target, kind, v2) {
            true => Ok(()),
            false => {
                let words = "Error: Already at capacity for specified connection type.";
                Err(RpcError::new(code::CLIENT_NODE_CAPACITY_REACHED, words))
            }
        }
    })??;
    answer(out, &NewConnection { address, connection_type })
}

/// The characters that Core's `TrimString` removes.
const SPACES: &[char] = &[' ', '\u{c}', '\n', '\r', '\t', '\u{b}'];

fn help_of(name: &str) -> String {
    find(name).map(help::of_method).unwrap_or_default()
}

fn disconnectnode(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let address = call.given(0).map(|address| address.as_text()).transpose()?.map(str::to_owned);
    let id = call.given(1).map(|id| id.as_integer::<i64>()).transpose()?;
    let is_found = match (address, id) {
        (Some(address), None) => ask(call.context, move |manager, _| manager.disconnect_endpoint(&address))?,
        (None, Some(id)) => disconnect(call, id)?,
        (Some(address), Some(id)) if address.is_empty() => disconnect(call, id)?,
        _ => {
            let words = "Only one of address and nodeid should be provided.";
            return Err(RpcError::new(code::INVALID_PARAMS, words));
        }
    };
    match is_found {
        true => answer(out, &()),
        false => Err(RpcError::new(code::CLIENT_NODE_NOT_CONNECTED, "Node not found in connected nodes")),
    }
}

fn disconnect(call: &Call<'_>, id: i64) -> Result<bool, RpcError> {
    ask(call.context, move |manager, _| u64::try_from(id).is_ok_and(|id| manager.disconnect_peer(PeerId(id))))
}

#[derive(Debug, DeriveSerialize)]
struct AddedAnswer {
    addednode: String,
    connected: bool,
    addresses: Vec<AddedAddress>,
}

#[derive(Debug, DeriveSerialize)]
struct AddedAddress {
    address: String,
    connected: &'static str,
}

fn getaddednodeinfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let mut nodes = ask(call.context, |manager, _| manager.added_nodes())?;
    if let Some(node) = call.given(0) {
        let node = node.as_text()?;
        nodes.retain(|added| added.target == node);
        if nodes.is_empty() {
            return Err(RpcError::new(code::CLIENT_NODE_NOT_ADDED, "Error: Node has not been added."));
        }
    }
    let row = |added: AddedNode| AddedAnswer {
        addednode: added.target,
        connected: added.connected.is_some(),
        addresses: added
            .connected
            .into_iter()
            .map(|(endpoint, is_inbound)| AddedAddress {
                address: endpoint.to_string(),
                connected: if is_inbound { "inbound" } else { "outbound" },
            })
            .collect(),
    };
    answer(out, &nodes.into_iter().map(row).collect::<Vec<_>>())
}

#[derive(Debug, DeriveSerialize)]
struct Nothing {}

fn getblockfrompeer(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let hash = BlockHash(parse_hash(call.arg(0), "blockhash")?);
    let id = call.arg(1).as_integer::<i64>()?;
    let engine = call.context.engine()?;
    let Some(info) = engine.header_info(&hash) else { return Err(RpcError::misc("Block header missing")) };
    let is_pruned = call.context.settings.prune != crate::context::PruneMode::Never;
    if is_pruned && info.node.height > info.tip.height {
        let words = "In prune mode, only blocks that the node has already synced previously can be fetched from a peer";
        return Err(RpcError::misc(words));
    }
    if info.node.block.is_some() {
        return Err(RpcError::misc("Block already downloaded"));
    }
    let id = u64::try_from(id).ok().map(PeerId);
    let fetched = ask(call.context, move |manager, now| match id {
        Some(id) => manager.fetch_block(id, &hash, now),
        None => Err("Peer does not exist"),
    })?;
    fetched.map_err(RpcError::misc)?;
    answer(out, &Nothing {})
}
