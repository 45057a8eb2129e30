//! Cargo's view of the workspace: packages, their dependencies and roots, and the licence of every package in the
//! build.
//!
//! Input: the output of `cargo metadata`; output: plain values with paths relative to the workspace root. It must never
//! guess: a missing field is an error.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The platform whose dependencies are checked: the one CI builds for.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) root: PathBuf,
    pub(crate) members: Vec<Package>,
    pub(crate) foreign: Vec<Foreign>,
}

/// A package of the workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Relative to the workspace root: `crates/hash/Cargo.toml`.
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
    /// The root file of every target, relative to the workspace root.
    pub(crate) roots: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) dev: bool,
}

/// A third-party package.
#[derive(Debug, Clone)]
pub(crate) struct Foreign {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
}

impl Metadata {
    pub(crate) fn load() -> Result<Metadata, String> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", PLATFORM])
            .output()
            .map_err(|error| format!("cargo metadata: {error}"))?;
        if !output.status.success() {
            return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let value: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
        Metadata::parse(&value)
    }

    fn parse(value: &Value) -> Result<Metadata, String> {
        let root = PathBuf::from(text(value, "workspace_root")?);
        let members = list(value, "workspace_members")?;
        let mut metadata = Metadata { root, ..Metadata::default() };
        for package in list(value, "packages")? {
            let id = package.get("id");
            if members.iter().any(|member| Some(member) == id) {
                metadata.members.push(parse_member(package, &metadata.root)?);
            } else {
                metadata.foreign.push(Foreign {
                    name: text(package, "name")?,
                    version: text(package, "version")?,
                    licence: package.get("license").and_then(Value::as_str).map(str::to_owned),
                });
            }
        }
        Ok(metadata)
    }
}

impl Package {
    /// The folder of the package, relative to the root: `crates/hash`.
    pub(crate) fn folder(&self) -> &str {
        self.manifest.strip_suffix("/Cargo.toml").unwrap_or("")
    }
}

fn parse_member(package: &Value, root: &Path) -> Result<Package, String> {
    let mut dependencies = Vec::new();
    for dependency in list(package, "dependencies")? {
        let dev = dependency.get("kind").and_then(Value::as_str) == Some("dev");
        dependencies.push(Dependency { name: text(dependency, "name")?, dev });
    }
    let mut roots = Vec::new();
    for target in list(package, "targets")? {
        roots.push(relative(&text(target, "src_path")?, root));
    }
    let manifest = relative(&text(package, "manifest_path")?, root);
    Ok(Package { name: text(package, "name")?, manifest, dependencies, roots })
}

fn relative(path: &str, root: &Path) -> String {
    Path::new(path).strip_prefix(root).map_or_else(|_| path.to_owned(), |rest| rest.display().to_string())
}

fn text(value: &Value, name: &str) -> Result<String, String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| format!("cargo metadata: no {name}"))
}

fn list<'a>(value: &'a Value, name: &str) -> Result<&'a [Value], String> {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).ok_or_else(|| format!("cargo metadata: no {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_distinguished_by_membership() {
        let value = serde_json::json!({
            "workspace_root": "/w", "workspace_members": ["ours"],
            "packages": [
                {"id": "ours", "name": "lydian-hash", "version": "0.1.0", "manifest_path": "/w/crates/hash/Cargo.toml",
                 "dependencies": [{"name": "sha1", "kind": null}, {"name": "proptest", "kind": "dev"}],
                 "targets": [{"src_path": "/w/crates/hash/src/lib.rs"}]},
                {"id": "theirs", "name": "sha1", "version": "1.2.3", "license": "MIT"}
            ]
        });
        let metadata = Metadata::parse(&value).unwrap();
        assert_eq!(metadata.members[0].folder(), "crates/hash");
        assert_eq!(metadata.members[0].roots, ["crates/hash/src/lib.rs"]);
        assert_eq!(metadata.members[0].dependencies[1], Dependency { name: "proptest".into(), dev: true });
        assert_eq!(metadata.foreign[0].licence.as_deref(), Some("MIT"));
    }

    #[test]
    fn a_missing_field_is_an_error() {
        assert_eq!(Metadata::parse(&serde_json::json!({})).unwrap_err(), "cargo metadata: no workspace_root");
    }
}
