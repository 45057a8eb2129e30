//! Folder = crate = layer: a crate uses only the crates that the table allows it.
//!
//! Input: the direct dependencies of the workspace's packages; output: each dependency that the table in
//! `crate::layers` does not allow. Tests may use any lower crate and those beside the stack.

use super::Violation;
use crate::layers::{ALL, BESIDE, OPEN, OPEN_TO_TESTS, is_beside, layer};
use crate::metadata::{Dependency, Metadata, Package};

pub(super) fn check(metadata: &Metadata) -> Vec<Violation> {
    let mut found = Vec::new();
    for package in &metadata.members {
        let name = short(&package.name);
        if layer(name).is_none() && !is_beside(name) {
            let message = format!("the crate `{name}` is not in the table of layers (xtask/src/layers.rs)");
            found.push(Violation::new(&package.manifest, 1, message));
            continue;
        }
        if package.folder() != name && package.folder() != format!("crates/{name}") {
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
        let named = user_layer.uses == ALL || user_layer.uses.contains(&used) || OPEN.contains(&used);
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
        check(&Metadata { members, ..Metadata::default() }).into_iter().map(|one| one.message).collect()
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
        assert_eq!(messages(&[("lab", true)], "engine").len(), 1, "the lab is not");
    }

    #[test]
    fn an_unknown_crate_or_folder_is_named() {
        let stranger = Metadata { members: vec![package("common", &[])], ..Metadata::default() };
        assert!(check(&stranger)[0].message.contains("not in the table"));
        let mut moved = package("hash", &[]);
        moved.manifest = "crates/hashing/Cargo.toml".into();
        assert_eq!(check(&Metadata { members: vec![moved], ..Metadata::default() }).len(), 1);
    }
}
