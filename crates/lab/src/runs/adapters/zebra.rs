//! Zebra BTC: a fork of the Zcash Foundation's node that was meant to become a Bitcoin node.
//!
//! It was abandoned in 2022 before it validated anything. Input: optionally a path. Output: an adapter that takes part
//! in nothing and says why: its table of networks has no regtest (`zebra-chain/src/parameters/network.rs`), and its
//! README lists scripts among what is missing. Must never: start the program.

use super::unable::Unable;
use std::path::Path;

pub(super) fn locate(path: Option<&Path>) -> Unable {
    Unable::new("zebra", path)
}
