//! Gocoin: a node in Go, built from its repository (`go build ./client`); it is in no package registry.
//!
//! Input: optionally a path. Output: an adapter that takes part in nothing and says why. On a network that it supports
//! it would be run as `client -t -d FOLDER -c PEER` with a `gocoin.conf` whose `LastTrustedBlock` is the genesis block,
//! so that every script is checked (by default everything below a block chosen by its authors is trusted, and `-trust`
//! trusts everything); its text interface on stdin returns the tip and accepts `quit`. It supports two networks, main
//! and testnet3, selected by `-t` (`client/common/config.go`), while the lab's chains are regtest. Must never: start
//! the program.

use super::unable::Unable;
use std::path::Path;

pub(super) fn locate(path: Option<&Path>) -> Unable {
    Unable::new("gocoin", path)
}
