//! The command line of `lydian-lab peers`: lists what can be measured here, and installs what is missing.
//!
//! Input: names. Output: the list, or versions, one per line. Exit code 1 if one of several could not be installed; the
//! others are installed then.

use crate::cli::{Report, print_progress};
use clap::Subcommand;
use lydian_lab::LabError;
use lydian_lab::lab_toml;
use lydian_lab::peers::{Installed, install_all, list};
use lydian_report::systems;

const EXIT_FAILED: u8 = 1;

#[derive(Debug, clap::Args)]
pub(crate) struct PeersArgs {
    #[command(subcommand)]
    command: PeersCommand,
}

#[derive(Debug, Subcommand)]
enum PeersCommand {
    /// List every system of the published benchmarks and every fork of lab.toml: version, which command measures it,
    /// how to get it, its limitations.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        /// List only what is not measured here, or not with every command, and why.
        #[arg(long, conflicts_with = "json")]
        left_out: bool,
        /// Print the table of systems of docs/lab.md, independent of this machine.
        #[arg(long, conflicts_with_all = ["json", "left_out"])]
        markdown: bool,
    },
    /// Install systems that are missing into the cache directory.
    Install {
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
    },
}

pub(crate) fn peers(args: &PeersArgs) -> Result<Report, LabError> {
    match &args.command {
        PeersCommand::List { markdown: true, .. } => Ok(Report::from(systems::to_markdown())),
        PeersCommand::List { json, left_out, .. } => {
            let entries = list::list(lab_toml::active());
            let columns = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
            Ok(Report::from(match (json, left_out) {
                (true, _) => list::to_json(&entries),
                (_, true) => list::left_out(&entries),
                _ => list::to_text(&entries, columns),
            }))
        }
        PeersCommand::Install { names } => install_all(names, &mut print_progress).map(|installed| report(&installed)),
    }
}

/// Prints only the version if a single name was given, for scripts.
fn report(installed: &[Installed]) -> Report {
    let mut report = Report::from(String::new());
    for one in installed {
        match &one.version {
            Ok(version) if installed.len() == 1 => report.text.push_str(&format!("{version}\n")),
            Ok(version) => report.text.push_str(&format!("{}: {version}\n", one.name)),
            Err(error) => {
                print_progress(&format!("peers install {}: {error}", one.name));
                report.exit_code = EXIT_FAILED;
            }
        }
    }
    report
}
