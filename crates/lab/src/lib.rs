//! The lab: measures this machine, and runs nodes and Electrum servers as processes on the same chains.
//!
//! Input: a chain, programs, settings. Output: result files. Invariants: a run counts only with the right answer, and
//! nothing is measured while another lab is measuring. It must never contain a consensus rule that a node could rely
//! on.

#![forbid(unsafe_code)]

mod difference;
pub mod electrum;
pub mod error;
pub mod index_size;
pub mod lab_toml;
pub mod limits;
pub mod limits_cmd;
pub mod mempool;
pub mod peers;
pub mod runs;
pub mod scale;
pub mod store;
pub mod sync;
pub mod validity;

pub use error::LabError;
