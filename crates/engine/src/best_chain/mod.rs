//! The search for the best chain and everything that changes the active chain or the header tree.
//!
//! Input: blocks, headers, files, and the decisions of a person. Output: the header tree and the active chain, changed.
//! Invariant: only the holder of the writer's lock changes the active chain.

pub(crate) mod accept;
pub(crate) mod activate;
mod connect;
mod disconnect;
pub(crate) mod import;
pub(crate) mod invalid;
pub(crate) mod manual;
pub(crate) mod refusal;
