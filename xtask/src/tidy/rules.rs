//! Every consensus rule has a case that passes and one that fails.
//!
//! Input: the rules, which are the variants of every enum whose doc comment has the line `/// tidy: rules`; output:
//! each rule that lacks a test with `/// rule: NAME pass` or one with `/// rule: NAME fail`, and lines that name an
//! unknown rule. NAME is the variant's name.

use super::Violation;
use super::doc_lines::{Carried, Claim, carried};
use crate::tree::Tree;
use std::collections::BTreeSet;

const MARK: &str = "tidy: rules";

/// A rule and where it is defined.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) line: usize,
}

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    uncovered(&rules(tree), &carried(tree))
}

/// Returns the rules that lack one of their two cases, and the claims that name an unknown rule.
pub(crate) fn uncovered(rules: &[Rule], carried: &[Carried]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut claimed = BTreeSet::new();
    for one in carried {
        let Claim::Rule { name, passes } = &one.claim else { continue };
        claimed.insert((name.as_str(), *passes));
        if !rules.iter().any(|rule| rule.name == *name) {
            found.push(Violation::new(&one.path, one.line, format!("`{name}` is no rule")));
        }
    }
    for rule in rules {
        for (passes, word) in [(true, "pass"), (false, "fail")] {
            if !claimed.contains(&(rule.name.as_str(), passes)) {
                let message = format!("no test carries `/// rule: {} {word}`", rule.name);
                found.push(Violation::new(&rule.path, rule.line, message));
            }
        }
    }
    found
}

fn rules(tree: &Tree) -> Vec<Rule> {
    let mut rules = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| file.is_source()) {
        for item in &rust.ast.items {
            let syn::Item::Enum(item) = item else { continue };
            if item.attrs.iter().any(is_mark) {
                rules.extend(item.variants.iter().map(|variant| Rule {
                    name: variant.ident.to_string(),
                    path: file.path.clone(),
                    line: variant.ident.span().start().line,
                }));
            }
        }
    }
    rules
}

fn is_mark(attribute: &syn::Attribute) -> bool {
    let syn::Meta::NameValue(pair) = &attribute.meta else { return false };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return false };
    pair.path.is_ident("doc") && text.value().trim() == MARK
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENUM: (&str, &str) =
        ("crates/consensus/src/error.rs", "//! x\n/// Why.\n/// tidy: rules\npub enum Why {\n    BadPrevBlock,\n}\n");

    fn found(tests: &str) -> Vec<String> {
        check(&Tree::of(&[ENUM, ("crates/consensus/tests/a.rs", tests)])).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn both_cases_are_needed() {
        let both = "/// rule: BadPrevBlock pass\n/// rule: BadPrevBlock fail\n#[test]\nfn a() {}\n";
        assert!(found(both).is_empty());
        let one = "/// rule: BadPrevBlock pass\n#[test]\nfn a() {}\n";
        assert_eq!(found(one), ["no test carries `/// rule: BadPrevBlock fail`"]);
    }

    #[test]
    fn an_unknown_rule_is_named() {
        let both = "/// rule: BadPrevBlock, Other pass\n/// rule: BadPrevBlock fail\n#[test]\nfn a() {}\n";
        assert_eq!(found(both), ["`Other` is no rule"]);
    }

    #[test]
    fn enums_without_the_mark_hold_no_rules() {
        assert!(rules(&Tree::of(&[("crates/a/src/lib.rs", "/// Why.\nenum Why { A }\n")])).is_empty());
    }
}
