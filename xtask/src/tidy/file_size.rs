//! A source file has at most 800 lines, not counting its tests.
//!
//! Input: the sources; output: files above the limit, with their line count. Lines under `#[cfg(test)]` do not count,
//! and test files are not checked.

use super::Violation;
use crate::tree::Tree;

/// The house rule on file size (CONTRIBUTING.md).
const LINES_MAX: usize = 800;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| !file.is_test_file()) {
        let lines = file.text.as_deref().map_or(0, |text| text.lines().count());
        let lines = lines.saturating_sub(rust.test_line_count());
        if lines > LINES_MAX {
            found.push(Violation::new(
                &file.path,
                1,
                format!("{lines} lines without tests, at most {LINES_MAX}: split it"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(lines: usize, test_lines: usize) -> String {
        let mut text = "const _: () = ();\n".repeat(lines);
        if test_lines > 0 {
            text += "#[cfg(test)]\nmod tests {\n";
            text += &"const _: () = ();\n".repeat(test_lines - 3);
            text += "}\n";
        }
        text
    }

    #[test]
    fn at_the_ceiling_and_one_above() {
        let path = "crates/a/src/lib.rs";
        assert!(check(&Tree::of(&[(path, &file(LINES_MAX, 0))])).is_empty());
        assert!(check(&Tree::of(&[(path, &file(LINES_MAX, 500))])).is_empty());
        assert_eq!(check(&Tree::of(&[(path, &file(LINES_MAX + 1, 0))])).len(), 1);
        assert!(check(&Tree::of(&[("crates/a/tests/b.rs", &file(LINES_MAX + 1, 0))])).is_empty());
    }
}
