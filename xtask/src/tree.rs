//! The files of the checkout, as the checks see them.
//!
//! Input: the files that git tracks or would track (ignored files are left out); output: each file's path relative to
//! the root and its size, the text of text files, and for Rust files the tokens, the syntax tree and the lines that
//! belong to tests. Foreign data (`testdata/blocks`, `testdata/vectors`) is never read, only measured. Cost: every Rust
//! file is parsed once.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// A larger file is measured but not read.
const TEXT_SIZE_MAX: u64 = 1 << 20;

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) files: Vec<TrackedFile>,
}

#[derive(Debug)]
pub(crate) struct TrackedFile {
    /// Relative to the root of the checkout, with `/` as the separator.
    pub(crate) path: String,
    pub(crate) size_bytes: u64,
    /// `None` for foreign data, large files, and files that are not UTF-8.
    pub(crate) text: Option<String>,
    pub(crate) rust: Option<Result<Rust, String>>,
}

/// A parsed Rust file.
pub(crate) struct Rust {
    pub(crate) ast: syn::File,
    pub(crate) tokens: Vec<Token>,
    test_lines: Vec<RangeInclusive<usize>>,
}

impl std::fmt::Debug for Rust {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rust").field("items", &self.ast.items.len()).field("tokens", &self.tokens.len()).finish()
    }
}

/// One token and its line. Comments produce no tokens; doc comments and strings are one literal each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) line: usize,
}

impl Tree {
    pub(crate) fn load(root: &Path) -> Result<Tree, String> {
        let output = Command::new("git")
            .arg("-C")
            .arg(root)
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .output()
            .map_err(|error| format!("git ls-files: {error}"))?;
        if !output.status.success() {
            return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let mut files = Vec::new();
        for name in output.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
            let path = String::from_utf8_lossy(name).into_owned();
            // A tracked file may have been deleted in the checkout.
            let Ok(about) = std::fs::symlink_metadata(root.join(&path)) else { continue };
            let text = if is_foreign_data(&path) || about.len() > TEXT_SIZE_MAX || !about.is_file() {
                None
            } else {
                std::fs::read(root.join(&path)).ok().and_then(|bytes| String::from_utf8(bytes).ok())
            };
            files.push(TrackedFile::new(path, about.len(), text));
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Tree { files })
    }

    /// Builds a tree for the tests of checks.
    /// Only these files, for commands that need no other: parsing all Rust files takes longer than what they do.
    pub(crate) fn load_only(root: &Path, paths: &[&str]) -> Result<Tree, String> {
        let mut files = Vec::new();
        for path in paths {
            let text = std::fs::read_to_string(root.join(path)).map_err(|error| format!("{path}: {error}"))?;
            files.push(TrackedFile::new((*path).to_owned(), text.len() as u64, Some(text)));
        }
        Ok(Tree { files })
    }

    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| {
            TrackedFile::new((*path).to_owned(), text.len() as u64, Some((*text).to_owned()))
        };
        Tree { files: files.iter().map(file).collect() }
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path)?.text.as_deref()
    }

    /// Returns every file that has text, with the text.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&TrackedFile, &str)> {
        self.files.iter().filter_map(|file| Some((file, file.text.as_deref()?)))
    }

    /// Returns every Rust file that parses; the others are reported by the check `parse`.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&TrackedFile, &Rust)> {
        self.files.iter().filter_map(|file| Some((file, file.rust.as_ref()?.as_ref().ok()?)))
    }
}

impl TrackedFile {
    fn new(path: String, size_bytes: u64, text: Option<String>) -> TrackedFile {
        let rust = match &text {
            Some(text) if path.ends_with(".rs") => Some(Rust::parse(text)),
            _ => None,
        };
        TrackedFile { path, size_bytes, text, rust }
    }

    /// The crate that the file belongs to: `hash` for `crates/hash/src/lib.rs`, `xtask`, `fuzz`.
    pub(crate) fn crate_name(&self) -> Option<&str> {
        let rest = self.path.strip_prefix("crates/").unwrap_or(&self.path);
        let (name, _) = rest.split_once('/')?;
        Some(name)
    }

    /// Whether this is a source file of a workspace crate; tests and benches beside `src` are excluded.
    pub(crate) fn is_source(&self) -> bool {
        self.path.ends_with(".rs")
            && (self.path.starts_with("crates/") || self.path.starts_with("xtask/"))
            && self.path.contains("/src/")
    }

    /// Whether the file contains only tests, benchmarks or examples.
    pub(crate) fn is_test_file(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or("");
        let folders = ["/tests/", "/benches/", "/examples/"];
        folders.iter().any(|folder| self.path.contains(folder)) || name == "tests.rs" || name.ends_with("_tests.rs")
    }
}

impl Rust {
    pub(crate) fn parse(text: &str) -> Result<Rust, String> {
        let stream = TokenStream::from_str(text).map_err(|error| error.to_string())?;
        let ast: syn::File = syn::parse_str(text).map_err(|error| error.to_string())?;
        let mut tokens = Vec::new();
        flatten(stream, &mut tokens);
        let mut finder = TestFinder { lines: Vec::new() };
        finder.visit_file(&ast);
        Ok(Rust { ast, tokens, test_lines: finder.lines })
    }

    /// Whether the line is in an item under `#[cfg(test)]` or in a `#[test]` function.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_lines.iter().any(|range| range.contains(&line))
    }

    pub(crate) fn test_line_count(&self) -> usize {
        let mut last = 0;
        let mut count = 0;
        for range in &self.test_lines {
            let start = (*range.start()).max(last + 1);
            count += (range.end() + 1).saturating_sub(start);
            last = last.max(*range.end());
        }
        count
    }
}

/// Appends the tokens of a pattern or a file, with groups flattened.
pub(crate) fn flatten(stream: TokenStream, out: &mut Vec<Token>) {
    for tree in stream {
        let line = tree.span().start().line;
        if let TokenTree::Group(group) = tree {
            let (open, close) = match group.delimiter() {
                Delimiter::Parenthesis => ("(", ")"),
                Delimiter::Brace => ("{", "}"),
                Delimiter::Bracket => ("[", "]"),
                Delimiter::None => ("", ""),
            };
            out.push(Token { text: open.to_owned(), line });
            flatten(group.stream(), out);
            out.push(Token { text: close.to_owned(), line: group.span_close().end().line });
        } else {
            out.push(Token { text: tree.to_string(), line });
        }
    }
}

/// Whether this is test data made by others, which is measured but never read.
pub(crate) fn is_foreign_data(path: &str) -> bool {
    path.starts_with("testdata/blocks/") || path.starts_with("testdata/vectors/")
}

struct TestFinder {
    lines: Vec<RangeInclusive<usize>>,
}

impl TestFinder {
    fn note(&mut self, attributes: &[syn::Attribute], item: &impl Spanned) -> bool {
        let is_test = attributes.iter().any(marks_test);
        if is_test {
            let span = item.span();
            self.lines.push(span.start().line..=span.end().line);
        }
        is_test
    }
}

impl<'ast> Visit<'ast> for TestFinder {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes: &[syn::Attribute] = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            syn::Item::Static(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !self.note(attributes, item) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !self.note(&item.attrs, item) {
            syn::visit::visit_impl_item_fn(self, item);
        }
    }
}

/// Whether this is `#[test]` or `#[cfg(test)]`, including `cfg(all(...))` but not `cfg(not(test))`.
fn marks_test(attribute: &syn::Attribute) -> bool {
    if attribute.path().is_ident("test") {
        return true;
    }
    let syn::Meta::List(list) = &attribute.meta else { return false };
    if !list.path.is_ident("cfg") {
        return false;
    }
    let mut tokens = Vec::new();
    flatten(list.tokens.clone(), &mut tokens);
    let has = |word: &str| tokens.iter().any(|token| token.text == word);
    has("test") && !has("not") && !has("any")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str =
        "fn a() {}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn b() {}\n}\n\n#[cfg(not(test))]\nfn c() {}\n";

    #[test]
    fn lines_of_tests_are_known() {
        let rust = Rust::parse(SAMPLE).unwrap();
        let lines: Vec<usize> = (1..=10).filter(|line| rust.is_test_line(*line)).collect();
        assert_eq!(lines, [3, 4, 5, 6, 7]);
        assert_eq!(rust.test_line_count(), 5);
    }

    #[test]
    fn comments_are_no_tokens_and_strings_are_one() {
        let rust = Rust::parse("// unsafe\nconst A: &str = \"unsafe { }\";\n").unwrap();
        assert!(!rust.tokens.iter().any(|token| token.text == "unsafe"));
    }

    #[test]
    fn what_does_not_parse_is_reported() {
        assert!(Rust::parse("fn (").is_err());
        let tree = Tree::of(&[("crates/a/src/lib.rs", "fn broken( {")]);
        assert_eq!(tree.rust().count(), 0);
        assert!(matches!(tree.files[0].rust, Some(Err(_))));
    }

    #[test]
    fn places_are_classified_by_path() {
        let tree =
            Tree::of(&[("crates/hash/src/a.rs", ""), ("crates/hash/tests/b.rs", ""), ("fuzz/fuzz_targets/c.rs", "")]);
        let told: Vec<_> =
            tree.files.iter().map(|f| (f.crate_name().unwrap(), f.is_source(), f.is_test_file())).collect();
        assert_eq!(told, [("hash", true, false), ("hash", false, true), ("fuzz", false, false)]);
        assert!(is_foreign_data("testdata/blocks/runs/a.zst") && !is_foreign_data("testdata/ORIGIN.md"));
    }
}
