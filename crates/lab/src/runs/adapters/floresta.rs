//! Floresta: a node without a UTXO set, built from its repository; the crate `florestad` 0.8.0 is a place-holder that prints "Hello, world!", the library
//! crates beside it are 0.0.0 and say "todo".
//!
//! Input: perhaps a path. Output: an adapter that takes part in nothing and says why. How it is run: `florestad --network regtest --data-dir FOLDER --connect PEER
//! --no-assume-utreexo`, with an assumevalid of none, so that every script is checked; `floresta-cli getblockchaininfo` tells the tip and `stop` ends it. It
//! keeps an accumulator in place of coins, so each block must come with a proof for its inputs (the service bit of utreexo): Bitcoin Core, Knots and Lydian
//! serve none, and no server of the lab can give it the chain. Must never: start the program.

use super::unable::Unable;
use std::path::Path;

pub(super) fn locate(path: Option<&Path>) -> Unable {
    Unable::new("floresta", path)
}
