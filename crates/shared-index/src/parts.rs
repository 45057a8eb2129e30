//! The values of a bucket: a page, and the lists of its fat scripts in parts.
//!
//! Input: a page of [`Table::Events`] and the pages of lists that belong to it. Output: part 0 with the page and the
//! number of the first list page of each further part; and these parts, of up to [`PART_BYTES_MAX`]. A bucket of
//! another table has its page alone. Accepts any bytes.

use crate::limits::PART_BYTES_MAX;
use lydian_index::Table;
use lydian_primitives::{ParseError, Reader};
use std::ops::Range;

/// Which pages of lists the parts of a bucket have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Directory {
    /// The first page of each part, from part 1 on.
    firsts: Vec<u32>,
    /// The page behind the last.
    end: u32,
}

impl Directory {
    /// The part that has a page, counted from 1, and the pages of that part.
    pub(crate) fn part_of(&self, page: u32) -> Option<(u32, Range<u32>)> {
        let part = self.firsts.partition_point(|first| *first <= page);
        let first = *self.firsts.get(part.checked_sub(1)?)?;
        let end = self.firsts.get(part).copied().unwrap_or(self.end);
        let pages = first..end;
        pages.contains(&page).then_some((u32::try_from(part).ok()?, pages))
    }
}

/// Gathers pages of lists to parts.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    directory: Directory,
    sizes: Vec<u32>,
    bytes: Vec<u8>,
}

impl Parts {
    /// Parts of the pages from this number on.
    pub(crate) fn new(first: u32) -> Parts {
        Parts { directory: Directory { firsts: Vec::new(), end: first }, ..Parts::default() }
    }

    /// Adds the next page. Returns a part that is full without it.
    pub(crate) fn push(&mut self, page: &[u8]) -> Option<(u32, Vec<u8>)> {
        let is_full = self.bytes.len() + page.len() > PART_BYTES_MAX && !self.sizes.is_empty();
        let part = if is_full { self.take() } else { None };
        if self.sizes.is_empty() {
            self.directory.firsts.push(self.directory.end);
        }
        self.directory.end += 1;
        self.sizes.push(u32::try_from(page.len()).unwrap_or(u32::MAX));
        self.bytes.extend_from_slice(page);
        part
    }

    /// The part that is being gathered: its number, and its content.
    fn take(&mut self) -> Option<(u32, Vec<u8>)> {
        let (sizes, bytes) = (std::mem::take(&mut self.sizes), std::mem::take(&mut self.bytes));
        let number = u32::try_from(self.directory.firsts.len()).ok().filter(|_| !sizes.is_empty())?;
        Some((number, sizes.iter().flat_map(|size| size.to_le_bytes()).chain(bytes).collect()))
    }

    /// The last part, if there are pages, and the directory; then the parts are those of the next bucket.
    pub(crate) fn finish(&mut self) -> (Option<(u32, Vec<u8>)>, Directory) {
        let last = self.take();
        let next = Directory { firsts: Vec::new(), end: self.directory.end };
        let directory = std::mem::replace(&mut self.directory, next);
        let has_pages = !directory.firsts.is_empty();
        (last, if has_pages { directory } else { Directory::default() })
    }
}

/// The content of part 0.
pub(crate) fn encode(table: Table, page: &[u8], directory: &Directory) -> Vec<u8> {
    if table != Table::Events {
        return page.to_vec();
    }
    let mut out = u32::try_from(directory.firsts.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    directory.firsts.iter().chain([&directory.end]).for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    out.extend_from_slice(page);
    out
}

/// The page and the directory of part 0.
pub(crate) fn decode(table: Table, content: &[u8]) -> Option<(&[u8], Directory)> {
    if table != Table::Events {
        return Some((content, Directory::default()));
    }
    let mut reader = Reader::new(content);
    let directory = read_directory(&mut reader).ok().filter(|directory| {
        let ends = directory.firsts.iter().chain([&directory.end]);
        directory.firsts.is_empty() || ends.is_sorted_by(|one, next| one < next)
    })?;
    Some((reader.take(reader.remaining()).ok()?, directory))
}

fn read_directory(reader: &mut Reader<'_>) -> Result<Directory, ParseError> {
    let mut firsts = Vec::new();
    for _ in 0..reader.u32()? {
        firsts.push(reader.u32()?);
    }
    Ok(Directory { firsts, end: reader.u32()? })
}

/// The pages of a part that has `count` of them.
pub(crate) fn pages_of(content: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    let (sizes, mut rest) = content.split_at_checked(count.checked_mul(4)?)?;
    let mut pages = Vec::new();
    for size in sizes.as_chunks::<4>().0 {
        let (page, after) = rest.split_at_checked(u32::from_le_bytes(*size) as usize)?;
        pages.push(page);
        rest = after;
    }
    rest.is_empty().then_some(pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// limit: PART_BYTES_MAX at
    /// limit: PART_BYTES_MAX above
    #[test]
    fn a_part_is_full_at_its_limit() {
        let half = vec![7; PART_BYTES_MAX / 2];
        let mut parts = Parts::new(5);
        assert!(parts.push(&half).is_none() && parts.push(&half).is_none());
        let (number, content) = parts.push(&[1]).unwrap();
        assert_eq!((number, content.len()), (1, 8 + PART_BYTES_MAX));
        let (last, directory) = parts.finish();
        assert_eq!(last, Some((2, vec![1, 0, 0, 0, 1])));
        assert_eq!(directory, Directory { firsts: vec![5, 7], end: 8 });
        // One page that is larger is a part.
        let mut parts = Parts::new(0);
        assert!(parts.push(&vec![7; PART_BYTES_MAX + 1]).is_none());
        assert_eq!(parts.finish().0.unwrap().1.len(), 4 + PART_BYTES_MAX + 1);
    }

    proptest! {
        #[test]
        fn every_page_is_found_in_its_part(sizes in prop::collection::vec(0_usize..30_000, 0..20), first in 0_u32..9) {
            let pages: Vec<Vec<u8>> = sizes.iter().map(|size| vec![size.to_le_bytes()[0]; *size]).collect();
            let mut parts = Parts::new(first);
            let mut stored: Vec<(u32, Vec<u8>)> = pages.iter().filter_map(|page| parts.push(page)).collect();
            let (last, directory) = parts.finish();
            stored.extend(last);
            let head = encode(Table::Events, b"page", &directory);
            let (page, back) = decode(Table::Events, &head).unwrap();
            prop_assert_eq!((page, &back), (&b"page"[..], &directory));
            for (number, page) in (first..).zip(&pages) {
                let (part, range) = back.part_of(number).unwrap();
                let (_, content) = stored.iter().find(|(other, _)| *other == part).unwrap();
                let found = pages_of(content, range.len()).unwrap();
                prop_assert_eq!(found[(number - range.start) as usize], &page[..]);
            }
            prop_assert_eq!(back.part_of(first + u32::try_from(pages.len()).unwrap()), None);
            prop_assert_eq!(encode(Table::Sizes, b"page", &Directory::default()), b"page");
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200), count in 0_usize..20) {
            if let Some((page, directory)) = decode(Table::Events, &bytes) {
                prop_assert!(page.len() <= bytes.len() && directory.firsts.len() <= bytes.len());
            }
            drop(pages_of(&bytes, count));
        }
    }
}
