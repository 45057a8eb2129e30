//! The option table: the parser, `-help`, `docs/config.md` and the table tests are derived from it. Data only.
//!
//! Names, arguments and meanings are Bitcoin Core's if Core has the option. An entry stores its value in [`Settings`],
//! unless its meaning depends on other options: then a part of the settings reads it by name ([`super::given`]). A test
//! walks the table and reports options that change nothing.

mod connection;
mod debug;
mod electrum;
mod esplora;
mod feed;
mod front;
mod general;
mod mempool;
mod mining;
mod page;
mod rpc;
mod zmq;

use super::core;
use super::error::SettingsError;
use super::settled::Settings;
use super::values::PRUNE_MIB_MIN;
use lydian_options::{Group, Kind, Rules, Set};

pub(crate) type Opt = lydian_options::Opt<Settings, SettingsError>;

/// Headings in help.
pub(crate) mod group {
    use lydian_options::Group;

    /// What a new user needs; first in help.
    pub(crate) const START: Group = Group("Common options");
    pub(crate) const OPTIONS: Group = Group("Options");
    pub(crate) const CHAIN: Group = Group("Chain selection options");
    pub(crate) const DEBUG: Group = Group("Debugging/Testing options");
    pub(crate) const RPC: Group = Group("RPC server options");
    pub(crate) const CONNECTION: Group = Group("Connection options");
    pub(crate) const RELAY: Group = Group("Node relay options");
    pub(crate) const BLOCK_CREATION: Group = Group("Block creation options");
    pub(crate) const ELECTRUM: Group = Group("Electrum server options");
    pub(crate) const ESPLORA: Group = Group("Esplora server options");
    pub(crate) const FEED: Group = Group("Feed options");
    /// `lydian serve`.
    pub(crate) const FRONT: Group = Group("Front end options");
    pub(crate) const PAGE: Group = Group("Page options");
    pub(crate) const ZMQ: Group = Group("ZeroMQ notification options");
    /// Options of single commands.
    pub(crate) const COMMAND: Group = Group("Options of commands");

    /// In the order of help.
    pub(crate) const SHOWN: [Group; 15] = [
        START,
        COMMAND,
        OPTIONS,
        PAGE,
        ELECTRUM,
        ESPLORA,
        FEED,
        FRONT,
        CONNECTION,
        ZMQ,
        CHAIN,
        DEBUG,
        RELAY,
        BLOCK_CREATION,
        RPC,
    ];
}

/// A command: the first word that is not an option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandInfo {
    pub(crate) name: &'static str,
    pub(crate) argument: &'static str,
    /// The most words that it takes.
    pub(crate) words_max: usize,
    pub(crate) help: &'static str,
}

pub(crate) const COMMANDS: &[CommandInfo] = &[
    CommandInfo {
        name: "import",
        argument: "DIR",
        words_max: 1,
        help: "Validate a directory of block files, such as Core's blocks/, and stop; the files are read in place",
    },
    CommandInfo {
        name: "info",
        argument: "",
        words_max: 0,
        help: "Print tip, work, coins and sizes at once, also while a node runs",
    },
    CommandInfo {
        name: "doctor",
        argument: "",
        words_max: 1,
        help: "Check disk, memory, machine, directory, settings and the running node, and print what is wrong and what to do",
    },
    CommandInfo {
        name: "utxohash",
        argument: "",
        words_max: 0,
        help: "Compute hash_serialized_3 and muhash of the coins, as Core's gettxoutsetinfo does",
    },
    CommandInfo {
        name: "index",
        argument: "COMMAND",
        words_max: 2,
        help: "status: sizes and heights of the indexes; verify [NAME]: compare with a rebuild; drop NAME: remove an index; load cassandra://HOST/KEYSPACE: write the index to a store, status and verify with such an address: what the store has, and compare it",
    },
    CommandInfo {
        name: "serve",
        argument: "",
        words_max: 0,
        help: "Serve wallets without a data directory, from the index in a store and the feed of nodes: -index=cassandra://... -feed=NODE,NODE -electrum -esplora",
    },
    CommandInfo { name: "page", argument: "", words_max: 0, help: "Print a link to the page of the running node" },
    CommandInfo {
        name: "verify",
        argument: "PATH...",
        words_max: 1,
        help: "Verify blocks from files, without a data directory",
    },
    CommandInfo { name: "explain", argument: "[RULE]", words_max: 1, help: "Explain a consensus or policy rule" },
    CommandInfo {
        name: "completions",
        argument: "SHELL",
        words_max: 1,
        help: "Print the completions of bash, zsh or fish: source <(lydian completions bash)",
    },
];

const SWITCH: Opt = Opt { group: group::OPTIONS, ..Opt::SWITCH };

const fn debug_switch(
    name: &'static str,
    default: &'static str,
    help: &'static str,
    set: fn(&mut Settings, bool),
) -> Opt {
    Opt { name, default, help, group: group::DEBUG, set: Set::Switch(set), ..SWITCH }
}

const fn integer(min: i64, max: i64) -> Opt {
    Opt { group: group::OPTIONS, ..Opt::integer(min, max) }
}

const PATH: Opt = Opt { group: group::OPTIONS, ..Opt::PATH };
const TEXT: Opt = Opt { group: group::OPTIONS, ..Opt::TEXT };
/// A command for the shell.
const COMMAND: Opt = Opt { argument: "<cmd>", is_list: true, is_command: true, ..TEXT };

/// The parts of the table, in the order of help.
const PARTS: &[&[Opt]] = &[
    general::OPTIONS,
    mempool::OPTIONS,
    mining::OPTIONS,
    debug::OPTIONS,
    rpc::OPTIONS,
    electrum::OPTIONS,
    esplora::OPTIONS,
    feed::OPTIONS,
    front::OPTIONS,
    page::OPTIONS,
    connection::OPTIONS,
    zmq::OPTIONS,
];

/// Every option.
pub(crate) fn options() -> impl Iterator<Item = &'static Opt> {
    PARTS.iter().flat_map(|part| part.iter())
}

/// Help and the check must agree on the smallest size to prune to.
const _: () = assert!(PRUNE_MIB_MIN == 550);

pub(crate) fn find(name: &str) -> Option<&'static Opt> {
    options().find(|option| option.name == name)
}

/// The rules of an option, ours or Core's; `None` if there is no such option.
pub(crate) fn rules(name: &str) -> Option<Rules> {
    find(name).map(Opt::rules).or_else(|| core::rules(name))
}
