//! The modules of a crate do not use each other in a circle.
//!
//! Input: the paths `crate::..` and `super::..` in the sources of the crates in `CRATES`, in `use` items and elsewhere;
//! output: every use that is part of a circle. A module is a file or a folder directly below `src`; what the modules
//! inside a folder use of each other is not checked. A name that the root of the crate re-exports counts as a use of
//! the module that it comes from. Tests may use the whole crate. An exception that is no longer needed is also a
//! violation.

use super::Violation;
use crate::tree::{Rust, Token, TrackedFile, Tree};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The crates whose modules are checked. The others have circles.
#[rustfmt::skip]
const CRATES: &[&str] = &[
    "browser", "chain", "chains", "curve", "descriptor", "engine", "hash", "lab", "options", "oracle", "p2p", "primitives",
    "rpc", "serve", "sim", "stdx", "zmq",
];

/// A use that is left out of the graph. Without the exceptions of a crate, its modules form no circle.
#[derive(Clone, Copy, Debug)]
struct Exception {
    crate_name: &'static str,
    user: &'static str,
    used: &'static str,
    reason: &'static str,
}

/// There is none at present.
const EXCEPTIONS: &[Exception] = &[];

/// The place of this list, for violations about it.
const OWN_PATH: &str = "xtask/src/tidy/circles.rs";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    check_with(tree, CRATES, EXCEPTIONS)
}

fn check_with(tree: &Tree, crates: &[&str], exceptions: &[Exception]) -> Vec<Violation> {
    let mut found = Vec::new();
    for name in crates {
        let graph = Graph::of(tree, name);
        let exceptions: Vec<&Exception> = exceptions.iter().filter(|one| one.crate_name == *name).collect();
        let is_excepted = |user: &str, used: &str| exceptions.iter().any(|one| (one.user, one.used) == (user, used));
        for ((user, used), (path, line)) in &graph.uses {
            if is_excepted(user, used) {
                continue;
            }
            if let Some(way) = graph.way(used, user, &is_excepted) {
                let message = format!("a circle of modules: `{user}` -> `{}`", way.join("` -> `"));
                found.push(Violation::new(path, *line, message));
            }
        }
        for one in &exceptions {
            let exists = graph.uses.contains_key(&(one.user.to_owned(), one.used.to_owned()));
            if !exists || graph.way(one.used, one.user, &is_excepted).is_none() {
                let (user, used, reason) = (one.user, one.used, one.reason);
                let message = format!("{name}: `{user}` -> `{used}` ({reason}): the exception is no longer needed");
                found.push(Violation::new(OWN_PATH, 1, message));
            }
        }
    }
    found
}

/// The uses between the modules of one crate: user and used, with the file and line of the first one.
#[derive(Debug)]
struct Graph {
    uses: BTreeMap<(String, String), (String, usize)>,
}

impl Graph {
    fn of(tree: &Tree, crate_name: &str) -> Graph {
        let source = format!("crates/{crate_name}/src/");
        let files: Vec<(Vec<String>, &TrackedFile, &Rust)> = tree
            .rust()
            .filter(|(file, _)| !file.is_test_file())
            .filter_map(|(file, rust)| Some((module_path(file.path.strip_prefix(&source)?), file, rust)))
            .collect();
        let modules: BTreeSet<&str> = files.iter().filter_map(|(path, ..)| path.first()).map(String::as_str).collect();
        let roots = files.iter().filter(|(path, ..)| path.is_empty());
        let reexported: BTreeMap<String, String> = roots.flat_map(|(_, _, rust)| reexports(rust)).collect();
        let tests: Vec<Vec<String>> = files.iter().flat_map(|(path, _, rust)| test_modules(path, rust)).collect();
        let mut uses = BTreeMap::new();
        for (path, file, rust) in &files {
            let Some(user) = path.first() else { continue };
            if tests.iter().any(|test| path.starts_with(test)) {
                continue;
            }
            for (name, line) in root_names(&rust.tokens, path) {
                let used = reexported.get(&name).unwrap_or(&name);
                if modules.contains(used.as_str()) && used != user && !rust.is_test_line(line) {
                    uses.entry((user.clone(), used.clone())).or_insert_with(|| (file.path.clone(), line));
                }
            }
        }
        Graph { uses }
    }

    /// The shortest way along uses, both ends included; `None` if there is none.
    fn way(&self, from: &str, to: &str, is_excepted: &dyn Fn(&str, &str) -> bool) -> Option<Vec<String>> {
        let mut ways = VecDeque::from([vec![from.to_owned()]]);
        let mut seen = BTreeSet::from([from.to_owned()]);
        while let Some(way) = ways.pop_front() {
            let last = way.last()?;
            if last == to {
                return Some(way);
            }
            for (user, used) in self.uses.keys().filter(|(user, _)| user == last) {
                if !is_excepted(user, used) && seen.insert(used.clone()) {
                    ways.push_back([way.as_slice(), std::slice::from_ref(used)].concat());
                }
            }
        }
        None
    }
}

/// The path of the module in a file, given relative to `src`; empty for the root of the crate.
fn module_path(file: &str) -> Vec<String> {
    let stem = file.strip_suffix(".rs").unwrap_or(file);
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if matches!(stem, "lib" | "main") { Vec::new() } else { stem.split('/').map(str::to_owned).collect() }
}

/// The modules of a file that exist in tests only and have a file of their own.
fn test_modules(path: &[String], rust: &Rust) -> Vec<Vec<String>> {
    let modules = rust.ast.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() => Some(&module.ident),
        _ => None,
    });
    let tests = modules.filter(|ident| rust.is_test_line(ident.span().start().line));
    tests.map(|ident| [path, &[ident.to_string()]].concat()).collect()
}

/// The names that the root of a crate takes from its modules, each with its module.
fn reexports(rust: &Rust) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for item in &rust.ast.items {
        let syn::Item::Use(item) = item else { continue };
        let syn::UseTree::Path(first) = &item.tree else { continue };
        match &*first.tree {
            syn::UseTree::Path(second) if first.ident == "crate" || first.ident == "self" => {
                leaves(&second.tree, &second.ident.to_string(), &mut names);
            }
            tree => leaves(tree, &first.ident.to_string(), &mut names),
        }
    }
    names
}

fn leaves(tree: &syn::UseTree, module: &str, names: &mut Vec<(String, String)>) {
    match tree {
        syn::UseTree::Path(path) => leaves(&path.tree, module, names),
        syn::UseTree::Name(name) => names.push((name.ident.to_string(), module.to_owned())),
        syn::UseTree::Rename(rename) => names.push((rename.rename.to_string(), module.to_owned())),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, module, names)),
        syn::UseTree::Glob(_) => {}
    }
}

/// The names that a file takes from the root of its crate, with their lines: by `crate::`, or by as many `super::` as
/// its module is deep.
fn root_names(tokens: &[Token], path: &[String]) -> Vec<(String, usize)> {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let leads_on = |at: usize| text(at + 1) == ":" && text(at + 2) == ":";
    let mut names = Vec::new();
    let (mut depth, mut inline): (usize, Vec<usize>) = (0, Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match text(at) {
            "{" => {
                if at >= 2 && text(at - 2) == "mod" {
                    inline.push(depth);
                }
                depth += 1;
            }
            "}" => {
                depth = depth.saturating_sub(1);
                if inline.last() == Some(&depth) {
                    inline.pop();
                }
            }
            "crate" if leads_on(at) => names.extend(names_at(tokens, at + 3)),
            "super" if leads_on(at) => {
                let mut left = path.len() + inline.len();
                while text(at) == "super" && leads_on(at) {
                    left = left.saturating_sub(1);
                    at += 3;
                }
                if left == 0 {
                    names.extend(names_at(tokens, at));
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    names
}

/// The first names of the path at a token, or of each path in the group there.
fn names_at(tokens: &[Token], at: usize) -> Vec<(String, usize)> {
    let Some(first) = tokens.get(at) else { return Vec::new() };
    if first.text != "{" {
        return vec![(first.text.clone(), first.line)];
    }
    let (mut names, mut depth) = (Vec::new(), 0);
    for pair in tokens[at..].windows(2) {
        match pair[0].text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(pair[0].text.as_str(), "{" | ",") {
            names.push((pair[1].text.clone(), pair[1].line));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCEPTED: Exception = Exception { crate_name: "a", user: "low", used: "high", reason: "a test" };

    fn found(files: &[(&str, &str)], exceptions: &[Exception]) -> Vec<String> {
        let paths: Vec<String> = files.iter().map(|(path, _)| format!("crates/a/src/{path}")).collect();
        let files: Vec<(&str, &str)> =
            paths.iter().zip(files).map(|(path, (_, text))| (path.as_str(), *text)).collect();
        check_with(&Tree::of(&files), &["a"], exceptions).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn one_direction_is_no_circle() {
        let files = [
            ("lib.rs", "mod high;\nmod low;\nmod middle;\npub use high::High;\n"),
            ("high/mod.rs", "use crate::low::Low;\nuse crate::middle::{self, Middle};\nuse super::low;\nmod part;\n"),
            ("high/part.rs", "use super::High;\nuse crate::high::High as Same;\n"),
            ("middle.rs", "use crate::low::Low;\nuse crate::limits_of_another_crate;\n"),
            ("low.rs", "// use crate::high::High;\nuse std::fmt;\nuse other::high::High;\n"),
        ];
        assert!(found(&files, &[]).is_empty());
    }

    #[test]
    fn every_use_in_a_circle_is_found() {
        let files = [
            ("low.rs", "use crate::high::High;\n"),
            ("middle/mod.rs", ""),
            ("middle/part.rs", "fn f() { crate::low::g() }\n"),
            ("high.rs", "use super::middle::Middle;\nuse super::beside;\n"),
            ("beside.rs", ""),
        ];
        let expected = [
            "a circle of modules: `high` -> `middle` -> `low` -> `high`",
            "a circle of modules: `low` -> `high` -> `middle` -> `low`",
            "a circle of modules: `middle` -> `low` -> `high` -> `middle`",
        ];
        assert_eq!(found(&files, &[]), expected);
    }

    /// Each of these uses `high` from `low`.
    #[test]
    fn every_form_of_a_path_counts() {
        for (path, text) in [
            ("low.rs", "use crate::high;\n"),
            ("low.rs", "use crate::{beside::{A, B}, high::C};\n"),
            ("low.rs", "use super::high::C;\n"),
            ("low.rs", "use crate::High;\n"),
            ("low.rs", "use crate::Tall;\n"),
            ("low.rs", "fn f() -> super::high::C { todo() }\n"),
            ("low.rs", "fn f() { vec![crate::high::C]; }\n"),
            ("low.rs", "mod inner { use super::super::high; }\n"),
            ("low/mod.rs", "use super::high;\n"),
            ("low/part.rs", "use super::super::high;\n"),
            ("low/part/small.rs", "mod inner {}\nuse super::super::super::{beside, high};\n"),
        ] {
            let root = "pub use high::{High, parts::Short as Tall};\n";
            let files = [("lib.rs", root), ("high.rs", "use crate::low;\n"), ("beside.rs", ""), (path, text)];
            assert_eq!(found(&files, &[]).len(), 2, "{text}");
        }
    }

    /// None of these uses `high` from `low`, though some have a module of that name.
    #[test]
    fn other_paths_do_not_count() {
        for (path, text) in [
            ("low.rs", "mod inner { use super::high; }\n"),
            ("low/part.rs", "use super::high;\n"),
            ("low/part.rs", "pub(in crate::low) fn high() {}\npub(crate) fn f() { self::high() }\n"),
            ("low.rs", "#[cfg(test)]\nmod tests { use crate::high; }\n"),
            ("low/tests.rs", "use crate::high;\n"),
            ("low.rs", "/// See [`crate::high`].\nconst A: &str = \"crate::high\";\n"),
        ] {
            let files = [("lib.rs", ""), ("high.rs", "use crate::low;\n"), (path, text)];
            assert_eq!(found(&files, &[]), [""; 0], "{text}");
        }
        let models = [
            ("high.rs", "use crate::low;\n"),
            ("low.rs", "#[cfg(test)]\nmod model;\n"),
            ("low/model.rs", "use crate::high;\n"),
        ];
        assert_eq!(found(&models, &[]), [""; 0], "a module of tests in a file of its own");
    }

    #[test]
    fn an_exception_is_for_one_use_and_must_be_needed() {
        let circle = [("low.rs", "use crate::high;\n"), ("high.rs", "use crate::low;\n")];
        assert!(found(&circle, &[EXCEPTED]).is_empty());
        let wrong_crate = Exception { crate_name: "b", ..EXCEPTED };
        assert_eq!(found(&circle, &[wrong_crate]).len(), 2);
        let unneeded = ["a: `low` -> `high` (a test): the exception is no longer needed"];
        assert_eq!(found(&[("low.rs", "use crate::high;\n"), ("high.rs", "")], &[EXCEPTED]), unneeded, "no circle");
        assert_eq!(found(&[("low.rs", ""), ("high.rs", "use crate::low;\n")], &[EXCEPTED]), unneeded, "no use");
        let another = [circle[0], circle[1], ("beside.rs", "use crate::far;\n"), ("far.rs", "use crate::beside;\n")];
        assert_eq!(found(&another, &[EXCEPTED]).len(), 2, "a new circle is found");
    }

    #[test]
    fn the_list_is_about_checked_crates() {
        for one in EXCEPTIONS {
            assert!(CRATES.contains(&one.crate_name) && !one.reason.is_empty(), "{one:?}");
        }
    }
}
