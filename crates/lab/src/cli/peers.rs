//! The command line of `lydian-lab peers`: what can be measured here, and bringing what is missing.
//!
//! Input: names. Output: versions, one a line. Exit code 1 when one of several could not be installed; the others are there then.

use crate::cli::{Report, say};
use clap::Subcommand;
use lydian_lab::LabError;
use lydian_lab::peers::{Installed, install_all};

const EXIT_FAILED: u8 = 1;

#[derive(Debug, clap::Args)]
pub(crate) struct PeersArgs {
    #[command(subcommand)]
    command: PeersCommand,
}

#[derive(Debug, Subcommand)]
enum PeersCommand {
    /// Installs systems that are not there yet into the cache folder.
    Install {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

pub(crate) fn peers(args: &PeersArgs) -> Result<Report, LabError> {
    match &args.command {
        PeersCommand::Install { names } => install_all(names, &mut say).map(|installed| report(&installed)),
    }
}

/// Versions alone where one was asked for, for scripts.
fn report(installed: &[Installed]) -> Report {
    let mut report = Report::from(String::new());
    for one in installed {
        match &one.version {
            Ok(version) if installed.len() == 1 => report.text.push_str(&format!("{version}\n")),
            Ok(version) => report.text.push_str(&format!("{}: {version}\n", one.name)),
            Err(error) => {
                say(&format!("peers install {}: {error}", one.name));
                report.exit_code = EXIT_FAILED;
            }
        }
    }
    report
}
