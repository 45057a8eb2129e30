//! The licences of everything that a released program contains, as their authors wrote them.
//!
//! Input: the unpacked sources of the packages that are linked (`cargo metadata`), the tables of `crate::sbom`; output:
//! one text, in which equal licences appear once below the names they apply to. A component without any text that its
//! licence could be read from is an error.

use crate::metadata::{Foreign, Metadata};
use crate::sbom::{ASSETS, native_licence};
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// How the names of files with licences and notices start, in capitals.
const NAMES: &[&str] = &["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
const RULE: &str = "================================================================================";

pub(crate) fn text(tree: &Tree, metadata: &Metadata) -> Result<String, String> {
    let own = Own::of(tree)?;
    // Text to the names it applies to.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = Vec::new();
    for package in metadata.foreign.iter().filter(|package| package.is_linked) {
        let licence = package.licence.as_deref().unwrap_or("");
        let name = format!("{} {} ({licence})", package.name, package.version);
        for text in texts_of(package, &own)? {
            texts.entry(text).or_default().push(name.clone());
        }
        list.push(name);
    }
    for asset in ASSETS {
        let name = format!("{} {} ({}), in the page", asset.name, asset.version, asset.licence);
        texts.entry(own.mit(asset.copyright)).or_default().push(name.clone());
        list.push(name);
    }
    let std = "the standard library of Rust (MIT OR Apache-2.0), copyright the Rust project's contributors".to_owned();
    texts.entry(own.apache.clone()).or_default().push(std.clone());
    list.push(std);
    Ok(format(&list, &texts))
}

fn format(list: &[String], texts: &BTreeMap<String, Vec<String>>) -> String {
    let mut lines = vec!["The programs contain these works of others:\n".to_owned()];
    lines.extend(list.iter().map(|name| format!("  {name}")));
    let mut sections: Vec<_> = texts.iter().collect();
    sections.sort_by_key(|(_, names)| *names);
    for (text, names) in sections {
        lines.push(format!("\n{RULE}"));
        lines.extend(names.iter().map(|name| format!("  {name}")));
        lines.push(format!("{RULE}\n\n{text}"));
    }
    lines.join("\n") + "\n"
}

/// The texts of our own two licences, for components whose packages name one of them and lack its text.
struct Own {
    apache: String,
    /// From "Permission is hereby granted" on.
    mit_terms: String,
}

impl Own {
    fn of(tree: &Tree) -> Result<Own, String> {
        let file = |path: &str| tree.text(path).map(cleaned).ok_or_else(|| format!("{path} is missing"));
        let mit = file("LICENSE-MIT")?;
        let start = mit.find("Permission is hereby granted").ok_or("LICENSE-MIT is not the MIT licence")?;
        Ok(Own { apache: file("LICENSE-APACHE")?, mit_terms: mit[start..].to_owned() })
    }

    fn mit(&self, copyright: &str) -> String {
        format!("MIT License\n\n{copyright}\n\n{}", self.mit_terms)
    }
}

/// The texts in a package, of its native code too.
fn texts_of(package: &Foreign, own: &Own) -> Result<Vec<String>, String> {
    let mut paths = licence_files(&package.folder)?;
    paths.extend(native_licence(package)?.map(|file| package.folder.join(file)));
    paths.sort();
    paths.dedup();
    let mut texts = Vec::new();
    for path in paths {
        let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        texts.push(cleaned(&String::from_utf8_lossy(&bytes)));
    }
    if texts.is_empty() {
        texts.push(named_only(package, own)?);
    }
    Ok(texts)
}

fn licence_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if !NAMES.iter().any(|start| name.starts_with(start)) || path.extension().is_some_and(|end| end == "rs") {
            continue;
        }
        if path.is_dir() {
            found.extend(licence_files(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

/// The text of a licence that a package names without including it.
fn named_only(package: &Foreign, own: &Own) -> Result<String, String> {
    let licence = package.licence.as_deref().unwrap_or("");
    let alternatives: Vec<&str> = licence.split("OR").flat_map(|part| part.split('/')).map(str::trim).collect();
    if alternatives.contains(&"Apache-2.0") {
        Ok(own.apache.clone())
    } else if alternatives.contains(&"MIT") {
        Ok(own.mit(&format!("Copyright (c) {}", package.authors.join(", "))))
    } else {
        Err(format!("{} {} has no file with its licence `{licence}`", package.name, package.version))
    }
}

/// Without carriage returns, spaces at the ends of lines, and empty lines around the text, so that equal texts are
/// equal bytes.
fn cleaned(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Own {
        let mit = "MIT License\n\nCopyright (c) us\n\nPermission is hereby granted, free\n";
        Own::of(&Tree::of(&[("LICENSE-MIT", mit), ("LICENSE-APACHE", "Apache\r\n")])).unwrap()
    }

    fn package(licence: &str) -> Foreign {
        Foreign {
            name: "x".into(),
            version: "1.0.0".into(),
            licence: Some(licence.into()),
            authors: vec!["A".into(), "B".into()],
            ..Foreign::default()
        }
    }

    #[test]
    fn a_licence_without_a_file_is_written_out_or_an_error() {
        assert_eq!(named_only(&package("MIT/Apache-2.0"), &own()).unwrap(), "Apache");
        let mit = named_only(&package("MIT"), &own()).unwrap();
        assert_eq!(mit, "MIT License\n\nCopyright (c) A, B\n\nPermission is hereby granted, free");
        assert!(named_only(&package("ISC"), &own()).unwrap_err().contains("x 1.0.0 has no file"));
    }

    #[test]
    fn equal_texts_appear_once() {
        let texts = BTreeMap::from([("T".to_owned(), vec!["a 1 (MIT)".to_owned(), "b 1 (MIT)".to_owned()])]);
        let text = format(&["a 1 (MIT)".to_owned()], &texts);
        assert_eq!(text.matches("\n\nT\n").count(), 1);
        assert!(text.contains("  a 1 (MIT)\n  b 1 (MIT)\n"), "{text}");
    }
}
