//! The command line of `lydian-lab scale`: the chain, the program, the rows; and its commands `project` and `cluster`.
//!
//! Input: arguments. Output: Markdown or JSON. Exit code 0 if every answer was right, 1 if not; a program that fails is
//! an error of the lab.

mod cluster;
mod project;

use crate::cli::interrupt::interrupted;
use crate::cli::{Report, print_progress};
use clap::Subcommand;
use cluster::{ClusterArgs, cluster};
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::parallel;
use lydian_chains::presets::scale::ScaleSettings;
use lydian_disk::{Disk, RealDisk};
use lydian_lab::LabError;
use lydian_lab::index_size::program;
use lydian_lab::runs::adapters::cache_folder;
use lydian_lab::runs::chain_cache::{Preset, ensure};
use lydian_lab::runs::lock::{Lock, lock};
use lydian_lab::scale::{Measurement, Row, ScaleReport, Settings};
use project::{ProjectArgs, project};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const EXIT_NOT_RIGHT: u8 = 1;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ScaleArgs {
    #[command(subcommand)]
    command: Option<ScaleCommand>,
    /// Transactions of the script with the long history.
    #[arg(long, default_value_t = 1_000_000)]
    transactions: u32,
    /// Of these, in each block.
    #[arg(long, default_value_t = 4_000)]
    per_block: u32,
    /// Other scripts, with one coin each, which one connection subscribes to.
    #[arg(long, default_value_t = 100_000)]
    scripts: u32,
    /// Height of the chain, by empty blocks above: blocks are sealed 1,088 blocks below the tip.
    #[arg(long, default_value_t = 3_200)]
    height: u32,
    /// Number of subscribed scripts that a block touches; a figure for each.
    #[arg(long, value_delimiter = ',', default_value = "10,1000,5000")]
    touched: Vec<u32>,
    /// Number of blocks for each of these.
    #[arg(long, default_value_t = 5)]
    blocks: u32,
    /// Number of connections that ask for histories while blocks are connected; 0: none.
    #[arg(long, default_value_t = 64)]
    load: u32,
    /// Number of connections that are opened and closed.
    #[arg(long, default_value_t = 100_000)]
    connections: u32,
    /// Of these, open at the same time; the server accepts 2,048.
    #[arg(long, default_value_t = 1_000)]
    at_once: u32,
    /// Number of queries of the long history, and of restarts.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Measure only these rows: history, restart, connections, notifications.
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    only: Vec<String>,
    /// Time limit of each step in seconds.
    #[arg(long, default_value_t = 600)]
    timeout_seconds: u64,
    #[command(flatten)]
    run: RunArgs,
}

/// What both measurements have in common.
#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Path of the program `lydian`; `scale cluster` needs one with the cargo feature `cassandra` [default: the one
    /// beside this program].
    #[arg(long)]
    node_path: Option<PathBuf>,
    /// Additional argument for each node.
    #[arg(long, allow_hyphen_values = true)]
    node_arg: Vec<String>,
    /// Directory in which everything runs [default: in the cache directory].
    #[arg(long)]
    work: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What a measurement needs, as long as no other lab measures.
struct Prepared {
    program: PathBuf,
    work: PathBuf,
    folder: PathBuf,
    chain: ChainFiles,
    interrupted: Arc<AtomicBool>,
    _lock: Lock,
}

impl RunArgs {
    /// Finds the program, locks the cache, and makes the chain if it is missing.
    fn prepare(&self, preset: Preset) -> Result<Prepared, LabError> {
        let program = program(self.node_path.as_deref())?;
        let cache = cache_folder();
        let lock = lock(&cache)?;
        let interrupted = interrupted()?;
        let work = self.work.clone().unwrap_or_else(|| cache.join("work"));
        RealDisk.create_dir(&work)?;
        let (folder, chain) = ensure(preset, &cache.join("chains"), parallel::default_threads(), &mut print_progress)?;
        Ok(Prepared { program, work, folder, chain, interrupted, _lock: lock })
    }

    fn report(&self, results: &impl ScaleReport) -> Report {
        let text = if self.json { results.to_json() } else { results.to_markdown() };
        Report { text, exit_code: if results.is_right() { 0 } else { EXIT_NOT_RIGHT } }
    }
}

#[derive(Debug, Subcommand)]
enum ScaleCommand {
    /// Project what a number of wallets needs from measured costs: requests, cores, machines, memory, with bounds.
    Project(ProjectArgs),
    /// Measure an installation under the load of wallets while parts of it fail: front ends on a store, or whole nodes
    /// behind a balancer.
    Cluster(ClusterArgs),
}

pub(crate) fn scale(args: &ScaleArgs) -> Result<Report, LabError> {
    match &args.command {
        Some(ScaleCommand::Project(args)) => project(args),
        Some(ScaleCommand::Cluster(args)) => cluster(args),
        None => one_server(args),
    }
}

fn one_server(args: &ScaleArgs) -> Result<Report, LabError> {
    let rows = Row::named(&args.only)?;
    if args.rounds == 0 || args.blocks == 0 || args.at_once == 0 || args.timeout_seconds == 0 {
        let text = "--rounds, --blocks, --at-once and --timeout-seconds must be at least 1";
        return Err(LabError::Usage(text.to_owned()));
    }
    let ScaleArgs { transactions, per_block, scripts, height, .. } = *args;
    let prepared = args.run.prepare(Preset::Scale(ScaleSettings { transactions, per_block, scripts, height }))?;
    let settings = Settings {
        rounds: args.rounds,
        connections: args.connections,
        at_once: args.at_once,
        scripts,
        touched: args.touched.clone(),
        blocks: args.blocks,
        load: args.load,
        timeout_seconds: args.timeout_seconds,
    };
    let measurement = Measurement {
        chain: &prepared.chain,
        folder: &prepared.folder,
        program: &prepared.program,
        rows: &rows,
        settings,
        more: &args.run.node_arg,
        work: &prepared.work,
        command_line: std::env::args().collect(),
        interrupted: &prepared.interrupted,
    };
    Ok(args.run.report(&measurement.run(&mut print_progress)?))
}
