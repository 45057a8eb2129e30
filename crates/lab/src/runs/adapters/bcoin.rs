//! bcoin: the npm package in the cache folder, or a `bin/node` by path.
//!
//! The package runs on a Node.js from the years in which bcoin was made, also in the cache folder; a script by path
//! runs on the system's Node.js. Input: optionally a path. Output: an adapter. Full validation: `--checkpoints=false`;
//! there is no assumevalid. Scripts are checked by as many workers as `-par` says; everything else is one thread. It
//! does not exit by itself, so its tip is queried and it is stopped there. It cannot rebuild from Core's block
//! files, reports no hash of its UTXO set and does not know taproot. On regtest it counts signals for segwit from the
//! genesis block on, so segwit is active at height 432, where the lab's chains begin to use it; strict DER begins at
//! 1,251 and CHECKLOCKTIMEVERIFY at 1,351, and the height in the coinbase is never required
//! (`lib/protocol/networks.js`). Its settings come from the command line only: `BCOIN_...` variables and the user's
//! configuration file are ignored.

use super::{asked, cache_folder, found};
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job, ask};
use crate::runs::rpc::Server;
use lydian_report::results::{Answer, Experiment};
use lydian_report::systems;
use serde_json::json;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Version of the npm package.
pub const VERSION: &str = "1.0.2";
/// Below the cache folder.
pub const FOLDER: &str = "bcoin-1.0.2";
/// Below [`FOLDER`].
pub const SCRIPT: &str = "bcoin/node_modules/bcoin/bin/node";
/// Below [`FOLDER`]: the interpreter.
pub const NODE: &str = "node/node_modules/node/bin/node";

/// Credentials of its RPC server, which listens on loopback during a run; any user name is accepted.
const CREDENTIALS: &str = "x:lab";
const API_KEY: &str = "--api-key=lab";
/// Nothing listens at this address. Without `--only` it would look for peers at the regtest port.
const NOBODY: &str = "--only=127.0.0.1:1";

const KIND: &str = "bcoin";

/// Eighths of the cache that hold coins; the rest is for its database. By default bcoin keeps no coins in memory at
/// all.
const COINS_EIGHTHS: u64 = 7;
/// It counts the bytes of its coin cache in 32 bits (`lib/blockchain/chain.js`).
const COINS_MIB_MAX: u64 = 4_095;
/// Heap beside the coins, which are in the JavaScript heap; the default heap ends at about 1.4 GiB.
const HEAP_MIB: u64 = 2_048;

/// MiB for the coins and for the database.
fn caches(cache_mib: u64) -> (u64, u64) {
    let coins = (cache_mib / 8 * COINS_EIGHTHS).min(COINS_MIB_MAX);
    (coins, cache_mib - coins)
}

#[derive(Debug)]
pub struct Bcoin {
    script: PathBuf,
    /// For the package; a script by path has its own interpreter line.
    interpreter: Option<PathBuf>,
}

impl Bcoin {
    pub fn locate(path: Option<&Path>) -> Result<Bcoin, LabError> {
        let folder = cache_folder().join(FOLDER);
        let hint =
            "bcoin: it is not installed; `lydian-lab peers install bcoin` installs it, or give --node-path bcoin=PATH";
        let script = found(path, &[folder.join(SCRIPT)], hint)?;
        Ok(Bcoin { script, interpreter: path.is_none().then(|| folder.join(NODE)) })
    }

    /// The program without the user's environment, except for `PATH`.
    fn clean(&self, mut command: Command) -> Command {
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        if self.interpreter.is_some() {
            command.arg(&self.script);
        }
        command
    }

    fn start(&self) -> &Path {
        self.interpreter.as_deref().unwrap_or(&self.script)
    }

    /// Data and log in the data directory, RPC on loopback.
    fn command(&self, job: &Job) -> Command {
        let mut command = self.clean(job.command(self.start()));
        let mut prefix = OsString::from("--prefix=");
        prefix.push(&job.data);
        command.arg(format!("--network={}", job.network.name)).arg(prefix);
        command.args(job.if_full("--checkpoints=false"));
        command.args(["--no-wallet=true", "--listen=false"]);
        command.args(["--log-console=false", "--log-level=info", "--http-host=127.0.0.1", API_KEY]);
        command.arg(format!("--http-port={}", job.rpc_port));
        let (coins, database) = caches(job.cache_mib);
        command.arg(format!("--coin-cache={coins}")).arg(format!("--cache-size={database}"));
        command.env("NODE_OPTIONS", format!("--max-old-space-size={}", coins + HEAP_MIB));
        command.arg("--workers=true").arg(format!("--workers-size={}", job.threads));
        command
    }

    fn server(job: &Job) -> Server {
        Server { port: job.rpc_port, credentials: CREDENTIALS.to_owned() }
    }
}

impl Adapter for Bcoin {
    fn program(&self) -> &Path {
        &self.script
    }

    fn version(&self) -> Result<String, LabError> {
        let mut command = self.clean(Command::new(self.start()));
        command.arg("--version");
        Ok(format!("bcoin {}", ask(command)?.lines().next().unwrap_or_default()))
    }

    fn cannot(&self, experiment: Experiment) -> Option<&'static str> {
        systems::kept_from(KIND, experiment)
    }

    fn reindex(&self, job: &Job) -> Command {
        self.command(job)
    }

    fn sync(&self, job: &Job) -> Command {
        let mut command = self.command(job);
        let peers: Vec<String> = job.peers.iter().map(ToString::to_string).collect();
        command.arg(format!("--only={}", peers.join(","))).args(&job.more);
        command
    }

    fn offline(&self, job: &Job) -> Option<Command> {
        let mut command = self.command(job);
        command.arg(NOBODY).args(&job.more);
        Some(command)
    }

    fn rpc(&self, job: &Job) -> Option<Server> {
        Some(Bcoin::server(job))
    }

    fn tip(&self, job: &Job) -> Option<Result<Answer, LabError>> {
        let info = Bcoin::server(job).call("getblockchaininfo", &json!([]));
        Some(info.and_then(|info| asked::tip_of(KIND, &info)))
    }

    fn stop(&self, job: &Job) -> Result<(), LabError> {
        Bcoin::server(job).call("stop", &json!([])).map(|_| ())
    }

    fn notes(&self) -> Vec<String> {
        systems::notes(KIND)
    }

    fn log(&self, job: &Job) -> PathBuf {
        job.log()
    }

    fn answer(&self, _: &Job) -> Result<Answer, LabError> {
        Err(LabError::program(KIND, "its tip is only queried while it runs"))
    }
}
