//! Runs a server from its start on an empty index until it answers for the whole chain.
//!
//! Later starts use the existing index. Input: a server, a job, the node below. Output: the cost of the build; a server
//! that is ready. It is ready when the protocol says so: the height of the tip, and an answer about a script rather
//! than an error. Cost: ten polls a second. Must never: treat a server as ready that only listens.

use super::adapter::{ElectrumServer, ServerJob};
use super::client::{Client, Fault, Place};
use super::daemon::Daemon;
use super::process::{Process, Shares, watch};
use super::protocol::{ScriptQuery, script_params};
use super::queries::Stop;
use crate::error::LabError;
use crate::runs::{log_end, system};
use lydian_chains::targets::Target;
use lydian_report::electrum::results::Build;
use lydian_report::results::rounded;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);
/// Timeout of one query while it is not known whether the server is ready.
const POLL_TIMEOUT: Duration = Duration::from_secs(10);
/// Time for the server to write its data and exit.
const STOP_PATIENCE: Duration = Duration::from_secs(120);

/// A server and how to start it.
#[derive(Debug)]
pub struct Setup<'a> {
    pub name: &'a str,
    pub server: &'a dyn ElectrumServer,
    pub job: ServerJob,
    pub daemon: &'a Daemon,
    /// Height of the tip of the chain.
    pub height: u32,
    /// The script queried to see whether the server answers about scripts.
    pub target: &'a Target,
    /// Time until it must be ready.
    pub timeout: Duration,
    pub protocol_max: &'a str,
    pub interrupted: &'a AtomicBool,
}

impl Setup<'_> {
    pub fn place(&self, timeout: Duration) -> Place {
        let (name, protocol_max) = (self.name.to_owned(), self.protocol_max.to_owned());
        Place { name, port: self.job.port, timeout, protocol_max }
    }

    pub fn output(&self) -> PathBuf {
        self.job.folder.join("output.txt")
    }

    /// The end of its log and output.
    pub fn log_end(&self) -> String {
        let output = self.output();
        log_end(self.server.log(&self.job).as_deref().unwrap_or(Path::new("")), &output)
    }

    pub fn start(&self) -> Result<Process, LabError> {
        Process::start(self.server.start(&self.job)?, &self.output())
    }

    pub fn stop(&self, process: &mut Process) -> Result<(), LabError> {
        process.stop(self.server.stop_signal(), STOP_PATIENCE)
    }

    /// Waits until the server is ready; returns the negotiated protocol version.
    pub fn wait(&self, process: &Process) -> Result<String, Stop> {
        let place = self.place(POLL_TIMEOUT);
        let mut client: Option<Client> = None;
        let mut last = String::new();
        while process.seconds() < self.timeout.as_secs_f64() {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(Stop::Interrupted);
            }
            if process.has_ended() {
                return Err(Stop::Failed("it ended before its index was built".to_owned()));
            }
            let asked = match client.take() {
                Some(client) => Ok(client),
                None => Client::connect(&place).map_err(|error| error.to_string()),
            };
            match asked.and_then(|mut asking| self.is_ready(&mut asking).map(|state| (asking, state))) {
                Ok((asking, None)) => return Ok(asking.protocol),
                Ok((asking, Some(state))) => {
                    last = state;
                    client = Some(asking);
                }
                Err(error) => last = error,
            }
            std::thread::sleep(POLL);
        }
        Err(Stop::Failed(format!("its index was not built within {} s: {last}", self.timeout.as_secs())))
    }

    /// `None` if the server is ready, otherwise its state. The header of the tip is queried first: electrs 0.12 panics
    /// if a client subscribes to headers before it has one. Any error other than the server's own breaks the
    /// connection.
    fn is_ready(&self, client: &mut Client) -> Result<Option<String>, String> {
        let protocol = client.protocol.clone();
        let questions = [
            ("blockchain.block.header".to_owned(), json!([self.height])),
            ("blockchain.headers.subscribe".to_owned(), json!([])),
            (ScriptQuery::Balance.method(&protocol), script_params(self.target, &protocol)),
        ];
        for (method, params) in questions {
            match client.call(&method, &params) {
                Ok(tip) if tip.get("height").is_some_and(|height| *height != self.height) => {
                    return Ok(Some(format!("its tip is at height {}", tip["height"])));
                }
                Ok(_) => {}
                Err(error) if matches!(error.fault, Fault::Refused { .. }) => return Ok(Some(error.to_string())),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(None)
    }
}

/// Builds the index and stops the server. `postings`: pairs of script and transaction in the chain.
pub fn build(setup: &Setup<'_>, postings: u64) -> Result<(Build, String), Stop> {
    let shares = Shares::now();
    let daemon_before = setup.daemon.process().used().cpu_seconds;
    let mut process = setup.start()?;
    let index = setup.server.index_folder(&setup.job);
    let ((ready, wall_seconds), watched) = watch(&process, &index, || {
        let ready = setup.wait(&process);
        (ready, process.seconds())
    });
    let protocol = ready?;
    let used = process.used();
    let daemon_cpu_seconds = setup.daemon.process().used().cpu_seconds - daemon_before;
    let machine = shares.until_now(used.cpu_seconds + daemon_cpu_seconds);
    setup.stop(&mut process)?;
    let build = Build {
        wall_seconds: rounded(wall_seconds),
        cpu_seconds: rounded(used.cpu_seconds),
        daemon_cpu_seconds: rounded(daemon_cpu_seconds),
        peak_rss_bytes: watched.peak_rss_bytes.max(used.peak_rss_bytes),
        index_bytes: system::disk_bytes(&index),
        daemon_index_bytes: setup.daemon.index_bytes(setup.server.daemon_arguments()),
        postings,
        network: None,
        is_disturbed: machine.is_disturbed(),
        samples: watched.samples,
    };
    Ok((build, protocol))
}
