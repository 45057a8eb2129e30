//! The command line of `lydian-lab compare`. Input: two results files. Output: a table or JSON; exit code 0 without a
//! regression, 1 with one, 2 if the two cannot be compared.

use crate::cli::Report;
use lydian_lab::LabError;
use lydian_report::compare::compare as compare_results;
use lydian_report::results::Results;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Results file of `reindex` or `sync`, as written by --out.
    old: PathBuf,
    /// Results file of a later run of the same experiment on the same chain and machine.
    new: PathBuf,
    /// Changes up to this percentage do not count as a difference.
    #[arg(long, default_value = "5%", value_parser = share)]
    threshold: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn compare(args: &CompareArgs) -> Result<Report, LabError> {
    let comparison = compare_results(&Results::read(&args.old)?, &Results::read(&args.new)?, args.threshold);
    let text = if args.json { comparison.to_json() } else { comparison.to_markdown() };
    Ok(Report { text, exit_code: comparison.exit_code() })
}

/// Parses `5%` as 0.05.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    let per_cent = text.strip_suffix('%').ok_or("a percentage, for instance 5%")?;
    let share = per_cent.trim().parse::<f64>().map_err(|error| error.to_string())? / 100.0;
    if (0.0..=10.0).contains(&share) { Ok(share) } else { Err("between 0% and 1000%".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn a_threshold_is_a_percentage() {
        assert_eq!(share("5%"), Ok(0.05));
        assert_eq!(share("0%"), Ok(0.0));
        assert_eq!(share("12.5 %"), Ok(0.125));
        for bad in ["5", "", "%", "-1%", "1001%", "NaN%", "x%"] {
            assert!(share(bad).is_err(), "{bad}");
        }
    }
}
