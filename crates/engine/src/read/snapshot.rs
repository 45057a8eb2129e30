//! [`ChainSnapshot`]: the settled block with its coins, as they were at one moment.
//!
//! Input: outpoints. Output: their coins at the snapshot's tip, whatever is connected or disconnected meanwhile. A
//! reader waits for no run, no flush and no checkpoint, and holds none of them back; it waits for single locks of a
//! partition, which a checkpoint holds for about a millisecond at a time.
//!
//! The store is seen through the changes since the snapshot ([`crate::chainstate::journal`]). They take memory, so a
//! snapshot that is held for long expires ([`crate::limits::JOURNAL_BYTES`]): take it for one request, and anew for the
//! next. Cost: a lookup in memory or one read from disk for each outpoint, sorted by place.

use crate::chainstate::journal::{Settled, Wanted, decide};
use crate::chainstate::shared::EngineShared;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::read::followers::FollowerInfo;
use lydian_chain::HeaderId;
use lydian_coins::{Coins, Key, PARTITIONS, Tip};
use lydian_consensus::Coin;
use lydian_primitives::OutPoint;
use std::fmt;
use std::sync::Arc;

/// The settled block and its coins. Held by readers for as long as they need one consistent view.
pub struct ChainSnapshot {
    shared: Arc<EngineShared>,
    settled: Settled<HeaderId>,
    tip: Tip,
    followers: Vec<FollowerInfo>,
}

impl Engine {
    /// Takes a snapshot at the settled block.
    pub fn snapshot(&self) -> ChainSnapshot {
        let chainstate = self.chainstate();
        let settled = chainstate.active.journal.hold();
        let tip = {
            let tree = chainstate.tree();
            Tip { height: tree.height(settled.id), hash: *tree.hash(settled.id) }
        };
        let shared = Arc::clone(&self.shared);
        // After the block was settled, so that every follower in step has it.
        ChainSnapshot { shared, settled, tip, followers: self.followers() }
    }
}

impl ChainSnapshot {
    pub fn tip(&self) -> Tip {
        self.tip
    }

    /// The number of moves of the settled block before it, as in [`crate::Event::Settled`].
    pub fn sequence(&self) -> u64 {
        self.settled.sequence
    }

    /// Where each follower stood when the snapshot was taken. Those in step had the tip; the others stood elsewhere.
    pub fn followers(&self) -> &[FollowerInfo] {
        &self.followers
    }

    /// The coins of outpoints, in their order; `None` for one that is spent or never existed.
    ///
    /// [`EngineError::SnapshotExpired`] if the snapshot was held for too long: the caller takes a new one.
    pub fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>, EngineError> {
        let chainstate = &self.shared.chainstate;
        let mut parts: [(Vec<Key>, Vec<usize>); PARTITIONS] = Default::default();
        for (index, outpoint) in outpoints.iter().enumerate() {
            let key = chainstate.active.coins.key(*outpoint);
            let (keys, indices) = &mut parts[Coins::partition(&key)];
            keys.push(key);
            indices.push(index);
        }
        let mut found: [Vec<Option<Coin>>; PARTITIONS] = Default::default();
        for (partition, (keys, _)) in parts.iter().enumerate().filter(|(_, (keys, _))| !keys.is_empty()) {
            found[partition].reserve_exact(keys.len());
            chainstate.active.coins.get(partition, keys, &mut found[partition])?;
        }
        // After the store: see the journal.
        let changes = chainstate.active.journal.since(self.settled.position);
        let changes =
            changes.map_err(|_| EngineError::SnapshotExpired { hash: self.tip.hash, height: self.tip.height })?;
        let mut all = vec![None; outpoints.len()];
        for (partition, ((keys, indices), mut found)) in parts.iter().zip(found).enumerate() {
            if !changes.is_empty() {
                decide(&changes, partition, &mut Wanted::new(keys, &mut found));
            }
            for (index, coin) in indices.iter().zip(found) {
                all[*index] = coin;
            }
        }
        Ok(all)
    }

    /// Whether it can still be read.
    pub fn is_expired(&self) -> bool {
        self.shared.chainstate.active.journal.check(self.settled.position).is_err()
    }
}

impl Drop for ChainSnapshot {
    fn drop(&mut self) {
        self.shared.chainstate.active.journal.release(self.settled.position);
    }
}

impl fmt::Debug for ChainSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainSnapshot").field("settled", &self.settled).field("tip", &self.tip).finish_non_exhaustive()
    }
}
