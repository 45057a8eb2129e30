//! `lydian-cli` as its manual page and its completions describe it. Data from the tables.

use crate::help::{EXIT_CODES, OPTION_NOTES};
use crate::options::{OPTIONS, group};
use lydian_options::completions::Shell;
use lydian_options::{Entry, Program, Then, Word};

pub(crate) fn program() -> Program {
    let method = |name: &&'static str| Word { name, argument: "", help: "", then: Then::Nothing };
    let help = Word {
        name: "help",
        argument: "[method]",
        help: "List the methods, or describe one",
        then: Then::Words(lydian_rpc::NAMES),
    };
    let grind = Word {
        name: "grind",
        argument: "<hex-block-header>",
        help: "Find the nonce of a header, as bitcoin-util does",
        then: Then::Nothing,
    };
    let completions = Word {
        name: "completions",
        argument: "<shell>",
        help: "Print the completions of bash, zsh or fish: source <(lydian-cli completions bash)",
        then: Then::Words(Shell::NAMES),
    };
    let methods = lydian_rpc::NAMES.iter().filter(|name| **name != help.name).map(method);
    let entries = |group| OPTIONS.iter().filter(|option| option.group == group).map(Entry::of).collect();
    Program {
        name: "lydian-cli",
        version: env!("CARGO_PKG_VERSION"),
        summary: "call the RPC methods of a running node",
        synopsis: &["[options] <method> [arguments]", "[options] -named <method> [name=value]..."],
        description: &[
            "lydian-cli calls the RPC methods of lydian or bitcoind, as bitcoin-cli does. The methods and their arguments are printed by \
             lydian-cli help while a node runs.",
            OPTION_NOTES,
        ],
        words: [help, grind, completions].into_iter().chain(methods).collect(),
        groups: group::SHOWN.into_iter().map(|group| (group.0, entries(group))).collect(),
        sections: vec![("EXIT STATUS", vec![(String::new(), EXIT_CODES.to_owned())])],
        see_also: &["lydian(1)", "lydian-lab(1)"],
    }
}
