//! [`SentBlocks`]: which peer sent each of the latest blocks first, and how, for a display.
//!
//! Input: blocks that were stored, and further copies of them, from the manager's thread. Output: what changed since a
//! reader's last look. Nothing is kept until a reader asks for it ([`SentBlocks::keep`]). Invariants: at most
//! [`SENT_BLOCKS_MAX`] blocks, then the oldest is forgotten; a user agent is a peer's text, without control characters
//! and of at most 256 bytes, as its `version` has it. Decides nothing. Cost: a lock and two short texts for each block.

use crate::limits::{SENT_BLOCKS_MAX, SENT_BLOCKS_SEARCHED};
use crate::peer::PeerId;
use lydian_primitives::BlockHash;
use lydian_stdx::lock;
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A block that a peer sent, and that was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentBlock {
    pub hash: BlockHash,
    pub peer: PeerId,
    /// The peer's address, or the name that the operator gave it.
    pub name: String,
    pub user_agent: String,
    /// The transactions that were missing in its compact block. `None` for a whole block.
    pub missing: Option<u32>,
    /// From the request to the last byte. `None` if it was not requested.
    pub download: Option<Duration>,
    /// Further copies that arrived, from any peer, whole or compact.
    pub extra: u32,
}

/// The latest blocks.
#[derive(Debug, Default)]
pub struct SentBlocks {
    is_on: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The latest last, each with the number of its last change.
    blocks: VecDeque<(u64, SentBlock)>,
    changes: u64,
}

impl SentBlocks {
    /// From now on, blocks are kept.
    pub fn keep(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, block: SentBlock) {
        if !self.is_on() {
            return;
        }
        let mut state = lock(&self.state);
        state.changes += 1;
        let number = state.changes;
        if state.blocks.len() == SENT_BLOCKS_MAX {
            state.blocks.pop_front();
        }
        state.blocks.push_back((number, block));
    }

    /// Another copy of a block arrived.
    pub(crate) fn add_copy(&self, hash: &BlockHash) {
        if !self.is_on() {
            return;
        }
        let mut state = lock(&self.state);
        let number = state.changes + 1;
        let found = state.blocks.iter_mut().rev().take(SENT_BLOCKS_SEARCHED).find(|(_, block)| block.hash == *hash);
        if let Some((changed, block)) = found {
            block.extra = block.extra.saturating_add(1);
            *changed = number;
            state.changes = number;
        }
    }

    /// The blocks that changed after the first `seen` changes, and the number of changes so far.
    pub fn since(&self, seen: u64) -> (u64, Vec<SentBlock>) {
        let state = lock(&self.state);
        if state.changes == seen {
            return (seen, Vec::new());
        }
        let changed = state.blocks.iter().filter(|(number, _)| *number > seen);
        (state.changes, changed.map(|(_, block)| block.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: usize) -> SentBlock {
        let mut hash = BlockHash([0; 32]);
        hash.0[..8].copy_from_slice(&number.to_le_bytes());
        let (name, user_agent) = ("127.0.0.1:1".to_owned(), "/peer/".to_owned());
        SentBlock { hash, peer: PeerId(7), name, user_agent, missing: Some(2), download: None, extra: 0 }
    }

    fn hashes(sent: &SentBlocks, seen: u64) -> Vec<BlockHash> {
        sent.since(seen).1.into_iter().map(|block| block.hash).collect()
    }

    /// limit: SENT_BLOCKS_MAX at
    /// limit: SENT_BLOCKS_MAX above
    #[test]
    fn the_latest_are_kept() {
        let sent = SentBlocks::default();
        sent.add(block(0));
        assert_eq!(sent.since(0), (0, Vec::new()), "no one asked for it");
        sent.keep();
        (0..SENT_BLOCKS_MAX).for_each(|number| sent.add(block(number)));
        assert_eq!(hashes(&sent, 0).len(), SENT_BLOCKS_MAX);
        assert_eq!(hashes(&sent, 0)[0], block(0).hash);
        sent.add(block(SENT_BLOCKS_MAX));
        assert_eq!((hashes(&sent, 0).len(), hashes(&sent, 0)[0]), (SENT_BLOCKS_MAX, block(1).hash));
        let (seen, _) = sent.since(0);
        assert_eq!(sent.since(seen), (seen, Vec::new()));
        assert_eq!(hashes(&sent, seen - 2), [block(SENT_BLOCKS_MAX - 1).hash, block(SENT_BLOCKS_MAX).hash]);
    }

    /// limit: SENT_BLOCKS_SEARCHED at
    /// limit: SENT_BLOCKS_SEARCHED above
    #[test]
    fn copies_of_the_last_ones_are_counted() {
        let sent = SentBlocks::default();
        sent.keep();
        (0..=SENT_BLOCKS_SEARCHED).for_each(|number| sent.add(block(number)));
        let (seen, _) = sent.since(0);
        sent.add_copy(&block(0).hash);
        assert_eq!(sent.since(seen), (seen, Vec::new()), "too long ago");
        sent.add_copy(&block(1).hash);
        sent.add_copy(&block(1).hash);
        assert_eq!(sent.since(seen), (seen + 2, vec![SentBlock { extra: 2, ..block(1) }]));
    }
}
