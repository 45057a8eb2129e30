//! A long chain for a node with a `-minimumchainwork`.
//!
//! It has about nine thousand blocks, more than the second pass of a headers download buffers at once. Input: nothing.
//! Output: [`heavy`], always the same. Cost: a tenth of a second, once, and only if a seed needs it.

use crate::chain::{Chain, SPACING, params};
use crate::ground::NOW;
use lydian_consensus::{PlainValidator, U256};
use lydian_primitives::{Header, RawBlock};
use std::sync::{Arc, OnceLock};

/// Height of the chain.
pub const HEAVY_HEIGHT: u32 = 9_200;

/// Height of a chain with exactly the required work.
pub const ENOUGH_HEIGHT: u32 = 9_000;

/// Height at which [`Heavy::squeezed`] leaves the honest chain.
pub const SQUEEZED_FORK: u32 = 2_000;

/// A target with a work of 2^16, more than the whole honest chain has.
const SQUEEZED_BITS: u32 = 0x1f00_ffff;

/// Work of each block, including the genesis block.
const BLOCK_WORK: u64 = 2;

/// The long chains.
#[derive(Debug)]
pub struct Heavy {
    pub honest: Arc<Chain>,
    /// A chain that differs from the first block on, with enough work but less than the honest one.
    pub other: Arc<Chain>,
    /// Two headers messages on the genesis block. One header claims, and has, more work than is allowed at its height.
    pub squeezed: Vec<Header>,
    /// UTXO set hash of the honest chain.
    pub coins: [u8; 32],
}

/// Returns the long chains.
pub fn heavy() -> &'static Heavy {
    static HEAVY: OnceLock<Heavy> = OnceLock::new();
    HEAVY.get_or_init(Heavy::new)
}

/// The `-minimumchainwork` of the node.
pub fn minimum_chain_work() -> U256 {
    U256::from_u64(BLOCK_WORK * u64::from(ENOUGH_HEIGHT + 1))
}

impl Heavy {
    fn new() -> Heavy {
        let now = u32::try_from(NOW).unwrap();
        let base = Chain::beginning(now - (HEAVY_HEIGHT + 10) * SPACING);
        let honest = base.clone().extended_empty(HEAVY_HEIGHT, b"heavy");
        let other = base.extended_empty(ENOUGH_HEIGHT + 50, b"other");
        let mut validator = PlainValidator::new(params());
        for made in honest.blocks().skip(1) {
            let accepted = validator.accept_block(RawBlock::new(made.bytes.clone()).parse().unwrap(), now);
            assert!(accepted.is_ok_and(|accepted| accepted.is_active), "block {}", made.height);
        }
        let squeezed = squeezed(&honest);
        Heavy { squeezed, coins: validator.hash_serialized_3(), honest: Arc::new(honest), other: Arc::new(other) }
    }
}

fn squeezed(honest: &Chain) -> Vec<Header> {
    let mut headers: Vec<Header> = (1..=SQUEEZED_FORK).map(|height| honest.at(height).header).collect();
    for height in SQUEEZED_FORK + 1..=2 * SQUEEZED_FORK {
        let is_squeezed = height == SQUEEZED_FORK + 1;
        let mut header = honest.at(height).header;
        header.prev_block = headers.last().unwrap().hash();
        if is_squeezed {
            header.bits = SQUEEZED_BITS;
        }
        let is_enough = |hash: [u8; 32]| hash[31] < 0x7f && (!is_squeezed || hash[30..] == [0, 0]);
        while !is_enough(header.hash().0) {
            header.nonce += 1;
        }
        headers.push(header);
    }
    headers
}
