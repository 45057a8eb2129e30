//! The parts of a block in the store.
//!
//! Input: the bytes of a block. Output: part 0, the head, with its header, its size and the bytes of its run so far;
//! and parts of [`BLOCK_PART_BYTES`] from 1 on, the last one shorter. So the part that has a byte is computed, and a
//! transaction is read without the rest of its block. Accepts any bytes.

use crate::seal::Sealed;
use crate::store::{BlockHeight, BlockKey, Key};
use lydian_primitives::{BlockHash, HEADER_SIZE, Header, Reader};
use std::ops::RangeInclusive;

/// Bytes of a block in a part: a transaction has about 500, and a store reads and sends a part as a whole.
pub(crate) const BLOCK_PART_BYTES: usize = 16 << 10;

/// Part 0 of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockHead {
    /// Bytes of the blocks of the run, up to this one.
    pub(crate) total: u64,
    /// Bytes of the block.
    pub(crate) size: u32,
    pub(crate) header: Header,
}

impl BlockHead {
    fn encode(&self) -> Vec<u8> {
        [&self.total.to_le_bytes()[..], &self.size.to_le_bytes(), &self.header.to_bytes()].concat()
    }

    /// The head of a block again; `None` if it is that of another one.
    pub(crate) fn decode(content: &[u8], hash: &BlockHash) -> Option<BlockHead> {
        let mut reader = Reader::new(content);
        let total = u64::from_le_bytes(reader.array().ok()?);
        let (size, header) = (reader.u32().ok()?, Header::parse(&reader.array::<HEADER_SIZE>().ok()?));
        let is_whole = reader.remaining() == 0 && size as usize >= HEADER_SIZE;
        (is_whole && header.hash() == *hash).then_some(BlockHead { total, size, header })
    }

    /// The numbers of the parts with its bytes.
    pub(crate) fn parts(&self) -> RangeInclusive<u32> {
        parts_of(0, self.size)
    }
}

pub(crate) fn key(at: BlockHeight, hash: BlockHash, part: u32) -> Key {
    Key::Block(BlockKey { at, hash, part })
}

/// The numbers of the parts that have these bytes of a block; at least one.
pub(crate) fn parts_of(offset: u32, size: u32) -> RangeInclusive<u32> {
    let part = |byte: u32| u32::try_from(byte as usize / BLOCK_PART_BYTES).unwrap_or(u32::MAX).saturating_add(1);
    part(offset)..=part(offset.saturating_add(size.saturating_sub(1)))
}

/// The values of a block, the head first. `total`: the bytes of the run below it. `None` if it is not a block with
/// this hash.
pub(crate) fn values(at: BlockHeight, hash: BlockHash, total: u64, bytes: &[u8]) -> Option<Vec<(Key, Vec<u8>)>> {
    let header = Header::parse(bytes.first_chunk::<HEADER_SIZE>()?);
    let size = u32::try_from(bytes.len()).ok().filter(|_| header.hash() == hash)?;
    let head = BlockHead { total: total.saturating_add(size.into()), size, header }.encode();
    let contents = [head.as_slice()].into_iter().chain(bytes.chunks(BLOCK_PART_BYTES));
    let value = |(part, content): (u32, &[u8])| {
        let key = key(at, hash, part);
        (key, Sealed::Value(key).seal(content))
    };
    Some((0..).zip(contents).map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: BlockHeight = BlockHeight { series: 3, height: 7 };

    #[test]
    fn every_range_of_a_block_is_in_the_parts_that_are_computed() {
        for size in [HEADER_SIZE, BLOCK_PART_BYTES - 1, BLOCK_PART_BYTES, BLOCK_PART_BYTES + 1, 3 * BLOCK_PART_BYTES] {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251).to_le_bytes()[0]).collect();
            let hash = Header::parse(bytes.first_chunk().unwrap()).hash();
            let values = values(AT, hash, 1_000, &bytes).unwrap();
            let contents: Vec<&[u8]> =
                values.iter().map(|(key, value)| Sealed::Value(*key).open(value).unwrap()).collect();
            let head = BlockHead::decode(contents[0], &hash).unwrap();
            assert_eq!((head.total, head.size as usize), (1_000 + size as u64, size));
            assert_eq!(*head.parts().end() as usize + 1, values.len());
            assert_eq!(contents[1..].concat(), bytes);
            for (offset, length) in [(0, 1), (size - 1, 1), (0, size), (size / 2, size - size / 2)] {
                let parts = parts_of(u32::try_from(offset).unwrap(), u32::try_from(length).unwrap());
                let (first, last) = (*parts.start() as usize, *parts.end() as usize);
                let start = offset - (first - 1) * BLOCK_PART_BYTES;
                assert_eq!(contents[first..=last].concat()[start..start + length], bytes[offset..offset + length]);
                assert!(start < BLOCK_PART_BYTES && last * BLOCK_PART_BYTES < offset + length + BLOCK_PART_BYTES);
            }
            assert_eq!(super::values(AT, BlockHash([9; 32]), 0, &bytes), None);
            assert_eq!(BlockHead::decode(contents[0], &BlockHash([9; 32])), None);
            assert_eq!(BlockHead::decode(&contents[0][1..], &hash), None);
            assert_eq!(BlockHead::decode(&[contents[0], &[0]].concat(), &hash), None);
        }
        assert_eq!(super::values(AT, BlockHash([9; 32]), 0, &[0; HEADER_SIZE - 1]), None);
    }
}
