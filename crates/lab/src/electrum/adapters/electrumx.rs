//! ElectrumX (spesmilo), Python: installed into a virtual environment in the cache folder, or an executable by path.
//!
//! Input: optionally the path of an `electrumx_server`. Output: an adapter. All its settings are environment variables.
//! Its cost limits are disabled, as owners do for their own server. By default it pads answers, and once a connection
//! has received 1,024 bytes it delays answers under 1,024 bytes for up to a second; there is no setting for this, so
//! the lab continues over a new connection before that. Must never: install anything here.

use super::found;
use crate::electrum::adapter::{ElectrumServer, ServerJob};
use crate::error::LabError;
use crate::runs::adapter::ask;
use crate::runs::adapters::cache_folder;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of the Python package `e-x`, below the cache folder.
const PROGRAM: &str = "electrumx-2.0.0/bin/electrumx_server";
const HINT: &str =
    "it is not installed; `lydian-lab peers install electrumx` installs it, or give --server-path electrumx=PATH";
/// Small answers are delayed from 1,024 bytes on; the next answer must not be the first delayed one.
const BYTES_PER_CONNECTION: usize = 512;
/// As on the main network: the server keeps the raw blocks of this number of heights.
const REORG_LIMIT: &str = "200";

#[derive(Debug)]
pub struct ElectrumX {
    program: PathBuf,
}

impl ElectrumX {
    pub fn locate(path: Option<&Path>) -> Result<ElectrumX, String> {
        Ok(ElectrumX { program: found(path, &cache_folder().join(PROGRAM), HINT)? })
    }
}

impl ElectrumServer for ElectrumX {
    fn program(&self) -> &Path {
        &self.program
    }

    /// The server itself does not report its version; the Python interpreter beside it does.
    fn version(&self) -> Result<String, LabError> {
        let mut command = Command::new(self.program.with_file_name("python"));
        command.args(["-c", "import electrumx, sys; print(electrumx.version, 'with Python', sys.version.split()[0])"]);
        Ok(ask(command)?.trim().to_owned())
    }

    fn notes(&self) -> Vec<String> {
        vec![
            "ElectrumX as shipped holds answers under 1,024 bytes for up to a second (traffic padding, no setting for it) on a connection that has got 1,024 bytes. \
             Single queries are therefore asked on connections that are still below; loads keep their connections and show the delay"
                .to_owned(),
            "its folder holds the raw blocks of the last 200 heights too (REORG_LIMIT as on the main network; on regtest it would be 8,000); it needs the node's \
             indexes txindex and txospenderindex"
                .to_owned(),
        ]
    }

    fn daemon_arguments(&self) -> &'static [&'static str] {
        &["-txindex=1", "-txospenderindex=1"]
    }

    fn start(&self, job: &ServerJob) -> Result<Command, LabError> {
        let daemon = &job.daemon;
        let index = self.index_folder(job);
        crate::runs::system::create_dir(&index)?;
        let mut command = job.command(&self.program);
        // Anything in the user's environment could be a setting.
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path))).env("HOME", &job.folder);
        command.env("COIN", "Bitcoin").env("NET", network_of(daemon.network.name));
        command.env("DB_ENGINE", "leveldb").env("DB_DIRECTORY", index);
        let url = format!("http://{}:{}@127.0.0.1:{}/", daemon.user, daemon.password, daemon.rpc_port);
        command.env("DAEMON_URL", url);
        command.env("SERVICES", format!("tcp://127.0.0.1:{},rpc://127.0.0.1:{}", job.port, job.other_ports[0]));
        command.env("PEER_DISCOVERY", "off").env("PEER_ANNOUNCE", "");
        command.env("COST_SOFT_LIMIT", "0").env("COST_HARD_LIMIT", "0").env("ALLOW_ROOT", "1");
        command.env("REORG_LIMIT", REORG_LIMIT);
        // `NAME=VALUE` arguments are additional environment variables.
        command.envs(job.more.iter().filter_map(|pair| pair.split_once('=')));
        Ok(command)
    }

    fn bytes_per_connection(&self) -> Option<usize> {
        Some(BYTES_PER_CONNECTION)
    }
}

fn network_of(name: &str) -> &str {
    match name {
        "main" => "mainnet",
        "test" => "testnet",
        other => other,
    }
}
