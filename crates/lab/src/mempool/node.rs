//! A node of the comparison: its data directory with the chain, made once, and a process on a copy of it.
//!
//! Input: an adapter, the data. Output: a running node with RPC and P2P on loopback and an empty mempool. Cost: one
//! reindex per node, and a copy of the data directory per session. Must never: outlive the value, or keep a mempool
//! from one session to the next.

use super::data::Data;
use crate::electrum::process::Process;
use crate::error::LabError;
use crate::runs::adapter::Job;
use crate::runs::measure::Guard;
use crate::runs::{Contender, Folder, chain, log_end, rpc, system, validate};
use lydian_report::mempool::{Content, MempoolSettings};
use lydian_report::results::Validation;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The blocks of the lab's chains are old: without it a node stays in initial block download, in which it neither
/// imports a mempool nor relays transactions. Room for the whole mempool and for all peers, and a fee that every
/// generated transaction pays. Nothing is written at the end. None of regtest's self-checks, which walk the whole
/// mempool with every transaction and which no other network does.
const OPTIONS: &[&str] = &[
    "-maxtipage=1000000000",
    "-maxmempool=4000",
    "-minrelaytxfee=0.00000100",
    "-incrementalrelayfee=0.00000100",
    "-persistmempool=0",
    "-checkmempool=0",
    "-maxconnections=300",
];
const POLL: Duration = Duration::from_millis(50);
/// After the node answers, time for its start-up work on other threads.
const SETTLES: Duration = Duration::from_secs(1);
/// A node is idle when it used no CPU time for this long.
const IDLE: Duration = Duration::from_millis(1_000);

/// What the sessions have in common.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    pub data: &'a Data,
    pub settings: &'a MempoolSettings,
    pub work: &'a Path,
    pub interrupted: &'a AtomicBool,
}

impl Common<'_> {
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.settings.timeout_seconds)
    }

    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    pub fn job(&self, data: PathBuf, more: &[String]) -> Result<Job, LabError> {
        Ok(Job {
            data,
            network: self.data.chain.network,
            height: self.data.chain.facts.height,
            threads: self.settings.threads,
            cache_mib: self.settings.cache_mib,
            peers: Vec::new(),
            time: None,
            validation: Validation::Full,
            next_block: None,
            rpc_port: rpc::free_port()?,
            more: more.to_vec(),
        })
    }
}

/// The options of every node and those of one.
pub fn options(own: &[String]) -> Vec<String> {
    OPTIONS.iter().map(|option| (*option).to_owned()).chain(own.iter().cloned()).collect()
}

/// Makes a data directory with the validated chain. `false` after an interruption.
pub fn prepare(common: &Common<'_>, contender: &Contender, folder: &Path) -> Result<bool, LabError> {
    let job = common.job(folder.join("data"), &[])?;
    chain::copy_to(&common.data.chain, &job.chain_folder().join("blocks"))?;
    contender.adapter.take_over(&job)?;
    let guard = Guard {
        timeout: common.timeout(),
        memory_max_bytes: u64::MAX,
        disk_free_min_bytes: 0,
        interrupted: common.interrupted,
        servers: &[],
    };
    validate((&contender.name, "it"), contender.adapter.as_ref(), &job, &folder.join("output.txt"), &guard)
}

/// A running node. Dropping it kills the process and removes its folder.
#[derive(Debug)]
pub struct Node {
    process: Process,
    server: rpc::Server,
    pub port: u16,
    job: Job,
    timeout: Duration,
    _folder: Folder,
}

impl Node {
    /// Starts the node on a copy of its prepared data directory and waits until it answers with the chain's tip.
    pub fn start(common: &Common<'_>, contender: &Contender, more: &[String], from: &Path) -> Result<Node, LabError> {
        let folder = Folder::new(&common.work.join("run"))?;
        let job = common.job(folder.0.join("data"), &options(more))?;
        copy_folder(&from.join("data"), &job.data)?;
        let port = rpc::free_port()?;
        let Some(command) = contender.adapter.serve(&job, port) else {
            return Err(LabError::program(&contender.name, "the lab cannot start this node as a server"));
        };
        let output = folder.0.join("output.txt");
        let process = Process::start(command, &output)?;
        let tip = Value::from(common.data.chain.facts.tip.clone());
        let start = system::now();
        while start.elapsed() < common.timeout() && !process.has_ended() && !common.is_interrupted() {
            std::thread::sleep(POLL);
            let Some(server) = rpc::Server::with_cookie(&job) else { continue };
            match server.call("getbestblockhash", &json!([])) {
                Ok(best) if best == tip => {
                    std::thread::sleep(SETTLES);
                    return Ok(Node { process, server, port, job, timeout: common.timeout(), _folder: folder });
                }
                Ok(best) => {
                    return Err(LabError::program(
                        &contender.name,
                        format!("it starts at block {best}, expected {tip}"),
                    ));
                }
                // Until it is ready, it refuses the connection or answers -28.
                Err(_) => {}
            }
        }
        let said = log_end(&contender.adapter.log(&job), &output);
        Err(LabError::program(&contender.name, format!("it does not answer; its log ends:\n{said}")))
    }

    pub fn job(&self) -> &Job {
        &self.job
    }

    pub fn call(&self, method: &str, params: &Value) -> Result<Value, LabError> {
        self.server.call_within(method, params, self.timeout)
    }

    /// Counts the bytes of an answer and how often `needle` occurs in it.
    pub fn count(&self, method: &str, params: &Value, needle: &str) -> Result<(u64, u64), LabError> {
        self.server.count(method, params, needle, self.timeout)
    }

    pub fn cpu_seconds(&self) -> f64 {
        self.process.used().cpu_seconds
    }

    /// The CPU time of the node's threads with this name.
    pub fn cpu_seconds_of(&self, thread: &str) -> f64 {
        self.process.cpu_seconds_of(thread)
    }

    pub fn rss_bytes(&self) -> u64 {
        self.process.used().rss_bytes
    }

    pub fn content(&self) -> Result<Content, LabError> {
        let info = self.call("getmempoolinfo", &json!([]))?;
        let number = |name: &str| {
            let form = || LabError::program("RPC getmempoolinfo", format!("no {name} in the answer: {info}"));
            info[name].as_u64().ok_or_else(form)
        };
        Ok(Content { size: number("size")?, bytes: number("bytes")?, usage: number("usage")? })
    }

    /// Waits until the mempool has this many transactions. It is an error if it stops growing before.
    pub fn wait_for_size(&self, size: u64) -> Result<(), LabError> {
        let (mut last, mut since) = (0, system::now());
        loop {
            let now = self.content()?.size;
            if now >= size {
                return Ok(());
            }
            if now > last {
                (last, since) = (now, system::now());
            }
            if since.elapsed() > self.timeout.min(Duration::from_secs(60)) {
                let text = format!("accepted only {now} of {size} transactions");
                return Err(LabError::program("mempool", text));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until the node uses no CPU time any more; returns the CPU time that it had used then.
    pub fn until_idle(&self) -> f64 {
        let start = system::now();
        let mut used = self.cpu_seconds();
        while start.elapsed() < self.timeout {
            std::thread::sleep(IDLE);
            let now = self.cpu_seconds();
            // A tick is 10 ms, and an idle node wakes up now and then.
            if now - used < 0.015 {
                return now;
            }
            used = now;
        }
        used
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), LabError> {
    system::create_dir(to)?;
    for file in system::files_below(from) {
        let Ok(relative) = file.strip_prefix(from) else { continue };
        let target = to.join(relative);
        if let Some(parent) = target.parent() {
            system::create_dir(parent)?;
        }
        std::fs::copy(&file, &target).map_err(|error| LabError::io("copy", &file, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_copied_with_what_is_below_it() {
        let folder = std::env::temp_dir().join(format!("lydian-lab-mempool-copy-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        system::create_dir(&from.join("a/b")).unwrap();
        for name in ["x", "a/y", "a/b/z"] {
            lydian_disk::Disk::write_whole(&lydian_disk::RealDisk, &from.join(name), name.as_bytes()).unwrap();
        }
        copy_folder(&from, &to).unwrap();
        let read = |name: &str| lydian_disk::read_whole(&lydian_disk::RealDisk, &to.join(name), 99).unwrap();
        assert_eq!(["x", "a/y", "a/b/z"].map(read), ["x", "a/y", "a/b/z"].map(|name| name.as_bytes().to_vec()));
        system::remove_dir(&folder).unwrap();
    }

    #[test]
    fn own_options_come_last() {
        let all = options(&["-par=1".to_owned()]);
        assert_eq!((all.first().unwrap().as_str(), all.last().unwrap().as_str()), (OPTIONS[0], "-par=1"));
    }
}
