//! Lydian: the program beside this one, or any build by path.
//!
//! Input: optionally a path. Output: an adapter. The options are Core's; the queries afterwards are commands of the
//! program, which need no server.

use super::found;
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job, ask, version_line};
use crate::runs::rpc::Server;
use lydian_disk::{Disk, RealDisk};
use lydian_report::results::{Answer, Stage, rounded};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub struct Lydian {
    program: PathBuf,
}

impl Lydian {
    pub fn locate(path: Option<&Path>) -> Result<Lydian, LabError> {
        let beside = std::env::current_exe().ok().and_then(|ours| Some(ours.parent()?.join("lydian")));
        let hint = "lydian: no such program beside lydian-lab; `make build` builds it, or give --node-path lydian=PATH";
        Ok(Lydian { program: found(path, beside.as_slice(), hint)? })
    }

    /// Checks every script of every block, up to the tip and no further.
    fn validate(&self, job: &Job, from: impl IntoIterator<Item = String>) -> Command {
        let mut command = job.command(&self.program);
        command.args(job.place()).args(from).args(job.any_work()).arg("-listen=0");
        command.args(job.if_full("-assumevalid=0")).args(["-printtoconsole=0", "-logtimemicros=1"]);
        command.arg("-server=0").arg(format!("-stopatheight={}", job.height));
        command.arg(format!("-dbcache={}", job.cache_mib)).arg(format!("-par={}", job.threads));
        command.args(&job.more);
        command
    }

    fn ask(&self, job: &Job, question: &str) -> Result<Value, LabError> {
        let mut command = Command::new(&self.program);
        command.args(job.place()).args(&job.more).args([question, "--json"]);
        let text = ask(command)?;
        let program = self.program.display().to_string();
        serde_json::from_str(&text).map_err(|error| LabError::program(program, format!("{question}: {error}")))
    }
}

impl Adapter for Lydian {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        version_line(&self.program)
    }

    /// Writes the owner file of docs/formats/files.md: without it the block files belong to another program, and
    /// Lydian does not reindex them.
    fn take_over(&self, job: &Job) -> Result<(), LabError> {
        let text = format!("lydian 1\nchain {}\n", job.network.name);
        Ok(RealDisk.write_whole(&job.chain_folder().join("blocks/owner"), text.as_bytes())?)
    }

    fn reindex(&self, job: &Job) -> Command {
        self.validate(job, ["-reindex=1", "-connect=0"].map(str::to_owned))
    }

    fn go_on(&self, job: &Job) -> Option<Command> {
        Some(self.validate(job, ["-connect=0".to_owned()]))
    }

    /// `-mocktime` sets only the time of day: timeouts for peers use another clock, which keeps running.
    fn sync(&self, job: &Job) -> Command {
        let peers = job.peers.iter().map(|peer| format!("-connect={peer}"));
        self.validate(job, peers.chain(job.time.map(|time| format!("-mocktime={time}"))))
    }

    fn serve(&self, job: &Job, port: u16) -> Option<Command> {
        let mut command = job.command(&self.program);
        command.args(job.place()).args(["-listen=1", "-connect=0"]).arg(format!("-bind=127.0.0.1:{port}"));
        command.args(job.any_work()).args(["-printtoconsole=0", "-server=1"]);
        command.arg(format!("-rpcport={}", job.rpc_port));
        command.arg(format!("-rpccookiefile={}", job.cookie().display()));
        command.arg(format!("-dbcache={}", job.cache_mib)).arg(format!("-par={}", job.threads));
        command.args(&job.more);
        Some(command)
    }

    fn stages(&self, job: &Job) -> Vec<Stage> {
        self.ask(job, "info").map_or(Vec::new(), |info| stages_of(&info))
    }

    fn offline(&self, job: &Job) -> Option<Command> {
        let mut command = job.command(&self.program);
        command.args(job.place()).args(job.any_work());
        command.args(["-listen=0", "-connect=0", "-assumevalid=0", "-printtoconsole=0"]);
        command.arg("-server=1").arg(format!("-rpcport={}", job.rpc_port));
        command.arg(format!("-rpccookiefile={}", job.cookie().display()));
        command.arg(format!("-dbcache={}", job.cache_mib)).arg(format!("-par={}", job.threads));
        command.args(&job.more);
        Some(command)
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        Server::with_cookie(job)
    }

    fn answer(&self, job: &Job) -> Result<Answer, LabError> {
        let (info, set) = (self.ask(job, "info")?, self.ask(job, "utxohash")?);
        answer_of(&info, &set)
    }
}

/// Combines `lydian info --json`, what the node recorded when it exited, and `lydian utxohash --json`, what it finds
/// when it opens its coins again.
fn answer_of(info: &Value, set: &Value) -> Result<Answer, LabError> {
    let tip = |from: &Value, name: &str| {
        let height = from["height"].as_u64().and_then(|height| u32::try_from(height).ok());
        let known = height.zip(from[name].as_str().map(str::to_owned));
        known.ok_or_else(|| LabError::program("lydian", format!("unexpected answer: {from}")))
    };
    let (height, hash) = tip(set, "bestblock")?;
    if (height, hash.clone()) != tip(info, "tip")? {
        let text = format!("its coins are those of height {height}, and `lydian info` reports another tip: {info}");
        return Err(LabError::program("lydian", text));
    }
    let utxo_hash = set["hash_serialized_3"].as_str().map(str::to_owned);
    if utxo_hash.is_none() {
        return Err(LabError::program("lydian", format!("unexpected answer: {set}")));
    }
    Ok(Answer { height, tip: hash, coins: set["coins"].as_u64(), utxo_hash })
}

/// Parses `lydian info --json`.
fn stages_of(info: &Value) -> Vec<Stage> {
    let stage = |stage: &Value| {
        Some(Stage {
            name: stage["stage"].as_str()?.to_owned(),
            cpu_seconds: rounded(stage["cpu_seconds"].as_f64()?),
            wall_seconds: stage["wall_seconds"].as_f64().map(rounded),
        })
    };
    info["run"]["stages"].as_array().map_or(Vec::new(), |stages| stages.iter().filter_map(stage).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_answers_must_have_the_same_tip() {
        let info = json!({"height": 3, "tip": "aa", "coins": 9});
        let set = json!({"height": 3, "bestblock": "aa", "coins": 5, "hash_serialized_3": "bb"});
        let expected = Answer { height: 3, tip: "aa".into(), coins: Some(5), utxo_hash: Some("bb".into()) };
        assert_eq!(answer_of(&info, &set).unwrap(), expected);
        for (name, value) in [("height", json!(4)), ("bestblock", json!("ab")), ("hash_serialized_3", json!(null))] {
            let mut other = set.clone();
            other[name] = value;
            assert!(answer_of(&info, &other).is_err(), "{name}");
        }
        assert!(answer_of(&json!({}), &set).is_err());
    }

    #[test]
    fn stages_have_their_times() {
        let stage = |name: &str, cpu: f64| json!({"stage": name, "wall_seconds": 9.0, "cpu_seconds": cpu});
        let info = json!({"run": {"stages": [stage("read", 0.25), stage("wait", 0.0), stage("settle", 3.5)]}});
        let found = stages_of(&info);
        let names: Vec<(&str, f64)> = found.iter().map(|stage| (stage.name.as_str(), stage.cpu_seconds)).collect();
        assert_eq!(names, [("read", 0.25), ("wait", 0.0), ("settle", 3.5)]);
        assert!(found.iter().all(|stage| stage.wall_seconds == Some(9.0)));
        assert!(stages_of(&json!({"run": null})).is_empty());
    }
}
