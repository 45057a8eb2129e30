//! Methods about single peers: their state, connecting and disconnecting.

use super::net::{ask, peer_id};
use crate::error::{RpcError, code};
use crate::json::{Amount, Double};
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::output::Hex;
use crate::result::{Empty, Map, Time, result};
use lydian_consensus::Chain;
use lydian_p2p::manager::{AddedNode, NodeCommand, NodeRefusal, PeerInfo, Question};
use lydian_p2p::peer::ConnectionKind;
use lydian_primitives::{BlockHash, Height, to_hex};

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
        examples: &["\"192.168.0.6:8333\" \"outbound-full-relay\" true"],
        remark: "",
        call: &returns("", addconnection),
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
        examples: &["\"192.168.0.6:8333\" \"onetry\" true"],
        remark: "",
        call: &returns("", addnode),
    },
    Method {
        name: "disconnectnode",
        category: Category::Network,
        help: "Disconnects a peer, given by its address as in getpeerinfo, or by its id.",
        args: &[
            Arg::new("address", Kind::Text, "the address; empty if nodeid is given").hint("fallback to nodeid"),
            Arg::new("nodeid", Kind::Number, "the id").hint("fallback to address"),
        ],
        examples: &["\"192.168.0.6:8333\"", "\"\" 1"],
        remark: "",
        call: &returns("", disconnectnode),
    },
    Method {
        name: "getaddednodeinfo",
        category: Category::Network,
        help: "Lists the peers added with addnode, or returns one of them.",
        args: &[Arg::new("node", Kind::Text, "the peer, as it was added").hint("all nodes")],
        examples: &["\"192.168.0.201\""],
        remark: "",
        call: &returns("", getaddednodeinfo),
    },
    Method {
        name: "getblockfrompeer",
        category: Category::Blockchain,
        help: "Requests a block from a peer. The header of the block must be known.\nThe peer may not have the block or may not send it; a peer that does not answer at all is disconnected.",
        args: &[
            Arg::new("blockhash", Kind::Hex, "the block hash"),
            Arg::new("peer_id", Kind::Number, "the id of the peer, from getpeerinfo"),
        ],
        examples: &["\"00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09\" 0"],
        remark: "",
        call: &returns("the block was requested", getblockfrompeer),
    },
    Method {
        name: "getpeerinfo",
        category: Category::Network,
        help: "Lists all connected peers.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", getpeerinfo),
    },
];

result! {
    /// A peer in the answer of `getpeerinfo`.
    struct PeerAnswer {
        /// peer index
        id: u64,
        /// (host:port) the IP address/hostname optionally followed by :port of the peer
        addr: String,
        /// (ip:port) bind address of the connection to the peer
        addrbind: Option<String>,
        /// (ip:port) local address as reported by the peer
        addrlocal: Option<String>,
        /// network (ipv4, ipv6, onion, i2p, cjdns, not_publicly_routable)
        network: &'static str,
        /// the services offered
        services: Hex<[u8; 8]>,
        /// the services offered, in human-readable form
        #[each("the service name if it is recognised")]
        servicesnames: Vec<String>,
        /// whether we relay transactions to this peer
        relaytxes: bool,
        /// mempool sequence number of this peer's last INV
        last_inv_sequence: u64,
        /// how many txs we have queued to announce to this peer
        inv_to_send: u64,
        /// the UNIX epoch time of the last send
        lastsend: Time<u64>,
        /// the UNIX epoch time of the last receive
        lastrecv: Time<u64>,
        /// the UNIX epoch time of the last valid transaction received from this peer
        last_transaction: Time<u64>,
        /// the UNIX epoch time of the last block received from this peer
        last_block: Time<u64>,
        /// the total bytes sent
        bytessent: u64,
        /// the total bytes received
        bytesrecv: u64,
        /// the UNIX epoch time of the connection
        conntime: Time<u64>,
        /// the time offset in seconds
        timeoffset: i64,
        /// the last ping time in seconds, if any
        pingtime: Option<Double>,
        /// the minimum observed ping time in seconds, if any
        minping: Option<Double>,
        /// the duration in seconds of an outstanding ping (if non-zero)
        pingwait: Option<Double>,
        /// the peer version, such as 70001
        version: i32,
        /// the string version
        subver: String,
        /// inbound (true) or outbound (false)
        inbound: bool,
        /// whether we selected peer as (compact blocks) high-bandwidth peer
        bip152_hb_to: bool,
        /// whether peer selected us as (compact blocks) high-bandwidth peer
        bip152_hb_from: bool,
        /// the current height of header pre-synchronization with this peer, or -1 if no low-work sync is in progress
        presynced_headers: i64,
        /// the last header we have in common with this peer
        synced_headers: i64,
        /// the last block we have in common with this peer
        synced_blocks: i64,
        #[each("the heights of blocks we're currently asking from this peer")]
        inflight: Vec<u32>,
        /// whether we participate in address relay with this peer
        addr_relay_enabled: bool,
        /// the total number of addresses processed, excluding those dropped due to rate limiting
        addr_processed: u64,
        /// the total number of addresses dropped due to rate limiting
        addr_rate_limited: u64,
        /// any special permissions that have been granted to this peer
        #[each("a permission (bloomfilter, noban, forcerelay, relay, mempool, download, addr)")]
        permissions: Vec<&'static str>,
        /// the minimum fee rate for transactions this peer accepts
        minfeefilter: Amount,
        #[each(key "msg" "the total bytes sent, for each message type that was sent")]
        bytessent_per_msg: Map<String, u64>,
        #[each(key "msg" "the total bytes received, for each message type; unknown types are listed under '*other*'")]
        bytesrecv_per_msg: Map<String, u64>,
        /// type of connection: outbound-full-relay (default automatic connections), block-relay-only (does not relay
        /// transactions or addresses), inbound (initiated by the peer), manual (added via addnode RPC or
        /// -addnode/-connect configuration options), addr-fetch (short-lived automatic connection for soliciting
        /// addresses) or feeler (short-lived automatic connection for testing addresses)
        connection_type: &'static str,
        /// type of transport protocol: detecting (peer could be v1 or v2), v1 (plaintext transport protocol) or v2
        /// (BIP324 encrypted transport protocol)
        transport_protocol_type: String,
        /// the session ID for this connection, or "" if there is none ("v2" transport protocol only)
        session_id: String,
    }
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
            services: Hex(peer.services.0.to_be_bytes()),
            servicesnames: peer.services.names(),
            relaytxes: peer.relays_transactions,
            last_inv_sequence: peer.last_inv_sequence,
            inv_to_send: peer.queued_transactions as u64,
            lastsend: Time(traffic.last_send().0),
            lastrecv: Time(traffic.last_receive().0),
            last_transaction: Time(peer.last_transaction.0),
            last_block: Time(peer.last_block.0),
            bytessent: traffic.sent(),
            bytesrecv: traffic.received(),
            conntime: Time(peer.connected.0),
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
            bytessent_per_msg: Map(traffic.sent_by_message()),
            bytesrecv_per_msg: Map(traffic.received_by_message()),
            connection_type: peer.kind.name(),
            transport_protocol_type: transport.to_string(),
            session_id: session_id.map(|id| to_hex(&id)).unwrap_or_default(),
            subver: peer.user_agent,
        }
    }
}

fn getpeerinfo(call: &Call<'_>) -> Result<Vec<PeerAnswer>, RpcError> {
    let peers = ask(call.context, Question::Peers)?;
    Ok(peers.into_iter().map(PeerAnswer::new).collect())
}

fn addnode(call: &Call<'_>) -> Result<(), RpcError> {
    let target = call.text(0)?.to_owned();
    let command = match call.text(1)? {
        "add" => NodeCommand::Add,
        "remove" => NodeCommand::Remove,
        "onetry" => NodeCommand::OneTry,
        _ => return Err(RpcError::misc(call.method.help_text())),
    };
    let v2 = call.given(2).map(|v2| v2.as_bool()).transpose()?;
    let changed = ask(call.context, |reply| Question::Node { command, target, v2, reply })?;
    changed.map_err(|refusal| match refusal {
        NodeRefusal::V2Disabled => {
            RpcError::parameter("Error: v2transport requested but not enabled (see -v2transport)")
        }
        other => refused(other),
    })
}

/// The error for a node that is not added, removed or connected to.
fn refused(refusal: NodeRefusal) -> RpcError {
    match refusal {
        NodeRefusal::V2Disabled => {
            let words = "Error: Adding v2transport connections requires -v2transport init flag to be set.";
            RpcError::parameter(words)
        }
        NodeRefusal::AlreadyAdded => RpcError::new(code::CLIENT_NODE_ALREADY_ADDED, "Error: Node already added"),
        NodeRefusal::NotAdded => {
            let words = "Error: Node could not be removed. It has not been added previously.";
            RpcError::new(code::CLIENT_NODE_NOT_ADDED, words)
        }
        NodeRefusal::NoSlot => {
            let words = "Error: Already at capacity for specified connection type.";
            RpcError::new(code::CLIENT_NODE_CAPACITY_REACHED, words)
        }
    }
}

result! {
    /// The answer of `addconnection`.
    struct NewConnection {
        /// address of newly added connection
        address: String,
        /// type of connection opened
        connection_type: String,
    }
}

fn addconnection(call: &Call<'_>) -> Result<NewConnection, RpcError> {
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
        return Err(RpcError::parameter(call.method.help_text()));
    };
    let v2 = call.arg(2).as_bool()?;
    let target = address.clone();
    ask(call.context, |reply| Question::AddConnection { target, kind, v2, reply })?.map_err(refused)?;
    Ok(NewConnection { address, connection_type })
}

/// The characters that Core's `TrimString` removes.
const SPACES: &[char] = &[' ', '\u{c}', '\n', '\r', '\t', '\u{b}'];

fn disconnectnode(call: &Call<'_>) -> Result<(), RpcError> {
    let address = call.given(0).map(|address| address.as_text()).transpose()?.map(str::to_owned);
    let id = call.given(1).map(|id| id.as_integer::<i64>()).transpose()?;
    let is_found = match (address, id) {
        (Some(endpoint), None) => ask(call.context, |reply| Question::DisconnectEndpoint { endpoint, reply })?,
        (None, Some(id)) => disconnect(call, id)?,
        (Some(address), Some(id)) if address.is_empty() => disconnect(call, id)?,
        _ => {
            let words = "Only one of address and nodeid should be provided.";
            return Err(RpcError::new(code::INVALID_PARAMS, words));
        }
    };
    match is_found {
        true => Ok(()),
        false => Err(RpcError::new(code::CLIENT_NODE_NOT_CONNECTED, "Node not found in connected nodes")),
    }
}

fn disconnect(call: &Call<'_>, id: i64) -> Result<bool, RpcError> {
    ask(call.context, |reply| Question::DisconnectPeer { id: peer_id(id), reply })
}

result! {
    /// A peer in the answer of `getaddednodeinfo`.
    struct AddedAnswer {
        /// the node IP address or name (as provided to addnode)
        addednode: String,
        /// if connected
        connected: bool,
        /// only when connected = true
        addresses: Vec<AddedAddress>,
    }
}

result! {
    struct AddedAddress {
        /// the bitcoin server IP and port we're connected to
        address: String,
        /// connection, inbound or outbound
        connected: &'static str,
    }
}

fn getaddednodeinfo(call: &Call<'_>) -> Result<Vec<AddedAnswer>, RpcError> {
    let mut nodes = ask(call.context, Question::AddedNodes)?;
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
    Ok(nodes.into_iter().map(row).collect())
}

fn getblockfrompeer(call: &Call<'_>) -> Result<Empty, RpcError> {
    let hash = BlockHash(parse_hash(call.arg(0), "blockhash")?);
    let id = peer_id(call.arg(1).as_integer::<i64>()?);
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
    let fetched = ask(call.context, |reply| Question::FetchBlock { id, hash, reply })?;
    fetched.map_err(RpcError::misc)?;
    Ok(Empty)
}
