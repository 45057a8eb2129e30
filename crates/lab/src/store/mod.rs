//! A cluster of Apache Cassandra on this machine, for tests and measurements of the store beyond one machine.
//!
//! Input: a folder, a number of nodes, their memory. Output: nodes on 127.0.0.1, 127.0.0.2, ... that know each other,
//! and what each of them reports, from its system tables. Invariants: nodes listen on loopback only; nothing of them is
//! outside the folder; no process and no file survives the value. Cost: about 700 MB of memory and 20 s of CPU time for
//! each node. Must never: wait without a limit.

pub mod config;
pub mod cql;
mod disk;
pub mod install;
mod node;

pub use config::{Join, Shape};
pub use cql::{Connection, Consistency, Row};
pub use disk::SmallDisk;
pub use install::{Installed, VERSION, install};
pub use node::Node;

use crate::error::LabError;
use crate::runs::{Folder, rpc, system};
use config::Place;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const POLL: Duration = Duration::from_millis(250);
/// More nodes than these do not fit the memory of the machines that the tests run on.
pub const NODES_MAX: u8 = 5;
/// How often a node is started in the place of one that lost its data before that is an error.
const REPLACEMENTS_MAX: u32 = 3;
/// With these words Cassandra ends a node (`StorageService.bootstrap`, `Gossiper.doShadowRound`) that heard of no other
/// one within its 30 s of waiting, although they run. A service manager starts it again then.
const HEARD_NOTHING: [&str; 2] = ["Unable to contact any seeds", "Unable to gossip with any peers"];
/// The node with the small disk.
pub const SMALL_DISK: usize = 1;
/// The smallest heap with which a node starts.
const HEAP_MIB_MIN: u32 = 256;

/// The inputs of [`Cluster::start`].
#[derive(Debug)]
pub struct Recipe<'a> {
    /// Made for the cluster, and removed with it.
    pub folder: &'a Path,
    pub nodes: u8,
    /// Of each node; a node uses about as much again outside the heap.
    pub heap_mib: u32,
    /// Until all nodes answer.
    pub timeout: Duration,
    pub interrupted: &'a AtomicBool,
}

/// Dropping it kills the nodes and removes their folder.
#[derive(Debug)]
pub struct Cluster {
    installed: Installed,
    nodes: Vec<Node>,
    _folder: Folder,
}

/// What a node reports about itself and the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub address: SocketAddrV4,
    pub version: String,
    /// All nodes must agree.
    pub schema: Vec<u8>,
    /// The members of the cluster that it knows, without itself.
    pub peers: Vec<Ipv4Addr>,
}

impl Cluster {
    /// Starts the nodes and waits until each answers and knows all others. `None` after an interruption.
    pub fn start(recipe: &Recipe<'_>) -> Result<Option<Cluster>, LabError> {
        Cluster::start_with(recipe, None)
    }

    /// The same; the tables of one node have a disk of their own with so many MiB, which can be filled.
    pub fn start_with(recipe: &Recipe<'_>, small_disk_mib: Option<u32>) -> Result<Option<Cluster>, LabError> {
        if recipe.nodes == 0 || recipe.nodes > NODES_MAX {
            return Err(LabError::Usage(format!("a cluster has 1 to {NODES_MAX} nodes, not {}", recipe.nodes)));
        }
        if recipe.heap_mib < HEAP_MIB_MIN {
            return Err(LabError::Usage(format!("a node needs a heap of {HEAP_MIB_MIN} MiB at least")));
        }
        let installed = Installed::find()?;
        let folder = Folder::new(recipe.folder)?;
        let shape = Shape {
            nodes: recipe.nodes,
            cql_port: rpc::free_port()?,
            storage_port: rpc::free_port()?,
            heap_mib: recipe.heap_mib,
            off_heap_mib: recipe.heap_mib / 2,
        };
        let place = |number| Place { number, folder: folder.0.join(format!("node-{}", u32::from(number) + 1)) };
        let nodes = (0..recipe.nodes).map(|number| Node::new(place(number), shape));
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        let mut cluster = Cluster { installed, nodes, _folder: folder };
        if let Some(mib) = small_disk_mib {
            cluster.node_mut(SMALL_DISK)?.give_disk(mib)?;
        }
        for node in &mut cluster.nodes {
            node.start(&cluster.installed, Join::Plainly)?;
        }
        Ok(cluster.wait(recipe.timeout, recipe.interrupted)?.then_some(cluster))
    }

    /// The nodes, running or not.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// To stop, kill or pause one.
    pub fn node_mut(&mut self, number: usize) -> Result<&mut Node, LabError> {
        let count = self.nodes.len();
        let missing = || LabError::Usage(format!("the cluster has {count} nodes, and no node {number}"));
        self.nodes.get_mut(number).ok_or_else(missing)
    }

    /// Starts a node that ended; [`Cluster::wait`] waits until it answers.
    pub fn start_node(&mut self, number: usize, join: Join) -> Result<(), LabError> {
        let installed = self.installed.clone();
        self.node_mut(number)?.start(&installed, join)
    }

    /// Removes the data of a node that ended, starts it in its own place, and waits until it has the data of the others
    /// and answers. False after an interruption.
    pub fn replace_node(
        &mut self,
        number: usize,
        timeout: Duration,
        interrupted: &AtomicBool,
    ) -> Result<bool, LabError> {
        let mut starts = 0;
        loop {
            self.node_mut(number)?.wipe()?;
            self.start_node(number, Join::AsReplacement)?;
            starts += 1;
            let waited = self.wait(timeout, interrupted);
            let node = self.node_mut(number)?;
            let said = if node.has_ended() { node.said() } else { String::new() };
            if starts == REPLACEMENTS_MAX || !HEARD_NOTHING.iter().any(|words| said.contains(words)) {
                return waited;
            }
        }
    }

    /// The hosts of a `cassandra://` address: `127.0.0.1:PORT,127.0.0.2:PORT`.
    pub fn hosts(&self) -> String {
        self.nodes.iter().map(|node| node.address().to_string()).collect::<Vec<_>>().join(",")
    }

    /// The status of each node, from its tables `system.local` and `system.peers_v2`.
    pub fn status(&self) -> Result<Vec<Status>, LabError> {
        self.nodes.iter().filter(|node| node.is_running()).map(status_of).collect()
    }

    /// Waits until every node that runs answers, knows all members, and has the schema of the others. False after an
    /// interruption.
    pub fn wait(&self, timeout: Duration, interrupted: &AtomicBool) -> Result<bool, LabError> {
        let start = system::now();
        let mut last = String::from("nothing was asked");
        while start.elapsed() < timeout {
            if interrupted.load(Ordering::Relaxed) {
                return Ok(false);
            }
            if let Some(ended) = self.nodes.iter().find(|node| node.has_ended()) {
                return Err(ended.failed(format!("it ended; its log has:\n{}", ended.said())));
            }
            match self.status() {
                Ok(status) if is_whole(&status, self.nodes.len()) => return Ok(true),
                Ok(status) => last = format!("the nodes do not know each other yet: {status:?}"),
                Err(error) => last = error.to_string(),
            }
            std::thread::sleep(POLL);
        }
        let said: Vec<String> = self.nodes.iter().map(Node::said).collect();
        let reason = format!("not ready after {} s: {last}; the logs have:\n{}", timeout.as_secs(), said.join("\n"));
        Err(LabError::program("Cassandra", reason))
    }
}

fn is_whole(status: &[Status], nodes: usize) -> bool {
    let schema = status.first().map(|one| &one.schema);
    status.iter().all(|one| one.peers.len() + 1 == nodes && Some(&one.schema) == schema)
}

fn status_of(node: &Node) -> Result<Status, LabError> {
    let odd = |what: &str| node.failed(format!("{what} is missing in its system tables"));
    let local = "SELECT release_version, schema_version FROM system.local";
    let mut rows = node.query(local, Consistency::One)?;
    let Some([Some(version), Some(schema)]) = rows.pop().and_then(|row| <[_; 2]>::try_from(row).ok()) else {
        return Err(odd("its version"));
    };
    let peers = node.query("SELECT peer FROM system.peers_v2", Consistency::One)?;
    let address = |row: Row| {
        let cell = row.into_iter().next().flatten()?;
        <[u8; 4]>::try_from(cell).ok().map(Ipv4Addr::from)
    };
    Ok(Status {
        address: node.address(),
        version: String::from_utf8_lossy(&version).into_owned(),
        schema,
        peers: peers.into_iter().map(address).collect::<Option<_>>().ok_or_else(|| odd("an address"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_oracle::Scratch;

    fn status(number: u8, peers: &[u8], schema: u8) -> Status {
        let address = |number| Ipv4Addr::new(127, 0, 0, number);
        Status {
            address: SocketAddrV4::new(address(number), 1),
            version: VERSION.to_owned(),
            schema: vec![schema],
            peers: peers.iter().map(|number| address(*number)).collect(),
        }
    }

    #[test]
    fn nodes_that_miss_one_or_differ_are_no_cluster_yet() {
        assert!(is_whole(&[status(1, &[2], 1), status(2, &[1], 1)], 2));
        assert!(!is_whole(&[status(1, &[2], 1), status(2, &[], 1)], 2));
        assert!(!is_whole(&[status(1, &[2], 1), status(2, &[1], 2)], 2));
    }

    #[test]
    fn impossible_clusters_are_refused() {
        let scratch = Scratch::new("lab-store-refused");
        let interrupted = AtomicBool::new(false);
        let start = |nodes, heap_mib| {
            let folder = &scratch.path().join("cluster");
            let recipe = Recipe { folder, nodes, heap_mib, timeout: Duration::ZERO, interrupted: &interrupted };
            Cluster::start(&recipe).unwrap_err().to_string()
        };
        assert_eq!(start(0, 512), "a cluster has 1 to 5 nodes, not 0");
        assert_eq!(start(6, 512), "a cluster has 1 to 5 nodes, not 6");
        assert!(start(3, 100).contains("256 MiB at least"));
    }

    const PATIENCE: Duration = Duration::from_secs(300);

    fn three_nodes(scratch: &Scratch, interrupted: &AtomicBool) -> Cluster {
        let folder = &scratch.path().join("cluster");
        let recipe = Recipe { folder, nodes: 3, heap_mib: 512, timeout: PATIENCE, interrupted };
        Cluster::start(&recipe).unwrap().unwrap()
    }

    #[test]
    #[ignore = "starts three nodes of Cassandra for a minute: `lydian-lab store install`; then: cargo test --locked --workspace --lib -- --ignored store::tests::three_nodes, which make test-store runs"]
    fn three_nodes_survive_what_an_operator_does() {
        let (scratch, interrupted) = (Scratch::new("lab-store-cluster"), AtomicBool::new(false));
        let mut cluster = three_nodes(&scratch, &interrupted);
        let all = cluster.status().unwrap();
        assert!(all.len() == 3 && all.iter().all(|one| one.version == VERSION), "{all:?}");
        assert!(cluster.start_node(0, Join::Plainly).unwrap_err().to_string().contains("it runs already"));
        assert!(cluster.nodes()[2].wipe().unwrap_err().to_string().contains("it runs"));
        cluster.node_mut(2).unwrap().kill().unwrap();
        assert_eq!(cluster.status().unwrap().len(), 2);
        cluster.start_node(2, Join::Plainly).unwrap();
        assert!(cluster.wait(PATIENCE, &interrupted).unwrap());
        cluster.node_mut(1).unwrap().stop().unwrap();
        cluster.start_node(1, Join::Plainly).unwrap();
        assert!(cluster.wait(PATIENCE, &interrupted).unwrap());
    }

    #[test]
    #[ignore = "starts three nodes of Cassandra for two minutes: `lydian-lab store install`; then: cargo test --locked --workspace --lib -- --ignored store::tests::a_node_without_its_data, which make test-store runs"]
    fn a_node_without_its_data_is_replaced() {
        let (scratch, interrupted) = (Scratch::new("lab-store-replaced"), AtomicBool::new(false));
        let mut cluster = three_nodes(&scratch, &interrupted);
        cluster.node_mut(2).unwrap().kill().unwrap();
        assert!(cluster.replace_node(2, PATIENCE, &interrupted).unwrap());
    }
}
