//! The common part of `reindex` and `sync` on the command line: the chain, the nodes, their settings, the results.
//!
//! Input: arguments. Output: a comparison, the Markdown table, and the JSON file after each run. Exit code 0 if every
//! run counts, 1 if one does not, 130 after a Ctrl-C, which ends the current run and keeps those before it.

use crate::cli::interrupt::interrupted;
use crate::cli::progress::Shown;
use crate::cli::size::SizeArgs;
use crate::cli::{Preset, Report, print_progress};
use lydian_chains::chain_files::ChainFiles;
use lydian_chains::parallel;
use lydian_chains::presets::validity;
use lydian_disk::{Disk, RealDisk};
use lydian_lab::LabError;
use lydian_lab::runs::adapters::{adapter_or_absent, cache_folder};
use lydian_lab::runs::cgroup::{Group, parse_bytes};
use lydian_lab::runs::chain_cache::{self, ensure};
use lydian_lab::runs::lock::{Lock, lock};
use lydian_lab::runs::own_chain::{NotMined, OwnChain};
use lydian_lab::runs::{Comparison, Contender, More, Servers, chain, floor, left_out, machine_facts};
use lydian_lab::validity::{Patience, Terms, examine};
use lydian_report::results::{Cache, Experiment, Outcome, Results, Run, Settings, Validation, Validity};
use lydian_report::summary::to_markdown;
use lydian_report::systems;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Seed of the chain of broken blocks.
pub(crate) const VALIDITY_SEED: u64 = 1;
/// Share of the machine's memory; a node that takes more would swap or be killed by the kernel.
const MEMORY_SHARE_PER_CENT: u64 = 90;
/// The limit if the system does not report its memory.
const MEMORY_MAX_BYTES: u64 = 1 << 40;
/// The default of --disk-free-min-mib.
const DISK_FREE_MIN_MIB: u64 = 1_024;
const EXIT_NOT_COUNTED: u8 = 1;
const EXIT_INTERRUPTED: u8 = 130;

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Directory with block files; their magic determines the network.
    #[arg(long, conflicts_with = "preset")]
    pub(crate) chain: Option<PathBuf>,
    /// Chain preset, made once and kept in the cache directory: mainnet-mix, worst, empty or reuse.
    #[arg(long, value_enum)]
    pub(crate) preset: Option<Preset>,
    #[command(flatten)]
    size: SizeArgs,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Share of the outputs that pay a key used before, 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    reuse: f64,
    #[arg(long, value_delimiter = ',', default_value = "lydian,bitcoind", help = nodes_help())]
    pub(crate) nodes: Vec<String>,
    /// Path of a node's program: NAME=PATH.
    #[arg(long)]
    node_path: Vec<String>,
    /// Additional argument for a node: NAME=ARGUMENT.
    #[arg(long, allow_hyphen_values = true)]
    node_arg: Vec<String>,
    /// Number of runs of each node, in turn [default: 3; 1 with --peer].
    #[arg(long)]
    runs: Option<u32>,
    /// Script threads of each node, including the main one (`-par`) [default: all cores].
    #[arg(long)]
    par: Option<usize>,
    /// Cache of each node in MiB (`-dbcache`).
    #[arg(long, default_value_t = 4_000)]
    dbcache: u64,
    /// Start the clock at this height: each node first validates the blocks up to it and exits, and is measured when it
    /// is started again. Only for reindex.
    #[arg(long)]
    from_height: Option<u32>,
    /// Which scripts the nodes check: all of them, or those that each node checks by default (Bitcoin Core's
    /// assumevalid and the like).
    #[arg(long, value_enum, default_value_t = ValidationArg::Full)]
    validation: ValidationArg,
    /// Memory of a node together with its page cache, as in 2G: a control group of the kernel enforces it, and kills a
    /// node that needs more. Needs root.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    cgroup_memory: Option<u64>,
    /// Time limit of a run in seconds; a run that takes longer is stopped and does not count [default: 3600; a week
    /// with --peer].
    #[arg(long)]
    timeout_seconds: Option<u64>,
    /// Memory limit of a node in MiB; a node that uses more is stopped and its run does not count [default: 90 % of the
    /// machine's].
    #[arg(long)]
    memory_max_mib: Option<u64>,
    /// Free space to keep on the disk of --work, in MiB; a node that leaves less is stopped and its run does not count.
    #[arg(long, default_value_t = DISK_FREE_MIN_MIB)]
    disk_free_min_mib: u64,
    /// Write the results as JSON to this file, again after every run.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Continue with this results file, by default that of --out: runs in it that count are kept, missing and failed
    /// ones are made. All other arguments must be the same.
    #[arg(long, value_name = "FILE")]
    #[allow(clippy::option_option, reason = "absent, alone, or with a file")]
    resume: Option<Option<PathBuf>>,
    /// Do not ask the nodes, after all runs, which broken blocks they accept.
    #[arg(long)]
    no_validity: bool,
    /// Directory in which the nodes run [default: in the cache directory].
    #[arg(long)]
    work: Option<PathBuf>,
    #[arg(skip)]
    repeats: Option<Repeats>,
}

/// What a comparison repeats.
#[derive(Clone, Debug)]
struct Repeats {
    chain_sha256: String,
    command_line: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ValidationArg {
    Full,
    Default,
}

/// The defaults that depend on where the chain comes from.
#[derive(Clone, Copy, Debug)]
struct Defaults {
    runs: u32,
    timeout_seconds: u64,
}

/// A chain in files, which a node validates within minutes.
const OF_FILES: Defaults = Defaults { runs: 3, timeout_seconds: 3_600 };
/// A chain of an external peer, which may be that of mainnet.
const OF_PEER: Defaults = Defaults { runs: 1, timeout_seconds: 7 * 86_400 };

/// The lab's lock, the chain and everything else that the runs need.
#[derive(Debug)]
pub(crate) struct Bench {
    pub(crate) chain: ChainFiles,
    pub(crate) settings: Settings,
    pub(crate) work: PathBuf,
    pub(crate) interrupted: Arc<AtomicBool>,
    earlier: Option<Results>,
    _lock: Lock,
}

/// The parts of a comparison that depend on the experiment.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) experiment: Experiment,
    pub(crate) contenders: &'a [Contender],
    pub(crate) servers: Servers,
    pub(crate) caches: &'a [Cache],
    pub(crate) may_drop_caches: bool,
    /// [`More::beyond`].
    pub(crate) beyond: &'a [String],
    /// [`More::own`].
    pub(crate) own: &'a [(String, Result<OwnChain, NotMined>)],
}

impl Bench {
    /// From here on a Ctrl-C only sets a flag.
    pub(crate) fn new(args: &RunArgs) -> Result<Bench, LabError> {
        let cache = cache_folder();
        Bench::with_chain(args, &cache, OF_FILES, || chain(args, &cache))
    }

    /// For the chain of an external peer.
    pub(crate) fn of_peer(args: &RunArgs, chain: ChainFiles) -> Result<Bench, LabError> {
        Bench::with_chain(args, &cache_folder(), OF_PEER, || Ok(chain))
    }

    fn with_chain(
        args: &RunArgs,
        cache: &Path,
        defaults: Defaults,
        chain: impl FnOnce() -> Result<ChainFiles, LabError>,
    ) -> Result<Bench, LabError> {
        let lock = lock(cache)?;
        let settings = settings(args, defaults)?;
        // Reports at once that it cannot be had, not as the failure of every run.
        settings.cgroup_memory_bytes.map(Group::with_memory).transpose()?;
        let earlier = args.resume_from()?.map(Results::read).transpose()?;
        let chain = chain()?;
        args.check_chain(&chain)?;
        if settings.from_height.is_some_and(|height| !(1..chain.facts.height).contains(&height)) {
            let text = format!("--from-height must lie between 1 and {}, below the tip", chain.facts.height - 1);
            return Err(LabError::Usage(text));
        }
        let interrupted = interrupted()?;
        let work = args.work.clone().unwrap_or_else(|| cache.join("work"));
        RealDisk.create_dir(&work)?;
        Ok(Bench { chain, settings, work, interrupted, earlier, _lock: lock })
    }

    pub(crate) fn compare(&self, args: &RunArgs, plan: Plan<'_>) -> Result<Report, LabError> {
        self.results(args, plan).map(|(results, interrupted)| report(&results, interrupted))
    }

    /// The results, and after an interruption how to continue.
    pub(crate) fn results(&self, args: &RunArgs, plan: Plan<'_>) -> Result<(Results, Option<String>), LabError> {
        if plan.experiment == Experiment::Sync && self.settings.from_height.is_some() {
            return Err(LabError::Usage("--from-height: only for reindex".into()));
        }
        let floor = match self.earlier.as_ref().and_then(|earlier| earlier.floor.clone()) {
            Some(earlier) => Some(earlier),
            None => {
                print_progress("measuring this machine");
                floor(&chain::facts(&self.chain), self.settings.threads)?
            }
        };
        let progress = Shown::new();
        let suite = (!args.no_validity).then(|| validity::make(VALIDITY_SEED));
        let folder = self.work.join("validity");
        let terms = suite.as_ref().map(|suite| Terms {
            suite,
            folder: &folder,
            threads: self.settings.threads,
            patience: Patience::default(),
            interrupted: &self.interrupted,
        });
        let ask = terms.as_ref().map(|terms| {
            move |contender: &Contender| {
                print_progress(&format!("asking {} which broken blocks it takes", contender.name));
                examine(contender, terms)
            }
        });
        let comparison = Comparison {
            experiment: plan.experiment,
            servers: plan.servers,
            chain: &self.chain,
            contenders: plan.contenders,
            caches: plan.caches,
            may_drop_caches: plan.may_drop_caches,
            settings: self.settings.clone(),
            floor,
            work: &self.work,
            command_line: args.command_line(),
            interrupted: &self.interrupted,
            more: More {
                left_out: left_out(&args.nodes, plan.experiment),
                earlier: self.earlier.as_ref(),
                progress: Some(&progress),
                beyond: plan.beyond,
                own: plan.own,
                examine: ask.as_ref().map(|ask| ask as &dyn Fn(&Contender) -> Validity),
            },
        };
        let results = comparison.run(&mut |results, run| {
            print_progress(&line_of(run));
            save(args, results)
        })?;
        save(args, &results)?;
        let is_interrupted = self.interrupted.load(Ordering::Relaxed);
        let how_to_go_on = match plan.own {
            [] => args.how_to_go_on(),
            [(name, _), ..] => format!("they cannot be resumed, since {name} mines another chain each time"),
        };
        Ok((results, is_interrupted.then_some(how_to_go_on)))
    }
}

impl RunArgs {
    /// Makes these arguments of an earlier comparison those of its repetition.
    pub(crate) fn repeat(&mut self, old: &Results, out: &Path) {
        self.out = Some(out.to_owned());
        self.resume = None;
        let (chain_sha256, command_line) = (old.chain.sha256.clone(), old.lab.command_line.clone());
        self.repeats = Some(Repeats { chain_sha256, command_line });
    }

    /// Of the comparison that is repeated, so that its repetition can be repeated too.
    fn command_line(&self) -> Vec<String> {
        self.repeats.as_ref().map_or_else(|| std::env::args().collect(), |old| old.command_line.clone())
    }

    fn check_chain(&self, chain: &ChainFiles) -> Result<(), LabError> {
        let (is, Some(was)) = (&chain.facts.sha256, self.repeats.as_ref().map(|old| &old.chain_sha256)) else {
            return Ok(());
        };
        if is == was {
            return Ok(());
        }
        Err(LabError::Usage(format!(
            "another chain: its block files have SHA-256 {is}, those of the results had {was}"
        )))
    }

    fn out(&self) -> Option<&Path> {
        self.out.as_deref().or(self.resume.as_ref().and_then(|path| path.as_deref()))
    }

    fn resume_from(&self) -> Result<Option<&Path>, LabError> {
        match (&self.resume, &self.out) {
            (None, _) => Ok(None),
            (Some(Some(path)), _) | (Some(None), Some(path)) => Ok(Some(path)),
            (Some(None), None) => {
                Err(LabError::Usage("--resume: name the file of results, or give it as --out".into()))
            }
        }
    }

    /// Refuses what is impossible with a fork that mines its own chain.
    pub(crate) fn check_own_chain(&self, name: &str) -> Result<(), LabError> {
        let text = match (self.resume.is_some(), self.from_height) {
            (true, _) => format!("--resume: {name} mines another chain each time; run all nodes again"),
            (false, Some(_)) => format!("--from-height: {name} has its own chain with heights of its own"),
            (false, None) => return Ok(()),
        };
        Err(LabError::Usage(text))
    }

    fn how_to_go_on(&self) -> String {
        match self.out() {
            Some(path) => format!("the same command with --resume {} goes on with them", path.display()),
            None => "they are in no file: with --out FILE they would be, and --resume could go on with them".to_owned(),
        }
    }
}

pub(crate) fn report(results: &Results, interrupted: Option<String>) -> Report {
    let mut text = to_markdown(results);
    let is_all_right = results.is_agreed && results.runs.iter().all(|run| run.outcome == Outcome::Counted);
    if let Some(how_to_go_on) = interrupted {
        text.push_str(&format!("Interrupted: the runs before are above; {how_to_go_on}.\n"));
        return Report { text, exit_code: EXIT_INTERRUPTED };
    }
    Report { text, exit_code: if is_all_right { 0 } else { EXIT_NOT_COUNTED } }
}

fn save(args: &RunArgs, results: &Results) -> Result<(), LabError> {
    match args.out() {
        Some(path) => Ok(RealDisk.write_whole(path, results.to_json().as_bytes())?),
        None => Ok(()),
    }
}

/// The nodes by name, each with the path and arguments given for it.
pub(crate) fn contenders(args: &RunArgs) -> Result<Vec<Contender>, LabError> {
    named(&args.nodes, &args.node_path, &args.node_arg)
}

/// Like [`contenders`], from the values of the three options.
pub(crate) fn named(nodes: &[String], paths: &[String], arguments: &[String]) -> Result<Vec<Contender>, LabError> {
    let paths = pairs("--node-path", paths, nodes)?;
    let arguments = pairs("--node-arg", arguments, nodes)?;
    let of = |name: &str, pairs: &[(String, String)]| {
        pairs.iter().filter(|(node, _)| node == name).map(|(_, value)| value.clone()).collect::<Vec<_>>()
    };
    let mut found: Vec<Contender> = Vec::new();
    for name in nodes {
        if found.iter().any(|contender| contender.name == *name) {
            return Err(LabError::Usage(format!("--nodes: {name} twice; a label tells them apart, as in {name}:old")));
        }
        let path = of(name, &paths).pop().map(PathBuf::from);
        let adapter = adapter_or_absent(name, path.as_deref())?;
        found.push(Contender { name: name.clone(), adapter, more: of(name, &arguments), source: None });
    }
    Ok(found)
}

/// Built from the table of systems; lab.toml is not loaded yet when the help text is made.
fn nodes_help() -> String {
    let kinds = systems::kinds(systems::Role::Node).join(", ");
    format!("{kinds}, or a fork of lab.toml; KIND:LABEL for a second build of one kind. Ratios are to the first")
}

/// Splits NAME=VALUE, for names of nodes that take part.
pub(crate) fn pairs(option: &str, values: &[String], nodes: &[String]) -> Result<Vec<(String, String)>, LabError> {
    let split = |text: &String| {
        let pair = text.split_once('=').filter(|(name, _)| nodes.iter().any(|node| node == name));
        let (name, value) = pair.ok_or_else(|| {
            LabError::Usage(format!(
                "{option} {text}: expected NAME=VALUE with a name of --nodes ({})",
                nodes.join(", ")
            ))
        })?;
        Ok((name.to_owned(), value.to_owned()))
    };
    values.iter().map(split).collect()
}

fn chain(args: &RunArgs, cache: &Path) -> Result<ChainFiles, LabError> {
    if let Some(folder) = &args.chain {
        print_progress("reading the chain");
        return Ok(ChainFiles::open(folder, None)?);
    }
    let mix = args.size.mix(args.seed, args.reuse)?;
    let preset = match args.preset {
        Some(Preset::MainnetMix) => match args.size.coins {
            Some(coins) => chain_cache::Preset::Prepared { mix, coins },
            None => chain_cache::Preset::MainnetMix(mix),
        },
        Some(Preset::Worst) => chain_cache::Preset::Worst { seed: args.seed },
        Some(Preset::Empty) => chain_cache::Preset::Empty { blocks: args.size.blocks },
        Some(Preset::Reuse) => chain_cache::Preset::Reuse(args.size.reuse(args.seed)),
        None => return Err(LabError::Usage("--chain DIR or --preset NAME says which chain".into())),
        Some(Preset::Invalid | Preset::Reorg) => {
            let text = "--preset: chains with branches or refused blocks are for tests; take mainnet-mix, worst, empty or reuse";
            return Err(LabError::Usage(text.into()));
        }
    };
    ensure(preset, &cache.join("chains"), parallel::default_threads(), &mut print_progress).map(|(_, chain)| chain)
}

fn settings(args: &RunArgs, defaults: Defaults) -> Result<Settings, LabError> {
    let threads = args.par.unwrap_or_else(parallel::default_threads);
    let runs = args.runs.unwrap_or(defaults.runs);
    if runs == 0 || threads == 0 {
        return Err(LabError::Usage("--runs and --par must be at least 1".into()));
    }
    let memory = machine_facts(Path::new(".")).memory_bytes;
    let share = memory.map_or(MEMORY_MAX_BYTES, |bytes| bytes / 100 * MEMORY_SHARE_PER_CENT);
    Ok(Settings {
        runs,
        threads,
        cache_mib: args.dbcache,
        timeout_seconds: args.timeout_seconds.unwrap_or(defaults.timeout_seconds),
        memory_max_bytes: args.memory_max_mib.map_or(share, |mib| mib.saturating_mul(1 << 20)),
        disk_free_min_bytes: args.disk_free_min_mib.saturating_mul(1 << 20),
        from_height: args.from_height,
        validation: match args.validation {
            ValidationArg::Full => Validation::Full,
            ValidationArg::Default => Validation::Default,
        },
        cgroup_memory_bytes: args.cgroup_memory,
    })
}

/// A progress line for a finished run.
fn line_of(run: &Run) -> String {
    let what = match run.outcome {
        Outcome::Counted => String::new(),
        _ => format!(": does not count, {}", run.reason.as_deref().unwrap_or("for no reason known")),
    };
    let cpu = run.user_seconds + run.system_seconds;
    let disturbed = if run.is_disturbed { ", disturbed" } else { "" };
    let cache = if run.cache == Cache::Cold { " cold" } else { "" };
    format!("{}{cache} run {}: {:.2} s, CPU {cpu:.2} s{disturbed}{what}", run.node, run.number, run.wall_seconds)
}
