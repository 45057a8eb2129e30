//! The positions of one table, and a bitmap of the taken ones for each network.
//!
//! Input: insertions and removals. Output: the entry at a position, and a random taken position.
//!
//! Core finds a taken position by drawing buckets until one is not empty. With few entries, that takes thousands of
//! draws for each entry, and as many again for each entry that is then rejected. Here, one bit per taken position shows
//! which buckets are not empty, and one of these is drawn. The probabilities are the same. Invariant: a bit is set
//! exactly if an entry of its network is at the position. Cost: one word per network for a change; one word per bucket
//! and network for the list of buckets.

use super::{BUCKET_SIZE, Id};
use crate::draw;
use lydian_wire::address::Network;
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;
use std::ops::Index;

// The positions of a bucket are the bits of one word.
const _: () = assert!(BUCKET_SIZE == u64::BITS as usize);

/// The positions of one table.
#[derive(Clone)]
pub(super) struct Places {
    ids: Vec<Option<Id>>,
    /// For each network, a bitmap per bucket of the positions with its entries.
    taken: BTreeMap<Network, Vec<u64>>,
}

impl Places {
    /// Creates this number of empty buckets.
    pub(super) fn new(buckets: usize) -> Places {
        Places { ids: vec![None; buckets * BUCKET_SIZE], taken: BTreeMap::new() }
    }

    /// Puts an entry of this network at a position and returns the previous entry.
    pub(super) fn put(&mut self, place: usize, id: Id, network: Network) -> Option<Id> {
        let old = self.take(place);
        let buckets = self.ids.len() / BUCKET_SIZE;
        let taken = self.taken.entry(network).or_insert_with(|| vec![0; buckets]);
        taken[place / BUCKET_SIZE] |= 1 << (place % BUCKET_SIZE);
        self.ids[place] = Some(id);
        old
    }

    /// Empties a position and returns its entry.
    pub(super) fn take(&mut self, place: usize) -> Option<Id> {
        let old = self.ids[place].take()?;
        for taken in self.taken.values_mut() {
            taken[place / BUCKET_SIZE] &= !(1 << (place % BUCKET_SIZE));
        }
        Some(old)
    }

    /// Returns all positions in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Option<Id>> {
        self.ids.iter()
    }

    /// Returns the positions of each bucket.
    pub(super) fn buckets(&self) -> impl Iterator<Item = &[Option<Id>]> {
        self.ids.chunks(BUCKET_SIZE)
    }

    /// Returns whether the bits are set exactly for the entries of their network.
    #[cfg(test)]
    pub(super) fn is_right(&self, network_of: impl Fn(Id) -> Option<Network>) -> bool {
        self.buckets().enumerate().all(|(bucket, ids)| {
            let mut expected: BTreeMap<Network, u64> = BTreeMap::new();
            let entries = ids.iter().enumerate().filter_map(|(position, id)| Some((position, (*id)?)));
            for (position, id) in entries {
                if let Some(network) = network_of(id) {
                    *expected.entry(network).or_default() |= 1 << position;
                }
            }
            let held = self.taken.iter().map(|(network, taken)| (network, taken[bucket]));
            held.filter(|(_, mask)| *mask != 0).eq(expected.iter().map(|(network, mask)| (network, *mask)))
        })
    }

    /// Returns the taken positions of these networks, or of all networks if the list is empty.
    pub(super) fn of(&self, networks: &[Network]) -> Taken {
        let of_networks = self.taken.iter().filter(|(network, _)| networks.is_empty() || networks.contains(network));
        let masks: Vec<_> = of_networks.map(|(_, taken)| taken).collect();
        let mask = |bucket: usize| masks.iter().fold(0, |all, taken| all | taken[bucket]);
        let buckets = (0..self.ids.len() / BUCKET_SIZE).map(|bucket| (bucket, mask(bucket)));
        Taken(buckets.filter(|(_, mask)| *mask != 0).collect())
    }
}

impl Index<usize> for Places {
    type Output = Option<Id>;

    fn index(&self, place: usize) -> &Option<Id> {
        &self.ids[place]
    }
}

/// Buckets that are not empty, with a bitmap of the taken positions.
pub(super) struct Taken(Vec<(usize, u64)>);

impl Taken {
    /// Returns the first taken position at or after a random position of a random bucket, with the same probabilities
    /// as in Core.
    pub(super) fn draw(&self, random: &mut ChaCha20Rng) -> Option<usize> {
        let (bucket, mask) = *self.0.get(draw::below(random, self.0.len()))?;
        let start = draw::below(random, BUCKET_SIZE);
        let turned = mask.rotate_right(u32::try_from(start).unwrap_or(0));
        let step = usize::try_from(turned.trailing_zeros()).unwrap_or(0);
        Some(bucket * BUCKET_SIZE + (start + step) % BUCKET_SIZE)
    }
}
