//! `lydian-oracle-build`: builds Bitcoin Core's daemon and the judge for the tests, once.
//!
//! Input -> output: nothing -> the paths of the programs on stdout, progress on stderr, or exit code 1 with one clear
//! sentence if something is missing. Cost: see [`lydian_oracle::build`]. Must never touch the checkout.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line program")]

use std::process::ExitCode;

fn main() -> ExitCode {
    match lydian_oracle::build::ensure(&mut |text| eprintln!("{text}")) {
        Ok(built) => {
            println!("bitcoind     {}", built.bitcoind.display());
            println!("bitcoin-cli  {}", built.bitcoin_cli.display());
            println!("judge        {}", built.judge.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
