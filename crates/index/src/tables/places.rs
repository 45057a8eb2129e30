//! The tables of places: where the transactions and the outputs of each block begin, and the size of every transaction.
//!
//! Input: blocks in their order. Output: the block of a transaction, and its offset and size in the block, so that it
//! is read by its bytes. [`Blocks`] has a row for each height; it is read whole when an index is opened, and
//! [`Heights`] keeps what is needed of it in memory: 12 bytes for a block. [`Sizes`] has a row for each transaction;
//! its page has [`SIZES_PER_PAGE`] of them, and the offset of the first, for a block that begins before the page.

use super::pages::{Facts, PAGES_AT_ONCE, PageSink, PageSource};
use crate::error::IndexError;
use lydian_primitives::{BlockHash, Height, ParseError, Reader, compact_size_len};
use std::ops::Range;

/// Transactions of a page of sizes: 2 kB.
const SIZES_PER_PAGE: u64 = 1_024;

/// Blocks of a page: up to 40 kB.
const BLOCKS_PER_PAGE: u64 = 1_024;

/// Pages of blocks that are read together: 640 kB.
const BLOCK_PAGES_AT_ONCE: u32 = 16;

/// The size of a header.
const HEADER_BYTES: u32 = 80;

/// What the tables know of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockRow {
    pub(super) hash: BlockHash,
    pub(super) transactions: u32,
    pub(super) outputs: u32,
}

/// The first numbers of all blocks of the chain, and behind the last one.
#[derive(Clone, Debug)]
pub(super) struct Heights {
    transactions: Vec<u32>,
    outputs: Vec<u64>,
}

/// A block: the number of its first transaction, and where it begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockAt {
    height: Height,
    first: u64,
    offset: u32,
}

impl BlockAt {
    pub(super) fn height(&self) -> Height {
        self.height
    }
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub height: Height,
    /// The offset in the block.
    pub offset: u32,
    pub size: u32,
}

impl Heights {
    pub(super) fn new() -> Heights {
        Heights { transactions: vec![0], outputs: vec![0] }
    }

    /// The number of blocks.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.transactions.len() - 1).unwrap_or(u32::MAX)
    }

    /// Adds the next block. Returns `None` if its transactions have no number of 32 bits.
    pub(super) fn push(&mut self, transactions: u32, outputs: u32) -> Option<()> {
        let (last, output) = (*self.transactions.last()?, *self.outputs.last()?);
        self.transactions.push(last.checked_add(transactions)?);
        self.outputs.push(output + u64::from(outputs));
        Some(())
    }

    /// Forgets the blocks from this height on.
    pub(super) fn truncate(&mut self, height: u32) {
        self.transactions.truncate(height as usize + 1);
        self.outputs.truncate(height as usize + 1);
    }

    /// The number of the first transaction of a block; that of the next one for the height behind the last.
    pub(super) fn first(&self, height: u32) -> u64 {
        self.transactions.get(height as usize).copied().map_or(u64::MAX, u64::from)
    }

    /// The numbers of the transactions of these heights.
    pub(super) fn numbers(&self, heights: &Range<u32>) -> Range<u64> {
        self.first(heights.start)..self.first(heights.end)
    }

    /// The block of a transaction.
    pub(super) fn block_of(&self, number: u64) -> Option<u32> {
        let number = u32::try_from(number).ok().filter(|number| Some(number) < self.transactions.last())?;
        let behind = self.transactions.partition_point(|first| *first <= number);
        u32::try_from(behind - 1).ok()
    }

    /// The block of a transaction, with what tells its place in it.
    pub(super) fn block_at(&self, number: u64) -> Option<BlockAt> {
        let height = self.block_of(number)?;
        Some(BlockAt { height: Height(height), first: self.first(height), offset: self.first_offset(height) })
    }

    /// The offset of the first transaction of a block in it.
    pub(super) fn first_offset(&self, height: u32) -> u32 {
        let count = row_index(self.first(height + 1) - self.first(height));
        HEADER_BYTES + u32::try_from(compact_size_len(count)).unwrap_or(9)
    }
}

/// Writes the table of blocks: in each page the hash of every block, and the numbers of its transactions and outputs.
pub(super) fn write_blocks(
    first: u32,
    rows: impl Iterator<Item = Result<BlockRow, IndexError>>,
    sink: &mut dyn PageSink,
) -> Result<(), IndexError> {
    let (mut page, mut count) = (Vec::new(), 0);
    for row in rows {
        let row = row?;
        page.extend_from_slice(&row.hash.0);
        page.extend_from_slice(&row.transactions.to_le_bytes());
        page.extend_from_slice(&row.outputs.to_le_bytes());
        count += 1;
        if count % BLOCKS_PER_PAGE == 0 {
            sink.push(&std::mem::take(&mut page))?;
        }
    }
    if !page.is_empty() {
        sink.push(&page)?;
    }
    sink.finish(&Facts { first: u64::from(first), rows: count, pages: block_pages(count) })
}

/// The rows of a table of blocks.
pub(super) fn read_blocks(source: &dyn PageSource) -> impl Iterator<Item = Result<BlockRow, IndexError>> {
    let pages = source.facts().pages;
    (0..pages).step_by(BLOCK_PAGES_AT_ONCE as usize).flat_map(move |first| {
        let numbers: Vec<u32> = (first..pages.min(first.saturating_add(BLOCK_PAGES_AT_ONCE))).collect();
        let rows = source.pages(&numbers).and_then(|pages| {
            let of_pages = numbers.iter().zip(&pages).map(|(number, page)| blocks_of_page(source, *number, page));
            of_pages.collect::<Result<Vec<Vec<BlockRow>>, IndexError>>()
        });
        match rows {
            Ok(rows) => rows.into_iter().flatten().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    })
}

/// A row of a table of blocks, counted from its first; `None` behind the last.
pub(super) fn block_at(source: &dyn PageSource, row: u32) -> Result<Option<BlockRow>, IndexError> {
    let row = u64::from(row);
    let Some(number) = u32::try_from(row / BLOCKS_PER_PAGE).ok().filter(|_| row < source.facts().rows) else {
        return Ok(None);
    };
    let rows = blocks_of_page(source, number, &source.page(number)?)?;
    Ok(rows.get(row_index(row % BLOCKS_PER_PAGE)).copied())
}

fn blocks_of_page(source: &dyn PageSource, number: u32, page: &[u8]) -> Result<Vec<BlockRow>, IndexError> {
    let rows = rows_in_page(source.facts(), number, BLOCKS_PER_PAGE);
    let read = (0..rows).scan(Reader::new(page), |reader, _| Some(read_block(reader)));
    let rows: Result<Vec<BlockRow>, ParseError> = read.collect();
    rows.map_err(|_| source.damaged(number, "a page of blocks ends too early"))
}

fn read_block(reader: &mut Reader<'_>) -> Result<BlockRow, ParseError> {
    Ok(BlockRow { hash: BlockHash(reader.array()?), transactions: reader.u32()?, outputs: reader.u32()? })
}

/// The number of rows in a page that has `per_page` if it is not the last one.
fn rows_in_page(facts: &Facts, page: u32, per_page: u64) -> u64 {
    facts.rows.saturating_sub(u64::from(page) * per_page).min(per_page)
}

fn pages_of(rows: u64, per_page: u64) -> u32 {
    u32::try_from(rows.div_ceil(per_page)).unwrap_or(u32::MAX)
}

/// The number of pages of a table of blocks.
pub(super) fn block_pages(rows: u64) -> u32 {
    pages_of(rows, BLOCKS_PER_PAGE)
}

/// The number of pages of a table of sizes.
pub(super) fn size_pages(rows: u64) -> u32 {
    pages_of(rows, SIZES_PER_PAGE)
}

/// Writes the table of sizes, of these transactions in their order.
pub(super) fn write_sizes(
    numbers: &Range<u64>,
    heights: &Heights,
    sizes: impl Iterator<Item = Result<u32, IndexError>>,
    sink: &mut dyn PageSink,
) -> Result<(), IndexError> {
    let (mut page, mut offset, mut height) = (Vec::new(), 0, heights.block_of(numbers.start).unwrap_or(0));
    let mut written = 0;
    for (number, size) in numbers.clone().zip(sizes) {
        let size = size?;
        while heights.first(height + 1) <= number {
            height += 1;
        }
        if heights.first(height) == number {
            offset = heights.first_offset(height);
        }
        if written % SIZES_PER_PAGE == 0 {
            page.extend_from_slice(&u32::to_le_bytes(offset));
        }
        write_varint(size, &mut page);
        offset = offset.saturating_add(size);
        written += 1;
        if written % SIZES_PER_PAGE == 0 {
            sink.push(&std::mem::take(&mut page))?;
        }
    }
    assert_eq!(written, numbers.end - numbers.start, "a size for every transaction");
    if !page.is_empty() {
        sink.push(&page)?;
    }
    sink.finish(&Facts { first: numbers.start, rows: written, pages: size_pages(written) })
}

const DAMAGED: &str = "a page of sizes ends too early";

/// The sizes of all transactions of a table.
pub(super) fn read_sizes(source: &dyn PageSource) -> impl Iterator<Item = Result<u32, IndexError>> {
    (0..source.facts().pages).flat_map(move |number| {
        let sizes = source.page(number).and_then(|page| sizes_of_page(source, number, &page, SIZES_PER_PAGE));
        match sizes {
            Ok((_, sizes)) => sizes.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    })
}

/// The offset of a page's first transaction in its block, and the sizes of so many of the page, or of all.
fn sizes_of_page(source: &dyn PageSource, number: u32, page: &[u8], count: u64) -> Result<(u32, Vec<u32>), IndexError> {
    let damaged = |_: ParseError| source.damaged(number, DAMAGED);
    let offset = Reader::new(page).u32().map_err(damaged)?;
    let mut rest = page.get(4..).unwrap_or_default();
    let rows = rows_in_page(source.facts(), number, SIZES_PER_PAGE).min(count);
    let sizes = (0..rows).map(|_| read_varint(&mut rest).ok_or_else(|| source.damaged(number, DAMAGED)));
    Ok((offset, sizes.collect::<Result<_, _>>()?))
}

/// Where the transactions of these numbers are, which ascend, each with its block. `None` for one that the table does
/// not have.
pub(super) fn find_places(
    source: &dyn PageSource,
    numbers: &[(u64, BlockAt)],
) -> Result<Vec<Option<Place>>, IndexError> {
    let facts = source.facts();
    let page_of = |(number, _): &(u64, BlockAt)| {
        let row = number.checked_sub(facts.first).filter(|row| *row < facts.rows)?;
        u32::try_from(row / SIZES_PER_PAGE).ok()
    };
    let mut all = Vec::with_capacity(numbers.len());
    let mut groups = numbers.chunk_by(|one, other| page_of(one) == page_of(other)).peekable();
    while groups.peek().is_some() {
        let some: Vec<_> =
            groups.by_ref().take(PAGES_AT_ONCE as usize).map(|group| (group, page_of(&group[0]))).collect();
        let wanted: Vec<u32> = some.iter().filter_map(|(_, page)| *page).collect();
        let mut read = source.pages(&wanted)?.into_iter();
        for (group, page) in some {
            let Some((page, bytes)) = page.and_then(|page| Some((page, read.next()?))) else {
                all.extend(group.iter().map(|_| None));
                continue;
            };
            let first = facts.first + u64::from(page) * SIZES_PER_PAGE;
            let last = group.iter().map(|(number, _)| *number).max().unwrap_or(first);
            let (offset, sizes) = sizes_of_page(source, page, &bytes, last - first + 1)?;
            all.extend(group.iter().map(|(number, block)| place_in_page(block, *number, first, offset, &sizes)));
        }
    }
    Ok(all)
}

/// `sizes`: those of a page whose first transaction has the number `first`, and this offset in its block.
fn place_in_page(block: &BlockAt, number: u64, first: u64, offset: u32, sizes: &[u32]) -> Option<Place> {
    let (from, start) = match block.first.checked_sub(first) {
        Some(inside) => (inside, block.offset),
        None => (0, offset),
    };
    let before = sizes.iter().take(row_index(number - first)).skip(row_index(from));
    let offset = before.fold(start, |offset, size| offset.saturating_add(*size));
    let size = sizes.get(row_index(number - first)).copied()?;
    Some(Place { height: block.height, offset, size })
}

/// Where the transaction of a number is, which is in this block. `None` if the table does not have it.
pub(super) fn find_place(source: &dyn PageSource, block: &BlockAt, number: u64) -> Result<Option<Place>, IndexError> {
    Ok(find_places(source, &[(number, *block)])?.pop().flatten())
}

fn row_index(row: u64) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

/// Seven bits in a byte, the low ones first; the high bit says that more follow.
pub(super) fn write_varint(mut number: u32, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Reads a number and moves the bytes behind it. `None` at the end, and above 32 bits.
pub(super) fn read_varint(bytes: &mut &[u8]) -> Option<u32> {
    let mut number = 0_u64;
    for shift in (0..35).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return u32::try_from(number).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::testing::MemoryTable;
    use proptest::prelude::*;

    /// The heights and all sizes of blocks with these sizes of transactions.
    fn heights_of(blocks: &[Vec<u32>]) -> (Heights, Vec<u32>) {
        let mut heights = Heights::new();
        for block in blocks {
            heights.push(u32::try_from(block.len()).unwrap(), 3).unwrap();
        }
        (heights, blocks.concat())
    }

    fn sizes_table(range: &Range<u64>, heights: &Heights, all: &[u32]) -> MemoryTable {
        let mut table = MemoryTable::default();
        let part = &all[row_index(range.start)..row_index(range.end)];
        write_sizes(range, heights, part.iter().map(|size| Ok(*size)), &mut table).unwrap();
        table
    }

    #[test]
    fn numbers_of_seven_bits() {
        for (number, bytes) in
            [(0, vec![0]), (127, vec![127]), (128, vec![128, 1]), (u32::MAX, vec![255, 255, 255, 255, 15])]
        {
            let mut out = Vec::new();
            write_varint(number, &mut out);
            assert_eq!(out, bytes);
            let mut rest = &out[..];
            assert_eq!((read_varint(&mut rest), rest.len()), (Some(number), 0));
        }
        assert_eq!(read_varint(&mut &[255, 255, 255, 255, 16][..]), None);
        assert_eq!(read_varint(&mut &[255, 255, 255, 255, 255, 1][..]), None);
        assert_eq!(read_varint(&mut &[128][..]), None);
    }

    #[test]
    fn a_transaction_behind_the_last_number_is_an_error_and_not_a_wrong_number() {
        let mut heights = Heights::new();
        assert_eq!(heights.push(u32::MAX, 1), Some(()));
        assert_eq!(heights.push(1, 1), None);
        assert_eq!((heights.block_of(5), heights.block_of(u64::from(u32::MAX))), (Some(0), None));
    }

    proptest! {
        #[test]
        fn every_transaction_is_where_its_block_has_it(
            blocks in prop::collection::vec(prop::collection::vec(60_u32..100_000, 1..1_500), 1..8),
            cut in 0_usize..8,
        ) {
            let (heights, all) = heights_of(&blocks);
            // A segment may begin at any block.
            let from = u32::try_from(cut.min(blocks.len() - 1)).unwrap();
            let range = heights.numbers(&(from..heights.len()));
            let table = sizes_table(&range, &heights, &all);
            let back: Result<Vec<u32>, _> = read_sizes(&table).collect();
            prop_assert_eq!(&back.unwrap()[..], &all[row_index(range.start)..]);
            let numbers: Vec<(u64, BlockAt)> =
                (0..heights.first(heights.len())).map(|number| (number, heights.block_at(number).unwrap())).collect();
            let together = find_places(&table, &numbers).unwrap();
            let mut number = 0;
            for (height, block) in (0..).zip(&blocks) {
                let mut offset = 80 + if block.len() < 253 { 1 } else { 3 };
                for size in block {
                    let place = Place { height: Height(height), offset, size: *size };
                    let expected = (height >= from).then_some(place);
                    let block = heights.block_at(number).unwrap();
                    prop_assert_eq!(find_place(&table, &block, number).unwrap(), expected);
                    prop_assert_eq!(together[row_index(number)], expected);
                    offset += size;
                    number += 1;
                }
            }
            prop_assert!(heights.block_at(number).is_none());
        }

        #[test]
        fn blocks_come_back(counts in prop::collection::vec((1_u32..9_000, any::<u32>()), 0..3_000)) {
            let rows: Vec<BlockRow> = (0_u32..).zip(&counts).map(|(height, (transactions, outputs))| {
                let mut hash = [7; 32];
                hash[..4].copy_from_slice(&height.to_le_bytes());
                BlockRow { hash: BlockHash(hash), transactions: *transactions, outputs: *outputs }
            }).collect();
            let mut table = MemoryTable::default();
            write_blocks(5, rows.iter().copied().map(Ok), &mut table).unwrap();
            let back: Result<Vec<BlockRow>, _> = read_blocks(&table).collect();
            prop_assert_eq!(back.unwrap(), rows);
        }

        #[test]
        fn any_page_is_sizes_or_an_error(page in prop::collection::vec(any::<u8>(), 0..200), number in 0_u64..50) {
            let facts = Facts { first: 0, rows: 40, pages: 1 };
            let table = MemoryTable { facts, pages: vec![page] };
            let (heights, _) = heights_of(&[vec![60; 30], vec![60; 30]]);
            if let Ok(Some(place)) = find_place(&table, &heights.block_at(number).unwrap(), number) {
                prop_assert!(place.offset >= 80 || number < 30);
            }
            drop(read_blocks(&table).collect::<Vec<_>>());
        }
    }
}
