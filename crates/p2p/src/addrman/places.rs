//! The places of one table, and which of them entries of each network have. Input: what is put where. Output: what is
//! there, and a random place that is taken.
//!
//! Core finds a taken place by drawing buckets until one is not empty. With few entries that takes thousands of draws
//! for each entry, and as many again for each entry that is then refused. Here a bit for each taken place names the
//! buckets that are not empty; one is drawn from those. The chances are the same. Invariant: a bit is set exactly where
//! an entry of its network is. Cost: a change one word a network; the list of buckets one word a bucket and network.

use super::{BUCKET_SIZE, Id};
use crate::draw;
use lydian_wire::address::Network;
use rand_chacha::ChaCha20Rng;
use std::collections::BTreeMap;
use std::ops::Index;

// A bucket's places are the bits of one word.
const _: () = assert!(BUCKET_SIZE == u64::BITS as usize);

/// The places of one table.
#[derive(Clone)]
pub(super) struct Places {
    ids: Vec<Option<Id>>,
    /// For each network, the places in each bucket that its entries have.
    taken: BTreeMap<Network, Vec<u64>>,
}

impl Places {
    /// So many buckets, all empty.
    pub(super) fn new(buckets: usize) -> Places {
        Places { ids: vec![None; buckets * BUCKET_SIZE], taken: BTreeMap::new() }
    }

    /// Puts an entry of this network into a place; gives what was there.
    pub(super) fn put(&mut self, place: usize, id: Id, network: Network) -> Option<Id> {
        let old = self.take(place);
        let buckets = self.ids.len() / BUCKET_SIZE;
        let taken = self.taken.entry(network).or_insert_with(|| vec![0; buckets]);
        taken[place / BUCKET_SIZE] |= 1 << (place % BUCKET_SIZE);
        self.ids[place] = Some(id);
        old
    }

    /// Empties a place; gives what was there.
    pub(super) fn take(&mut self, place: usize) -> Option<Id> {
        let old = self.ids[place].take()?;
        for taken in self.taken.values_mut() {
            taken[place / BUCKET_SIZE] &= !(1 << (place % BUCKET_SIZE));
        }
        Some(old)
    }

    /// All places in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Option<Id>> {
        self.ids.iter()
    }

    /// The places of each bucket.
    pub(super) fn buckets(&self) -> impl Iterator<Item = &[Option<Id>]> {
        self.ids.chunks(BUCKET_SIZE)
    }

    /// Whether a bit is set exactly where an entry of its network is.
    #[cfg(test)]
    pub(super) fn is_right(&self, network_of: impl Fn(Id) -> Option<Network>) -> bool {
        self.ids.iter().enumerate().all(|(place, id)| {
            let has = |taken: &Vec<u64>| taken[place / BUCKET_SIZE] >> (place % BUCKET_SIZE) & 1 == 1;
            let networks: Vec<_> =
                self.taken.iter().filter(|(_, taken)| has(taken)).map(|(network, _)| *network).collect();
            networks == Vec::from_iter(id.and_then(&network_of))
        })
    }

    /// The places of these networks, of all if there are none.
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

/// Buckets that are not empty, and the places in each.
pub(super) struct Taken(Vec<(usize, u64)>);

impl Taken {
    /// The first taken place at or after a random position of a random bucket, as Core draws it.
    pub(super) fn draw(&self, random: &mut ChaCha20Rng) -> Option<usize> {
        let (bucket, mask) = *self.0.get(draw::below(random, self.0.len()))?;
        let start = draw::below(random, BUCKET_SIZE);
        let turned = mask.rotate_right(u32::try_from(start).unwrap_or(0));
        let step = usize::try_from(turned.trailing_zeros()).unwrap_or(0);
        Some(bucket * BUCKET_SIZE + (start + step) % BUCKET_SIZE)
    }
}
