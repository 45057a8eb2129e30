//! Doc comments have no examples in Rust.
//!
//! Input: the text of Rust files; output: every fence in a doc comment that rustdoc would compile as a test. `make
//! test` runs no such tests: there are none, and looking for them in every library takes a minute. An example is a
//! test; other text in a fence says what it is, as in "```text".

use super::Violation;
use crate::tree::Tree;

/// What rustdoc takes for Rust, besides a fence without words.
const RUST: &[&str] = &["rust", "should_panic", "no_run", "ignore", "compile_fail", "edition"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, text) in tree.texts().filter(|(file, _)| file.path.ends_with(".rs")) {
        let mut is_inside = false;
        for (index, line) in text.lines().enumerate() {
            let Some(words) = doc_text(line) else {
                is_inside = false;
                continue;
            };
            let Some(language) = words.trim_start().strip_prefix("```") else { continue };
            if !is_inside && is_rust(language) {
                let message = "an example that no test compiles: write a test, or name the language (```text)";
                found.push(Violation::new(&file.path, index + 1, message));
            }
            is_inside = !is_inside;
        }
    }
    found
}

fn doc_text(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))
}

fn is_rust(language: &str) -> bool {
    let first = language.trim().split([',', ' ']).next().unwrap_or("");
    first.is_empty() || RUST.iter().any(|word| first.starts_with(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        check(&Tree::of(&[("crates/a/src/lib.rs", text)])).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn examples_in_rust_are_found() {
        assert_eq!(lines("//! ```\n//! let a = 1;\n//! ```\n"), [1]);
        assert_eq!(lines("/// Text.\n///\n/// ```no_run\n/// f();\n/// ```\nfn f() {}\n"), [3]);
        assert_eq!(lines("/// ```text\n/// a\n/// ```\n/// ```rust,ignore\n/// ```\nfn f() {}\n"), [4]);
        assert_eq!(lines("/// ```text\nfn f() {}\n/// ```\nfn g() {}\n"), [3], "a fence ends with its comment");
    }

    #[test]
    fn other_fences_are_none() {
        assert_eq!(lines("/// ```text\n/// a\n/// ```\nfn f() {}\n// ```\n"), [0; 0]);
        assert_eq!(lines("/// ```json\n/// {}\n/// ```\nfn f() {}\n"), [0; 0]);
    }
}
