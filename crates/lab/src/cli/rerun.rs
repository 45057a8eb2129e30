//! The command line of `lydian-lab rerun`: the same comparison again, from its results file alone.
//!
//! Input: results of `reindex` or `sync`. Output: new results, and their comparison with the old ones. The chain is
//! made again (or taken from the cache) and must have the hash of the file before anything runs. Must never: overwrite
//! the given file.

use crate::cli::compare::share;
use crate::cli::reindex::reindex;
use crate::cli::sync::sync;
use crate::cli::{Cli, Command, Report, print_progress};
use clap::Parser;
use lydian_lab::LabError;
use lydian_report::compare::compare;
use lydian_report::results::Results;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct RerunArgs {
    /// Results file of `reindex` or `sync`, as written by --out.
    results: PathBuf,
    /// Write the new results to this file [default: RESULTS.rerun.json].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Changes up to this percentage do not count as a difference.
    #[arg(long, default_value = "5%", value_parser = share)]
    threshold: f64,
}

impl RerunArgs {
    fn out(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(|| self.results.with_extension("rerun.json"))
    }

    /// The command of the file, and the `lab.toml` that it named.
    pub(crate) fn earlier(&self) -> Result<(Results, Cli), LabError> {
        let old = Results::read(&self.results)?;
        let cli = command_of(&old, &self.results)?;
        Ok((old, cli))
    }
}

/// Exit code: that of the comparison if every new run counts, otherwise that of the runs.
pub(crate) fn rerun(args: &RerunArgs, (old, earlier): (Results, Cli)) -> Result<Report, LabError> {
    let out = args.out();
    if same_file(&out, &args.results) {
        return Err(LabError::Usage(format!("--out {}: that is the file to be repeated", out.display())));
    }
    print_progress(&format!("repeating: {}", old.lab.command_line.join(" ")));
    let report = match earlier.command {
        Command::Reindex(mut inner) => {
            inner.runs.repeat(&old, &out);
            reindex(&inner)?
        }
        Command::Sync(mut inner) => {
            inner.runs.repeat(&old, &out);
            sync(&inner)?
        }
        _ => return Err(not_repeatable(&args.results)),
    };
    if report.exit_code != 0 {
        return Ok(report);
    }
    let comparison = compare(&old, &Results::read(&out)?, args.threshold);
    Ok(Report { text: report.text + "\n" + &comparison.to_markdown(), exit_code: comparison.exit_code() })
}

fn command_of(old: &Results, path: &Path) -> Result<Cli, LabError> {
    let cli = Cli::try_parse_from(&old.lab.command_line).map_err(|error| {
        let text = error.to_string();
        let first = text.lines().next().unwrap_or_default().to_owned();
        LabError::Usage(format!("{}: its command line does not suit this version of the lab: {first}", path.display()))
    })?;
    match cli.command {
        Command::Reindex(_) | Command::Sync(_) => Ok(cli),
        _ => Err(not_repeatable(path)),
    }
}

fn not_repeatable(path: &Path) -> LabError {
    LabError::Usage(format!("{}: only results of reindex and sync can be repeated", path.display()))
}

fn same_file(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    one == other || real(one).is_some_and(|found| real(other) == Some(found))
}
