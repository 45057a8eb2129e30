//! `lydian` as its manual page and its completions describe it. Data from the tables.

use super::help::EXIT_CODES;
use super::table::{COMMANDS, group, options};
use lydian_options::completions::Shell;
use lydian_options::{Entry, Program, Then, Word};

const DESCRIPTION: &[&str] = &[
    "Lydian downloads the Bitcoin chain from its peers, verifies every script of every block, accepts and relays transactions, and serves other \
     nodes, wallets (Electrum, Esplora) and programs (the RPC interface of Bitcoin Core).",
    "Options have Bitcoin Core's names and syntax: -name=value or --name=value, -name for -name=1, -noname for -name=0; before or after the \
     command, or without the dash in lydian.conf in the data directory.",
];

pub(crate) fn program() -> Program {
    let word = |command: &super::table::CommandInfo| {
        let (name, argument, help) = (command.name, command.argument, command.help);
        let then = match name {
            "import" => Then::Directories,
            "verify" => Then::Files,
            "index" => Then::Words(&["status", "verify", "drop", "load"]),
            "completions" => Then::Words(Shell::NAMES),
            _ => Then::Nothing,
        };
        Word { name, argument, help, then }
    };
    let entries = |group| options().filter(|option| option.group == group).map(Entry::of).collect();
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    Program {
        name: "lydian",
        version: env!("CARGO_PKG_VERSION"),
        summary: "a Bitcoin full node that checks every rule and every script",
        synopsis: &["[options] [command]"],
        description: DESCRIPTION,
        words: COMMANDS.iter().map(word).collect(),
        groups: group::SHOWN.into_iter().map(|group| (group.0, entries(group))).collect(),
        sections: vec![
            (
                "FILES",
                vec![
                    file("~/.lydian", "The data directory, unless -datadir is given"),
                    file("~/.lydian/lydian.conf", "The configuration file; bitcoin.conf is read if there is none"),
                ],
            ),
            ("EXIT STATUS", vec![(String::new(), EXIT_CODES.to_owned())]),
        ],
        see_also: &["lydian-cli(1)", "lydian-lab(1)"],
    }
}
