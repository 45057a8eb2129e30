//! Every dependency has its reason in `docs/dependencies.md`, is declared in one place, and is used.
//!
//! Input: `[workspace.dependencies]` of the root manifest, the lines "- `name`: reason" of the document, and the
//! dependencies of the packages; output: names that are in one of them but missing in another that must have them.

use super::Violation;
use crate::metadata::Metadata;
use crate::tree::Tree;

const MANIFEST: &str = "Cargo.toml";
const DOCUMENT: &str = "docs/dependencies.md";
const OTHER_MANIFESTS: &[&str] = &["fuzz/Cargo.toml", "rivals/Cargo.toml"];

pub(super) fn check(tree: &Tree, metadata: &Metadata) -> Vec<Violation> {
    let declared = section(tree.text(MANIFEST).unwrap_or(""), "[workspace.dependencies]");
    let mut others = Vec::new();
    for manifest in OTHER_MANIFESTS {
        let names = section(tree.text(manifest).unwrap_or(""), "[dependencies]");
        others.extend(names.into_iter().map(|(name, line)| (name, *manifest, line)));
    }
    let reasons = reasons(tree.text(DOCUMENT).unwrap_or(""));
    let has_reason = |name: &str| reasons.iter().any(|(one, _)| one == name);
    let mut found = Vec::new();
    let mut note = |path: &str, line, message: String| found.push(Violation::new(path, line, message));

    for (name, line) in &declared {
        if !has_reason(name) {
            note(MANIFEST, *line, format!("`{name}` has no line with its reason in {DOCUMENT}"));
        }
        let used = metadata.members.iter().any(|member| member.dependencies.iter().any(|one| one.name == *name));
        if !used {
            note(MANIFEST, *line, format!("no crate uses `{name}`"));
        }
    }
    for (name, path, line) in &others {
        if !has_reason(name) {
            note(path, *line, format!("`{name}` has no line with its reason in {DOCUMENT}"));
        }
    }
    for (name, line) in &reasons {
        let known = declared.iter().any(|(one, _)| one == name) || others.iter().any(|(one, ..)| one == name);
        if !known {
            note(DOCUMENT, *line, format!("`{name}` is no dependency any more"));
        }
    }
    for member in &metadata.members {
        for dependency in member.dependencies.iter().filter(|one| !is_ours(&one.name)) {
            if !declared.iter().any(|(name, _)| *name == dependency.name) {
                note(
                    &member.manifest,
                    1,
                    format!("`{}` is not declared in [workspace.dependencies] of {MANIFEST}", dependency.name),
                );
            }
        }
    }
    found
}

/// Returns the names in one section of a manifest with their line numbers, without our own crates.
fn section(text: &str, header: &str) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    let mut inside = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.trim() == header;
        } else if inside
            && let Some((name, _)) = line.split_once(['=', '.'])
            && !name.starts_with('#')
            && !is_ours(name.trim())
        {
            names.push((name.trim().to_owned(), index + 1));
        }
    }
    names
}

fn reasons(text: &str) -> Vec<(String, usize)> {
    let name = |line: &str| {
        let (name, reason) = line.strip_prefix("- `")?.split_once("`: ")?;
        (!reason.trim().is_empty()).then(|| name.to_owned())
    };
    text.lines().enumerate().filter_map(|(index, line)| Some((name(line)?, index + 1))).collect()
}

fn is_ours(name: &str) -> bool {
    name.starts_with("lydian-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, Package};

    fn found(manifest: &str, document: &str, used: &[&str]) -> Vec<String> {
        let tree = Tree::of(&[(MANIFEST, manifest), (DOCUMENT, document)]);
        let dependencies = used.iter().map(|name| Dependency { name: (*name).to_owned(), dev: false }).collect();
        let member = Package { dependencies, ..Package::default() };
        let metadata = Metadata { members: vec![member], ..Metadata::default() };
        check(&tree, &metadata).into_iter().map(|one| one.message).collect()
    }

    const MANIFEST_TEXT: &str =
        "[workspace.dependencies]\nlydian-hash = { path = \"x\" }\n# note\nsha1 = \"0.11\"\n\n[lints]\nx = 1\n";

    #[test]
    fn declared_used_and_explained() {
        assert!(found(MANIFEST_TEXT, "# Why\n\n- `sha1`: OP_SHA1\n", &["sha1", "lydian-hash"]).is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(found(MANIFEST_TEXT, "", &["sha1"]).len(), 1, "no reason");
        assert_eq!(found(MANIFEST_TEXT, "- `sha1`: \n", &["sha1"]).len(), 1, "an empty reason");
        assert_eq!(found(MANIFEST_TEXT, "- `sha1`: x\n", &[]), ["no crate uses `sha1`"]);
        assert_eq!(found(MANIFEST_TEXT, "- `sha1`: x\n- `old`: x\n", &["sha1"]), ["`old` is no dependency any more"]);
        assert_eq!(found(MANIFEST_TEXT, "- `sha1`: x\n", &["sha1", "rand"]).len(), 1, "declared elsewhere");
    }
}
