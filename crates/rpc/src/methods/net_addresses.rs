//! Methods about addresses of possible peers: the contents of the address manager, and additions to it for tests.

use super::net::{NETWORKS, ask};
use crate::error::{RpcError, code};
use crate::json::write_text;
use crate::method::{Arg, Call, Category, Kind, Method, answer};
use lydian_p2p::addrman::AddrInfo;
use lydian_wire::{Endpoint, NetAddr, Network, Services, TimedAddress};
use serde::Serialize;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "addpeeraddress",
        category: Category::Hidden,
        help: "Adds the address of a possible peer, as if the peer had announced it. For tests.",
        args: &[
            Arg::new("address", Kind::Text, "the address"),
            Arg::new("port", Kind::Number, "its port"),
            Arg::new("tried", Kind::Bool, "whether to treat it as connected to before").default("false"),
        ],
        result: "{success, error}",
        examples: &["\"1.2.3.4\" 8333 true"],
        remark: "",
        call: addpeeraddress,
    },
    Method {
        name: "getaddrmaninfo",
        category: Category::Network,
        help: "Returns the number of known addresses: heard of (new) and connected to before (tried).",
        args: &[],
        result: "{network: {new, tried, total}, ..., all_networks: {new, tried, total}}",
        examples: &[""],
        remark: "",
        call: getaddrmaninfo,
    },
    Method {
        name: "getnodeaddresses",
        category: Category::Network,
        help: "Returns random addresses of possible peers. Addresses that seem dead are omitted.",
        args: &[
            Arg::new("count", Kind::Number, "the maximum number; 0 for all").default("1"),
            Arg::new("network", Kind::Text, "only addresses of this network: ipv4, ipv6, onion, i2p, cjdns")
                .hint("all networks"),
        ],
        result: "[{time, services, address, port, network}, ...]",
        examples: &["8", "4 \"i2p\""],
        remark: "",
        call: getnodeaddresses,
    },
    Method {
        name: "getrawaddrman",
        category: Category::Hidden,
        help: "Returns the entries of the address manager's tables, by their positions.",
        args: &[],
        result: "{table: {\"bucket/position\": {address, port, services, time, network, source, source_network}, ...}, ...} for the tables new and tried",
        examples: &[""],
        remark: "",
        call: getrawaddrman,
    },
];

#[derive(Debug, Serialize)]
struct Added {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    success: bool,
}

fn addpeeraddress(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let (text, port) = (call.text(0)?, call.arg(1).as_integer::<u16>()?);
    let is_tried = call.bool_or(2, false)?;
    let addr: NetAddr =
        text.parse().map_err(|_| RpcError::new(code::CLIENT_INVALID_IP_OR_SUBNET, "Invalid IP address"))?;
    let added = ask(call.context, move |manager, now| {
        let addr = if manager.reachable().contains(&Network::Cjdns) { addr.maybe_cjdns() } else { addr };
        let endpoint = Endpoint { addr, port };
        let services = Services::NETWORK | Services::WITNESS;
        let address = TimedAddress { time: now.unix.to_u32(), services, endpoint };
        let addrman = manager.addrman_mut();
        let error = if addrman.add(&[address], &addr, 0, now.unix) == 0 {
            Some("failed-adding-to-new")
        } else if is_tried && !addrman.good(&endpoint, now.unix) {
            Some("failed-adding-to-tried")
        } else {
            None
        };
        Added { error, success: error.is_none() }
    })?;
    answer(out, &added)
}

#[derive(Debug, Serialize)]
struct KnownAddress {
    time: u32,
    services: u64,
    address: String,
    port: u16,
    network: &'static str,
}

fn getnodeaddresses(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let count = usize::try_from(call.i32_or(0, 1)?).map_err(|_| RpcError::parameter("Address count out of range"))?;
    let network = call.given(1).map(|name| parse_network(name.as_text()?)).transpose()?;
    let addresses: Vec<KnownAddress> = ask(call.context, move |manager, now| {
        let mut addresses = manager.addrman_mut().get_addr(count, 0, network, true, now.unix);
        let bans = manager.bans();
        addresses.retain(|address| {
            let addr = &address.endpoint.addr;
            !bans.is_discouraged(addr) && !bans.is_banned(addr, now.unix)
        });
        let known = |address: TimedAddress| KnownAddress {
            time: address.time,
            services: address.services.0,
            address: address.endpoint.addr.to_string(),
            port: address.endpoint.port,
            network: address.endpoint.addr.net_class().name(),
        };
        addresses.into_iter().map(known).collect()
    })?;
    answer(out, &addresses)
}

fn parse_network(text: &str) -> Result<Network, RpcError> {
    Network::from_name(text).ok_or_else(|| RpcError::parameter(format!("Network not recognized: {text}")))
}

#[derive(Debug, Serialize)]
struct Counts {
    new: usize,
    tried: usize,
    total: usize,
}

fn getaddrmaninfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let rows: Vec<(&str, Counts)> = ask(call.context, |manager, _| {
        let addrman = manager.addrman();
        let of = |network| Counts {
            new: addrman.size(network, Some(true)),
            tried: addrman.size(network, Some(false)),
            total: addrman.size(network, None),
        };
        let networks = NETWORKS.iter().map(|network| (network.name(), of(Some(*network))));
        networks.chain([("all_networks", of(None))]).collect()
    })?;
    write_object(out, rows.iter().map(|(name, counts)| (*name, counts)))
}

#[derive(Debug, Serialize)]
struct Entry {
    address: String,
    port: u16,
    services: u64,
    time: u32,
    network: &'static str,
    source: String,
    source_network: &'static str,
}

impl Entry {
    fn of(info: &AddrInfo) -> Entry {
        let (endpoint, source) = (info.address.endpoint, info.source);
        Entry {
            address: endpoint.addr.to_string(),
            port: endpoint.port,
            services: info.address.services.0,
            time: info.address.time,
            network: endpoint.addr.net_class().name(),
            source: source.to_string(),
            source_network: source.net_class().name(),
        }
    }
}

/// The entries of a table with their positions.
type Table = Vec<(String, Entry)>;

fn getrawaddrman(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let [new, tried]: [Table; 2] = ask(call.context, |manager, _| {
        [false, true].map(|is_tried| {
            let entries = manager.addrman().entries(is_tried);
            entries.map(|(info, at)| (format!("{}/{}", at.bucket, at.position), Entry::of(info))).collect()
        })
    })?;
    out.extend_from_slice(b"{\"new\":");
    write_object(out, new.iter().map(|(place, entry)| (place.as_str(), entry)))?;
    out.extend_from_slice(b",\"tried\":");
    write_object(out, tried.iter().map(|(place, entry)| (place.as_str(), entry)))?;
    out.push(b'}');
    Ok(())
}

/// Writes an object with data as keys.
pub(super) fn write_object<'a, T: Serialize + 'a>(
    out: &mut Vec<u8>,
    entries: impl Iterator<Item = (&'a str, &'a T)>,
) -> Result<(), RpcError> {
    out.push(b'{');
    for (index, (name, value)) in entries.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(name, out);
        out.push(b':');
        answer(out, value)?;
    }
    out.push(b'}');
    Ok(())
}
