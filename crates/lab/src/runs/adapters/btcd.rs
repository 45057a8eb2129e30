//! btcd: built from its Go module into the cache folder, or any binary by path.
//!
//! Input: optionally a path. Output: an adapter. btcd deletes its regtest database at every start. Therefore its tip is
//! queried while it runs and it is stopped there; it cannot be queried afterwards, cannot rebuild from files, and
//! serves only blocks that it received in the same run. It reports no hash of its UTXO set. Full validation:
//! `--nocheckpoints`; there is no assumevalid. `--nocfilters`: by default it also builds the filters of BIP-0157, which
//! no other node here does. Must never: install anything.

use super::{cache_folder, found};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job, version_line};
use crate::runs::rpc::Server;
use lydian_chains::chain_files::Network;
use lydian_report::results::{Answer, Experiment};
use lydian_report::systems;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of the Go module `github.com/btcsuite/btcd`.
pub const VERSION: &str = "v0.25.0";
/// Below the cache folder.
pub const FOLDER: &str = "btcd-0.25.0";
pub const PROGRAM: &str = "btcd";
/// Credentials of its RPC server, which listens on loopback during a run.
const USER: &str = "lab";
const PASSWORD: &str = "lab";

#[derive(Debug)]
pub struct Btcd {
    program: PathBuf,
}

impl Btcd {
    pub fn locate(path: Option<&Path>) -> Result<Btcd, LabError> {
        let hint =
            "btcd: it is not installed; `lydian-lab peers install btcd` installs it, or give --node-path btcd=PATH";
        Ok(Btcd { program: found(path, &[cache_folder().join(FOLDER).join(PROGRAM)], hint)? })
    }

    /// Regtest, no peer discovery, data and log in the data directory, RPC on loopback; the other settings are the
    /// caller's.
    pub fn command(&self, job: &Job) -> Command {
        let mut command = job.command(&self.program);
        let in_data = |option: &str, name: &str| {
            let mut argument = OsString::from(option);
            argument.push(job.data.join(name));
            argument
        };
        // The default is the user's file.
        command.arg(in_data("--configfile=", "none.conf"));
        command.arg(in_data("--datadir=", "data")).arg(in_data("--logdir=", "logs"));
        command.args(["--regtest", "--nodnsseed", "--nocfilters", "--nostalldetect", "--notls"]);
        command.args(job.if_full("--nocheckpoints"));
        command.arg(format!("--rpcuser={USER}")).arg(format!("--rpcpass={PASSWORD}"));
        command.arg(format!("--rpclisten=127.0.0.1:{}", job.rpc_port));
        command
    }

    /// Its RPC server.
    pub fn server(job: &Job) -> Server {
        Server { port: job.rpc_port, credentials: format!("{USER}:{PASSWORD}") }
    }
}

impl Adapter for Btcd {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        version_line(&self.program)
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from("btcd", experiment)
    }

    fn refuses(&self, network: &Network) -> Option<String> {
        let sentence = format!("the lab runs btcd only on regtest, not on {}", network.name);
        (network.name != "regtest").then_some(sentence)
    }

    fn reindex(&self, job: &Job) -> Command {
        self.command(job)
    }

    /// The number of script threads cannot be set: Go uses as many as there are cores, so `-par` becomes `GOMAXPROCS`.
    fn sync(&self, job: &Job) -> Command {
        let mut command = self.command(job);
        command.env("GOMAXPROCS", job.threads.to_string());
        command.arg("--nolisten").args(job.peers.iter().map(|peer| format!("--connect={peer}")));
        command.arg(format!("--utxocachemaxsize={}", job.cache_mib)).args(&job.more);
        command
    }

    fn offline(&self, job: &Job) -> Option<Command> {
        let mut command = self.command(job);
        command.env("GOMAXPROCS", job.threads.to_string());
        command.arg("--nolisten").arg(format!("--utxocachemaxsize={}", job.cache_mib)).args(&job.more);
        Some(command)
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        Some(Btcd::server(job))
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        let server = Btcd::server(job);
        Some(server.call("getbestblock", &json!([])).and_then(|best| answer_of(&best)))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        Btcd::server(job).call("stop", &json!([])).map(|_| ())
    }

    fn notes(&self) -> Vec<String> {
        systems::notes("btcd")
    }

    fn log(&self, job: &Job) -> PathBuf {
        job.data.join("logs/regtest/btcd.log")
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::program("btcd", "it deletes its database when it starts again"))
    }
}

/// Parses btcd's own `getbestblock`.
fn answer_of(best: &Value) -> Result<Answer, LabError> {
    let height = best["height"].as_u64().and_then(|height| u32::try_from(height).ok());
    let known = height.zip(best["hash"].as_str());
    let (height, tip) = known.ok_or_else(|| LabError::program("btcd", format!("unexpected answer: {best}")))?;
    Ok(Answer { height, tip: tip.to_owned(), coins: None, utxo_hash: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tip_needs_both_fields() {
        let answer = answer_of(&json!({"hash": "aa", "height": 7})).unwrap();
        assert_eq!((answer.height, answer.tip.as_str(), answer.utxo_hash), (7, "aa", None));
        assert!(answer_of(&json!({"hash": "aa"})).is_err() && answer_of(&json!({"height": 7})).is_err());
    }
}
