//! The command line of `lydian-lab validity`: reports which broken rules each node accepts, without measuring anything.
//!
//! Input: names of nodes. Output: a table, and a JSON file. Exit code 0 if every node refuses every broken block, 1 if
//! one does not or cannot be asked, 130 after a Ctrl-C.

use crate::cli::interrupt::interrupted;
use crate::cli::runs::{VALIDITY_SEED, named};
use crate::cli::{Report, print_progress};
use lydian_chains::parallel::default_threads;
use lydian_chains::presets::validity::make;
use lydian_disk::{Disk, RealDisk};
use lydian_lab::LabError;
use lydian_lab::runs::adapters::cache_folder;
use lydian_lab::runs::lock::lock;
use lydian_lab::validity::{Document, Patience, Terms, to_markdown};
use lydian_report::validity::line_of;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

const EXIT_NOT_VALIDATING: u8 = 1;
const EXIT_INTERRUPTED: u8 = 130;

#[derive(Debug, clap::Args)]
pub(crate) struct ValidityArgs {
    /// Nodes, named as in `reindex`; `KIND:LABEL` for a second build of one kind.
    #[arg(long, value_delimiter = ',', default_value = "lydian,bitcoind")]
    nodes: Vec<String>,
    /// Path of a node's program: NAME=PATH.
    #[arg(long)]
    node_path: Vec<String>,
    /// Additional argument for a node: NAME=ARGUMENT.
    #[arg(long, allow_hyphen_values = true)]
    node_arg: Vec<String>,
    /// Number of script threads of each node [default: all cores].
    #[arg(long)]
    par: Option<usize>,
    /// Time limit in seconds for all blocks; a node that takes longer is stopped.
    #[arg(long, default_value_t = 600)]
    timeout_seconds: u64,
    /// Write the answers of each node as JSON to this file.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Directory in which the nodes run [default: in the cache directory].
    #[arg(long)]
    work: Option<PathBuf>,
}

pub(crate) fn validity(args: &ValidityArgs) -> Result<Report, LabError> {
    let contenders = named(&args.nodes, &args.node_path, &args.node_arg)?;
    let cache = cache_folder();
    let _lock = lock(&cache)?;
    let work = args.work.clone().unwrap_or_else(|| cache.join("work"));
    RealDisk.create_dir(&work)?;
    let interrupted = interrupted()?;
    let suite = make(VALIDITY_SEED);
    let terms = Terms {
        suite: &suite,
        folder: &work.join("validity"),
        threads: args.par.unwrap_or_else(default_threads),
        patience: Patience { total: Duration::from_secs(args.timeout_seconds), ..Patience::default() },
        interrupted: &interrupted,
    };
    let document = Document::make(&contenders, &terms, std::env::args().collect(), &mut |node| {
        print_progress(&line_of(node).unwrap_or_default());
    });
    if let Some(path) = &args.out {
        RealDisk.write_whole(path, document.to_json().as_bytes())?;
    }
    let text = to_markdown(&document.nodes);
    let exit_code = if interrupted.load(Ordering::Relaxed) {
        EXIT_INTERRUPTED
    } else if document.is_all_refused() {
        0
    } else {
        EXIT_NOT_VALIDATING
    };
    Ok(Report { text, exit_code })
}
