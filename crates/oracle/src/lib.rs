//! Bitcoin Core as the judge of everything that Lydian decides. Tests only: nothing that ships depends on this crate.
//!
//! Core's whole source comes with the crate `libbitcoinkernel-sys`. [`build`] compiles its daemon once, outside the
//! checkout, and links one small program (`judge.cpp`) to the static libraries of that same build. Two doors lead to it:
//!
//! * [`Judge`]: script, transaction, signature hash -> Core's own answer, over a pipe, tens of thousands a second;
//! * [`Daemon`]: block -> accepted, or Core's reject reason; UTXO hash of the chain so far; any RPC method.
//!
//! Invariants: every answer is computed by Core's code, nothing is decided here; the same source tree answers both
//! doors. Cost: about nine minutes of CPU once, then 2 s when `judge.cpp` changed, then one process start.
//! Must never: be a dependency of anything but tests and the lab, or open a port beyond loopback.
#![forbid(unsafe_code)]

pub mod build;
pub mod compare;
mod daemon;
pub mod generate;
mod judge;
pub mod limits;
mod rpc;
mod scratch;
pub mod wire;

use std::path::PathBuf;

pub use daemon::{Daemon, Submission, TxOutSet};
pub use judge::{Info, Judge, JudgeError};
pub use rpc::RpcError;
pub use scratch::Scratch;
pub use wire::{
    Answer, HashRequest, Prevout, ScriptError, ScriptRequest, SighashRequest, SpendRequest, TaprootSighashRequest,
    TxReport, TxRequest,
};

/// Why Core cannot be asked. Each message says what is missing and how to make it.
#[derive(Debug)]
pub enum Unavailable {
    /// The daemon was never built here, or for another version or other options.
    NotBuilt { folder: PathBuf },
    /// There is a build, but the judge could not be linked to it.
    Judge { text: String },
    /// The program is there and does not start.
    Start { program: PathBuf, text: String },
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotBuilt { folder } => write!(
                f,
                "Bitcoin Core, the judge, is not built in {}; make it once with `make judge` (or `cargo run --release \
                 -p lydian-oracle`), about 5 minutes on two cores",
                folder.display()
            ),
            Self::Judge { text } => write!(f, "the judge program cannot be built: {text}; `make judge` shows more"),
            Self::Start { program, text } => write!(f, "{} does not start: {text}", program.display()),
        }
    }
}

impl std::error::Error for Unavailable {}

/// Name of the setting under which a missing judge fails a test instead of skipping it.
pub const REQUIRE: &str = "LYDIAN_REQUIRE_JUDGE";

/// For tests: the judge or the daemon when there is one; otherwise prints what is missing and how to make it, and
/// returns `None`.
///
/// # Panics
///
/// When the setting [`REQUIRE`] is `1` and Core is not there.
#[expect(clippy::print_stderr, reason = "a test that did not run has to say so")]
#[expect(clippy::panic, reason = "the wanted way to fail a test; nothing but tests calls this")]
pub fn or_skip<T>(test: &str, found: Result<T, Unavailable>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(missing) if std::env::var(REQUIRE).is_ok_and(|value| value == "1") => panic!("{test}: {missing}"),
        Err(missing) => {
            eprintln!("not run: {test}: {missing}");
            None
        }
    }
}
