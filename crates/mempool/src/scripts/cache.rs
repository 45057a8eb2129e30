//! [`ScriptCache`]: the transactions whose scripts are known to succeed, for the blocks that have them.
//!
//! Input: wtxids of transactions that were verified under standard flags. Output: whether a transaction's scripts are
//! known to succeed under the flags of a block. Core's script execution cache (`CheckInputScripts`).
//!
//! A wtxid is the hash of everything that scripts depend on but the flags: of the transaction with its witnesses, and
//! (through the txids of its coins) of the outputs that it spends. A verdict under more flags holds under fewer, since
//! each flag is a soft fork (a test of the crate `script` tries it). The key is a salted hash, so the author of a
//! transaction cannot choose which others it displaces.
//!
//! Invariants: a cached verdict never makes anything invalid; at most [`ScriptCache::capacity`] verdicts are kept, and
//! each shard keeps the last half of its part. A verdict counts no longer once the kernel that gave it is distrusted.
//! Cost: one SHA-256 of two blocks and one lock of a shard for a lookup, about
//! 0.2 us; [`ENTRY_BYTES`] for each verdict.

use lydian_consensus::KnownScripts;
use lydian_curve::Refereed;
use lydian_hash::sha256;
use lydian_primitives::Wtxid;
use lydian_script::Flags;
use lydian_stdx::lock;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// Memory of one verdict: a key of 16 bytes, a control byte, and the free places of a table.
pub const ENTRY_BYTES: usize = 40;
const SHARDS: usize = 64;

/// Transactions whose scripts succeed under one set of flags. For use from any thread.
pub struct ScriptCache {
    salt: [u8; 32],
    flags: Flags,
    shard_max: usize,
    shards: Vec<Mutex<Shard>>,
    /// The engine that gives the verdicts, and whether it was trusted when it gave them.
    signatures: OnceLock<Arc<Refereed>>,
    was_trusted: AtomicBool,
}

/// Verdicts in two generations. When the young one is full, the old one is dropped.
#[derive(Default)]
struct Shard {
    young: Keys,
    old: Keys,
}

type Key = [u8; 16];
type Keys = HashSet<Key, BuildHasherDefault<KeyHasher>>;

/// A key is a hash already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut eight = [0; 8];
            eight[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(eight);
        }
    }

    fn write_usize(&mut self, _: usize) {}
}

impl ScriptCache {
    /// A cache of at most about `bytes`. `salt` must be secret; all verdicts are under `flags`.
    pub fn new(bytes: usize, flags: Flags, salt: [u8; 32]) -> ScriptCache {
        let shard_max = bytes / ENTRY_BYTES / SHARDS;
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        let (signatures, was_trusted) = (OnceLock::new(), AtomicBool::new(true));
        ScriptCache { salt, flags, shard_max, shards, signatures, was_trusted }
    }

    /// The verdicts come from these engines: when the kernel is distrusted, everything is forgotten.
    pub fn watch(&self, signatures: Arc<Refereed>) {
        // A node has one.
        let _ = self.signatures.set(signatures);
    }

    /// Forgets the verdicts of a kernel that was found to be wrong.
    fn forget_if_distrusted(&self) {
        let is_distrusted = self.signatures.get().is_some_and(|signatures| !signatures.is_trusted());
        if is_distrusted && self.was_trusted.swap(false, Ordering::Relaxed) {
            self.clear();
        }
    }

    /// The most verdicts that are kept.
    pub fn capacity(&self) -> usize {
        self.shard_max / 2 * 2 * SHARDS
    }

    /// The number of verdicts.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard)).map(|shard| shard.young.len() + shard.old.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Records that every input of a transaction succeeded under the cache's flags.
    pub fn insert(&self, wtxid: &Wtxid) {
        let half = self.shard_max / 2;
        if half == 0 {
            return;
        }
        let key = self.key(wtxid);
        let mut shard = lock(self.shard(&key));
        if shard.young.len() >= half && !shard.young.contains(&key) {
            shard.old = std::mem::take(&mut shard.young);
        }
        shard.young.insert(key);
    }

    /// Forgets everything, after a verdict turned out to be wrong.
    pub fn clear(&self) {
        for shard in &self.shards {
            *lock(shard) = Shard::default();
        }
    }

    fn key(&self, wtxid: &Wtxid) -> Key {
        let mut message = [0; 68];
        message[..32].copy_from_slice(&self.salt);
        message[32..64].copy_from_slice(&wtxid.0);
        message[64..].copy_from_slice(&self.flags.0.to_le_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&sha256(&message)[..16]);
        key
    }

    fn shard(&self, key: &Key) -> &Mutex<Shard> {
        &self.shards[usize::from(key[15]) % SHARDS]
    }
}

impl KnownScripts for ScriptCache {
    fn are_valid(&self, wtxid: &Wtxid, flags: Flags) -> bool {
        if !self.flags.contains(flags) {
            return false;
        }
        self.forget_if_distrusted();
        let key = self.key(wtxid);
        let shard = lock(self.shard(&key));
        shard.young.contains(&key) || shard.old.contains(&key)
    }
}

impl fmt::Debug for ScriptCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptCache").field("len", &self.len()).field("flags", &self.flags).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wtxid(number: u32) -> Wtxid {
        Wtxid(sha256(&number.to_le_bytes()))
    }

    /// checklist: 57
    #[test]
    fn a_verdict_counts_under_the_same_flags_and_fewer() {
        let cache = ScriptCache::new(1 << 20, Flags::MANDATORY, [1; 32]);
        assert!(cache.is_empty() && !cache.are_valid(&wtxid(1), Flags::MANDATORY));
        cache.insert(&wtxid(1));
        for flags in [Flags::MANDATORY, Flags::P2SH, Flags::NONE] {
            assert!(cache.are_valid(&wtxid(1), flags) && !cache.are_valid(&wtxid(2), flags));
        }
        assert!(!cache.are_valid(&wtxid(1), Flags::STANDARD) && !cache.are_valid(&wtxid(1), Flags::LOW_S));
        cache.clear();
        assert!(cache.is_empty() && !cache.are_valid(&wtxid(1), Flags::NONE));
    }

    /// A process cannot know which verdicts share a place in that of another one, and flags are part of the key.
    /// checklist: 57
    #[test]
    fn the_key_depends_on_the_salt_the_wtxid_and_the_flags() {
        let cache = |flags, salt| ScriptCache::new(1 << 20, flags, [salt; 32]);
        let keys = [
            cache(Flags::STANDARD, 1).key(&wtxid(1)),
            cache(Flags::STANDARD, 2).key(&wtxid(1)),
            cache(Flags::MANDATORY, 1).key(&wtxid(1)),
            cache(Flags::STANDARD, 1).key(&wtxid(2)),
        ];
        assert_eq!(keys.iter().collect::<std::collections::BTreeSet<_>>().len(), keys.len());
        assert_eq!(cache(Flags::STANDARD, 1).key(&wtxid(1)), keys[0]);
    }

    #[test]
    fn the_last_half_is_always_kept_and_no_more_than_all() {
        for bytes in [0, 1, ENTRY_BYTES * SHARDS * 2, ENTRY_BYTES * SHARDS * 100] {
            let cache = ScriptCache::new(bytes, Flags::STANDARD, [2; 32]);
            let capacity = cache.capacity();
            assert!(capacity * ENTRY_BYTES <= bytes);
            for number in 0..20_000 {
                cache.insert(&wtxid(number));
                cache.insert(&wtxid(number));
                assert!(cache.len() <= capacity);
                let is_kept = cache.are_valid(&wtxid(number), Flags::STANDARD);
                assert_eq!(is_kept, capacity > 0);
            }
            // The keys are spread by a hash, so a shard has somewhat more than its part of the last ones.
            let last = u32::try_from(capacity).unwrap() / 4;
            let is_kept = |number: &u32| cache.are_valid(&wtxid(*number), Flags::STANDARD);
            assert!((20_000 - last..20_000).filter(is_kept).count() * 10 / 9 >= capacity / 4, "{bytes}");
        }
    }
}
