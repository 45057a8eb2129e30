//! `-help`: the option table for people. Input: the width of the terminal and whether to show everything. Output: text.
//! What a new user needs fits on one screen; `-help-debug` shows everything.

use super::table::{COMMANDS, group, options};
use lydian_options::Group;
use lydian_options::help::{entry, row};
use lydian_stdx::wrap;

/// Lines longer than this are hard to read.
const WIDTH_MAX: usize = 100;
const WIDTH_MIN: usize = 40;

/// The help text; `is_full` is `-help-debug`.
pub(crate) fn help(width: usize, is_full: bool) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut text = format!(
        "lydian {}: a Bitcoin full node that checks every rule and every script\n\n\
         Usage:  lydian [options] [command]\n\n",
        env!("CARGO_PKG_VERSION")
    );
    text += &row("  lydian", "Run the node", width);
    for command in COMMANDS {
        text += &row(format!("  lydian {} {}", command.name, command.argument).trim_end(), command.help, width);
    }
    let groups: &[Group] = if is_full { &group::SHOWN } else { &[group::START, group::COMMAND] };
    for group in groups {
        text += &format!("\n{}:\n\n", group.0);
        for option in options().filter(|option| option.group == *group) {
            text += &entry(option, width);
        }
    }
    if !is_full {
        let mut others: Vec<String> = options()
            .filter(|option| group::SHOWN.contains(&option.group) && !groups.contains(&option.group))
            .map(|option| format!("-{}", option.name))
            .collect();
        others.sort_unstable();
        text += &format!(
            "\nMore options (see lydian -help-debug and docs/config.md):\n\n  {}\n",
            wrap(&others.join(" "), width - 2, "  ")
        );
    }
    text += &format!(
        "\n{}\n",
        wrap(
            "Options have Bitcoin Core's names and syntax: -name=value or --name=value, -name for -name=1, -noname for -name=0; before or after \
             the command, or without the dash in lydian.conf in the data directory.",
            width,
            ""
        )
    );
    text += &format!("{EXIT_CODES}\n");
    text
}

/// Shown in help and in docs/config.md; the numbers are those of [`crate::exit`].
pub(crate) const EXIT_CODES: &str = "\
Exit codes of the node and of serve: 0 stopped on request, 1 could not start or
continue; of other commands: 0 done, 1 a block is invalid or an index differs
from its rebuild, 2 wrong option or command, 3 the data directory cannot be
used, 4 disk full, damaged or failing, 130 index verify was stopped; of doctor:
0 all is well, 1 a warning, 2 something is bad";
