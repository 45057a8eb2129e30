//! The table from the transactions of a block to their positions in it: where the number of a spent output comes from.
//!
//! Input: the salted hashes of the txids of a block, in its order. Output: bytes that give the position of each. It is
//! a perfect hash without fingerprints: only a transaction that is in the block may be asked for. A spent coin has the
//! height of its block, so that is known. Any bytes are read; a position outside of the block is `None`.
//!
//! The high half of a hash selects a bucket of 2.5 transactions on average; the bucket's byte, with the hash, selects a
//! slot, of which a tenth is unused. If no byte fits a bucket, all hashes of the block are mixed again. Size: 16 bits
//! for a transaction of a block of 4,000. Cost: about 50 ns to add one, and two reads of the bytes to look one up.

use super::bits::BitWriter;

/// How often the hashes of a block are mixed again before it is given up: one in a thousand blocks needs a second time.
const ATTEMPTS_MAX: u8 = u8::MAX;

/// The shape of the table of a block: it follows from the number of transactions.
#[derive(Clone, Copy, Debug)]
struct Shape {
    buckets: usize,
    slots: usize,
    /// The bits of a position.
    width: u32,
}

impl Shape {
    fn new(count: usize) -> Shape {
        Shape {
            buckets: (count * 2 / 5).max(1),
            slots: count + count / 10 + 1,
            width: usize::BITS - count.saturating_sub(1).leading_zeros(),
        }
    }

    fn bucket(&self, hash: u64) -> usize {
        scale(hash, self.buckets)
    }

    fn slot(&self, hash: u64, seed: u8) -> usize {
        scale(mix(hash ^ u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15)), self.slots)
    }
}

/// A hash as a number below `end`.
fn scale(hash: u64, end: usize) -> usize {
    usize::try_from((u128::from(hash) * end as u128) >> 64).unwrap_or(0)
}

/// The last steps of MurmurHash3: every bit of the input changes half of those of the output.
fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

fn mix_again(hash: u64, attempt: u8) -> u64 {
    if attempt == 0 { hash } else { mix(hash.wrapping_add(u64::from(attempt))) }
}

/// The table of a block. `None` if two of its hashes are equal.
pub(super) fn encode(hashes: &[u64]) -> Option<Vec<u8>> {
    // The coinbase alone.
    if hashes.len() < 2 {
        return Some(vec![0]);
    }
    let shape = Shape::new(hashes.len());
    (0..=ATTEMPTS_MAX).find_map(|attempt| {
        let mixed: Vec<u64> = hashes.iter().map(|hash| mix_again(*hash, attempt)).collect();
        let (seeds, slots) = place(&mixed, &shape)?;
        let mut writer = BitWriter::default();
        slots.iter().for_each(|position| writer.write(u64::from(*position), shape.width));
        Some([&[attempt][..], &seeds, &writer.finish()].concat())
    })
}

/// A byte for each bucket, and the position in each slot.
fn place(hashes: &[u64], shape: &Shape) -> Option<(Vec<u8>, Vec<u32>)> {
    let mut members: Vec<(usize, u32)> = (0..).zip(hashes).map(|(at, hash)| (shape.bucket(*hash), at)).collect();
    members.sort_unstable();
    let mut buckets: Vec<&[(usize, u32)]> = members.chunk_by(|one, other| one.0 == other.0).collect();
    // Large buckets are placed while most slots are free.
    buckets.sort_by_key(|bucket| std::cmp::Reverse(bucket.len()));
    let (mut seeds, mut slots) = (vec![0; shape.buckets], vec![None; shape.slots]);
    for bucket in buckets {
        let seed = (0..=u8::MAX).find(|seed| try_seed(bucket, *seed, hashes, shape, &mut slots))?;
        let number = bucket.first().map(|(number, _)| *number)?;
        *seeds.get_mut(number)? = seed;
    }
    Some((seeds, slots.into_iter().map(Option::unwrap_or_default).collect()))
}

/// Takes a slot for each transaction of a bucket, or leaves all as they are.
fn try_seed(bucket: &[(usize, u32)], seed: u8, hashes: &[u64], shape: &Shape, slots: &mut [Option<u32>]) -> bool {
    let slot_of = |at: u32| hashes.get(at as usize).map_or(usize::MAX, |hash| shape.slot(*hash, seed));
    for (taken, (_, at)) in bucket.iter().enumerate() {
        match slots.get_mut(slot_of(*at)) {
            Some(slot @ None) => *slot = Some(*at),
            _ => {
                for (_, at) in bucket.iter().take(taken) {
                    if let Some(slot) = slots.get_mut(slot_of(*at)) {
                        *slot = None;
                    }
                }
                return false;
            }
        }
    }
    true
}

/// The position of a transaction that is in the block, which has `count` of them.
pub(super) fn find(table: &[u8], count: u32, hash: u64) -> Option<u32> {
    if count < 2 {
        return Some(0);
    }
    let shape = Shape::new(count as usize);
    let (attempt, rest) = table.split_first()?;
    let (seeds, slots) = rest.split_at_checked(shape.buckets)?;
    let hash = mix_again(hash, *attempt);
    let slot = shape.slot(hash, *seeds.get(shape.bucket(hash))?);
    read_bits(slots, slot * shape.width as usize, shape.width).filter(|position| *position < count)
}

/// A number of `width` bits, at most 32, that begins at a bit.
fn read_bits(bytes: &[u8], at: usize, width: u32) -> Option<u32> {
    let (first, end) = (at / 8, (at + width as usize).div_ceil(8));
    let bits = bytes.get(first..end)?.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let behind = (end - first) * 8 - at % 8 - width as usize;
    u32::try_from(bits >> behind & ((1 << width) - 1)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_stdx::SplitMix64;
    use proptest::prelude::*;

    fn hashes(count: usize, seed: u64) -> Vec<u64> {
        let mut random = SplitMix64::new(seed);
        (0..count).map(|_| random.next_u64()).collect()
    }

    #[test]
    fn every_position_is_found() {
        for count in (0..200).chain([255, 256, 257, 1_000, 4_095, 4_096, 4_097, 16_666]) {
            let hashes = hashes(count, count as u64);
            let table = encode(&hashes).unwrap();
            for (position, hash) in (0..).zip(&hashes) {
                assert_eq!(find(&table, u32::try_from(count).unwrap(), *hash), Some(position), "{count}");
            }
            if count > 2_000 {
                let bits = table.len() as f64 * 8.0 / count as f64;
                assert!(bits < 20.0, "{bits} bits for one of {count}");
            }
        }
    }

    #[test]
    fn equal_hashes_have_no_table() {
        assert_eq!(encode(&[7, 8, 7]), None);
    }

    /// Among many small blocks some need their hashes mixed again.
    #[test]
    fn hashes_are_mixed_again_if_no_byte_fits() {
        let mut again = 0;
        for seed in 0..30_000 {
            let hashes = hashes(12, seed);
            let table = encode(&hashes).unwrap();
            again += u32::from(table[0] > 0);
            for (position, hash) in (0..).zip(&hashes) {
                assert_eq!(find(&table, 12, *hash), Some(position));
            }
        }
        assert!(again > 0);
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_position_of_the_block_or_none(
            bytes in prop::collection::vec(any::<u8>(), 0..300), count in 0_u32..200, hash in any::<u64>(),
        ) {
            if let Some(position) = find(&bytes, count, hash) {
                prop_assert!(position < count.max(1));
            }
        }
    }
}
