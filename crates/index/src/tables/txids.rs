//! The table of txids in the order of their numbers: what makes a history without reading transactions.
//!
//! Input: the txids of a segment's transactions in their order. Output: the txid of a number. A page has
//! [`TXIDS_PER_PAGE`] of them, 32 bytes each, so that the page of a number is computed. Cost of a lookup: a page;
//! of numbers that share a page, one for all of them. The pages of many numbers are read at the same time.

use super::pages::{Facts, PAGES_AT_ONCE, PageSink, PageSource};
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
    sink.finish(&Facts { first, rows, pages: pages_of(rows) })
}

/// The number of pages of a table.
pub(super) fn pages_of(rows: u64) -> u32 {
    u32::try_from(rows.div_ceil(TXIDS_PER_PAGE)).unwrap_or(u32::MAX)
}

/// The txids of a table in their order.
pub(super) fn read(source: &dyn PageSource) -> impl Iterator<Item = Result<Txid, IndexError>> {
    (0..source.facts().pages).flat_map(move |number| match page_of(source, number) {
        Ok(page) => page.as_chunks::<32>().0.iter().map(|txid| Ok(Txid(*txid))).collect(),
        Err(error) => vec![Err(error)],
    })
}

fn page_of(source: &dyn PageSource, number: u32) -> Result<Vec<u8>, IndexError> {
    check(source, number, source.page(number)?)
}

fn check(source: &dyn PageSource, number: u32, page: Vec<u8>) -> Result<Vec<u8>, IndexError> {
    let rows = source.facts().rows.saturating_sub(u64::from(number) * TXIDS_PER_PAGE).min(TXIDS_PER_PAGE);
    if page.len() as u64 == rows * 32 { Ok(page) } else { Err(source.damaged(number, DAMAGED)) }
}

/// The txids of numbers in an ascending order; `None` for one that the table does not have.
pub(super) fn find(source: &dyn PageSource, numbers: &[u64]) -> Result<Vec<Option<Txid>>, IndexError> {
    let facts = source.facts();
    let page_of = |number: &u64| {
        let row = number.checked_sub(facts.first).filter(|row| *row < facts.rows)?;
        u32::try_from(row / TXIDS_PER_PAGE).ok()
    };
    let mut all = Vec::with_capacity(numbers.len());
    let mut groups = numbers.chunk_by(|one, other| page_of(one) == page_of(other)).peekable();
    while groups.peek().is_some() {
        let some: Vec<&[u64]> = groups.by_ref().take(PAGES_AT_ONCE as usize).collect();
        let pages: Vec<Option<u32>> = some.iter().map(|group| group.first().and_then(page_of)).collect();
        let wanted: Vec<u32> = pages.iter().flatten().copied().collect();
        let mut read = wanted.iter().zip(source.pages(&wanted)?);
        for (group, page) in some.into_iter().zip(pages) {
            let bytes = match page.and_then(|_| read.next()) {
                Some((number, bytes)) => check(source, *number, bytes)?,
                None => Vec::new(),
            };
            let rows = bytes.as_chunks::<32>().0;
            let at = |number: &u64| usize::try_from(number.checked_sub(facts.first)? % TXIDS_PER_PAGE).ok();
            all.extend(group.iter().map(|number| at(number).and_then(|at| rows.get(at)).map(|txid| Txid(*txid))));
        }
    }
    Ok(all)
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
        for rows in [0, 1, 127, 128, 129, 1_000, 20_000] {
            let mut table = MemoryTable::default();
            write(50, (50..50 + rows).map(|number| Ok(txid(number))), &mut table).unwrap();
            let back: Result<Vec<Txid>, _> = read(&table).collect();
            assert_eq!(back.unwrap(), (50..50 + rows).map(txid).collect::<Vec<_>>());
            let expected = |number: &u64| (50..50 + rows).contains(number).then(|| txid(*number));
            for numbers in [(0..50 + rows + 200).chain([u64::MAX]).collect::<Vec<_>>(), vec![51, 180, 181], vec![3]] {
                let all: Vec<Option<Txid>> = numbers.iter().map(expected).collect();
                assert_eq!(find(&table, &numbers).unwrap(), all, "{rows} rows");
            }
        }
    }

    #[test]
    fn a_page_of_another_size_is_an_error() {
        let facts = Facts { first: 0, rows: 200, pages: 2 };
        for pages in [vec![vec![0; 4_096], vec![0; 71 * 32]], vec![vec![0; 4_095], vec![0; 72 * 32]]] {
            let table = MemoryTable { facts, pages };
            assert!(read(&table).any(|txid| txid.is_err()));
            assert!((0..200).any(|number| find(&table, &[number]).is_err()));
        }
    }
}
