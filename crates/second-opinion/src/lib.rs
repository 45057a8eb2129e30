//! The second opinion of `-secondopinion`: Bitcoin Core's own code verifies the scripts of blocks that the engine has
//! accepted, and each disagreement is reported.
//!
//! Input: the blocks of the active chain with the coins they spend, from the engine ([`SecondOpinion`] is a follower
//! without files). Output: a [`Report`] for each block that was verified, rejected or left out. At the tip, that is
//! after the initial block download, every block is verified; during the sync, a random sample. One thread does the
//! work, through the trait [`Verifier`]: with the feature `bitcoinkernel`, Core's code is linked into the program.
//!
//! Invariants: nothing here changes a verdict or delays one; the blocks that wait are bounded in bytes, and a block at
//! the tip that finds no room is reported; a verifier that fails or panics ends neither the thread nor the node. (An
//! assertion that fails in Core's C++ code does end the process.) The script flags are those of our own consensus code,
//! so an error in them is not found here. A block of the sample is verified although `-assumevalid` covers it. No
//! clock, no randomness of its own, no disk.
//!
//! Cost: for the engine, one copy of each chosen block; for the thread, Core's time to verify it on one core, some
//! 0.5 s for a full block.

#![forbid(unsafe_code)]

mod examine;
mod follower;
mod liar;
pub mod limits;
#[cfg(feature = "bitcoinkernel")]
mod linked;
mod queue;
mod report;
mod sample;
mod verifier;

pub use follower::{Monitor, SECOND_OPINION_NAME, SecondOpinion, Settings};
pub use liar::Liar;
pub use report::{Counts, Listener, Report, Why};
pub use sample::SAMPLED_ONE_IN;
pub use verifier::{Rejection, Spend, Verifier, VerifierError};

/// Bitcoin Core's code, if this program was built with it.
#[cfg(feature = "bitcoinkernel")]
pub fn bitcoin_core() -> Option<Box<dyn Verifier>> {
    Some(Box::new(linked::BitcoinKernel))
}

/// Bitcoin Core's code, if this program was built with it.
#[cfg(not(feature = "bitcoinkernel"))]
pub fn bitcoin_core() -> Option<Box<dyn Verifier>> {
    None
}
