//! ElectrumX: its PyPI package `e-x` in a virtual environment of its own.
//!
//! Output: the environment in the cache directory. The scripts written by pip contain the absolute path of their
//! interpreter, so they are rewritten for the final path. LevelDB, because the RocksDB binding needs a version that
//! Debian does not have. Cost: half a minute, 50 MB. It needs Python 3.10 with venv and pip.

use super::{Unfinished, needs};
use crate::error::LabError;
use crate::runs::adapter::ask;
use crate::runs::adapters::cache_folder;
use crate::runs::system::read_proc;
use lydian_disk::{Disk, RealDisk};
use std::path::PathBuf;
use std::process::Command;

const PACKAGE: &str = "e-x[leveldb]==2.0.0";
const FOLDER: &str = "electrumx-2.0.0";
const PYTHON: &str = "bin/python3";
const PROGRAM: &str = "bin/electrumx_server";
/// Python code; the server itself has no option that prints its version.
const VERSION: &str = "import electrumx; print(electrumx.version)";

/// The path of the program, installed or not; it reads its settings from the environment.
pub fn program() -> PathBuf {
    cache_folder().join(FOLDER).join(PROGRAM)
}

pub(super) fn fetch(print_progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    needs("python3", "--version", "Debian's packages python3 and python3-venv")?;
    let unfinished = Unfinished::new(FOLDER)?;
    print_progress("installing ElectrumX 2.0.0 with pip into an environment of its own");
    let mut command = Command::new("python3");
    command.args(["-m", "venv"]).arg(unfinished.path());
    ask(command)?;
    let mut command = Command::new(unfinished.path().join(PYTHON));
    command.args(["-m", "pip", "install", "--quiet", PACKAGE]);
    ask(command)?;
    unfinished.must_hold("pip install", PROGRAM)?;
    let script = unfinished.path().join(PROGRAM);
    let text = read_proc(&script.to_string_lossy()).unwrap_or_default();
    let last = cache_folder().join(FOLDER).display().to_string();
    let moved = text.replace(&unfinished.path().display().to_string(), &last);
    if moved == text {
        let text = format!("{} names no interpreter in its environment", script.display());
        return Err(LabError::program("pip install", text));
    }
    let failed = |error| LabError::io("set the mode of", &script, error);
    let mode = std::fs::metadata(&script).map_err(failed)?.permissions();
    RealDisk.write_whole(&script, moved.as_bytes())?;
    std::fs::set_permissions(&script, mode).map_err(failed)?;
    unfinished.finish()
}

/// The version reported by its package.
pub(super) fn version() -> Result<String, LabError> {
    let python = cache_folder().join(FOLDER).join(PYTHON);
    if !python.is_file() || !program().is_file() {
        return Err(LabError::NotInstalled(
            "electrumx: it is not installed; `lydian-lab peers install electrumx` does it".into(),
        ));
    }
    let mut command = Command::new(python);
    command.args(["-c", VERSION]);
    Ok(ask(command)?.trim().to_owned())
}
