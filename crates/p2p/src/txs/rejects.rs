//! Transactions that are not downloaded again: recently rejected, rejected on their own, recently confirmed.
//!
//! Bitcoin Core's `m_lazy_recent_rejects`, `m_lazy_recent_rejects_reconsiderable` and
//! `m_lazy_recent_confirmed_transactions` (node/txdownloadman_impl.h). Input: ids of transactions, hashes of packages.
//! Output: whether one was added recently.
//!
//! Each set is a rolling bloom filter, as in Core: it forgets the oldest entries, so a flood of rejects cannot make
//! room for more than a repeated download, and it takes 11 bytes per entry where an exact set would take over 50. One
//! query in a million finds an id that was never added; such a transaction is not downloaded until the next block, so
//! no peer is punished for an id that was found here. Memory: [`REJECTS_MAX`] entries twice and [`CONFIRMED_MAX`] once
//! take 3.1 MB; a filter is created when its first entry is added. Cost: 20 hashes per query.

use crate::discourage::RollingBloomFilter;
use crate::limits::{CONFIRMED_MAX, REJECTS_MAX};
use rand_chacha::ChaCha20Rng;

/// The share of ids that are found although they were never added.
const FALSE_POSITIVE_RATE: f64 = 0.000_001;

/// The three sets.
#[derive(Debug)]
pub struct Rejects {
    /// Transactions that no other transaction can make acceptable. By wtxid; by txid only if no witness can help.
    rejected: RecentSet,
    /// Transactions that may be accepted in a package, by wtxid, and packages that were rejected, by their hash.
    reconsiderable: RecentSet,
    /// Transactions in the last blocks, by txid and by wtxid.
    confirmed: RecentSet,
}

impl Default for Rejects {
    fn default() -> Rejects {
        Rejects {
            rejected: RecentSet::new(REJECTS_MAX),
            reconsiderable: RecentSet::new(REJECTS_MAX),
            confirmed: RecentSet::new(CONFIRMED_MAX),
        }
    }
}

impl Rejects {
    pub fn is_rejected(&self, hash: &[u8; 32]) -> bool {
        self.rejected.contains(hash)
    }

    pub fn is_reconsiderable(&self, hash: &[u8; 32]) -> bool {
        self.reconsiderable.contains(hash)
    }

    pub fn is_confirmed(&self, hash: &[u8; 32]) -> bool {
        self.confirmed.contains(hash)
    }

    pub fn add_rejected(&mut self, hash: &[u8; 32], random: &mut ChaCha20Rng) {
        self.rejected.insert(hash, random);
    }

    /// Adds a wtxid, or a [`package_hash`](lydian_mempool::policy::package_hash).
    pub fn add_reconsiderable(&mut self, hash: &[u8; 32], random: &mut ChaCha20Rng) {
        self.reconsiderable.insert(hash, random);
    }

    pub fn add_confirmed(&mut self, hash: &[u8; 32], random: &mut ChaCha20Rng) {
        self.confirmed.insert(hash, random);
    }

    /// The tip changed: what was rejected may be valid now.
    pub fn forget_rejected(&mut self, random: &mut ChaCha20Rng) {
        self.rejected.reset(random);
        self.reconsiderable.reset(random);
    }

    /// A block was disconnected: what was confirmed may have to be downloaded again.
    pub fn forget_confirmed(&mut self, random: &mut ChaCha20Rng) {
        self.confirmed.reset(random);
    }
}

/// A [`RollingBloomFilter`] that is created when it is needed.
#[derive(Debug)]
pub(super) struct RecentSet {
    size: u32,
    filter: Option<RollingBloomFilter>,
}

impl RecentSet {
    pub(super) fn new(size: u32) -> RecentSet {
        RecentSet { size, filter: None }
    }

    pub(super) fn insert(&mut self, hash: &[u8; 32], random: &mut ChaCha20Rng) {
        let create = || RollingBloomFilter::new(self.size, FALSE_POSITIVE_RATE, random);
        self.filter.get_or_insert_with(create).insert(hash);
    }

    pub(super) fn contains(&self, hash: &[u8; 32]) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.contains(hash))
    }

    fn reset(&mut self, random: &mut ChaCha20Rng) {
        if let Some(filter) = &mut self.filter {
            filter.reset(random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_hash::sha256;
    use rand_chacha::rand_core::SeedableRng;

    fn hash(number: u32) -> [u8; 32] {
        sha256(&number.to_le_bytes())
    }

    /// limit: REJECTS_MAX at
    /// limit: REJECTS_MAX above
    /// limit: CONFIRMED_MAX at
    /// limit: CONFIRMED_MAX above
    #[test]
    fn the_newest_entries_are_found_and_the_oldest_forgotten() {
        let random = &mut ChaCha20Rng::seed_from_u64(1);
        for size in [REJECTS_MAX, CONFIRMED_MAX] {
            let mut set = RecentSet::new(size);
            assert!(!set.contains(&hash(0)));
            (0..size).for_each(|number| set.insert(&hash(number), random));
            assert!((0..size).all(|number| set.contains(&hash(number))), "at the limit, all are found");
            (size..3 * size).for_each(|number| set.insert(&hash(number), random));
            assert!((2 * size..3 * size).all(|number| set.contains(&hash(number))));
            let remembered = (0..size).filter(|number| set.contains(&hash(*number))).count();
            assert!(remembered < 10, "{remembered} entries remain of those that should be forgotten");
            set.reset(random);
            assert!(!set.contains(&hash(3 * size - 1)));
        }
    }

    #[test]
    fn each_event_forgets_its_own_sets() {
        let random = &mut ChaCha20Rng::seed_from_u64(1);
        let mut rejects = Rejects::default();
        rejects.add_rejected(&hash(1), random);
        rejects.add_reconsiderable(&hash(2), random);
        rejects.add_confirmed(&hash(3), random);
        let found = |rejects: &Rejects, number| {
            let hash = hash(number);
            [rejects.is_rejected(&hash), rejects.is_reconsiderable(&hash), rejects.is_confirmed(&hash)]
        };
        assert_eq!(
            [1, 2, 3].map(|number| found(&rejects, number)),
            [[true, false, false], [false, true, false], [false, false, true]]
        );
        rejects.forget_rejected(random);
        assert_eq!([1, 2, 3].map(|number| found(&rejects, number)), [[false; 3], [false; 3], [false, false, true]]);
        rejects.forget_confirmed(random);
        assert_eq!(found(&rejects, 3), [false; 3]);
    }
}
