//! Mako: `makod` by path, from the command line or `lab.toml`; it is in no package registry.
//!
//! Input: a path. Output: an adapter. Its options have the form of Bitcoin Core's (`src/base/config.c`); an unknown
//! option ends it. Full validation: `-checkpoints=0`; there is no assumevalid. It does not exit by itself: its RPC
//! returns the tip (`getblockchaininfo`), but its `stop` and `submitblock` are empty (`src/node/rpc.c`), so a signal
//! ends it and no blocks can be submitted to it. It cannot rebuild from block files, reports no hash of its UTXO set
//! and does not know taproot (README.md). It reports 0.0.0 for every version: put the commit into the label, as in
//! `mako:41ef104`. Written from commit 41ef104.

use super::{asked, found};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job, REGTEST, ask};
use crate::runs::rpc::Server;
use lydian_chains::chain_files::Network;
use lydian_report::results::{Answer, Experiment};
use lydian_report::systems;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A `-dbcache` outside these limits ends the program.
const CACHE_MIB_MIN: u64 = 8;
const CACHE_MIB_MAX: u64 = 2_048;
/// A higher `-par` ends the program.
const THREADS_MAX: usize = 15;
const USER: &str = "lab";
const PASSWORD: &str = "lab";

const KIND: &str = "mako";

#[derive(Debug)]
pub struct Mako {
    program: PathBuf,
}

impl Mako {
    pub fn locate(path: Option<&Path>) -> Result<Mako, LabError> {
        let hint = "mako: in no package registry; build it from github.com/chjj/mako and give --node-path mako=PATH of its makod";
        Ok(Mako { program: found(path, &[], hint)? })
    }

    fn server(job: &Job) -> Server {
        Server { port: job.rpc_port, credentials: format!("{USER}:{PASSWORD}") }
    }
}

impl Adapter for Mako {
    fn program(&self) -> &Path {
        &self.program
    }

    fn version(&self) -> Result<String, LabError> {
        let mut command = Command::new(&self.program);
        command.arg("-version");
        Ok(format!("Mako {}", ask(command)?.lines().next().unwrap_or_default()))
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(KIND, experiment)
    }

    /// It was seen to resolve the seeds of mainnet with `-connect` and `-discover=0`, and the lab lets no node look for
    /// peers.
    fn refuses(&self, network: &Network) -> Option<String> {
        let sentence =
            format!("Mako resolves the DNS seeds of {} whatever its options; it runs on regtest", network.name);
        (network.name != REGTEST).then_some(sentence)
    }

    fn reindex(&self, job: &Job) -> Command {
        self.sync(job)
    }

    fn sync(&self, job: &Job) -> Command {
        let mut command = job.command(&self.program);
        command.args(job.place()).args(job.if_full("-checkpoints=0")).args([
            "-listen=0",
            "-discover=0",
            "-disablewallet=1",
        ]);
        command.args(job.peers.iter().map(|peer| format!("-connect={peer}"))).arg("-loglevel=info");
        command.arg(format!("-rpcbind=127.0.0.1:{}", job.rpc_port)).arg(format!("-rpcport={}", job.rpc_port));
        command.arg(format!("-rpcuser={USER}")).arg(format!("-rpcpassword={PASSWORD}"));
        command.arg(format!("-dbcache={}", job.cache_mib.clamp(CACHE_MIB_MIN, CACHE_MIB_MAX)));
        command.arg(format!("-par={}", job.threads.clamp(1, THREADS_MAX))).args(&job.more);
        command
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        let info = Mako::server(job).call("getblockchaininfo", &json!([]));
        Some(info.and_then(|info| asked::tip_of(KIND, &info)))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        asked::end_by_signal(KIND, job)
    }

    fn notes(&self) -> Vec<String> {
        systems::notes(KIND)
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::program(KIND, "its tip is only queried while it runs"))
    }
}
