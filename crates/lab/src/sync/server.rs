//! A node that holds the chain and serves it to peers on loopback while the contenders run.
//!
//! Input: an adapter, a chain. Output: a running process with its port. It first validates the block files itself until
//! it exits cleanly, and is then started again to serve, so that no contender syncs from a node that is still busy.
//! Cost: one reindex. Must never: outlive the value, or look for peers.

use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::measure::Guard;
use crate::runs::running::Running;
use crate::runs::{self, Folder, arguments_of, capture, log_end, program_facts, rpc, validate};
use lydian_chains::chain_files::ChainFiles;
use lydian_report::results::{NodeFacts, Settings};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);
/// Loading a large chain takes a while; a process that has ended is noticed at once.
const POLLS_MAX: u32 = 6_000;
/// After the server answers, time for its start-up work on other threads.
const SETTLES: Duration = Duration::from_secs(1);

/// Dropping it kills the node and removes its folder.
#[derive(Debug)]
pub struct Server {
    process: Running,
    port: u16,
    facts: NodeFacts,
    job: Job,
    _folder: Folder,
}

/// The inputs of [`Server::start`].
#[derive(Debug)]
pub struct Recipe<'a> {
    /// Its name in the results.
    pub name: &'a str,
    pub adapter: &'a dyn Adapter,
    pub chain: &'a ChainFiles,
    pub settings: &'a Settings,
    /// Made for the server, and removed with it.
    pub folder: &'a Path,
    pub interrupted: &'a AtomicBool,
}

impl Server {
    /// Waits until it serves the chain. `None` after an interruption.
    pub fn start(recipe: &Recipe<'_>) -> Result<Option<Server>, LabError> {
        let Recipe { name, adapter, chain, settings, .. } = *recipe;
        let folder = Folder::new(recipe.folder)?;
        let job = Job {
            data: folder.0.join("data"),
            network: chain.network,
            height: chain.facts.height,
            threads: settings.threads,
            cache_mib: settings.cache_mib,
            peers: Vec::new(),
            time: None,
            validation: settings.validation,
            next_block: None,
            rpc_port: rpc::free_port()?,
            more: Vec::new(),
        };
        let port = rpc::free_port()?;
        let Some(mut command) = adapter.serve(&job, port) else {
            return Err(LabError::Usage(format!(
                "--server {name}: this node cannot serve a chain that it did not receive in the same run"
            )));
        };
        let output = folder.0.join("output.txt");
        runs::chain::copy_to(chain, &job.chain_folder().join("blocks"))?;
        adapter.take_over(&job)?;
        let guard = Guard {
            timeout: Duration::from_secs(settings.timeout_seconds),
            memory_max_bytes: settings.memory_max_bytes,
            disk_free_min_bytes: settings.disk_free_min_bytes,
            interrupted: recipe.interrupted,
            servers: &[],
        };
        if !validate((name, "the server"), adapter, &job, &output, &guard)? {
            return Ok(None);
        }
        let facts = NodeFacts {
            arguments: arguments_of(&command),
            ..program_facts(name, adapter.program(), adapter.version()?, adapter.notes())
        };
        capture(&mut command, &output)?;
        let mut server = Server { process: Running::start(command)?, port, facts, job, _folder: folder };
        let is_there = server.wait(recipe, &output)?;
        Ok(is_there.then_some(server))
    }

    pub fn address(&self) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port)
    }

    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// The RPC server that reports how many bytes it sent and received.
    pub fn counter(&self) -> Option<rpc::Server> {
        rpc::Server::with_cookie(&self.job)
    }

    pub fn facts(&self) -> &NodeFacts {
        &self.facts
    }

    fn wait(&mut self, recipe: &Recipe<'_>, output: &Path) -> Result<bool, LabError> {
        let name = recipe.name;
        let tip = Value::from(recipe.chain.facts.tip.clone());
        for _ in 0..POLLS_MAX {
            std::thread::sleep(POLL);
            if recipe.interrupted.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if self.process.has_ended() {
                break;
            }
            // Until it is ready, it refuses the connection or answers -28.
            let best = self.counter().and_then(|server| server.call("getbestblockhash", &json!([])).ok());
            match best {
                Some(best) if best == tip => {
                    std::thread::sleep(SETTLES);
                    return Ok(true);
                }
                Some(best) => {
                    let reason = format!("the server ends the chain at {best}, expected {tip}");
                    return Err(LabError::program(name, reason));
                }
                None => {}
            }
        }
        let said = log_end(&recipe.adapter.log(&self.job), output);
        Err(LabError::program(name, format!("the server does not answer; its log ends:\n{said}")))
    }
}
