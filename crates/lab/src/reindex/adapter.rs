//! What the runner must know of a node, and nothing more: one small file a node in `adapters/`.
//!
//! Input: a job. Output: a command that validates everything and ends by itself at the tip; afterwards what the node thinks it ended with. Every
//! node of today ends by itself (`-stopatheight`), so the runner asks nothing of it while it runs and measures nothing but its work.

use super::chain_files::Network;
use super::results::Answer;
use crate::error::LabError;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A node.
pub trait Adapter: Debug {
    fn program(&self) -> &Path;

    /// As the node itself tells it.
    fn version(&self) -> Result<String, LabError>;

    /// Rebuilds everything from the block files in the data directory, checks every script, and ends at the tip.
    fn reindex(&self, job: &Job) -> Command;

    /// Asks the node for its tip and UTXO hash; starts it again if it must.
    fn answer(&self, job: &Job) -> Result<Answer, LabError>;
}

/// One run.
#[derive(Clone, Debug)]
pub struct Job {
    pub data: PathBuf,
    pub network: &'static Network,
    pub height: u32,
    /// Threads that check scripts, the main one included, as `-par` counts.
    pub threads: usize,
    pub cache_mib: u64,
    /// Arguments that the user adds to every start.
    pub more: Vec<String>,
}

impl Job {
    /// Where Core's and our nodes keep `blocks/` and `debug.log`.
    pub fn chain_folder(&self) -> PathBuf {
        self.data.join(self.network.folder)
    }

    pub fn log(&self) -> PathBuf {
        self.chain_folder().join("debug.log")
    }

    /// A command without input, whose words are thrown away: the log has them.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// `-datadir` and `-chain`.
    pub fn place(&self) -> [OsString; 2] {
        let mut data = OsString::from("-datadir=");
        data.push(&self.data);
        [data, format!("-chain={}", self.network.name).into()]
    }
}

/// What a program prints when it is asked for something short.
pub fn ask(mut command: Command) -> Result<String, LabError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| LabError::program(&program, error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::program(program, format!("{}: {said}", output.status)))
}
