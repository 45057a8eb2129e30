//! The answers of the section "Where is ...?" of `CONTRIBUTING.md` are true.
//!
//! Input: the numbered items of that section, and the tracked files; output: each path in backquotes that is no file or
//! folder of the checkout, each other name in backquotes that no file of its item contains, and each item without a
//! path. A path contains a slash or ends like a file. A folder stands for all files below it.

use super::Violation;
use crate::tree::Tree;

const PATH: &str = "CONTRIBUTING.md";
const HEADING: &str = "## Where is ...?";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(text) = tree.text(PATH) else { return vec![Violation::new(PATH, 1, "the file is missing")] };
    let items = items(text);
    if items.is_empty() {
        return vec![Violation::new(PATH, 1, format!("no numbered item below the heading \"{HEADING}\""))];
    }
    items.iter().flat_map(|item| item_violations(item, tree)).collect()
}

/// One question with its answer: the words in backquotes, with their lines.
#[derive(Debug, Default)]
struct Item<'a> {
    line: usize,
    words: Vec<(usize, &'a str)>,
}

/// The items of the section. Words in backquotes do not continue on the next line.
fn items(text: &str) -> Vec<Item<'_>> {
    let lines = (1..).zip(text.lines()).skip_while(|(_, line)| *line != HEADING).skip(1);
    let mut items: Vec<Item<'_>> = Vec::new();
    for (number, line) in lines.take_while(|(_, line)| !line.starts_with("## ")) {
        if line.split_once(". ").is_some_and(|(digits, _)| digits.parse::<u32>().is_ok()) {
            items.push(Item { line: number, words: Vec::new() });
        }
        if let Some(item) = items.last_mut() {
            item.words.extend(line.split('`').skip(1).step_by(2).map(|word| (number, word)));
        }
    }
    items
}

fn item_violations(item: &Item<'_>, tree: &Tree) -> Vec<Violation> {
    let (paths, names): (Vec<_>, Vec<_>) = item.words.iter().copied().partition(|(_, word)| is_path(word));
    if paths.is_empty() {
        return vec![Violation::new(PATH, item.line, "the answer names no file")];
    }
    let mut found = Vec::new();
    for (line, path) in &paths {
        if !tree.files.iter().any(|file| is_in(&file.path, path)) {
            found.push(Violation::new(PATH, *line, format!("`{path}` does not exist")));
        }
    }
    for (line, name) in names.into_iter().filter(|(_, word)| is_name(word)) {
        let mut texts = tree.texts().filter(|(file, _)| paths.iter().any(|(_, path)| is_in(&file.path, path)));
        if !texts.any(|(_, text)| has_name(text, name)) {
            found.push(Violation::new(PATH, line, format!("`{name}` is in no file that the answer names")));
        }
    }
    found
}

fn is_path(word: &str) -> bool {
    !word.contains(' ') && (word.contains('/') || word.ends_with(".md") || word.ends_with(".rs"))
}

/// An identifier; commands and options are not looked up.
fn is_name(word: &str) -> bool {
    word.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Whether the file is the path, or below it.
fn is_in(file: &str, path: &str) -> bool {
    let behind = file.strip_prefix(path.trim_end_matches('/'));
    behind.is_some_and(|behind| behind.is_empty() || behind.starts_with('/'))
}

fn has_name(text: &str, name: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    text.match_indices(name)
        .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + name.len()..].chars().next()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(section: &str) -> Vec<(usize, String)> {
        let text = format!("# Title\n\n## Where is ...?\n\n{section}\n## Next\n\n1. `no/where`\n");
        let files = [(PATH, &text[..]), ("crates/a/src/b.rs", "//! x\nfn sum_inputs() {}\n"), ("docs/d.md", "x\n")];
        check(&Tree::of(&files)).into_iter().map(|one| (one.line, one.message)).collect()
    }

    #[test]
    fn true_answers_pass() {
        assert_eq!(found("1. Where is it? `sum_inputs` in\n   `crates/a/src/b.rs`; run `make test`.\n"), []);
        assert_eq!(found("1. In `crates/a/src`: `sum_inputs`.\n2. `crates/a/`, `-option`.\n"), []);
    }

    #[test]
    fn wrong_paths_and_names_are_found_with_their_lines() {
        let gone = "`crates/a/src/c.rs` does not exist".to_owned();
        assert_eq!(found("1. In\n   `crates/a/src/c.rs`.\n"), [(6, gone)]);
        assert_eq!(found("1. In `crates/a/sr`.\n").len(), 1);
        let other = "`sum` is in no file that the answer names".to_owned();
        assert_eq!(found("1. `sum` in `crates/a/src/b.rs`.\n"), [(5, other)]);
        // The files of another answer do not count.
        assert_eq!(found("1. `crates/a/src/b.rs`\n2. `sum_inputs` in `docs/d.md`, `x`\n").len(), 1);
        assert_eq!(found("1. Look around.\n"), [(5, "the answer names no file".to_owned())]);
    }

    #[test]
    fn the_section_must_exist() {
        assert_eq!(check(&Tree::of(&[(PATH, "# Title\n")])).len(), 1);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
