//! Descriptors given as text.
//!
//! Input: a string. Output: its scripts and the properties that Core reports, or a [`DescriptorError`].
//!
//! Supported: addr, raw, pk, pkh, wpkh, combo, multi, sortedmulti, sh, wsh, tr with trees, multi_a, sortedmulti_a,
//! rawtr, unused, and miniscript in wsh and tr; keys in hex, in WIF, extended keys with origins, paths, multipath steps
//! and wildcards, and musig(). Private keys are kept as long as [`Descriptors`], are wiped with it, and are in no
//! answer. Cost: one multiplication on the curve per path step and position.

mod bip32;
mod error;
mod key;
mod miniscript;
mod musig;
mod node;
mod parse;
mod sha512;

pub(crate) use bip32::decode_secret;
pub use error::{DescriptorError, KeyError, MiniscriptFault};
pub(crate) use miniscript::{Means, Preimage, decode as decode_miniscript};
pub use node::Output;
pub(crate) use node::{Multi, Node, TAPSCRIPT};
pub(crate) use sha512::hmac_sha512;

use crate::checksum::{self, with_checksum};
pub(crate) use key::{Key, Secrets};
use lydian_consensus::Chain;
pub(crate) use musig::{Musig, aggregate};
use parse::{Parser, Place};

/// A descriptor, or several for a multipath descriptor.
#[derive(Debug)]
pub struct Descriptors {
    nodes: Vec<Node>,
    secrets: Secrets,
    chain: Chain,
    checksum: String,
}

impl Descriptors {
    /// Parses a descriptor with keys and addresses of the chain: Core's `Parse`.
    pub fn parse(text: &str, chain: Chain, must_have_checksum: bool) -> Result<Descriptors, DescriptorError> {
        let (mut rest, checksum) = checksum::check(text, must_have_checksum)?;
        let mut secrets = Secrets::default();
        let nodes = Parser { chain, secrets: &mut secrets }.script(&mut rest, Place::Top)?;
        match rest {
            "" => Ok(Descriptors { nodes, secrets, chain, checksum }),
            _ => Err(DescriptorError::Trailing),
        }
    }

    /// Number of descriptors, at least one.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The descriptors as Core writes them, with checksums and without private keys.
    pub fn texts(&self) -> Vec<String> {
        self.nodes.iter().map(|node| with_checksum(node.text(self.chain))).collect()
    }

    /// The checksum of the text as it was given, private keys included: Core's `GetDescriptorChecksum`.
    pub fn checksum(&self) -> &str {
        &self.checksum
    }

    /// Whether it has a wildcard.
    pub fn is_range(&self) -> bool {
        self.nodes.first().is_some_and(Node::is_range)
    }

    /// Whether the outputs can be spent with the private keys.
    pub fn is_solvable(&self) -> bool {
        self.nodes.first().is_some_and(Node::is_solvable)
    }

    /// Whether it contains private keys.
    pub fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    pub(crate) fn node(&self, index: usize) -> Option<&Node> {
        self.nodes.get(index)
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The scripts of one descriptor at a position; `None` if a private key is missing.
    pub fn expand(&self, index: usize, position: u32) -> Option<Vec<Output>> {
        self.nodes.get(index)?.expand(position, &self.secrets, self.chain)
    }
}

#[cfg(test)]
mod tests;
