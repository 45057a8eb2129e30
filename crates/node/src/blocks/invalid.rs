//! [`Invalid`]: the blocks that were found to be invalid since the start, each with the rule that it breaks.
//!
//! Input: events. Output: rows, with the sentence of `lydian explain`. A block that was marked by hand, or that broke a
//! rule before its transactions were looked at, comes as a mark first; its rule is asked for when it is shown.
//! Invariant: at most [`INVALID_MAX`].

use crate::limits::{INVALID_MAX, STATE_BYTES_MAX};
use lydian_consensus::Violation;
use lydian_primitives::BlockHash;
use std::collections::VecDeque;

/// An invalid block.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InvalidBlock {
    pub(crate) hash: BlockHash,
    pub(crate) height: u32,
    /// Seconds since 1970.
    pub(crate) time: u64,
    /// The rule, and Core's words (`BlockValidationState::ToString`).
    pub(crate) fault: Option<(Violation, String)>,
}

/// The latest invalid blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Invalid(VecDeque<InvalidBlock>);

impl Invalid {
    pub(crate) fn all(&self) -> Vec<InvalidBlock> {
        self.0.iter().cloned().collect()
    }

    /// The block breaks a rule.
    pub(crate) fn add_broken(&mut self, hash: BlockHash, height: u32, violation: &Violation, state: &str, now: u64) {
        let mut state = state.to_owned();
        while state.len() > STATE_BYTES_MAX {
            state.pop();
        }
        let fault = Some((*violation, state));
        match self.0.iter_mut().find(|known| known.hash == hash) {
            Some(known) => known.fault = fault,
            None => self.add(InvalidBlock { hash, height, time: now, fault }),
        }
    }

    /// The block was marked as invalid.
    pub(crate) fn add_marked(&mut self, hash: BlockHash, height: u32, now: u64) {
        if !self.0.iter().any(|known| known.hash == hash) {
            self.add(InvalidBlock { hash, height, time: now, fault: None });
        }
    }

    fn add(&mut self, block: InvalidBlock) {
        if self.0.len() == INVALID_MAX {
            self.0.pop_front();
        }
        self.0.push_back(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_consensus::Rule;

    fn hash(number: usize) -> BlockHash {
        let mut hash = BlockHash([0; 32]);
        hash.0[..8].copy_from_slice(&number.to_le_bytes());
        hash
    }

    /// limit: INVALID_MAX at
    /// limit: INVALID_MAX above
    #[test]
    fn a_block_is_listed_once_and_the_latest_are_kept() {
        let mut invalid = Invalid::default();
        let violation = Violation::of(Rule::BadCbAmount);
        invalid.add_marked(hash(0), 7, 50);
        invalid.add_broken(hash(0), 7, &violation, "bad-cb-amount", 60);
        invalid.add_marked(hash(0), 7, 70);
        let fault = Some((violation, "bad-cb-amount".to_owned()));
        assert_eq!(invalid.all(), [InvalidBlock { hash: hash(0), height: 7, time: 50, fault }]);
        (1..INVALID_MAX).for_each(|number| invalid.add_marked(hash(number), 8, 80));
        assert_eq!((invalid.all().len(), invalid.all()[0].hash), (INVALID_MAX, hash(0)));
        invalid.add_marked(hash(INVALID_MAX), 8, 90);
        assert_eq!((invalid.all().len(), invalid.all()[0].hash), (INVALID_MAX, hash(1)));
    }

    /// limit: STATE_BYTES_MAX at
    /// limit: STATE_BYTES_MAX above
    #[test]
    fn the_words_have_a_length() {
        let of = |words: &str| {
            let mut invalid = Invalid::default();
            invalid.add_broken(hash(0), 7, &Violation::of(Rule::BadCbAmount), words, 60);
            invalid.all()[0].fault.clone().map(|(_, words)| words.len())
        };
        assert_eq!(of(&"x".repeat(STATE_BYTES_MAX)), Some(STATE_BYTES_MAX));
        assert_eq!(of(&"x".repeat(STATE_BYTES_MAX + 1)), Some(STATE_BYTES_MAX));
        assert_eq!(of(&"\u{e4}".repeat(STATE_BYTES_MAX)), Some(STATE_BYTES_MAX));
    }
}
