//! The command line of `lydian-lab scale cluster`: the chain, the installation, the load, the failures.
//!
//! Input: arguments. Output: Markdown or JSON. Exit code 0 if no request failed and everything was right, 1 if not; a
//! program that fails is an error of the lab.

use super::RunArgs;
use crate::cli::{Report, print_progress};
use lydian_chains::presets::deep::{Base, DeepSettings};
use lydian_chains::presets::reuse::ReuseSettings;
use lydian_lab::LabError;
use lydian_lab::runs::chain_cache::Preset;
use lydian_lab::scale::cluster::{Fault, Kind, Measurement, Settings, scripts};

#[derive(Debug, clap::Args)]
pub(super) struct ClusterArgs {
    /// Number of front ends.
    #[arg(long, default_value_t = 2)]
    front_ends: u8,
    /// Measure this number of whole nodes, each with its own index, instead of front ends and a store.
    #[arg(long, value_name = "N")]
    whole_copies: Option<u8>,
    /// Number of nodes of the store.
    #[arg(long, default_value_t = 3)]
    store_nodes: u8,
    /// Heap of each node of the store in MiB.
    #[arg(long, default_value_t = 512)]
    heap_mib: u32,
    /// Use the store at these hosts, which runs already, instead of starting one; its keyspace is left there.
    #[arg(long, value_name = "HOST[:PORT],...")]
    store: Option<String>,
    /// Number of clients that behave like wallets.
    #[arg(long, default_value_t = 32)]
    clients: u32,
    /// Milliseconds between two requests of a client.
    #[arg(long, default_value_t = 20)]
    pause_ms: u64,
    /// Phases without a failure.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Seconds of each phase.
    #[arg(long, default_value_t = 20)]
    phase_seconds: u64,
    /// Failures, each in a phase of its own [default: all that are possible; none: none].
    #[arg(long, value_delimiter = ',', value_name = "FAILURE")]
    failures: Vec<String>,
    /// Kills of the node that writes the index, at random moments.
    #[arg(long, default_value_t = 5)]
    kills: u32,
    /// Seconds for which a process is paused.
    #[arg(long, default_value_t = 30)]
    stopped_seconds: u64,
    /// Seconds from one block to the next.
    #[arg(long, default_value_t = 5)]
    block_seconds: u64,
    /// Scripts that the mempool touches for each block; the block touches as many besides.
    #[arg(long, default_value_t = 10)]
    touched: u32,
    /// Scripts of the chain with 10 to 999 transactions each.
    #[arg(long, default_value_t = 300)]
    scripts: u32,
    /// Height of the chain, by empty blocks above: blocks are sealed 1,088 blocks below the tip.
    #[arg(long, default_value_t = 2_000)]
    height: u32,
    /// Additional argument for the front ends.
    #[arg(long, allow_hyphen_values = true)]
    front_arg: Vec<String>,
    /// Time limit of each step in seconds.
    #[arg(long, default_value_t = 300)]
    timeout_seconds: u64,
    #[command(flatten)]
    run: RunArgs,
}

pub(super) fn cluster(args: &ClusterArgs) -> Result<Report, LabError> {
    let kind = if args.whole_copies.is_some() { Kind::WholeCopies } else { Kind::FrontEnds };
    let failures = Fault::named(&args.failures, kind, kind == Kind::FrontEnds && args.store.is_none())?;
    let reuse = ReuseSettings { seed: 1, scripts: args.scripts, fat_spent: 0, fat_kept: 0 };
    let preset = Preset::Deep(DeepSettings { base: Base::Reuse(reuse), height: args.height });
    let prepared = args.run.prepare(preset)?;
    let targets = scripts(&prepared.folder, args.scripts)?;
    let settings = Settings {
        servers: args.whole_copies.unwrap_or(args.front_ends),
        is_whole: kind == Kind::WholeCopies,
        store_nodes: args.store_nodes,
        heap_mib: args.heap_mib,
        clients: args.clients,
        pause_ms: args.pause_ms,
        rounds: args.rounds,
        phase_seconds: args.phase_seconds,
        kills: args.kills,
        stopped_seconds: args.stopped_seconds,
        block_seconds: args.block_seconds,
        touched: args.touched,
        timeout_seconds: args.timeout_seconds,
    };
    let measurement = Measurement {
        chain: &prepared.chain,
        folder: &prepared.folder,
        targets: &targets,
        program: &prepared.program,
        settings,
        failures,
        hosts: args.store.as_deref(),
        node_arguments: &args.run.node_arg,
        front_arguments: &args.front_arg,
        work: &prepared.work,
        command_line: std::env::args().collect(),
        interrupted: &prepared.interrupted,
    };
    Ok(args.run.report(&measurement.run(&mut print_progress)?))
}
