//! `lydian-lab`: the command line of the lab. Exit code 2 for errors of the lab itself, 1 if a measured node failed or
//! disagreed, 130 after a Ctrl-C.

#![forbid(unsafe_code)]

mod cli;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli::run(&cli) {
        Ok(report) => match std::io::stdout().write_all(report.text.as_bytes()) {
            Ok(()) => ExitCode::from(report.exit_code),
            Err(_) => ExitCode::from(2),
        },
        Err(error) => {
            // If this fails too, there is nowhere to report it.
            let _ = writeln!(std::io::stderr(), "lydian-lab: {error}");
            ExitCode::from(2)
        }
    }
}
