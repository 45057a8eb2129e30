//! `-help`: the option table for people. Input: the width of the terminal and whether to show everything. Output: text.
//! What a new user needs fits on one screen; `-help-debug` shows everything.

use super::front::is_of_front_end;
use super::table::{COMMANDS, Opt, group, options};
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
    text += &entries(groups, |_| true, width);
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

/// The entries of options below the headings of their groups. A group without any is left out.
fn entries(groups: &[Group], is_shown: impl Fn(&Opt) -> bool, width: usize) -> String {
    let mut text = String::new();
    for group in groups {
        let of_group = options().filter(|option| option.group == *group && is_shown(option));
        let entries: String = of_group.map(|option| entry(option, width)).collect();
        if !entries.is_empty() {
            text += &format!("\n{}:\n\n{entries}", group.0);
        }
    }
    text
}

/// The text of `lydian serve -help`: the options that a front end has, those of its own first.
pub(crate) fn front_help(width: usize) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let about = "lydian serve: a front end, which serves wallets from the index in a store and the feed of nodes, and \
                 has no data directory (see docs/scale.md)";
    let usage = "lydian serve -index=cassandra://HOST,HOST/KEYSPACE -feed=NODE,NODE -electrum -esplora [options]";
    let others = group::SHOWN.into_iter().filter(|group| *group != group::FRONT);
    let groups: Vec<Group> = [group::FRONT].into_iter().chain(others).collect();
    format!(
        "{}\n\nUsage:  {}\n{}\n{EXIT_CODES}\n",
        wrap(about, width, ""),
        wrap(usage, width - 8, "        "),
        entries(&groups, is_of_front_end, width)
    )
}

/// Shown in help and in docs/config.md; the numbers are those of [`crate::exit`].
pub(crate) const EXIT_CODES: &str = "\
Exit codes of the node and of serve: 0 stopped on request, 1 could not start or
continue; of other commands: 0 done, 1 a block is invalid or an index differs
from its rebuild, 2 wrong option or command, 3 the data directory cannot be
used, 4 disk full, damaged or failing, 130 index verify was stopped; of doctor:
0 all is well, 1 a warning, 2 something is bad";
