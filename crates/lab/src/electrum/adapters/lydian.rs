//! Lydian: the program beside this one, or any build by path.
//!
//! Input: optionally a path. Output: an adapter. Lydian is a node itself: it downloads the chain from the node below
//! and validates it while it builds its index, so both are in its build time. Only the index counts as its size: the
//! other servers leave blocks and coins to the node. Must never: find other peers.

use crate::electrum::adapter::{ElectrumServer, ServerJob};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, version_line};
use crate::runs::adapters;
use crate::runs::system;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub struct Lydian {
    program: PathBuf,
}

impl Lydian {
    pub fn locate(path: Option<&Path>) -> Result<Lydian, String> {
        let node = adapters::Lydian::locate(path).map_err(|error| error.to_string())?;
        Ok(Lydian { program: node.program().to_path_buf() })
    }

    fn data(job: &ServerJob) -> PathBuf {
        job.folder.join("data")
    }
}

impl ElectrumServer for Lydian {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        version_line(&self.program)
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "Lydian is a node: its build time and CPU include the download from the node below and the validation of every script; its index does not include blocks and coins"
                .to_owned(),
        ]
    }

    fn daemon_arguments(&self) -> &'static [&'static str] {
        &[]
    }

    fn has_esplora(&self) -> bool {
        true
    }

    fn start(&self, job: &ServerJob) -> Result<Command, LabError> {
        let data = Lydian::data(job);
        system::create_dir(&data)?;
        let mut command = job.command(&self.program);
        command.arg(format!("-datadir={}", data.display())).arg(format!("-chain={}", job.daemon.network.name));
        command.arg(format!("-connect=127.0.0.1:{}", job.daemon.p2p_port)).args(["-listen=0", "-dnsseed=0"]);
        // The blocks of the lab's chains are old.
        command.args(["-maxtipage=1000000000", "-assumevalid=0", "-printtoconsole=0"]);
        command.arg(format!("-rpcport={}", job.other_ports[0]));
        command
            .args(["-electrum", "-electrumtlsbind=0", "-electrumwsbind=0"])
            .arg(format!("-electrumbind={}", ServerJob::address(job.port)));
        if let Some(port) = job.esplora_port {
            command.arg("-esplora").arg(format!("-esplorabind={}", ServerJob::address(port)));
        }
        command.args(&job.more);
        Ok(command)
    }

    fn log(&self, job: &ServerJob) -> Option<PathBuf> {
        Some(Lydian::data(job).join(job.daemon.network.folder).join("debug.log"))
    }

    fn index_folder(&self, job: &ServerJob) -> PathBuf {
        Lydian::data(job).join(job.daemon.network.folder).join("indexes")
    }
}
