//! A function has at most 70 lines.
//!
//! Input: every function of the sources except tests, counted from `fn` to its closing brace; output: those above the
//! limit. A function that is really a table (an opcode `match`, a kernel) carries `// tidy: long function: REASON`
//! directly above it; attributes and doc comments may stand in between. An exemption that is no longer needed is also a
//! violation.

use super::Violation;
use crate::tree::Tree;
use std::collections::BTreeSet;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// The house rule on function length (CONTRIBUTING.md).
const LINES_MAX: usize = 70;
const EXEMPTION: &str = "// tidy: long function:";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (file, rust) in tree.rust().filter(|(file, _)| !file.is_test_file()) {
        let Some(text) = &file.text else { continue };
        let mut collector = Collector { functions: Vec::new() };
        collector.visit_file(&rust.ast);
        collector.functions.retain(|function| !rust.is_test_line(function.start));
        found.extend(check_file(&file.path, text, &collector.functions));
    }
    found
}

fn check_file(path: &str, text: &str, functions: &[Function]) -> Vec<Violation> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut used = BTreeSet::new();
    for function in functions {
        let length = function.end - function.start + 1;
        let exemption = exemption_above(&lines, function.start);
        used.extend(exemption);
        let has_reason = exemption.and_then(|line| reason(&lines, line)).is_some();
        if length > LINES_MAX && !has_reason {
            let name = &function.name;
            let message =
                format!("`{name}` has {length} lines, at most {LINES_MAX}; else `{EXEMPTION} REASON` above it");
            found.push(Violation::new(path, function.start, message));
        }
        if length <= LINES_MAX
            && let Some(line) = exemption
        {
            let message = format!("`{}` has {length} lines: the exemption is no longer needed", function.name);
            found.push(Violation::new(path, line, message));
        }
    }
    for (index, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with(EXEMPTION) && !used.contains(&(index + 1)) {
            found.push(Violation::new(path, index + 1, "this exemption is not directly above a function"));
        }
    }
    found
}

/// Returns the line number (from 1) of the exemption among the attributes and comments directly above line `start`.
fn exemption_above(lines: &[&str], start: usize) -> Option<usize> {
    for number in (1..start).rev() {
        let line = lines.get(number - 1)?.trim();
        if line.starts_with(EXEMPTION) {
            return Some(number);
        }
        let belongs = line.starts_with("//") || line.starts_with('#') || line.ends_with(")]");
        if !belongs {
            return None;
        }
    }
    None
}

fn reason<'a>(lines: &[&'a str], number: usize) -> Option<&'a str> {
    let words = lines.get(number - 1)?.trim().strip_prefix(EXEMPTION)?.trim();
    (!words.is_empty()).then_some(words)
}

#[derive(Debug)]
struct Function {
    name: String,
    /// The line number (from 1) of `fn`, or of its qualifiers if it has any.
    start: usize,
    end: usize,
}

struct Collector {
    functions: Vec<Function>,
}

impl Collector {
    fn note(&mut self, visibility: Option<&syn::Visibility>, signature: &syn::Signature, block: &syn::Block) {
        let signature_line = signature.span().start().line;
        let start = match visibility {
            Some(syn::Visibility::Inherited) | None => signature_line,
            Some(visibility) => visibility.span().start().line,
        };
        let end = block.span().end().line;
        self.functions.push(Function { name: signature.ident.to_string(), start, end });
    }
}

impl<'ast> Visit<'ast> for Collector {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.note(Some(&item.vis), &item.sig, &item.block);
        syn::visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.note(Some(&item.vis), &item.sig, &item.block);
        syn::visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.note(None, &item.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
    }

    fn found(text: &str) -> Vec<Violation> {
        check(&Tree::of(&[("crates/a/src/lib.rs", text)]))
    }

    #[test]
    fn at_the_ceiling_and_one_above() {
        assert!(found(&function(LINES_MAX)).is_empty());
        assert_eq!(found(&function(LINES_MAX + 1)).len(), 1);
        let method = format!("struct A;\nimpl A {{\n/// Doc.\npub {}}}\n", function(LINES_MAX + 1));
        assert_eq!(found(&method)[0].line, 4);
        assert_eq!(found(&format!("trait A {{\n{}}}\n", function(LINES_MAX + 1))).len(), 1);
    }

    #[test]
    fn a_reason_exempts_when_it_is_needed_and_given() {
        let long = function(LINES_MAX + 1);
        assert!(found(&format!("// tidy: long function: one arm per opcode\n{long}")).is_empty());
        assert!(found(&format!("// tidy: long function: a kernel\n/// Doc.\n#[inline]\n{long}")).is_empty());
        assert_eq!(found(&format!("// tidy: long function:\n{long}")).len(), 1, "no reason");
        assert_eq!(found(&format!("// tidy: long function: x\n\n{long}")).len(), 2, "not directly above");
        assert_eq!(found(&format!("// tidy: long function: x\n{}", function(9))).len(), 1, "not needed");
    }

    #[test]
    fn tests_are_not_asked() {
        assert!(found(&format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(200))).is_empty());
    }
}
