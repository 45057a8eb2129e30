//! The code contains no markers of unfinished work.
//!
//! Input: the text of code files (Rust, Go, shell, make, TOML, C++); output: every word that marks unfinished work.
//! Such work belongs in an issue.

use super::Violation;
use crate::tree::Tree;

/// Assembled with `concat!` so that this file does not report itself.
const WORDS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
    concat!("todo", "!"),
    concat!("unimple", "mented!"),
];
const ENDINGS: &[&str] = &[".rs", ".go", ".sh", ".toml", "Makefile", ".ci/run", ".cpp", ".h"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, text) in tree.texts() {
        if !ENDINGS.iter().any(|ending| file.path.ends_with(ending)) {
            continue;
        }
        for (index, line) in text.lines().enumerate() {
            if let Some(word) = WORDS.iter().find(|word| has_word(line, word)) {
                found.push(Violation::new(
                    &file.path,
                    index + 1,
                    format!("`{word}` is left over: finish it, or write an issue"),
                ));
            }
        }
    }
    found
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    line.match_indices(word).any(|(at, _)| {
        let bytes = line.as_bytes();
        let before = at.checked_sub(1).and_then(|index| bytes.get(index));
        !is_part(before) && !is_part(bytes.get(at + word.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_in_code_and_only_there() {
        for word in WORDS {
            let line = format!("// {word}: later\n");
            assert_eq!(check(&Tree::of(&[("crates/a/src/lib.rs", &line)])).len(), 1, "{word}");
            assert_eq!(check(&Tree::of(&[("Makefile", &line)])).len(), 1, "{word}");
            assert!(check(&Tree::of(&[("docs/a.md", &line)])).is_empty(), "{word}");
        }
    }

    #[test]
    fn parts_of_words_do_not_count() {
        let text = format!("const A{}B: u8 = 0;\nlet {}ER = 1;\n", WORDS[2], WORDS[3]);
        assert!(check(&Tree::of(&[("crates/a/src/lib.rs", &text)])).is_empty());
    }
}
