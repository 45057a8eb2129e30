//! Every row of the comparison in `docs/page.md` names tests that exist, or says why there is nothing.
//!
//! Input: the rows of the table below that heading (what, where it is, tests), and the tracked files; output: each row
//! without a test whose second cell does not begin with "no", each file and each test that does not exist, and each
//! file without a test. A test is `file: name` in backquotes, further names of the same file follow; a file is relative
//! to the integration tests of the node, or to the root of the checkout.

use super::Violation;
use crate::tree::Tree;

const PATH: &str = "docs/page.md";
const HEADING: &str = "## Compared with other dashboards";
const TESTS: &str = "crates/node/tests/";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let Some(text) = tree.text(PATH) else { return vec![Violation::new(PATH, 1, "the file is missing")] };
    let section = (1..).zip(text.lines()).skip_while(|(_, line)| *line != HEADING).skip(1);
    let section = section.take_while(|(_, line)| !line.starts_with("## "));
    // The head, and the line below it.
    let rows: Vec<(usize, &str)> = section.filter(|(_, line)| line.starts_with('|')).skip(2).collect();
    if rows.is_empty() {
        return vec![Violation::new(PATH, 1, format!("no table below the heading \"{HEADING}\""))];
    }
    let found = rows.into_iter().flat_map(|(line, row)| faults(row, tree).into_iter().map(move |fault| (line, fault)));
    found.map(|(line, fault)| Violation::new(PATH, line, fault)).collect()
}

fn faults(row: &str, tree: &Tree) -> Vec<String> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [_, place, tests] = cells[..] else { return vec![format!("{} cells instead of 3", cells.len())] };
    let words: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
    if words.is_empty() {
        let is_reason = place.starts_with("no: ");
        return if is_reason { Vec::new() } else { vec!["no test, and no reason (\"no: ...\")".to_owned()] };
    }
    let (mut found, mut file, mut count) = (Vec::new(), "", 0);
    for word in words {
        if word.ends_with(".rs") {
            if count == 0 && !file.is_empty() {
                found.push(format!("`{file}` without a test"));
            }
            (file, count) = (word, 0);
            continue;
        }
        count += 1;
        let text = tree.text(&format!("{TESTS}{file}")).or_else(|| tree.text(file));
        match text {
            None => found.push(format!("`{file}` does not exist")),
            Some(text) if !has_test(text, word) => found.push(format!("`{word}` is no test in `{file}`")),
            Some(_) => {}
        }
    }
    if count == 0 {
        found.push(format!("`{file}` without a test"));
    }
    found
}

/// Whether a function with this name has the attribute of a test.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let head = format!("fn {name}()");
    lines.iter().enumerate().filter(|(_, line)| line.starts_with(&head)).any(|(at, _)| {
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with(['#', '/']));
        above.into_iter().any(|line| *line == "#[test]")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(rows: &str) -> Vec<String> {
        let text =
            format!("# Page\n\n{HEADING}\n\n| what | here | test |\n|---|---|---|\n{rows}\n## Next\n\n| a | b |\n");
        let tests =
            "//! x\n#[test]\n#[ignore = \"long\"]\nfn a_sync() {}\nfn helper() {}\n    #[test]\n    fn unit() {}\n";
        let tree = [(PATH, &text[..]), ("crates/node/tests/page/sync.rs", tests), ("crates/a/src/b.rs", tests)];
        check(&Tree::of(&tree)).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn tests_that_exist_and_reasons_pass() {
        let rows =
            "| A | Sync | `page/sync.rs`: `a_sync`, `unit`; `crates/a/src/b.rs`: `unit` |\n| B | no: a reason |  |";
        assert_eq!(found(rows), [""; 0]);
    }

    #[test]
    fn others_are_found() {
        for (row, fault) in [
            ("| A | Sync |  |", "no test, and no reason (\"no: ...\")"),
            ("| A | Sync | `page/sync.rs` |", "`page/sync.rs` without a test"),
            ("| A | Sync | `page/sync.rs`, `crates/a/src/b.rs`: `unit` |", "`page/sync.rs` without a test"),
            ("| A | Sync | `page/sync.rs`: `a_syn` |", "`a_syn` is no test in `page/sync.rs`"),
            ("| A | Sync | `page/sync.rs`: `helper` |", "`helper` is no test in `page/sync.rs`"),
            ("| A | Sync | `page/none.rs`: `a_sync` |", "`page/none.rs` does not exist"),
            ("| A | Sync | x | y |", "4 cells instead of 3"),
        ] {
            assert_eq!(found(row), [fault], "{row}");
        }
        assert_eq!(found("").len(), 1);
        assert_eq!(check(&Tree::of(&[])).len(), 1);
    }
}
