//! Fulcrum (cculianu), C++: by path, because it is in no registry.
//!
//! Input: a path. Output: an adapter. Its settings are in a file of its own format. By default its limits per client
//! address do not apply to loopback. Must never: install anything here.

use crate::electrum::adapter::{ElectrumServer, ServerJob};
use crate::error::LabError;
use crate::runs::adapter::version_line;
use std::path::{Path, PathBuf};
use std::process::Command;

const HINT: &str = "no package registry has it; build it (https://github.com/cculianu/Fulcrum) and give --server-path fulcrum=PATH, or its path in lab.toml";

#[derive(Debug)]
pub struct Fulcrum {
    program: PathBuf,
}

impl Fulcrum {
    pub fn locate(path: Option<&Path>) -> Result<Fulcrum, String> {
        Ok(Fulcrum { program: path.ok_or(HINT)?.to_path_buf() })
    }
}

impl ElectrumServer for Fulcrum {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        version_line(&self.program)
    }

    fn daemon_arguments(&self) -> &'static [&'static str] {
        &["-txindex=1"]
    }

    fn start(&self, job: &ServerJob) -> Result<Command, LabError> {
        let daemon = &job.daemon;
        let index = self.index_folder(job);
        crate::runs::system::create_dir(&index)?;
        let lines = [
            format!("datadir = {}", index.display()),
            format!("bitcoind = {}", ServerJob::address(daemon.rpc_port)),
            format!("rpcuser = {}", daemon.user),
            format!("rpcpassword = {}", daemon.password),
            format!("tcp = {}", ServerJob::address(job.port)),
            "peering = false".to_owned(),
            "announce = false".to_owned(),
        ];
        let settings = job.write("fulcrum.conf", &(lines.join("\n") + "\n"))?;
        let mut command = job.command(&self.program);
        command.args(&job.more).arg(settings);
        Ok(command)
    }
}
