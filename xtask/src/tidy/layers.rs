//! Folder = crate = layer: a crate uses only the crates that the table allows it.
//!
//! Input: the manifests of the checkout and the direct dependencies of the workspace's packages; output: each
//! dependency that the table in `crate::layers` does not allow, and each row or permission of the table that stands for
//! nothing. Tests may use any lower crate and those beside the stack.

use super::Violation;
use crate::layers::{BESIDE, LAYERS, Layer, OPEN, OPEN_TO_TESTS, is_beside, layer};
use crate::metadata::{Dependency, Metadata, Package};
use crate::tree::Tree;

const TABLE: &str = "xtask/src/layers.rs";

pub(super) fn check(tree: &Tree, metadata: &Metadata) -> Vec<Violation> {
    [forbidden_in(metadata), missing(tree), unused(LAYERS, metadata)].concat()
}

/// Crates of the table without a manifest.
fn missing(tree: &Tree) -> Vec<Violation> {
    let names = LAYERS.iter().map(|layer| layer.name).chain(BESIDE.iter().map(|(name, _)| *name));
    let exists = |name: &str| folders(name).iter().any(|folder| tree.text(&format!("{folder}/Cargo.toml")).is_some());
    let message = |name| Violation::new(TABLE, 1, format!("the crate `{name}` of the table does not exist"));
    names.filter(|name| !exists(name)).map(message).collect()
}

/// Permissions of the table that no dependency needs.
fn unused(table: &[Layer], metadata: &Metadata) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in &metadata.members {
        let user = short(&package.name);
        let uses = table.iter().find(|layer| layer.name == user).map_or(&[][..], |layer| layer.uses);
        let needs = |used: &str| package.dependencies.iter().any(|one| !one.dev && short(&one.name) == used);
        for used in uses.iter().filter(|used| !needs(used)) {
            found.push(Violation::new(TABLE, 1, format!("`{user}` does not use `{used}`, which the table allows")));
        }
    }
    found
}

fn forbidden_in(metadata: &Metadata) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in &metadata.members {
        let name = short(&package.name);
        if layer(name).is_none() && !is_beside(name) {
            let message = format!("the crate `{name}` is not in the table of layers ({TABLE})");
            found.push(Violation::new(&package.manifest, 1, message));
            continue;
        }
        if !folders(name).iter().any(|folder| folder == package.folder()) {
            found.push(Violation::new(&package.manifest, 1, format!("the crate `{name}` belongs in crates/{name}")));
        }
        for dependency in package.dependencies.iter().filter(|one| is_ours(&one.name, metadata)) {
            found.extend(forbidden(package, dependency));
        }
    }
    found
}

fn forbidden(package: &Package, dependency: &Dependency) -> Option<Violation> {
    let (user, used) = (short(&package.name), short(&dependency.name));
    let message = if is_beside(user) {
        return None;
    } else if is_beside(used) {
        if dependency.dev {
            return None;
        }
        let names: Vec<&str> = BESIDE.iter().map(|(name, _)| *name).collect();
        format!("`{user}` uses `{used}`: {} are for tests (dev-dependencies) only", names.join(", "))
    } else {
        let (user_layer, used_layer) = (layer(user)?, layer(used)?);
        let below = used_layer.level < user_layer.level;
        let named = user_layer.uses.contains(&used) || OPEN.contains(&used);
        if below && (named || dependency.dev) || dependency.dev && OPEN_TO_TESTS.contains(&used) {
            return None;
        }
        let (above, under) = (user_layer.level, used_layer.level);
        format!(
            "`{user}` (layer {above}) may not use `{used}` (layer {under}); allowed: {}",
            user_layer.uses.join(", ")
        )
    };
    Some(Violation::new(&package.manifest, 1, message))
}

fn is_ours(name: &str, metadata: &Metadata) -> bool {
    metadata.members.iter().any(|member| member.name == name)
}

/// The folders that a crate may stand in.
fn folders(name: &str) -> [String; 2] {
    [format!("crates/{name}"), name.to_owned()]
}

fn short(name: &str) -> &str {
    name.strip_prefix("lydian-").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[(&str, bool)]) -> Package {
        Package {
            name: format!("lydian-{name}"),
            manifest: format!("crates/{name}/Cargo.toml"),
            dependencies: uses
                .iter()
                .map(|(used, dev)| Dependency { name: format!("lydian-{used}"), dev: *dev })
                .collect(),
            roots: Vec::new(),
        }
    }

    fn messages(uses: &[(&str, bool)], user: &str) -> Vec<String> {
        let mut members = vec![package(user, uses)];
        members.extend(uses.iter().map(|(name, _)| package(name, &[])));
        forbidden_in(&Metadata { members, ..Metadata::default() }).into_iter().map(|one| one.message).collect()
    }

    #[test]
    fn dependencies_follow_the_table() {
        assert!(messages(&[("script", false), ("hash", false), ("primitives", false)], "consensus").is_empty());
        assert!(messages(&[("chain", false), ("lab", true)], "oracle").is_empty(), "beside the stack anything goes");
    }

    #[test]
    fn upwards_sideways_and_unnamed_are_refused() {
        assert_eq!(messages(&[("consensus", false)], "script").len(), 1, "upwards");
        assert_eq!(messages(&[("coins", false)], "chain").len(), 1, "sideways");
        assert_eq!(messages(&[("disk", false)], "script").len(), 1, "not named");
        assert_eq!(messages(&[("consensus", true)], "script").len(), 1, "upwards in tests");
    }

    #[test]
    fn tests_may_use_lower_crates_and_the_judge() {
        assert!(messages(&[("disk", true), ("oracle", true)], "script").is_empty());
        assert_eq!(messages(&[("oracle", false)], "script").len(), 1);
        assert!(messages(&[("chains", true)], "script").is_empty(), "generated chains are open to tests");
        assert_eq!(messages(&[("chains", false)], "engine").len(), 1);
        assert!(messages(&[("lab", true)], "engine").is_empty(), "and what runs other systems");
        assert_eq!(messages(&[("lab", false)], "engine").len(), 1);
        assert_eq!(messages(&[("report", true)], "engine").len(), 1, "reports are not");
    }

    #[test]
    fn an_unknown_crate_or_folder_is_named() {
        let stranger = Metadata { members: vec![package("common", &[])], ..Metadata::default() };
        assert!(forbidden_in(&stranger)[0].message.contains("not in the table"));
        let mut moved = package("hash", &[]);
        moved.manifest = "crates/hashing/Cargo.toml".into();
        assert_eq!(forbidden_in(&Metadata { members: vec![moved], ..Metadata::default() }).len(), 1);
    }

    #[test]
    fn a_crate_of_the_table_that_does_not_exist_is_named() {
        let manifest = |name: &str| match is_beside(name) {
            true => format!("{name}/Cargo.toml"),
            false => format!("crates/{name}/Cargo.toml"),
        };
        let all = LAYERS.iter().map(|layer| layer.name).chain(BESIDE.iter().map(|(name, _)| *name));
        let paths: Vec<String> = all.map(manifest).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        assert!(missing(&Tree::of(&files)).is_empty());
        let found = missing(&Tree::of(&files[1..]));
        assert_eq!(found[0].message, format!("the crate `{}` of the table does not exist", LAYERS[0].name));
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_permission_that_no_dependency_needs_is_named() {
        let table = [Layer { name: "net", level: 9, purpose: "", uses: &["p2p", "disk"] }];
        let unused_by = |uses: &[(&str, bool)]| {
            let members = vec![package("net", uses)];
            unused(&table, &Metadata { members, ..Metadata::default() })
        };
        assert!(unused_by(&[("p2p", false), ("disk", false), ("stdx", false)]).is_empty());
        let found = unused_by(&[("p2p", false), ("disk", true)]);
        assert_eq!(found[0].message, "`net` does not use `disk`, which the table allows", "tests need no permission");
        assert_eq!(found.len(), 1);
    }
}
