//! Methods about the network as a whole: its state, its traffic, and switching it on and off. All answers come from the
//! peer manager, which processes the questions in order with the messages of peers.

use crate::context::Context;
use crate::error::{RpcError, code};
use crate::json::Amount;
use crate::method::{Arg, Call, Category, Kind, Method, answer};
use crate::methods::blockchain::Warnings;
use lydian_p2p::Moment;
use lydian_p2p::local_address::LocalAddress;
use lydian_p2p::manager::PeerManager;
use lydian_p2p::upload::UploadInfo;
use lydian_wire::Network;
use lydian_wire::message::PROTOCOL_VERSION;
use serde::Serialize;

/// `CLIENT_VERSION` of the Core release with these rules and this interface.
const VERSION: u32 = 310_000;

/// Core's `DEFAULT_MIN_RELAY_TX_FEE` and `DEFAULT_INCREMENTAL_RELAY_FEE`.
const RELAY_FEE: Amount = Amount(100);

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getconnectioncount",
        category: Category::Network,
        help: "Returns the number of connected peers.",
        args: &[],
        result: "the number of peers",
        examples: &[""],
        remark: "",
        call: getconnectioncount,
    },
    Method {
        name: "getnettotals",
        category: Category::Network,
        help: "Returns the traffic since the node started, and what is left of -maxuploadtarget.",
        args: &[],
        result: "{totalbytesrecv, totalbytessent, timemillis, uploadtarget: {timeframe, target, target_reached, serve_historical_blocks, \
                 bytes_left_in_cycle, time_left_in_cycle}}",
        examples: &[""],
        remark: "",
        call: getnettotals,
    },
    Method {
        name: "getnetworkinfo",
        category: Category::Network,
        help: "Returns the state of the P2P network.",
        args: &[],
        result: "{version, subversion, protocolversion, localservices, localservicesnames, localrelay, timeoffset, networkactive, connections, \
                 connections_in, connections_out, networks: [{name, limited, reachable, proxy, proxy_randomize_credentials}, ...], relayfee, \
                 incrementalfee, localaddresses: [{address, port, score}, ...], warnings}",
        examples: &[""],
        remark: "`version` and the first part of `subversion` are those of the Core release with this interface, since programs compare them; \
                 the second part of `subversion` names Lydian. `localrelay` is false until there is a mempool.",
        call: getnetworkinfo,
    },
    Method {
        name: "ping",
        category: Category::Network,
        help: "Sends a ping to every peer. getpeerinfo reports its time once the pong has arrived. Peers answer it in order with other messages.",
        args: &[],
        result: "null",
        examples: &[""],
        remark: "",
        call: ping,
    },
    Method {
        name: "setnetworkactive",
        category: Category::Network,
        help: "Switches all P2P network activity on or off.",
        args: &[Arg::new("state", Kind::Bool, "true for on, false for off")],
        result: "the new state",
        examples: &[],
        remark: "",
        call: setnetworkactive,
    },
];

/// Returns the peer manager's answer, or Core's error if there is no network.
pub(super) fn ask<T: Send + 'static>(
    context: &Context,
    question: impl FnOnce(&mut PeerManager, Moment) -> T + Send + 'static,
) -> Result<T, RpcError> {
    context.ask_peers(question).ok_or_else(|| {
        let words = "Error: Peer-to-peer functionality missing or disabled";
        RpcError::new(code::CLIENT_P2P_DISABLED, words)
    })
}

fn getconnectioncount(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    answer(out, &ask(call.context, |manager, now| manager.peers(now).len())?)
}

fn ping(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    answer(out, &ask(call.context, |manager, _| manager.ping_all())?)
}

fn setnetworkactive(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let on = call.arg(0).as_bool()?;
    let is_active = ask(call.context, move |manager, _| {
        manager.set_network_active(on);
        manager.is_network_active()
    })?;
    answer(out, &is_active)
}

#[derive(Debug, Serialize)]
struct NetTotals {
    totalbytesrecv: u64,
    totalbytessent: u64,
    timemillis: u64,
    uploadtarget: UploadTarget,
}

#[derive(Debug, Serialize)]
struct UploadTarget {
    timeframe: u64,
    target: u64,
    target_reached: bool,
    serve_historical_blocks: bool,
    bytes_left_in_cycle: u64,
    time_left_in_cycle: u64,
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

fn getnettotals(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let timemillis = call.context.host.unix_micros() / 1_000;
    let totals = ask(call.context, move |manager, _| NetTotals {
        totalbytesrecv: manager.traffic().received(),
        totalbytessent: manager.traffic().sent(),
        timemillis,
        uploadtarget: UploadTarget::of(&manager.upload_info()),
    })?;
    answer(out, &totals)
}

#[derive(Debug, Serialize)]
struct NetworkInfo {
    version: u32,
    subversion: String,
    protocolversion: i32,
    localservices: String,
    localservicesnames: Vec<String>,
    localrelay: bool,
    timeoffset: i64,
    networkactive: bool,
    connections: usize,
    connections_in: usize,
    connections_out: usize,
    networks: Vec<NetworkState>,
    relayfee: Amount,
    incrementalfee: Amount,
    localaddresses: Vec<LocalAnswer>,
    warnings: Warnings,
}

#[derive(Debug, Serialize)]
struct NetworkState {
    name: &'static str,
    limited: bool,
    reachable: bool,
    proxy: String,
    proxy_randomize_credentials: bool,
}

#[derive(Debug, Serialize)]
struct LocalAnswer {
    address: String,
    port: u16,
    score: i32,
}

impl LocalAnswer {
    fn of(known: &LocalAddress) -> LocalAnswer {
        let LocalAddress { endpoint, score } = known;
        LocalAnswer { address: endpoint.addr.to_string(), port: endpoint.port, score: *score }
    }
}

fn getnetworkinfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let warnings = Warnings::of(call.context);
    answer(out, &ask(call.context, move |manager, now| network_info(manager, now, warnings))?)
}

fn network_info(manager: &PeerManager, now: Moment, warnings: Warnings) -> NetworkInfo {
    let (local, peers) = (manager.local(), manager.peers(now));
    let connections_in = peers.iter().filter(|peer| peer.kind.is_inbound()).count();
    NetworkInfo {
        version: VERSION,
        subversion: String::from_utf8_lossy(&local.user_agent).into_owned(),
        protocolversion: PROTOCOL_VERSION,
        localservices: format!("{:016x}", local.services.0),
        localservicesnames: local.services.names(),
        localrelay: !local.ignores_transactions,
        timeoffset: manager.median_time_offset_s(),
        networkactive: manager.is_network_active(),
        connections: peers.len(),
        connections_in,
        connections_out: peers.len() - connections_in,
        networks: NETWORKS.iter().map(|network| network_state(manager, *network)).collect(),
        relayfee: RELAY_FEE,
        incrementalfee: RELAY_FEE,
        localaddresses: manager.local_addresses().iter().map(LocalAnswer::of).collect(),
        warnings,
    }
}

/// The networks of addresses, in Core's order.
pub(super) const NETWORKS: [Network; 5] = [Network::Ipv4, Network::Ipv6, Network::TorV3, Network::I2p, Network::Cjdns];

fn network_state(manager: &PeerManager, network: Network) -> NetworkState {
    let proxy = manager.proxies().of(network);
    let reachable = manager.reachable().contains(&network);
    NetworkState {
        name: network.name(),
        limited: !reachable,
        reachable,
        proxy: proxy.map(|proxy| proxy.address.to_string()).unwrap_or_default(),
        proxy_randomize_credentials: proxy.is_some_and(|proxy| proxy.isolates_streams),
    }
}
