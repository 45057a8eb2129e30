//! The components of a release as CycloneDX 1.5: what an auditor asks for when a library has a hole.
//!
//! Input: Cargo.lock, `cargo metadata`, the tables below; output: every package of Cargo.lock, with scope `required`
//! if its code is in a released program for Linux on x86-64 and `excluded` if it is for builds, tests or other systems
//! only; the libraries in C and JavaScript inside packages and inside the page; the standard library. Equal input gives
//! equal bytes. A library without an entry is an error, never left out.

use crate::metadata::{Foreign, Metadata};
use crate::tree::Tree;
use serde_json::{Value, json};

/// The files of the checkout that this module and `crate::third_party` read.
pub(crate) const FILES: &[&str] =
    &["Cargo.lock", "Cargo.toml", "LICENSE-MIT", "LICENSE-APACHE", "crates/dashboard/assets/ORIGIN.md"];

/// A library in another language that a package contains, and compiles.
struct Native {
    package: &'static str,
    name: &'static str,
    licence: &'static str,
    revision: Revision,
    /// The text of its licence, relative to the package.
    licence_file: &'static str,
}

/// Where the revision of a library is found.
enum Revision {
    /// The last line of a file in the package.
    File(&'static str),
    /// After this prefix in the package's version: `2.0.16+zstd.1.5.7`.
    Build(&'static str),
    /// The package is the library's own home.
    Package,
}

const NATIVE: &[Native] = &[
    Native {
        package: "secp256k1-sys",
        name: "libsecp256k1",
        licence: "MIT",
        revision: Revision::File("depend/secp256k1-HEAD-revision.txt"),
        licence_file: "depend/secp256k1/COPYING",
    },
    Native {
        package: "zstd-sys",
        name: "zstd",
        licence: "BSD-3-Clause",
        revision: Revision::Build("zstd."),
        licence_file: "zstd/LICENSE",
    },
    Native {
        package: "ring",
        name: "ring-core",
        licence: "Apache-2.0 AND ISC",
        revision: Revision::Package,
        licence_file: "LICENSE",
    },
];

/// A file of others in the checkout that is part of a program.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) licence: &'static str,
    pub(crate) copyright: &'static str,
    /// Must name the version.
    origin: &'static str,
}

pub(crate) const ASSETS: &[Asset] = &[Asset {
    name: "uplot",
    version: "1.6.32",
    licence: "MIT",
    copyright: "Copyright (c) 2022 Leon Sorokin",
    origin: "crates/dashboard/assets/ORIGIN.md",
}];

/// One entry of the list.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Component {
    pub(crate) name: String,
    pub(crate) version: String,
    /// A package URL: `pkg:cargo/NAME@VERSION`.
    pub(crate) reference: String,
    /// `None` for packages that this platform does not build.
    pub(crate) licence: Option<String>,
    pub(crate) sha256: Option<String>,
    pub(crate) is_linked: bool,
}

/// All components, in the order of their references.
pub(crate) fn components(tree: &Tree, metadata: &Metadata) -> Result<Vec<Component>, String> {
    let lock = tree.text("Cargo.lock").ok_or("Cargo.lock is missing")?;
    let mut found = Vec::new();
    for (name, version, sha256) in locked(lock)? {
        let package = metadata.foreign.iter().find(|package| package.name == name && package.version == version);
        found.push(Component {
            reference: format!("pkg:cargo/{name}@{version}"),
            licence: package.and_then(|package| package.licence.as_ref()).map(|licence| licence.replace('/', " OR ")),
            is_linked: package.is_some_and(|package| package.is_linked),
            sha256: Some(sha256),
            name,
            version,
        });
    }
    for package in metadata.foreign.iter().filter(|package| package.is_linked && package.has_native_code) {
        found.push(native_component(package)?);
    }
    for asset in ASSETS {
        if !tree.text(asset.origin).is_some_and(|text| text.contains(asset.version)) {
            return Err(format!("{} does not name {} {}", asset.origin, asset.name, asset.version));
        }
        found.push(Component {
            name: asset.name.to_owned(),
            version: asset.version.to_owned(),
            reference: format!("pkg:npm/{}@{}", asset.name, asset.version),
            licence: Some(asset.licence.to_owned()),
            sha256: None,
            is_linked: true,
        });
    }
    found.sort_by(|a, b| a.reference.cmp(&b.reference));
    Ok(found)
}

/// The packages of Cargo.lock that come from a registry: name, version, SHA-256 of the archive.
fn locked(lock: &str) -> Result<Vec<(String, String, String)>, String> {
    let mut found = Vec::new();
    for package in lock.split("[[package]]").skip(1) {
        let field = |name: &str| {
            package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"'))
        };
        let name = field("name").ok_or("Cargo.lock: a package has no name")?;
        let version = field("version").ok_or_else(|| format!("Cargo.lock: {name} has no version"))?;
        if field("source").is_some() {
            let sha256 = field("checksum").ok_or_else(|| format!("Cargo.lock: {name} {version} has no checksum"))?;
            found.push((name.to_owned(), version.to_owned(), sha256.to_owned()));
        }
    }
    Ok(found)
}

fn native(package: &Foreign) -> Result<&'static Native, String> {
    NATIVE.iter().find(|native| native.package == package.name).ok_or_else(|| {
        let Foreign { name, version, .. } = package;
        format!("{name} {version} has code that is not Rust, and no entry in NATIVE of xtask/src/sbom.rs")
    })
}

fn native_component(package: &Foreign) -> Result<Component, String> {
    let native = native(package)?;
    let version = match native.revision {
        Revision::Package => package.version.clone(),
        Revision::Build(prefix) => {
            let build = package.version.split_once('+').and_then(|(_, build)| build.strip_prefix(prefix));
            build
                .ok_or_else(|| format!("{} {} does not name its {}", package.name, package.version, native.name))?
                .to_owned()
        }
        Revision::File(file) => {
            let path = package.folder.join(file);
            let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            text.lines().last().ok_or_else(|| format!("{} is empty", path.display()))?.trim().to_owned()
        }
    };
    Ok(Component {
        name: native.name.to_owned(),
        reference: format!("pkg:generic/{}@{version}", native.name),
        version,
        licence: Some(native.licence.to_owned()),
        sha256: None,
        is_linked: true,
    })
}

/// The text of the licence of the native code in a package, relative to the package.
pub(crate) fn native_licence(package: &Foreign) -> Result<Option<&'static str>, String> {
    if package.has_native_code { native(package).map(|native| Some(native.licence_file)) } else { Ok(None) }
}

/// The list as a document, with Rust's standard library of the given version, or of the compiler that is `rustc`.
pub(crate) fn document(tree: &Tree, metadata: &Metadata, rust_version: Option<&str>) -> Result<String, String> {
    let mut components = components(tree, metadata)?;
    components.push(standard_library(&rust_version.map_or_else(compiler_version, |version| Ok(version.to_owned()))?));
    let version = version(tree)?;
    let document = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application", "bom-ref": "lydian", "name": "lydian", "version": version,
            "licenses": [{"expression": "MIT OR Apache-2.0"}],
        }},
        "components": components.iter().map(entry).collect::<Vec<_>>(),
    });
    let text = serde_json::to_string_pretty(&document).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn version(tree: &Tree) -> Result<&str, String> {
    let manifest = tree.text("Cargo.toml").ok_or("Cargo.toml is missing")?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("version = \"")?.strip_suffix('"'));
    version.ok_or_else(|| "Cargo.toml has no version".to_owned())
}

fn entry(component: &Component) -> Value {
    let mut entry = json!({
        "type": "library",
        "bom-ref": component.reference,
        "name": component.name,
        "version": component.version,
        "purl": component.reference,
        "scope": if component.is_linked { "required" } else { "excluded" },
    });
    if let Some(licence) = &component.licence {
        entry["licenses"] = json!([{"expression": licence}]);
    }
    if let Some(sha256) = &component.sha256 {
        entry["hashes"] = json!([{"alg": "SHA-256", "content": sha256}]);
    }
    entry
}

fn compiler_version() -> Result<String, String> {
    let output = std::process::Command::new("rustc").arg("--version").output();
    let output = output.map_err(|error| format!("rustc --version: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().nth(1).map(str::to_owned).ok_or_else(|| format!("rustc --version: `{text}`"))
}

fn standard_library(version: &str) -> Component {
    Component {
        name: "rust-std".to_owned(),
        version: version.to_owned(),
        reference: format!("pkg:generic/rust-std@{version}"),
        licence: Some("MIT OR Apache-2.0".to_owned()),
        sha256: None,
        is_linked: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_workspace_are_no_components() {
        let lock = "version = 4\n\n[[package]]\nname = \"ours\"\nversion = \"0.1.0\"\n\n[[package]]\nname = \"sha1\"\n\
                    version = \"1.0.0\"\nsource = \"registry+x\"\nchecksum = \"ab\"\n";
        assert_eq!(locked(lock).unwrap(), [("sha1".into(), "1.0.0".into(), "ab".into())]);
        assert!(locked(&lock.replace("checksum", "x")).unwrap_err().contains("sha1 1.0.0 has no checksum"));
    }

    #[test]
    fn a_revision_is_read_from_the_version() {
        let mut package =
            Foreign { name: "zstd-sys".into(), version: "2.0.16+zstd.1.5.7".into(), ..Foreign::default() };
        assert_eq!(native_component(&package).unwrap().reference, "pkg:generic/zstd@1.5.7");
        package.version = "2.0.16".into();
        assert!(native_component(&package).unwrap_err().contains("does not name its zstd"));
    }

    #[test]
    fn an_entry_has_licence_hash_and_scope() {
        let component = Component {
            reference: "pkg:cargo/x@1".into(),
            licence: Some("MIT".into()),
            sha256: Some("ab".into()),
            is_linked: true,
            ..Component::default()
        };
        let value = entry(&component);
        assert_eq!(value["scope"], "required");
        assert_eq!(
            (&value["licenses"][0]["expression"], &value["hashes"][0]["content"]),
            (&json!("MIT"), &json!("ab"))
        );
    }
}
