//! The table from txids to the numbers of transactions, in pages by the high bits of a salted hash.
//!
//! Input: rows of a key (the high [`KEY_BITS`] bits of the SipHash of a txid, keyed by the index) and a number. Output:
//! the numbers of a key. Keys are short, so that a number is a candidate only: the caller reads the transaction and
//! compares its txid. A page has the rows of an interval of keys. The intervals follow from the number of rows: page
//! `key * pages >> KEY_BITS`, so that a lookup computes its page.
//!
//! A page keeps its keys exactly, as Rice codes of their differences, so that the rows of a segment can be merged into
//! a larger one without the transactions. Size: about 13 bits of key and the bits of the largest
//! number for each row, 5.3 bytes in a segment of half a billion. Cost of a lookup: one page, and half of its rows.

use super::bits::{BitReader, BitWriter};
use super::pages::{Facts, PageSink, PageSource, page_of_each};
use super::rows::ScriptHash;
use crate::error::IndexError;
use lydian_hash::SipHasher;
use lydian_primitives::Txid;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// Bits of a key: of the 1.3 billion transactions of mainnet, one in a thousand has a key that another one has too.
pub(super) const KEY_BITS: u32 = 40;

/// Rows in a page on average: about 4 kB in a large segment.
const ROWS_PER_PAGE: u64 = 700;

/// A transaction of the chain. Rows are sorted by key, then by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) key: u64,
    pub(super) number: u64,
}

/// The secret key of an index, without which no sender can choose txids that share a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt(pub(super) u64, pub(super) u64);

impl Salt {
    /// As a store has it: both numbers in a little-endian form.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.1) << 64 | u128::from(self.0)).to_le_bytes()
    }

    pub fn from_bytes(bytes: [u8; 16]) -> Salt {
        let mut halves = bytes.as_chunks::<8>().0.iter().map(|half| u64::from_le_bytes(*half));
        Salt(halves.next().unwrap_or_default(), halves.next().unwrap_or_default())
    }

    /// The hash of a txid, whose high bits are its key.
    pub(super) fn hash(self, txid: &Txid) -> u64 {
        SipHasher::new(self.0, self.1).hash_32(&txid.0)
    }

    pub(super) fn key(self, txid: &Txid) -> u64 {
        key_of(self.hash(txid))
    }

    /// The key of a script in the table of events.
    pub(super) fn script_key(self, hash: &ScriptHash) -> u64 {
        SipHasher::new(self.0, self.1).hash_32(&hash.0)
    }
}

/// The key of a transaction with this hash.
pub(super) fn key_of(hash: u64) -> u64 {
    hash >> (64 - KEY_BITS)
}

/// Shows no secret.
impl std::fmt::Debug for Salt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Salt").finish_non_exhaustive()
    }
}

/// The number of pages of a table.
pub(super) fn pages_of(rows: u64) -> u32 {
    u32::try_from(rows.div_ceil(ROWS_PER_PAGE)).unwrap_or(u32::MAX)
}

/// The page of a key. There is at least one.
fn page_of(key: u64, pages: u32) -> u32 {
    let page = (u128::from(key) * u128::from(pages)) >> KEY_BITS;
    u32::try_from(page).unwrap_or(u32::MAX).min(pages - 1)
}

/// The first key of a page; that of the page behind the last one ends the keys.
fn first_key(page: u32, pages: u32) -> u64 {
    (u64::from(page) << KEY_BITS).div_ceil(u64::from(pages))
}

/// The low bits of the Rice code of the differences, for this many rows in this interval of keys.
fn rice_width(interval: u64, rows: u64) -> u32 {
    (interval / (rows + 1)).max(1).ilog2()
}

/// The bits of a number within its segment.
fn number_width(facts: &Facts) -> u32 {
    facts.rows.max(1).ilog2() + 1
}

/// Writes the pages of a table, from its rows in order.
#[derive(Debug)]
pub(super) struct Numbers<'a> {
    sink: &'a mut dyn PageSink,
    facts: Facts,
    page: u32,
    rows: Vec<Row>,
    written: u64,
}

impl<'a> Numbers<'a> {
    /// A table of `rows` transactions from the number `first` on.
    pub(super) fn new(sink: &'a mut dyn PageSink, first: u64, rows: u64) -> Numbers<'a> {
        let facts = Facts { first, rows, pages: pages_of(rows) };
        Numbers { sink, facts, page: 0, rows: Vec::new(), written: 0 }
    }

    /// Adds the next row.
    pub(super) fn push(&mut self, row: Row) -> Result<(), IndexError> {
        let page = page_of(row.key, self.facts.pages);
        while self.page < page {
            self.end_page()?;
        }
        self.rows.push(row);
        self.written += 1;
        Ok(())
    }

    /// Writes the last pages. The table is durable on return.
    pub(super) fn finish(mut self) -> Result<(), IndexError> {
        assert_eq!(self.written, self.facts.rows, "the number of rows");
        while self.page < self.facts.pages {
            self.end_page()?;
        }
        self.sink.finish(&self.facts)
    }

    fn end_page(&mut self) -> Result<(), IndexError> {
        self.sink.push(&encode(&self.rows, self.page, &self.facts))?;
        self.rows.clear();
        self.page += 1;
        Ok(())
    }
}

/// The number of rows in two bytes, then for each row the difference of its key to the one before and its number.
fn encode(rows: &[Row], page: u32, facts: &Facts) -> Vec<u8> {
    let Ok(count) = u16::try_from(rows.len()) else { unreachable!("{} rows of 700 in a page", rows.len()) };
    let first = first_key(page, facts.pages);
    let rice = rice_width(first_key(page + 1, facts.pages) - first, u64::from(count));
    let width = number_width(facts);
    let (mut writer, mut last) = (BitWriter::default(), first);
    writer.write(u64::from(count), 16);
    for row in rows {
        writer.write_rice(row.key - last, rice);
        writer.write(row.number - facts.first, width);
        last = row.key;
    }
    writer.finish()
}

/// The rows of a page; the last item is `None` if the page ends before.
fn decode<'a>(bytes: &'a [u8], page: u32, facts: &Facts) -> impl Iterator<Item = Option<Row>> + use<'a> {
    let (first, end) = (first_key(page, facts.pages), first_key(page + 1, facts.pages));
    let mut reader = BitReader::new(bytes);
    let count = reader.read(16);
    let rice = rice_width(end - first, count.unwrap_or(0));
    let (width, number_first) = (number_width(facts), facts.first);
    let (mut last, mut is_over) = (first, false);
    // One more than the rows if there is no count: the error.
    (0..count.unwrap_or(1)).map_while(move |_| {
        if is_over {
            return None;
        }
        let row = reader.read_rice(rice).and_then(|difference| {
            let key = last.checked_add(difference).filter(|key| *key < end)?;
            Some(Row { key, number: number_first + reader.read(width)? })
        });
        is_over = row.is_none();
        last = row.map_or(last, |row| row.key);
        Some(row)
    })
}

const DAMAGED: &str = "a page of transaction numbers cannot be decoded";

/// The numbers of the transactions that have this key, in their order.
#[cfg(test)]
fn find(source: &dyn PageSource, key: u64) -> Result<Vec<u64>, IndexError> {
    find_in_all(&[source], key)
}

/// The numbers of the transactions that have this key in several tables, in their order.
pub(super) fn find_in_all(sources: &[&dyn PageSource], key: u64) -> Result<Vec<u64>, IndexError> {
    let sources = sources.iter().copied().filter(|source| source.facts().pages > 0);
    let wanted: Vec<(&dyn PageSource, u32)> =
        sources.map(|source| (source, page_of(key, source.facts().pages))).collect();
    let mut found = Vec::new();
    for ((source, page), bytes) in wanted.iter().zip(page_of_each(&wanted)?) {
        for row in decode(&bytes, *page, source.facts()) {
            let row = row.ok_or_else(|| source.damaged(*page, DAMAGED))?;
            if row.key > key {
                break;
            }
            if row.key == key {
                found.push(row.number);
            }
        }
    }
    Ok(found)
}

/// All rows of a table in order, a page at a time.
#[derive(Debug)]
struct AllRows<'a> {
    source: &'a dyn PageSource,
    page: u32,
    rows: std::vec::IntoIter<Row>,
}

impl<'a> AllRows<'a> {
    fn new(source: &'a dyn PageSource) -> AllRows<'a> {
        AllRows { source, page: 0, rows: Vec::new().into_iter() }
    }

    fn next(&mut self) -> Result<Option<Row>, IndexError> {
        loop {
            if let Some(row) = self.rows.next() {
                return Ok(Some(row));
            }
            let (page, facts) = (self.page, self.source.facts());
            if page == facts.pages {
                return Ok(None);
            }
            let bytes = self.source.page(page)?;
            let rows: Option<Vec<Row>> = decode(&bytes, page, facts).collect();
            self.rows = rows.ok_or_else(|| self.source.damaged(page, DAMAGED))?.into_iter();
            self.page += 1;
        }
    }
}

/// Writes a table with the rows of given tables, which together have these numbers. The result is the same as that of
/// a table made of these rows at once. Memory: a page of each.
pub(super) fn merge(
    sources: &[&dyn PageSource],
    range: &Range<u64>,
    sink: &mut dyn PageSink,
) -> Result<(), IndexError> {
    let mut numbers = Numbers::new(sink, range.start, range.end - range.start);
    let mut all: Vec<AllRows<'_>> = sources.iter().map(|source| AllRows::new(*source)).collect();
    let mut heads = BinaryHeap::new();
    for (index, rows) in all.iter_mut().enumerate() {
        heads.extend(rows.next()?.map(|row| Reverse((row, index))));
    }
    while let Some(Reverse((row, index))) = heads.pop() {
        numbers.push(row)?;
        let Some(rows) = all.get_mut(index) else { unreachable!("the index of a source") };
        heads.extend(rows.next()?.map(|row| Reverse((row, index))));
    }
    numbers.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::testing::MemoryTable;
    use lydian_stdx::SplitMix64;
    use proptest::prelude::*;

    fn table(first: u64, keys: &[u64]) -> MemoryTable {
        let mut rows: Vec<Row> =
            keys.iter().zip(first..).map(|(key, number)| Row { key: key >> (64 - KEY_BITS), number }).collect();
        rows.sort_unstable();
        let mut table = MemoryTable::default();
        let mut numbers = Numbers::new(&mut table, first, rows.len() as u64);
        rows.into_iter().for_each(|row| numbers.push(row).unwrap());
        numbers.finish().unwrap();
        table
    }

    fn keys(count: usize, seed: u64) -> Vec<u64> {
        let mut random = SplitMix64::new(seed);
        (0..count).map(|_| random.next_u64()).collect()
    }

    #[test]
    fn every_key_is_found_in_its_page_and_others_are_not() {
        for count in [0, 1, 2, 699, 700, 701, 20_000] {
            let keys = keys(count, 1);
            let table = table(1_000, &keys);
            assert_eq!(table.facts().pages as usize, count.div_ceil(700));
            for (key, number) in keys.iter().zip(1_000..) {
                assert_eq!(find(&table, key >> 24).unwrap(), [number]);
                assert_eq!(find(&table, (key >> 24) ^ 1).unwrap(), [0; 0]);
            }
            assert!(find(&table, 0).unwrap().is_empty() && find(&table, (1 << 40) - 1).unwrap().is_empty());
        }
    }

    #[test]
    fn transactions_with_one_key_are_all_found() {
        let keys = [7 << 24, 9 << 24, 7 << 24, 7 << 24, u64::MAX, 0];
        let table = table(0, &keys);
        assert_eq!(find(&table, 7).unwrap(), [0, 2, 3]);
        assert_eq!(find(&table, (1 << 40) - 1).unwrap(), [4]);
        assert_eq!(find(&table, 0).unwrap(), [5]);
    }

    #[test]
    fn a_row_takes_about_the_bits_of_its_number_and_thirteen_more() {
        let table = table(0, &keys(100_000, 3));
        let bytes: usize = table.pages.iter().map(Vec::len).sum();
        // 17 bits of number, and the difference of keys: 40 bits less those of 100,000 rows, and 1.5.
        let bits = bytes as f64 * 8.0 / 100_000.0;
        assert!((41.0..44.0).contains(&bits), "{bits}");
        assert!(table.pages.iter().all(|page| page.len() < 5_000));
    }

    proptest! {
        /// Byte-equal: however a chain was cut into segments.
        #[test]
        fn a_merge_is_the_table_of_all_rows(
            counts in prop::collection::vec(0_usize..2_000, 1..6),
            seed in any::<u64>(),
        ) {
            let all = keys(counts.iter().sum(), seed);
            let (mut parts, mut from) = (Vec::new(), 0);
            for count in counts {
                parts.push(table(from as u64, &all[from..from + count]));
                from += count;
            }
            let sources: Vec<&dyn PageSource> = parts.iter().map(|part| part as &dyn PageSource).collect();
            let mut merged = MemoryTable::default();
            merge(&sources, &(0..all.len() as u64), &mut merged).unwrap();
            prop_assert_eq!(&merged, &table(0, &all));
        }

        #[test]
        fn any_page_is_rows_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300), key in 0_u64..1 << 40) {
            let facts = Facts { first: 3, rows: 500, pages: 1 };
            let table = MemoryTable { facts, pages: vec![bytes] };
            if let Ok(numbers) = find(&table, key) {
                prop_assert!(numbers.len() < 65_536);
            }
            if let Ok(rows) = all_rows(&table) {
                prop_assert!(rows.iter().all(|row| row.number >= 3 && row.number < 3 + 512));
            }
        }
    }

    fn all_rows(table: &MemoryTable) -> Result<Vec<Row>, IndexError> {
        let (mut all, mut rows) = (AllRows::new(table), Vec::new());
        while let Some(row) = all.next()? {
            rows.push(row);
        }
        Ok(rows)
    }
}
