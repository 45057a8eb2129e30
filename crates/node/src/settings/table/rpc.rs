//! Options of the RPC server. Data only: entries of the option table.

use super::{Opt, PATH, SWITCH, TEXT, group, integer};
use crate::settings::rpc::Secret;
use lydian_options::Set;

/// As in Core, a smaller number means one.
fn one_or_more(count: i64) -> usize {
    usize::try_from(count.max(1)).unwrap_or(usize::MAX)
}

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "rest",
        group: group::RPC,
        help: "Accept public REST requests",
        set: Set::Switch(|settings, is_on| settings.rpc.has_rest = is_on),
        ..SWITCH
    },
    Opt {
        name: "rpcallowip",
        argument: "<ip>",
        is_list: true,
        group: group::RPC,
        help: "Allow JSON-RPC connections from specified source: a single IP (1.2.3.4), a network/netmask (1.2.3.4/255.255.255.0), a \
               network/CIDR (1.2.3.4/24), all ipv4 (0.0.0.0/0), or all ipv6 (::/0)",
        ..TEXT
    },
    Opt {
        name: "rpcauth",
        argument: "<userpw>",
        is_list: true,
        is_secret: true,
        group: group::RPC,
        help: "Username and HMAC-SHA-256 hashed password for JSON-RPC connections, as <USERNAME>:<SALT>$<HASH>",
        ..TEXT
    },
    Opt {
        name: "rpcbind",
        argument: "<addr>[:port]",
        is_list: true,
        is_of_chain: true,
        group: group::RPC,
        default: "127.0.0.1 and ::1",
        help: "Bind to given address to listen for JSON-RPC connections. Do not expose the RPC server to untrusted networks such as the public \
               internet! This option is ignored unless -rpcallowip is also passed. Use [host]:port notation for IPv6",
        ..TEXT
    },
    Opt {
        name: "rpccookiefile",
        argument: "<loc>",
        group: group::RPC,
        default: ".cookie",
        help: "Location of the auth cookie. Relative paths will be prefixed by a net-specific datadir location. Pass -norpccookiefile for no cookie",
        set: Set::Path(|settings, path| settings.rpc.cookie = path),
        ..PATH
    },
    Opt {
        name: "rpccookieperms",
        argument: "<readable-by>",
        choices: &["owner", "group", "all"],
        group: group::RPC,
        default: "owner",
        help: "Set permissions on the RPC auth cookie file so that it is readable by [owner|group|all]",
        set: Set::Value(|settings, setting| {
            settings.rpc.cookie_permissions = Some(setting.text().to_owned());
            Ok(())
        }),
        ..TEXT
    },
    Opt {
        name: "rpcpassword",
        argument: "<pw>",
        is_secret: true,
        group: group::RPC,
        help: "Password for JSON-RPC connections; if it is set, there is no cookie",
        set: Set::Value(|settings, setting| {
            settings.rpc.password = Secret(setting.text().to_owned());
            Ok(())
        }),
        ..TEXT
    },
    Opt {
        name: "rpcport",
        argument: "<port>",
        is_of_chain: true,
        group: group::RPC,
        default: "8332, testnet3: 18332, testnet4: 48332, signet: 38332, regtest: 18443",
        help: "Listen for JSON-RPC connections on <port>",
        ..TEXT
    },
    Opt {
        name: "rpcdoccheck",
        group: group::RPC,
        default: "0",
        help: "Return an error if the help of an RPC method lacks a field of its result",
        set: Set::Switch(|settings, is_on| settings.rpc.checks_help = is_on),
        ..SWITCH
    },
    Opt {
        name: "rpcservertimeout",
        group: group::RPC,
        default: "30",
        help: "Close a connection after <n> seconds without activity (0 = never)",
        set: Set::Integer(|settings, seconds| settings.rpc.idle_seconds = seconds),
        ..integer(0, 1 << 30)
    },
    Opt {
        name: "rpcthreads",
        group: group::RPC,
        default: "16",
        help: "Set the number of threads to service RPC calls",
        set: Set::Integer(|settings, count| settings.rpc.threads = one_or_more(count)),
        ..integer(i64::MIN, 1024)
    },
    Opt {
        name: "rpcuser",
        argument: "<user>",
        is_secret: true,
        group: group::RPC,
        help: "Username for JSON-RPC connections",
        set: Set::Value(|settings, setting| {
            settings.rpc.user = Secret(setting.text().to_owned());
            Ok(())
        }),
        ..TEXT
    },
    Opt {
        name: "rpcwhitelist",
        argument: "<whitelist>",
        is_list: true,
        group: group::RPC,
        help: "Let a user call these methods only, as <USERNAME>:<rpc 1>,<rpc 2>,...,<rpc n>; if a user has several lists, only the methods in all of them",
        set: Set::List(|settings, lists| settings.rpc.whitelist = lists),
        ..TEXT
    },
    Opt {
        name: "rpcwhitelistdefault",
        group: group::RPC,
        default: "1 when there is an -rpcwhitelist",
        help: "Whether a user without a whitelist may call no methods",
        set: Set::Switch(|settings, is_on| settings.rpc.whitelist_default = Some(is_on)),
        ..SWITCH
    },
    Opt {
        name: "rpcworkqueue",
        group: group::RPC,
        default: "64",
        help: "Set the maximum depth of the work queue to service RPC calls",
        set: Set::Integer(|settings, count| settings.rpc.queue = one_or_more(count)),
        ..integer(i64::MIN, 1 << 20)
    },
    Opt {
        name: "deprecatedrpc",
        argument: "<method>",
        is_list: true,
        group: group::RPC,
        help: "Allow a deprecated RPC method or form of a result (warnings: the last warning as text)",
        set: Set::List(|settings, names| settings.rpc.deprecated = names),
        ..TEXT
    },
    Opt {
        name: "server",
        group: group::RPC,
        default: "1",
        help: "Accept command line and JSON-RPC commands",
        set: Set::Switch(|settings, is_on| settings.rpc.is_on = is_on),
        ..SWITCH
    },
];
