//! `lydian-lab peers install NAME...`: installs other systems from the package sources that this machine already uses;
//! one small file for each.
//!
//! Input: names. Output: programs in the cache directory, and their versions. An installation is made next to its final
//! path and moved there when it is complete. It must never change the system's own packages, or leave an incomplete
//! installation at the final path.

mod bcoin;
mod btcd;
pub mod electrs;
pub mod electrumx;
mod knots;
pub mod list;

use crate::error::LabError;
use crate::runs::adapter::ask;
use crate::runs::adapters::{adapter, cache_folder};
use crate::runs::system::{create_dir, remove_dir};
use lydian_report::systems;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs a system into the cache directory, even if it is installed already.
pub type Install = fn(print_progress: &mut dyn FnMut(&str)) -> Result<(), LabError>;

/// How one system is installed.
#[derive(Clone, Copy, Debug)]
pub struct Installer {
    /// As in the table of systems.
    pub kind: &'static str,
    pub install: Install,
    /// The version reported by the installed program; [`LabError::NotInstalled`] if there is none.
    pub version: fn() -> Result<String, LabError>,
}

/// One line per system.
pub const INSTALLERS: &[Installer] = &[
    Installer { kind: "knots", install: knots::fetch, version: || of_node("knots") },
    Installer { kind: "btcd", install: btcd::fetch, version: || of_node("btcd") },
    Installer { kind: "bcoin", install: bcoin::fetch, version: || of_node("bcoin") },
    Installer { kind: "electrs", install: electrs::fetch, version: electrs::version },
    Installer { kind: "electrumx", install: electrumx::fetch, version: electrumx::version },
];

/// Installs a system if it is missing, and returns its version.
pub fn install(name: &str, print_progress: &mut dyn FnMut(&str)) -> Result<String, LabError> {
    let installer = installer(name)?;
    if let Ok(version) = (installer.version)() {
        return Ok(version);
    }
    (installer.install)(print_progress)?;
    (installer.version)()
}

/// Installs several systems. An unknown name is an error before anything is downloaded; a failure does not affect the
/// others.
pub fn install_all(names: &[String], print_progress: &mut dyn FnMut(&str)) -> Result<Vec<Installed>, LabError> {
    for name in names {
        installer(name)?;
    }
    Ok(names.iter().map(|name| Installed { name: name.clone(), version: install(name, print_progress) }).collect())
}

/// The result for one name.
#[derive(Debug)]
pub struct Installed {
    pub name: String,
    pub version: Result<String, LabError>,
}

fn installer(name: &str) -> Result<&'static Installer, LabError> {
    INSTALLERS.iter().find(|installer| installer.kind == name).ok_or_else(|| {
        let known: Vec<&str> = INSTALLERS.iter().map(|installer| installer.kind).collect();
        let why = systems::of(name).map_or_else(
            || format!("peers install: {name} is no system that the lab knows"),
            |system| format!("peers install: {name} cannot be installed: {}", system.how.text(system.kind)),
        );
        LabError::Usage(format!("{why}; these can be installed: {}", known.join(", ")))
    })
}

fn of_node(kind: &str) -> Result<String, LabError> {
    adapter(kind, None)?.version()
}

/// Checks for a tool without which an installation would fail with an unclear error.
pub(crate) fn needs(tool: &str, argument: &str, from: &str) -> Result<(), LabError> {
    let mut command = Command::new(tool);
    command.arg(argument);
    let missing =
        |error| LabError::NotInstalled(format!("{tool} is needed and does not run: get it from {from} ({error})"));
    ask(command).map(|_| ()).map_err(missing)
}

/// A directory next to the final one, which it replaces when it is complete.
#[derive(Debug)]
pub(crate) struct Unfinished {
    path: PathBuf,
    last: PathBuf,
}

impl Unfinished {
    /// Creates an empty directory for what will be `name` in the cache directory.
    pub(crate) fn new(name: &str) -> Result<Unfinished, LabError> {
        let (path, last) = (cache_folder().join(format!("{name}.new")), cache_folder().join(name));
        remove_dir(&path)?;
        create_dir(&path)?;
        Ok(Unfinished { path, last })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Checks for a file that a successful installation must have created.
    pub(crate) fn must_hold(&self, program: &str, file: &str) -> Result<(), LabError> {
        match self.path.join(file).is_file() {
            true => Ok(()),
            false => Err(LabError::program(program, format!("{} holds no {file}", self.path.display()))),
        }
    }

    pub(crate) fn finish(self) -> Result<(), LabError> {
        remove_dir(&self.last)?;
        std::fs::rename(&self.path, &self.last).map_err(|error| LabError::io("rename", &self.path, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_report::systems::{How, SYSTEMS, System};

    #[test]
    fn only_what_can_be_installed_is() {
        let error = install("gocoin", &mut |_| ()).unwrap_err().to_string();
        assert!(
            error.contains("gocoin cannot be installed") && error.contains("github.com/piotrnar/gocoin"),
            "{error}"
        );
        let names = ["knots".to_owned(), "bitcion".to_owned()];
        let error = install_all(&names, &mut |_| panic!("nothing may be fetched")).unwrap_err().to_string();
        assert!(error.contains("bitcion is no system") && error.contains("knots, btcd"), "{error}");
    }

    #[test]
    fn a_missing_tool_is_named_with_its_source() {
        let error = needs("no-such-tool-anywhere", "--version", "Debian's package none").unwrap_err().to_string();
        assert!(
            error.contains("no-such-tool-anywhere is needed") && error.contains("Debian's package none"),
            "{error}"
        );
        needs("sh", "-c", "anywhere").unwrap_err();
        needs("true", "--version", "coreutils").unwrap();
    }

    #[test]
    fn every_installer_has_its_system() {
        for installer in INSTALLERS {
            let is_his = |system: &&System| system.kind == installer.kind && matches!(system.how, How::Install(_));
            assert_eq!(SYSTEMS.iter().filter(is_his).count(), 1, "{}", installer.kind);
        }
        for system in SYSTEMS.iter().filter(|system| matches!(system.how, How::Install(_))) {
            assert!(INSTALLERS.iter().any(|installer| installer.kind == system.kind), "{}", system.kind);
        }
    }
}
