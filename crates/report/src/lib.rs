//! The results of the lab as files, and everything that is made of them: tables, charts, comparisons, projections to
//! mainnet, the published history.
//!
//! Input: result files. Output: text, pages, smaller files. Invariant: a run that does not count is in no figure, and a
//! system that took no part is in every table with its reason. It must never start a program, read a clock, or know
//! how a chain is made.

#![forbid(unsafe_code)]

pub mod compare;
pub mod electrum;
pub mod error;
pub mod history;
pub mod limits;
#[cfg(test)]
mod made_up;
pub mod mempool;
pub mod page;
pub mod project;
pub mod read;
pub mod results;
pub mod summary;
pub mod systems;
pub mod thin;
pub mod validity;

pub use error::ReportError;
