//! electrs (romanz): built from its crate into the cache folder, or any binary by path.
//!
//! Input: optionally a path. Output: an adapter. From 0.12 on it reads blocks over the node's REST interface (Bitcoin
//! Core 31 or later) and fetches every transaction of a script's history from there for each query. It listens before
//! its index is built, and then answers only about heights. The node's password is in a file because electrs does not
//! accept it on the command line. Must never: install anything here.

use super::found;
use crate::electrum::adapter::{ElectrumServer, ServerJob};
use crate::electrum::daemon::REST;
use crate::error::LabError;
use crate::runs::adapter::ask_version;
use crate::runs::adapters::cache_folder;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of the crate `electrs`, below the cache folder.
const PROGRAM: &str = "electrs-0.12.0/bin/electrs";
const HINT: &str =
    "it is not installed; `lydian-lab peers install electrs` installs it, or give --server-path electrs=PATH";

#[derive(Debug)]
pub struct Electrs {
    program: PathBuf,
}

impl Electrs {
    /// What the node below must serve.
    pub const NEEDS: &'static [&'static str] = &[REST];

    pub fn locate(path: Option<&Path>) -> Result<Electrs, String> {
        Ok(Electrs { program: found(path, &cache_folder().join(PROGRAM), HINT)? })
    }
}

impl ElectrumServer for Electrs {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        Ok(format!("electrs {}", ask_version(&self.program)?.trim()))
    }

    fn notes(&self) -> Vec<String> {
        vec!["electrs keeps no coins by script: it fetches each transaction of a history from the node".to_owned()]
    }

    fn daemon_arguments(&self) -> &'static [&'static str] {
        Electrs::NEEDS
    }

    fn start(&self, job: &ServerJob) -> Result<Command, LabError> {
        let daemon = &job.daemon;
        let settings = job.write("electrs.toml", &format!("auth = \"{}:{}\"\n", daemon.user, daemon.password))?;
        let mut command = job.command(&self.program);
        command.arg("--skip-default-conf-files").arg("--conf").arg(settings);
        command.arg("--network").arg(network_of(daemon.network.name));
        command.arg("--daemon-dir").arg(&daemon.data);
        command.arg("--daemon-rpc-addr").arg(ServerJob::address(daemon.rpc_port));
        command.arg("--db-dir").arg(self.index_folder(job));
        command.arg("--electrum-rpc-addr").arg(ServerJob::address(job.port));
        command.arg("--monitoring-addr").arg(ServerJob::address(job.other_ports[0]));
        command.args(&job.more);
        Ok(command)
    }
}

fn network_of(name: &str) -> &str {
    match name {
        "main" => "bitcoin",
        "test" => "testnet",
        other => other,
    }
}
