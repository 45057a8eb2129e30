//! What the comparison must know of an Electrum server, and nothing more: one small file a server in `adapters/`.
//!
//! Input: a job: folders, ports, the node below. Output: a command that serves the node's chain on a port of loopback. Whether its index is built is asked by
//! the protocol alone, the same of all. A server writes below its own folder and nowhere else.

use crate::error::LabError;
use crate::runs::chain_files::Network;
use lydian_disk::{Disk, RealDisk};
use rustix::process::Signal;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server.
pub trait ElectrumServer: Debug + Sync {
    fn program(&self) -> &Path;

    /// As the program itself tells it.
    fn version(&self) -> Result<String, LabError>;

    /// What is missing here, and what brings it.
    fn absent(&self) -> Option<&str> {
        None
    }

    /// Why it takes no part, by what it is.
    fn cannot(&self) -> Option<&'static str> {
        None
    }

    /// What a reader of its figures must know, a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the node below must be started with for it; an index of the node's is `-NAME=1` and lies in `indexes/NAME`.
    fn daemon_arguments(&self) -> &'static [&'static str];

    /// Serves on the job's port; writes the settings it needs into the job's folder.
    fn start(&self, job: &ServerJob) -> Result<Command, LabError>;

    /// For a server that holds small answers back once a connection has got this many bytes: the lab asks on over a new connection then, made outside the clock.
    fn bytes_per_connection(&self) -> Option<usize> {
        None
    }

    /// Ends it cleanly.
    fn stop_signal(&self) -> Signal {
        Signal::TERM
    }

    /// Its own log, where it does not go to its output.
    fn log(&self, _job: &ServerJob) -> Option<PathBuf> {
        None
    }

    /// What it keeps on the disk.
    fn index_folder(&self, job: &ServerJob) -> PathBuf {
        job.folder.join("index")
    }
}

/// The node below a server.
#[derive(Clone, Debug)]
pub struct DaemonPlace {
    pub data: PathBuf,
    pub network: &'static Network,
    pub rpc_port: u16,
    pub p2p_port: u16,
    pub user: String,
    pub password: String,
    /// Holds `user:password`.
    pub cookie: PathBuf,
}

/// One server's work: building, and each later start on the same folder.
#[derive(Clone, Debug)]
pub struct ServerJob {
    /// Its own.
    pub folder: PathBuf,
    pub port: u16,
    /// Free, for whatever else it wants to listen on.
    pub other_ports: [u16; 2],
    pub daemon: DaemonPlace,
    /// Arguments that the user adds.
    pub more: Vec<String>,
}

impl ServerJob {
    /// A command without input.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.stdin(Stdio::null()).current_dir(&self.folder);
        command
    }

    /// `127.0.0.1:PORT`.
    pub fn address(port: u16) -> String {
        format!("127.0.0.1:{port}")
    }

    pub fn write(&self, name: &str, text: &str) -> Result<PathBuf, LabError> {
        let path = self.folder.join(name);
        RealDisk.write_whole(&path, text.as_bytes())?;
        Ok(path)
    }
}
