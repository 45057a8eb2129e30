//! The list of components names all of them: the packages of Cargo.lock, and the code in them that is not Rust.
//!
//! Input: Cargo.lock, `cargo metadata`, the unpacked sources of packages; output: packages that the list lacks or
//! invents, code in C without an entry in the table of `crate::sbom`, and licences that are not in the list of
//! `licences`. Nothing is downloaded.

use super::{Violation, licences};
use crate::metadata::Metadata;
use crate::sbom::{Component, components};
use crate::tree::Tree;
use std::collections::BTreeSet;

const LOCK: &str = "Cargo.lock";

pub(super) fn check(tree: &Tree, metadata: &Metadata) -> Vec<Violation> {
    if metadata.foreign.is_empty() {
        return Vec::new();
    }
    let violation = |message: String| Violation::new(LOCK, 1, message);
    let components = match components(tree, metadata) {
        Ok(components) => components,
        Err(message) => return vec![violation(message)],
    };
    let lock = tree.text(LOCK).unwrap_or_default();
    let mut found: Vec<_> = differences(&components, lock, metadata).into_iter().map(violation).collect();
    for component in components.iter().filter(|component| component.is_linked) {
        let licence = component.licence.as_deref().unwrap_or("");
        if licences::allows(licence) != Some(true) {
            found.push(violation(format!("the licence of {} is not in the list: `{licence}`", component.reference)));
        }
    }
    found
}

/// Compares the packages of the list with the text of Cargo.lock, and with the packages that cargo builds.
fn differences(components: &[Component], lock: &str, metadata: &Metadata) -> Vec<String> {
    let listed: BTreeSet<&str> = components.iter().map(|component| component.reference.as_str()).collect();
    let mut locked = BTreeSet::new();
    for package in lock.split("[[package]]").skip(1).filter(|package| package.contains("\nsource = ")) {
        let field =
            |name: &str| package.split(&format!("\n{name} = \"")).nth(1).and_then(|rest| rest.split('"').next());
        let (Some(name), Some(version)) = (field("name"), field("version")) else { continue };
        locked.insert(format!("pkg:cargo/{name}@{version}"));
    }
    let mut found = Vec::new();
    for reference in &locked {
        if !listed.contains(reference.as_str()) {
            found.push(format!("{reference} is missing in the list of components"));
        }
    }
    for reference in listed.iter().filter(|reference| reference.starts_with("pkg:cargo/")) {
        if !locked.contains(*reference) {
            found.push(format!("{reference} is in the list of components and not in Cargo.lock"));
        }
    }
    for package in &metadata.foreign {
        if !listed.contains(format!("pkg:cargo/{}@{}", package.name, package.version).as_str()) {
            found.push(format!("{} {} is built and not in the list of components", package.name, package.version));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Foreign;

    const SHA1: &str =
        "[[package]]\nname = \"sha1\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\nchecksum = \"ab\"\n";

    fn component(reference: &str) -> Component {
        Component { reference: reference.to_owned(), ..Component::default() }
    }

    #[test]
    fn the_list_and_the_lock_must_be_equal() {
        let metadata = Metadata::default();
        let count = |components: &[Component], lock: &str| differences(components, lock, &metadata).len();
        let sha1 = component("pkg:cargo/sha1@1.0.0");
        assert_eq!(count(std::slice::from_ref(&sha1), SHA1), 0);
        assert_eq!(count(&[], SHA1), 1);
        assert_eq!(count(&[sha1, component("pkg:cargo/ring@1.0.0")], SHA1), 1);
        assert_eq!(count(&[component("pkg:generic/zstd@1.5.7")], ""), 0);
    }

    #[test]
    fn a_package_that_is_built_must_be_listed() {
        let foreign = Foreign { name: "sha1".into(), version: "1.0.0".into(), ..Foreign::default() };
        let metadata = Metadata { foreign: vec![foreign], ..Metadata::default() };
        assert_eq!(differences(&[], "", &metadata).len(), 1);
    }

    #[test]
    fn native_code_without_an_entry_is_a_violation() {
        let foreign = Foreign {
            name: "sha1".into(),
            version: "1.0.0".into(),
            licence: Some("MIT".into()),
            has_native_code: true,
            is_linked: true,
            ..Foreign::default()
        };
        let metadata = Metadata { foreign: vec![foreign], ..Metadata::default() };
        let found = check(&Tree::of(&[(LOCK, SHA1)]), &metadata);
        assert!(found[0].message.contains("sha1 1.0.0 has code that is not Rust"), "{found:?}");
    }
}
