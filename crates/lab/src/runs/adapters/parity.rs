//! Parity Bitcoin (`pbtc`): a node in Rust, developed from 2016 to 2020 and abandoned since.
//!
//! Input: the path of its program, which is in no registry. Output: an adapter. `pbtc import` reads Core's block files
//! in order, checks every script (`--verification-level=full`), and exits by itself, with exit code 0 even if it
//! failed: what it answers after a second start decides. Its RPC accepts only JSON-RPC 2.0, uses no password, and has
//! no `stop`. Taken from the source in paritytech/parity-bitcoin: `pbtc/cli.yml`, `pbtc/config.rs`. Must never: run on
//! a network other than regtest, where it would look for peers.

use super::found;
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job, version_line};
use crate::runs::rpc::{Server, free_port};
use lydian_chains::chain_files::Network;
use lydian_report::results::{Answer, Experiment};
use lydian_report::systems;
use serde_json::{Value, json};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

const KIND: &str = "parity";
const JSON_RPC: &str = "2.0";
const POLL: Duration = Duration::from_millis(100);
const POLLS_MAX: u32 = 600;

#[derive(Debug)]
pub struct Parity {
    program: PathBuf,
}

impl Parity {
    pub fn locate(path: Option<&Path>) -> Result<Parity, LabError> {
        Ok(Parity { program: found(path, &[], &systems::how(KIND))? })
    }

    fn command(&self, job: &Job) -> Command {
        let mut command = job.command(&self.program);
        command.args(["--regtest", "--btc", "--quiet", "--data-dir"]).arg(&job.data);
        command.arg(format!("--db-cache={}", job.cache_mib)).arg("--verification-level=full");
        command
    }
}

impl Adapter for Parity {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        version_line(&self.program)
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(KIND, experiment)
    }

    fn reindex(&self, job: &Job) -> Command {
        let mut command = self.command(job);
        command.args(&job.more).arg("import").arg(job.chain_folder().join("blocks"));
        command
    }

    /// Never used: see [`Adapter::cannot`].
    fn sync(&self, job: &Job) -> Command {
        let mut command = self.command(job);
        command.args(job.peers.iter().map(|peer| format!("--connect={peer}"))).args(&job.more);
        command
    }

    fn notes(&self) -> Vec<String> {
        systems::notes(KIND)
    }

    fn refuses(&self, network: &Network) -> Option<String> {
        (network.name != "regtest").then(|| format!("the lab runs it only on regtest, not on {}", network.name))
    }

    /// Starts the node again without peers, and kills it after the query: by then it has written everything.
    fn answer(&self, job: &Job) -> Result<Answer, LabError> {
        let mut command = self.command(job);
        command.args(["--host=127.0.0.1", "--jsonrpc-interface=127.0.0.1", "--jsonrpc-hosts=127.0.0.1"]);
        command.arg(format!("--port={}", free_port()?)).arg(format!("--jsonrpc-port={}", job.rpc_port));
        command.args(&job.more);
        let child = command
            .process_group(0)
            .spawn()
            .map_err(|error| LabError::program(self.program.display().to_string(), error))?;
        let mut running = Running(child);
        let server = Server { port: job.rpc_port, credentials: String::new() };
        for _ in 0..POLLS_MAX {
            std::thread::sleep(POLL);
            if running.0.try_wait().is_ok_and(|status| status.is_some()) {
                break;
            }
            if let Ok(hash) = server.call_as(JSON_RPC, "getbestblockhash", &json!([])) {
                return answer_of(&server.call_as(JSON_RPC, "getblock", &json!([hash, true]))?);
            }
        }
        Err(LabError::program(KIND, "started again, it does not answer"))
    }
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Parses `getblock` of the best block.
fn answer_of(block: &Value) -> Result<Answer, LabError> {
    let height = block["height"].as_u64().and_then(|height| u32::try_from(height).ok());
    let known = height.zip(block["hash"].as_str());
    let (height, tip) = known.ok_or_else(|| LabError::program(KIND, format!("unexpected answer: {block}")))?;
    Ok(Answer { height, tip: tip.to_owned(), coins: None, utxo_hash: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tip_needs_both_fields() {
        let answer = answer_of(&json!({"hash": "aa", "height": 7, "confirmations": 1})).unwrap();
        assert_eq!((answer.height, answer.tip.as_str()), (7, "aa"));
        assert!(answer_of(&json!({"hash": "aa", "height": null})).is_err());
    }
}
