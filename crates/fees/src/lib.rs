//! Fee estimates: Bitcoin Core's `CBlockPolicyEstimator` to the last digit, and its file `fee_estimates.dat`.
//!
//! Input: what happens to the mempool, as [`Event`]s in their order. Output: feerates in satoshi per 1,000 virtual
//! bytes. [`Estimator`] is the algorithm and the content of the file, [`load`] and [`save`] are the file itself, and
//! [`FeeEstimates`] is the estimator of a running node.
//!
//! Invariants: the floating-point operations are those of Core, in the same order, so that equal events give equal
//! estimates and equal files. No clock and no thread.

#![forbid(unsafe_code)]

mod codec;
mod estimator;
mod file;
#[cfg(test)]
mod interrupted;
pub mod limits;
mod service;
mod stats;
#[cfg(test)]
mod tests;

pub use codec::{CodecError, Corrupt, FILE_VERSION};
pub use estimator::{Estimator, Event, Horizon, Mode, SmartEstimate, TxInfo};
pub use file::{FEE_ESTIMATES_FILE, FEE_ESTIMATES_FILES, Loaded, load, save};
pub use service::FeeEstimates;
pub use stats::{Bucket, RawEstimate};
