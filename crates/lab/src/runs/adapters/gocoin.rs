//! Gocoin: a node in Go, built from its repository (`go build ./client`); no package registry has it.
//!
//! Input: perhaps a path. Output: an adapter that takes part in nothing and says why. How it is run on a network that it has: `client -t -d FOLDER -c PEER` with
//! a `gocoin.conf` whose `LastTrustedBlock` is the genesis block, so that every script is checked (by default all below a block of its authors' choice are
//! trusted, and `-trust` trusts all); its text interface on stdin tells the tip and takes `quit`. The networks are two, main and testnet3, by the one switch
//! `-t` (`client/common/config.go`): what the lab makes is regtest. Must never: start the program.

use super::unable::Unable;
use std::path::Path;

pub(super) fn locate(path: Option<&Path>) -> Unable {
    Unable::new("gocoin", path)
}
