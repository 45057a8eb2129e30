//! Comments and prose have a bounded width: comments in Rust files 120 columns, Markdown 100.
//!
//! Input: the text of every Rust and Markdown file; output: each line that is too wide. Tables, code blocks and lines
//! without a place to break (a long link) are exempt in Markdown; string literals are not comments.

use super::Violation;
use crate::tree::Tree;

/// The width of the code: `max_width` in `rustfmt.toml`.
const COMMENT_WIDTH: usize = 120;

/// The width of documents.
const PROSE_WIDTH: usize = 100;

/// Written by `lydian-lab report` on the machine that was measured.
pub(super) const EXEMPT: [&str; 1] = ["docs/benchmarks/table.md"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, text) in tree.texts() {
        let (lines, width) = if file.path.ends_with(".rs") {
            (comments(text), COMMENT_WIDTH)
        } else if file.path.ends_with(".md") && !EXEMPT.contains(&file.path.as_str()) {
            (prose(text), PROSE_WIDTH)
        } else {
            continue;
        };
        for (number, line) in lines {
            let columns = line.chars().count();
            if columns > width {
                found.push(Violation::new(
                    &file.path,
                    number,
                    format!("{columns} columns, at most {width} are allowed"),
                ));
            }
        }
    }
    found
}

/// The lines of a Rust file that are comments as a whole, with their numbers.
pub(super) fn comments(text: &str) -> Vec<(usize, &str)> {
    let lines = (1..).zip(text.lines());
    lines.filter(|(_, line)| line.trim_start().starts_with("//")).collect()
}

/// The lines of a Markdown file that are prose and can be broken, with their numbers.
pub(super) fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let start = line.trim_start();
        if start.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        // A marker of a generated part stands on one line.
        let is_table = start.starts_with('|') || start.starts_with("<!--");
        let is_indented_code = line.starts_with("    ") && !start.starts_with(['*', '-']) && !is_list_number(start);
        let is_unbreakable = start.split_whitespace().filter(|word| !matches!(*word, "*" | "-" | ">")).count() <= 1;
        if !(is_code || is_table || is_indented_code || is_unbreakable) {
            lines.push((number, line));
        }
    }
    lines
}

/// `1. ` and the like.
fn is_list_number(start: &str) -> bool {
    start.split_once(". ").is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).iter().map(|violation| violation.line).collect()
    }

    #[test]
    fn comments_are_checked_at_their_limit() {
        let comment = |columns: usize| format!("    // {}\n", "é".repeat(columns - 7));
        assert_eq!(lines("crates/a/src/lib.rs", &comment(COMMENT_WIDTH)), [0; 0]);
        assert_eq!(lines("crates/a/src/lib.rs", &comment(COMMENT_WIDTH + 1)), [1]);
        let string = format!("const A: &str = \"{}\";\n", "a ".repeat(100));
        assert_eq!(lines("crates/a/src/lib.rs", &string), [0; 0], "code is formatted by rustfmt");
    }

    #[test]
    fn prose_is_checked_and_tables_code_and_links_are_not() {
        let words = |columns: usize| format!("ab {}", "c".repeat(columns - 3));
        assert_eq!(lines("docs/a.md", &words(PROSE_WIDTH)), [0; 0]);
        assert_eq!(lines("docs/a.md", &words(PROSE_WIDTH + 1)), [1]);
        let wide = words(PROSE_WIDTH + 1);
        let link = format!("* [a]({})\n", "c".repeat(200));
        let text = format!("| {wide} |\n```\n{wide}\n```\n{link}    {wide}\n1. {wide}\n");
        assert_eq!(lines("README.md", &text), [7]);
        assert_eq!(lines("a.txt", &wide), [0; 0]);
    }
}
