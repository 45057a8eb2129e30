//! Reads of the chain and the coins, for callers such as the RPC server. Nothing here changes anything.
//!
//! Input: hashes, heights, outpoints. Output: headers, blocks, coins, sums over all coins, and the check of the last
//! blocks.

pub(crate) mod check;
pub(crate) mod utxo;
pub(crate) mod view;
