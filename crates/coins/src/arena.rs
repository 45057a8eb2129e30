//! [`Arena`]: the records of coins in memory.
//!
//! Input: sizes. Output: addresses, and the bytes at them. Slots of one size class are in chunks of 64 KiB. A chunk has
//! a bit for each free slot and is freed when no slot is in use. Classes step by 8 bytes up to 256 and by an eighth
//! beyond, so a record of 70 bytes takes 72. A record larger than a chunk has a chunk of its own. Cost: allocation and
//! release touch the chunk's bits (3 bytes per kilobyte, in the cache), not the slot. Addresses are stable: a record is
//! never moved. The arena knows nothing about coins.

use crate::entry::{ADDRESSES_MAX, index};
use lydian_disk::MemoryBlocks;

const UNIT: usize = 8;
/// Size of a chunk in units.
const CHUNK: usize = 8192;
const CHUNK_BITS: u32 = CHUNK.trailing_zeros();
/// Up to this number of units every number has a class.
const FINE: usize = 32;

#[derive(Debug, Default)]
pub(crate) struct Arena {
    chunks: Vec<Chunk>,
    /// Chunks without a class.
    free: Vec<u32>,
    /// For each class, the chunks that may have a free slot.
    open: Vec<Vec<u32>>,
    /// Bytes of all chunks with memory.
    memory_bytes: u64,
}

#[derive(Debug)]
struct Chunk {
    data: Box<[u8]>,
    /// Size of a slot in units; 0 if the chunk is free.
    slot: u32,
    live: u32,
    /// A bit for each free slot.
    free: Box<[u64]>,
    /// Words of `free` before this index are zero.
    hint: usize,
}

impl Arena {
    /// Allocates a slot of at least `size` bytes with arbitrary content. Returns `None` if no addresses are left.
    pub(crate) fn allocate(&mut self, size: usize) -> Option<u32> {
        let slot = slot_units(size);
        if slot > CHUNK {
            let number = self.chunk(slot, slot)?;
            self.chunks[index(u64::from(number))].live = 1;
            return Some(number << CHUNK_BITS);
        }
        let class = class_of(slot);
        if self.open.len() <= class {
            self.open.resize(class + 1, Vec::new());
        }
        let slot = u32::try_from(slot).ok()?;
        while let Some(number) = self.open[class].last().copied() {
            let chunk = &mut self.chunks[index(u64::from(number))];
            // A listed chunk may have been freed in the meantime, and may be listed twice.
            if chunk.slot == slot
                && let Some(place) = chunk.take()
            {
                return Some((number << CHUNK_BITS) + place * slot);
            }
            self.open[class].pop();
        }
        let number = self.chunk(index(u64::from(slot)), CHUNK)?;
        self.open[class].push(number);
        let place = self.chunks[index(u64::from(number))].take()?;
        Some((number << CHUNK_BITS) + place * slot)
    }

    pub(crate) fn release(&mut self, address: u32) {
        let (number, offset) = split(address);
        let chunk = &mut self.chunks[number];
        chunk.live -= 1;
        let number = address >> CHUNK_BITS;
        if chunk.live == 0 {
            if chunk.data.len() > CHUNK * UNIT {
                self.memory_bytes -= chunk.data.len() as u64;
                chunk.data = Box::default();
            }
            chunk.slot = 0;
            self.free.push(number);
            return;
        }
        let place = offset / UNIT / index(u64::from(chunk.slot));
        let was_full = chunk.hint == chunk.free.len();
        chunk.free[place / 64] |= 1 << (place % 64);
        chunk.hint = chunk.hint.min(place / 64);
        if was_full {
            self.open[class_of(index(u64::from(chunk.slot)))].push(number);
        }
    }

    /// The bytes of the whole slot.
    #[inline]
    pub(crate) fn bytes(&self, address: u32) -> &[u8] {
        let (number, offset) = split(address);
        let chunk = &self.chunks[number];
        &chunk.data[offset..offset + index(u64::from(chunk.slot)) * UNIT]
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self, address: u32) -> &mut [u8] {
        let (number, offset) = split(address);
        let chunk = &mut self.chunks[number];
        &mut chunk.data[offset..offset + index(u64::from(chunk.slot)) * UNIT]
    }

    /// Reads the slot to load it into the processor's cache.
    #[inline]
    pub(crate) fn touch(&self, address: u32) -> u64 {
        let (number, offset) = split(address);
        let Some(chunk) = self.chunks.get(number) else { return 0 };
        // A typical record spans two cache lines.
        let byte = |offset: usize| chunk.data.get(offset).map_or(0, |byte| u64::from(*byte));
        byte(offset) ^ byte(offset + 64)
    }

    /// Size of a slot in bytes.
    #[inline]
    pub(crate) fn slot_bytes(&self, address: u32) -> u64 {
        u64::from(self.chunks[split(address).0].slot) * UNIT as u64
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes + self.chunks.capacity() as u64 * size_of::<Chunk>() as u64
    }

    /// Adds the memory of all chunks.
    pub(crate) fn add_blocks(&self, blocks: &mut MemoryBlocks) {
        self.chunks.iter().for_each(|chunk| blocks.add(chunk.data.as_ptr(), chunk.data.len()));
    }

    /// Frees the memory of at most `count` free chunks, from number `start` of the free ones. Returns whether more
    /// follow.
    pub(crate) fn trim(&mut self, start: usize, count: usize) -> bool {
        for number in self.free.iter().skip(start).take(count) {
            let chunk = &mut self.chunks[index(u64::from(*number))];
            self.memory_bytes -= chunk.data.len() as u64;
            chunk.data = Box::default();
        }
        self.free.len() > start + count
    }

    /// Takes a chunk of `size` units for slots of `slot` units.
    fn chunk(&mut self, slot: usize, size: usize) -> Option<u32> {
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.chunks.len()).ok().filter(|n| *n < ADDRESSES_MAX >> CHUNK_BITS)?;
                self.chunks.push(Chunk { data: Box::default(), slot: 0, live: 0, free: Box::default(), hint: 0 });
                number
            }
        };
        let chunk = &mut self.chunks[index(u64::from(number))];
        if chunk.data.len() != size * UNIT {
            self.memory_bytes -= chunk.data.len() as u64;
            chunk.data = vec![0; size * UNIT].into_boxed_slice();
            self.memory_bytes += chunk.data.len() as u64;
        }
        (chunk.slot, chunk.live, chunk.hint) = (u32::try_from(slot).ok()?, 0, 0);
        let count = size / slot;
        chunk.free = vec![u64::MAX; count.div_ceil(64)].into_boxed_slice();
        if !count.is_multiple_of(64) {
            chunk.free[count / 64] = (1 << (count % 64)) - 1;
        }
        Some(number)
    }
}

impl Chunk {
    /// Takes the lowest free slot.
    fn take(&mut self) -> Option<u32> {
        while let Some(word) = self.free.get_mut(self.hint) {
            if *word != 0 {
                let bit = word.trailing_zeros();
                *word &= *word - 1;
                self.live += 1;
                return Some(u32::try_from(self.hint * 64).ok()? + bit);
            }
            self.hint += 1;
        }
        None
    }
}

#[inline]
fn split(address: u32) -> (usize, usize) {
    (index(u64::from(address >> CHUNK_BITS)), index(u64::from(address & ((1 << CHUNK_BITS) - 1))) * UNIT)
}

/// Size in units of the slot for `size` bytes: exact up to [`FINE`], then rounded up such that at most an eighth is
/// wasted.
fn slot_units(size: usize) -> usize {
    let units = size.div_ceil(UNIT).max(1);
    if units <= FINE || units > CHUNK {
        return units;
    }
    let step = 1 << (units.ilog2() - 3);
    units.next_multiple_of(step).min(CHUNK)
}

/// The number of the class for slots of this many units.
fn class_of(slot: usize) -> usize {
    if slot <= FINE {
        return slot;
    }
    let log = slot.ilog2();
    FINE + index(u64::from(log - FINE.ilog2())) * 8 + (slot >> (log - 3)) - 7
}

/// Size in bytes of the slot that a record of this size takes.
#[cfg(test)]
pub(crate) fn slot_size(size: usize) -> usize {
    slot_units(size) * UNIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_slot_size_has_one_class() {
        let mut classes: BTreeMap<usize, usize> = BTreeMap::new();
        for size in 1..=CHUNK * UNIT {
            let slot = slot_units(size);
            assert!(slot * UNIT >= size && slot * UNIT <= size.next_multiple_of(8) * 9 / 8 + 8, "{size}: {slot}");
            assert_eq!(*classes.entry(class_of(slot)).or_insert(slot), slot);
        }
        assert!(classes.len() < 100);
        assert_eq!(slot_size(70), 72);
    }

    proptest! {
        #[test]
        fn records_stay_as_they_are(steps in proptest::collection::vec((any::<u8>(), 1usize..3000, any::<u8>()), 0..600)) {
            let mut arena = Arena::default();
            let mut model: Vec<(u32, Vec<u8>)> = Vec::new();
            for (choice, size, fill) in steps {
                if choice < 100 && !model.is_empty() {
                    let (address, bytes) = model.swap_remove(size % model.len());
                    assert_eq!(&arena.bytes(address)[..bytes.len()], &bytes);
                    arena.release(address);
                } else {
                    let size = if choice == 255 { size * 50 } else { size };
                    let address = arena.allocate(size).unwrap();
                    arena.bytes_mut(address)[..size].fill(fill);
                    model.push((address, vec![fill; size]));
                }
                if choice == 254 {
                    arena.trim(0, 3);
                }
            }
            for (address, bytes) in &model {
                assert_eq!(&arena.bytes(*address)[..bytes.len()], bytes);
                assert!(arena.slot_bytes(*address) >= bytes.len() as u64);
            }
            model.iter().for_each(|(address, _)| arena.release(*address));
            let mut start = 0;
            while arena.trim(start, 2) {
                start += 2;
            }
            assert_eq!(arena.memory_bytes, 0);
        }
    }
}
