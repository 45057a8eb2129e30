//! Every package in the build, optional features included, has a licence that is compatible with ours.
//!
//! Input: the licence expression of each third-party package (SPDX: `OR`, `AND`, `WITH`, parentheses, and the old `/`
//! for `OR`); output: packages for which no alternative is in the list. An expression that does not parse counts as not
//! allowed.

use super::Violation;
use crate::metadata::Metadata;

const MANIFEST: &str = "Cargo.lock";
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MITNFA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

pub(super) fn check(metadata: &Metadata) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in metadata.foreign.iter().chain(&metadata.optional) {
        let licence = package.licence.as_deref().unwrap_or("");
        if allows(licence) != Some(true) {
            let message =
                format!("the licence of {} {} is not in the list: `{licence}`", package.name, package.version);
            found.push(Violation::new(MANIFEST, 1, message));
        }
    }
    found
}

/// Returns `None` if the expression does not parse.
pub(super) fn allows(expression: &str) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let allowed = either(&words, &mut at)?;
    (at == words.len()).then_some(allowed)
}

fn either(words: &[&str], at: &mut usize) -> Option<bool> {
    let mut allowed = both(words, at)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        allowed |= both(words, at)?;
    }
    Some(allowed)
}

fn both(words: &[&str], at: &mut usize) -> Option<bool> {
    let mut allowed = one(words, at)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        allowed &= one(words, at)?;
    }
    Some(allowed)
}

fn one(words: &[&str], at: &mut usize) -> Option<bool> {
    let word = *words.get(*at)?;
    *at += 1;
    if word == "(" {
        let allowed = either(words, at)?;
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return closed.then_some(allowed);
    }
    if matches!(word, ")" | "OR" | "AND" | "WITH") {
        return None;
    }
    if words.get(*at) == Some(&"WITH") {
        let full = format!("{word} WITH {}", words.get(*at + 1)?);
        *at += 2;
        return Some(ALLOWED.contains(&full.as_str()));
    }
    Some(ALLOWED.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Foreign;

    #[test]
    fn expressions() {
        for good in [
            "MIT",
            "MIT OR GPL-3.0",
            "MIT/Apache-2.0",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR X",
        ] {
            assert_eq!(allows(good), Some(true), "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND GPL-3.0", "(AGPL-3.0 OR SSPL-1.0)", "GPL-2.0 WITH Classpath-exception-2.0"]
        {
            assert_eq!(allows(bad), Some(false), "{bad}");
        }
        for broken in ["", "MIT OR", "(MIT", "MIT MIT", "AND MIT", "MIT)"] {
            assert_eq!(allows(broken), None, "{broken}");
        }
    }

    #[test]
    fn packages_without_a_licence_are_named() {
        let foreign = |licence: Option<&str>| Foreign {
            name: "x".into(),
            version: "1.0.0".into(),
            licence: licence.map(str::to_owned),
            ..Foreign::default()
        };
        let count = |licence| check(&Metadata { foreign: vec![foreign(licence)], ..Metadata::default() }).len();
        assert_eq!((count(Some("MIT")), count(Some("AGPL-3.0")), count(None)), (0, 1, 1));
        let optional = vec![foreign(Some("AGPL-3.0"))];
        assert_eq!(check(&Metadata { optional, ..Metadata::default() }).len(), 1);
    }
}
