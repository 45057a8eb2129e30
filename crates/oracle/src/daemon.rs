//! Runs Bitcoin Core's daemon on loopback in its own data directory: blocks in, verdict and UTXO hash out.
//!
//! Invariants: no peer and no listening P2P port; the data directory is new and is removed with the daemon; if this is
//! dropped, the process is killed. The caller's options come after ours and override them. Cost: about half a second to
//! start, one RPC round trip per call. Must never get a data directory that is in use. The README of this crate
//! explains Core's answers.
#![expect(clippy::disallowed_methods, reason = "tests only: these are Core's files, not the node's")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::limits::{MAX_START_POLLS, MAX_START_TRIES, MAX_STOP_POLLS, POLL};
use crate::rpc::{Client, HexCall, RpcError};
use crate::{Unavailable, build, free_port};

/// The options of every daemon. `-par=2` is one script thread in addition to the main one: scripts are then checked
/// after everything else in the block, which is our order.
const OPTIONS: &[&str] = &[
    "-server=1",
    "-listen=0",
    "-connect=0",
    "-dnsseed=0",
    "-fixedseeds=0",
    "-natpmp=0",
    "-rpcbind=127.0.0.1",
    "-rpcallowip=127.0.0.1",
    "-rpcservertimeout=86400",
    // Only one, so that no call waits 50 ms: see CONNECTIONS in rpc.rs.
    "-rpcthreads=1",
    "-par=2",
    "-dbcache=256",
    "-assumevalid=0",
    "-persistmempool=0",
    "-printtoconsole=0",
    // Both are on by default on regtest, and the first walks the whole block index several times per block.
    "-checkblockindex=0",
    "-checkmempool=0",
    // Otherwise rejected blocks, which are logged at error level, would be rate limited.
    "-logratelimit=0",
];
/// `RPC_DESERIALIZATION_ERROR`.
const CODE_DECODE: i64 = -22;
const COINS_DIGITS: usize = 8;

/// A running daemon. Dropping it kills the process and removes the data directory.
#[derive(Debug)]
pub struct Daemon {
    process: Child,
    folder: PathBuf,
    chain_folder: PathBuf,
    client: Client,
}

/// The result of `submitblock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submission {
    /// The block is valid, and the tip passed through it.
    Accepted,
    /// The block is stored already.
    Duplicate,
    /// The block is stored but not connected: it does not extend the best chain (yet), or a block before it failed.
    Inconclusive,
    /// Core's reject reason, which may be `duplicate-invalid`.
    Rejected(String),
    /// The bytes are not a block. (Core ignores bytes after a block here.)
    Undecodable,
}

/// The result of `gettxoutsetinfo`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxOutSet {
    pub height: u64,
    /// In RPC byte order.
    pub best_block: String,
    pub txouts: u64,
    /// In satoshi.
    pub total_amount: u64,
    /// Hash of the requested type, in RPC byte order; `None` for type `none`.
    pub hash: Option<String>,
}

impl Daemon {
    /// Starts a regtest daemon with additional options.
    pub fn start(options: &[&str]) -> Result<Self, Unavailable> {
        Self::start_on("regtest", options)
    }

    /// Starts a daemon for `main`, `test`, `testnet4`, `signet` or `regtest`. It has no peers on any chain.
    pub fn start_on(chain: &str, options: &[&str]) -> Result<Self, Unavailable> {
        let program = build::locate()?.bitcoind;
        let mut text = String::new();
        for _ in 0..MAX_START_TRIES {
            match Self::try_start(&program, chain, options) {
                Ok(daemon) => return Ok(daemon),
                Err(error) => text = error,
            }
            if !text.contains("nable to bind") {
                break;
            }
        }
        Err(Unavailable::Start { program, text })
    }

    fn try_start(program: &Path, chain: &str, options: &[&str]) -> Result<Self, String> {
        let folder = new_folder().map_err(|error| error.to_string())?;
        let port = free_port().map_err(|error| error.to_string())?;
        let errors = folder.join("stderr");
        let stderr = File::create(&errors).map_err(|error| error.to_string())?;
        let cookie = folder.join("cookie");
        let process = Command::new(program)
            .arg(format!("-datadir={}", folder.display()))
            .arg(format!("-chain={chain}"))
            .arg(format!("-rpcport={port}"))
            .arg(format!("-rpccookiefile={}", cookie.display()))
            .args(OPTIONS)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .map_err(|error| error.to_string())?;
        let chain_folder = match chain {
            "main" => folder.clone(),
            "test" => folder.join("testnet3"),
            other => folder.join(other),
        };
        // From here on, an error drops the daemon: it is killed and its folder removed.
        let mut daemon = Self { process, folder, chain_folder, client: Client::new(port, "") };
        for _ in 0..MAX_START_POLLS {
            std::thread::sleep(POLL);
            if let Ok(Some(status)) = daemon.process.try_wait() {
                let said = fs::read_to_string(&errors).unwrap_or_default();
                return Err(format!("{status}: {}", said.trim()));
            }
            let Ok(credentials) = fs::read_to_string(&cookie) else { continue };
            daemon.client = Client::new(port, credentials.trim());
            // Until it is ready, it refuses the connection or returns error -28 "Loading...".
            if daemon.call("getblockcount", &json!([])).is_ok() {
                return Ok(daemon);
            }
        }
        Err("it does not answer".into())
    }

    /// Calls any RPC method; `params` is an array, or an object with named arguments.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, RpcError> {
        self.client.call(method, params)
    }

    /// Submits a block to Core. An error is an operating error; the verdict is the [`Submission`].
    pub fn submit_block(&mut self, block: &[u8]) -> Result<Submission, RpcError> {
        submission(self.client.call_hex(HexCall::SUBMIT_BLOCK, block))
    }

    /// Validates a block on top of the tip without storing it or its header. The proof of work is not checked, and
    /// unlike `submitblock` this repairs nothing (a coinbase without witness stays without one).
    pub fn propose_block(&mut self, block: &[u8]) -> Result<Submission, RpcError> {
        submission(self.client.call_hex(HexCall::PROPOSE_BLOCK, block))
    }

    /// [`Self::submit_block`] for many blocks, in order, with few round trips.
    pub fn submit_blocks(&mut self, blocks: &[impl AsRef<[u8]>]) -> Result<Vec<Submission>, RpcError> {
        let answers = self.client.call_hex_many(HexCall::SUBMIT_BLOCK, blocks)?;
        answers.into_iter().map(submission).collect()
    }

    /// [`Self::propose_block`] for many blocks, each on top of the same tip, with few round trips.
    pub fn propose_blocks(&mut self, blocks: &[impl AsRef<[u8]>]) -> Result<Vec<Submission>, RpcError> {
        let answers = self.client.call_hex_many(HexCall::PROPOSE_BLOCK, blocks)?;
        answers.into_iter().map(submission).collect()
    }

    /// Returns the reason why a block failed to connect at any time: `submitblock` reports it only for the submitted
    /// block. `hash` is in RPC byte order. Reads the whole log.
    pub fn connect_failure(&self, hash: &str) -> std::io::Result<Option<String>> {
        let wanted = format!("ConnectBlock {hash} failed, ");
        let mut found = None;
        for line in BufReader::new(File::open(self.log())?).split(b'\n') {
            let line = line?;
            if let Some((_, reason)) = String::from_utf8_lossy(&line).split_once(&wanted) {
                // state.ToString() is the reason, then ", " and a debug message if there is one.
                found = Some(reason.split(", ").next().unwrap_or(reason).to_owned());
            }
        }
        Ok(found)
    }

    /// Calls `gettxoutsetinfo`. `hash_type` is `none`, `muhash` or `hash_serialized_3`.
    pub fn txoutset(&mut self, hash_type: &str) -> Result<TxOutSet, RpcError> {
        let answer = self.call("gettxoutsetinfo", &json!([hash_type]))?;
        let form = || RpcError::Form(answer.to_string());
        let number = |name: &str| answer[name].as_u64().ok_or_else(form);
        let hash = answer.get(hash_type).and_then(Value::as_str).map(str::to_owned);
        if hash.is_none() && hash_type != "none" {
            return Err(form());
        }
        Ok(TxOutSet {
            height: number("height")?,
            best_block: answer["bestblock"].as_str().ok_or_else(form)?.to_owned(),
            txouts: number("txouts")?,
            total_amount: satoshi(&answer["total_amount"].to_string()).ok_or_else(form)?,
            hash,
        })
    }

    /// Returns the hash of the tip, in RPC byte order.
    pub fn best_block_hash(&mut self) -> Result<String, RpcError> {
        let answer = self.call("getbestblockhash", &json!([]))?;
        answer.as_str().map(str::to_owned).ok_or_else(|| RpcError::Form(answer.to_string()))
    }

    /// Returns the height of the tip.
    pub fn height(&mut self) -> Result<u64, RpcError> {
        let answer = self.call("getblockcount", &json!([]))?;
        answer.as_u64().ok_or_else(|| RpcError::Form(answer.to_string()))
    }

    /// Sets the daemon's clock (Unix seconds), which then stands still. Regtest only. 0 lets it run again.
    pub fn set_mock_time(&mut self, seconds: u64) -> Result<(), RpcError> {
        self.call("setmocktime", &json!([seconds])).map(|_| ())
    }

    /// The daemon's folder with `blocks/` and `debug.log`. It is removed when the daemon is dropped.
    pub fn chain_folder(&self) -> &Path {
        &self.chain_folder
    }

    /// Stops the daemon cleanly (everything flushed) and keeps its folder until the returned guard is dropped.
    pub fn stop(mut self) -> Result<Stopped, RpcError> {
        self.call("stop", &json!([]))?;
        for _ in 0..MAX_STOP_POLLS {
            if self.process.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(POLL);
        }
        Ok(Stopped(self))
    }

    fn log(&self) -> PathBuf {
        self.chain_folder.join("debug.log")
    }

    /// Returns the last bytes of the log, for a message about an unexpected result.
    pub fn log_tail(&self, bytes: u64) -> std::io::Result<String> {
        let mut file = File::open(self.log())?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(bytes)))?;
        let mut tail = Vec::new();
        file.read_to_end(&mut tail)?;
        Ok(String::from_utf8_lossy(&tail).into_owned())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A stopped daemon. Its folder exists until this is dropped.
#[derive(Debug)]
pub struct Stopped(Daemon);

impl Stopped {
    /// The folder with `blocks/` and `debug.log`.
    pub fn chain_folder(&self) -> &Path {
        &self.0.chain_folder
    }
}

fn submission(answer: Result<Value, RpcError>) -> Result<Submission, RpcError> {
    match answer {
        Ok(Value::Null) => Ok(Submission::Accepted),
        Ok(Value::String(reason)) => Ok(match reason.as_str() {
            "duplicate" => Submission::Duplicate,
            "inconclusive" | "duplicate-inconclusive" => Submission::Inconclusive,
            _ => Submission::Rejected(reason),
        }),
        Ok(other) => Err(RpcError::Form(other.to_string())),
        Err(RpcError::Core { code: CODE_DECODE, .. }) => Ok(Submission::Undecodable),
        Err(error) => Err(error),
    }
}

/// Returns 1,250,000,000 for `12.5` or `12.50000000`. Also parses `1e-8`, the shortest form of one satoshi.
fn satoshi(text: &str) -> Option<u64> {
    if let Some((digits, exponent)) = text.split_once("e-") {
        let shift = COINS_DIGITS.checked_sub(exponent.parse().ok()?)?;
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let zeros = "0".repeat(shift.checked_sub(part.len())?);
        return format!("{whole}{part}{zeros}").parse().ok();
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let zeros = "0".repeat(COINS_DIGITS.checked_sub(part.len())?);
    if whole.is_empty() { None } else { format!("{whole}{part}{zeros}").parse().ok() }
}

/// Creates a folder with an unused name.
fn new_folder() -> std::io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("lydian-core-{}-{count}", std::process::id()));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact() {
        for (text, amount) in [
            ("0", 0),
            ("0.0", 0),
            ("50.0", 5_000_000_000),
            ("12.5", 1_250_000_000),
            ("20999999.9769", 2_099_999_997_690_000),
            ("1e-8", 1),
            ("1.5e-7", 15),
            ("0.00000001", 1),
        ] {
            assert_eq!(satoshi(text), Some(amount), "{text}");
        }
        for text in ["", "x", "1.123456789", "-1", "1e-9", "null"] {
            assert_eq!(satoshi(text), None, "{text}");
        }
    }
}
