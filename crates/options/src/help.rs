//! The help text of a table: `-help`. Input: entries, and the width of the terminal. Output: text in two columns.

use crate::table::Opt;
use lydian_stdx::wrap;

/// The column of the descriptions.
const INDENT: usize = 25;

/// An option with its description and default.
pub fn entry<S, E>(option: &Opt<S, E>, width: usize) -> String {
    let mut head = format!("  -{}", option.name);
    if !option.argument.is_empty() {
        head += &format!("={}", option.argument);
    }
    let mut help = option.help.to_owned();
    if !option.default.is_empty() && (option.default != "0" || !option.argument.is_empty()) {
        help += &format!(" (default: {})", option.default);
    }
    row(&head, &help, width)
}

/// A term and its description, in two columns.
pub fn row(head: &str, help: &str, width: usize) -> String {
    let help = wrap(help, width.saturating_sub(INDENT), &" ".repeat(INDENT));
    match head.len() + 2 <= INDENT {
        true => format!("{head:INDENT$}{help}\n"),
        false => format!("{head}\n{}{help}\n", " ".repeat(INDENT)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_and_descriptions() {
        let base: Opt<(), ()> = Opt { name: "a", help: "one two three", ..Opt::SWITCH };
        assert_eq!(entry(&base, 60), format!("{:25}one two three\n", "  -a"));
        let with = Opt { argument: "<n>", ..Opt { name: "a", help: "one", ..Opt::<(), ()>::SWITCH } };
        assert_eq!(entry(&with, 60), format!("{:25}one (default: 0)\n", "  -a=<n>"));
        let none = Opt { default: "", ..with };
        assert_eq!(entry(&none, 60), format!("{:25}one\n", "  -a=<n>"));
        let long = "  -a-name-beyond-the-column";
        assert_eq!(row(long, "one two", 29), format!("{long}\n{:25}one\n{:25}two\n", "", ""));
    }
}
