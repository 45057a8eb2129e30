//! What the comparison needs to know about an Electrum server; each server has a small file in `adapters/`.
//!
//! Input: a job with folders, ports, the node below. Output: a command that serves the node's chain on a loopback port.
//! Whether its index is built is queried through the protocol only, in the same way for all servers. A server writes
//! only below its own folder.

use crate::error::LabError;
use lydian_chains::chain_files::Network;
use lydian_disk::{Disk, RealDisk};
use rustix::process::Signal;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server.
pub trait ElectrumServer: Debug + Sync {
    fn program(&self) -> &Path;

    /// The version as the program itself reports it.
    fn version(&self) -> Result<String, LabError>;

    /// What is missing on this machine, and how to get it.
    fn absent(&self) -> Option<&str> {
        None
    }

    /// Why the server by design does not take part.
    fn cannot(&self) -> Option<&'static str> {
        None
    }

    /// What a reader of the server's figures must know, one sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Arguments that the server needs the node below to be started with. An index of the node is `-NAME=1` and is
    /// stored in `indexes/NAME`.
    fn daemon_arguments(&self) -> &'static [&'static str];

    /// The command that serves on the job's port; writes the settings that the server needs into the job's folder.
    fn start(&self, job: &ServerJob) -> Result<Command, LabError>;

    /// Whether it also serves Esplora's REST API, on the job's port for it.
    fn has_esplora(&self) -> bool {
        false
    }

    /// For a server that delays small answers once a connection has received this many bytes: the lab then continues
    /// over a new connection, made outside the measured time.
    fn bytes_per_connection(&self) -> Option<usize> {
        None
    }

    /// The signal that ends the server cleanly.
    fn stop_signal(&self) -> Signal {
        Signal::TERM
    }

    /// The server's own log, if it does not log to its output.
    fn log(&self, _job: &ServerJob) -> Option<PathBuf> {
        None
    }

    /// The folder of what the server keeps on disk.
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

/// The work of one server: building its index, and each later start on the same folder.
#[derive(Clone, Debug)]
pub struct ServerJob {
    /// The server's own folder.
    pub folder: PathBuf,
    pub port: u16,
    /// Free ports, for anything else it wants to listen on.
    pub other_ports: [u16; 2],
    /// The port of Esplora's REST API, if the server shall serve it.
    pub esplora_port: Option<u16>,
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
