//! electrs: built from its crate, with sums checked by cargo, and with the dependencies locked by its authors.
//!
//! Output: the program in the cache directory. Cost: twenty minutes of one core, most of it RocksDB. It needs cargo,
//! clang and libclang.

use super::{Unfinished, needs};
use crate::error::LabError;
use crate::runs::adapter::{ask, ask_version};
use crate::runs::adapters::cache_folder;
use crate::runs::system::remove_dir;
use std::path::PathBuf;
use std::process::Command;

const VERSION: &str = "0.12.0";
const FOLDER: &str = "electrs-0.12.0";
const PROGRAM: &str = "bin/electrs";

/// The path of the program, installed or not.
pub fn program() -> PathBuf {
    cache_folder().join(FOLDER).join(PROGRAM)
}

pub(super) fn fetch(print_progress: &mut dyn FnMut(&str)) -> Result<(), LabError> {
    needs("cargo", "--version", "rustup.rs")?;
    needs("clang", "--version", "Debian's packages clang and libclang-dev")?;
    let unfinished = Unfinished::new(FOLDER)?;
    print_progress(&format!("building electrs {VERSION} with cargo: some ten minutes"));
    let mut command = Command::new("cargo");
    command.args(["install", "electrs", "--version", VERSION, "--locked", "--root"]).arg(unfinished.path());
    // Separate from the caller's target directory, and without the checkout's older toolchain.
    command.arg("--target-dir").arg(unfinished.path().join("target")).current_dir(unfinished.path());
    ask(command)?;
    unfinished.must_hold("cargo install", PROGRAM)?;
    remove_dir(&unfinished.path().join("target"))?;
    unfinished.finish()
}

/// The version printed by the program.
pub(super) fn version() -> Result<String, LabError> {
    let program = program();
    if !program.is_file() {
        return Err(LabError::NotInstalled(
            "electrs: it is not installed; `lydian-lab peers install electrs` does it".into(),
        ));
    }
    Ok(format!("electrs {}", ask_version(&program)?.trim()))
}
