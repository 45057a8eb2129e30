//! Descriptors given as text.
//!
//! Input: a string. Output: its scripts and the properties that Core reports, or Core's error message.
//!
//! Supported: addr, raw, pk, pkh, wpkh, combo, multi, sortedmulti, sh, wsh, tr with trees, multi_a, sortedmulti_a,
//! rawtr, unused, and miniscript in wsh and tr; keys in hex, in WIF, and extended keys with origins, paths, multipath
//! steps and wildcards. Not supported: musig(). Private keys are kept as long as [`Descriptors`] and are in no answer.
//! Cost: one multiplication on the curve per path step and position.

mod bip32;
mod key;
mod miniscript;
mod node;
mod parse;
mod sha512;

pub use node::Output;

use crate::checksum::checksum;
use key::Secrets;
use lydian_consensus::Chain;
use node::{Node, with_checksum};
use parse::{Parser, Place};

/// A descriptor, or several for a multipath descriptor.
#[derive(Debug)]
pub struct Descriptors {
    nodes: Vec<Node>,
    secrets: Secrets,
    chain: Chain,
}

/// Parses a descriptor: Core's `Parse`.
pub fn parse(text: &str, chain: Chain, must_have_checksum: bool) -> Result<Descriptors, String> {
    let mut rest = check_checksum(text, must_have_checksum)?;
    let mut secrets = Secrets::new();
    let nodes = Parser { chain, secrets: &mut secrets }.script(&mut rest, Place::Top)?;
    // Core has no message for trailing text.
    if rest.is_empty() { Ok(Descriptors { nodes, secrets, chain }) } else { Err(String::new()) }
}

impl Descriptors {
    /// Number of descriptors, at least one.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// The descriptors as Core writes them, with checksums and without private keys.
    pub fn texts(&self) -> Vec<String> {
        self.nodes.iter().map(|node| with_checksum(node.text(self.chain))).collect()
    }

    pub fn is_range(&self) -> bool {
        self.nodes.first().is_some_and(Node::is_range)
    }

    /// Whether someone with the private keys could spend the outputs.
    pub fn is_solvable(&self) -> bool {
        self.nodes.first().is_some_and(Node::is_solvable)
    }

    pub fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// The scripts of one descriptor at a position; `None` if a private key is missing.
    pub fn expand(&self, index: usize, position: u32) -> Option<Vec<Output>> {
        self.nodes.get(index)?.expand(position, &self.secrets, self.chain)
    }
}

/// The checksum of a string without a checksum or with the correct one.
pub fn checksum_of(text: &str) -> Option<String> {
    let payload = check_checksum(text, false).ok()?;
    checksum(payload.as_bytes()).map(|sum| sum.map(char::from).iter().collect())
}

/// Returns the string before the checksum. If a checksum is present, it must be correct.
fn check_checksum(text: &str, must_have: bool) -> Result<&str, String> {
    let parts: Vec<&str> = text.split('#').collect();
    let (payload, given) = match parts[..] {
        [_] if must_have => return Err("Missing checksum".to_owned()),
        [payload] => (payload, None),
        [payload, given] => (payload, Some(given)),
        _ => return Err("Multiple '#' symbols".to_owned()),
    };
    if let Some(given) = given.filter(|given| given.len() != 8) {
        return Err(format!("Expected 8 character checksum, not {} characters", given.len()));
    }
    let computed = checksum(payload.as_bytes()).ok_or("Invalid characters in payload")?;
    let computed = String::from_utf8_lossy(&computed).into_owned();
    match given {
        Some(given) if given != computed => {
            Err(format!("Provided checksum '{given}' does not match computed checksum '{computed}'"))
        }
        _ => Ok(payload),
    }
}

#[cfg(test)]
mod tests;
