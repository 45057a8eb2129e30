//! A chain that a node mines for itself: for a fork that accepts no other chain.
//!
//! Input: a node, a number of blocks. Output: the block files that the node wrote while it mined them over its RPC, and
//! the state that it must reach with them again. Cost: one start of the node and its mining. Must never: look for
//! peers, or leave the node running.

use super::adapter::{Adapter, Job, REGTEST};
use super::running::Running;
use super::{Contender, Folder, adapters, capture, log_end, rpc, system};
use crate::error::LabError;
use lydian_chains::chain_files::{files_of, network};
use lydian_report::results::{Answer, Settings};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The script is `OP_TRUE`, which every fork has, and for which no address is needed.
const DESCRIPTOR: &str = "raw(51)";
/// Blocks of one call, so that an interruption is noticed.
const CALL_BLOCKS: u32 = 100;
/// For one call.
const CALL_TIMEOUT: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(100);
/// For the start, and for the end after `stop`: ten minutes.
const POLLS_MAX: u32 = 6_000;
/// A process closes its connections a moment before it ends.
const ENDS_POLLS_MAX: u32 = 20;

/// Its folder is removed when it is dropped.
#[derive(Debug)]
pub struct OwnChain {
    pub(super) files: Vec<PathBuf>,
    /// What the node reported after it had mined.
    pub(super) answer: Answer,
    _folder: Folder,
}

/// Why a node has no chain of its own.
#[derive(Clone, Debug)]
pub struct NotMined {
    pub reason: String,
    pub log_end: Option<String>,
}

impl From<LabError> for NotMined {
    fn from(error: LabError) -> NotMined {
        not_mined(&error.to_string())
    }
}

fn not_mined(what: &str) -> NotMined {
    NotMined { reason: format!("it did not mine its own chain: {what}"), log_end: None }
}

/// Lets the node mine. `None` after an interruption.
pub fn mine(
    contender: &Contender,
    blocks: u32,
    settings: &Settings,
    folder: &Path,
    interrupted: &AtomicBool,
) -> Result<Option<OwnChain>, NotMined> {
    let folder = Folder::new(folder)?;
    let job = job(contender, blocks, settings, folder.0.join("data"))?;
    system::create_dir(&job.data)?;
    let adapter = contender.adapter.as_ref();
    let mut command =
        adapter.offline(&job).ok_or_else(|| not_mined("the lab knows no way to ask this node for blocks"))?;
    let output = folder.0.join("output.txt");
    capture(&mut command, &output)?;
    let miner = Miner { adapter, job: &job, running: Running::start(command)?, interrupted };
    let answer = match miner.mine() {
        Ok(Some(answer)) => answer,
        Ok(None) => return Ok(None),
        // A signal ends a call of the RPC, too.
        Err(_) if miner.is_interrupted() => return Ok(None),
        Err(error) => {
            (0..ENDS_POLLS_MAX).any(|_| miner.has_ended_after_a_poll());
            return Err(NotMined { log_end: Some(log_end(&adapter.log(&job), &output)), ..NotMined::from(error) });
        }
    };
    let files = files_of(&job.chain_folder().join("blocks")).map_err(LabError::from)?;
    Ok(Some(OwnChain { files, answer, _folder: folder }))
}

fn job(contender: &Contender, blocks: u32, settings: &Settings, data: PathBuf) -> Result<Job, NotMined> {
    Ok(Job {
        data,
        network: network(REGTEST).ok_or_else(|| not_mined("there is no regtest"))?,
        height: blocks,
        threads: settings.threads,
        cache_mib: settings.cache_mib,
        peers: Vec::new(),
        time: None,
        validation: settings.validation,
        next_block: None,
        rpc_port: rpc::free_port()?,
        more: contender.more.clone(),
    })
}

/// A running node that mines.
struct Miner<'a> {
    adapter: &'a dyn Adapter,
    job: &'a Job,
    running: Running,
    interrupted: &'a AtomicBool,
}

impl Miner<'_> {
    /// Mines, asks for the result, and stops the node. `None` after an interruption.
    fn mine(&self) -> Result<Option<Answer>, LabError> {
        let Some(server) = self.wait()? else { return Ok(None) };
        let mut mined = 0;
        while mined < self.job.height {
            if self.is_interrupted() {
                return Ok(None);
            }
            let count = CALL_BLOCKS.min(self.job.height - mined);
            let hashes = server.call_within("generatetodescriptor", &json!([count, DESCRIPTOR]), CALL_TIMEOUT)?;
            let found = hashes.as_array().map_or(0, Vec::len);
            if u32::try_from(found) != Ok(count) {
                let text = format!("{found} blocks instead of {count} at height {mined}: {hashes}");
                return Err(LabError::program("RPC generatetodescriptor", text));
            }
            mined += count;
        }
        let set = server.call("gettxoutsetinfo", &json!(["hash_serialized_3"]))?;
        let answer = adapters::core_answer(&set)?;
        if answer.height != self.job.height {
            let text = format!("height {}, expected {}", answer.height, self.job.height);
            return Err(LabError::program("RPC gettxoutsetinfo", text));
        }
        server.call("stop", &json!([]))?;
        match (0..POLLS_MAX).any(|_| self.has_ended_after_a_poll()) {
            true => Ok(Some(answer)),
            false => Err(LabError::program("RPC stop", "the node goes on running")),
        }
    }

    /// Waits until the node answers on its genesis block. `None` after an interruption.
    fn wait(&self) -> Result<Option<rpc::Server>, LabError> {
        let program = || self.adapter.program().display().to_string();
        for _ in 0..POLLS_MAX {
            if self.is_interrupted() {
                return Ok(None);
            }
            if self.has_ended_after_a_poll() {
                return Err(LabError::program(program(), "it ended before it answered"));
            }
            let height = |server: &rpc::Server| server.call_within("getblockcount", &json!([]), CALL_TIMEOUT).ok();
            match self.adapter.rpc(self.job).and_then(|server| height(&server).map(|height| (server, height))) {
                Some((server, height)) if height == json!(0) => return Ok(Some(server)),
                Some((_, height)) => {
                    return Err(LabError::program("RPC getblockcount", format!("{height} at the start, expected 0")));
                }
                None => {}
            }
        }
        Err(LabError::program(program(), "its RPC does not answer"))
    }

    fn has_ended_after_a_poll(&self) -> bool {
        std::thread::sleep(POLL);
        self.running.has_ended()
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}
