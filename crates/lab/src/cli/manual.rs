//! Completions and manual pages of `lydian-lab`, made from its command line. Output: text for a shell; one page of
//! roff for each command.

use crate::cli::{Cli, Report};
use clap::CommandFactory;
use lydian_disk::{Disk, RealDisk};
use lydian_lab::LabError;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ManualArgs {
    /// Directory for the pages.
    #[arg(long)]
    out: PathBuf,
    /// Date of the pages, yyyy-mm-dd.
    #[arg(long)]
    date: String,
}

pub(crate) fn completions(shell: clap_complete::Shell) -> String {
    let mut command = Cli::command();
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

pub(crate) fn manual(args: &ManualArgs) -> Result<Report, LabError> {
    RealDisk.create_dir(&args.out)?;
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let name = command.get_name().to_owned();
    let subcommands: Vec<clap::Command> =
        command.get_subcommands().filter(|command| !command.is_hide_set()).cloned().collect();
    let mut text = write_page(args, &name, command)?;
    for command in subcommands {
        let name = format!("{name}-{}", command.get_name());
        text += &write_page(args, &name, command.display_name(name.clone()))?;
    }
    Ok(text.into())
}

fn write_page(args: &ManualArgs, name: &str, command: clap::Command) -> Result<String, LabError> {
    let path = args.out.join(format!("{name}.1"));
    let title = name.to_uppercase();
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .title(title)
        .date(args.date.clone())
        .manual("User Commands")
        .render(&mut page)
        .map_err(|error| LabError::Program { program: "clap_mangen".to_owned(), reason: error.to_string() })?;
    RealDisk.write_whole(&path, &page)?;
    Ok(format!("{}\n", path.display()))
}
