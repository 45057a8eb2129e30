//! What Stratis and Blockcore have in common: a C# node from one source, with Bitcoin Core's names for most options.
//!
//! Input: a program, or the `.dll` that `dotnet` starts, and a job. Output: arguments for a sync with every script
//! checked; the tip while it runs. The node does not exit by itself: its tip is queried and it is stopped there.
//! It reports no hash of its UTXO set. On regtest it assumes nothing valid, has no checkpoints (`BitcoinRegTest.cs`)
//! and does not look for peers. Must never: run on another network, where it would look for peers.

use super::found;
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::rpc::{Server, free_port};
use crate::runs::system::read_proc;
use lydian_chains::chain_files::Network;
use lydian_report::results::{Answer, Experiment};
use lydian_report::systems;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

const USER: &str = "lab";
const PASSWORD: &str = "lab";

/// Stratis or Blockcore.
#[derive(Debug)]
pub(super) struct Dotnet {
    kind: &'static str,
    program: PathBuf,
    /// The options that only this one has.
    own: fn(&Job) -> Vec<String>,
}

impl Dotnet {
    pub(super) fn locate(
        kind: &'static str,
        path: Option<&Path>,
        own: fn(&Job) -> Vec<String>,
    ) -> Result<Dotnet, LabError> {
        Ok(Dotnet { kind, program: found(path, &[], &systems::how(kind))?, own })
    }
}

impl Adapter for Dotnet {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        Ok(version(&self.program))
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(self.kind, experiment)
    }

    fn reindex(&self, job: &Job) -> Command {
        self.sync(job)
    }

    fn sync(&self, job: &Job) -> Command {
        sync(&self.program, job, &(self.own)(job))
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        Some(tip(job))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        stop(job)
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        Some(server(job))
    }

    fn notes(&self) -> Vec<String> {
        systems::notes(self.kind)
    }

    fn refuses(&self, network: &Network) -> Option<String> {
        refuses(network)
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::program(self.kind, "its tip is only queried while it runs"))
    }
}

/// The options that both have, then those that only one has, then those of the user.
fn sync(program: &Path, job: &Job, own: &[String]) -> Command {
    let mut command = if program.extension().is_some_and(|end| end == "dll") {
        let mut command = job.command("dotnet");
        command.arg(program);
        command
    } else {
        job.command(program)
    };
    // It uses as many threads as .NET reports cores.
    command.env("DOTNET_PROCESSOR_COUNT", job.threads.to_string());
    let mut data = OsString::from("-datadir=");
    data.push(&job.data);
    command.arg(data).args(["-regtest=1", "-listen=0", "-iprangefiltering=0", "-checkpoints=0"]);
    command.args(job.peers.iter().map(|peer| format!("-connect={peer}")));
    command.args(["-server=1", "-rpcbind=127.0.0.1", "-rpcallowip=127.0.0.1"]);
    command.arg(format!("-rpcuser={USER}")).arg(format!("-rpcpassword={PASSWORD}"));
    command.arg(format!("-rpcport={}", job.rpc_port));
    // The port of its second server, which cannot be disabled; if no port is free, the node itself reports it.
    command.arg(format!("-apiport={}", free_port().unwrap_or(0)));
    command.args(own).args(&job.more);
    command
}

fn server(job: &Job) -> Server {
    Server { port: job.rpc_port, credentials: format!("{USER}:{PASSWORD}") }
}

fn tip(job: &Job) -> Result<Answer, LabError> {
    let server = server(job);
    let height = server.call("getblockcount", &json!([]))?;
    let hash = server.call("getblockhash", &json!([height]))?;
    answer_of(&height, &hash)
}

fn stop(job: &Job) -> Result<(), LabError> {
    server(job).call("stop", &json!([])).map(|_| ())
}

/// On another network it would look for peers.
fn refuses(network: &Network) -> Option<String> {
    (network.name != "regtest").then(|| format!("the lab runs it only on regtest, not on {}", network.name))
}

/// The program has no option for its version; the file that the .NET build writes beside it (`NAME.deps.json`) contains
/// it.
fn version(program: &Path) -> String {
    let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // For a program without `.dll`, the whole name, including dots, precedes `.deps.json`.
    let names = [program.file_name().unwrap_or_default().to_string_lossy().into_owned(), name];
    let beside = |name: &String| program.with_file_name(format!("{name}.deps.json"));
    let found = names.iter().find_map(|name| version_in(&read_proc(&beside(name).to_string_lossy())?, name));
    found.unwrap_or_else(|| "of a version that it does not tell".to_owned())
}

/// Finds `NAME/VERSION` among the libraries.
fn version_in(text: &str, name: &str) -> Option<String> {
    let file: Value = serde_json::from_str(text).ok()?;
    let library = file["libraries"].as_object()?.keys().find(|key| key.starts_with(&format!("{name}/")))?;
    Some(library.replace('/', " "))
}

fn answer_of(height: &Value, hash: &Value) -> Result<Answer, LabError> {
    let known = height.as_u64().and_then(|height| u32::try_from(height).ok()).zip(hash.as_str());
    let (height, tip) =
        known.ok_or_else(|| LabError::program("its RPC", format!("unexpected answers: {height} and {hash}")))?;
    Ok(Answer { height, tip: tip.to_owned(), coins: None, utxo_hash: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tip_needs_height_and_hash() {
        let answer = answer_of(&json!(7), &json!("aa")).unwrap();
        assert_eq!((answer.height, answer.tip.as_str()), (7, "aa"));
        assert!(answer_of(&json!(-1), &json!("aa")).is_err() && answer_of(&json!(7), &json!(null)).is_err());
    }

    #[test]
    fn the_version_is_that_of_the_program_and_not_of_a_library() {
        let text = r#"{"libraries":{"NBitcoin/3.0.0":{},"Stratis.BitcoinD/3.0.6":{}}}"#;
        assert_eq!(version_in(text, "Stratis.BitcoinD").as_deref(), Some("Stratis.BitcoinD 3.0.6"));
        assert_eq!((version_in(text, "Stratis"), version_in("{", "x")), (None, None));
    }
}
