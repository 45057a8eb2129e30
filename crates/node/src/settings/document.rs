//! `docs/config.md`: the tables of options as Markdown. Input: the tables. Output: text, the same on every machine.

use super::core::{CORE_OPTIONS, Ignoring};
use super::help::EXIT_CODES;
use super::table::{COMMANDS, Group, OPTIONS};

pub(crate) fn document() -> String {
    let mut text = "<!-- Generated from crates/node/src/settings by `make generate`. -->\n# Settings\n\n\
        Options are Bitcoin Core's, in Core's syntax: `-name=value` or `--name=value`, `-name` for `-name=1`, `-noname` for `-name=0`. They stand on \
        the command line before or behind the command, or without the dash in `lydian.conf` in the data directory:\n\n\
        ```\ndbcache=4000        # of all chains\n[regtest]           # of one: main, test, testnet4, signet or regtest\npar=1\n\
        signet.par=2        # the same in one line\nincludeconf=more.conf\n```\n\n\
        The command line counts before the chain's section and that before the top of the file. Of several values on the command line the last counts, \
        in a file the first. An option that is not known is an error on the command line and a warning in the file.\n\n## Commands\n\n\
        | command | what it does |\n|---|---|\n| `lydian` | Run the node |\n"
        .to_owned();
    for command in COMMANDS {
        let words = format!("lydian {} {}", command.name, command.argument);
        text += &format!("| `{}` | {} |\n", words.trim_end(), command.help);
    }
    text += &format!("\n```\n{EXIT_CODES}\n```\n");
    for group in Group::SHOWN {
        text += &format!("\n## {}\n\n| option | default | what it does |\n|---|---|---|\n", group.heading());
        for option in OPTIONS.iter().filter(|option| option.group == group) {
            let argument = if option.argument.is_empty() { String::new() } else { format!("={}", option.argument) };
            let times = if option.is_list { ". May be given several times" } else { "" };
            let head = format!("-{}{argument}", option.name).replace('|', "\\|");
            text += &format!("| `{head}` | {} | {}{times} |\n", option.default, option.help);
        }
    }
    text += "\n## Options of Bitcoin Core that Lydian does not have\n\nWhere ignoring the option would break a promise, giving it is an error; else a \
        warning. An option that is switched off (`-txindex=0`, `-nolisten`) asks for nothing and is passed over.\n\n| option | if given | why |\n|---|---|---|\n";
    for option in CORE_OPTIONS {
        let given = match option.ignoring {
            Ignoring::IsSafe => "warning",
            Ignoring::BreaksPromise => "error",
        };
        text += &format!("| `-{}` | {given} | {} |\n", option.name, option.reason);
    }
    text
}
