//! Options for debugging and tests. Data only: entries of the option table.

use super::{Group, Kind, Opt, SWITCH, TEXT, debug_switch, integer};
use crate::settings::parse::CHECKLEVEL_MAX;

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "blockversion",
        group: Group::Debug,
        default: "none",
        help: "Override the version of blocks that RPC methods generate on regtest, to test forking scenarios",
        ..integer(-0x8000_0000, 0x7fff_ffff)
    },
    debug_switch("capturemessages", "0", "Capture all P2P messages to disk"),
    Opt {
        name: "checkaddrman",
        group: Group::Debug,
        help: "Run consistency checks of the address manager every <n> operations. Use 0 to disable",
        ..integer(0, 1_000_000)
    },
    Opt {
        name: "checkblockindex",
        group: Group::Debug,
        help: "Do a consistency check for the block tree every <n> operations. Use 0 to disable; unlike in Bitcoin Core, it is disabled on regtest too",
        ..integer(0, 0x7fff_ffff)
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
    debug_switch("logips", "0", "Include IP addresses in log output"),
    Opt {
        name: "loglevel",
        argument: "<level>|<category>:<level>",
        kind: Kind::Level,
        is_list: true,
        may_negate: false,
        group: Group::Debug,
        default: "debug",
        needs_value: true,
        help: "Set the global or per-category severity level for logging categories enabled with -debug: info, debug or trace. Errors, warnings \
               and information are always logged",
        ..SWITCH
    },
    debug_switch("loglevelalways", "0", "Always prepend a category and level"),
    debug_switch("logratelimit", "1", "Apply rate limiting to unconditional logging to mitigate disk-filling attacks"),
    debug_switch("logsourcelocations", "0", "Prepend debug output with source file, line and module"),
    debug_switch("logthreadnames", "0", "Prepend debug output with name of the originating thread"),
    debug_switch("logtimemicros", "0", "Add microsecond precision to debug timestamps"),
    debug_switch("logtimestamps", "1", "Prepend debug output with timestamp"),
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
        help: "Shrink debug log file on startup: if it is larger than 11 MB, keep the last 10 MB",
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
        is_own: true,
        argument: "<name>",
        kind: Kind::SignatureEngine,
        may_negate: false,
        group: Group::Debug,
        default: "auto",
        help: "Engine that verifies signatures: reference (libsecp256k1, one at a time), avx2, ifma256 or ifma512 (many at once in SIMD lanes, if the \
               CPU supports them), or auto (the fastest of these that passes its self-test). While lanes are in use, the reference verifies a random \
               sample again, and everything at the tip; if they ever disagree, the lanes are no longer used",
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
        name: "test",
        argument: "<option>",
        is_list: true,
        group: Group::Debug,
        help: "Pass a test-only option (regtest): addrman (use deterministic addrman), reindex_after_failure_noninteractive_yes (when the databases \
               cannot be loaded, rebuild them), bip94 (enforce BIP94 consensus rules)",
        ..TEXT
    },
    Opt {
        name: "testactivationheight",
        argument: "<name>@<height>",
        kind: Kind::Fork,
        is_list: true,
        group: Group::Debug,
        default: "none",
        help: "Set the activation height of a soft fork (segwit, bip34, dersig, cltv, csv) on a test chain",
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
];
