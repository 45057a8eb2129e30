//! The table of txids in the order of their numbers: what makes a history without reading transactions.
//!
//! Input: the txids of a segment's transactions in their order. Output: the txid of a number. A page has
//! [`TXIDS_PER_PAGE`] of them, 32 bytes each, so that the page of a number is computed. Cost of a lookup: a page; of
//! numbers that follow each other closely, one page for all of them.

use super::pages::{Facts, PageSink, PageSource};
use crate::error::IndexError;
use lydian_primitives::Txid;

/// Txids of a page: 4,096 bytes.
const TXIDS_PER_PAGE: u64 = 128;

const DAMAGED: &str = "a page of txids has another size than the number of its rows says";

/// Writes the table, of the transactions from the number `first` on.
pub(super) fn write(
    first: u64,
    txids: impl Iterator<Item = Result<Txid, IndexError>>,
    sink: &mut dyn PageSink,
) -> Result<(), IndexError> {
    let (mut page, mut rows) = (Vec::new(), 0_u64);
    for txid in txids {
        page.extend_from_slice(&txid?.0);
        rows += 1;
        if rows.is_multiple_of(TXIDS_PER_PAGE) {
            sink.push(&page)?;
            page.clear();
        }
    }
    if !page.is_empty() {
        sink.push(&page)?;
    }
    let pages = u32::try_from(rows.div_ceil(TXIDS_PER_PAGE)).unwrap_or(u32::MAX);
    sink.finish(&Facts { first, rows, pages })
}

/// The txids of a table in their order.
pub(super) fn read(source: &dyn PageSource) -> impl Iterator<Item = Result<Txid, IndexError>> {
    (0..source.facts().pages).flat_map(move |number| match page_of(source, number) {
        Ok(page) => page.as_chunks::<32>().0.iter().map(|txid| Ok(Txid(*txid))).collect(),
        Err(error) => vec![Err(error)],
    })
}

fn page_of(source: &dyn PageSource, number: u32) -> Result<Vec<u8>, IndexError> {
    let page = source.page(number)?;
    let rows = source.facts().rows.saturating_sub(u64::from(number) * TXIDS_PER_PAGE).min(TXIDS_PER_PAGE);
    if page.len() as u64 == rows * 32 { Ok(page) } else { Err(source.damaged(number, DAMAGED)) }
}

/// A table with the page that was read last, for numbers in an ascending order.
#[derive(Debug)]
pub(super) struct Lookup<'a> {
    source: &'a dyn PageSource,
    last: Option<(u32, Vec<u8>)>,
}

impl<'a> Lookup<'a> {
    pub(super) fn new(source: &'a dyn PageSource) -> Lookup<'a> {
        Lookup { source, last: None }
    }

    /// The txid of a number; `None` if the table does not have it.
    pub(super) fn find(&mut self, number: u64) -> Result<Option<Txid>, IndexError> {
        let facts = self.source.facts();
        let Some(row) = number.checked_sub(facts.first).filter(|row| *row < facts.rows) else { return Ok(None) };
        let Ok(page) = u32::try_from(row / TXIDS_PER_PAGE) else { return Ok(None) };
        let bytes = match self.last.take() {
            Some((last, bytes)) if last == page => bytes,
            _ => page_of(self.source, page)?,
        };
        let at = usize::try_from(row % TXIDS_PER_PAGE).unwrap_or(usize::MAX);
        let found = bytes.as_chunks::<32>().0.get(at).map(|txid| Txid(*txid));
        self.last = Some((page, bytes));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::testing::MemoryTable;

    fn txid(number: u64) -> Txid {
        let mut bytes = [3; 32];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Txid(bytes)
    }

    #[test]
    fn every_txid_comes_back() {
        for rows in [0, 1, 127, 128, 129, 1_000] {
            let mut table = MemoryTable::default();
            write(50, (50..50 + rows).map(|number| Ok(txid(number))), &mut table).unwrap();
            let back: Result<Vec<Txid>, _> = read(&table).collect();
            assert_eq!(back.unwrap(), (50..50 + rows).map(txid).collect::<Vec<_>>());
            let mut lookup = Lookup::new(&table);
            for number in (0..50 + rows + 200).chain([50, 3, u64::MAX]) {
                let expected = (50..50 + rows).contains(&number).then(|| txid(number));
                assert_eq!(lookup.find(number).unwrap(), expected, "{number} of {rows}");
            }
        }
    }

    #[test]
    fn a_page_of_another_size_is_an_error() {
        let facts = Facts { first: 0, rows: 200, pages: 2 };
        for pages in [vec![vec![0; 4_096], vec![0; 71 * 32]], vec![vec![0; 4_095], vec![0; 72 * 32]]] {
            let table = MemoryTable { facts, pages };
            assert!(read(&table).any(|txid| txid.is_err()));
            let mut lookup = Lookup::new(&table);
            assert!((0..200).any(|number| lookup.find(number).is_err()));
        }
    }
}
