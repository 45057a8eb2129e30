//! Esplora's electrs (Blockstream's, or mempool's fork of it): by path, because it is in no registry.
//!
//! Input: a path. Output: an adapter. It indexes over the node's RPC, since it cannot read block files that the node
//! has obfuscated with a key (Bitcoin Core since 28). Its limits for long lists are raised, otherwise scripts with more
//! than 500 entries would get errors. Must never: install anything here.

use crate::electrum::adapter::{ElectrumServer, ServerJob};
use crate::error::LabError;
use crate::runs::adapter::ask_version;
use std::path::{Path, PathBuf};
use std::process::Command;

const HINT: &str = "no package registry has it; build it (https://github.com/Blockstream/electrs) and give --server-path esplora=PATH, or its path in lab.toml";
/// More than any list of the lab's chains.
const ENTRIES_MAX: &str = "1000000";

#[derive(Debug)]
pub struct Esplora {
    program: PathBuf,
}

impl Esplora {
    pub fn locate(path: Option<&Path>) -> Result<Esplora, String> {
        Ok(Esplora { program: path.ok_or(HINT)?.to_path_buf() })
    }
}

impl ElectrumServer for Esplora {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        Ok(ask_version(&self.program)?.trim().to_owned())
    }

    fn notes(&self) -> Vec<String> {
        vec!["its limits on long lists (500 entries as shipped) are lifted".to_owned()]
    }

    fn daemon_arguments(&self) -> &'static [&'static str] {
        &[]
    }

    fn has_esplora(&self) -> bool {
        true
    }

    fn start(&self, job: &ServerJob) -> Result<Command, LabError> {
        let daemon = &job.daemon;
        let mut command = job.command(&self.program);
        command.arg("-vv").arg("--network").arg(network_of(daemon.network.name));
        command.arg("--daemon-dir").arg(&daemon.data);
        command.arg("--daemon-rpc-addr").arg(ServerJob::address(daemon.rpc_port));
        command.arg("--cookie").arg(format!("{}:{}", daemon.user, daemon.password));
        command.arg("--db-dir").arg(self.index_folder(job)).arg("--jsonrpc-import");
        command.arg("--electrum-rpc-addr").arg(ServerJob::address(job.port));
        command.arg("--http-addr").arg(ServerJob::address(job.esplora_port.unwrap_or(job.other_ports[0])));
        command.arg("--monitoring-addr").arg(ServerJob::address(job.other_ports[1]));
        command.args(["--electrum-txs-limit", ENTRIES_MAX, "--utxos-limit", ENTRIES_MAX]);
        command.args(&job.more);
        Ok(command)
    }
}

fn network_of(name: &str) -> &str {
    match name {
        "main" => "mainnet",
        "test" => "testnet",
        other => other,
    }
}
