//! Which connected block is a new tip: Core's `UpdatedBlockTip`.
//!
//! Core announces each block that extends the tip. In a reorganisation it announces only the first block with more work
//! than the tip that was left, and then each block after it; if it returns to the old tip because the new branch is
//! invalid, none. A block with exactly the old tip's work is announced if the branch ends there (`preciousblock`).
//! Blocks disconnected by hand (`invalidateblock`) set the measure back: the next block counts from there.
//!
//! Input: the announced reorganisations, the blocks that leave and join. Output: whether a block is a new tip. Work is
//! compared relative to the fork, so no absolute chain work is needed. Cost: one division for each block.

use lydian_consensus::U256;
use lydian_consensus::pow::block_proof;
use lydian_primitives::BlockHash;

/// The blocks of the current reorganisation.
#[derive(Debug, Default)]
pub(crate) struct TipRule {
    /// Work that the new branch lacks to reach the tip that was left.
    lacking: U256,
    /// The tip that was left.
    left: Option<BlockHash>,
    /// The end of the new branch.
    target: Option<BlockHash>,
    /// Blocks that the announced reorganisation still disconnects.
    to_disconnect: u32,
}

impl TipRule {
    /// `count` blocks leave the chain because the branch that ends at `target` is better.
    pub(crate) fn reorganises(&mut self, count: u32, target: BlockHash) {
        (self.to_disconnect, self.target) = (count, Some(target));
    }

    /// The block left the chain.
    pub(crate) fn disconnected(&mut self, hash: BlockHash, bits: u32) {
        if self.to_disconnect == 0 {
            *self = TipRule::default();
            return;
        }
        self.to_disconnect -= 1;
        self.left = self.left.or(Some(hash));
        // The work of a whole chain is below 2^256.
        self.lacking = self.lacking.checked_add(block_proof(bits)).unwrap_or(self.lacking);
    }

    /// The block joined the chain. Returns whether it is a new tip.
    pub(crate) fn connected(&mut self, hash: BlockHash, bits: u32) -> bool {
        let work = block_proof(bits);
        let is_tip = if self.lacking == U256::ZERO || work > self.lacking {
            true
        } else {
            self.lacking = self.lacking.checked_sub(work).unwrap_or(U256::ZERO);
            let is_level = self.lacking == U256::ZERO;
            if is_level && self.left == Some(hash) {
                // Back where the reorganisation began.
                *self = TipRule::default();
                return false;
            }
            is_level && self.target == Some(hash)
        };
        if is_tip {
            *self = TipRule::default();
        }
        is_tip
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BITS: u32 = 0x207f_ffff;

    fn hash(name: u8) -> BlockHash {
        BlockHash([name; 32])
    }

    /// The names of the blocks that are new tips. `-x` disconnects, `+x` connects, `>nx` announces a reorganisation of
    /// n blocks to x.
    fn tips(story: &str) -> String {
        let mut rule = TipRule::default();
        let mut found = String::new();
        for word in story.split(' ') {
            let name = word.as_bytes()[word.len() - 1];
            match word.as_bytes()[0] {
                b'+' if rule.connected(hash(name), BITS) => found.push(char::from(name)),
                b'+' => {}
                b'-' => rule.disconnected(hash(name), BITS),
                b'>' => rule.reorganises(u32::from(word.as_bytes()[1] - b'0'), hash(name)),
                other => panic!("{other}"),
            }
        }
        found
    }

    #[test]
    fn each_block_that_extends_the_tip_is_one() {
        assert_eq!(tips("+a +b +c"), "abc");
    }

    #[test]
    fn in_a_reorganisation_the_first_with_more_work_is_one() {
        assert_eq!(tips("+a +b >2z -b -a +w +x +y +z"), "abyz");
        assert_eq!(tips("+a >1y -a +x +y"), "ay");
    }

    /// A new branch that turns out to be invalid: nothing changed in the end.
    #[test]
    fn the_old_tip_is_not_announced_again() {
        assert_eq!(tips("+a +b >2z -b -a +w >1b -w +a +b +c"), "abc");
        // Both branches have the same work when the invalid block is found.
        assert_eq!(tips("+a +b >2z -b -a +w +x >2b -x -w +a +b"), "ab");
    }

    /// `preciousblock` of a block with the same work.
    #[test]
    fn the_end_of_a_branch_with_equal_work_is_one() {
        assert_eq!(tips("+a +b >2x -b -a +w +x +y"), "abxy");
    }

    #[test]
    fn blocks_disconnected_by_hand_count_no_more() {
        assert_eq!(tips("+a +b -b -a +x"), "abx");
        // A reorganisation was announced and did not get as far as it was to.
        assert_eq!(tips("+a +b >2z -b -a +w -w +v"), "abv");
    }
}
