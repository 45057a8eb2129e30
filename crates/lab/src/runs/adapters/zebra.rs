//! Zebra BTC: a fork of the Zcash Foundation's node that was to become one of Bitcoin, left in 2022 before it validated anything.
//!
//! Input: perhaps a path. Output: an adapter that takes part in nothing and says why: its table of networks has no regtest
//! (`zebra-chain/src/parameters/network.rs`), and its README lists scripts among what is missing. Must never: start the program.

use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::results::{Answer, Experiment};
use crate::runs::systems;
use std::path::{Path, PathBuf};
use std::process::Command;

const KIND: &str = "zebra";

#[derive(Debug)]
pub struct Zebra {
    program: PathBuf,
}

impl Zebra {
    /// Needs no program: there is nothing to start.
    pub fn locate(path: Option<&Path>) -> Result<Zebra, LabError> {
        Ok(Zebra { program: path.unwrap_or(Path::new("")).to_owned() })
    }
}

impl Adapter for Zebra {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        Err(LabError::NotInstalled(systems::how(KIND)))
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(KIND, experiment)
    }

    fn reindex(&self, job: &Job) -> Command {
        job.command(&self.program)
    }

    fn sync(&self, job: &Job) -> Command {
        job.command(&self.program)
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::NotInstalled(systems::how(KIND)))
    }
}
