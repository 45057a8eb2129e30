//! Every disabled lint and every ignored test states its reason.
//!
//! Input: the attributes of every Rust file; output: each `allow` or `expect` without `reason = ".."` or a comment on
//! the same line or the line above, and each ignored test without a reason.

use super::Violation;
use crate::tree::Tree;
use syn::visit::Visit;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, rust) in tree.rust() {
        let Some(text) = &file.text else { continue };
        let lines: Vec<&str> = text.lines().collect();
        let mut visitor = Attributes { path: &file.path, lines: &lines, found: Vec::new() };
        visitor.visit_file(&rust.ast);
        found.extend(visitor.found);
    }
    found
}

struct Attributes<'a> {
    path: &'a str,
    lines: &'a [&'a str],
    found: Vec<Violation>,
}

impl<'ast> Visit<'ast> for Attributes<'_> {
    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let line = attribute.pound_token.spans[0].start().line;
        let message = match &attribute.meta {
            syn::Meta::List(list) if list.path.is_ident("allow") || list.path.is_ident("expect") => {
                let tokens = list.tokens.to_string();
                // Other checks cover where `unsafe` is allowed and that each use states its reason.
                let given = tokens.contains("reason =") || tokens == "unsafe_code";
                (!given && !self.has_comment(line)).then_some("a disabled lint states its `reason = \"..\"`")
            }
            syn::Meta::Path(path) if path.is_ident("ignore") => {
                Some("an ignored test says why and how it is run: #[ignore = \"..\"]")
            }
            _ => None,
        };
        if let Some(message) = message {
            self.found.push(Violation::new(self.path, line, message));
        }
    }
}

impl Attributes<'_> {
    fn has_comment(&self, line: usize) -> bool {
        let at = |number: usize| number.checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or("");
        let above = at(line - 1).trim_start();
        at(line).contains("// ") || (above.starts_with("// ") && line > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> usize {
        check(&Tree::of(&[("crates/a/src/lib.rs", text)])).len()
    }

    #[test]
    fn with_a_reason() {
        assert_eq!(found("#![allow(dead_code, reason = \"stamped per kernel\")]\n"), 0);
        assert_eq!(found("#[allow(dead_code)] // used on aarch64\nfn a() {}\n"), 0);
        assert_eq!(found("// Used on aarch64.\n#[allow(dead_code)]\nfn a() {}\n"), 0);
        assert_eq!(found("#[ignore = \"an hour: make fuzz\"]\n#[test]\nfn a() {}\n"), 0);
        assert_eq!(found("#[deny(dead_code)]\nfn a() {}\n"), 0);
        assert_eq!(found("#![allow(unsafe_code)]\n"), 0);
    }

    #[test]
    fn without_one() {
        assert_eq!(found("#[allow(dead_code)]\nfn a() {}\n"), 1);
        assert_eq!(found("fn b() {}\n#[expect(dead_code)]\nfn a() {}\n"), 1);
        assert_eq!(found("#[ignore]\n#[test]\nfn a() {}\n"), 1);
    }
}
