//! `-assumevalid`: whether a block's scripts may be skipped because the user vouches for a later block.
//!
//! Off by default. The conditions are those of Core's `ConnectBlock` (validation.cpp): the block is an ancestor of the
//! assumed block and of the best header, that header's chain has the minimum work, and the block is two weeks of work
//! below the best header, so that a recently made-up chain cannot use the shortcut. Every other rule is still checked.
//! Pure.

use lydian_chain::{HeaderId, HeaderTree};
use lydian_consensus::pow::block_proof;
use lydian_consensus::{Params, U256};
use lydian_primitives::BlockHash;

const TWO_WEEKS_S: u64 = 14 * 24 * 60 * 60;

/// The block that the user vouches for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AssumeValid {
    pub block: BlockHash,
    /// `-minimumchainwork`.
    pub minimum_chain_work: U256,
}

/// Whether the scripts of a block are assumed to be valid.
pub(crate) fn is_assumed_valid(tree: &HeaderTree, id: HeaderId, assumed: AssumeValid, params: &Params) -> bool {
    script_check_reason(tree, id, Some(assumed), params).is_none()
}

/// Why the scripts of a block are verified, in Core's words; `None` if they are assumed to be valid.
pub(crate) fn script_check_reason(
    tree: &HeaderTree,
    id: HeaderId,
    assumed: Option<AssumeValid>,
    params: &Params,
) -> Option<&'static str> {
    let Some(assumed) = assumed else { return Some("assumevalid=0 (always verify)") };
    let Some(top) = tree.find(&assumed.block) else { return Some("assumevalid hash not in headers") };
    let height = tree.height(id);
    let is_below = |top: HeaderId| tree.ancestor(top, height) == Some(id);
    if !is_below(top) {
        let is_above = height > tree.height(top);
        return Some(if is_above { "block height above assumevalid height" } else { "block not in assumevalid chain" });
    }
    let best = tree.best_header();
    let node = tree.node(best);
    if !is_below(best) {
        Some("block not in best header chain")
    } else if node.chain_work < assumed.minimum_chain_work {
        Some("best header chainwork below minimumchainwork")
    } else if equivalent_time_s(tree.node(id).chain_work, node.chain_work, node.header.bits, params) <= TWO_WEEKS_S {
        Some("block too recent relative to best header")
    } else {
        None
    }
}

/// The time, in seconds, that the work between two chains takes at the rate of the last block: Core's
/// `GetBlockProofEquivalentTime` (chain.cpp).
fn equivalent_time_s(from: U256, to: U256, bits: u32, params: &Params) -> u64 {
    let Some(work) = to.checked_sub(from) else { return 0 };
    let spacing_s = u32::try_from(params.pow_target_spacing).unwrap_or(u32::MAX);
    match work.wrapping_mul_u32(spacing_s).checked_div(block_proof(bits)) {
        Some(time) if time.bit_count() < 64 => time.low_u64(),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_consensus::Chain;
    use lydian_primitives::Header;

    /// A chain of regtest headers; each counts for two hashes and ten minutes.
    fn chain(blocks: u32) -> (HeaderTree, Vec<HeaderId>, Params) {
        let params = Params::new(Chain::Regtest);
        let mut tree = HeaderTree::new(&params);
        let mut ids = vec![tree.tip()];
        for height in 1..=blocks {
            let parent = tree.node(ids[ids.len() - 1]);
            let time = parent.header.time + 1;
            let mut header = Header { prev_block: parent.hash, time, nonce: 0, version: 4, ..parent.header };
            while !lydian_consensus::pow::is_proof_of_work(&header.hash(), header.bits, &params) {
                header.nonce += 1;
            }
            assert_eq!(parent.height.0 + 1, height);
            ids.push(tree.accept_header(&header, i64::from(time), &params).unwrap());
        }
        (tree, ids, params)
    }

    #[test]
    fn each_condition_counts() {
        // Two weeks of ten minutes are 2,016 blocks.
        let (tree, ids, params) = chain(2_100);
        let block = tree.node(ids[50]).hash;
        let assumed = AssumeValid { block, minimum_chain_work: U256::from_u64(0) };
        let is_assumed = |height: usize, assumed| is_assumed_valid(&tree, ids[height], assumed, &params);
        assert!(is_assumed(1, assumed) && is_assumed(50, assumed));
        assert!(!is_assumed(51, assumed), "above the assumed block");
        let later = AssumeValid { block: tree.node(ids[2_000]).hash, ..assumed };
        assert!(is_assumed(83, later), "2,017 blocks below the best header");
        assert!(!is_assumed(84, later), "two weeks and no longer");
        let unknown = AssumeValid { block: BlockHash([7; 32]), ..assumed };
        assert!(!is_assumed(1, unknown));
        let work = tree.node(ids[2_100]).chain_work;
        assert!(is_assumed(1, AssumeValid { minimum_chain_work: work, ..assumed }));
        let more = work.checked_add(U256::from_u64(1)).unwrap();
        assert!(!is_assumed(1, AssumeValid { minimum_chain_work: more, ..assumed }));
        let reason = |height: usize, assumed| script_check_reason(&tree, ids[height], assumed, &params);
        assert_eq!(reason(1, None), Some("assumevalid=0 (always verify)"));
        assert_eq!(reason(51, Some(assumed)), Some("block height above assumevalid height"));
        assert_eq!(reason(84, Some(later)), Some("block too recent relative to best header"));
        assert_eq!(reason(1, Some(unknown)), Some("assumevalid hash not in headers"));
        assert_eq!(reason(1, Some(assumed)), None);
    }
}
