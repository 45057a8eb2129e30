//! What the runner must know of a node, and nothing more: one small file a node in `adapters/`.
//!
//! Input: a job. Output: a command that validates everything, from block files or from peers; afterwards what the node thinks it ended with. A node
//! ends by itself at the tip where it can (`-stopatheight`), and then nothing is asked of it while it runs; where it cannot, it is asked for its tip a
//! few times a second and told to stop.

use super::chain_files::Network;
use super::results::{Answer, Experiment, Stage};
use super::rpc::Server;
use crate::error::LabError;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::net::SocketAddrV4;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A node.
pub trait Adapter: Debug + Sync {
    fn program(&self) -> &Path;

    /// As the node itself tells it.
    fn version(&self) -> Result<String, LabError>;

    /// What is missing here, and what brings it.
    fn absent(&self) -> Option<&str> {
        None
    }

    /// Why this node, by what it is, does not take part; `None` when it can.
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

    /// Takes the chain from the peers of the job and from nobody else, checks every script, and ends at the tip unless [`Adapter::tip`] is there.
    fn sync(&self, job: &Job) -> Command;

    /// Gives the chain that is in the data directory to peers on this port of loopback; answers RPC with the job's cookie. `None`: it cannot.
    fn serve(&self, _job: &Job, _port: u16) -> Option<Command> {
        None
    }

    /// For a node that does not end by itself: its tip now, by a question that costs it next to nothing.
    fn tip(&self, _job: &Job) -> Option<Result<Answer, LabError>> {
        None
    }

    /// For the same: tells it to end.
    fn stop(&self, _job: &Job) -> Result<(), LabError> {
        Ok(())
    }

    /// Starts it on the data directory of the job, in which nothing may lie yet, without peers, so that blocks can be handed to it by RPC; `None`: it takes none.
    fn offline(&self, _job: &Job) -> Option<Command> {
        None
    }

    /// Where the node of [`Adapter::offline`] answers `submitblock` and `getbestblockhash`; `None` where that is not known yet. Must not ask: the caller does, and
    /// waits no longer than it wants.
    fn rpc(&self, _job: &Job) -> Option<Server> {
        None
    }

    /// What a reader of its figures must know, a sentence each: no taproot, settings that mean something else.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Why it cannot take a chain of this network; `None` when it can.
    fn refuses(&self, _network: &Network) -> Option<String> {
        None
    }

    /// After a run that reached its end: the CPU time of each stage of its pipeline, from a node that tells it.
    fn stages(&self, _job: &Job) -> Vec<Stage> {
        Vec::new()
    }

    /// The node's own log.
    fn log(&self, job: &Job) -> PathBuf {
        job.log()
    }

    /// Asks the node for its tip and UTXO hash; starts it again if it must. Not called for a node that [`Adapter::tip`] asks.
    fn answer(&self, job: &Job) -> Result<Answer, LabError>;
}

/// One run.
#[derive(Clone, Debug)]
pub struct Job {
    pub data: PathBuf,
    pub network: &'static Network,
    pub height: u32,
    /// Threads that check scripts, the main one included, as `-par` counts.
    pub threads: usize,
    pub cache_mib: u64,
    /// Where the chain comes from; of a sync.
    pub peers: Vec<SocketAddrV4>,
    /// Of a sync from several peers: seconds since 1970 at which the chain ends now. A node that believes itself far behind asks one peer alone for headers,
    /// and then knows of nobody else who has the blocks.
    pub time: Option<u32>,
    /// Free on loopback, for a node that is asked while it runs.
    pub rpc_port: u16,
    /// Arguments that the user adds to every start.
    pub more: Vec<String>,
}

impl Job {
    /// Where Core's and our nodes keep `blocks/` and `debug.log`.
    pub fn chain_folder(&self) -> PathBuf {
        self.data.join(self.network.folder)
    }

    pub fn log(&self) -> PathBuf {
        self.chain_folder().join("debug.log")
    }

    /// Of the RPC server of a node that we start to ask it.
    pub fn cookie(&self) -> PathBuf {
        self.data.join("lab-cookie")
    }

    /// A command without input, whose words are thrown away: the log has them.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// `-datadir` and `-chain`.
    pub fn place(&self) -> [OsString; 2] {
        let mut data = OsString::from("-datadir=");
        data.push(&self.data);
        [data, format!("-chain={}", self.network.name).into()]
    }
}

/// What a program prints when it is asked for something short. A Ctrl-C does not reach it: the run that it is asked about has ended already.
pub fn ask(mut command: Command) -> Result<String, LabError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output();
    let output = output.map_err(|error| LabError::program(&program, error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LabError::program(program, format!("{}: {said}", output.status)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
