//! Blockcore: `Blockcore.Node`, which went on from Stratis in 2020.
//!
//! Input: the path of its program, which no registry holds. Output: an adapter. Options and what it cannot are read in block-core/blockcore; what it
//! shares with the other is in `dotnet.rs`. Must never: install anything.

use super::{dotnet, found};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::chain_files::Network;
use crate::runs::results::{Answer, Experiment};
use crate::runs::rpc::Server;
use crate::runs::systems;
use std::path::{Path, PathBuf};
use std::process::Command;

const KIND: &str = "blockcore";

#[derive(Debug)]
pub struct Blockcore {
    program: PathBuf,
}

impl Blockcore {
    pub fn locate(path: Option<&Path>) -> Result<Blockcore, LabError> {
        Ok(Blockcore { program: found(path, &[], &systems::how(KIND))? })
    }
}

impl Adapter for Blockcore {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        Ok(dotnet::version(&self.program))
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(KIND, experiment)
    }

    fn reindex(&self, job: &Job) -> Command {
        self.sync(job)
    }

    fn sync(&self, job: &Job) -> Command {
        let own = ["--chain=BTC".to_owned(), format!("-dbcache={}", job.cache_mib)];
        dotnet::sync(&self.program, job, &own)
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        Some(dotnet::tip(job))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        dotnet::stop(job)
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        Some(dotnet::server(job))
    }

    fn notes(&self) -> Vec<String> {
        systems::notes(KIND)
    }

    fn refuses(&self, network: &Network) -> Option<String> {
        dotnet::refuses(network)
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::program(KIND, "it is asked while it runs"))
    }
}
