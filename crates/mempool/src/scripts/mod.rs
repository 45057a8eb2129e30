//! The scripts of unconfirmed transactions: verified in batches, remembered for the block that has them, and verified
//! a second time in the background.

mod cache;
mod second;
mod verify;

pub use cache::{ENTRY_BYTES, ScriptCache};
pub use second::{OnWrong, SecondCheck, SecondCounts};
pub use verify::{InputFailure, Spend, verify_many};
