//! Floresta: a node without a UTXO set, built from its repository.
//!
//! The crate `florestad` 0.8.0 is a placeholder that prints "Hello, world!"; the library crates beside it are 0.0.0 and
//! say "todo". Input: optionally a path. Output: an adapter that takes part in nothing and says why. It would be run as
//! `florestad --network regtest --data-dir FOLDER --connect PEER --no-assume-utreexo`, with assumevalid disabled, so
//! that every script is checked; `floresta-cli getblockchaininfo` returns the tip and `stop` ends it. It keeps an
//! accumulator in place of coins, so each block must come with a proof for its inputs (the service bit of utreexo).
//! Bitcoin Core, Knots and Lydian do not serve such proofs, so no server of the lab can give it the chain. Must never:
//! start the program.

use super::unable::Unable;
use std::path::Path;

pub(super) fn locate(path: Option<&Path>) -> Unable {
    Unable::new("floresta", path)
}
