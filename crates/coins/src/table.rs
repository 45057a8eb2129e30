//! [`Table`]: the index of one shard. Input: entries. Output: the entries of a fingerprint.
//!
//! An array with gaps, sorted by fingerprint. The home of an entry is `fingerprint * homes / 2^29`. An entry is at its
//! home or after it without a gap in between, and the order is kept (linear probing with ordered entries). So a lookup
//! stops early, removal leaves no tombstones, growing is one pass that reads only the table, and a walk over the table
//! reads the segments in their own order. The load stays between 3/5 and 5/6 while a set grows: 9.6 to 13.4 bytes per
//! coin. Cost: one cache miss; on average 3 slots for a hit or miss and at most 18 slots for an insertion. It never
//! reads records: the caller distinguishes entries with equal fingerprints.

use crate::entry::{Entry, FINGERPRINT_BITS, index};
use lydian_disk::MemoryBlocks;

/// Slots after the last home, for entries that are pushed over the end; more are added when needed.
const TAIL: usize = 4;
const HOMES_MIN: u64 = 8;

#[derive(Debug, Default)]
pub(crate) struct Table {
    slots: Vec<Entry>,
    homes: u64,
    len: u64,
}

impl Table {
    /// An empty table with room for `len` entries, to be filled with [`Table::push`].
    pub(crate) fn with_capacity(len: u64) -> Table {
        let homes = len * 7 / 5 + HOMES_MIN;
        Table { slots: Vec::with_capacity(index(homes) + TAIL), homes, len: 0 }
    }

    /// Adds an entry to a table that is being filled, in any order. It can be used after [`Table::arrange`] only. The
    /// cost is that of a sequential write, where an insertion into a table that is not in the cache waits for memory.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry) {
        self.slots.push(entry);
    }

    /// Puts the entries that were pushed into their slots. The content of `scratch` is replaced.
    pub(crate) fn arrange(&mut self, scratch: &mut Vec<Entry>) {
        scratch.clear();
        scratch.append(&mut self.slots);
        scratch.sort_unstable_by_key(|entry| entry.bits());
        self.len = scratch.len() as u64;
        if self.len == 0 {
            *self = Table::default();
            return;
        }
        if self.len * 6 > self.homes * 5 {
            self.homes = self.len * 7 / 5 + HOMES_MIN;
        }
        self.slots.reserve_exact(index(self.homes) + TAIL);
        self.slots.resize(index(self.homes) + TAIL, Entry::EMPTY);
        self.place(scratch.drain(..));
    }

    pub(crate) fn add_block(&self, blocks: &mut MemoryBlocks) {
        blocks.add(self.slots.as_ptr(), self.slots.capacity());
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.slots.capacity() as u64 * 8
    }

    #[inline]
    fn home(&self, fingerprint: u32) -> usize {
        index((u64::from(fingerprint) * self.homes) >> FINGERPRINT_BITS)
    }

    /// Reads the home slot of a fingerprint to load it into the processor's cache.
    #[inline]
    pub(crate) fn touch(&self, fingerprint: u32) -> u64 {
        self.slots.get(self.home(fingerprint)).map_or(0, |entry| entry.bits())
    }

    /// The slot of the first entry with this fingerprint, if one exists; see [`Table::at`].
    #[inline]
    pub(crate) fn first(&self, fingerprint: u32) -> usize {
        let mut slot = self.home(fingerprint);
        while let Some(entry) = self.slots.get(slot)
            && !entry.is_empty()
            && entry.fingerprint() < fingerprint
        {
            slot += 1;
        }
        slot
    }

    /// The entry of a slot, if it has this fingerprint. Others with the same fingerprint follow without a gap.
    #[inline]
    pub(crate) fn at(&self, slot: usize, fingerprint: u32) -> Option<Entry> {
        self.slots.get(slot).copied().filter(|entry| !entry.is_empty() && entry.fingerprint() == fingerprint)
    }

    /// All slots, including empty ones.
    pub(crate) fn slots(&self) -> &[Entry] {
        &self.slots
    }

    /// Replaces the entry of a slot by one with the same fingerprint.
    pub(crate) fn replace(&mut self, slot: usize, entry: Entry) {
        debug_assert_eq!(self.slots[slot].fingerprint(), entry.fingerprint());
        self.slots[slot] = entry;
    }

    pub(crate) fn insert(&mut self, entry: Entry) {
        if (self.len + 1) * 6 > self.homes * 5 {
            self.resize((self.homes * 7 / 5).max(HOMES_MIN));
        }
        let fingerprint = entry.fingerprint();
        let mut slot = self.home(fingerprint);
        while let Some(other) = self.slots.get(slot)
            && !other.is_empty()
            && other.fingerprint() <= fingerprint
        {
            slot += 1;
        }
        let mut carried = entry;
        loop {
            match self.slots.get_mut(slot) {
                Some(place) => {
                    std::mem::swap(place, &mut carried);
                    if carried.is_empty() {
                        break;
                    }
                }
                None => {
                    self.slots.reserve_exact(TAIL);
                    self.slots.push(carried);
                    break;
                }
            }
            slot += 1;
        }
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, slot: usize) {
        let mut hole = slot;
        while let Some(next) = self.slots.get(hole + 1).copied()
            && !next.is_empty()
            && self.home(next.fingerprint()) <= hole
        {
            self.slots[hole] = next;
            hole += 1;
        }
        self.slots[hole] = Entry::EMPTY;
        self.len -= 1;
    }

    /// Shrinks a table that has lost most of its entries.
    pub(crate) fn shrink(&mut self) {
        if self.len * 5 < self.homes * 2 && self.homes > 4 * HOMES_MIN {
            self.resize(self.len * 3 / 2 + HOMES_MIN);
        }
    }

    fn resize(&mut self, homes: u64) {
        let mut slots = Vec::new();
        slots.reserve_exact(index(homes) + TAIL);
        slots.resize(index(homes) + TAIL, Entry::EMPTY);
        let old = std::mem::replace(&mut self.slots, slots);
        self.homes = homes;
        self.place(old.into_iter().filter(|entry| !entry.is_empty()));
    }

    /// Fills empty slots with ordered entries.
    fn place(&mut self, entries: impl Iterator<Item = Entry>) {
        let mut end = 0;
        for entry in entries {
            let slot = self.home(entry.fingerprint()).max(end);
            if slot >= self.slots.len() {
                self.slots.reserve_exact(TAIL);
                self.slots.resize(slot + 1, Entry::EMPTY);
            }
            self.slots[slot] = entry;
            end = slot + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Place;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn find(table: &Table, fingerprint: u32, unit: u64) -> Option<usize> {
        let mut slot = table.first(fingerprint);
        while let Some(entry) = table.at(slot, fingerprint) {
            if entry.place() == (Place::Disk { unit }) {
                return Some(slot);
            }
            slot += 1;
        }
        None
    }

    fn check(table: &Table, model: &BTreeMap<(u32, u64), ()>) {
        assert_eq!(table.len(), model.len() as u64);
        assert!(model.keys().all(|(fingerprint, unit)| find(table, *fingerprint, *unit).is_some()));
        let entries = || table.slots().iter().filter(|entry| !entry.is_empty());
        assert_eq!(entries().count(), model.len());
        assert!(entries().map(|entry| entry.fingerprint()).is_sorted());
    }

    proptest! {
        /// A few fingerprints near both ends of the range, so that they collide and overflow at the end.
        #[test]
        fn equal_to_a_map(steps in proptest::collection::vec((any::<bool>(), any::<bool>(), 0u32..40, 1u64..4), 0..400)) {
            let (mut table, mut model) = (Table::default(), BTreeMap::new());
            for (is_high, is_removal, low, unit) in steps {
                let fingerprint = if is_high { (1 << FINGERPRINT_BITS) - 1 - low } else { low * low * 4096 };
                if is_removal {
                    if let Some(slot) = find(&table, fingerprint, unit) {
                        table.remove(slot);
                    }
                    model.remove(&(fingerprint, unit));
                } else if model.insert((fingerprint, unit), ()).is_none() {
                    table.insert(Entry::disk(fingerprint, unit));
                }
                check(&table, &model);
            }
            table.shrink();
            check(&table, &model);
        }
    }

    /// In two cases there is less room than entries.
    #[test]
    fn filled_in_any_order() {
        for (room, len) in [(0, 0_u32), (5, 0), (0, 1), (10, 200), (1000, 1000), (90_000, 90_000)] {
            let mut model = BTreeMap::new();
            let mut table = Table::with_capacity(room);
            for number in 0..len {
                // Some are equal, many are at the end.
                let fingerprint = match number % 4 {
                    0 => (1 << FINGERPRINT_BITS) - 1 - number / 8 % 50,
                    _ => number.wrapping_mul(0x9e37_79b1) >> 3,
                };
                model.insert((fingerprint, 1 + u64::from(number)), ());
                table.push(Entry::disk(fingerprint, 1 + u64::from(number)));
            }
            table.arrange(&mut vec![Entry::disk(1, 1)]);
            assert!(len < 200 || table.memory_bytes() <= 16 * u64::from(len));
            check(&table, &model);
            table.insert(Entry::disk(7, 1 << 30));
            assert_eq!((table.len(), find(&table, 7, 1 << 30).is_some()), (u64::from(len) + 1, true));
        }
    }

    #[test]
    fn at_most_16_bytes_an_entry_while_it_grows() {
        let mut table = Table::default();
        for number in 0..100_000u32 {
            table.insert(Entry::disk(number.wrapping_mul(0x9e37_79b1) >> 3, 1));
            assert!(number < 100 || table.memory_bytes() <= 16 * u64::from(number + 1), "{number}");
        }
    }
}
