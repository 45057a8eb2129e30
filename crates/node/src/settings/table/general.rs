//! Options of the node as a whole: common options, options of commands, files, notifications, the chain. Data only:
//! entries of the option table.

use super::{COMMAND, Group, Kind, Opt, PATH, SWITCH, Set, TEXT, group, integer};
use crate::settings::values::{self, PAR_MAX, PRUNE_MIB_MAX, dbcache_bytes};

pub(super) const OPTIONS: &[Opt] = &[
    Opt { name: "help", group: group::START, help: "Print this help message and exit (also -h or -?)", ..SWITCH },
    Opt { name: "version", group: group::START, help: "Print version and exit", ..SWITCH },
    Opt {
        name: "datadir",
        argument: "<dir>",
        may_negate: false,
        group: group::START,
        default: "~/.lydian",
        help: "Specify data directory; a directory given here must exist",
        ..PATH
    },
    Opt {
        name: "dbcache",
        group: group::START,
        default: "450",
        help: "Memory for coins in MiB (minimum 4); more memory means less disk access",
        set: Set::Integer(|settings, mib| settings.dbcache_bytes = dbcache_bytes(mib)),
        ..integer(i64::MIN, 1 << 40)
    },
    Opt {
        name: "par",
        group: group::START,
        default: "0",
        help: "Worker threads (0 = one for each core, <0 = leave that many cores free)",
        ..integer(-PAR_MAX, PAR_MAX)
    },
    Opt {
        name: "prune",
        group: group::START,
        default: "0",
        help: "Delete old block files: 0 = never, 1 = on request, 550 or more = keep the files below <n> MiB",
        set: Set::Value(|settings, setting| values::prune(setting).map(|prune| settings.prune = prune)),
        ..integer(i64::MIN, PRUNE_MIB_MAX)
    },
    Opt {
        name: "reindex",
        group: group::START,
        help: "Wipe chain state and block index, and rebuild them from the blk*.dat files on disk: everything is validated again",
        set: Set::Switch(|settings, is_on| settings.reindex = is_on),
        ..SWITCH
    },
    Opt {
        name: "daemon",
        group: group::START,
        help: "Run in the background",
        set: Set::Switch(|settings, is_on| settings.daemon |= is_on),
        ..SWITCH
    },
    Opt {
        name: "printtoconsole",
        group: group::START,
        default: "1 for the node if stdout is not a terminal",
        help: "Also write the log to the console (on a terminal, instead of the display)",
        set: Set::Switch(|settings, is_on| settings.log.console = Some(is_on)),
        ..SWITCH
    },
    Opt { name: "h", group: Group::HIDDEN, help: "Same as -help", ..SWITCH },
    Opt { name: "?", group: Group::HIDDEN, help: "Same as -help", ..SWITCH },
    Opt {
        name: "help-formats",
        is_own: true,
        group: Group::HIDDEN,
        help: "Print docs/formats/README.md and exit",
        ..SWITCH
    },
    Opt {
        name: "help-metrics",
        is_own: true,
        group: Group::HIDDEN,
        help: "Print docs/metrics.md and the files in contrib and exit",
        ..SWITCH
    },
    Opt { name: "help-doctor", is_own: true, group: Group::HIDDEN, help: "Print docs/doctor.md and exit", ..SWITCH },
    Opt { name: "help-rpc", is_own: true, group: Group::HIDDEN, help: "Print docs/rpc.md and exit", ..SWITCH },
    Opt {
        name: "help-interface",
        is_own: true,
        group: Group::HIDDEN,
        help: "Print docs/core-interface.md and exit",
        ..SWITCH
    },
    Opt { name: "help-config", is_own: true, group: Group::HIDDEN, help: "Print docs/config.md and exit", ..SWITCH },
    Opt {
        name: "help-manual",
        is_own: true,
        argument: "<yyyy-mm-dd>",
        group: Group::HIDDEN,
        help: "Print the manual page lydian(1) with this date and exit",
        ..TEXT
    },
    Opt {
        name: "copy",
        is_own: true,
        group: group::COMMAND,
        commands: &["import"],
        help: "import: copy the blocks into the data directory",
        set: Set::Switch(|settings, is_on| settings.copy = is_on),
        ..SWITCH
    },
    Opt {
        name: "bundle",
        is_own: true,
        group: group::COMMAND,
        commands: &["doctor"],
        may_negate: false,
        help: "doctor: also pack the report, the end of the log, settings and versions into this new file (.tar.zst), without secrets, \
               addresses of peers and wallets, and transactions",
        ..PATH
    },
    Opt {
        name: "json",
        is_own: true,
        group: group::COMMAND,
        commands: &["doctor", "index", "info", "utxohash"],
        help: "doctor, index, info, utxohash: print JSON",
        set: Set::Switch(|settings, is_on| settings.json = is_on),
        ..SWITCH
    },
    Opt {
        name: "allowignoredconf",
        help: "Treat an unused configuration file in the data directory as a warning, not an error",
        ..SWITCH
    },
    Opt {
        name: "alertnotify",
        help: "Execute command when an alert is raised (%s in cmd is replaced by message)",
        set: Set::Value(|settings, setting| {
            settings.alertnotify = values::command(setting);
            Ok(())
        }),
        ..COMMAND
    },
    Opt {
        name: "assumevalid",
        argument: "<hex>",
        kind: Kind::Text,
        default: "0: every script of every block is verified",
        help: "If this block is in the chain, assume that the scripts of it and of its ancestors are valid and do not verify them (0 to verify \
               all)",
        set: Set::Value(|settings, setting| values::assumevalid(setting).map(|hash| settings.assumevalid = hash)),
        ..SWITCH
    },
    Opt {
        name: "blockfilterindex",
        argument: "<type>",
        choices: &["basic", "0"],
        kind: Kind::Text,
        default: "0",
        help: "Maintain an index of compact filters by block. <type> is basic, or 1 for all types; 0 for none",
        set: Set::Value(|settings, setting| {
            settings.blockfilterindex = setting.text() != "0";
            Ok(())
        }),
        ..SWITCH
    },
    Opt {
        name: "blocknotify",
        help: "Execute command when the best block changes (%s in cmd is replaced by block hash)",
        set: Set::Value(|settings, setting| {
            settings.blocknotify = values::command(setting);
            Ok(())
        }),
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
        help: "Whether new block files are obfuscated with a random key, so that virus scanners leave them alone; a directory that has \
               an xor.dat keeps it",
        set: Set::Switch(|settings, is_on| settings.blocksxor = is_on),
        ..SWITCH
    },
    Opt {
        name: "coinstatsindex",
        help: "Maintain coinstats index used by the gettxoutsetinfo RPC",
        set: Set::Switch(|settings, is_on| settings.coinstatsindex = is_on),
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
        set: Set::Switch(|settings, is_on| {
            settings.daemonwait = is_on;
            settings.daemon |= is_on;
        }),
        ..SWITCH
    },
    Opt {
        name: "debuglogfile",
        default: "debug.log",
        help: "Specify location of debug log file. Relative paths will be prefixed by a net-specific datadir location. Pass -nodebuglogfile to \
               disable writing the log to a file",
        set: Set::Path(|settings, path| settings.log.file = path.map(|path| settings.datadir.join(path))),
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
        name: "lowmem",
        is_own: true,
        default: "1 if the memory of the machine without -dbcache is less than 4 GiB",
        help: "Keep no index in memory of the coins on disk: 0.4 GB for mainnet instead of 1.7 to 2.4 GB, and slower. The files are the same",
        ..SWITCH
    },
    Opt {
        name: "indexrequired",
        is_own: true,
        help: "Stop the node if an index cannot be opened or written. By default, the node runs without that index",
        set: Set::Switch(|settings, is_on| settings.indexrequired = is_on),
        ..SWITCH
    },
    Opt {
        name: "loadblock",
        is_list: true,
        default: "none",
        help: "Import blocks from an external file on startup; it is read in place, and must stay there",
        ..PATH
    },
    Opt {
        name: "minimumchainwork",
        argument: "<hex>",
        kind: Kind::Text,
        default: "Bitcoin Core's value for the chain",
        help: "Minimum work assumed to exist on a valid chain in hex",
        set: Set::Value(|settings, setting| {
            values::minimum_work(setting).map(|work| settings.minimum_chain_work = work)
        }),
        ..SWITCH
    },
    Opt {
        name: "pid",
        default: "bitcoind.pid",
        help: "Specify pid file. Relative paths will be prefixed by a net-specific datadir location",
        set: Set::Path(|settings, path| settings.pid = path.map(|path| settings.datadir.join(path))),
        ..PATH
    },
    Opt {
        name: "reindex-chainstate",
        help: "Wipe chain state, and rebuild it from the blocks on disk; block index and undo files are kept",
        set: Set::Switch(|settings, is_on| settings.reindex_chainstate = is_on),
        ..SWITCH
    },
    Opt {
        name: "settings",
        default: "settings.json",
        help: "Specify path to dynamic settings data file. Can be disabled with -nosettings. File is written at runtime and not meant to be edited \
               by users (use lydian.conf instead for custom settings). Relative paths will be prefixed by datadir location",
        ..PATH
    },
    Opt {
        name: "shutdownnotify",
        help: "Execute command immediately before beginning shutdown",
        set: Set::List(|settings, commands| settings.shutdownnotify = commands),
        ..COMMAND
    },
    Opt {
        name: "startupnotify",
        help: "Execute command on startup",
        set: Set::Value(|settings, setting| {
            settings.startupnotify = values::command(setting);
            Ok(())
        }),
        ..COMMAND
    },
    Opt {
        name: "chain",
        argument: "<chain>",
        choices: &["main", "test", "testnet4", "signet", "regtest"],
        kind: Kind::Text,
        group: group::START,
        default: "main",
        help: "Use the chain <chain>. Allowed values: main, test, testnet4, signet, regtest",
        ..SWITCH
    },
    Opt {
        name: "regtest",
        group: group::CHAIN,
        help: "Enter regression test mode, which uses a special chain in which blocks can be solved instantly. Equivalent to -chain=regtest",
        ..SWITCH
    },
    Opt { name: "signet", group: group::CHAIN, help: "Use the signet chain. Equivalent to -chain=signet", ..SWITCH },
    Opt {
        name: "signetchallenge",
        argument: "<hex>",
        may_negate: false,
        group: group::CHAIN,
        default: "that of the global signet",
        help: "Blocks must satisfy the given script to be considered valid (only for signet networks)",
        ..TEXT
    },
    Opt {
        name: "signetseednode",
        is_list: true,
        may_negate: false,
        group: group::CHAIN,
        help: "Specify a seed node for the signet network, in the hostname[:port] format, e.g. sig.net:1234 (may be used multiple times to specify multiple seed nodes; defaults to the global default signet test network seed node(s))",
        ..TEXT
    },
    Opt { name: "testnet", group: group::CHAIN, help: "Use the testnet3 chain. Equivalent to -chain=test", ..SWITCH },
    Opt {
        name: "testnet4",
        group: group::CHAIN,
        help: "Use the testnet4 chain. Equivalent to -chain=testnet4",
        ..SWITCH
    },
    Opt {
        name: "txindex",
        help: "Maintain a full transaction index, used by the getrawtransaction rpc call",
        set: Set::Switch(|settings, is_on| settings.txindex = is_on),
        ..SWITCH
    },
    Opt {
        name: "txospenderindex",
        help: "Maintain a transaction output spender index, used by the gettxspendingprevout rpc call",
        set: Set::Switch(|settings, is_on| settings.txospenderindex = is_on),
        ..SWITCH
    },
    Opt {
        name: "vbparams",
        argument: "deployment:start:end[:min_activation_height]",
        is_list: true,
        group: group::CHAIN,
        help: "Use given start/end times and min_activation_height for specified version bits deployment (test-only)",
        ..TEXT
    },
];
