//! `lydian`: the program. Input: the command line. Output: text or JSON on stdout, progress on stderr, an exit code: 0 all valid, 1 a block
//! is invalid, 2 something could not be read or the command line is wrong.
//!
//! Only wiring: settings, files, the clock, the terminal. What is valid is decided in `consensus`.

#![forbid(unsafe_code)]

mod cli;
mod clock;
mod explain;
mod limits;
mod progress;
mod report;
mod screen;
mod verify;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    let code = match Cli::parse().command {
        Command::Verify(options) => verify::run(&options),
        Command::Explain { rule } => explain::run(rule.as_deref()),
    };
    ExitCode::from(code)
}
