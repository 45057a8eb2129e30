//! Options of the Electrum server and its index. Data only: entries of the option table.

use super::{Opt, PATH, SWITCH, TEXT, group, integer};
use crate::settings::electrum;
use lydian_options::{Kind, Set};

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "electrum",
        is_own: true,
        group: group::START,
        help: "Serve Electrum wallets over TCP, TLS and websocket, on this machine only unless an address is given (-electrumbind and others). Implies -addressindex",
        set: Set::Switch(|settings, is_on| settings.electrum.is_on = is_on),
        ..SWITCH
    },
    Opt {
        name: "electrumbind",
        argument: "<addr>[:port]",
        is_own: true,
        is_list: true,
        group: group::ELECTRUM,
        default: "127.0.0.1 and ::1, port 50001, testnet3: 60001, testnet4: 40001, signet: 60601, regtest: 60401",
        help: "Listen for wallets at the given address, for anyone who reaches it. Connections are not encrypted",
        ..TEXT
    },
    Opt {
        name: "electrumtlsbind",
        argument: "<addr>[:port]",
        is_own: true,
        is_list: true,
        group: group::ELECTRUM,
        default: "127.0.0.1 and ::1, at the port after that of -electrumbind",
        help: "Listen for wallets that speak TLS at the given address; 0 for no TLS",
        ..TEXT
    },
    Opt {
        name: "electrumwsbind",
        argument: "<addr>[:port]",
        is_own: true,
        is_list: true,
        group: group::ELECTRUM,
        default: "127.0.0.1 and ::1, two ports after that of -electrumbind",
        help: "Listen for wallets that speak websocket at the given address; 0 for none",
        ..TEXT
    },
    Opt {
        name: "electrumwssbind",
        argument: "<addr>[:port]",
        is_own: true,
        is_list: true,
        group: group::ELECTRUM,
        default: "127.0.0.1 and ::1, three ports after that of -electrumbind; none with -electrumtlsbind=0",
        help: "Listen for wallets that speak websocket over TLS at the given address; 0 for none",
        ..TEXT
    },
    Opt {
        name: "electrumproxy",
        argument: "<subnet>",
        is_own: true,
        is_list: true,
        group: group::ELECTRUM,
        help: "A reverse proxy at this address, or at an address of this subnet, passes wallets on: each of its connections must begin with a header of the PROXY protocol, version 2",
        ..TEXT
    },
    Opt {
        name: "electrumcors",
        argument: "<origin>",
        is_own: true,
        group: group::ELECTRUM,
        default: "none",
        help: "Let web pages of this origin connect over websocket; * for every origin",
        set: Set::Value(|settings, setting| {
            electrum::origin("electrumcors", setting).map(|cors| settings.electrum.cors = cors)
        }),
        ..TEXT
    },
    Opt {
        name: "electrumcert",
        is_own: true,
        group: group::ELECTRUM,
        default: "self-made, in the data directory",
        help: "Certificate for TLS in PEM, with those that certify it behind it",
        set: Set::Path(|settings, path| settings.electrum.certificate = path),
        ..PATH
    },
    Opt {
        name: "electrumkey",
        is_own: true,
        group: group::ELECTRUM,
        default: "self-made, in the data directory",
        help: "Private key of -electrumcert in PEM",
        set: Set::Path(|settings, path| settings.electrum.key = path),
        ..PATH
    },
    Opt {
        name: "electrumbanner",
        is_own: true,
        group: group::ELECTRUM,
        default: "the version of the node",
        help: "A file with the text that wallets show of this server, in UTF-8",
        set: Set::Path(|settings, path| settings.electrum.banner = path),
        ..PATH
    },
    Opt {
        name: "electrumdonation",
        argument: "<address>",
        is_own: true,
        group: group::ELECTRUM,
        help: "The address for donations that wallets show",
        ..TEXT
    },
    Opt {
        name: "electrumhost",
        argument: "<service>://<host>[:<port>]",
        is_own: true,
        is_list: true,
        group: group::ELECTRUM,
        help: "Announce that this server is reached there. <service> is tcp, ssl, ws or wss",
        ..TEXT
    },
    Opt {
        name: "electrumpeer",
        argument: "<service>://<host>[:<port>][/<version>]",
        is_own: true,
        is_list: true,
        group: group::ELECTRUM,
        help: "Announce another server to wallets; it speaks the protocol up to <version> (default: 1.4). <service> is tcp or ssl",
        ..TEXT
    },
    Opt {
        name: "electrumcostsoft",
        is_own: true,
        group: group::ELECTRUM,
        default: "1000",
        help: "Answer wallets of a subnet more slowly if the answers to it cost more than <n> units; wallets on this machine cost nothing (0: never)",
        set: Set::Integer(|settings, units| settings.electrum.costs.soft = electrum::cost(units)),
        ..integer(0, electrum::COST_MAX)
    },
    Opt {
        name: "electrumcosthard",
        is_own: true,
        group: group::ELECTRUM,
        default: "10000",
        help: "Disconnect wallets of a subnet if the answers to it cost more than <n> units (0: never)",
        set: Set::Integer(|settings, units| settings.electrum.costs.hard = electrum::cost(units)),
        ..integer(0, electrum::COST_MAX)
    },
    Opt {
        name: "electrumname",
        argument: "<text>",
        is_own: true,
        group: group::ELECTRUM,
        default: "the version, and that it is like ElectrumX",
        help: "The name that wallets are told. Some of them send batches only to servers of names that they know",
        set: Set::Value(|settings, setting| {
            setting.text().clone_into(&mut settings.electrum.name);
            Ok(())
        }),
        ..TEXT
    },
    Opt {
        name: "addressindex",
        argument: "<profile>",
        choices: &["compact", "full", "0"],
        is_own: true,
        kind: Kind::Text,
        group: group::ELECTRUM,
        default: "compact with -electrum, -esplora or -index, otherwise 0",
        help: "Maintain an index of all outputs by script, and of the inputs that spend them. <profile> is compact; full adds the txids in the order of the chain, 32 bytes for each transaction, so that a history needs no transaction to be read; 0 for none",
        set: Set::Value(|settings, setting| {
            electrum::index(setting).map(|profile| settings.electrum.index = Some(profile))
        }),
        ..SWITCH
    },
    Opt {
        name: "index",
        argument: "<address>",
        is_own: true,
        group: group::ELECTRUM,
        default: "none",
        help: "Also write the index of -addressindex to Apache Cassandra, at its own pace: cassandra://HOST[:PORT],HOST/KEYSPACE. Needs a program built with the cargo feature cassandra",
        set: Set::Value(|settings, setting| electrum::store(setting).map(|address| settings.shared_index = address)),
        ..TEXT
    },
    Opt {
        name: "storeblocks",
        is_own: true,
        group: group::ELECTRUM,
        help: "Also write the bytes of the blocks to the store of -index, or of lydian index load, as far as they were not pruned: front ends then answer with blocks and transactions while no node runs. About 700 GB for each copy on mainnet",
        set: Set::Switch(|settings, is_on| settings.store_blocks = is_on),
        ..SWITCH
    },
];
