//! The command line of `lydian-lab`: one file per command, and files for what several share.

mod compare;
mod electrum;
mod index_size;
mod interrupt;
mod manual;
mod mempool;
mod peers;
mod progress;
mod project;
mod reindex;
mod report;
mod rerun;
mod runs;
mod scale;
mod size;
mod store;
mod sync;
mod thin;
mod validity;

use crate::cli::compare::{CompareArgs, compare};
use crate::cli::electrum::{ElectrumArgs, electrum};
use crate::cli::index_size::{IndexSizeArgs, index_size};
use crate::cli::manual::{ManualArgs, completions, manual};
use crate::cli::mempool::{MempoolArgs, mempool};
use crate::cli::peers::{PeersArgs, peers};
use crate::cli::project::{ProjectArgs, project};
use crate::cli::reindex::{ReindexArgs, reindex};
use crate::cli::report::{ReportArgs, report};
use crate::cli::rerun::{RerunArgs, rerun};
use crate::cli::scale::{ScaleArgs, scale};
use crate::cli::size::SizeArgs;
use crate::cli::store::{StoreArgs, store};
use crate::cli::sync::{SyncArgs, sync};
use crate::cli::thin::{ThinArgs, thin};
use crate::cli::validity::{ValidityArgs, validity};
use clap::{Parser, Subcommand, ValueEnum};
use lydian_chains::chain_files::check_counts;
use lydian_chains::presets::ledger::{ACCEPT, Expectation, INCONCLUSIVE};
use lydian_chains::presets::{empty, invalid, mainnet_mix, reorg, reuse as reuse_preset, worst};
use lydian_lab::LabError;
use lydian_lab::lab_toml::{self, LabFile};
use lydian_lab::limits_cmd::{self, LimitsSettings};
use std::io::Write;
use std::path::PathBuf;

/// Generates test chains and benchmarks Bitcoin nodes.
#[derive(Debug, Parser)]
#[command(name = "lydian-lab", version)]
pub(crate) struct Cli {
    /// Configuration file with paths and arguments of programs, and forks [default: ./lab.toml, then
    /// ~/.config/lydian/lab.toml].
    #[arg(long, global = true, value_name = "LAB.TOML")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a deterministic regtest chain as block files, with statistics.
    Chain(ChainArgs),
    /// Measure this machine: signature checks, SHA-256, disk; medians with minimum and maximum.
    Limits(LimitsArgs),
    /// Compare nodes that validate the same block files in turn, each as a whole process.
    Reindex(ReindexArgs),
    /// Compare nodes that download the same chain from the same peer in turn, each as a whole process, with every
    /// script checked.
    Sync(SyncArgs),
    /// Compare two results of the same experiment: what became slower or larger, with noise taken into account.
    Compare(CompareArgs),
    /// Repeat a comparison from its results file: make the chain again, check its hash, repeat every run, compare.
    Rerun(RerunArgs),
    /// Make results files small enough to keep: fewer samples, no paths of this machine, the same figures.
    Thin(ThinArgs),
    /// Project measured costs to mainnet at a height, with bounds and the formula; never a measurement.
    Project(ProjectArgs),
    /// Make one self-contained HTML page of results with charts, and the same as Markdown.
    Report(ReportArgs),
    /// Compare and measure Electrum servers: the same queries on the same chain in turn, with the answers checked
    /// against each other.
    Electrum(ElectrumArgs),
    /// Compare and measure the mempools of nodes: the same transactions in turn, by RPC, by peers and in blocks.
    Mempool(MempoolArgs),
    /// Measure the indexes of Lydian, and extrapolate their sizes to mainnet, with bounds.
    IndexSize(IndexSizeArgs),
    /// Measure what one Electrum server of Lydian bears: 1,000,000 transactions of a script, 100,000 subscriptions and
    /// connections, restarts.
    Scale(ScaleArgs),
    /// Give nodes blocks that break one rule each, and report which they accept.
    Validity(ValidityArgs),
    /// List and install other nodes and servers.
    Peers(PeersArgs),
    /// Install Apache Cassandra and run a cluster of it on loopback, for the index beyond one machine.
    Store(StoreArgs),
    /// Print the completions of a shell: source <(lydian-lab completions bash).
    Completions {
        /// Shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages, one for each command.
    #[command(hide = true)]
    Manual(ManualArgs),
}

#[derive(Debug, clap::Args)]
struct LimitsArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Number of checks of each kind in a round.
    #[arg(long, default_value_t = 2_000)]
    checks: u64,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Size of the temporary file in MiB; 0 skips the disk.
    #[arg(long, default_value_t = 1_024)]
    disk_mib: u64,
    /// Directory of the temporary file [default: the current one].
    #[arg(long, default_value = ".")]
    folder: PathBuf,
    /// Chain of the lab for which to report the cost of its checks with each engine.
    #[arg(long)]
    chain: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct ChainArgs {
    /// Kind of chain.
    #[arg(long, value_enum, default_value_t = Preset::MainnetMix)]
    preset: Preset,
    #[command(flatten)]
    size: SizeArgs,
    /// Seed; the same seed gives the same bytes on every machine and with any number of threads.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Share of the outputs that pay a key used before, 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    reuse: f64,
    /// Directory to write to; it must not contain a chain yet.
    #[arg(long)]
    out: PathBuf,
    /// Number of signing threads [default: all cores].
    #[arg(long)]
    threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Full blocks with mainnet's mix of inputs, coin ages and outputs.
    MainnetMix,
    /// Every rule broken in turn, with Core's reject reason; --blocks, --full and --reuse do not apply.
    Invalid,
    /// Valid blocks that cost a node as much as the rules allow; only --seed applies.
    Worst,
    /// Competing branches, some of them invalid, with expectations and the final tip.
    Reorg,
    /// Blocks with only a coinbase; only --blocks applies.
    Empty,
    /// Scripts that are paid and spent repeatedly, for Electrum servers; --scripts, --fat and --seed apply.
    Reuse,
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Report {
    /// The text for stdout.
    pub(crate) text: String,
    pub(crate) exit_code: u8,
}

impl From<String> for Report {
    fn from(text: String) -> Report {
        Report { text, exit_code: 0 }
    }
}

/// Runs the command and returns what to print.
pub(crate) fn run(cli: &Cli) -> Result<Report, LabError> {
    lab_toml::activate(LabFile::load(config_of(cli)?.as_deref())?);
    match &cli.command {
        Command::Chain(args) => chain(args).map(Report::from),
        Command::Limits(args) => limits(args).map(Report::from),
        Command::Reindex(args) => reindex(args),
        Command::Sync(args) => sync(args),
        Command::Compare(args) => compare(args),
        Command::Project(args) => project(args),
        Command::Electrum(args) => electrum(args),
        Command::IndexSize(args) => index_size(args),
        Command::Mempool(args) => mempool(args),
        Command::Scale(args) => scale(args),
        Command::Rerun(args) => rerun(args, args.earlier()?),
        Command::Thin(args) => thin(args),
        Command::Validity(args) => validity(args),
        Command::Peers(args) => peers(args),
        Command::Store(args) => store(args),
        Command::Report(args) => report(args),
        Command::Completions { shell } => Ok(completions(*shell).into()),
        Command::Manual(args) => manual(args),
    }
}

/// A comparison that is repeated uses the `lab.toml` that it named, unless another one is given.
fn config_of(cli: &Cli) -> Result<Option<PathBuf>, LabError> {
    match &cli.command {
        Command::Rerun(args) if cli.config.is_none() => Ok(args.earlier()?.1.config),
        _ => Ok(cli.config.clone()),
    }
}

/// Prints progress to stderr: stdout is for results.
pub(crate) fn print_progress(text: &str) {
    // If stderr is closed, there is nowhere to report it.
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn limits(args: &LimitsArgs) -> Result<String, LabError> {
    let settings = LimitsSettings {
        checks: args.checks,
        rounds: args.rounds,
        disk_bytes: args.disk_mib.saturating_mul(1 << 20),
        folder: args.folder.clone(),
        chain: args.chain.as_deref().map(check_counts).transpose()?,
    };
    let limits = limits_cmd::measure(&settings)?;
    Ok(if args.json { limits.to_json() } else { limits.to_text() })
}

fn chain(args: &ChainArgs) -> Result<String, LabError> {
    let threads = args.threads.unwrap_or_else(lydian_chains::parallel::default_threads);
    let mix = args.size.mix(args.seed, args.reuse)?;
    let text = match args.preset {
        Preset::Invalid => invalid::write(args.seed, &args.out).map(|lines| summary(&lines)),
        Preset::Worst => worst::write(args.seed, threads, &args.out).map(|lines| summary(&lines)),
        Preset::Reorg => reorg::write(&args.out).map(|lines| summary(&lines)),
        Preset::Empty => empty::write(args.size.blocks, &args.out),
        Preset::Reuse => {
            reuse_preset::write(args.size.reuse(args.seed), threads, &args.out).map(|stats| stats.to_json())
        }
        Preset::MainnetMix => match args.size.coins {
            Some(coins) => mainnet_mix::write_prepared(mix, coins, threads, &args.out),
            None => mainnet_mix::write(mix, threads, &args.out),
        }
        .map(|stats| stats.to_json()),
    }?;
    Ok(text)
}

fn summary(lines: &[Expectation]) -> String {
    let accepted = lines.iter().filter(|line| [ACCEPT, INCONCLUSIVE].contains(&line.expect.as_str())).count();
    format!("{} blocks: {accepted} to be accepted, {} to be refused\n", lines.len(), lines.len() - accepted)
}
