//! Floresta: a node without a UTXO set, built from its repository; the crate `florestad` 0.8.0 is a place-holder that prints "Hello, world!", the library
//! crates beside it are 0.0.0 and say "todo".
//!
//! Input: perhaps a path. Output: an adapter that takes part in nothing and says why. How it is run: `florestad --network regtest --data-dir FOLDER --connect PEER
//! --no-assume-utreexo`, with an assumevalid of none, so that every script is checked; `floresta-cli getblockchaininfo` tells the tip and `stop` ends it. It
//! keeps an accumulator in place of coins, so each block must come with a proof for its inputs (the service bit of utreexo): Bitcoin Core, Knots and Lydian
//! serve none, and no server of the lab can give it the chain. Must never: start the program.

use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::results::{Answer, Experiment};
use crate::runs::systems;
use std::path::{Path, PathBuf};
use std::process::Command;

const KIND: &str = "floresta";

#[derive(Debug)]
pub struct Floresta {
    program: PathBuf,
}

impl Floresta {
    /// Needs no program: there is nothing to start.
    pub fn locate(path: Option<&Path>) -> Result<Floresta, LabError> {
        Ok(Floresta { program: path.unwrap_or(Path::new("")).to_owned() })
    }
}

impl Adapter for Floresta {
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
