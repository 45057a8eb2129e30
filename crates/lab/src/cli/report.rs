//! The command line of `lydian-lab report`. Input: files of results. Output: the paths of what was written.

use crate::cli::Report;
use lydian_lab::LabError;
use lydian_lab::report::{Input, write};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Files that --out of reindex, sync or electrum named; one page for all of them.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Folder for index.html, report.md and the charts; made if need be, files of these names in it are replaced.
    #[arg(long)]
    out: PathBuf,
}

pub(crate) fn report(args: &ReportArgs) -> Result<Report, LabError> {
    let inputs = args.results.iter().map(|path| Input::read(path)).collect::<Result<Vec<_>, _>>()?;
    let written = write(&inputs, &args.out)?;
    let lines: Vec<String> = written.iter().map(|path| format!("{}\n", path.display())).collect();
    Ok(lines.concat().into())
}
