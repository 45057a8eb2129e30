//! Options for debugging and tests. Data only: entries of the option table.

use super::{Kind, Opt, SWITCH, Set, TEXT, debug_switch, group, integer};
use crate::settings::values::{self, CHECKLEVEL_MAX};
use lydian_options::atoi;

pub(super) const OPTIONS: &[Opt] = &[
    Opt {
        name: "blockversion",
        group: group::DEBUG,
        default: "none",
        help: "Override the version of blocks that RPC methods generate on regtest, to test forking scenarios",
        set: Set::Integer(|settings, version| settings.blockversion = i32::try_from(version).ok()),
        ..integer(-0x8000_0000, 0x7fff_ffff)
    },
    Opt {
        name: "capturemessages",
        group: group::DEBUG,
        help: "Capture all P2P messages to disk",
        set: Set::Switch(|settings, is_on| settings.net.captures_messages = is_on),
        ..SWITCH
    },
    Opt {
        name: "checkaddrman",
        group: group::DEBUG,
        help: "Run consistency checks of the address manager every <n> operations. Use 0 to disable",
        set: Set::Integer(|settings, count| settings.checkaddrman = values::count(count)),
        ..integer(0, 1_000_000)
    },
    Opt {
        name: "checkblockindex",
        group: group::DEBUG,
        help: "Do a consistency check for the block tree every <n> operations. Use 0 to disable; unlike in Bitcoin Core, it is disabled on regtest too",
        set: Set::Value(|settings, setting| {
            // As in Core, the option without a value means 1.
            let text = setting.text();
            settings.checkblockindex = if text.is_empty() { 1 } else { values::count(atoi(text)) };
            Ok(())
        }),
        ..integer(0, 0x7fff_ffff)
    },
    Opt {
        name: "checkblocks",
        group: group::DEBUG,
        default: "6",
        help: "How many blocks to check at startup (0 = all)",
        // As in Core, a value that is not positive means all.
        set: Set::Integer(|settings, count| settings.checkblocks = values::count(count)),
        ..integer(i64::MIN, i64::MAX)
    },
    Opt {
        name: "checklevel",
        group: group::DEBUG,
        default: "3",
        help: "How thorough the block verification of -checkblocks is: level 0 reads the blocks from disk, level 1 verifies block validity, level \
               2 verifies undo data, level 3 checks disconnection of tip blocks, level 4 tries to reconnect the blocks, each level includes the \
               checks of the previous levels (0-4)",
        set: Set::Integer(|settings, level| settings.checklevel = u8::try_from(level).unwrap_or(3)),
        ..integer(0, CHECKLEVEL_MAX)
    },
    Opt {
        name: "debug",
        argument: "<category>",
        choices: &crate::log::CATEGORIES,
        kind: Kind::Text,
        is_list: true,
        group: group::DEBUG,
        default: "none",
        help: "Output debug and trace logging. If <category> is not supplied or if <category> is 1 or \"all\", output all debug logging. If \
               <category> is 0 or \"none\", any other categories are ignored. The categories are Bitcoin Core's",
        ..SWITCH
    },
    Opt {
        name: "debugexclude",
        argument: "<category>",
        choices: &crate::log::CATEGORIES,
        kind: Kind::Text,
        is_list: true,
        group: group::DEBUG,
        default: "none",
        help: "Exclude debug and trace logging for a category. This takes priority over -debug",
        ..SWITCH
    },
    Opt {
        name: "fastprune",
        group: group::DEBUG,
        help: "Use smaller block files and lower minimum prune height for testing purposes",
        set: Set::Switch(|settings, is_on| settings.fastprune = is_on),
        ..SWITCH
    },
    Opt { name: "help-debug", group: group::DEBUG, help: "Print help message with all options and exit", ..SWITCH },
    debug_switch("logips", "0", "Include IP addresses in log output", |settings, is_on| {
        settings.log.form.has_ips = is_on
    }),
    Opt {
        name: "loglevel",
        argument: "<level>|<category>:<level>",
        kind: Kind::Text,
        is_list: true,
        may_negate: false,
        group: group::DEBUG,
        default: "debug",
        needs_value: true,
        help: "Set the global or per-category severity level for logging categories enabled with -debug: info, debug or trace. Errors, warnings \
               and information are always logged",
        ..SWITCH
    },
    debug_switch("loglevelalways", "0", "Always prepend a category and level", |settings, is_on| {
        settings.log.form.has_level_always = is_on
    }),
    debug_switch(
        "logratelimit",
        "1",
        "Apply rate limiting to unconditional logging to mitigate disk-filling attacks",
        |settings, is_on| settings.log.form.is_rate_limited = is_on,
    ),
    debug_switch(
        "logsourcelocations",
        "0",
        "Prepend debug output with source file, line and module",
        |settings, is_on| settings.log.form.has_source_locations = is_on,
    ),
    debug_switch(
        "logthreadnames",
        "0",
        "Prepend debug output with name of the originating thread",
        |settings, is_on| settings.log.form.has_thread_names = is_on,
    ),
    debug_switch("logtimemicros", "0", "Add microsecond precision to debug timestamps", |settings, is_on| {
        settings.log.has_micros = is_on
    }),
    debug_switch("logtimestamps", "1", "Prepend debug output with timestamp", |settings, is_on| {
        settings.log.form.has_timestamps = is_on
    }),
    Opt {
        name: "maxtipage",
        group: group::DEBUG,
        default: "86400",
        help: "Maximum tip age in seconds to consider node in initial block download",
        set: Set::Integer(|settings, seconds| settings.max_tip_age_seconds = seconds),
        ..integer(i64::MIN, i64::MAX)
    },
    Opt {
        name: "mocktime",
        group: group::DEBUG,
        default: "0",
        help: "Replace actual time with <n> seconds since epoch",
        set: Set::Value(|settings, setting| values::mocktime(setting).map(|time| settings.mocktime = time)),
        ..integer(0, 0xffff_ffff)
    },
    Opt {
        name: "shrinkdebugfile",
        group: group::DEBUG,
        default: "1 when no -debug",
        help: "Shrink debug log file on startup: if it is larger than 11 MB, keep the last 10 MB",
        ..SWITCH
    },
    Opt {
        name: "stopafterblockimport",
        group: group::DEBUG,
        help: "Stop running after importing blocks from disk",
        set: Set::Switch(|settings, is_on| settings.stopafterblockimport = is_on),
        ..SWITCH
    },
    Opt {
        name: "secondopinion",
        is_own: true,
        group: group::DEBUG,
        help: "Let the code of Bitcoin Core verify the scripts of each new block at the tip, and of a random sample of blocks during the sync, after \
               they were accepted. A disagreement is logged, shown as a warning and passed to -alertnotify; it changes no verdict. Needs a program built \
               with --features second-opinion",
        set: Set::Switch(|settings, is_on| settings.has_second_opinion = is_on),
        ..SWITCH
    },
    Opt {
        name: "sigengine",
        is_own: true,
        argument: "<name>",
        choices: &lydian_curve::ENGINE_NAMES,
        kind: Kind::Text,
        may_negate: false,
        group: group::DEBUG,
        default: "auto",
        help: "Engine that verifies signatures: reference (libsecp256k1, one at a time), scalar (batches without SIMD), neon, avx2, ifma256 or ifma512 \
               (many at once in SIMD lanes, if the CPU supports them), or auto (the fastest of these that passes its self-test). While lanes are in use, the \
               reference verifies a random sample again, and everything at the tip; if they ever disagree, the lanes are no longer used",
        set: Set::Value(|settings, setting| values::signature_engine(setting).map(|name| settings.sigengine = name)),
        ..SWITCH
    },
    Opt {
        name: "stopatheight",
        group: group::DEBUG,
        default: "0",
        help: "Stop running after reaching the given height in the main chain",
        set: Set::Integer(|settings, height| settings.stopatheight = values::height(height)),
        ..integer(0, 0xffff_ffff)
    },
    Opt {
        name: "test",
        argument: "<option>",
        is_list: true,
        group: group::DEBUG,
        help: "Pass a test-only option (regtest): addrman (use deterministic addrman), reindex_after_failure_noninteractive_yes (when the databases \
               cannot be loaded, rebuild them), bip94 (enforce BIP94 consensus rules), \
               secondopinion_lies (with -secondopinion, every transaction is said to be invalid)",
        ..TEXT
    },
    Opt {
        name: "testactivationheight",
        argument: "<name>@<height>",
        kind: Kind::Text,
        is_list: true,
        group: group::DEBUG,
        default: "none",
        help: "Set the activation height of a soft fork (segwit, bip34, dersig, cltv, csv) on a test chain",
        ..SWITCH
    },
    Opt {
        name: "uacomment",
        argument: "<cmt>",
        is_list: true,
        group: group::DEBUG,
        help: "Append comment to the user agent string",
        ..TEXT
    },
];
