//! What the runner needs to know about a node; each node has a small file in `adapters/`.
//!
//! Input: a job. Output: a command that validates everything, from block files or from peers; afterwards the state that
//! the node reports. If the node can exit by itself at the tip (`-stopatheight`), it is not queried while it runs. If
//! it cannot, its tip is queried a few times a second and it is stopped at the tip.

use super::rpc::Server;
use crate::error::LabError;
use lydian_chains::chain_files::Network;
use lydian_report::results::{Answer, Experiment, Stage, Validation};
use lydian_wire::Services;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::net::SocketAddrV4;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The only network on which every node of the lab runs.
pub const REGTEST: &str = "regtest";

/// A node.
pub trait Adapter: Debug + Sync {
    fn program(&self) -> &Path;

    /// The version as the node itself reports it.
    fn version(&self) -> Result<String, LabError>;

    /// What is missing on this machine, and how to get it.
    fn absent(&self) -> Option<&str> {
        None
    }

    /// Why this node by design does not take part; `None` if it can.
    fn cannot(&self, _experiment: Experiment) -> Option<&'static str> {
        None
    }

    /// Marks the block files that were put into the data directory as this node's, if it would leave them alone
    /// otherwise.
    fn take_over(&self, _job: &Job) -> Result<(), LabError> {
        Ok(())
    }

    /// Rebuilds everything from the block files in the data directory, checks every script, and ends at the tip.
    fn reindex(&self, job: &Job) -> Command;

    /// Goes on from what an earlier [`Adapter::reindex`] left that ended below the tip; `None` if the node cannot.
    fn go_on(&self, _job: &Job) -> Option<Command> {
        None
    }

    /// Downloads the chain from the peers of the job only, checks every script, and exits at the tip unless
    /// [`Adapter::tip`] is implemented.
    fn sync(&self, job: &Job) -> Command;

    /// Serves the chain in the data directory to peers on this loopback port, and answers RPC with the job's cookie.
    /// `None` if the node cannot serve.
    fn serve(&self, _job: &Job, _port: u16) -> Option<Command> {
        None
    }

    /// For a node that does not exit by itself: its current tip, from a query that costs it next to nothing.
    fn tip(&self, _job: &Job) -> Option<Result<Answer, LabError>> {
        None
    }

    /// For a node that does not exit by itself: stops it.
    fn stop(&self, _job: &Job) -> Result<(), LabError> {
        Ok(())
    }

    /// Starts the node without peers on the job's data directory, which must still be empty, so that blocks can be
    /// submitted by RPC; `None` if it accepts none.
    fn offline(&self, _job: &Job) -> Option<Command> {
        None
    }

    /// The RPC server at which the node of [`Adapter::offline`] answers `submitblock` and `getbestblockhash`; `None`
    /// while it is not known yet. Must not query the node: the caller does, with its own timeout.
    fn rpc(&self, _job: &Job) -> Option<Server> {
        None
    }

    /// What a reader of the node's figures must know, one sentence each: no taproot, settings with a different meaning.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Why the node cannot use a chain of this network; `None` if it can.
    fn refuses(&self, _network: &Network) -> Option<String> {
        None
    }

    /// A service that a peer must offer before this node downloads from it on this network, beyond those that every
    /// node offers; with the sentence that says so.
    fn wants_service(&self, _network: &Network) -> Option<(Services, &'static str)> {
        None
    }

    /// After a run that reached its end: the CPU time of each stage of the node's pipeline, if the node reports it.
    fn stages(&self, _job: &Job) -> Vec<Stage> {
        Vec::new()
    }

    /// The node's own log.
    fn log(&self, job: &Job) -> PathBuf {
        job.log()
    }

    /// Queries the node for its tip and UTXO hash, and starts it again if necessary. Not called for a node that
    /// implements [`Adapter::tip`].
    fn answer(&self, job: &Job) -> Result<Answer, LabError>;
}

/// One run.
#[derive(Clone, Debug)]
pub struct Job {
    pub data: PathBuf,
    pub network: &'static Network,
    pub height: u32,
    /// Script verification threads, including the main one, as `-par` counts.
    pub threads: usize,
    pub cache_mib: u64,
    /// Sync only: where the chain comes from.
    pub peers: Vec<SocketAddrV4>,
    /// Sync from several peers only: seconds since 1970 at which the chain ends, to be used as the current time. A node
    /// that believes itself far behind requests headers from one peer only, and then does not know that the other peers
    /// have the blocks.
    pub time: Option<u32>,
    /// A free loopback port, for a node that is queried while it runs.
    pub rpc_port: u16,
    pub validation: Validation,
    /// The hash of the block after the last one, if the peers of the job have it: a node that is started again to be
    /// queried must not connect it.
    pub next_block: Option<String>,
    /// Arguments that the user adds to every start of the node.
    pub more: Vec<String>,
}

impl Job {
    /// Where Bitcoin Core and Lydian keep `blocks/` and `debug.log`.
    pub fn chain_folder(&self) -> PathBuf {
        self.data.join(self.network.folder)
    }

    pub fn log(&self) -> PathBuf {
        self.chain_folder().join("debug.log")
    }

    /// The RPC cookie of a node that the lab starts in order to query it.
    pub fn cookie(&self) -> PathBuf {
        self.data.join("lab-cookie")
    }

    /// A command without input. Its output is discarded, since the log has the same messages.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// `-minimumchainwork=0` on a real network, whose nodes otherwise neither serve nor download a chain that ends long
    /// before the network's own; `None` on regtest, where no work is required.
    pub fn any_work(&self) -> Option<&'static str> {
        (self.network.name != REGTEST).then_some("-minimumchainwork=0")
    }

    /// `option` if the node has to check every script.
    pub fn if_full<'a>(&self, option: &'a str) -> Option<&'a str> {
        (self.validation == Validation::Full).then_some(option)
    }

    /// `-datadir` and `-chain`.
    pub fn place(&self) -> [OsString; 2] {
        let mut data = OsString::from("-datadir=");
        data.push(&self.data);
        [data, format!("-chain={}", self.network.name).into()]
    }
}

/// Runs a program for a short answer and returns its output. A Ctrl-C does not reach the program: the run it is asked
/// about has already ended.
pub fn ask(command: Command) -> Result<String, LabError> {
    ask_both(command).map(|(stdout, _)| stdout)
}

/// Like [`ask`]; returns stdout and stderr.
fn ask_both(mut command: Command) -> Result<(String, String), LabError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| LabError::program(&program, error))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        return Ok((text(&output.stdout), text(&output.stderr)));
    }
    Err(LabError::program(program, format!("{}: {}", output.status, text(&output.stderr).trim())))
}

/// The output of a program with `--version`; some print it on stderr (mempool's electrs).
pub(crate) fn ask_version(program: &Path) -> Result<String, LabError> {
    let mut command = Command::new(program);
    command.arg("--version");
    let (stdout, stderr) = ask_both(command)?;
    Ok(if stdout.trim().is_empty() { stderr } else { stdout })
}

/// The first line of what a program prints as its version.
pub(crate) fn version_line(program: &Path) -> Result<String, LabError> {
    Ok(ask_version(program)?.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::{Disk, RealDisk};

    #[test]
    fn whom_we_ask_leads_a_group_of_its_own() {
        let mut command = Command::new("sh");
        command.args(["-c", "cut -d' ' -f1,5 /proc/$$/stat"]);
        let said = ask(command).unwrap();
        let (pid, group) = said.trim().split_once(' ').unwrap();
        assert_eq!(pid, group);
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo why >&2; exit 3"]);
        assert!(ask(failing).unwrap_err().to_string().contains("why"));
    }

    /// Regression: mempool's electrs prints its version on stderr, and its rows had none.
    #[test]
    fn a_version_may_come_on_stderr() {
        let scratch = lydian_oracle::Scratch::new("lab-version");
        RealDisk.create_dir(scratch.path()).unwrap();
        let version = |name: &str, script: &str| {
            let program = scratch.path().join(name);
            RealDisk.write_whole(&program, format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
            std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            // A process that another test starts may have the file open for writing until it runs its program.
            loop {
                match version_line(&program) {
                    Err(error) if error.to_string().contains("Text file busy") => std::thread::yield_now(),
                    other => return other,
                }
            }
        };
        assert_eq!(version("stderr", "echo mempool-electrs 3.3.0 >&2").unwrap(), "mempool-electrs 3.3.0");
        assert_eq!(version("stdout", "echo 1.0; echo warning >&2").unwrap(), "1.0");
        assert!(version("fails", "echo no >&2; exit 1").unwrap_err().to_string().contains("no"));
    }
}
