//! Methods about addresses of possible peers: the contents of the address manager, and additions to it for tests.

use super::net::{NETWORKS, ask};
use crate::error::{RpcError, code};
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::{Map, Time, result};
use lydian_p2p::addrman::AddrInfo;
use lydian_wire::{Endpoint, NetAddr, Network, Services, TimedAddress};

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
        examples: &["\"1.2.3.4\" 8333 true"],
        remark: "",
        call: &returns("", addpeeraddress),
    },
    Method {
        name: "getaddrmaninfo",
        category: Category::Network,
        help: "Returns the number of known addresses: heard of (new) and connected to before (tried).",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", getaddrmaninfo)
            .each_key("network", "the network (ipv4, ipv6, onion, i2p, cjdns, all_networks)"),
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
        examples: &["8", "4 \"i2p\""],
        remark: "",
        call: &returns("", getnodeaddresses),
    },
    Method {
        name: "getrawaddrman",
        category: Category::Hidden,
        help: "Returns the entries of the address manager's tables, by their positions.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", getrawaddrman),
    },
];

result! {
    /// The answer of `addpeeraddress`.
    struct Added {
        /// error description, if the address could not be added
        error: Option<&'static str>,
        /// whether the peer address was successfully added to the address manager table
        success: bool,
    }
}

fn addpeeraddress(call: &Call<'_>) -> Result<Added, RpcError> {
    let (text, port) = (call.text(0)?, call.arg(1).as_integer::<u16>()?);
    let is_tried = call.bool_or(2, false)?;
    let addr: NetAddr =
        text.parse().map_err(|_| RpcError::new(code::CLIENT_INVALID_IP_OR_SUBNET, "Invalid IP address"))?;
    ask(call.context, move |manager, now| {
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
    })
}

result! {
    /// An address in the answer of `getnodeaddresses`.
    struct KnownAddress {
        /// the UNIX epoch time when the node was last seen
        time: Time<u32>,
        /// the services offered by the node
        services: u64,
        /// the address of the node
        address: String,
        /// the port number of the node
        port: u16,
        /// the network (ipv4, ipv6, onion, i2p, cjdns) the node connected through
        network: &'static str,
    }
}

fn getnodeaddresses(call: &Call<'_>) -> Result<Vec<KnownAddress>, RpcError> {
    let count = usize::try_from(call.i32_or(0, 1)?).map_err(|_| RpcError::parameter("Address count out of range"))?;
    let network = call.given(1).map(|name| parse_network(name.as_text()?)).transpose()?;
    ask(call.context, move |manager, now| {
        let mut addresses = manager.addrman_mut().get_addr(count, 0, network, true, now.unix);
        let bans = manager.bans();
        addresses.retain(|address| {
            let addr = &address.endpoint.addr;
            !bans.is_discouraged(addr) && !bans.is_banned(addr, now.unix)
        });
        let known = |address: TimedAddress| KnownAddress {
            time: Time(address.time),
            services: address.services.0,
            address: address.endpoint.addr.to_string(),
            port: address.endpoint.port,
            network: address.endpoint.addr.net_class().name(),
        };
        addresses.into_iter().map(known).collect()
    })
}

fn parse_network(text: &str) -> Result<Network, RpcError> {
    Network::from_name(text).ok_or_else(|| RpcError::parameter(format!("Network not recognized: {text}")))
}

result! {
    /// The addresses of a network in the answer of `getaddrmaninfo`.
    struct Counts {
        /// number of addresses in the new table, which represent potential peers that were never connected to
        new: usize,
        /// number of addresses in the tried table, which represent peers that were connected to in the past
        tried: usize,
        /// total number of addresses in both new/tried tables
        total: usize,
    }
}

fn getaddrmaninfo(call: &Call<'_>) -> Result<Map<&'static str, Counts>, RpcError> {
    ask(call.context, |manager, _| {
        let addrman = manager.addrman();
        let of = |network| Counts {
            new: addrman.size(network, Some(true)),
            tried: addrman.size(network, Some(false)),
            total: addrman.size(network, None),
        };
        let networks = NETWORKS.iter().map(|network| (network.name(), of(Some(*network))));
        Map(networks.chain([("all_networks", of(None))]).collect())
    })
}

result! {
    /// An entry of a table in the answer of `getrawaddrman`.
    struct Entry {
        /// the address of the node
        address: String,
        /// the port number of the node
        port: u16,
        /// the services offered by the node
        services: u64,
        /// the UNIX epoch time when the node was last seen
        time: Time<u32>,
        /// the network (ipv4, ipv6, onion, i2p, cjdns) of the address
        network: &'static str,
        /// the address that relayed the address to us
        source: String,
        /// the network (ipv4, ipv6, onion, i2p, cjdns) of the source address
        source_network: &'static str,
    }
}

impl Entry {
    fn of(info: &AddrInfo) -> Entry {
        let (endpoint, source) = (info.address.endpoint, info.source);
        Entry {
            address: endpoint.addr.to_string(),
            port: endpoint.port,
            services: info.address.services.0,
            time: Time(info.address.time),
            network: endpoint.addr.net_class().name(),
            source: source.to_string(),
            source_network: source.net_class().name(),
        }
    }
}

/// The entries of a table by their positions.
type Table = Map<String, Entry>;

result! {
    /// The answer of `getrawaddrman`.
    struct RawTables {
        /// addresses of peers that were never connected to
        #[each(key "bucket/position" "the location in the table")]
        new: Table,
        /// addresses of peers that were connected to in the past
        #[each(key "bucket/position" "the location in the table")]
        tried: Table,
    }
}

fn getrawaddrman(call: &Call<'_>) -> Result<RawTables, RpcError> {
    ask(call.context, |manager, _| {
        let [new, tried] = [false, true].map(|is_tried| {
            let entries = manager.addrman().entries(is_tried);
            let entries = entries.map(|(info, at)| (format!("{}/{}", at.bucket, at.position), Entry::of(info)));
            Map(entries.collect())
        });
        RawTables { new, tried }
    })
}
