//! Reads of the chain and the coins, for callers such as the RPC server: methods of [`crate::Engine`].
//!
//! Input: hashes, heights, outpoints. Output: headers and blocks ([`view`]), the branches of the header tree
//! ([`branches`]), the verdict on a proposed block ([`proposal`]), the coins of one moment ([`snapshot`]), sums over
//! all coins ([`utxo`]), the check of the last blocks ([`check`]), and the followers ([`followers`]). It must never
//! change anything.

pub(crate) mod branches;
pub(crate) mod check;
pub(crate) mod followers;
pub(crate) mod proposal;
pub(crate) mod snapshot;
pub(crate) mod utxo;
pub(crate) mod view;
