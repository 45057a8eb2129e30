//! The best chain: what enters the header tree, and which of its chains is active.
//!
//! Input: blocks, headers, files, and the decisions of a person. Output: the header tree and the active chain, changed.
//! Invariant: every function that changes the active chain is called with the writer's lock
//! ([`crate::chainstate::shared`]). The rules decide, through [`crate::run`]; none is here.

pub(crate) mod accept;
pub(crate) mod activate;
mod connect;
mod disconnect;
pub(crate) mod import;
pub(crate) mod invalid;
pub(crate) mod manual;
pub(crate) mod refusal;
pub(crate) mod reindex;
