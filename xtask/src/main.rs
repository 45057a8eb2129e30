//! House rules and generated documents.
//!
//! `cargo run -p xtask -- tidy` prints every breach of a house rule as `file:line: message` and their count, exit code 1 if there is any;
//! `cargo run -p xtask -- generate` writes the documents of `docs/` that are made from tables, and the numbers that come from results. Input: the files git knows in the checkout
//! and `cargo metadata`. Invariant: `tidy` changes nothing, `generate` writes under `docs/` and README.md only. Cost: about a second. It must
//! never need a crate of the product: a checkout whose crates do not compile can still be tidied.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a tool for developers: it prints, and it reads the checkout itself"
)]

use std::process::ExitCode;

mod figures;
mod generate;
mod layers;
mod memory;
mod metadata;
mod tidy;
mod tree;

fn main() -> ExitCode {
    let command = std::env::args().nth(1);
    let done = match command.as_deref() {
        Some("tidy") => load().map(|(tree, metadata)| tidy::run(&tree, &metadata)),
        Some("generate") => load().and_then(|(tree, _)| generate::run(&tree)).map(|()| true),
        _ => Err("usage: xtask tidy | xtask generate".to_owned()),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::from(2)
        }
    }
}

fn load() -> Result<(tree::Tree, metadata::Metadata), String> {
    let metadata = metadata::Metadata::load()?;
    let tree = tree::Tree::load(&metadata.root)?;
    Ok((tree, metadata))
}
