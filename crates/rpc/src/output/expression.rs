//! Descriptors that are written. Input: text. Output: the scripts it stands for, and what Core tells of it; or Core's words for what is wrong.
//!
//! Understood are addr, raw, pk, pkh, wpkh, combo, multi, sortedmulti, sh, wsh, tr with trees, multi_a, sortedmulti_a, rawtr, unused, and miniscript in
//! wsh and tr; keys in hexadecimal, WIF, and extended ones with origins, paths, alternatives and stars. Not musig(). Private keys live as
//! long as [`Descriptors`] and are in no answer. Cost: a multiplication on the curve a step of a path and position.

mod bip32;
mod key;
mod miniscript;
mod node;
mod parse;
mod sha512;

pub(crate) use node::Output;

use super::descriptor::checksum;
use key::Secrets;
use lydian_consensus::Chain;
use node::{Node, with_checksum};
use parse::{Parser, Place};

/// A descriptor, or several where paths have alternatives.
#[derive(Debug)]
pub(crate) struct Descriptors {
    nodes: Vec<Node>,
    secrets: Secrets,
    chain: Chain,
}

/// Reads a descriptor; Core's `Parse`.
pub(crate) fn parse(text: &str, chain: Chain, must_have_checksum: bool) -> Result<Descriptors, String> {
    let mut rest = check_checksum(text, must_have_checksum)?;
    let mut secrets = Secrets::new();
    let nodes = Parser { chain, secrets: &mut secrets }.script(&mut rest, Place::Top)?;
    // Core has no words for what stands behind it.
    if rest.is_empty() { Ok(Descriptors { nodes, secrets, chain }) } else { Err(String::new()) }
}

impl Descriptors {
    /// How many there are, one at least.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// As Core writes them, with checksums and without secrets.
    pub(crate) fn texts(&self) -> Vec<String> {
        self.nodes.iter().map(|node| with_checksum(node.text(self.chain))).collect()
    }

    pub(crate) fn is_range(&self) -> bool {
        self.nodes.first().is_some_and(Node::is_range)
    }

    /// Whether who has the keys could spend.
    pub(crate) fn is_solvable(&self) -> bool {
        self.nodes.first().is_some_and(Node::is_solvable)
    }

    pub(crate) fn has_secrets(&self) -> bool {
        !self.secrets.is_empty()
    }

    /// The scripts of one of them at a position; `None` if a private key is missing.
    pub(crate) fn expand(&self, index: usize, position: u32) -> Option<Vec<Output>> {
        self.nodes.get(index)?.expand(position, &self.secrets, self.chain)
    }
}

/// The checksum of a text, without one or with the right one.
pub(crate) fn checksum_of(text: &str) -> Option<String> {
    let payload = check_checksum(text, false).ok()?;
    checksum(payload.as_bytes()).map(|sum| sum.map(char::from).iter().collect())
}

/// The text before the checksum, which must be right if there is one.
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
