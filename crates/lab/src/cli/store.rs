//! The command line of `lydian-lab store`: installs Apache Cassandra, and runs a cluster of it on loopback.
//!
//! Output: the version, or the hosts for a `cassandra://` address as soon as all nodes answer. The cluster runs until
//! Ctrl-C, and its data is removed then. Exit code 2 if it cannot be started.

use crate::cli::interrupt::interrupted;
use crate::cli::{Report, print_progress};
use clap::Subcommand;
use lydian_lab::LabError;
use lydian_lab::runs::adapters::cache_folder;
use lydian_lab::store::{Cluster, Recipe, VERSION, install};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub(crate) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Install Apache Cassandra into the cache directory, with Maven, and print its version.
    Install,
    /// Run a cluster on 127.0.0.1, 127.0.0.2, ... until Ctrl-C, then remove its data.
    Run(RunArgs),
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Number of nodes, at most 5.
    #[arg(long, default_value_t = 3)]
    nodes: u8,
    /// Heap of each node in MiB; a node uses about as much again outside of it.
    #[arg(long, default_value_t = 512)]
    heap_mib: u32,
    /// Time limit of the start in seconds.
    #[arg(long, default_value_t = 300)]
    timeout_seconds: u64,
    /// Directory in which the nodes run [default: in the cache directory].
    #[arg(long)]
    work: Option<PathBuf>,
}

pub(crate) fn store(args: &StoreArgs) -> Result<Report, LabError> {
    match &args.command {
        StoreCommand::Install => install(&mut print_progress).map(|_| Report::from(format!("{VERSION}\n"))),
        StoreCommand::Run(args) => run(args),
    }
}

fn run(args: &RunArgs) -> Result<Report, LabError> {
    let interrupted = interrupted()?;
    let folder = args.work.clone().unwrap_or_else(|| cache_folder().join("work")).join("store");
    let recipe = Recipe {
        folder: &folder,
        nodes: args.nodes,
        heap_mib: args.heap_mib,
        timeout: Duration::from_secs(args.timeout_seconds),
        interrupted: &interrupted,
    };
    print_progress("starting the nodes");
    let Some(cluster) = Cluster::start(&recipe)? else { return Ok(Report::from(String::new())) };
    for status in cluster.status()? {
        print_progress(&format!("{}: Cassandra {}, knows {:?}", status.address, status.version, status.peers));
    }
    print_progress(&format!("cassandra://{}/KEYSPACE; Ctrl-C stops the cluster and removes its data", cluster.hosts()));
    while !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(POLL);
    }
    Ok(Report::from(String::new()))
}
