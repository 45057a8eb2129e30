//! Options of the connections to peers. Data only: entries of the option table.

use super::{Opt, SWITCH, TEXT, group, integer};
use crate::settings::net::CONNECT_TIMEOUT_DEFAULT;
use lydian_options::Set;
use std::time::Duration;

fn kilobytes(count: i64) -> usize {
    usize::try_from(count).unwrap_or(0).saturating_mul(1000)
}

/// As in Core, a value that is not positive means the default.
fn connect_timeout(milliseconds: i64) -> Duration {
    let milliseconds = u64::try_from(milliseconds).ok().filter(|count| *count > 0);
    milliseconds.map_or(CONNECT_TIMEOUT_DEFAULT, Duration::from_millis)
}

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "addnode",
        argument: "<ip>",
        is_list: true,
        is_of_chain: true,
        group: group::CONNECTION,
        help: "Add a node to connect to and attempt to keep the connection open; up to 8 at a time, counted separately from -maxconnections",
        set: Set::List(|settings, peers| settings.net.added = peers),
        ..TEXT
    },
    Opt {
        name: "bantime",
        group: group::CONNECTION,
        default: "86400",
        help: "Seconds for which a manually configured ban lasts",
        set: Set::Integer(|settings, seconds| settings.net.ban_seconds = u64::try_from(seconds).unwrap_or(1)),
        ..integer(1, 1 << 40)
    },
    Opt {
        name: "bind",
        argument: "<addr>[:<port>][=onion]",
        is_list: true,
        is_of_chain: true,
        group: group::CONNECTION,
        default: "0.0.0.0 and [::]",
        help: "Bind to given address and always listen on it; use [host]:port notation for IPv6. Append =onion to tag any incoming connections to that address and port as incoming Tor connections",
        ..TEXT
    },
    Opt {
        name: "cjdnsreachable",
        group: group::CONNECTION,
        help: "If set, then this host is configured for CJDNS (connecting to fc00::/8 addresses would lead us to the CJDNS network)",
        ..SWITCH
    },
    Opt {
        name: "connect",
        argument: "<ip>",
        is_list: true,
        is_of_chain: true,
        group: group::CONNECTION,
        help: "Connect only to the specified node; -noconnect disables automatic connections (the rules for this peer are the same as for -addnode)",
        ..TEXT
    },
    Opt {
        name: "discover",
        group: group::CONNECTION,
        default: "1 when listening and no -externalip or -proxy",
        help: "Discover own IP addresses",
        ..SWITCH
    },
    Opt {
        name: "dns",
        group: group::CONNECTION,
        default: "1",
        help: "Allow DNS lookups for -addnode, -seednode and -connect",
        ..SWITCH
    },
    Opt {
        name: "dnsseed",
        group: group::CONNECTION,
        default: "1 unless -connect used or -maxconnections=0",
        help: "Query for peer addresses via DNS lookup, if low on addresses",
        ..SWITCH
    },
    Opt {
        name: "externalip",
        argument: "<ip>",
        is_list: true,
        group: group::CONNECTION,
        help: "Specify your own public address",
        ..TEXT
    },
    Opt {
        name: "fixedseeds",
        group: group::CONNECTION,
        default: "1",
        help: "Allow fixed seeds if DNS seeds don't provide peers",
        ..SWITCH
    },
    Opt {
        name: "forcednsseed",
        group: group::CONNECTION,
        help: "Always query for peer addresses via DNS lookup",
        ..SWITCH
    },
    Opt {
        name: "listen",
        group: group::CONNECTION,
        default: "1 if no -proxy, -connect or -maxconnections=0",
        help: "Accept connections from outside",
        ..SWITCH
    },
    Opt {
        name: "maxconnections",
        group: group::CONNECTION,
        default: "125",
        help: "Maintain at most <n> automatic connections to peers. This limit does not apply to connections manually added via -addnode or the addnode RPC, which have a separate limit of 8",
        ..integer(i64::MIN, 1 << 20)
    },
    Opt {
        name: "maxreceivebuffer",
        group: group::CONNECTION,
        default: "5000",
        help: "Maximum per-connection receive buffer, <n>*1000 bytes",
        set: Set::Integer(|settings, count| settings.net.receive_buffer_bytes = kilobytes(count)),
        ..integer(0, 1 << 32)
    },
    Opt {
        name: "maxsendbuffer",
        group: group::CONNECTION,
        default: "1000",
        help: "Maximum per-connection memory usage for the send buffer, <n>*1000 bytes",
        set: Set::Integer(|settings, count| settings.net.send_buffer_bytes = kilobytes(count)),
        ..integer(0, 1 << 32)
    },
    Opt {
        name: "maxuploadtarget",
        argument: "<n>",
        group: group::CONNECTION,
        default: "0M",
        help: "Tries to keep outbound traffic under the given target per 24h. Limit does not apply to peers with 'download' permission or blocks created within past week. 0 = no limit. Optional suffix units [k|K|m|M|g|G|t|T] (default: M). Lowercase is 1000 base while uppercase is 1024 base",
        ..TEXT
    },
    Opt {
        name: "networkactive",
        group: group::CONNECTION,
        default: "1",
        help: "Enable all P2P network activity. Can be changed by the setnetworkactive RPC command",
        set: Set::Switch(|settings, is_on| settings.net.is_active = is_on),
        ..SWITCH
    },
    Opt {
        name: "onion",
        argument: "<ip:port|path>",
        group: group::CONNECTION,
        default: "-proxy",
        help: "Use separate SOCKS5 proxy to reach peers via Tor onion services, set -noonion to disable. May be a local file path prefixed with 'unix:'",
        ..TEXT
    },
    Opt {
        name: "onlynet",
        argument: "<net>",
        choices: &["ipv4", "ipv6", "onion", "i2p", "cjdns"],
        is_list: true,
        group: group::CONNECTION,
        help: "Make automatic outbound connections only to network <net> (ipv4, ipv6, onion, i2p, cjdns). Inbound and manual connections are not affected by this option",
        ..TEXT
    },
    Opt {
        name: "peerblockfilters",
        group: group::CONNECTION,
        help: "Serve compact block filters to peers per BIP 157",
        set: Set::Switch(|settings, is_on| settings.peerblockfilters = is_on),
        ..SWITCH
    },
    Opt {
        name: "peertimeout",
        group: group::CONNECTION,
        default: "60",
        help: "Specify a p2p connection timeout delay in seconds. After connecting to a peer, wait this amount of time before considering disconnection based on inactivity (minimum: 1)",
        ..integer(i64::MIN, 1 << 40)
    },
    Opt {
        name: "port",
        argument: "<port>",
        is_of_chain: true,
        group: group::CONNECTION,
        default: "8333, testnet3: 18333, testnet4: 48333, signet: 38333, regtest: 18444",
        help: "Listen for connections on <port>",
        ..TEXT
    },
    Opt {
        name: "proxy",
        argument: "<ip>[:<port>]|unix:<path>[=<network>]",
        is_list: true,
        needs_value: true,
        group: group::CONNECTION,
        help: "Connect through SOCKS5 proxy, set -noproxy to disable. May be a local file path prefixed with 'unix:' if the proxy supports it. Could end in =network to set the proxy only for that network: ipv4, ipv6, onion or cjdns",
        ..TEXT
    },
    Opt {
        name: "proxyrandomize",
        group: group::CONNECTION,
        default: "1",
        help: "Randomize credentials for every proxy connection. This enables Tor stream isolation",
        ..SWITCH
    },
    Opt {
        name: "seednode",
        argument: "<ip>",
        is_list: true,
        group: group::CONNECTION,
        help: "Connect to a node to retrieve peer addresses, and disconnect. During startup, seednodes will be tried before dnsseeds",
        set: Set::List(|settings, peers| settings.net.seed_nodes = peers),
        ..TEXT
    },
    Opt {
        name: "timeout",
        group: group::CONNECTION,
        default: "5000",
        help: "Specify socket connection timeout in milliseconds. If an initial attempt to connect is unsuccessful after this amount of time, drop it (minimum: 1)",
        set: Set::Integer(|settings, count| settings.net.connect_timeout = connect_timeout(count)),
        ..integer(i64::MIN, 1 << 40)
    },
    Opt {
        name: "v2transport",
        group: group::CONNECTION,
        default: "1",
        help: "Support the encrypted transport (BIP324) with peers that support it",
        set: Set::Switch(|settings, is_on| settings.net.v2 = is_on),
        ..SWITCH
    },
    Opt {
        name: "whitebind",
        argument: "<[permissions@]addr>",
        is_list: true,
        group: group::CONNECTION,
        help: "Bind to the given address and add permission flags to the peers connecting to it. Use [host]:port notation for IPv6. Allowed permissions: bloomfilter (allow requesting BIP37 filtered blocks and transactions), noban (do not ban for misbehavior; implies download), forcerelay (relay transactions that are already in the mempool; implies relay), relay (relay even in -blocksonly mode, and unlimited transaction announcements), mempool (allow requesting BIP35 mempool contents), download (allow getheaders during IBD, no disconnect after maxuploadtarget limit), addr (responses to GETADDR avoid hitting the cache and contain random records with the most up-to-date info). Specify multiple permissions separated by commas (default: download,noban,mempool,relay)",
        ..TEXT
    },
    Opt {
        name: "whitelist",
        argument: "<[permissions@]IP address or network>",
        is_list: true,
        group: group::CONNECTION,
        help: "Add permission flags to the peers using the given IP address (e.g. 1.2.3.4) or CIDR-notated network (e.g. 1.2.3.0/24). Uses the same permissions as -whitebind. Additional flags \"in\" and \"out\" control whether permissions apply to incoming connections and/or manual (default: incoming only)",
        ..TEXT
    },
    Opt {
        name: "whitelistforcerelay",
        group: group::CONNECTION,
        help: "Add 'forcerelay' permission to whitelisted peers with default permissions. This will relay transactions even if the transactions were already in the mempool",
        ..SWITCH
    },
    Opt {
        name: "whitelistrelay",
        group: group::CONNECTION,
        default: "1",
        help: "Add 'relay' permission to whitelisted peers with default permissions. This will accept relayed transactions even when not relaying transactions",
        ..SWITCH
    },
];
