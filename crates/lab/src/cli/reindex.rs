//! The command line of `lydian-lab reindex`. Input: arguments. Output: the table. The part shared with `sync` is in
//! `runs.rs`.

use crate::cli::runs::{Bench, Plan, RunArgs, contenders, report};
use crate::cli::{Report, print_progress};
use lydian_chains::parallel;
use lydian_lab::LabError;
use lydian_lab::lab_toml::{base_kind, own_blocks};
use lydian_lab::runs::own_chain::{NotMined, OwnChain, mine};
use lydian_lab::runs::{Contender, Servers};
use lydian_report::results::{Cache, Experiment};
use lydian_report::scaling;

const EXIT_INTERRUPTED: u8 = 130;
/// Kinds whose `-par` is the number of threads that check scripts.
const WITH_PAR: &[&str] = &["lydian", "bitcoind", "knots"];

#[derive(Debug, clap::Args)]
pub(crate) struct ReindexArgs {
    #[command(flatten)]
    pub(crate) runs: RunArgs,
    /// Whether the system's page cache holds the block files when a run starts.
    #[arg(long, value_enum, default_value_t = CacheArg::Warm)]
    cache: CacheArg,
    /// Before a cold run, drop only the files of the run from the system's page cache, even if all of it could be
    /// dropped.
    #[arg(long)]
    keep_system_cache: bool,
    /// Numbers of workers (`-par`) with which each node is measured, as in 1,2,4,8,16; those above the machine's cores
    /// are left out. The table then has the serial share of each node's time.
    #[arg(long, value_delimiter = ',', conflicts_with = "par")]
    workers: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CacheArg {
    Warm,
    Cold,
    /// All warm runs, then all cold ones.
    Both,
}

pub(crate) fn reindex(args: &ReindexArgs) -> Result<Report, LabError> {
    let contenders = if args.workers.is_empty() { contenders(&args.runs)? } else { with_workers(args)? };
    let miners = miners(&contenders);
    if let Some((contender, _)) = miners.first() {
        args.runs.check_own_chain(&contender.name)?;
    }
    let bench = Bench::new(&args.runs)?;
    let Some(own) = own_chains(&miners, &bench) else {
        let text = "Interrupted while a fork mined its own chain: nothing was measured.\n".to_owned();
        return Ok(Report { text, exit_code: EXIT_INTERRUPTED });
    };
    let caches: &[Cache] = match args.cache {
        CacheArg::Warm => &[Cache::Warm],
        CacheArg::Cold => &[Cache::Cold],
        CacheArg::Both => &[Cache::Warm, Cache::Cold],
    };
    let plan = Plan {
        experiment: Experiment::Reindex,
        contenders: &contenders,
        servers: Servers::default(),
        caches,
        may_drop_caches: !args.keep_system_cache,
        beyond: &[],
        own: &own,
    };
    let (results, interrupted) = bench.results(&args.runs, plan)?;
    let mut report = report(&results, interrupted);
    if let Some(table) = scaling::to_markdown(&results) {
        report.text = table + "\n" + &report.text;
    }
    Ok(report)
}

/// The forks with `chain = "own"` that take part, each with the number of its blocks.
fn miners(contenders: &[Contender]) -> Vec<(&Contender, u32)> {
    let takes_part = |contender: &&Contender| {
        contender.adapter.absent().is_none() && contender.adapter.cannot(Experiment::Reindex).is_none()
    };
    let all = contenders.iter().filter(takes_part);
    all.filter_map(|contender| Some((contender, own_blocks(&contender.name)?))).collect()
}

/// The chains that these forks mine, by their names. `None` after an interruption.
fn own_chains(miners: &[(&Contender, u32)], bench: &Bench) -> Option<Vec<(String, Result<OwnChain, NotMined>)>> {
    let mut chains = Vec::new();
    for (index, (contender, blocks)) in miners.iter().enumerate() {
        print_progress(&format!("{} mines {blocks} blocks of its own chain", contender.name));
        let folder = bench.work.join(format!("own-{index}"));
        let mined = mine(contender, *blocks, &bench.settings, &folder, &bench.interrupted).transpose()?;
        if let Err(failure) = &mined {
            print_progress(&format!("{}: {}", contender.name, failure.reason));
        }
        chains.push((contender.name.clone(), mined));
    }
    Some(chains)
}

/// Every node once for each number of workers that the machine has cores for.
fn with_workers(args: &ReindexArgs) -> Result<Vec<Contender>, LabError> {
    let cores = parallel::default_threads();
    let (here, above): (Vec<usize>, Vec<usize>) = args.workers.iter().copied().partition(|workers| *workers <= cores);
    if here.is_empty() || here.contains(&0) {
        return Err(LabError::Usage(format!("--workers: numbers from 1 to this machine's {cores} cores")));
    }
    if !above.is_empty() {
        print_progress(&format!("--workers: left out {above:?}, since this machine has {cores} cores"));
    }
    let mut all = Vec::new();
    for workers in here {
        for mut contender in contenders(&args.runs)? {
            if !WITH_PAR.contains(&base_kind(&contender.name)) {
                let text = format!("--workers: {} has no -par; {} have", contender.name, WITH_PAR.join(", "));
                return Err(LabError::Usage(text));
            }
            contender.more.push(format!("-par={workers}"));
            contender.name = scaling::name_with(&contender.name, workers);
            all.push(contender);
        }
    }
    Ok(all)
}
