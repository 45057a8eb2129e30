//! Gocoin: a node in Go, built from its repository (`go build ./client`); no package registry has it.
//!
//! Input: perhaps a path. Output: an adapter that takes part in nothing and says why. How it is run on a network that it has: `client -t -d FOLDER -c PEER` with
//! a `gocoin.conf` whose `LastTrustedBlock` is the genesis block, so that every script is checked (by default all below a block of its authors' choice are
//! trusted, and `-trust` trusts all); its text interface on stdin tells the tip and takes `quit`. The networks are two, main and testnet3, by the one switch
//! `-t` (`client/common/config.go`): what the lab makes is regtest. Must never: start the program.

use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::results::{Answer, Experiment};
use crate::runs::systems;
use std::path::{Path, PathBuf};
use std::process::Command;

const KIND: &str = "gocoin";

#[derive(Debug)]
pub struct Gocoin {
    program: PathBuf,
}

impl Gocoin {
    /// Needs no program: there is nothing to start.
    pub fn locate(path: Option<&Path>) -> Result<Gocoin, LabError> {
        Ok(Gocoin { program: path.unwrap_or(Path::new("")).to_owned() })
    }
}

impl Adapter for Gocoin {
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
