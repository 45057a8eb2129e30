//! `-help`: the table of options for people. Output: text of at most [`WIDTH`] columns.

use crate::options::{Group, OPTIONS, Opt};

const WIDTH: usize = 100;
const INDENT: usize = 25;

pub(crate) fn version() -> String {
    format!("Lydian RPC client version v{}", env!("CARGO_PKG_VERSION"))
}

/// The message, without a line's end behind it.
pub(crate) fn help() -> String {
    let mut text = format!(
        "{}\n\nAsks a running node: lydian, or bitcoind.\n\n\
         Usage:  lydian-cli [options] <method> [arguments]\n\
         \u{20}       lydian-cli [options] -named <method> [name=value]...\n\
         \u{20}       lydian-cli [options] help [method]     what methods there are, and what each does\n\n\
         Examples:\n\
         \u{20}       lydian-cli -getinfo\n\
         \u{20}       lydian-cli getblockhash 1000\n\
         \u{20}       lydian-cli getblock 00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09 2\n\
         \u{20}       lydian-cli -named getblockstats hash_or_height=1000 stats='[\"txs\",\"totalfee\"]'\n",
        version()
    );
    for group in Group::SHOWN {
        text += &format!("\n{}:\n\n", group.heading());
        for option in OPTIONS.iter().filter(|option| option.group == group) {
            text += &entry(option);
        }
    }
    text + &format!("\n{NOTES}")
}

const NOTES: &str = "\
Options stand before the method and are Bitcoin Core's, written as there: -name=value or --name=value, -name for
-name=1, -noname for -name=0; or without the dash in lydian.conf. What is answered goes to standard output: a text
as it is, anything else as JSON. What is refused goes to standard error.

Exit codes: 0 answered; 1 the node was not reached, or the command line is wrong; else the number of the node's
error, of which the shell keeps the lowest eight bits";

fn entry(option: &Opt) -> String {
    let mut head = format!("  -{}", option.name);
    if !option.argument.is_empty() {
        head += &format!("={}", option.argument);
    }
    let help = wrap(option.help);
    match head.len() + 2 <= INDENT {
        true => format!("{head:INDENT$}{help}\n"),
        false => format!("{head}\n{:INDENT$}{help}\n", ""),
    }
}

/// Lines behind the indent; the first is not indented.
fn wrap(text: &str) -> String {
    let mut out = String::new();
    let mut column = INDENT;
    for word in text.split_whitespace() {
        if column + 1 + word.len() > WIDTH {
            out += &format!("\n{:INDENT$}", "");
            column = INDENT;
        } else if column > INDENT {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_that_is_shown_has_its_place_and_every_line_fits() {
        let text = help();
        for option in OPTIONS {
            let is_there = text.contains(&format!("\n  -{}", option.name));
            assert!(is_there || option.group == Group::Hidden, "{}", option.name);
        }
        let longest = text.lines().max_by_key(|line| line.len()).unwrap();
        assert!(longest.len() <= WIDTH + 20, "{longest}");
    }
}
