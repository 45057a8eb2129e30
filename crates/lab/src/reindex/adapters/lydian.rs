//! Lydian: the program beside this one, or any build by path.
//!
//! Input: perhaps a path. Output: an adapter. Options are Core's; the questions afterwards are commands of the program, which need no server.

use super::found;
use crate::error::LabError;
use crate::reindex::adapter::{Adapter, Job, ask};
use crate::reindex::results::Answer;
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
        let hint = "lydian: no such program beside lydian-lab; `make build` makes it, or give --node-path lydian=PATH";
        Ok(Lydian { program: found(path, beside.as_slice(), hint)? })
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
        let mut command = Command::new(&self.program);
        command.arg("--version");
        Ok(ask(command)?.lines().next().unwrap_or_default().to_owned())
    }

    fn reindex(&self, job: &Job) -> Command {
        let mut command = job.command(&self.program);
        command.args(job.place()).args(["-reindex=1", "-assumevalid=0", "-printtoconsole=0", "-logtimemicros=1"]);
        command.arg(format!("-stopatheight={}", job.height));
        command.arg(format!("-dbcache={}", job.cache_mib)).arg(format!("-par={}", job.threads));
        command.args(&job.more);
        command
    }

    fn answer(&self, job: &Job) -> Result<Answer, LabError> {
        let (info, set) = (self.ask(job, "info")?, self.ask(job, "utxohash")?);
        answer_of(&info, &set)
    }
}

/// Of `lydian info --json` and `lydian utxohash --json`.
fn answer_of(info: &Value, set: &Value) -> Result<Answer, LabError> {
    let form = |of: &Value| LabError::program("lydian", format!("unexpected answer: {of}"));
    let height = info["height"].as_u64().and_then(|height| u32::try_from(height).ok()).ok_or_else(|| form(info))?;
    let tip = info["tip"].as_str().ok_or_else(|| form(info))?.to_owned();
    let utxo_hash = set["hash_serialized_3"].as_str().ok_or_else(|| form(set))?.to_owned();
    Ok(Answer { height, tip, coins: set["coins"].as_u64(), utxo_hash })
}
