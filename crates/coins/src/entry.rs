//! [`Entry`]: the 8 bytes that the index stores for a coin, and how a key's hash is split. Input and output: the parts
//! and the number.
//!
//! ```text
//! hash:   | partition 4 | shard of the partition 8 | fingerprint 29 | 23 unused |
//! entry:  | fingerprint 29 | 0 | unit in the segments 34 |                    a coin on disk
//!         | fingerprint 29 | 1 | age 4 | address in the arena 30 |            a coin in memory
//! ```
//!
//! A unit is 8 bytes. The age is the number of checkpoints since the coin came to memory: 0 means not yet on disk, 15
//! means 15 or more. Invariants: entries sort by their fingerprint; no entry is 0, because unit 0 is never assigned. 41
//! bits of the hash distinguish coins before a record is read: with 180 million coins, one in 12,000 lookups finds the
//! entry of another coin.

/// Size of the fingerprint in bits.
pub(crate) const FINGERPRINT_BITS: u32 = 29;
/// Number of shards in a partition.
pub(crate) const SHARDS: usize = 256;
/// Number of addressable units: 128 GiB of records.
pub(crate) const UNITS_MAX: u64 = 1 << 34;
/// Address space of one partition's arena in units: 8 GiB.
pub(crate) const ADDRESSES_MAX: u32 = 1 << 30;
/// The age of all coins that are at least this old.
pub(crate) const AGE_MAX: usize = 15;

const PLACE_BITS: u32 = 35;
const MEMORY: u64 = 1 << 34;
const AGE_SHIFT: u32 = 30;

/// One slot of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(u64);

/// The location of a coin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Disk { unit: u64 },
    Memory { address: u32, age: usize },
}

impl Entry {
    pub(crate) const EMPTY: Entry = Entry(0);

    #[inline]
    pub(crate) fn disk(fingerprint: u32, unit: u64) -> Entry {
        debug_assert!((1..UNITS_MAX).contains(&unit) && fingerprint >> FINGERPRINT_BITS == 0);
        Entry(u64::from(fingerprint) << PLACE_BITS | unit)
    }

    #[inline]
    pub(crate) fn memory(fingerprint: u32, address: u32, age: usize) -> Entry {
        debug_assert!(address < ADDRESSES_MAX && age <= AGE_MAX && fingerprint >> FINGERPRINT_BITS == 0);
        Entry(u64::from(fingerprint) << PLACE_BITS | MEMORY | (age as u64) << AGE_SHIFT | u64::from(address))
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn fingerprint(self) -> u32 {
        (self.0 >> PLACE_BITS) as u32
    }

    #[inline]
    pub(crate) fn place(self) -> Place {
        if self.0 & MEMORY == 0 {
            Place::Disk { unit: self.0 & (UNITS_MAX - 1) }
        } else {
            Place::Memory { address: (self.0 & 0x3fff_ffff) as u32, age: usize::from((self.0 >> AGE_SHIFT & 15) as u8) }
        }
    }

    #[inline]
    pub(crate) fn is_in_memory(self) -> bool {
        self.0 & MEMORY != 0
    }

    /// Whether this is the entry of a coin on disk at one of the `count` units from `first` on, which is not 0. For a
    /// coin in memory the answer means nothing. Without branches.
    #[inline]
    pub(crate) fn is_at(self, first: u64, count: u64) -> bool {
        (self.0 & (UNITS_MAX - 1)).wrapping_sub(first) < count
    }

    /// For prefetching, and for sorting by fingerprint.
    #[inline]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

/// The shard of a key within its partition.
#[inline]
pub(crate) fn shard_of(hash: u64) -> usize {
    usize::from((hash >> 52 & 0xff) as u8)
}

#[inline]
pub(crate) fn fingerprint_of(hash: u64) -> u32 {
    (hash >> 23 & ((1 << FINGERPRINT_BITS) - 1)) as u32
}

/// Converts a number of bytes or slots to an index. A number that does not fit becomes an index beyond every slice.
#[inline]
pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let fingerprint = (1 << FINGERPRINT_BITS) - 1;
        let on_disk = Entry::disk(fingerprint, UNITS_MAX - 1);
        assert_eq!((on_disk.fingerprint(), on_disk.place()), (fingerprint, Place::Disk { unit: UNITS_MAX - 1 }));
        let in_memory = Entry::memory(3, ADDRESSES_MAX - 1, AGE_MAX);
        assert_eq!(in_memory.place(), Place::Memory { address: ADDRESSES_MAX - 1, age: AGE_MAX });
        assert_eq!(in_memory.fingerprint(), 3);
        assert!(!Entry::memory(0, 0, 0).is_empty() && !Entry::disk(0, 1).is_empty() && Entry::EMPTY.is_empty());
    }

    #[test]
    fn a_hash_is_cut_without_overlap() {
        assert_eq!((shard_of(0x0ff0 << 48), fingerprint_of(0x0ff0 << 48)), (255, 0));
        assert_eq!((shard_of(0x000f_ffff_ff80_0000), fingerprint_of(0x000f_ffff_ff80_0000)), (0, (1 << 29) - 1));
    }
}
