//! Cargo's view of the workspace: packages, their dependencies and roots, and the licence of every package in the
//! build.
//!
//! Input: the output of `cargo metadata`; output: plain values with paths relative to the workspace root. It must never
//! guess: a missing field is an error.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The packages whose programs are released.
const PROGRAMS: &[&str] = &["lydian-node", "lydian-cli", "lydian-lab"];

/// The platform whose dependencies are checked: the one CI builds for.
pub(crate) const PLATFORM: &str = "x86_64-unknown-linux-gnu";

#[derive(Debug, Default)]
pub(crate) struct Metadata {
    pub(crate) root: PathBuf,
    pub(crate) members: Vec<Package>,
    pub(crate) foreign: Vec<Foreign>,
    /// Third-party packages that only optional features of our crates need.
    pub(crate) optional: Vec<Foreign>,
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
#[derive(Debug, Clone, Default)]
pub(crate) struct Foreign {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) licence: Option<String>,
    pub(crate) authors: Vec<String>,
    /// Where its sources were unpacked.
    pub(crate) folder: PathBuf,
    /// The package compiles or links a library that is not written in Rust.
    pub(crate) has_native_code: bool,
    /// Its code is in a released program: reached from one of [`PROGRAMS`] without dependencies of builds or tests, and
    /// no macro that only runs in the compiler.
    pub(crate) is_linked: bool,
}

impl Metadata {
    /// The packages that a build for the platform uses.
    pub(crate) fn load(platform: &str) -> Result<Metadata, String> {
        let mut metadata = Metadata::parse(&cargo_metadata(platform, &[])?)?;
        let with_all = Metadata::parse(&cargo_metadata(platform, &["--all-features"])?)?;
        let is_known = |one: &Foreign| {
            metadata.foreign.iter().any(|known| (&known.name, &known.version) == (&one.name, &one.version))
        };
        metadata.optional = with_all.foreign.into_iter().filter(|one| !is_known(one)).collect();
        Ok(metadata)
    }

    fn parse(value: &Value) -> Result<Metadata, String> {
        let root = PathBuf::from(text(value, "workspace_root")?);
        let members = list(value, "workspace_members")?;
        let linked = linked(value)?;
        let mut metadata = Metadata { root, ..Metadata::default() };
        for package in list(value, "packages")? {
            let id = package.get("id");
            if members.iter().any(|member| Some(member) == id) {
                metadata.members.push(parse_member(package, &metadata.root)?);
            } else {
                metadata.foreign.push(parse_foreign(package, &linked)?);
            }
        }
        Ok(metadata)
    }
}

fn cargo_metadata(platform: &str, arguments: &[&str]) -> Result<Value, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", platform])
        .args(arguments)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
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

fn parse_foreign(package: &Value, linked: &BTreeSet<&str>) -> Result<Foreign, String> {
    let manifest = PathBuf::from(text(package, "manifest_path")?);
    let authors = list(package, "authors")?;
    Ok(Foreign {
        name: text(package, "name")?,
        version: text(package, "version")?,
        licence: package.get("license").and_then(Value::as_str).map(str::to_owned),
        authors: authors.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        folder: manifest.parent().map_or_else(PathBuf::new, Path::to_owned),
        has_native_code: package.get("links").is_some_and(Value::is_string),
        is_linked: linked.contains(text(package, "id")?.as_str()),
    })
}

/// The ids of the packages whose code is in a released program.
fn linked(value: &Value) -> Result<BTreeSet<&str>, String> {
    let packages = list(value, "packages")?;
    let mut macros = BTreeSet::new();
    let mut open = Vec::new();
    for package in packages {
        let id = package.get("id").and_then(Value::as_str).ok_or("cargo metadata: no id")?;
        let is_macro = |target: &Value| {
            let kinds = target.get("kind").and_then(Value::as_array);
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "proc-macro"))
        };
        if list(package, "targets")?.iter().any(is_macro) {
            macros.insert(id);
        }
        if PROGRAMS.contains(&text(package, "name")?.as_str()) {
            open.push(id);
        }
    }
    let resolve = value.get("resolve").ok_or("cargo metadata: no resolve")?;
    let mut normal: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for node in list(resolve, "nodes")? {
        let from = node.get("id").and_then(Value::as_str).ok_or("cargo metadata: no id")?;
        for dependency in list(node, "deps")? {
            let kinds = list(dependency, "dep_kinds")?;
            if kinds.iter().any(|kind| kind.get("kind").is_none_or(Value::is_null)) {
                let to = dependency.get("pkg").and_then(Value::as_str).ok_or("cargo metadata: no pkg")?;
                normal.entry(from).or_default().push(to);
            }
        }
    }
    let mut found = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !macros.contains(id) && found.insert(id) {
            open.extend(normal.get(id).into_iter().flatten());
        }
    }
    Ok(found)
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
        let foreign = |id: &str, name: &str, kind: &str, links: Option<&str>| {
            serde_json::json!({
                "id": id, "name": name, "version": "1.2.3", "license": "MIT", "authors": ["A"], "links": links,
                "manifest_path": format!("/r/{name}/Cargo.toml"), "targets": [{"kind": [kind]}]
            })
        };
        let dependency = |id: &str, kind: Option<&str>| serde_json::json!({"pkg": id, "dep_kinds": [{"kind": kind}]});
        let value = serde_json::json!({
            "workspace_root": "/w", "workspace_members": ["ours"],
            "packages": [
                {"id": "ours", "name": "lydian-node", "version": "0.1.0", "manifest_path": "/w/crates/node/Cargo.toml",
                 "dependencies": [{"name": "sha1", "kind": null}, {"name": "proptest", "kind": "dev"}],
                 "targets": [{"kind": ["lib"], "src_path": "/w/crates/node/src/lib.rs"}]},
                foreign("s", "sha1", "lib", None), foreign("z", "zstd-sys", "lib", Some("zstd")),
                foreign("c", "cc", "lib", None), foreign("t", "proptest", "lib", None),
                foreign("m", "serde_derive", "proc-macro", None)
            ],
            "resolve": {"nodes": [
                {"id": "ours", "deps": [dependency("s", None), dependency("t", Some("dev")), dependency("m", None)]},
                {"id": "s", "deps": [dependency("z", None), dependency("c", Some("build"))]},
                {"id": "m", "deps": [dependency("c", None)]}
            ]}
        });
        let metadata = Metadata::parse(&value).unwrap();
        assert_eq!(metadata.members[0].folder(), "crates/node");
        assert_eq!(metadata.members[0].roots, ["crates/node/src/lib.rs"]);
        assert_eq!(metadata.members[0].dependencies[1], Dependency { name: "proptest".into(), dev: true });
        assert_eq!(metadata.foreign[0].licence.as_deref(), Some("MIT"));
        assert_eq!(metadata.foreign[0].folder, Path::new("/r/sha1"));
        let named = |wanted: fn(&&Foreign) -> bool| -> Vec<&str> {
            metadata.foreign.iter().filter(wanted).map(|foreign| foreign.name.as_str()).collect()
        };
        assert_eq!(named(|foreign| foreign.is_linked), ["sha1", "zstd-sys"]);
        assert_eq!(named(|foreign| foreign.has_native_code), ["zstd-sys"]);
    }

    #[test]
    fn a_missing_field_is_an_error() {
        assert_eq!(Metadata::parse(&serde_json::json!({})).unwrap_err(), "cargo metadata: no workspace_root");
    }
}
