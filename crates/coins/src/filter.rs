//! [`Filter`]: the parts in which the coins of one shard are, in few bits. Input: entries, each a prefix of a coin's
//! fingerprint and the number of a part (`old`). Output: the parts of the entries with a prefix.
//!
//! The entries are sorted. A prefix has 21 bits: its first bits are the *quotient*, about as many quotients as there
//! are entries, and the others the *remainder*. Quotients are written in unary: for each one a set bit for every
//! entry, then a clear bit; a mark for every 128 quotients shortens the search. Remainder and part are a field of fixed
//! size (Elias-Fano coding). Nothing is lost: the same entries come back whatever their number is. Cost: 7.9 bits and
//! the bits of a part for each entry at 44,000 entries; a lookup reads a mark, three words and one or two fields. A
//! prefix that no coin has is found with probability `entries / 2^21`: 2.1 % at 44,000 entries, the share of a shard of
//! 180 million coins. A filter is never changed; a checkpoint builds another one.

use crate::entry::{FINGERPRINT_BITS, index};

/// Bits of a fingerprint that are kept.
const PREFIX_BITS: u32 = 21;
/// Number of quotients for each mark.
const MARKED: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// For each quotient, a one for each of its entries, then a zero.
    unary: Box<[u64]>,
    /// Where every 128th quotient begins in `unary`, in bits.
    marks: Box<[u32]>,
    /// Remainder and part of each entry.
    fields: Box<[u64]>,
    len: usize,
    remainder_bits: u32,
    part_bits: u32,
}

/// The prefix of a fingerprint.
#[inline]
pub(crate) fn prefix_of(fingerprint: u32) -> u32 {
    fingerprint >> (FINGERPRINT_BITS - PREFIX_BITS)
}

/// An entry as a number. Entries are sorted by it.
#[inline]
pub(crate) fn entry_of(prefix: u32, part: u32) -> u64 {
    u64::from(prefix) << 32 | u64::from(part)
}

/// The part of an entry.
#[inline]
pub(crate) fn part_of(entry: u64) -> u32 {
    (entry & 0xffff_ffff) as u32
}

impl Filter {
    /// Builds a filter of sorted entries, whose parts are below `parts`.
    pub(crate) fn build(entries: &[u64], parts: usize) -> Filter {
        let Some(log) = entries.len().checked_ilog2() else { return Filter::default() };
        let remainder_bits = PREFIX_BITS - log.min(PREFIX_BITS);
        let part_bits = parts.next_power_of_two().ilog2();
        let quotients = 1usize << (PREFIX_BITS - remainder_bits);
        let mut unary = vec![0u64; (entries.len() + quotients).div_ceil(64)];
        let mut marks = Vec::with_capacity(quotients.div_ceil(MARKED));
        let mut fields = Fields::new(entries.len(), remainder_bits + part_bits);
        let mut place = 0;
        for quotient in 0..quotients {
            if quotient % MARKED == 0 {
                marks.push(u32::try_from(place + quotient).unwrap_or(u32::MAX));
            }
            while let Some(entry) = entries.get(place)
                && index(entry >> (32 + remainder_bits)) == quotient
            {
                let bit = place + quotient;
                unary[bit / 64] |= 1 << (bit % 64);
                let remainder = entry >> 32 & ((1 << remainder_bits) - 1);
                fields.push(remainder << part_bits | u64::from(part_of(*entry)));
                place += 1;
            }
        }
        assert_eq!(place, entries.len(), "the entries of a filter are sorted");
        let (unary, marks) = (unary.into_boxed_slice(), marks.into_boxed_slice());
        Filter { unary, marks, fields: fields.words.into_boxed_slice(), len: place, remainder_bits, part_bits }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let words = self.unary.len() + self.fields.len();
        (words * 8 + self.marks.len() * 4 + size_of::<Filter>()) as u64
    }

    /// Visits the part of each entry with this prefix.
    #[inline]
    pub(crate) fn parts(&self, prefix: u32, mut visit: impl FnMut(u32)) {
        if self.len == 0 {
            return;
        }
        let quotient = index(u64::from(prefix) >> self.remainder_bits);
        let remainder = u64::from(prefix) & ((1 << self.remainder_bits) - 1);
        let mut bit = self.start(quotient);
        while self.unary[bit / 64] >> (bit % 64) & 1 == 1 {
            let field = self.field(bit - quotient);
            if field >> self.part_bits == remainder {
                visit(self.part(field));
            }
            bit += 1;
        }
    }

    /// All entries, sorted by prefix and in the order in which they were given.
    pub(crate) fn entries(&self) -> Vec<u64> {
        let mut entries = Vec::with_capacity(self.len);
        let mut quotient = 0;
        for word in &self.unary {
            let mut word = *word;
            for _ in 0..64 {
                if entries.len() == self.len {
                    break;
                }
                if word & 1 == 1 {
                    let field = self.field(entries.len());
                    let prefix = quotient << self.remainder_bits | field >> self.part_bits;
                    entries.push(prefix << 32 | u64::from(self.part(field)));
                } else {
                    quotient += 1;
                }
                word >>= 1;
            }
        }
        entries
    }

    /// The first bit of a quotient in `unary`.
    #[inline]
    fn start(&self, quotient: usize) -> usize {
        let mut bit = index(u64::from(self.marks[quotient / MARKED]));
        let mut zeros = quotient % MARKED;
        while zeros > 0 {
            let mut clear = !self.unary[bit / 64] >> (bit % 64);
            let count = index(clear.count_ones().into());
            if count < zeros {
                zeros -= count;
                bit = (bit / 64 + 1) * 64;
                continue;
            }
            (1..zeros).for_each(|_| clear &= clear - 1);
            return bit + index(clear.trailing_zeros().into()) + 1;
        }
        bit
    }

    #[inline]
    fn field(&self, place: usize) -> u64 {
        let bits = index((self.remainder_bits + self.part_bits).into());
        if bits == 0 {
            return 0;
        }
        let (word, shift) = (place * bits / 64, place * bits % 64);
        let low = self.fields[word] >> shift;
        let both = if shift + bits > 64 { low | self.fields[word + 1] << (64 - shift) } else { low };
        both & ((1 << bits) - 1)
    }

    #[inline]
    fn part(&self, field: u64) -> u32 {
        part_of(field & ((1 << self.part_bits) - 1))
    }
}

/// Numbers of a fixed size in bits, one after another.
struct Fields {
    words: Vec<u64>,
    bits: usize,
    len: usize,
}

impl Fields {
    /// `bits` is at most 53: that of a prefix and of a part.
    fn new(count: usize, bits: u32) -> Fields {
        let bits = index(bits.into());
        Fields { words: vec![0; (count * bits).div_ceil(64)], bits, len: 0 }
    }

    fn push(&mut self, number: u64) {
        let (word, shift) = (self.len * self.bits / 64, self.len * self.bits % 64);
        if self.bits > 0 {
            self.words[word] |= number << shift;
            if shift + self.bits > 64 {
                self.words[word + 1] |= number >> (64 - shift);
            }
        }
        self.len += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(entries: &mut Vec<u64>, parts: usize) {
        entries.sort_unstable();
        let filter = Filter::build(entries, parts);
        assert!(filter.entries() == *entries);
        let prefixes = entries.iter().map(|entry| u32::try_from(entry >> 32).unwrap());
        let edges = [0, 1, (1 << PREFIX_BITS) - 1];
        for prefix in prefixes.flat_map(|prefix| [prefix, prefix ^ 1]).chain(edges) {
            let mut found = Vec::new();
            filter.parts(prefix, |part| found.push(entry_of(prefix, part)));
            let start = entries.partition_point(|entry| *entry < entry_of(prefix, 0));
            let end = entries.partition_point(|entry| *entry <= entry_of(prefix, u32::MAX));
            assert!(found == entries[start..end], "{prefix}: {found:?}");
        }
    }

    proptest! {
        /// Prefixes at both ends of the range and everywhere; many entries of one prefix.
        #[test]
        fn equal_to_a_list(
            entries in proptest::collection::vec((0u32..4, 0u32..1 << PREFIX_BITS, any::<u32>()), 0..700),
            part_bits in 0u32..32,
        ) {
            let prefix = |kind, prefix: u32| match kind {
                0 => prefix & 3,
                1 => (1 << PREFIX_BITS) - 1 - (prefix & 3),
                _ => prefix,
            };
            let mut entries: Vec<u64> = entries
                .into_iter()
                .map(|(kind, number, part)| entry_of(prefix(kind, number), part & ((1 << part_bits) - 1)))
                .collect();
            check(&mut entries, 1 << part_bits);
        }
    }

    #[test]
    fn few_entries_and_very_many() {
        for count in [0u32, 1, 2, 3, 127, 128, 129] {
            check(&mut (0..count).map(|number| entry_of(number * 16_001 % (1 << PREFIX_BITS), number)).collect(), 200);
        }
        // More entries than prefixes, without bits for the parts.
        let entries: Vec<u64> = (0..(1 << PREFIX_BITS) + 5).map(|number| entry_of(number / 2, 0)).collect();
        assert!(Filter::build(&entries, 1).entries() == entries);
    }

    #[test]
    fn as_small_as_the_remark_says() {
        let mut random = lydian_stdx::SplitMix64::new(1);
        let mut prefix = || prefix_of(u32::try_from(random.next_u64() >> 35).unwrap());
        let mut entries: Vec<u64> = (0..44_000).map(|number| entry_of(prefix(), number % 64)).collect();
        entries.sort_unstable();
        let filter = Filter::build(&entries, 64);
        let bits = filter.memory_bytes() as f64 * 8.0 / 44_000.0;
        assert!(bits < 14.0, "{bits}");
        let mut found = 0;
        (0..100_000).for_each(|_| filter.parts(prefix(), |_| found += 1));
        assert!((1_800..2_400).contains(&found), "{found}");
    }
}
