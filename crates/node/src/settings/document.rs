//! `docs/config.md`: the option tables as Markdown. Input: the tables. Output: text, the same on every machine.

use super::core::{CORE_OPTIONS, Given};
use super::help::EXIT_CODES;
use super::table::{COMMANDS, group, options};
use std::collections::BTreeMap;

pub(crate) fn document() -> String {
    let mut text = "<!-- Generated from crates/node/src/settings by `make generate`. -->\n# Settings\n\n\
        Options have Bitcoin Core's names and syntax: `-name=value` or `--name=value`, `-name` for\n\
        `-name=1`, `-noname` for `-name=0`. Give them on the command line before or after the command, or\n\
        without the dash in `lydian.conf` in the data directory:\n\n\
        ```\ndbcache=4000        # for all chains\n[regtest]           # for one: main, test, testnet4, signet or regtest\npar=1\n\
        signet.par=2        # a section on one line\nincludeconf=more.conf\n```\n\n\
        If `lydian.conf` is missing, `bitcoin.conf` in the data directory is read. The command line takes\n\
        precedence over `settings.json` in the chain's directory, that over the chain's section, and that\n\
        over the top of the file. Of several values on the command line, the last counts; in a file, the\n\
        first. Numbers are read as Bitcoin Core reads them: a text that is not a number is 0. An unknown\n\
        option is an error on the command line, and a line in the log if it is in a file.\n\n## Commands\n\n\
        | command | what it does |\n|---|---|\n| `lydian` | Run the node |\n"
        .to_owned();
    for command in COMMANDS {
        let words = format!("lydian {} {}", command.name, command.argument);
        text += &format!("| `{}` | {} |\n", words.trim_end(), command.help);
    }
    text += &format!("\n```\n{EXIT_CODES}\n```\n");
    for group in group::SHOWN {
        text += &format!("\n## {}\n\n| option | default | what it does |\n|---|---|---|\n", group.0);
        for option in options().filter(|option| option.group == group) {
            let argument = if option.argument.is_empty() { String::new() } else { format!("={}", option.argument) };
            let times = if option.is_list { ". May be given several times" } else { "" };
            let head = format!("-{}{argument}", option.name).replace('|', "\\|");
            text += &format!("| `{head}` | {} | {}{times} |\n", option.default, option.help);
        }
    }
    text += &core_options();
    text
}

/// Every option of Core by name, and how Lydian treats it.
fn core_options() -> String {
    let mut text = "\n## Every option of Bitcoin Core\n\nAn option that has no effect is accepted, so that start scripts written\n\
        for Bitcoin Core work; the log names it. An option is refused with an error if accepting it would\n\
        break a promise. An option that is switched off (`-txindex=0`) asks for nothing and is ignored.\n\n| option | here |\n|---|---|\n"
        .to_owned();
    let here = options().filter(|option| !option.is_own).map(|option| (option.name, "yes".to_owned()));
    let others = CORE_OPTIONS.iter().map(|option| {
        let given = match option.given {
            Given::Accepted => "no effect",
            Given::Refused => "refused",
        };
        (option.name, format!("{given}: {}", option.reason))
    });
    let rows: BTreeMap<&str, String> = here.chain(others).collect();
    for (name, treatment) in rows {
        text += &format!("| `-{name}` | {treatment} |\n");
    }
    text
}
