//! Methods about the network as a whole: its state, its traffic, and switching it on and off. All answers come from the
//! peer manager, which processes the questions in order with the messages of peers.

use crate::context::Context;
use crate::error::{RpcError, code};
use crate::json::Amount;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::methods::blockchain::Warnings;
use crate::output::Hex;
use crate::result::{Time, result};
use lydian_p2p::local_address::LocalAddress;
use lydian_p2p::manager::{NetworkInfo, PeerId, Question, Reply};
use lydian_p2p::upload::UploadInfo;
use lydian_wire::Network;
use lydian_wire::message::PROTOCOL_VERSION;

/// `CLIENT_VERSION` of the Core release with these rules and this interface.
pub(crate) const VERSION: u32 = 310_000;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getconnectioncount",
        category: Category::Network,
        help: "Returns the number of connected peers.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("the connection count", getconnectioncount),
    },
    Method {
        name: "getnettotals",
        category: Category::Network,
        help: "Returns the traffic since the node started, and what is left of -maxuploadtarget.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", getnettotals),
    },
    Method {
        name: "getnetworkinfo",
        category: Category::Network,
        help: "Returns the state of the P2P network.",
        args: &[],
        examples: &[""],
        remark: "`version` and the first part of `subversion` are those of the Core release with this interface, since programs compare them; \
                 the second part of `subversion` names Lydian.",
        call: &returns("", getnetworkinfo),
    },
    Method {
        name: "ping",
        category: Category::Network,
        help: "Sends a ping to every peer. getpeerinfo reports its time once the pong has arrived. Peers answer it in order with other messages.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", ping),
    },
    Method {
        name: "setnetworkactive",
        category: Category::Network,
        help: "Switches all P2P network activity on or off.",
        args: &[Arg::new("state", Kind::Bool, "true for on, false for off")],
        examples: &[],
        remark: "",
        call: &returns("the new state", setnetworkactive),
    },
];

/// Returns the peer manager's answer, or Core's error if there is no network.
pub(super) fn ask<T>(context: &Context, question: impl FnOnce(Reply<T>) -> Question) -> Result<T, RpcError> {
    context.ask_peers(question).ok_or_else(|| {
        let words = "Error: Peer-to-peer functionality missing or disabled";
        RpcError::new(code::CLIENT_P2P_DISABLED, words)
    })
}

/// The peer of an argument. No peer has the id of a negative number.
pub(super) fn peer_id(id: i64) -> PeerId {
    PeerId(u64::try_from(id).unwrap_or(u64::MAX))
}

fn getconnectioncount(call: &Call<'_>) -> Result<usize, RpcError> {
    Ok(ask(call.context, Question::Peers)?.len())
}

fn ping(call: &Call<'_>) -> Result<(), RpcError> {
    ask(call.context, Question::Ping)
}

fn setnetworkactive(call: &Call<'_>) -> Result<bool, RpcError> {
    let on = call.arg(0).as_bool()?;
    ask(call.context, |reply| Question::SetNetworkActive { on, reply })
}

result! {
    /// The answer of `getnettotals`.
    struct NetTotals {
        /// total bytes received
        totalbytesrecv: u64,
        /// total bytes sent
        totalbytessent: u64,
        /// current system UNIX epoch time in milliseconds
        timemillis: Time<u64>,
        uploadtarget: UploadTarget,
    }
}

result! {
    struct UploadTarget {
        /// length of the measuring timeframe in seconds
        timeframe: u64,
        /// target in bytes
        target: u64,
        /// true if target is reached
        target_reached: bool,
        /// true if serving historical blocks
        serve_historical_blocks: bool,
        /// bytes left in current time cycle
        bytes_left_in_cycle: u64,
        /// seconds left in current time cycle
        time_left_in_cycle: u64,
    }
}

impl UploadTarget {
    fn of(info: &UploadInfo) -> UploadTarget {
        UploadTarget {
            timeframe: info.timeframe_s,
            target: info.target,
            target_reached: info.is_reached,
            serve_historical_blocks: info.serves_historical_blocks,
            bytes_left_in_cycle: info.bytes_left,
            time_left_in_cycle: info.time_left_s,
        }
    }
}

fn getnettotals(call: &Call<'_>) -> Result<NetTotals, RpcError> {
    let timemillis = call.context.host.unix_micros() / 1_000;
    let traffic = ask(call.context, Question::Traffic)?;
    Ok(NetTotals {
        totalbytesrecv: traffic.received,
        totalbytessent: traffic.sent,
        timemillis: Time(timemillis),
        uploadtarget: UploadTarget::of(&traffic.upload),
    })
}

result! {
    /// The answer of `getnetworkinfo`.
    struct NetworkAnswer {
        /// the server version
        version: u32,
        /// the server subversion string
        subversion: String,
        /// the protocol version
        protocolversion: i32,
        /// the services we offer to the network
        localservices: Hex<[u8; 8]>,
        /// the services we offer to the network, in human-readable form
        #[each("the service name")]
        localservicesnames: Vec<String>,
        /// true if transaction relay is requested from peers
        localrelay: bool,
        /// the time offset
        timeoffset: i64,
        /// whether p2p networking is enabled
        networkactive: bool,
        /// the total number of connections
        connections: usize,
        /// the number of inbound connections
        connections_in: usize,
        /// the number of outbound connections
        connections_out: usize,
        /// information per network
        networks: Vec<NetworkState>,
        /// minimum relay fee rate for transactions in BTC/kvB
        relayfee: Option<Amount>,
        /// minimum fee rate increment for mempool limiting or replacement in BTC/kvB
        incrementalfee: Option<Amount>,
        /// list of local addresses
        localaddresses: Vec<LocalAnswer>,
        warnings: Warnings,
    }
}

result! {
    struct NetworkState {
        /// network (ipv4, ipv6, onion, i2p, cjdns)
        name: &'static str,
        /// is the network limited using -onlynet?
        limited: bool,
        /// is the network reachable?
        reachable: bool,
        /// ("host:port") the proxy that is used for this network, or empty if none
        proxy: String,
        /// whether randomized credentials are used
        proxy_randomize_credentials: bool,
    }
}

result! {
    struct LocalAnswer {
        /// network address
        address: String,
        /// network port
        port: u16,
        /// relative score
        score: i32,
    }
}

impl LocalAnswer {
    fn of(known: &LocalAddress) -> LocalAnswer {
        let LocalAddress { endpoint, score } = known;
        LocalAnswer { address: endpoint.addr.to_string(), port: endpoint.port, score: *score }
    }
}

fn getnetworkinfo(call: &Call<'_>) -> Result<NetworkAnswer, RpcError> {
    let warnings = Warnings::of(call.context);
    let info = ask(call.context, Question::Network)?;
    let fees = call.context.mempool().ok().map(|mempool| mempool.settings());
    Ok(NetworkAnswer {
        version: VERSION,
        subversion: String::from_utf8_lossy(&info.user_agent).into_owned(),
        protocolversion: PROTOCOL_VERSION,
        localservices: Hex(info.services.0.to_be_bytes()),
        localservicesnames: info.services.names(),
        localrelay: !info.ignores_transactions,
        timeoffset: info.time_offset_s,
        networkactive: info.is_active,
        connections: info.inbound + info.outbound,
        connections_in: info.inbound,
        connections_out: info.outbound,
        networks: NETWORKS.iter().map(|network| network_state(&info, *network)).collect(),
        relayfee: fees.map(|fees| Amount(fees.min_relay_fee.fee_per_kvb())),
        incrementalfee: fees.map(|fees| Amount(fees.incremental_relay_fee.fee_per_kvb())),
        localaddresses: info.addresses.iter().map(LocalAnswer::of).collect(),
        warnings,
    })
}

/// The networks of addresses, in Core's order.
pub(super) const NETWORKS: [Network; 5] = [Network::Ipv4, Network::Ipv6, Network::TorV3, Network::I2p, Network::Cjdns];

fn network_state(info: &NetworkInfo, network: Network) -> NetworkState {
    let proxy = info.proxies.of(network);
    let reachable = info.reachable.contains(&network);
    NetworkState {
        name: network.name(),
        limited: !reachable,
        reachable,
        proxy: proxy.map(|proxy| proxy.address.to_string()).unwrap_or_default(),
        proxy_randomize_credentials: proxy.is_some_and(|proxy| proxy.isolates_streams),
    }
}
