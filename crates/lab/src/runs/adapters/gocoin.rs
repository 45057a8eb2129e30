//! Gocoin: `client` by path; it is in no package registry.
//!
//! Input: a path. Output: an adapter. It knows mainnet and testnet3 only, and syncs from a peer. Full validation: a
//! configuration file names the genesis block as its `LastTrustedBlock`; without a file it trusts the scripts below a
//! recent block. It is asked for its tip at `/status.json` of its web page, since its RPC is for miners, and is ended
//! by a signal: its option `-exitat` deadlocks. All coins are in memory, and its cache cannot be set. Its flags are
//! those of `client/common/config.go`, its page that of `client/usif/webui`.

use super::{asked, found};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::rpc;
use lydian_chains::chain_files::Network;
use lydian_report::results::{Answer, Experiment, Validation};
use lydian_report::systems;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const KIND: &str = "gocoin";
const FILE: &str = "lab.json";

#[derive(Debug)]
pub struct Gocoin {
    program: PathBuf,
}

impl Gocoin {
    pub fn locate(path: Option<&Path>) -> Result<Gocoin, LabError> {
        let hint = "gocoin: in no package registry; build github.com/piotrnar/gocoin and give --node-path gocoin=PATH of its client";
        Ok(Gocoin { program: found(path, &[], hint)? })
    }
}

impl Adapter for Gocoin {
    fn program(&self) -> &Path {
        &self.program
    }

    /// It has no option for its version; put it into the label, as in `gocoin:1.11.0`.
    fn version(&self) -> Result<String, LabError> {
        Ok("Gocoin of a version that it does not tell".to_owned())
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(KIND, experiment)
    }

    fn refuses(&self, network: &Network) -> Option<String> {
        let knows = ["main", "test"].contains(&network.name);
        (!knows).then(|| format!("Gocoin has no {}: it knows main and testnet3 alone", network.name))
    }

    fn reindex(&self, job: &Job) -> Command {
        self.sync(job)
    }

    /// Only its first peer: `-c` takes one.
    fn sync(&self, job: &Job) -> Command {
        let mut command = match job.validation {
            Validation::Full => {
                let text = format!("{{\"LastTrustedBlock\":\"{}\"}}", job.network.genesis_hash());
                asked::with_file(&self.program, job, FILE, "-cfg", &text)
            }
            // It makes the file with its defaults.
            Validation::Default => {
                let mut command = job.command(&self.program);
                command.arg("-cfg").arg(job.data.join(FILE));
                command
            }
        };
        command.env("GOMAXPROCS", job.threads.to_string());
        command.arg("-d").arg(job.data.join("gocoin"));
        if let Some(peer) = job.peers.first() {
            command.arg("-c").arg(peer.to_string());
        }
        if job.network.name == "test" {
            command.arg("-t");
        }
        command.args(["-l=false", "-nowallet", "-textui=false"]).arg(format!("-webui=127.0.0.1:{}", job.rpc_port));
        command.args(&job.more);
        command
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        Some(rpc::get(job.rpc_port, "/status.json").and_then(|status| answer_of(&status)))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        asked::end_by_signal(KIND, job)
    }

    fn notes(&self) -> Vec<String> {
        systems::notes(KIND)
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::program(KIND, "its tip is only queried while it runs"))
    }
}

fn answer_of(status: &Value) -> Result<Answer, LabError> {
    let height = status["Height"].as_u64().and_then(|height| u32::try_from(height).ok());
    let known = height.zip(status["Hash"].as_str());
    let (height, tip) = known.ok_or_else(|| LabError::program(KIND, format!("unexpected answer: {status}")))?;
    Ok(Answer { height, tip: tip.to_owned(), coins: None, utxo_hash: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tip_needs_both_fields() {
        let answer = answer_of(&json!({"Height": 4_312, "Hash": "aa", "Timestamp": 1, "Diff": 1.0})).unwrap();
        assert_eq!((answer.height, answer.tip.as_str(), answer.utxo_hash), (4_312, "aa", None));
        for wrong in [json!({"Hash": "aa"}), json!({"Height": -1, "Hash": "aa"}), json!({"Height": 3}), json!(null)] {
            assert!(answer_of(&wrong).is_err(), "{wrong}");
        }
    }
}
