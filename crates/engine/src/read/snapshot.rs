//! [`ChainSnapshot`]: the settled block with its coins, as they were at one moment.
//!
//! Input: outpoints. Output: their coins at the snapshot's tip, whatever is connected or disconnected meanwhile. A
//! reader waits for no run, no flush and no checkpoint, and holds none of them back; it waits for single locks of a
//! partition, which a checkpoint holds for about a millisecond at a time.
//!
//! The store is seen through the changes since the snapshot ([`crate::chainstate::journal`]). They take memory, so a
//! snapshot that is held for long expires ([`crate::limits::JOURNAL_BYTES`]): take it for one request, and anew for the
//! next. Cost: a lookup in memory or one read from disk for each outpoint, sorted by place.

use crate::chainstate::journal::{Settled, StoredCoins};
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

/// The most keys that are looked up under one lock of a partition.
const KEYS_AT_ONCE: usize = 1_024;

/// How often [`Engine::coins_now`] tries: far longer than a block takes from its commit until it is settled.
const TRIES_MAX: usize = 10_000;

/// The settled block and its coins. Held by readers for as long as they need one consistent view, and released before
/// the engine's directories are opened again: it keeps their files open.
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

    /// The coins of outpoints, in their order, at the settled block, which is returned with them. Takes another
    /// snapshot if one expires at once, as while one of the two blocks of 2010 is connected that overwrote coins.
    pub fn coins_now(&self, outpoints: &[OutPoint]) -> Result<(Tip, Vec<Option<Coin>>), EngineError> {
        let mut tries = 0;
        loop {
            let snapshot = self.snapshot();
            tries += 1;
            match snapshot.coins(outpoints) {
                Err(EngineError::SnapshotExpired { .. }) if tries < TRIES_MAX => {
                    std::thread::yield_now();
                }
                coins => return Ok((snapshot.tip(), coins?)),
            }
        }
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

    /// Where each follower stood just after the snapshot was taken. Those in step have had the tip, unless they have
    /// just joined below it; a later block may have left them meanwhile. The others stand elsewhere.
    pub fn followers(&self) -> &[FollowerInfo] {
        &self.followers
    }

    /// The coins of outpoints, in their order; `None` for one that is spent or never existed.
    ///
    /// [`EngineError::SnapshotExpired`] if the snapshot was held for too long: the caller takes a new one.
    pub fn coins(&self, outpoints: &[OutPoint]) -> Result<Vec<Option<Coin>>, EngineError> {
        let chainstate = &self.shared.chainstate;
        let mut keys: [Vec<Key>; PARTITIONS] = Default::default();
        let mut indices: [Vec<usize>; PARTITIONS] = Default::default();
        for (index, outpoint) in outpoints.iter().enumerate() {
            let key = chainstate.active.coins.key(*outpoint);
            let partition = Coins::partition(&key);
            keys[partition].push(key);
            indices[partition].push(index);
        }
        let mut coins = Vec::with_capacity(PARTITIONS);
        for (partition, keys) in keys.iter().enumerate() {
            let mut found = Vec::with_capacity(keys.len());
            // Blocks are applied to the partition between two lookups.
            for some in keys.chunks(KEYS_AT_ONCE) {
                chainstate.active.coins.get(partition, some, &mut found)?;
            }
            coins.push(StoredCoins { partition, keys, found });
        }
        let coins = chainstate.active.journal.decide(self.settled.position, coins);
        let coins = coins.map_err(|_| EngineError::SnapshotExpired { hash: self.tip.hash, height: self.tip.height })?;
        let mut all = vec![None; outpoints.len()];
        for (coins, indices) in coins.into_iter().zip(indices) {
            for (coin, index) in coins.found.into_iter().zip(indices) {
                all[index] = coin;
            }
        }
        Ok(all)
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
