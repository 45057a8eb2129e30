//! The table of options: one entry yields the parser, `-help`, `docs/config.md` and the table tests. Data only.
//!
//! Names, arguments and meanings are Bitcoin Core's where Core has the option. An option added here must be read in [`super::raw`]; a test
//! walks the table and finds one that changes nothing.

use super::parse::{CHECKLEVEL_MAX, PAR_MAX, PRUNE_MIB_MIN};

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    pub(crate) name: &'static str,
    /// What follows `=`, as help shows it; empty for a switch.
    pub(crate) argument: &'static str,
    pub(crate) kind: Kind,
    /// May be given several times, and every value counts.
    pub(crate) is_list: bool,
    /// `-noNAME` is understood.
    pub(crate) may_negate: bool,
    /// Its value is in no log.
    pub(crate) is_secret: bool,
    /// `-NAME` without `=` is an error: Core's `DISALLOW_ELISION`.
    pub(crate) needs_value: bool,
    /// At the top of a file it counts for the main chain alone: Core's `NETWORK_ONLY`.
    pub(crate) is_of_chain: bool,
    pub(crate) group: Group,
    /// The commands it belongs to; empty: all of them, and none.
    pub(crate) commands: &'static [&'static str],
    /// In words, for people.
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
}

/// What a value must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 0 or 1; nothing means 1.
    Switch,
    Integer {
        min: i64,
        max: i64,
    },
    Path,
    Text,
    /// A command for the shell.
    Command,
    Chain,
    /// Up to 64 hexadecimal digits.
    Hash,
    /// A logging category; nothing means all.
    Category,
    /// `LEVEL` or `CATEGORY:LEVEL`.
    Level,
    /// `NAME@HEIGHT`.
    Fork,
    /// One of [`lydian_curve::ENGINE_NAMES`].
    SignatureEngine,
}

/// Heading in help. The order is the order of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// What a newcomer needs; first in help.
    Start,
    Options,
    Chain,
    Debug,
    Rpc,
    Connection,
    /// Of one command.
    Command,
    /// In no help.
    Hidden,
}

impl Group {
    pub(crate) const SHOWN: [Group; 7] =
        [Group::Start, Group::Command, Group::Options, Group::Connection, Group::Chain, Group::Debug, Group::Rpc];

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Group::Start => "First options",
            Group::Options => "Options",
            Group::Chain => "Chain selection options",
            Group::Debug => "Debugging/Testing options",
            Group::Rpc => "RPC server options",
            Group::Connection => "Connection options",
            Group::Command => "Options of commands",
            Group::Hidden => "",
        }
    }
}

/// A command: the first word that is no option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandInfo {
    pub(crate) name: &'static str,
    pub(crate) argument: &'static str,
    pub(crate) help: &'static str,
}

pub(crate) const COMMANDS: &[CommandInfo] = &[
    CommandInfo {
        name: "import",
        argument: "DIR",
        help: "Validate a directory of block files, Core's blocks/ say, and stop; they are read where they lie",
    },
    CommandInfo {
        name: "info",
        argument: "",
        help: "Tell tip, work, coins and sizes, at once, also while a node runs",
    },
    CommandInfo {
        name: "utxohash",
        argument: "",
        help: "Compute hash_serialized_3 and muhash of the coins, as Core's gettxoutsetinfo does",
    },
    CommandInfo { name: "verify", argument: "PATH...", help: "Verify blocks from files, without a data directory" },
    CommandInfo { name: "explain", argument: "[RULE]", help: "Tell what a rule of consensus demands" },
];

const SWITCH: Opt = Opt {
    name: "",
    argument: "",
    kind: Kind::Switch,
    is_list: false,
    may_negate: true,
    is_secret: false,
    needs_value: false,
    is_of_chain: false,
    group: Group::Options,
    commands: &[],
    default: "0",
    help: "",
};

const fn integer(min: i64, max: i64) -> Opt {
    Opt { argument: "<n>", kind: Kind::Integer { min, max }, ..SWITCH }
}

const PATH: Opt = Opt { argument: "<file>", kind: Kind::Path, ..SWITCH };
const TEXT: Opt = Opt { kind: Kind::Text, default: "none", ..SWITCH };
const COMMAND: Opt = Opt { argument: "<cmd>", kind: Kind::Command, is_list: true, default: "none", ..SWITCH };

/// Every option, in the order of help.
pub(crate) const OPTIONS: &[Opt] = &[
    Opt {
        name: "datadir",
        argument: "<dir>",
        may_negate: false,
        group: Group::Start,
        default: "~/.lydian",
        help: "Specify data directory; one that is named here must exist",
        ..PATH
    },
    Opt {
        name: "dbcache",
        group: Group::Start,
        default: "450",
        help: "Memory for coins in MiB (minimum 4): the more, the less work for the disk",
        ..integer(i64::MIN, 1 << 40)
    },
    Opt {
        name: "par",
        group: Group::Start,
        default: "0",
        help: "Worker threads (0 = one for each core, <0 = leave that many cores free)",
        ..integer(-PAR_MAX, PAR_MAX)
    },
    Opt {
        name: "prune",
        group: Group::Start,
        default: "0",
        help: "Delete old block files: 0 never, 1 on request, from 550 on so that the files stay below <n> MiB",
        ..integer(i64::MIN, i64::MAX >> 20)
    },
    Opt {
        name: "reindex",
        group: Group::Start,
        help: "Wipe chain state and block index, and rebuild them from the blk*.dat files on disk: everything is validated again",
        ..SWITCH
    },
    Opt { name: "daemon", group: Group::Start, help: "Run in the background", ..SWITCH },
    Opt {
        name: "printtoconsole",
        group: Group::Start,
        default: "1 for the node where stdout is no terminal",
        help: "Write the log to the console too (on a terminal in place of the display)",
        ..SWITCH
    },
    Opt { name: "help", group: Group::Start, help: "Print this help message and exit (also -h or -?)", ..SWITCH },
    Opt { name: "version", group: Group::Start, help: "Print version and exit", ..SWITCH },
    Opt { name: "h", group: Group::Hidden, help: "Same as -help", ..SWITCH },
    Opt { name: "?", group: Group::Hidden, help: "Same as -help", ..SWITCH },
    Opt { name: "help-rpc", group: Group::Hidden, help: "Print docs/rpc.md and exit", ..SWITCH },
    Opt { name: "help-config", group: Group::Hidden, help: "Print docs/config.md and exit", ..SWITCH },
    Opt {
        name: "copy",
        group: Group::Command,
        commands: &["import"],
        help: "import: take the blocks over into the data directory, so that the files are no longer needed",
        ..SWITCH
    },
    Opt {
        name: "json",
        group: Group::Command,
        commands: &["info", "utxohash"],
        help: "info, utxohash: print JSON",
        ..SWITCH
    },
    Opt {
        name: "alertnotify",
        help: "Execute command when an alert is raised (%s in cmd is replaced by message)",
        ..COMMAND
    },
    Opt {
        name: "assumevalid",
        argument: "<hex>",
        kind: Kind::Hash,
        default: "0: every script of every block is verified",
        help: "If this block is in the chain, assume that the scripts of it and of its ancestors are valid and do not verify them (0 to verify \
               all)",
        ..SWITCH
    },
    Opt {
        name: "blocknotify",
        help: "Execute command when the best block changes (%s in cmd is replaced by block hash)",
        ..COMMAND
    },
    Opt {
        name: "blocksdir",
        argument: "<dir>",
        may_negate: false,
        default: "<datadir>",
        help: "Specify directory to hold blocks subdirectory for *.dat files; it must exist",
        ..PATH
    },
    Opt {
        name: "blocksxor",
        default: "1",
        help: "Whether block files that are made new are hidden with a random key, so that virus scanners leave them alone; a directory that has \
               its xor.dat keeps it",
        ..SWITCH
    },
    Opt {
        name: "conf",
        default: "lydian.conf",
        help: "Specify path to read-only configuration file. Relative paths will be prefixed by datadir location (only useable from command \
               line, not configuration file)",
        ..PATH
    },
    Opt {
        name: "daemonwait",
        help: "Run in the background, and wait for initialization to be finished before exiting. This implies -daemon",
        ..SWITCH
    },
    Opt {
        name: "debuglogfile",
        default: "debug.log",
        help: "Specify location of debug log file. Relative paths will be prefixed by a net-specific datadir location. Pass -nodebuglogfile to \
               disable writing the log to a file",
        ..PATH
    },
    Opt {
        name: "includeconf",
        is_list: true,
        default: "none",
        help: "Specify additional configuration file, relative to the -datadir path (only useable from configuration file, not command line)",
        ..PATH
    },
    Opt {
        name: "loadblock",
        is_list: true,
        default: "none",
        help: "Import blocks from an external file on startup; it is read where it lies, and must stay there",
        ..PATH
    },
    Opt {
        name: "minimumchainwork",
        argument: "<hex>",
        kind: Kind::Hash,
        default: "Bitcoin Core's of the chain",
        help: "Minimum work assumed to exist on a valid chain in hex",
        ..SWITCH
    },
    Opt {
        name: "pid",
        default: "bitcoind.pid",
        help: "Specify pid file. Relative paths will be prefixed by a net-specific datadir location",
        ..PATH
    },
    Opt {
        name: "reindex-chainstate",
        help: "Wipe chain state, and rebuild it from the blocks on disk; block index and undo files stay",
        ..SWITCH
    },
    Opt { name: "shutdownnotify", help: "Execute command immediately before beginning shutdown", ..COMMAND },
    Opt { name: "startupnotify", help: "Execute command on startup", ..COMMAND },
    Opt {
        name: "chain",
        argument: "<chain>",
        kind: Kind::Chain,
        group: Group::Chain,
        default: "main",
        help: "Use the chain <chain>. Allowed values: main, test, testnet4, signet, regtest",
        ..SWITCH
    },
    Opt {
        name: "regtest",
        group: Group::Chain,
        help: "Enter regression test mode, which uses a special chain in which blocks can be solved instantly. Equivalent to -chain=regtest",
        ..SWITCH
    },
    Opt { name: "signet", group: Group::Chain, help: "Use the signet chain. Equivalent to -chain=signet", ..SWITCH },
    Opt {
        name: "signetseednode",
        is_list: true,
        may_negate: false,
        group: Group::Chain,
        help: "Specify a seed node for the signet network, in the hostname[:port] format, e.g. sig.net:1234 (may be used multiple times to specify multiple seed nodes; defaults to the global default signet test network seed node(s))",
        ..TEXT
    },
    Opt { name: "testnet", group: Group::Chain, help: "Use the testnet3 chain. Equivalent to -chain=test", ..SWITCH },
    Opt {
        name: "testnet4",
        group: Group::Chain,
        help: "Use the testnet4 chain. Equivalent to -chain=testnet4",
        ..SWITCH
    },
    Opt {
        name: "checkblocks",
        group: Group::Debug,
        default: "6",
        help: "How many blocks to check at startup (0 = all)",
        ..integer(i64::MIN, i64::MAX)
    },
    Opt {
        name: "checklevel",
        group: Group::Debug,
        default: "3",
        help: "How thorough the block verification of -checkblocks is: level 0 reads the blocks from disk, level 1 verifies block validity, level \
               2 verifies undo data, level 3 checks disconnection of tip blocks, level 4 tries to reconnect the blocks, each level includes the \
               checks of the previous levels (0-4)",
        ..integer(0, CHECKLEVEL_MAX)
    },
    Opt {
        name: "debug",
        argument: "<category>",
        kind: Kind::Category,
        is_list: true,
        group: Group::Debug,
        default: "none",
        help: "Output debug and trace logging. If <category> is not supplied or if <category> is 1 or \"all\", output all debug logging. If \
               <category> is 0 or \"none\", any other categories are ignored. The categories are Bitcoin Core's",
        ..SWITCH
    },
    Opt {
        name: "debugexclude",
        argument: "<category>",
        kind: Kind::Category,
        is_list: true,
        group: Group::Debug,
        default: "none",
        help: "Exclude debug and trace logging for a category. This takes priority over -debug",
        ..SWITCH
    },
    Opt {
        name: "fastprune",
        group: Group::Debug,
        help: "Use smaller block files and lower minimum prune height for testing purposes",
        ..SWITCH
    },
    Opt { name: "help-debug", group: Group::Debug, help: "Print help message with all options and exit", ..SWITCH },
    Opt {
        name: "loglevel",
        argument: "<level>|<category>:<level>",
        kind: Kind::Level,
        is_list: true,
        may_negate: false,
        group: Group::Debug,
        default: "debug",
        help: "Set the global or per-category severity level for logging categories enabled with -debug: info, debug or trace. Errors, warnings \
               and information are always logged",
        ..SWITCH
    },
    Opt { name: "logtimemicros", group: Group::Debug, help: "Add microsecond precision to debug timestamps", ..SWITCH },
    Opt {
        name: "maxtipage",
        group: Group::Debug,
        default: "86400",
        help: "Maximum tip age in seconds to consider node in initial block download",
        ..integer(i64::MIN, i64::MAX)
    },
    Opt {
        name: "mocktime",
        group: Group::Debug,
        default: "0",
        help: "Replace actual time with <n> seconds since epoch",
        ..integer(0, 0xffff_ffff)
    },
    Opt {
        name: "shrinkdebugfile",
        group: Group::Debug,
        default: "1 when no -debug",
        help: "Shrink debug log file on startup: of more than 11 MB the last 10 stay",
        ..SWITCH
    },
    Opt {
        name: "stopafterblockimport",
        group: Group::Debug,
        help: "Stop running after importing blocks from disk",
        ..SWITCH
    },
    Opt {
        name: "sigengine",
        argument: "<name>",
        kind: Kind::SignatureEngine,
        may_negate: false,
        group: Group::Debug,
        default: "auto",
        help: "Who verifies signatures: reference (libsecp256k1, one at a time), avx2, ifma256 or ifma512 (many at once in SIMD lanes, where the \
               CPU has them), or auto (the fastest of these that passes its self-test). While lanes decide, the reference decides a random \
               sample again, and all of it at the tip; if they ever disagree, the lanes are not used any more",
        ..SWITCH
    },
    Opt {
        name: "stopatheight",
        group: Group::Debug,
        default: "0",
        help: "Stop running after reaching the given height in the main chain",
        ..integer(0, 0xffff_ffff)
    },
    Opt {
        name: "testactivationheight",
        argument: "<name>@<height>",
        kind: Kind::Fork,
        is_list: true,
        group: Group::Debug,
        default: "none",
        help: "Set the activation height of a soft fork (segwit, bip34, dersig, cltv, csv) on regtest",
        ..SWITCH
    },
    Opt {
        name: "uacomment",
        argument: "<cmt>",
        is_list: true,
        group: Group::Debug,
        help: "Append comment to the user agent string",
        ..TEXT
    },
    Opt {
        name: "rpcallowip",
        argument: "<ip>",
        is_list: true,
        group: Group::Rpc,
        help: "Allow JSON-RPC connections from specified source: a single IP (1.2.3.4), a network/netmask (1.2.3.4/255.255.255.0), a \
               network/CIDR (1.2.3.4/24), all ipv4 (0.0.0.0/0), or all ipv6 (::/0)",
        ..TEXT
    },
    Opt {
        name: "rpcauth",
        argument: "<userpw>",
        is_list: true,
        is_secret: true,
        group: Group::Rpc,
        help: "Username and HMAC-SHA-256 hashed password for JSON-RPC connections, as <USERNAME>:<SALT>$<HASH>",
        ..TEXT
    },
    Opt {
        name: "rpcbind",
        argument: "<addr>[:port]",
        is_list: true,
        is_of_chain: true,
        group: Group::Rpc,
        default: "127.0.0.1 and ::1",
        help: "Bind to given address to listen for JSON-RPC connections. Do not expose the RPC server to untrusted networks such as the public \
               internet! This option is ignored unless -rpcallowip is also passed. Use [host]:port notation for IPv6",
        ..TEXT
    },
    Opt {
        name: "rpccookiefile",
        argument: "<loc>",
        group: Group::Rpc,
        default: ".cookie",
        help: "Location of the auth cookie. Relative paths will be prefixed by a net-specific datadir location. Pass -norpccookiefile for no cookie",
        ..PATH
    },
    Opt {
        name: "rpccookieperms",
        argument: "<readable-by>",
        group: Group::Rpc,
        default: "owner",
        help: "Set permissions on the RPC auth cookie file so that it is readable by [owner|group|all]",
        ..TEXT
    },
    Opt {
        name: "rpcpassword",
        argument: "<pw>",
        is_secret: true,
        group: Group::Rpc,
        help: "Password for JSON-RPC connections; with it there is no cookie",
        ..TEXT
    },
    Opt {
        name: "rpcport",
        argument: "<port>",
        is_of_chain: true,
        group: Group::Rpc,
        default: "8332, testnet3: 18332, testnet4: 48332, signet: 38332, regtest: 18443",
        help: "Listen for JSON-RPC connections on <port>",
        ..TEXT
    },
    Opt {
        name: "rpcdoccheck",
        group: Group::Rpc,
        default: "0",
        help: "Answer with an error where the help of an RPC method lacks a field of its answer",
        ..SWITCH
    },
    Opt {
        name: "rpcservertimeout",
        group: Group::Rpc,
        default: "30",
        help: "Seconds without anything happening after which a connection is closed (0: never)",
        ..integer(0, 1 << 30)
    },
    Opt {
        name: "rpcthreads",
        group: Group::Rpc,
        default: "16",
        help: "Set the number of threads to service RPC calls",
        ..integer(i64::MIN, 1024)
    },
    Opt {
        name: "rpcuser",
        argument: "<user>",
        is_secret: true,
        group: Group::Rpc,
        help: "Username for JSON-RPC connections",
        ..TEXT
    },
    Opt {
        name: "rpcwhitelist",
        argument: "<whitelist>",
        is_list: true,
        group: Group::Rpc,
        help: "Let a user call these methods only, as <USERNAME>:<rpc 1>,<rpc 2>,...,<rpc n>; of several lists for one user what is in all of them",
        ..TEXT
    },
    Opt {
        name: "rpcwhitelistdefault",
        group: Group::Rpc,
        default: "1 when there is an -rpcwhitelist",
        help: "Whether a user without a whitelist may call nothing",
        ..SWITCH
    },
    Opt {
        name: "rpcworkqueue",
        group: Group::Rpc,
        default: "64",
        help: "Set the maximum depth of the work queue to service RPC calls",
        ..integer(i64::MIN, 1 << 20)
    },
    Opt {
        name: "deprecatedrpc",
        argument: "<method>",
        is_list: true,
        group: Group::Rpc,
        help: "Allow a deprecated RPC method or form of an answer (warnings: the last warning as text)",
        ..TEXT
    },
    Opt {
        name: "server",
        group: Group::Rpc,
        default: "1",
        help: "Accept command line and JSON-RPC commands",
        ..SWITCH
    },
    Opt {
        name: "addnode",
        argument: "<ip>",
        is_list: true,
        is_of_chain: true,
        group: Group::Connection,
        help: "Add a node to connect to and attempt to keep the connection open; up to 8 at a time, counted separately from -maxconnections",
        ..TEXT
    },
    Opt {
        name: "bantime",
        group: Group::Connection,
        default: "86400",
        help: "Seconds for which a manually configured ban lasts",
        ..integer(1, 1 << 40)
    },
    Opt {
        name: "bind",
        argument: "<addr>[:<port>][=onion]",
        is_list: true,
        is_of_chain: true,
        group: Group::Connection,
        default: "0.0.0.0 and [::]",
        help: "Bind to given address and always listen on it; use [host]:port notation for IPv6. Append =onion to tag any incoming connections to that address and port as incoming Tor connections",
        ..TEXT
    },
    Opt {
        name: "blocksonly",
        group: Group::Connection,
        help: "Whether to reject transactions from network peers. Until there is a mempool that is always so; the option takes the 'relay' permission from whitelisted peers with default permissions",
        ..SWITCH
    },
    Opt {
        name: "cjdnsreachable",
        group: Group::Connection,
        help: "If set, then this host is configured for CJDNS (connecting to fc00::/8 addresses would lead us to the CJDNS network)",
        ..SWITCH
    },
    Opt {
        name: "connect",
        argument: "<ip>",
        is_list: true,
        is_of_chain: true,
        group: Group::Connection,
        help: "Connect only to the specified node; -noconnect disables automatic connections (the rules for this peer are the same as for -addnode)",
        ..TEXT
    },
    Opt {
        name: "discover",
        group: Group::Connection,
        default: "1 when listening and no -externalip or -proxy",
        help: "Discover own IP addresses",
        ..SWITCH
    },
    Opt {
        name: "dns",
        group: Group::Connection,
        default: "1",
        help: "Allow DNS lookups for -addnode, -seednode and -connect",
        ..SWITCH
    },
    Opt {
        name: "dnsseed",
        group: Group::Connection,
        default: "1 unless -connect used or -maxconnections=0",
        help: "Query for peer addresses via DNS lookup, if low on addresses",
        ..SWITCH
    },
    Opt {
        name: "externalip",
        argument: "<ip>",
        is_list: true,
        group: Group::Connection,
        help: "Specify your own public address",
        ..TEXT
    },
    Opt {
        name: "fixedseeds",
        group: Group::Connection,
        default: "1",
        help: "Allow fixed seeds if DNS seeds don't provide peers",
        ..SWITCH
    },
    Opt {
        name: "forcednsseed",
        group: Group::Connection,
        help: "Always query for peer addresses via DNS lookup",
        ..SWITCH
    },
    Opt {
        name: "listen",
        group: Group::Connection,
        default: "1 if no -proxy, -connect or -maxconnections=0",
        help: "Accept connections from outside",
        ..SWITCH
    },
    Opt {
        name: "maxconnections",
        group: Group::Connection,
        default: "125",
        help: "Maintain at most <n> automatic connections to peers. This limit does not apply to connections manually added via -addnode or the addnode RPC, which have a separate limit of 8",
        ..integer(i64::MIN, 1 << 20)
    },
    Opt {
        name: "maxreceivebuffer",
        group: Group::Connection,
        default: "5000",
        help: "Maximum per-connection receive buffer, <n>*1000 bytes",
        ..integer(0, 1 << 32)
    },
    Opt {
        name: "maxsendbuffer",
        group: Group::Connection,
        default: "1000",
        help: "Maximum per-connection memory usage for the send buffer, <n>*1000 bytes",
        ..integer(0, 1 << 32)
    },
    Opt {
        name: "maxuploadtarget",
        argument: "<n>",
        group: Group::Connection,
        default: "0M",
        help: "Tries to keep outbound traffic under the given target per 24h. Limit does not apply to peers with 'download' permission or blocks created within past week. 0 = no limit. Optional suffix units [k|K|m|M|g|G|t|T] (default: M). Lowercase is 1000 base while uppercase is 1024 base",
        ..TEXT
    },
    Opt {
        name: "networkactive",
        group: Group::Connection,
        default: "1",
        help: "Enable all P2P network activity. Can be changed by the setnetworkactive RPC command",
        ..SWITCH
    },
    Opt {
        name: "onion",
        argument: "<ip:port|path>",
        group: Group::Connection,
        default: "-proxy",
        help: "Use separate SOCKS5 proxy to reach peers via Tor onion services, set -noonion to disable. May be a local file path prefixed with 'unix:'",
        ..TEXT
    },
    Opt {
        name: "onlynet",
        argument: "<net>",
        is_list: true,
        group: Group::Connection,
        help: "Make automatic outbound connections only to network <net> (ipv4, ipv6, onion, i2p, cjdns). Inbound and manual connections are not affected by this option",
        ..TEXT
    },
    Opt {
        name: "peertimeout",
        group: Group::Connection,
        default: "60",
        help: "Specify a p2p connection timeout delay in seconds. After connecting to a peer, wait this amount of time before considering disconnection based on inactivity (minimum: 1)",
        ..integer(i64::MIN, 1 << 40)
    },
    Opt {
        name: "port",
        argument: "<port>",
        is_of_chain: true,
        group: Group::Connection,
        default: "8333, testnet3: 18333, testnet4: 48333, signet: 38333, regtest: 18444",
        help: "Listen for connections on <port>",
        ..TEXT
    },
    Opt {
        name: "proxy",
        argument: "<ip>[:<port>]|unix:<path>[=<network>]",
        is_list: true,
        needs_value: true,
        group: Group::Connection,
        help: "Connect through SOCKS5 proxy, set -noproxy to disable. May be a local file path prefixed with 'unix:' if the proxy supports it. Could end in =network to set the proxy only for that network: ipv4, ipv6, onion or cjdns",
        ..TEXT
    },
    Opt {
        name: "proxyrandomize",
        group: Group::Connection,
        default: "1",
        help: "Randomize credentials for every proxy connection. This enables Tor stream isolation",
        ..SWITCH
    },
    Opt {
        name: "seednode",
        argument: "<ip>",
        is_list: true,
        group: Group::Connection,
        help: "Connect to a node to retrieve peer addresses, and disconnect. During startup, seednodes will be tried before dnsseeds",
        ..TEXT
    },
    Opt {
        name: "timeout",
        group: Group::Connection,
        default: "5000",
        help: "Specify socket connection timeout in milliseconds. If an initial attempt to connect is unsuccessful after this amount of time, drop it (minimum: 1)",
        ..integer(i64::MIN, 1 << 40)
    },
    Opt {
        name: "v2transport",
        group: Group::Connection,
        default: "1",
        help: "Support the encrypted transport (BIP-0324), for whoever speaks it",
        ..SWITCH
    },
    Opt {
        name: "whitebind",
        argument: "<[permissions@]addr>",
        is_list: true,
        group: Group::Connection,
        help: "Bind to the given address and add permission flags to the peers connecting to it. Use [host]:port notation for IPv6. Allowed permissions: bloomfilter (allow requesting BIP37 filtered blocks and transactions), noban (do not ban for misbehavior; implies download), forcerelay (relay transactions that are already in the mempool; implies relay), relay (relay even in -blocksonly mode, and unlimited transaction announcements), mempool (allow requesting BIP35 mempool contents), download (allow getheaders during IBD, no disconnect after maxuploadtarget limit), addr (responses to GETADDR avoid hitting the cache and contain random records with the most up-to-date info). Specify multiple permissions separated by commas (default: download,noban,mempool,relay)",
        ..TEXT
    },
    Opt {
        name: "whitelist",
        argument: "<[permissions@]IP address or network>",
        is_list: true,
        group: Group::Connection,
        help: "Add permission flags to the peers using the given IP address (e.g. 1.2.3.4) or CIDR-notated network (e.g. 1.2.3.0/24). Uses the same permissions as -whitebind. Additional flags \"in\" and \"out\" control whether permissions apply to incoming connections and/or manual (default: incoming only)",
        ..TEXT
    },
    Opt {
        name: "whitelistforcerelay",
        group: Group::Connection,
        help: "Add 'forcerelay' permission to whitelisted peers with default permissions. This will relay transactions even if the transactions were already in the mempool",
        ..SWITCH
    },
    Opt {
        name: "whitelistrelay",
        group: Group::Connection,
        default: "1",
        help: "Add 'relay' permission to whitelisted peers with default permissions. This will accept relayed transactions even when not relaying transactions",
        ..SWITCH
    },
];

/// The smallest size to prune to is a relation of help and check.
const _: () = assert!(PRUNE_MIB_MIN == 550);

pub(crate) fn find(name: &str) -> Option<&'static Opt> {
    OPTIONS.iter().find(|option| option.name == name)
}
