//! Proofs that transactions are in a block: Core's `CMerkleBlock` and `CPartialMerkleTree` (merkleblock.h, BIP-0037).
//!
//! Input: a header and the txids of its block; or bytes from anyone. Output: bytes; or the txids that are proven, with
//! the merkle root that they lead to.
//!
//! The tree is walked from the root, left before right. A bit says whether a node is the ancestor of a proven
//! transaction; if it is not, or if it is a leaf, its hash follows. Invariants: no bytes cause a panic, nothing is
//! allocated beyond what the bytes contain, and a walk is at most [`PROOF_TRANSACTIONS_MAX`] leaves wide. A node with
//! two equal children is refused, since a transaction could otherwise be proven twice (CVE-2012-2459). A proof alone
//! does not fix the depth of the tree, so that an inner node could pass for a transaction (CVE-2017-12842): the caller
//! compares [`MerkleBlock::transactions`] with the number of the block.

use crate::limits::PROOF_TRANSACTIONS_MAX;
use lydian_hash::sha256d;
use lydian_primitives::{Header, ParseError, Reader, Txid, write_compact_size};
use std::collections::BTreeSet;

/// A proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MerkleBlock {
    pub(crate) header: Header,
    /// The number of transactions in the block.
    pub(crate) transactions: u32,
    hashes: Vec<[u8; 32]>,
    bits: Vec<bool>,
}

impl MerkleBlock {
    /// Proves those transactions of a block that are in `wanted`. `txids` are those of the whole block.
    pub(crate) fn build(header: Header, txids: &[Txid], wanted: &BTreeSet<Txid>) -> MerkleBlock {
        let leaves = txids.iter().map(|txid| Node { hash: txid.0, is_ancestor: wanted.contains(txid) }).collect();
        let mut levels: Vec<Vec<Node>> = vec![leaves];
        while let Some(below) = levels.last().filter(|level| level.len() > 1) {
            levels.push(below.chunks(2).map(Node::above).collect());
        }
        let transactions = u32::try_from(txids.len()).unwrap_or(u32::MAX);
        let mut proof = MerkleBlock { header, transactions, hashes: Vec::new(), bits: Vec::new() };
        proof.append(&levels, levels.len() - 1, 0);
        proof
    }

    fn append(&mut self, levels: &[Vec<Node>], height: usize, position: usize) {
        let Some(node) = levels[height].get(position) else { return };
        self.bits.push(node.is_ancestor);
        if height == 0 || !node.is_ancestor {
            self.hashes.push(node.hash);
        } else {
            self.append(levels, height - 1, 2 * position);
            self.append(levels, height - 1, 2 * position + 1);
        }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = self.header.to_bytes().to_vec();
        out.extend_from_slice(&self.transactions.to_le_bytes());
        write_compact_size(&mut out, self.hashes.len());
        self.hashes.iter().for_each(|hash| out.extend_from_slice(hash));
        let byte = |bits: &[bool]| bits.iter().rev().fold(0_u8, |byte, bit| byte << 1 | u8::from(*bit));
        write_compact_size(&mut out, self.bits.len().div_ceil(8));
        out.extend(self.bits.chunks(8).map(byte));
        out
    }

    /// Decodes the proof at the start of the bytes. Like Core, ignores what follows it.
    pub(crate) fn decode(bytes: &[u8]) -> Result<MerkleBlock, ParseError> {
        let mut reader = Reader::new(bytes);
        let header = Header::read(&mut reader)?;
        let transactions = reader.u32()?;
        let count = reader.compact_size()?;
        let mut hashes = Vec::with_capacity(count.min(reader.remaining() / 32));
        for _ in 0..count {
            hashes.push(reader.array()?);
        }
        let bits = reader.var_bytes()?;
        let bits = bits.iter().flat_map(|byte| (0..8).map(move |place| byte >> place & 1 != 0)).collect();
        Ok(MerkleBlock { header, transactions, hashes, bits })
    }

    /// The merkle root, and the proven transactions in the order of the block; `None` if the proof is malformed.
    pub(crate) fn extract(&self) -> Option<([u8; 32], Vec<Txid>)> {
        let width = usize::try_from(self.transactions).ok()?;
        // Each hash has a bit, and each bit a node.
        if width == 0 || width > PROOF_TRANSACTIONS_MAX || self.hashes.len() > width {
            return None;
        }
        if self.bits.len() < self.hashes.len() {
            return None;
        }
        let mut walk = Walk { proof: self, width, bits_used: 0, hashes_used: 0, found: Vec::new() };
        let mut height = 0;
        while walk.width_at(height) > 1 {
            height += 1;
        }
        let root = walk.node(height, 0)?;
        let is_used =
            walk.bits_used.div_ceil(8) == self.bits.len().div_ceil(8) && walk.hashes_used == self.hashes.len();
        is_used.then_some((root, walk.found))
    }
}

/// A node of a whole tree.
#[derive(Clone, Copy)]
struct Node {
    hash: [u8; 32],
    /// Whether it is, or is above, a wanted transaction.
    is_ancestor: bool,
}

impl Node {
    /// The parent of two nodes; one without a sibling is its own.
    fn above(children: &[Node]) -> Node {
        let hash = match children {
            [left, right] => pair_hash(&left.hash, &right.hash),
            [only] => pair_hash(&only.hash, &only.hash),
            _ => [0; 32],
        };
        Node { hash, is_ancestor: children.iter().any(|child| child.is_ancestor) }
    }
}

fn pair_hash(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(left);
    both[32..].copy_from_slice(right);
    sha256d(&both)
}

/// A walk through a proof: Core's `TraverseAndExtract`.
struct Walk<'a> {
    proof: &'a MerkleBlock,
    width: usize,
    bits_used: usize,
    hashes_used: usize,
    found: Vec<Txid>,
}

impl Walk<'_> {
    /// Number of nodes at a height above the leaves.
    fn width_at(&self, height: u32) -> usize {
        self.width.div_ceil(1 << height)
    }

    /// The hash of a node. The recursion is as deep as the tree: 15 levels.
    fn node(&mut self, height: u32, position: usize) -> Option<[u8; 32]> {
        let is_ancestor = *self.proof.bits.get(self.bits_used)?;
        self.bits_used += 1;
        if height == 0 || !is_ancestor {
            let hash = *self.proof.hashes.get(self.hashes_used)?;
            self.hashes_used += 1;
            if height == 0 && is_ancestor {
                self.found.push(Txid(hash));
            }
            return Some(hash);
        }
        let left = self.node(height - 1, 2 * position)?;
        if 2 * position + 1 >= self.width_at(height - 1) {
            return Some(pair_hash(&left, &left));
        }
        let right = self.node(height - 1, 2 * position + 1)?;
        (left != right).then(|| pair_hash(&left, &right))
    }
}

#[cfg(test)]
#[path = "partial_merkle_tree_tests.rs"]
mod tests;
