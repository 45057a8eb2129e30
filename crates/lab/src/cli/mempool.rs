//! The command line of `lydian-lab mempool`: the data, the nodes, the rows.
//!
//! Input: arguments. Output: the Markdown table, and the JSON file after each session. Exit code 0 if every session
//! gave its figures and all nodes reported the same mempool, 1 if not, 130 after a Ctrl-C, which keeps the finished
//! sessions.

use crate::cli::interrupt::interrupted;
use crate::cli::runs::named;
use crate::cli::{Report, print_progress};
use lydian_chains::parallel;
use lydian_chains::presets::mempool_mix;
use lydian_disk::{Disk, RealDisk};
use lydian_lab::LabError;
use lydian_lab::mempool::{Comparison, Data, Row};
use lydian_lab::runs::adapters::cache_folder;
use lydian_lab::runs::lock::lock;
use lydian_report::mempool::{MempoolResults, MempoolSettings, to_markdown};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

const EXIT_NOT_RIGHT: u8 = 1;
const EXIT_INTERRUPTED: u8 = 130;
/// Above this number of transactions, blocks are as full as their weight permits.
const SMALL_MEMPOOL: u32 = 20_000;
/// More than fit into a block of the mix.
const BLOCK_TRANSACTIONS_MAX: u32 = 10_000;
/// Blocks into which a small mempool is divided, so that every row has its blocks.
const SMALL_MEMPOOL_BLOCKS: u32 = 8;

#[derive(Debug, clap::Args)]
pub(crate) struct MempoolArgs {
    /// Number of transactions in the mempool, with mainnet's mix of kinds and sizes.
    #[arg(long, default_value_t = 100_000)]
    transactions: u32,
    /// Number of full blocks at the end of the chain on which the nodes start.
    #[arg(long, default_value_t = 8)]
    full: u32,
    /// Seed of the generated chain and transactions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Nodes with Bitcoin Core's RPC, in turn; KIND:LABEL for a second build of one kind. Ratios are to the first.
    #[arg(long, value_delimiter = ',', default_value = "bitcoind,lydian")]
    nodes: Vec<String>,
    /// Path of a node's program: NAME=PATH.
    #[arg(long)]
    node_path: Vec<String>,
    /// Additional argument for a node: NAME=ARGUMENT.
    #[arg(long, allow_hyphen_values = true)]
    node_arg: Vec<String>,
    /// Number of runs of each session.
    #[arg(long, default_value_t = 3)]
    runs: u32,
    /// Measure only these rows: import, import-reference (Lydian with -sigengine=reference), tx, memory, getrawmempool,
    /// block, compact-block, forward, peers, cluster.
    #[arg(long, value_delimiter = ',', value_name = "ROW")]
    only: Vec<String>,
    /// Script threads of each node, including the main one (`-par`) [default: all cores].
    #[arg(long)]
    par: Option<usize>,
    /// Cache of each node in MiB (`-dbcache`).
    #[arg(long, default_value_t = 1_000)]
    dbcache: u64,
    /// Time limit of each step in seconds.
    #[arg(long, default_value_t = 600)]
    timeout_seconds: u64,
    /// Number of seconds during which the peers of the row `peers` announce transactions.
    #[arg(long, default_value_t = 30)]
    peers_seconds: u32,
    /// Write the results as JSON to this file, again after every session.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Directory in which the nodes run [default: in the cache directory].
    #[arg(long)]
    work: Option<PathBuf>,
}

pub(crate) fn mempool(args: &MempoolArgs) -> Result<Report, LabError> {
    let rows = Row::named(&args.only)?;
    let contenders = named(&args.nodes, &args.node_path, &args.node_arg)?;
    let settings = settings(args, &rows)?;
    let cache = cache_folder();
    let _lock = lock(&cache)?;
    let per_block = match args.transactions {
        0..SMALL_MEMPOOL => args.transactions.div_ceil(SMALL_MEMPOOL_BLOCKS),
        _ => BLOCK_TRANSACTIONS_MAX,
    };
    let preset =
        mempool_mix::MempoolSettings { transactions: args.transactions, full: args.full, seed: args.seed, per_block };
    let threads = parallel::default_threads();
    let data = Data::ensure(preset, &cache.join("chains"), threads, &mut print_progress)?;
    let interrupted = interrupted()?;
    let work = args.work.clone().unwrap_or_else(|| cache.join("work"));
    RealDisk.create_dir(&work)?;
    let comparison = Comparison {
        data: &data,
        contenders: &contenders,
        rows: &rows,
        settings,
        work: &work,
        command_line: std::env::args().collect(),
        interrupted: &interrupted,
    };
    let results = comparison.run(&mut print_progress, &mut |results| save(args, results))?;
    save(args, &results)?;
    let mut text = to_markdown(&results);
    if interrupted.load(Ordering::Relaxed) {
        text.push_str("Interrupted: the sessions before are above.\n");
        return Ok(Report { text, exit_code: EXIT_INTERRUPTED });
    }
    Ok(Report { text, exit_code: if results.is_agreed { 0 } else { EXIT_NOT_RIGHT } })
}

fn settings(args: &MempoolArgs, rows: &[Row]) -> Result<MempoolSettings, LabError> {
    let threads = args.par.unwrap_or_else(parallel::default_threads);
    if args.runs == 0 || threads == 0 || args.timeout_seconds == 0 || args.peers_seconds == 0 {
        let text = "--runs, --par, --timeout-seconds and --peers-seconds must be at least 1";
        return Err(LabError::Usage(text.to_owned()));
    }
    Ok(MempoolSettings {
        runs: args.runs,
        threads,
        cache_mib: args.dbcache,
        timeout_seconds: args.timeout_seconds,
        rows: rows.iter().map(|row| row.name().to_owned()).collect(),
        peers_seconds: args.peers_seconds,
    })
}

fn save(args: &MempoolArgs, results: &MempoolResults) -> Result<(), LabError> {
    match &args.out {
        Some(path) => Ok(RealDisk.write_whole(path, results.to_json().as_bytes())?),
        None => Ok(()),
    }
}
