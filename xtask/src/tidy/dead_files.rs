//! Every Rust file is part of some target.
//!
//! Input: the roots of all targets, from which `mod name;` and `include!("..")` are followed; output: files of the
//! workspace's crates that are not reached. The compiler never sees those.

use super::Violation;
use crate::metadata::Metadata;
use crate::tree::{Rust, Tree};
use std::collections::BTreeSet;

pub(super) fn check(tree: &Tree, metadata: &Metadata) -> Vec<Violation> {
    let roots: BTreeSet<String> = metadata.members.iter().flat_map(|member| member.roots.iter().cloned()).collect();
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<String> = roots.iter().cloned().collect();
    while let Some(path) = waiting.pop() {
        if reached.insert(path.clone())
            && let Some(rust) = rust_of(tree, &path)
        {
            waiting.extend(children(&path, rust, roots.contains(&path)));
        }
    }
    let folders: Vec<String> = metadata.members.iter().map(|member| format!("{}/", member.folder())).collect();
    let ours = |path: &str| path.ends_with(".rs") && folders.iter().any(|folder| path.starts_with(folder.as_str()));
    let dead = tree.files.iter().filter(|file| ours(&file.path) && !reached.contains(&file.path));
    dead.map(|file| Violation::new(&file.path, 1, "no `mod` leads here: the compiler never sees this file")).collect()
}

fn rust_of<'a>(tree: &'a Tree, path: &str) -> Option<&'a Rust> {
    tree.files.iter().find(|file| file.path == path)?.rust.as_ref()?.as_ref().ok()
}

/// Returns the files that one file may include. Every candidate is returned; a path that does not exist has no effect.
fn children(path: &str, rust: &Rust, is_root: bool) -> Vec<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let inner = if is_root || stem == "mod" { folder.to_owned() } else { format!("{folder}/{stem}") };
    let mut files = Vec::new();
    modules(&rust.ast.items, folder, &inner, &mut files);
    for window in rust.tokens.windows(4) {
        if window[0].text == "include" && window[1].text == "!" && window[2].text == "(" {
            files.push(normal(&format!("{folder}/{}", window[3].text.trim_matches('"'))));
        }
    }
    files
}

/// `folder` contains the file, `inner` its child modules.
fn modules(items: &[syn::Item], folder: &str, inner: &str, files: &mut Vec<String>) {
    for item in items {
        let syn::Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        if let Some((_, items)) = &module.content {
            let inner = format!("{inner}/{name}");
            modules(items, &inner, &inner, files);
        } else if let Some(path) = path_attribute(&module.attrs) {
            files.push(normal(&format!("{folder}/{path}")));
        } else {
            files.push(format!("{inner}/{name}.rs"));
            files.push(format!("{inner}/{name}/mod.rs"));
        }
    }
}

fn path_attribute(attributes: &[syn::Attribute]) -> Option<String> {
    attributes.iter().find_map(|attribute| {
        let syn::Meta::NameValue(pair) = &attribute.meta else { return None };
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
        pair.path.is_ident("path").then(|| text.value())
    })
}

/// Removes `.` and `..` from the path.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;

    fn dead(files: &[(&str, &str)], roots: &[&str]) -> Vec<String> {
        let package = Package {
            manifest: "crates/a/Cargo.toml".into(),
            roots: roots.iter().map(|root| (*root).to_owned()).collect(),
            ..Package::default()
        };
        let metadata = Metadata { members: vec![package], ..Metadata::default() };
        check(&Tree::of(files), &metadata).into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn everything_that_is_named_is_reached() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "mod b;\nmod c { mod d; }\n#[path = \"../other/e.rs\"]\nmod e;\ninclude!(\"f.rs\");\n",
            ),
            ("crates/a/src/b.rs", "mod g;\n"),
            ("crates/a/src/b/g.rs", ""),
            ("crates/a/src/c/d.rs", ""),
            ("crates/a/other/e.rs", ""),
            ("crates/a/src/f.rs", ""),
            ("crates/a/tests/t.rs", "mod common;\n"),
            ("crates/a/tests/common/mod.rs", "mod h;\n"),
            ("crates/a/tests/common/h.rs", ""),
        ];
        assert!(dead(&files, &["crates/a/src/lib.rs", "crates/a/tests/t.rs"]).is_empty());
    }

    #[test]
    fn a_file_that_is_never_named_is_dead() {
        let files = [("crates/a/src/lib.rs", "mod b;\n"), ("crates/a/src/b.rs", ""), ("crates/a/src/b/old.rs", "")];
        assert_eq!(dead(&files, &["crates/a/src/lib.rs"]), ["crates/a/src/b/old.rs"]);
    }
}
