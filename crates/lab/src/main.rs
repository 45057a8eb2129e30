//! `lydian-lab`: the command line of the lab. Exit code 2 for anything that goes wrong.

#![forbid(unsafe_code)]

mod cli;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    match cli::run(&cli) {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        },
        Err(error) => {
            // Nobody is left to tell if this fails too.
            let _ = writeln!(std::io::stderr(), "lydian-lab: {error}");
            ExitCode::from(2)
        }
    }
}
