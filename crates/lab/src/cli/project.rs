//! The command line of `lydian-lab project`. Input: results files and a target. Output: the projection as Markdown or
//! JSON, to stdout only: it is never written into a results file. Exit code 1 if no node could be projected, 2 for
//! results of two builds of one node.

use crate::cli::Report;
use lydian_lab::LabError;
use lydian_report::project::{Options, Target, mixed_builds, project as project_results};
use lydian_report::results::Results;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ProjectArgs {
    /// Results files of `reindex` or `sync` on this machine; several chains with different mixes separate the costs.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Target: NETWORK@HEIGHT.
    #[arg(long, default_value = "mainnet@928000")]
    to: String,
    /// Number of cores of the target machine; an assumption if it differs from that of the runs.
    #[arg(long)]
    cores: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn project(args: &ProjectArgs) -> Result<Report, LabError> {
    let target = Target::parse(&args.to)?;
    if args.cores == Some(0) {
        return Err(LabError::Usage("--cores 0: at least one".into()));
    }
    let results = args.results.iter().map(|path| Results::read(path)).collect::<Result<Vec<Results>, _>>()?;
    if let Some(mixed) = mixed_builds(&results).first() {
        let file = |index: usize| args.results.get(index).map_or_else(String::new, |path| path.display().to_string());
        let (one, other) = (file(mixed.first), file(mixed.other));
        let text = format!("project: {one} and {other} are of two builds of {}: {}", mixed.node, mixed.reason);
        return Err(LabError::Usage(text));
    }
    let projection = project_results(&results, &target, &Options { cores: args.cores })?;
    let text = if args.json { projection.to_json() } else { projection.to_markdown() };
    Ok(Report { text, exit_code: u8::from(projection.nodes.is_empty()) })
}
