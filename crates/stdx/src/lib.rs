//! What several crates need and the standard library lacks: numbers from a seed, locks that ignore poisoning, the end
//! of the process if a thread panics, values that are replaced as a whole, sizes, wrapped text, base 64, overwriting
//! secrets. It knows nothing of Bitcoin and uses no crate.
//!
//! Invariants: no I/O, no clock, no entropy of the machine. A function belongs here only if at least two crates use it.

#![forbid(unsafe_code)]

mod base64;
mod current;
mod random;
mod size;
mod sync;
mod text;
mod wipe;

pub use base64::{base64, decode_base64};
pub use current::Current;
pub use random::SplitMix64;
pub use size::saturating_usize;
pub use sync::{AbortOnPanic, IgnorePoison, lock};
pub use text::wrap;
pub use wipe::{wipe, wipe_stack};
