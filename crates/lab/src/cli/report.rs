//! The command line of `lydian-lab report`. Input: results files. Output: the paths of the files written.

use crate::cli::Report;
use lydian_lab::LabError;
use lydian_report::page::{Input, write};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// Results files written by --out of reindex, sync or electrum; one page for all of them.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Directory for index.html, report.md and the charts; created if missing, existing files of these names are
    /// replaced.
    #[arg(long)]
    out: PathBuf,
}

pub(crate) fn report(args: &ReportArgs) -> Result<Report, LabError> {
    let inputs = args.results.iter().map(|path| Input::read(path)).collect::<Result<Vec<_>, _>>()?;
    let written = write(&inputs, &args.out)?;
    let lines: Vec<String> = written.iter().map(|path| format!("{}\n", path.display())).collect();
    Ok(lines.concat().into())
}
