//! The Electrum servers that can be measured, by the name in `--servers`.
//!
//! Input: `KIND` or `KIND:LABEL` and optionally a path, otherwise that of `lab.toml`. Output: an adapter; for a server
//! that is not installed one that says how to get it. Cost: looking up a few files. Must never: install anything.

mod absent;
mod electrs;
mod electrumx;
mod esplora;
mod fulcrum;
mod lydian;

pub use absent::Absent;
pub use electrs::Electrs;
pub use electrumx::ElectrumX;
pub use esplora::Esplora;
pub use fulcrum::Fulcrum;
pub use lydian::Lydian;

use super::adapter::ElectrumServer;
use crate::error::LabError;
use crate::lab_toml;
use std::path::{Path, PathBuf};

/// Names of the kinds, for messages.
pub const KINDS: &[&str] = &["electrs", "electrumx", "fulcrum", "esplora", "lydian"];

/// `name` is a kind, or a kind and a label as in `electrs:old`, so that two builds of one server can be compared.
pub fn server(name: &str, path: Option<&Path>) -> Result<Box<dyn ElectrumServer>, LabError> {
    let kind = name.split(':').next().unwrap_or(name);
    let path = match path {
        Some(path) => Some(path),
        None => match lab_toml::active().path_of(kind) {
            Ok(path) => path,
            Err(reason) => return Ok(Box::new(Absent::new(reason.to_string(), &[]))),
        },
    };
    if let Some(path) = path
        && !path.is_file()
    {
        return Ok(Box::new(Absent::new(format!("{}: there is no such file", path.display()), &[])));
    }
    Ok(match kind {
        "electrs" => boxed(Electrs::locate(path), Electrs::NEEDS),
        "electrumx" => boxed(ElectrumX::locate(path), &[]),
        "fulcrum" => boxed(Fulcrum::locate(path), &[]),
        "esplora" => boxed(Esplora::locate(path), &[]),
        "lydian" => boxed(Lydian::locate(path), &[]),
        _ => return Err(LabError::Usage(format!("--servers: {name} is none of {}", KINDS.join(", ")))),
    })
}

/// `needs`: arguments without which a node cannot be below the server, even where it is not installed.
fn boxed<S: ElectrumServer + 'static>(
    found: Result<S, String>,
    needs: &'static [&'static str],
) -> Box<dyn ElectrumServer> {
    match found {
        Ok(server) => Box::new(server),
        Err(reason) => Box::new(Absent::new(reason, needs)),
    }
}

/// The given path, otherwise `ours` if it exists.
fn found(path: Option<&Path>, ours: &Path, hint: &str) -> Result<PathBuf, String> {
    let there = path.map(Path::to_path_buf).or_else(|| ours.is_file().then(|| ours.to_path_buf()));
    there.ok_or_else(|| hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_installed_says_so_and_what_it_needs() {
        let absent = boxed::<Electrs>(Err("not installed".to_owned()), Electrs::NEEDS);
        assert_eq!((absent.absent(), absent.daemon_arguments()), (Some("not installed"), Electrs::NEEDS));
    }
}
