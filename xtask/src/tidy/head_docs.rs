//! Every module starts with a `//!` comment.
//!
//! Input: the sources under `crates/*/src` and `xtask/src`; output: files whose first line is anything else. Whether
//! the text is useful (what the module does, input and output, invariants, cost, what it must never do) is for a
//! reviewer to judge.

use super::Violation;
use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let sources = tree.texts().filter(|(file, _)| file.is_source() && !file.is_test_file());
    sources.filter_map(|(file, text)| check_file(&file.path, text)).collect()
}

fn check_file(path: &str, text: &str) -> Option<Violation> {
    let words = text.lines().next()?.strip_prefix("//!").map(str::trim);
    match words {
        Some(words) if !words.is_empty() => None,
        _ => {
            Some(Violation::new(path, 1, "a module starts with `//!`: what it does, input -> output, invariants, cost"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_decides() {
        assert!(check_file("a.rs", "//! Reads headers.\nfn a() {}\n").is_none());
        for bad in ["fn a() {}\n", "//!\nfn a() {}\n", "#![forbid(unsafe_code)]\n//! x\n", "// x\n", "\n//! x\n"] {
            assert!(check_file("a.rs", bad).is_some(), "{bad:?}");
        }
    }

    #[test]
    fn only_sources_are_asked() {
        let tree = Tree::of(&[("crates/a/tests/b.rs", "fn b() {}"), ("crates/a/src/lib.rs", "fn a() {}")]);
        assert_eq!(check(&tree).len(), 1);
    }
}
