//! The nodes that can be measured, by the name in `--nodes`.
//!
//! Input: `KIND` or `KIND:LABEL` and optionally a path. Output: an adapter. Cost: looking up a few files. Nothing is
//! installed here; the error for a missing node names the command that installs it.

mod absent;
mod asked;
mod bcoin;
mod bitcoind;
mod blockcore;
mod btcd;
mod configured;
mod core;
mod dotnet;
mod gocoin;
mod knots;
mod libbitcoin;
mod lydian;
mod mako;
mod parity;
mod stratis;
mod unable;

pub use absent::Absent;
pub use bcoin::{Bcoin, FOLDER as BCOIN_FOLDER, NODE as BCOIN_NODE, SCRIPT as BCOIN_SCRIPT, VERSION as BCOIN_VERSION};
pub use bitcoind::Bitcoind;
pub use btcd::{Btcd, FOLDER as BTCD_FOLDER, PROGRAM as BTCD_PROGRAM, VERSION as BTCD_VERSION};
pub use configured::Configured;
pub(super) use core::answer_of as core_answer;
pub use gocoin::Gocoin;
pub use knots::{FOLDER as KNOTS_FOLDER, Knots};
pub use libbitcoin::Libbitcoin;
pub use lydian::Lydian;
pub use mako::Mako;
pub use parity::Parity;

use super::adapter::Adapter;
use crate::error::LabError;
use crate::lab_toml::{self, LabFile};
use lydian_report::systems::{self, Role, SYSTEMS};
use std::path::{Path, PathBuf};
use unable::Unable;

/// Names of the nodes, those that `lab.toml` adds last.
pub fn kinds() -> Vec<&'static str> {
    let forks = lab_toml::active().forks().iter().map(|fork| fork.name.as_str());
    systems::kinds(Role::Node).into_iter().chain(forks).collect()
}

/// `name` is a kind, or a kind and a label as in `lydian:old`, so that two builds of one node can be compared. A given
/// path takes precedence over that of `lab.toml`, which takes precedence over the usual place.
pub fn adapter(name: &str, path: Option<&Path>) -> Result<Box<dyn Adapter>, LabError> {
    adapter_with(name, path, lab_toml::active())
}

/// The same with the caller's `lab.toml`.
pub fn adapter_with(name: &str, path: Option<&Path>, file: &LabFile) -> Result<Box<dyn Adapter>, LabError> {
    let kind = name.split(':').next().unwrap_or(name);
    if let Some(path) = path
        && !path.is_file()
    {
        return Err(LabError::Usage(format!("--node-path {name}={}: there is no such file", path.display())));
    }
    let (base, path, args) = match (file.fork(kind), path) {
        (Some(fork), path) => (fork.base, Some(path.map_or_else(|| fork.program.path(), Ok)?), fork.args.as_slice()),
        (None, Some(path)) => (kind, Some(path), file.args_of(kind)),
        (None, None) => (kind, file.path_of(kind)?, file.args_of(kind)),
    };
    let plain = known(base, path)
        .ok_or_else(|| LabError::Usage(format!("--nodes: {name} is none of {}", kinds().join(", "))))??;
    Ok(if args.is_empty() { plain } else { Box::new(Configured::new(plain, args)) })
}

/// One line per kind that can run; the others are in the table of systems only. `None` if there is no such node.
fn known(kind: &str, path: Option<&Path>) -> Option<Result<Box<dyn Adapter>, LabError>> {
    fn boxed<A: Adapter + 'static>(found: Result<A, LabError>) -> Option<Result<Box<dyn Adapter>, LabError>> {
        Some(found.map(|adapter| Box::new(adapter) as Box<dyn Adapter>))
    }
    match kind {
        "lydian" => boxed(Lydian::locate(path)),
        "bitcoind" => boxed(Bitcoind::locate(path)),
        "btcd" => boxed(Btcd::locate(path)),
        "bcoin" => boxed(Bcoin::locate(path)),
        "gocoin" => boxed(Gocoin::locate(path)),
        "mako" => boxed(Mako::locate(path)),
        "libbitcoin" => boxed(Libbitcoin::locate(path)),
        "knots" => boxed(Knots::locate(path)),
        "parity" => boxed(Parity::locate(path)),
        "stratis" => boxed(stratis::locate(path)),
        "blockcore" => boxed(blockcore::locate(path)),
        _ => {
            let system = SYSTEMS.iter().find(|system| system.kind == kind && system.role == Role::Node)?;
            system.never_runs().then_some(Ok(Box::new(Unable::new(system.kind, path))))
        }
    }
}

/// Like [`adapter`], but a node that is not installed takes part as one that fails each run with the reason.
pub fn adapter_or_absent(name: &str, path: Option<&Path>) -> Result<Box<dyn Adapter>, LabError> {
    match adapter(name, path) {
        Err(LabError::NotInstalled(reason)) => Ok(Box::new(Absent::new(reason))),
        found => found,
    }
}

/// `$XDG_CACHE_HOME/lydian`, by default below `~/.cache`: for files kept outside the checkout.
pub fn cache_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").unwrap_or_else(|| set("HOME").unwrap_or_else(std::env::temp_dir).join(".cache"));
    cache.join("lydian")
}

/// The given path, otherwise the first of `ours` that exists.
fn found(path: Option<&Path>, ours: &[PathBuf], hint: &str) -> Result<PathBuf, LabError> {
    let there = path.map(Path::to_path_buf).or_else(|| ours.iter().find(|path| path.is_file()).cloned());
    there.ok_or_else(|| LabError::NotInstalled(hint.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every node of the table has an adapter, whether or not it is installed.
    #[test]
    fn every_node_of_the_table_has_its_adapter() {
        for kind in systems::kinds(Role::Node) {
            match adapter_with(kind, None, &LabFile::default()) {
                Ok(_) | Err(LabError::NotInstalled(_)) => {}
                Err(error) => panic!("{kind}: {error}"),
            }
        }
    }

    #[test]
    fn a_path_given_goes_before_that_of_the_file() {
        let ours = std::env::current_exe().unwrap();
        let (one, other) = (ours.display().to_string(), "/bin/sh");
        let text = format!(
            "[paths]\nbtcd = {one:?}\n[[fork]]\nname = \"mine\"\nbase = \"core\"\npath = {one:?}\nargs = [\"-x\"]\n"
        );
        let file = LabFile::parse(&text, Path::new("lab.toml")).unwrap();
        let program = |name: &str, path: Option<&str>| {
            adapter_with(name, path.map(Path::new), &file).unwrap().program().display().to_string()
        };
        assert_eq!((program("btcd", None), program("btcd:old", Some(other))), (one.clone(), other.to_owned()));
        assert_eq!((program("mine", None), program("mine:old", Some(other))), (one, other.to_owned()));
        let error = adapter_with("theirs", None, &file).unwrap_err().to_string();
        assert!(error.starts_with("--nodes: theirs is none of bitcoind, knots"), "{error}");
    }
}
