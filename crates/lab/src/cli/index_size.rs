//! The command line of `lydian-lab index-size`: two chains, the program, the report.
//!
//! Input: arguments. Output: Markdown or JSON. Exit code 0; a program that fails is an error of the lab.

use crate::cli::interrupt::interrupted;
use crate::cli::size::SizeArgs;
use crate::cli::{Report, print_progress};
use lydian_chains::parallel;
use lydian_chains::presets::deep::{Base, DeepSettings};
use lydian_disk::{Disk, RealDisk};
use lydian_lab::LabError;
use lydian_lab::index_size::{IndexSizes, measure, program};
use lydian_lab::runs::adapters::cache_folder;
use lydian_lab::runs::chain_cache::{Preset, ensure};
use lydian_lab::runs::lock::lock;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct IndexSizeArgs {
    #[command(flatten)]
    size: SizeArgs,
    /// Seed of the chains.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// For the chain of mainnet's mix: share of the outputs that pay a key used before, 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    reuse: f64,
    /// Height of both chains, by empty blocks above: blocks are sealed 1,088 blocks below the tip, and 2,048 of them
    /// are merged.
    #[arg(long, default_value_t = 3_200)]
    height: u32,
    /// Height of mainnet.
    #[arg(long, default_value_t = 928_000)]
    to: u32,
    /// Path of the program `lydian` [default: the one beside this program].
    #[arg(long)]
    node_path: Option<PathBuf>,
    /// Directory in which the node runs [default: in the cache directory].
    #[arg(long)]
    work: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn index_size(args: &IndexSizeArgs) -> Result<Report, LabError> {
    let program = program(args.node_path.as_deref())?;
    let cache = cache_folder();
    let _lock = lock(&cache)?;
    let interrupted = interrupted()?;
    let work = args.work.clone().unwrap_or_else(|| cache.join("work"));
    RealDisk.create_dir(&work)?;
    let bases = [
        ("mainnet's mix", Base::Mix(args.size.mix(args.seed, args.reuse)?)),
        ("reuse", Base::Reuse(args.size.reuse(args.seed))),
    ];
    let mut measured = Vec::new();
    for (name, base) in bases {
        let preset = Preset::Deep(DeepSettings { base, height: args.height });
        let (folder, chain) = ensure(preset, &cache.join("chains"), parallel::default_threads(), &mut print_progress)?;
        print_progress(&format!("building the indexes of {name}"));
        measured.push(measure(name, &folder, &chain, &program, &work, &interrupted)?);
    }
    let sizes = IndexSizes::new(&program, measured, args.to)?;
    Ok(Report::from(if args.json { sizes.to_json() } else { sizes.to_text() }))
}
