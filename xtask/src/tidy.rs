//! The house rules that a program can check, in one table.
//!
//! Input: the checkout and Cargo's metadata; output: every violation as `file:line: message`, grouped by check, and the
//! count. A check is a function from these two to violations, in its own module with tests on good and bad samples.
//! Invariant: a check reports every violation it finds (it does not stop at the first) and never panics on a file that
//! does not parse (the check `parse` reports that file).

use crate::metadata::Metadata;
use crate::tree::Tree;

mod answers;
mod attributes;
mod banned;
mod checklist;
mod circles;
mod commits;
mod comparison;
mod crate_roots;
mod dead_files;
mod dependencies;
mod doc_examples;
mod doc_lines;
mod figures;
mod file_size;
mod functions;
mod head_docs;
mod layers;
mod leftovers;
mod licences;
mod limits;
mod phrases;
mod places;
mod rules;
mod sbom;
mod width;

pub(crate) use checklist::{Row, rows as checklist_rows, tests_of as checklist_tests};
pub(crate) use limits::tests_of as limit_tests;

/// One violation of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Violation {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Violation {
        Violation { path: path.to_owned(), line, message: message.into() }
    }
}

#[derive(Clone, Copy)]
struct Check {
    name: &'static str,
    run: fn(&Tree, &Metadata) -> Vec<Violation>,
}

const CHECKS: &[Check] = &[
    Check { name: "parse", run: unparsed },
    Check { name: "layers", run: layers::check },
    Check { name: "circles", run: |tree, _| circles::check(tree) },
    Check { name: "crate roots", run: crate_roots::check },
    Check { name: "head docs", run: |tree, _| head_docs::check(tree) },
    Check { name: "file size", run: |tree, _| file_size::check(tree) },
    Check { name: "function size", run: |tree, _| functions::check(tree) },
    Check { name: "banned", run: |tree, _| banned::check(tree) },
    Check { name: "attributes", run: |tree, _| attributes::check(tree) },
    Check { name: "leftovers", run: |tree, _| leftovers::check(tree) },
    Check { name: "doc examples", run: |tree, _| doc_examples::check(tree) },
    Check { name: "doc lines", run: |tree, _| doc_lines::check(tree) },
    Check { name: "limits", run: |tree, _| limits::check(tree) },
    Check { name: "rules", run: |tree, _| rules::check(tree) },
    Check { name: "checklist", run: |tree, _| checklist::check(tree) },
    Check { name: "dead files", run: dead_files::check },
    Check { name: "figures", run: |tree, _| figures::check(tree) },
    Check { name: "places", run: |tree, _| places::check(tree) },
    Check { name: "answers", run: |tree, _| answers::check(tree) },
    Check { name: "comparison", run: |tree, _| comparison::check(tree) },
    Check { name: "dependencies", run: dependencies::check },
    Check { name: "licences", run: |_, metadata| licences::check(metadata) },
    Check { name: "sbom", run: sbom::check },
    Check { name: "width", run: |tree, _| width::check(tree) },
    Check { name: "phrases", run: |tree, _| phrases::check(tree) },
    Check { name: "commits", run: |_, metadata| commits::check(metadata) },
];

/// Runs every check and prints the violations. Returns true if there are none.
pub(crate) fn run(tree: &Tree, metadata: &Metadata) -> bool {
    let mut total = 0;
    for check in CHECKS {
        let violations = (check.run)(tree, metadata);
        for violation in &violations {
            println!("{}:{}: {} [{}]", violation.path, violation.line, violation.message, check.name);
        }
        total += violations.len();
    }
    println!("tidy: {} checks over {} files, {total} violations", CHECKS.len(), tree.files.len());
    total == 0
}

fn unparsed(tree: &Tree, _: &Metadata) -> Vec<Violation> {
    let message = |file: &crate::tree::TrackedFile| match &file.rust {
        Some(Err(error)) => Some(Violation::new(&file.path, 1, format!("does not parse: {error}"))),
        _ => None,
    };
    tree.files.iter().filter_map(message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_parse_is_a_violation_and_stops_no_other_check() {
        let tree = Tree::of(&[("crates/a/src/lib.rs", "//! x\nfn broken( {")]);
        assert_eq!(unparsed(&tree, &Metadata::default()).len(), 1);
        assert!(!run(&tree, &Metadata::default()));
    }
}
