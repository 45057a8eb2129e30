//! The command line of `lydian-lab electrum`: the chain, the servers, the passes.
//!
//! Input: arguments. Output: the Markdown tables, and the JSON file after each server. Exit code 0 if every server that
//! can run here gave every answer and all were right, 1 if not, 130 after a Ctrl-C, which keeps the finished results.

use crate::cli::interrupt::interrupted;
use crate::cli::size::SizeArgs;
use crate::cli::{Preset, Report, print_progress};
use clap::ValueEnum;
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::parallel;
use lydian_chains::targets::{TARGETS_FILE, Targets};
use lydian_disk::{Disk, RealDisk};
use lydian_lab::LabError;
use lydian_lab::electrum::adapters::server;
use lydian_lab::electrum::client::{PROTOCOL_MAX, PROTOCOL_MIN};
use lydian_lab::electrum::daemon::{Below, BelowKind};
use lydian_lab::electrum::{Comparison, Contender, left_out};
use lydian_lab::lab_toml;
use lydian_lab::runs::adapters::{adapter, cache_folder};
use lydian_lab::runs::chain_cache::{self, ensure};
use lydian_lab::runs::lock::lock;
use lydian_report::electrum::results::{ElectrumResults, ElectrumSettings};
use lydian_report::electrum::to_markdown;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

const EXIT_NOT_RIGHT: u8 = 1;
const EXIT_INTERRUPTED: u8 = 130;
/// The most connections of one load; more would test the lab's own threads.
const CONNECTIONS_MAX: u32 = 4_096;

#[derive(Debug, clap::Args)]
pub(crate) struct ElectrumArgs {
    /// Directory of a chain made by the lab.
    #[arg(long, conflicts_with = "preset", required_unless_present = "preset")]
    chain: Option<PathBuf>,
    /// Chain preset, made once and kept in the cache directory.
    #[arg(long, value_enum)]
    preset: Option<Preset>,
    #[command(flatten)]
    size: SizeArgs,
    /// Seed of the chain and of the order of the scripts.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For mainnet-mix: share of the outputs that pay a key used before, 0 to 1.
    #[arg(long, default_value_t = 0.2)]
    reuse: f64,
    /// Servers to compare: electrs, electrumx, fulcrum, esplora or lydian; `KIND:LABEL` for a second build of one kind.
    #[arg(long, value_delimiter = ',', default_value = "electrs,electrumx,fulcrum,esplora,lydian")]
    servers: Vec<String>,
    /// Path of a server's program: NAME=PATH.
    #[arg(long)]
    server_path: Vec<String>,
    /// Additional argument for a server: NAME=ARGUMENT; for electrumx, an environment variable: NAME=VARIABLE=VALUE.
    #[arg(long, allow_hyphen_values = true)]
    server_arg: Vec<String>,
    /// Node below the servers.
    #[arg(long, value_enum, default_value_t = NodeBelow::Core)]
    node: NodeBelow,
    /// Path of that node's program [default: the `bitcoind` that the tests use, or the `lydian` beside this program].
    #[arg(long)]
    node_path: Option<PathBuf>,
    /// Query only this many of the chain's scripts, evenly spread.
    #[arg(long)]
    ask: Option<usize>,
    /// Number of passes after the first, cold one.
    #[arg(long, default_value_t = 9)]
    passes: u32,
    /// Numbers of connections of the load tests.
    #[arg(long, value_delimiter = ',', default_value = "1,8,64,512")]
    connections: Vec<u32>,
    /// Duration of each load test in seconds; 0 disables them.
    #[arg(long, default_value_t = 10)]
    load_seconds: u32,
    /// Number of scripts in one batch request of the wallet.
    #[arg(long, default_value_t = 100)]
    batch: u32,
    /// Timeout for one answer, or one batch, in seconds.
    #[arg(long, default_value_t = 120)]
    timeout_seconds: u64,
    /// Time limit in seconds for all passes of one query of one server; the results list what was skipped.
    #[arg(long, default_value_t = 300)]
    query_seconds: u64,
    /// Time limit in seconds for building an index.
    #[arg(long, default_value_t = 3_600)]
    build_seconds: u64,
    /// Newest protocol version to request, 1.4 to 1.7; from 1.7 on, scripts have no hash and methods have other names.
    #[arg(long, default_value = "1.6")]
    protocol_max: String,
    /// Also measure Esplora's REST API of the servers that have it.
    #[arg(long)]
    esplora: bool,
    /// Before a cold pass, drop only the files of the server and the node from the system's page cache, not all of it.
    #[arg(long)]
    keep_system_cache: bool,
    /// Write the results as JSON to this file, again after every server.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Continue with the results file of --out: servers that finished in it are not measured again.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Directory in which node and servers run [default: in the cache directory].
    #[arg(long)]
    work: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NodeBelow {
    /// Bitcoin Core.
    Core,
    /// Lydian.
    Lydian,
}

pub(crate) fn electrum(args: &ElectrumArgs) -> Result<Report, LabError> {
    let settings = settings(args)?;
    let contenders = contenders(args)?;
    let kind = match args.node {
        NodeBelow::Core => BelowKind::Core,
        NodeBelow::Lydian => BelowKind::Lydian,
    };
    let node = adapter(kind.name(), args.node_path.as_deref())?;
    let cache = cache_folder();
    let _lock = lock(&cache)?;
    let (folder, chain) = chain(args, &cache)?;
    let targets = targets(args, &folder)?;
    let interrupted = interrupted()?;
    let work = args.work.clone().unwrap_or_else(|| cache.join("work"));
    RealDisk.create_dir(&work)?;
    let earlier = match &args.out {
        Some(path) if args.resume && path.is_file() => Some(ElectrumResults::read(path)?),
        _ => None,
    };
    let comparison = Comparison {
        chain: &chain,
        targets: &targets,
        below: Below { kind, adapter: node.as_ref() },
        contenders: &contenders,
        left_out: left_out(&args.servers),
        settings,
        seed: args.seed,
        threads: parallel::default_threads(),
        build_timeout: Duration::from_secs(args.build_seconds),
        may_drop_caches: !args.keep_system_cache,
        work: &work,
        command_line: std::env::args().collect(),
        earlier: earlier.as_ref(),
        interrupted: &interrupted,
    };
    let results = match comparison.run(&mut print_progress, &mut |results| save(args, results)) {
        Err(_) if interrupted.load(Ordering::Relaxed) => {
            let text = "Interrupted before the first server.\n".to_owned();
            return Ok(Report { text, exit_code: EXIT_INTERRUPTED });
        }
        results => results?,
    };
    save(args, &results)?;
    Ok(report(&comparison, &results, interrupted.load(Ordering::Relaxed)))
}

fn report(comparison: &Comparison<'_>, results: &ElectrumResults, is_interrupted: bool) -> Report {
    let mut text = to_markdown(results);
    if is_interrupted {
        text.push_str("Interrupted: what had ended before is above.\n");
        return Report { text, exit_code: EXIT_INTERRUPTED };
    }
    // No figures are expected of a server that cannot take part or is not installed: the default lists all servers.
    let is_here = |name: &str| {
        let found = comparison.contenders.iter().find(|contender| contender.name == name);
        found.is_some_and(|contender| comparison.unable(contender).is_none())
    };
    let is_whole = results.servers.iter().all(|server| server.is_right() || !is_here(&server.facts.name));
    Report { text, exit_code: if is_whole && results.is_agreed { 0 } else { EXIT_NOT_RIGHT } }
}

fn save(args: &ElectrumArgs, results: &ElectrumResults) -> Result<(), LabError> {
    match &args.out {
        Some(path) => Ok(RealDisk.write_whole(path, results.to_json().as_bytes())?),
        None => Ok(()),
    }
}

fn settings(args: &ElectrumArgs) -> Result<ElectrumSettings, LabError> {
    let usage = |text: String| Err(LabError::Usage(text));
    let connections = if args.load_seconds == 0 { Vec::new() } else { args.connections.clone() };
    if connections.iter().any(|count| !(1..=CONNECTIONS_MAX).contains(count)) {
        return usage(format!("--connections: each is between 1 and {CONNECTIONS_MAX}"));
    }
    if args.batch == 0 || args.timeout_seconds == 0 || args.query_seconds == 0 || args.build_seconds == 0 {
        return usage("--batch, --timeout-seconds, --query-seconds and --build-seconds are at least 1".to_owned());
    }
    if !["1.4", "1.4.2", "1.4.5", "1.6", "1.7"].contains(&args.protocol_max.as_str()) {
        return usage(format!(
            "--protocol-max: versions from {PROTOCOL_MIN} to {PROTOCOL_MAX} are known, not {}",
            args.protocol_max
        ));
    }
    Ok(ElectrumSettings {
        passes: args.passes,
        connections,
        load_seconds: args.load_seconds,
        batch: args.batch,
        timeout_seconds: args.timeout_seconds,
        query_seconds_max: args.query_seconds,
        protocol_max: args.protocol_max.clone(),
        esplora: args.esplora,
        cache_emptied_by: None,
    })
}

fn contenders(args: &ElectrumArgs) -> Result<Vec<Contender>, LabError> {
    let paths = super::runs::pairs("--server-path", &args.server_path, &args.servers)?;
    let more = super::runs::pairs("--server-arg", &args.server_arg, &args.servers)?;
    let of = |name: &str, pairs: &[(String, String)]| {
        pairs.iter().filter(|(server, _)| server == name).map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    let mut found: Vec<Contender> = Vec::new();
    for name in &args.servers {
        if found.iter().any(|contender| contender.name == *name) {
            return Err(LabError::Usage(format!(
                "--servers: {name} twice; a label tells them apart, as in {name}:old"
            )));
        }
        let path = of(name, &paths).pop().map(PathBuf::from);
        let kind = name.split(':').next().unwrap_or(name);
        let more = lab_toml::active().args_of(kind).iter().cloned().chain(of(name, &more)).collect();
        found.push(Contender { name: name.clone(), server: server(name, path.as_deref())?, more });
    }
    Ok(found)
}

fn chain(args: &ElectrumArgs, cache: &Path) -> Result<(PathBuf, ChainFiles), LabError> {
    if let Some(folder) = &args.chain {
        print_progress("reading the chain");
        return Ok((folder.clone(), ChainFiles::open(folder, None)?));
    }
    let mix = args.size.mix(args.seed, args.reuse)?;
    let preset = match args.preset {
        Some(Preset::Reuse) => chain_cache::Preset::Reuse(args.size.reuse(args.seed)),
        Some(Preset::MainnetMix) => chain_cache::Preset::MainnetMix(mix),
        _ => {
            return Err(LabError::Usage(
                "--preset: reuse or mainnet-mix; no other chain has scripts that are used again".into(),
            ));
        }
    };
    ensure(preset, &cache.join("chains"), parallel::default_threads(), &mut print_progress)
}

/// The targets written next to the chain, otherwise the chain's most used scripts.
fn targets(args: &ElectrumArgs, folder: &Path) -> Result<Targets, LabError> {
    const SAMPLED: usize = 3_000;
    let mut targets = match RealDisk.kind(&folder.join(TARGETS_FILE)) {
        Ok(_) => Targets::of_chain(folder)?,
        Err(_) => Targets::sample(folder, args.ask.unwrap_or(SAMPLED))?,
    };
    if let Some(count) = args.ask {
        thin(&mut targets, count);
    }
    Ok(targets)
}

/// Keeps `count` scripts, evenly spread by their number of transactions, so that each class keeps its share and the
/// largest stays.
fn thin(targets: &mut Targets, count: usize) {
    let all = targets.scripts.len();
    if count == 0 || count >= all {
        return;
    }
    targets.scripts.sort_by(|a, b| (b.transactions, &a.scripthash).cmp(&(a.transactions, &b.scripthash)));
    targets.scripts = (0..count).filter_map(|place| targets.scripts.get(place * all / count).cloned()).collect();
}
