//! The nodes we can measure, by the name in `--nodes`.
//!
//! Input: `KIND` or `KIND:LABEL` and perhaps a path. Output: an adapter. Cost: a look at some files. Nothing is installed here; what is not
//! there names the command that brings it.

mod absent;
mod bitcoind;
mod btcd;
mod core;
mod knots;
mod lydian;

pub use absent::Absent;
pub use bitcoind::Bitcoind;
pub use btcd::{Btcd, FOLDER as BTCD_FOLDER, PROGRAM as BTCD_PROGRAM, VERSION as BTCD_VERSION};
pub use knots::{FOLDER as KNOTS_FOLDER, Knots};
pub use lydian::Lydian;

use super::adapter::Adapter;
use crate::error::LabError;
use std::path::{Path, PathBuf};

/// Names of the kinds, for messages.
pub const KINDS: &[&str] = &["lydian", "bitcoind", "knots", "btcd"];

/// `name` is a kind, or a kind and a label as in `lydian:old`, so that two builds of one node can be compared.
pub fn adapter(name: &str, path: Option<&Path>) -> Result<Box<dyn Adapter>, LabError> {
    let kind = name.split(':').next().unwrap_or(name);
    if let Some(path) = path
        && !path.is_file()
    {
        return Err(LabError::Usage(format!("--node-path {name}={}: there is no such file", path.display())));
    }
    match kind {
        "lydian" => Ok(Box::new(Lydian::locate(path)?)),
        "bitcoind" => Ok(Box::new(Bitcoind::locate(path)?)),
        "btcd" => Ok(Box::new(Btcd::locate(path)?)),
        "knots" => Ok(Box::new(Knots::locate(path)?)),
        _ => Err(LabError::Usage(format!("--nodes: {name} is none of {}", KINDS.join(", ")))),
    }
}

/// The same; a node that is not here takes part as one that fails each run with the reason.
pub fn adapter_or_absent(name: &str, path: Option<&Path>) -> Result<Box<dyn Adapter>, LabError> {
    match adapter(name, path) {
        Err(LabError::NotInstalled(reason)) => Ok(Box::new(Absent::new(reason))),
        found => found,
    }
}

/// `$XDG_CACHE_HOME/lydian`, by default below `~/.cache`: what is kept outside the checkout.
pub fn cache_folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").unwrap_or_else(|| set("HOME").unwrap_or_else(std::env::temp_dir).join(".cache"));
    cache.join("lydian")
}

/// The path given, else the first of ours that is there.
fn found(path: Option<&Path>, ours: &[PathBuf], hint: &str) -> Result<PathBuf, LabError> {
    let there = path.map(Path::to_path_buf).or_else(|| ours.iter().find(|path| path.is_file()).cloned());
    there.ok_or_else(|| LabError::NotInstalled(hint.to_owned()))
}
