//! The command line of `lydian-lab thin`. Input: results files, a directory. Output: a smaller file of the same name
//! for each, and a list of what was left out.

use crate::cli::Report;
use lydian_disk::{Disk, RealDisk};
use lydian_lab::LabError;
use lydian_report::page::Input;
use lydian_report::thin::{SAMPLES_DEFAULT, thin as thin_results, thin_electrum};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ThinArgs {
    /// Results files of `reindex`, `sync` or `electrum`.
    #[arg(required = true)]
    results: Vec<PathBuf>,
    /// Directory for the small files; existing files of the same names are replaced.
    #[arg(long)]
    out: PathBuf,
    /// Number of samples of each run to keep.
    #[arg(long, default_value_t = SAMPLES_DEFAULT)]
    samples: usize,
}

pub(crate) fn thin(args: &ThinArgs) -> Result<Report, LabError> {
    RealDisk.create_dir(&args.out)?;
    let mut text = String::new();
    for path in &args.results {
        let (json, what) = match Input::read(path)? {
            Input::Runs(results) => {
                let small = thin_results(&results, args.samples);
                (small.to_json(), small.thinned)
            }
            Input::Electrum(results) => {
                let small = thin_electrum(&results, args.samples);
                (small.to_json(), small.thinned)
            }
        };
        let name = path.file_name().ok_or_else(|| LabError::Usage(format!("{}: no name of a file", path.display())))?;
        RealDisk.write_whole(&args.out.join(name), json.as_bytes())?;
        let what = what.unwrap_or_default();
        text += &format!("{}: {} bytes; {what}\n", args.out.join(name).display(), json.len());
    }
    Ok(Report::from(text))
}
