//! `unsafe` is used only in the crates `hash`, `curve` and `disk`.
//!
//! Input: the root file of every target; output: roots without `#![forbid(unsafe_code)]` (those three may have
//! `#![deny(unsafe_code)]` instead), and every use of the keyword in other crates, macros included.

use super::Violation;
use crate::metadata::Metadata;
use crate::tree::{Rust, Tree};

const UNSAFE_CRATES: &[&str] = &["hash", "curve", "disk"];

pub(super) fn check(tree: &Tree, metadata: &Metadata) -> Vec<Violation> {
    let mut found = Vec::new();
    let roots: Vec<&String> = metadata.members.iter().flat_map(|member| &member.roots).collect();
    for (file, rust) in tree.rust() {
        let may = file.crate_name().is_some_and(|name| UNSAFE_CRATES.contains(&name));
        if roots.contains(&&file.path) && file.is_source() {
            let ok = has_inner_attribute(rust, "forbid") || (may && has_inner_attribute(rust, "deny"));
            let wanted = if may { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
            if !ok {
                found.push(Violation::new(&file.path, 1, format!("the root of a crate carries {wanted}")));
            }
        }
        if !may {
            for token in rust.tokens.iter().filter(|token| token.text == "unsafe") {
                let message = format!("`unsafe` belongs in {} only", UNSAFE_CRATES.join(", "));
                found.push(Violation::new(&file.path, token.line, message));
            }
        }
    }
    found
}

fn has_inner_attribute(rust: &Rust, level: &str) -> bool {
    let is = |attribute: &syn::Attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        list.path.is_ident(level) && list.tokens.to_string().contains("unsafe_code")
    };
    rust.ast.attrs.iter().any(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    fn found(path: &str, text: &str) -> Vec<String> {
        let package = Package { roots: vec![path.into()], ..Package::default() };
        let metadata = Metadata { members: vec![package], ..Metadata::default() };
        check(&Tree::of(&[(path, text)]), &metadata).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn good_roots() {
        assert!(found("crates/script/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n").is_empty());
        assert!(found("crates/disk/src/lib.rs", "#![deny(unsafe_code)]\nunsafe fn a() {}\n").is_empty());
        assert!(found("crates/script/tests/a.rs", "fn a() {}\n").is_empty(), "tests inherit nothing and need nothing");
    }

    #[test]
    fn bad_roots_and_uses() {
        assert_eq!(found("crates/script/src/lib.rs", "#![deny(unsafe_code)]\n").len(), 1, "deny is not enough");
        assert_eq!(found("crates/disk/src/lib.rs", "//! x\n").len(), 1);
        let inside = "#![forbid(unsafe_code)]\nmacro_rules! m { () => { unsafe { f() } } }\n// unsafe\n";
        assert_eq!(found("crates/script/src/lib.rs", inside).len(), 1, "in a macro, but not in a comment");
    }
}
