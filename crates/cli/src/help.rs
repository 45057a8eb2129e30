//! `-help`: prints the table of options. Output: text of at most [`WIDTH`] columns.

use crate::options::{OPTIONS, group};
use lydian_options::help::entry;

const WIDTH: usize = 100;

pub(crate) fn version() -> String {
    format!("Lydian RPC client version v{}", env!("CARGO_PKG_VERSION"))
}

/// Returns the help message, without a trailing newline.
pub(crate) fn help() -> String {
    let mut text = format!(
        "{}\n\nCalls the RPC methods of a running node: lydian, or bitcoind.\n\n\
         Usage:  lydian-cli [options] <method> [arguments]\n\
         \u{20}       lydian-cli [options] -named <method> [name=value]...\n\
         \u{20}       lydian-cli [options] help [method]     list the methods, or describe one\n\
         \u{20}       lydian-cli grind <hex-block-header>    find the nonce of a header, as bitcoin-util does\n\
         \u{20}       lydian-cli completions <shell>         print the completions of bash, zsh or fish\n\n\
         Examples:\n\
         \u{20}       lydian-cli -getinfo\n\
         \u{20}       lydian-cli getblockhash 1000\n\
         \u{20}       lydian-cli getblock 00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09 2\n\
         \u{20}       lydian-cli -named getblockstats hash_or_height=1000 stats='[\"txs\",\"totalfee\"]'\n",
        version()
    );
    for group in group::SHOWN {
        text += &format!("\n{}:\n\n", group.0);
        for option in OPTIONS.iter().filter(|option| option.group == group) {
            text += &entry(option, WIDTH);
        }
    }
    text + &format!("\n{OPTION_NOTES}\n\n{EXIT_CODES}")
}

pub(crate) const OPTION_NOTES: &str = "\
Options come before the method. They are those of Bitcoin Core, in the same form: -name=value or --name=value,
-name for -name=1, -noname for -name=0; or without the dash in lydian.conf. Results are printed to standard
output: strings unchanged, anything else as JSON. Errors are printed to standard error.";

pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 success; 1 the node was not reached, or the command line is invalid; otherwise the code of the
node's error, of which the shell keeps the lowest eight bits";

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_options::Group;

    #[test]
    fn every_option_that_is_shown_has_its_place_and_every_line_fits() {
        let text = help();
        for option in OPTIONS {
            let is_there = text.contains(&format!("\n  -{}", option.name));
            assert!(is_there || option.group == Group::HIDDEN, "{}", option.name);
        }
        let longest = text.lines().max_by_key(|line| line.len()).unwrap();
        assert!(longest.len() <= WIDTH + 20, "{longest}");
    }
}
