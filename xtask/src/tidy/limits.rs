//! Every limit is tested at its value and one beyond.
//!
//! Input: the constants of each crate's `limits.rs` that are visible outside that file; output: those that lack a test
//! of the same crate with `/// limit: NAME at` or one with `/// limit: NAME above` (`below` for a minimum). A test in
//! another crate names the limit `crate::NAME`. A line that names an unknown limit is also a violation. The oracle is
//! exempt: it runs in tests only, and its limits apply to a child process that we start.

use super::Violation;
use super::doc_lines::{Carried, Claim, carried};
use crate::tree::Tree;
use std::collections::BTreeSet;

/// A constant: its crate, its name and its location.
#[derive(Debug)]
struct Limit {
    crate_name: String,
    name: String,
    path: String,
    line: usize,
}

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let limits = limits(tree);
    let mut claimed = BTreeSet::new();
    let mut found = Vec::new();
    for one in carried(tree) {
        let Claim::Limit { name, beyond } = &one.claim else { continue };
        let (crate_name, name) = split(&one, name);
        if limits.iter().any(|limit| limit.crate_name == crate_name && limit.name == name) {
            claimed.insert((crate_name, name, *beyond));
        } else {
            let message = format!("`{name}` is no limit of the crate `{crate_name}`");
            found.push(Violation::new(&one.path, one.line, message));
        }
    }
    for limit in &limits {
        let beyond_word = if limit.name.contains("MIN") { "below" } else { "above" };
        for (beyond, word) in [(false, "at"), (true, beyond_word)] {
            if !claimed.contains(&(limit.crate_name.clone(), limit.name.clone(), beyond)) {
                let message = format!("no test carries `/// limit: {} {word}`", limit.name);
                found.push(Violation::new(&limit.path, limit.line, message));
            }
        }
    }
    found
}

/// Returns the tests that go beyond a limit, as `path::function`.
pub(crate) fn tests_of(crate_name: &str, name: &str, tree: &Tree) -> Vec<String> {
    let goes_beyond = |one: &Carried| match &one.claim {
        Claim::Limit { name: claimed, beyond: true } => split(one, claimed) == (crate_name.to_owned(), name.to_owned()),
        _ => false,
    };
    let mut tests: Vec<String> =
        carried(tree).iter().filter(|one| goes_beyond(one)).map(|one| format!("{}::{}", one.path, one.test)).collect();
    tests.sort();
    tests.dedup();
    tests
}

fn split(one: &Carried, name: &str) -> (String, String) {
    match name.split_once("::") {
        Some((crate_name, name)) => (crate_name.to_owned(), name.to_owned()),
        None => (one.crate_name.clone(), name.to_owned()),
    }
}

/// Crates whose limits are not checked; the reason is in the module documentation.
const LEFT_OUT: &[&str] = &["oracle"];

fn limits(tree: &Tree) -> Vec<Limit> {
    let mut limits = Vec::new();
    let is_bound =
        |path: &str, name: Option<&str>| path.ends_with("/limits.rs") && !LEFT_OUT.contains(&name.unwrap_or(""));
    for (file, rust) in tree.rust().filter(|(file, _)| file.is_source() && is_bound(&file.path, file.crate_name())) {
        for item in &rust.ast.items {
            if let syn::Item::Const(item) = item
                && !matches!(item.vis, syn::Visibility::Inherited)
            {
                let crate_name = file.crate_name().unwrap_or("").to_owned();
                let line = item.ident.span().start().line;
                limits.push(Limit { crate_name, name: item.ident.to_string(), path: file.path.clone(), line });
            }
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: (&str, &str) =
        ("crates/a/src/limits.rs", "//! x\npub const SIZE_MAX: u64 = 9;\nconst HELPER: u64 = 3;\n");

    fn found(tests: &str, path: &str) -> Vec<String> {
        check(&Tree::of(&[LIMITS, (path, tests)])).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn both_cases_are_needed() {
        let at = "/// limit: SIZE_MAX at\n#[test]\nfn at() {}\n";
        let above = "/// limit: SIZE_MAX above\n#[test]\nfn above() {}\n";
        assert!(found(&format!("{at}{above}"), "crates/a/tests/b.rs").is_empty());
        assert_eq!(found(at, "crates/a/tests/b.rs"), ["no test carries `/// limit: SIZE_MAX above`"]);
        assert_eq!(found("", "crates/a/tests/b.rs").len(), 2);
    }

    #[test]
    fn names_belong_to_their_crate() {
        let named = "/// limit: a::SIZE_MAX at\n/// limit: a::SIZE_MAX above\n#[test]\nfn at() {}\n";
        assert!(found(named, "crates/b/tests/b.rs").is_empty());
        let unnamed = "/// limit: SIZE_MAX at\n#[test]\nfn at() {}\n";
        assert_eq!(found(unnamed, "crates/b/tests/b.rs").len(), 3, "unknown in b, and two missing in a");
    }
}
