//! Methods about addresses of possible peers: the contents of the address manager, and additions to it for tests.

use super::net::{NETWORKS, ask};
use crate::error::{RpcError, code};
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::{Map, Time, result};
use lydian_p2p::addrman::{AddrInfo, Position};
use lydian_p2p::manager::{AddressCounts, AddressRefusal, AddressTable, Question};
use lydian_wire::{NetAddr, Network, TimedAddress};

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
    let added = ask(call.context, |reply| Question::AddAddress { addr, port, is_tried, reply })?;
    let error = added.err().map(|table| match table {
        AddressRefusal::New => "failed-adding-to-new",
        AddressRefusal::Tried => "failed-adding-to-tried",
    });
    Ok(Added { error, success: error.is_none() })
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
    let known = |address: TimedAddress| KnownAddress {
        time: Time(address.time),
        services: address.services.0,
        address: address.endpoint.addr.to_string(),
        port: address.endpoint.port,
        network: address.endpoint.addr.net_class().name(),
    };
    let addresses = ask(call.context, |reply| Question::Addresses { count, network, reply })?;
    Ok(addresses.into_iter().map(known).collect())
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
    let networks: Vec<_> = NETWORKS.iter().copied().map(Some).chain([None]).collect();
    let names: Vec<_> =
        networks.iter().map(|network| network.map_or("all_networks", |network| network.name())).collect();
    let counts = ask(call.context, |reply| Question::AddressCounts { networks, reply })?;
    let counts = counts.into_iter().map(|AddressCounts { new, tried }| Counts { new, tried, total: new + tried });
    Ok(Map(names.into_iter().zip(counts).collect()))
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
    let rows = |table: AddressTable| {
        let row = |(info, at): &(AddrInfo, Position)| (format!("{}/{}", at.bucket, at.position), Entry::of(info));
        Map(table.iter().map(row).collect())
    };
    let [new, tried] = ask(call.context, Question::AddressTables)?.map(rows);
    Ok(RawTables { new, tried })
}
