//! Comments and documents avoid a few phrasings that read as translated.
//!
//! Input: comments of Rust files and prose of Markdown files; output: each banned phrase with what to write instead. A
//! module does something and a peer, caller or file has a name, so that pronouns for persons are banned first.

use super::Violation;
use super::width::{EXEMPT, comments, prose};
use crate::tree::Tree;

/// The banned phrase and its replacement. Phrases match whole words, in any case.
const PHRASES: &[(&str, &str)] = &[
    ("whoever", "name it: the caller, the peer, the process"),
    ("nobody", "no peer, no caller, no process"),
    ("somebody", "a peer, a caller, another process"),
    ("everybody", "all peers, all callers"),
    ("is not there", "is missing, does not exist"),
    ("are not there", "are missing, do not exist"),
    ("one after the other", "in order, one at a time"),
    ("the rest of its life", "until the process exits"),
    ("foretold", "expected, predicted"),
    ("tells of", "reports, describes"),
    ("told of", "notified of, informed about"),
    ("once more", "again"),
    ("goes by", "depends on, is derived from"),
    ("has nothing to say", "returns nothing, is empty"),
];

/// This file lists them.
const OWN: &str = "xtask/src/tidy/phrases.rs";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, text) in tree.texts() {
        let lines = if file.path.ends_with(".rs") && file.path != OWN {
            comments(text)
        } else if file.path.ends_with(".md") && !EXEMPT.contains(&file.path.as_str()) {
            prose(text)
        } else {
            continue;
        };
        for (number, line) in lines {
            let line = line.to_lowercase();
            for (phrase, instead) in PHRASES.iter().filter(|(phrase, _)| has_phrase(&line, phrase)) {
                found.push(Violation::new(&file.path, number, format!("\"{phrase}\": write {instead}")));
            }
        }
    }
    found
}

fn has_phrase(line: &str, phrase: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    line.match_indices(phrase).any(|(at, _)| {
        !is_letter(line[..at].chars().next_back()) && !is_letter(line[at + phrase.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phrase_is_found_in_comments_and_prose_and_only_there() {
        for (phrase, _) in PHRASES {
            let comment = format!("/// A file that {phrase} ends.\n");
            assert_eq!(check(&Tree::of(&[("crates/a/src/lib.rs", &comment)])).len(), 1, "{phrase}");
            assert_eq!(check(&Tree::of(&[("docs/a.md", &comment)])).len(), 1, "{phrase}");
            let code = format!("const A: &str = \"{phrase}\";\n");
            assert!(check(&Tree::of(&[("crates/a/src/lib.rs", &code)])).is_empty(), "{phrase}");
        }
        let upper = "// Nobody\n// anybodynobody\n";
        assert_eq!(check(&Tree::of(&[("crates/a/src/lib.rs", upper)])).len(), 1);
    }
}
