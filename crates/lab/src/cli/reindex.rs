//! The command line of `lydian-lab reindex`. Input: arguments. Output: the table. The part shared with `sync` is in
//! `runs.rs`.

use crate::cli::runs::{Bench, Plan, RunArgs, contenders, report};
use crate::cli::{Report, print_progress};
use lydian_chains::parallel;
use lydian_lab::LabError;
use lydian_lab::lab_toml::base_kind;
use lydian_lab::runs::{Contender, Servers};
use lydian_report::results::{Cache, Experiment};
use lydian_report::scaling;

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
    let bench = Bench::new(&args.runs)?;
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
    };
    let (results, interrupted) = bench.results(&args.runs, plan)?;
    let mut report = report(&results, interrupted);
    if let Some(table) = scaling::to_markdown(&results) {
        report.text = table + "\n" + &report.text;
    }
    Ok(report)
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
