//! Banned calls and types, each with its replacement.
//!
//! Input: the tokens of the sources (comments and strings are not searched); output: each use of a banned pattern, with
//! its replacement. Patterns that clippy can find (clock, files, unbounded channels, printing, unwrapping) are in
//! `clippy.toml` and the lints; this table has the rest.

use super::Violation;
use crate::layers::layer;
use crate::tree::{Rust, Token, TrackedFile, Tree, flatten};
use proc_macro2::TokenStream;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Everywhere, tests included.
    Everywhere,
    /// Sources of all crates, tests excluded.
    Sources,
    /// Sources of library crates (those below the layer of the binaries), tests excluded.
    Libraries,
    /// All files of crates below the layer of the binaries, tests included.
    BelowNode,
}

#[derive(Debug)]
struct Ban {
    pattern: &'static str,
    instead: &'static str,
    place: Place,
}

#[rustfmt::skip]
const BANS: &[Ban] = &[
    Ban { pattern: "anyhow", instead: "an error enum of the crate: callers must be able to match", place: Place::BelowNode },
    Ban { pattern: "Box<dyn Error", instead: "an error enum of the crate: callers must be able to match", place: Place::Libraries },
    Ban { pattern: "Box<dyn std::error::Error", instead: "an error enum of the crate: callers must be able to match", place: Place::Libraries },
    Ban { pattern: "Box<dyn core::error::Error", instead: "an error enum of the crate: callers must be able to match", place: Place::Libraries },
    Ban { pattern: ".downcast_ref", instead: "match on the variants of the error", place: Place::Sources },
    Ban { pattern: ".downcast::", instead: "match on the variants of the error", place: Place::Sources },
    Ban { pattern: "mem::transmute", instead: "from_le_bytes, or a conversion that names both types", place: Place::Everywhere },
    Ban { pattern: "static mut", instead: "OnceLock or an atomic", place: Place::Everywhere },
    Ban { pattern: "thread::sleep", instead: "waiting for the event itself, with a timeout", place: Place::Libraries },
    Ban { pattern: "process::exit", instead: "an ExitCode returned from main", place: Place::Sources },
    Ban { pattern: "process::abort", instead: "an error, or an assertion that says what was violated", place: Place::Sources },
    Ban { pattern: "env::var", instead: "a setting handed in by the binary", place: Place::Libraries },
    Ban { pattern: "env::set_var", instead: "a setting handed in by the caller", place: Place::Everywhere },
    Ban { pattern: "std::fs::OpenOptions", instead: "the crate `disk`, the only opener of files", place: Place::Libraries },
    Ban { pattern: "fs::read_dir", instead: "the crate `disk`, the only opener of files", place: Place::Libraries },
    Ban { pattern: ".write_whole", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: ".append_file", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: ".fixed_file", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: ".remove_file", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: ".truncate_file", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: "fs::remove_file", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: "fs::remove_dir_all", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: "fs::rename", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: "fs::copy", instead: OWN_DIR, place: Place::Sources },
    Ban { pattern: ".set_len", instead: OWN_DIR, place: Place::Sources },
];

/// Only this type changes files that exist (docs/formats/files.md).
const OWN_DIR: &str = "`lydian_disk::OwnDir`, which changes no file but ours";

/// `disk` is the crate that opens files. `oracle` and `browser` are not part of any node: they run Bitcoin Core and
/// Chromium as processes and find them through the environment.
const EXEMPT: &[(&str, &str)] = &[
    ("disk", "std::fs::OpenOptions"),
    ("disk", "fs::read_dir"),
    ("browser", "env::var"),
    ("browser", "thread::sleep"),
    ("oracle", "env::var"),
    ("oracle", "thread::sleep"),
    ("oracle", "fs::read_dir"),
    ("oracle", "std::fs::OpenOptions"),
];

/// Crates that change files without `OwnDir`.
const CHANGES_FILES: &[&str] = &["browser", "chains", "disk", "lab", "oracle", "report"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let patterns: Vec<(&Ban, Vec<String>)> = BANS.iter().map(|ban| (ban, tokens_of(ban.pattern))).collect();
    let mut found = Vec::new();
    for (file, rust) in tree.rust() {
        for (ban, pattern) in &patterns {
            for line in matches(&rust.tokens, pattern) {
                if applies(ban, file, rust, line) {
                    let message = format!("`{}`: write {} instead", ban.pattern, ban.instead);
                    found.push(Violation::new(&file.path, line, message));
                }
            }
        }
    }
    found
}

fn applies(ban: &Ban, file: &TrackedFile, rust: &Rust, line: usize) -> bool {
    let name = file.crate_name().unwrap_or("");
    let is_own_way = ban.instead == OWN_DIR && CHANGES_FILES.contains(&name);
    if is_own_way || EXEMPT.contains(&(name, ban.pattern)) {
        return false;
    }
    let is_test = file.is_test_file() || rust.is_test_line(line);
    let is_binary = name == "xtask" || name == "fuzz" || layer(name).is_some_and(|layer| layer.level >= 11);
    match ban.place {
        Place::Everywhere => true,
        Place::Sources => file.is_source() && !is_test,
        Place::Libraries => file.is_source() && !is_test && !is_binary,
        Place::BelowNode => !is_binary,
    }
}

fn tokens_of(pattern: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    flatten(TokenStream::from_str(pattern).unwrap_or_default(), &mut tokens);
    tokens.into_iter().map(|token| token.text).collect()
}

/// Returns the lines on which the pattern starts.
fn matches(tokens: &[Token], pattern: &[String]) -> Vec<usize> {
    if pattern.is_empty() {
        return Vec::new();
    }
    let is = |window: &&[Token]| window.iter().zip(pattern).all(|(token, wanted)| token.text == *wanted);
    tokens.windows(pattern.len()).filter(is).map(|window| window[0].line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn every_pattern_is_found_where_it_is_banned() {
        for ban in BANS {
            assert!(!tokens_of(ban.pattern).is_empty(), "{} is not a pattern", ban.pattern);
            let closing = ">".repeat(ban.pattern.matches('<').count());
            let text = format!("macro_rules! m {{ () => {{ a {} b {closing} }} }}\n", ban.pattern);
            assert_eq!(found("crates/script/src/lib.rs", &text), 1, "{}", ban.pattern);
        }
    }

    /// A past bug: each component of the node removed and truncated files on its own, and one of them mistook the undo
    /// files of Bitcoin Core for its own.
    #[test]
    fn files_are_changed_in_one_place() {
        let text = "fn f(disk: &dyn Disk) { disk.remove_file(path); std::fs::remove_file(path); self.disk.write_whole(path, b); }\n";
        for (path, count) in [
            ("crates/chain/src/lib.rs", 3),
            ("crates/node/src/main.rs", 3),
            ("crates/disk/src/own.rs", 0),
            ("crates/lab/src/files.rs", 0),
            ("crates/chain/tests/a.rs", 0),
        ] {
            assert_eq!(found(path, text), count, "{path}");
        }
    }

    #[test]
    fn comments_and_strings_do_not_count() {
        assert_eq!(found("crates/script/src/lib.rs", "// anyhow\nconst A: &str = \"static mut\";\n"), 0);
    }

    #[test]
    fn places_are_distinguished() {
        let boxed = "fn main() -> Result<(), Box<dyn std::error::Error>> { Ok(()) }\n";
        assert_eq!(found("crates/script/src/lib.rs", boxed), 1);
        assert_eq!(found("crates/script/tests/a.rs", boxed), 0);
        assert_eq!(found("crates/node/src/main.rs", boxed), 0);
        assert_eq!(found("crates/script/src/lib.rs", &format!("#[cfg(test)]\nmod tests {{\n{boxed}}}\n")), 0);
        assert_eq!(found("crates/disk/src/lib.rs", "use std::fs::OpenOptions;\n"), 0);
        assert_eq!(found("crates/chain/src/lib.rs", "use std::fs::OpenOptions;\n"), 1);
    }
}
