//! The node below the servers: Bitcoin Core or Lydian, with the chain validated and its own indexes built.
//!
//! Input: an adapter, a chain, the arguments that the servers require. Output: a running node on loopback. It first
//! validates the block files itself until it exits cleanly, and is then started again. Its indexes are built before the
//! first server starts, and their size is reported separately. Must never: look for peers, outlive the value, or run
//! with fewer arguments than a server needs.

use super::adapter::DaemonPlace;
use super::process::Process;
use crate::error::LabError;
use crate::runs::adapter::{Adapter, Job};
use crate::runs::measure::Guard;
use crate::runs::{Folder, arguments_of, chain, log_end, program_facts, rpc, system, validate};
use lydian_chains::chain_files::ChainFiles;
use lydian_report::results::{NodeFacts, Validation};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);
const CACHE_MIB: u64 = 1_000;
/// The blocks of the lab's chains are old: without this the node stays in initial block download, and servers wait for
/// that to end.
const OLD_TIP: &str = "-maxtipage=1000000000";

/// The argument of servers that read blocks over the node's REST interface.
pub const REST: &str = "-rest=1";
/// The folder that all indexes of Lydian share.
const TABLES: &str = "tables";

/// The kinds of nodes that can be below the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowKind {
    Core,
    Lydian,
}

impl BelowKind {
    /// Its name among the nodes of the lab.
    pub fn name(self) -> &'static str {
        match self {
            BelowKind::Core => "bitcoind",
            BelowKind::Lydian => "lydian",
        }
    }
}

/// The node below the servers, before it is started.
#[derive(Clone, Copy, Debug)]
pub struct Below<'a> {
    pub kind: BelowKind,
    pub adapter: &'a dyn Adapter,
}

/// The inputs of [`Daemon::start`].
#[derive(Debug)]
pub struct Recipe<'a> {
    pub below: Below<'a>,
    pub chain: &'a ChainFiles,
    /// The arguments that all servers together require.
    pub arguments: Vec<String>,
    pub threads: usize,
    /// Made for the node, and removed with it.
    pub folder: &'a Path,
    /// For each step of the start.
    pub timeout: Duration,
    pub interrupted: &'a AtomicBool,
}

/// Dropping it kills the node and removes its folder.
#[derive(Debug)]
pub struct Daemon {
    kind: BelowKind,
    process: Process,
    job: Job,
    p2p_port: u16,
    facts: NodeFacts,
    _folder: Folder,
}

impl Daemon {
    /// Waits until the chain is validated and its indexes are built. `None` after an interruption.
    pub fn start(recipe: &Recipe<'_>) -> Result<Option<Daemon>, LabError> {
        let folder = Folder::new(recipe.folder)?;
        let mut more = vec![OLD_TIP.to_owned()];
        more.extend(recipe.arguments.iter().cloned());
        let job = Job {
            data: folder.0.join("data"),
            network: recipe.chain.network,
            height: recipe.chain.facts.height,
            threads: recipe.threads,
            cache_mib: CACHE_MIB,
            peers: Vec::new(),
            time: None,
            validation: Validation::Full,
            next_block: None,
            rpc_port: rpc::free_port()?,
            more,
        };
        let p2p_port = rpc::free_port()?;
        let Below { kind, adapter } = recipe.below;
        let Some(command) = adapter.serve(&job, p2p_port) else {
            return Err(LabError::Usage("this node cannot serve as the node below an Electrum server".to_owned()));
        };
        let output = folder.0.join("output.txt");
        chain::copy_to(recipe.chain, &job.chain_folder().join("blocks"))?;
        adapter.take_over(&job)?;
        let guard = Guard {
            timeout: recipe.timeout,
            memory_max_bytes: u64::MAX,
            disk_free_min_bytes: 0,
            interrupted: recipe.interrupted,
            servers: &[],
        };
        if !validate((kind.name(), "it"), adapter, &job, &output, &guard)? {
            return Ok(None);
        }
        let data = job.data.display().to_string();
        let facts = NodeFacts {
            arguments: arguments_of(&command).into_iter().map(|text| text.replace(&data, "DATADIR")).collect(),
            ..program_facts(kind.name(), adapter.program(), adapter.version()?, adapter.notes())
        };
        let process = Process::start(command, &output)?;
        let daemon = Daemon { kind, process, job, p2p_port, facts, _folder: folder };
        Ok(daemon.wait(recipe, &output)?.then_some(daemon))
    }

    pub fn facts(&self) -> &NodeFacts {
        &self.facts
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    pub fn data(&self) -> &Path {
        &self.job.data
    }

    pub fn call(&self, method: &str, params: &Value) -> Result<Value, LabError> {
        self.server()?.call(method, params)
    }

    pub fn place(&self) -> Result<DaemonPlace, LabError> {
        let server = self.server()?;
        let (user, password) = server.credentials.split_once(':').unwrap_or((server.credentials.as_str(), ""));
        Ok(DaemonPlace {
            data: self.job.data.clone(),
            network: self.job.network,
            rpc_port: self.job.rpc_port,
            p2p_port: self.p2p_port,
            user: user.to_owned(),
            password: password.to_owned(),
            cookie: self.job.cookie(),
        })
    }

    /// Bytes of the node's own indexes that these arguments enable.
    pub fn index_bytes(&self, arguments: &[&str]) -> u64 {
        let folders = index_folders(&self.job.chain_folder().join("indexes"), arguments);
        folders.iter().map(|folder| system::disk_bytes(folder)).sum()
    }

    fn rpc(&self) -> Option<rpc::Server> {
        rpc::Server::with_cookie(&self.job)
    }

    fn server(&self) -> Result<rpc::Server, LabError> {
        self.rpc().ok_or_else(|| LabError::program(self.kind.name(), "its RPC cookie is gone"))
    }

    /// Waits until the node answers with the chain's tip and each of its indexes is synced.
    fn wait(&self, recipe: &Recipe<'_>, output: &Path) -> Result<bool, LabError> {
        let tip = Value::from(recipe.chain.facts.tip.clone());
        let start = system::now();
        while start.elapsed() < recipe.timeout && !self.process.has_ended() {
            std::thread::sleep(POLL);
            if recipe.interrupted.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let Some(server) = self.rpc() else { continue };
            let Ok(best) = server.call("getbestblockhash", &json!([])) else { continue };
            if best != tip {
                let reason = format!("the node below the servers ends the chain at {best}, expected {tip}");
                return Err(LabError::program(self.kind.name(), reason));
            }
            if server
                .call("getindexinfo", &json!([]))
                .is_ok_and(|indexes| are_built(&indexes, recipe.chain.facts.height))
            {
                return Ok(true);
            }
        }
        let said = log_end(&recipe.below.adapter.log(&self.job), output);
        let reason = format!("the node below the servers is not ready; its log ends:\n{said}");
        Err(LabError::program(self.kind.name(), reason))
    }
}

/// The folders, each once, in which a node keeps the indexes that these arguments enable: one for each index of Core,
/// one for all of Lydian.
fn index_folders(indexes: &Path, arguments: &[&str]) -> BTreeSet<PathBuf> {
    let folder_of = |argument: &&str| {
        let name = argument.strip_prefix('-')?.strip_suffix("=1").filter(|name| name.ends_with("index"))?;
        [name, TABLES].into_iter().map(|folder| indexes.join(folder)).find(|folder| folder.is_dir())
    };
    arguments.iter().filter_map(folder_of).collect()
}

fn are_built(indexes: &Value, height: u32) -> bool {
    let is_built = |index: &Value| index["synced"] == true && index["best_block_height"] == height;
    indexes.as_object().is_some_and(|indexes| indexes.values().all(is_built))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_built_at_the_height_of_the_tip() {
        let index = |synced, height| json!({"txindex": {"synced": synced, "best_block_height": height}});
        assert!(are_built(&index(true, 7), 7) && are_built(&json!({}), 7));
        assert!(!are_built(&index(false, 7), 7) && !are_built(&index(true, 6), 7) && !are_built(&json!(null), 7));
    }

    #[test]
    fn indexes_have_a_folder_each_or_share_one() {
        let folder = std::env::temp_dir().join(format!("lydian-lab-index-folders-{}", std::process::id()));
        let arguments = ["-txindex=1", "-rest=1", "-txospenderindex=1", "-coinstatsindex=1"];
        let found = || index_folders(&folder, &arguments).into_iter().collect::<Vec<_>>();
        assert!(found().is_empty());
        for name in ["txindex", "txospenderindex", "rest"] {
            system::create_dir(&folder.join(name)).unwrap();
        }
        assert_eq!(found(), [folder.join("txindex"), folder.join("txospenderindex")]);
        system::remove_dir(&folder).unwrap();
        system::create_dir(&folder.join(TABLES)).unwrap();
        assert_eq!(found(), [folder.join(TABLES)], "once, though three arguments enable it");
        system::remove_dir(&folder).unwrap();
    }
}
