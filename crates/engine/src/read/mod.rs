//! Reads of the chain and the coins, for callers such as the RPC server: methods of [`crate::Engine`].
//!
//! Input: hashes, heights, outpoints. Output: headers, blocks and coins ([`view`]), sums over all coins ([`utxo`]), and
//! the check of the last blocks ([`check`]), and the followers ([`followers`]). It must never change anything.

pub(crate) mod check;
pub(crate) mod followers;
pub(crate) mod utxo;
pub(crate) mod view;
