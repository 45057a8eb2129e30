//! The node that is measured: the program `lydian` with a full index and the Electrum server, on loopback.
//!
//! Input: the program, a folder, a chain. Output: a running node, its port for wallets, its memory. Each start is a new
//! process on the same data directory. Must never: look for peers, or outlive the value.

use crate::electrum::client::{Client, Place, result_of};
use crate::electrum::process::{Process, Used};
use crate::error::LabError;
use crate::runs::{log_end, rpc, system};
use lydian_chains::chain_files::Network;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The index that is measured.
pub const INDEX: &str = "-addressindex=full";
/// The protocol: up to this version, scripts are named by their hash.
pub const PROTOCOL_MAX: &str = "1.6";
/// The blocks of the lab's chains are old: without it the node stays in initial block download. None of regtest's
/// self-checks, which walk the whole mempool with every transaction and which no other network does.
const OPTIONS: &[&str] = &["-maxtipage=1000000000", "-checkmempool=0", "-checkblockindex=0"];
const POLL: Duration = Duration::from_millis(2);
const SLOW_POLL: Duration = Duration::from_millis(20);

/// Where the node runs, and how.
#[derive(Clone, Debug)]
pub struct Home<'a> {
    pub program: &'a Path,
    pub network: &'static Network,
    /// The data directory.
    pub data: PathBuf,
    /// What the program prints.
    pub output: PathBuf,
    /// For each step.
    pub timeout: Duration,
    /// Arguments for every start, after the lab's own.
    pub more: &'a [String],
    pub interrupted: &'a AtomicBool,
}

impl Home<'_> {
    pub fn check_interrupted(&self) -> Result<(), LabError> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(LabError::Usage("interrupted".to_owned())),
            false => Ok(()),
        }
    }

    pub fn error(&self, reason: impl std::fmt::Display) -> LabError {
        let log = self.data.join(self.network.folder).join("debug.log");
        let said = log_end(&log, &self.output);
        LabError::program("lydian", format!("{reason}; its log ends:\n{said}"))
    }

    /// The folder of the indexes.
    pub fn indexes(&self) -> PathBuf {
        self.data.join(self.network.folder).join("indexes")
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.arg(format!("-datadir={}", self.data.display())).arg(format!("-chain={}", self.network.name));
        command.args(["-listen=0", "-noconnect", "-printtoconsole=0", INDEX]).args(OPTIONS);
        command
    }

    /// Validates the blocks of a folder and builds the index.
    pub fn import(&self, folder: &Path) -> Result<(), LabError> {
        system::create_dir(&self.data)?;
        let mut command = self.command();
        command.arg("-server=0").args(self.more).arg("import").arg(folder);
        let process = Process::start(command, &self.output)?;
        self.wait_until(|| Ok(process.has_ended().then_some(())), "importing the chain", SLOW_POLL)
    }

    /// Starts the node on free ports; it may not be ready yet.
    pub fn start(&self) -> Result<Node<'_>, LabError> {
        self.start_on(rpc::free_port()?, rpc::free_port()?, &[])
    }

    /// The file with the credentials of the RPC server.
    pub fn cookie(&self) -> PathBuf {
        self.data.join("lab-cookie")
    }

    /// Starts the node with these ports for RPC and for wallets, and with further arguments.
    pub fn start_on(&self, rpc_port: u16, port: u16, more: &[String]) -> Result<Node<'_>, LabError> {
        let cookie = self.cookie();
        // The one of a process that was killed.
        let _ = std::fs::remove_file(&cookie);
        let mut command = self.command();
        command.args(["-server=1".to_owned(), format!("-rpcport={rpc_port}")]);
        command.arg(format!("-rpccookiefile={}", cookie.display()));
        command.args(["-electrum", "-electrumtlsbind=0", "-electrumwsbind=0"]);
        command.arg(format!("-electrumbind=127.0.0.1:{port}")).args(self.more).args(more);
        Ok(Node { home: self, process: Process::start(command, &self.output)?, cookie, rpc_port, port })
    }

    /// Starts the node and waits until its index has this height.
    pub fn start_at(&self, height: u32) -> Result<Node<'_>, LabError> {
        let node = self.start()?;
        node.wait_for_port(height)?;
        node.wait_for_index(height)?;
        Ok(node)
    }

    pub fn wait_until<T>(
        &self,
        mut look: impl FnMut() -> Result<Option<T>, LabError>,
        what: &str,
        poll: Duration,
    ) -> Result<T, LabError> {
        let start = system::now();
        loop {
            if let Some(found) = look()? {
                return Ok(found);
            }
            self.check_interrupted()?;
            if start.elapsed() > self.timeout {
                return Err(self.error(format!("{what}: not finished within {} s", self.timeout.as_secs())));
            }
            thread::sleep(poll);
        }
    }
}

/// A running node. Dropping it kills the process.
#[derive(Debug)]
pub struct Node<'a> {
    home: &'a Home<'a>,
    process: Process,
    cookie: PathBuf,
    rpc_port: u16,
    port: u16,
}

impl Node<'_> {
    pub fn home(&self) -> &Home<'_> {
        self.home
    }

    pub fn place(&self) -> Place {
        Place {
            name: "lydian".to_owned(),
            port: self.port,
            timeout: self.home.timeout,
            protocol_max: PROTOCOL_MAX.to_owned(),
        }
    }

    pub fn connect(&self) -> Result<Client, LabError> {
        Ok(Client::connect(&self.place())?)
    }

    pub fn call(&self, method: &str, params: &Value) -> Result<Value, LabError> {
        let credentials = system::read_proc(&self.cookie.to_string_lossy());
        let credentials = credentials.ok_or_else(|| self.home.error("its RPC cookie is gone"))?.trim().to_owned();
        rpc::Server { port: self.rpc_port, credentials }.call_within(method, params, self.home.timeout)
    }

    /// Seconds from the start until a wallet is answered with the chain's tip.
    pub fn wait_for_port(&self, height: u32) -> Result<f64, LabError> {
        let answers = || -> Result<Option<f64>, LabError> {
            if self.process.has_ended() {
                return Err(self.home.error("it ended before a wallet was answered"));
            }
            let Ok(mut client) = Client::connect(&self.place()) else { return Ok(None) };
            let tip = client.call("blockchain.headers.subscribe", &json!([]));
            let is_tip = tip.is_ok_and(|tip| tip["height"] == height);
            Ok(is_tip.then(|| self.process.seconds()))
        };
        self.home.wait_until(answers, "starting", POLL)
    }

    /// Seconds from the start until the index has this height.
    pub fn wait_for_index(&self, height: u32) -> Result<f64, LabError> {
        let script = json!(["00".repeat(32)]);
        let request = crate::electrum::client::request("blockchain.scripthash.get_balance", &script);
        let mut client = self.connect()?;
        let answers = || -> Result<Option<f64>, LabError> {
            let line = client.ask("blockchain.scripthash.get_balance", &request)?.line.to_vec();
            Ok(result_of(&line).is_ok().then(|| self.process.seconds()))
        };
        let seconds = self.home.wait_until(answers, "building the index", POLL)?;
        let is_there = || Ok(self.indexed()?.eq(&height).then_some(()));
        self.home.wait_until(is_there, "the height of the index", POLL)?;
        Ok(seconds)
    }

    /// The height of the index.
    pub fn indexed(&self) -> Result<u32, LabError> {
        let info = self.call("getindexinfo", &json!([]))?;
        let all = info.as_object().into_iter().flat_map(|indexes| indexes.values());
        let heights = all.filter_map(|index| u32::try_from(index["best_block_height"].as_u64()?).ok());
        Ok(heights.min().unwrap_or(0))
    }

    pub fn has_ended(&self) -> bool {
        self.process.has_ended()
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What the process has used so far.
    pub fn used(&self) -> Used {
        self.process.used()
    }

    pub fn rss_bytes(&self) -> u64 {
        self.process.used().rss_bytes
    }

    /// From now on, [`Node::peak_bytes`] does not know what was before.
    pub fn forget_peak(&self) -> bool {
        system::forget_peak(self.process.pid())
    }

    pub fn peak_bytes(&self) -> u64 {
        self.process.used().peak_rss_bytes
    }

    /// Stops the node; returns how long it took.
    pub fn stop(mut self) -> Result<f64, LabError> {
        let start: Instant = system::now();
        self.process.stop(Signal::TERM, self.home.timeout)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// Ends the node without a chance to write anything.
    pub fn kill(mut self) -> Result<(), LabError> {
        self.process.stop(Signal::KILL, self.home.timeout)
    }
}
