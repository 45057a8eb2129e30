//! What a manual page and completions say about a program. Data only.

use crate::table::{Kind, Opt};

/// A program with options in Core's syntax.
#[derive(Debug)]
pub struct Program {
    pub name: &'static str,
    pub version: &'static str,
    /// One line, without a full stop.
    pub summary: &'static str,
    /// The forms of the command line, without the program's name.
    pub synopsis: &'static [&'static str],
    /// Paragraphs.
    pub description: &'static [&'static str],
    /// The first words that are not options.
    pub words: Vec<Word>,
    /// Headings, and the options below each.
    pub groups: Vec<(&'static str, Vec<Entry>)>,
    /// Further sections of the manual page: heading, and pairs of a term, which may be empty, and its text.
    pub sections: Vec<(&'static str, Vec<(String, String)>)>,
    /// Manual pages to see also.
    pub see_also: &'static [&'static str],
}

/// A command, or a method.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    pub name: &'static str,
    /// What follows it, as shown in help.
    pub argument: &'static str,
    /// Empty if the manual page does not list it.
    pub help: &'static str,
    pub then: Then,
}

/// What a shell offers after a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Nothing,
    Directories,
    Files,
    Words(&'static [&'static str]),
}

/// An option that help shows.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: &'static str,
    pub argument: &'static str,
    pub default: &'static str,
    pub help: &'static str,
    pub is_list: bool,
    pub value: Then,
}

impl Entry {
    pub fn of<S, E>(option: &Opt<S, E>) -> Entry {
        let value = match option.kind {
            _ if !option.choices.is_empty() => Then::Words(option.choices),
            Kind::Path if option.argument == "<dir>" => Then::Directories,
            Kind::Path => Then::Files,
            Kind::Switch | Kind::Integer { .. } | Kind::Text => Then::Nothing,
        };
        let Opt { name, argument, default, help, is_list, .. } = *option;
        Entry { name, argument, default, help, is_list, value }
    }

    /// A switch without `=` is complete.
    pub(crate) fn takes_value(&self) -> bool {
        !self.argument.is_empty()
    }
}

/// The first sentence of a help text, of at most `max` characters.
pub(crate) fn short(help: &str, max: usize) -> String {
    // A part that is shorter says too little.
    const MIN: usize = 12;
    let ends = [". ", "; ", ": ", " ("];
    let places = ends.iter().flat_map(|end| help.match_indices(end)).map(|(at, _)| at);
    let sentence = places.filter(|at| *at >= MIN).min().map_or(help, |at| &help[..at]);
    if sentence.chars().count() <= max {
        return sentence.to_owned();
    }
    let mut text = String::new();
    for word in sentence.split(' ') {
        // One column is for the ellipsis.
        if text.chars().count() + 1 + word.chars().count() >= max {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text += word;
    }
    text + "…"
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program with everything that can occur.
    pub(crate) fn example() -> Program {
        let entry = |name, argument, value, is_list| Entry {
            name,
            argument,
            default: "1",
            help: "Use what's [given]: all. More",
            is_list,
            value,
        };
        let words = [
            Word { name: "info", argument: "", help: "Print it", then: Then::Nothing },
            Word { name: "load", argument: "DIR", help: "Load it; and more", then: Then::Directories },
            Word { name: "index", argument: "COMMAND", help: ".begins with a dot", then: Then::Words(&["a", "b"]) },
        ];
        let entries = vec![
            entry("daemon", "", Then::Nothing, false),
            entry("datadir", "<dir>", Then::Directories, false),
            entry("conf", "<file>", Then::Files, false),
            entry("chain", "<chain>", Then::Words(&["main", "test"]), false),
            entry("addnode", "<ip>", Then::Nothing, true),
        ];
        Program {
            name: "prog",
            version: "1.2.3",
            summary: "does - things",
            synopsis: &["[options] [command]"],
            description: &["One \\ paragraph.", "'Two'."],
            words: words.into(),
            groups: vec![("Options", entries)],
            sections: vec![("FILES", vec![("~/.prog".to_owned(), "The data".to_owned())])],
            see_also: &["prog-cli(1)"],
        }
    }

    #[test]
    fn short_texts() {
        assert_eq!(short("Print it", 20), "Print it");
        assert_eq!(short("Print it again. And more", 20), "Print it again");
        assert_eq!(short("Print it again (always); more", 20), "Print it again");
        assert_eq!(short("Fees (in BTC) for relay; more", 40), "Fees (in BTC) for relay");
        assert_eq!(short("one two three four", 10), "one two…");
        assert_eq!(short("one two three four", 18), "one two three four");
    }
}
