//! The command line of `lydian-lab reindex`. Input: arguments. Output: the table. The part shared with `sync` is in
//! `runs.rs`.

use crate::cli::Report;
use crate::cli::runs::{Bench, Plan, RunArgs, contenders};
use lydian_lab::LabError;
use lydian_lab::runs::Servers;
use lydian_report::results::{Cache, Experiment};

#[derive(Debug, clap::Args)]
pub(crate) struct ReindexArgs {
    #[command(flatten)]
    runs: RunArgs,
    /// Whether the system's page cache holds the block files when a run starts.
    #[arg(long, value_enum, default_value_t = CacheArg::Warm)]
    cache: CacheArg,
    /// Before a cold run, drop only the files of the run from the system's page cache, even if all of it could be
    /// dropped.
    #[arg(long)]
    keep_system_cache: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CacheArg {
    Warm,
    Cold,
    /// All warm runs, then all cold ones.
    Both,
}

pub(crate) fn reindex(args: &ReindexArgs) -> Result<Report, LabError> {
    let contenders = contenders(&args.runs)?;
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
    };
    bench.compare(&args.runs, plan)
}
