//! Bitcoin Core as the judge of everything that Lydian decides. Tests only: nothing that ships depends on this crate.
//!
//! The crate `libbitcoinkernel-sys` contains Core's whole source. [`build`] compiles Core's daemon once, outside the
//! checkout, and links one small program (`judge.cpp`) to the static libraries of that same build. There are two
//! interfaces to it:
//!
//! * [`Judge`]: script, transaction, signature hash -> Core's own answer, over a pipe, tens of thousands per second;
//! * [`Daemon`]: block -> accepted, or Core's reject reason; UTXO hash of the chain so far; any RPC method.
//!
//! Invariants: every answer is computed by Core's code, nothing is decided here; both interfaces use the same source
//! tree. Cost: about nine minutes of CPU time once, then 2 s if `judge.cpp` changed, then one process start. Must
//! never: be a dependency of anything but tests and the lab, or open a port beyond loopback.
#![forbid(unsafe_code)]

pub mod build;
pub mod compare;
mod daemon;
pub mod generate;
mod judge;
pub mod killed;
pub mod limits;
mod port;
mod rpc;
mod scratch;
pub mod terminal;
pub mod wire;

use std::path::PathBuf;

pub use daemon::{Daemon, Submission, TxOutSet};
pub use judge::{Info, Judge, JudgeError};
pub use port::free_port;
pub use rpc::RpcError;
pub use scratch::{Scratch, copy_folder};
pub use wire::{
    Answer, HashRequest, PackageReport, PackageRequest, Prevout, ScriptError, ScriptRequest, SighashRequest,
    SpendRequest, StandardReport, StandardRequest, TaprootSighashRequest, TxReport, TxRequest,
};

/// Why Core is not available. Each message says what is missing and how to build it.
#[derive(Debug)]
pub enum Unavailable {
    /// The daemon was never built here, or only in another version or with other options.
    NotBuilt { folder: PathBuf },
    /// The daemon is built, but the judge could not be linked.
    Judge { text: String },
    /// The program exists but does not start.
    Start { program: PathBuf, text: String },
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotBuilt { folder } => write!(
                f,
                "Bitcoin Core, the judge, is not built in {}; build it once with `make judge` (or `cargo run --release \
                 -p lydian-oracle`), about 5 minutes on two cores",
                folder.display()
            ),
            Self::Judge { text } => write!(f, "the judge program cannot be built: {text}; see `make judge`"),
            Self::Start { program, text } => write!(f, "{} does not start: {text}", program.display()),
        }
    }
}

impl std::error::Error for Unavailable {}

/// Name of the setting that makes a test fail instead of being skipped if the judge is missing.
pub const REQUIRE: &str = "LYDIAN_REQUIRE_JUDGE";

/// For tests: returns the judge or the daemon if it is available; otherwise prints what is missing and how to build it,
/// and returns `None`.
///
/// # Panics
///
/// If the setting [`REQUIRE`] is `1` and Core is not available.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
#[expect(clippy::panic, reason = "the intended way to fail a test; only tests call this")]
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
