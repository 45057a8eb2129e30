//! Text on stdout. Input: text. Output: lines, coloured if stdout is a terminal, `NO_COLOR` is not set and `TERM` is
//! not "dumb". A closed pipe (`| head`) ends the output, not the program.

use std::env;
use std::io::{self, IsTerminal, Write};

const WIDTH_WITHOUT_TERMINAL: usize = 100;

/// Standard output, and whether it may be coloured.
#[derive(Debug)]
pub(crate) struct Screen {
    has_color: bool,
}

/// Meaning of a colour.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tone {
    Good,
    Bad,
    Warn,
    Strong,
    Quiet,
}

impl Screen {
    pub(crate) fn new() -> Screen {
        let is_off = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = env::var_os("TERM").is_some_and(|term| term == "dumb");
        Screen { has_color: io::stdout().is_terminal() && !is_off("NO_COLOR") && !is_dumb }
    }

    /// For texts that are stored.
    pub(crate) fn without_color() -> Screen {
        Screen { has_color: false }
    }

    pub(crate) fn line(&self, text: &str) {
        // If stdout is closed, there is nowhere to report it.
        let _ = writeln!(io::stdout().lock(), "{text}");
    }

    /// Columns of the terminal, or a readable width if stdout is not a terminal.
    pub(crate) fn width(&self) -> usize {
        console::Term::stdout().size_checked().map_or(WIDTH_WITHOUT_TERMINAL, |(_, columns)| usize::from(columns))
    }

    /// The text in a colour, or unchanged.
    pub(crate) fn tone(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "1;31",
            Tone::Warn => "33",
            Tone::Strong => "1",
            Tone::Quiet => "2",
        };
        if self.has_color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A number with a comma every three digits.
pub(crate) fn commas(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "1 block", "2 blocks".
pub(crate) fn count(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", commas(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_nouns() {
        let shown: Vec<_> = [0, 999, 1000, 20_817, 1_234_567].map(commas).into();
        assert_eq!(shown, ["0", "999", "1,000", "20,817", "1,234,567"]);
        assert_eq!([count(1, "block"), count(2, "block")], ["1 block", "2 blocks"]);
    }
}
