//! The option table: the parser, `-help`, `docs/config.md` and the table tests are derived from it. Data only.
//!
//! Names, arguments and meanings are Bitcoin Core's if Core has the option. An option added here must be read in
//! [`super::raw`]; a test walks the table and reports options that change nothing.

mod connection;
mod debug;
mod general;
mod rpc;

use super::parse::PRUNE_MIB_MIN;

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opt {
    pub(crate) name: &'static str,
    /// The text after `=`, as shown in help; empty for a switch.
    pub(crate) argument: &'static str,
    pub(crate) kind: Kind,
    /// May be given several times, and every value counts.
    pub(crate) is_list: bool,
    /// `-noNAME` is permitted.
    pub(crate) may_negate: bool,
    /// Its value is never logged.
    pub(crate) is_secret: bool,
    /// `-NAME` without `=` is an error: Core's `DISALLOW_ELISION`.
    pub(crate) needs_value: bool,
    /// At the top of a file it applies to the main chain only: Core's `NETWORK_ONLY`.
    pub(crate) is_of_chain: bool,
    pub(crate) group: Group,
    /// Bitcoin Core lacks it.
    pub(crate) is_own: bool,
    /// The commands it belongs to; if empty, it belongs to all of them and to the node.
    pub(crate) commands: &'static [&'static str],
    /// The default, as shown in help.
    pub(crate) default: &'static str,
    pub(crate) help: &'static str,
}

/// The form of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 0 or 1; an empty value means 1.
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
    /// A logging category; an empty value means all.
    Category,
    /// `LEVEL` or `CATEGORY:LEVEL`.
    Level,
    /// `NAME@HEIGHT`.
    Fork,
    /// One of [`lydian_curve::ENGINE_NAMES`].
    SignatureEngine,
}

/// Heading in help, in the order of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// What a new user needs; first in help.
    Start,
    Options,
    Chain,
    Debug,
    Rpc,
    Connection,
    /// Options of single commands.
    Command,
    /// Not shown in help.
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

/// A command: the first word that is not an option.
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
        help: "Validate a directory of block files, such as Core's blocks/, and stop; the files are read in place",
    },
    CommandInfo {
        name: "info",
        argument: "",
        help: "Print tip, work, coins and sizes at once, also while a node runs",
    },
    CommandInfo {
        name: "utxohash",
        argument: "",
        help: "Compute hash_serialized_3 and muhash of the coins, as Core's gettxoutsetinfo does",
    },
    CommandInfo { name: "verify", argument: "PATH...", help: "Verify blocks from files, without a data directory" },
    CommandInfo { name: "explain", argument: "[RULE]", help: "Explain a consensus rule" },
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
    is_own: false,
    group: Group::Options,
    commands: &[],
    default: "0",
    help: "",
};

const fn debug_switch(name: &'static str, default: &'static str, help: &'static str) -> Opt {
    Opt { name, default, help, group: Group::Debug, ..SWITCH }
}

const fn integer(min: i64, max: i64) -> Opt {
    Opt { argument: "<n>", kind: Kind::Integer { min, max }, ..SWITCH }
}

const PATH: Opt = Opt { argument: "<file>", kind: Kind::Path, ..SWITCH };
const TEXT: Opt = Opt { kind: Kind::Text, default: "none", ..SWITCH };
const COMMAND: Opt = Opt { argument: "<cmd>", kind: Kind::Command, is_list: true, default: "none", ..SWITCH };

/// The parts of the table, in the order of help.
const PARTS: &[&[Opt]] = &[general::OPTIONS, debug::OPTIONS, rpc::OPTIONS, connection::OPTIONS];

const COUNT: usize = {
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        count += PARTS[part].len();
        part += 1;
    }
    count
};

/// Every option.
pub(crate) static OPTIONS: [Opt; COUNT] = {
    let mut all = [SWITCH; COUNT];
    let (mut count, mut part) = (0, 0);
    while part < PARTS.len() {
        let mut index = 0;
        while index < PARTS[part].len() {
            all[count] = PARTS[part][index];
            count += 1;
            index += 1;
        }
        part += 1;
    }
    all
};

/// Help and the check must agree on the smallest size to prune to.
const _: () = assert!(PRUNE_MIB_MIN == 550);

pub(crate) fn find(name: &str) -> Option<&'static Opt> {
    OPTIONS.iter().find(|option| option.name == name)
}
