//! House rules and generated documents.
//!
//! `cargo run -p xtask -- tidy` prints every violation of a house rule as `file:line: message`, then their count. The
//! exit code is 1 if there are any. `cargo run -p xtask -- generate` writes the documents of `docs/` that are generated
//! from tables, and the figures that are taken from benchmark results. `xtask sbom` and
//! `xtask third-party` print the components of a release and the texts of their licences (`make dist`), for the target
//! that follows. The version of Rust's standard library may follow that, if another compiler builds the release.
//!
//! Input: the files in the checkout that git tracks or would track, and `cargo metadata`. Invariant: `tidy` changes
//! nothing; `generate` writes only under `docs/` and README.md. Cost: about a second. It must never depend on a crate
//! of the product: `tidy` must work in a checkout whose crates do not compile.
#![forbid(unsafe_code)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer tool: it prints, and it reads the checkout directly"
)]

use std::process::ExitCode;

mod figures;
mod generate;
mod layers;
mod memory;
mod metadata;
mod sbom;
mod third_party;
mod tidy;
mod tree;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str);
    let target = argument(1).unwrap_or(metadata::PLATFORM);
    let done = match argument(0) {
        Some("tidy") => load().map(|(tree, metadata)| tidy::run(&tree, &metadata)),
        Some("generate") => load().and_then(|(tree, _)| generate::run(&tree)).map(|()| true),
        Some("sbom") => {
            load_release(target).and_then(|(tree, metadata)| sbom::document(&tree, &metadata, argument(2))).map(printed)
        }
        Some("third-party") => {
            load_release(target).and_then(|(tree, metadata)| third_party::text(&tree, &metadata)).map(printed)
        }
        _ => {
            Err("usage: xtask tidy | xtask generate | xtask sbom [TARGET [RUST_VERSION]] | xtask third-party [TARGET]"
                .to_owned())
        }
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

/// What the documents of a release are made from.
fn load_release(target: &str) -> Result<(tree::Tree, metadata::Metadata), String> {
    let metadata = metadata::Metadata::load(target)?;
    let tree = tree::Tree::load_only(&metadata.root, sbom::FILES)?;
    Ok((tree, metadata))
}

fn printed(text: String) -> bool {
    print!("{text}");
    true
}

fn load() -> Result<(tree::Tree, metadata::Metadata), String> {
    let metadata = metadata::Metadata::load(metadata::PLATFORM)?;
    let tree = tree::Tree::load(&metadata.root)?;
    Ok((tree, metadata))
}
