//! Filters of used scripts: which pages of [`Table::Events`] need not be read.
//!
//! Input: the keys of [`FILTER_PAGES`] pages, which follow each other. Output: a Bloom filter of them, as a value of
//! the first of these pages; and [`Filters`], those that a front end has in memory. A key that a filter does not have
//! is not in its pages. Of other keys, a filter has 8 in 1,000. Size: 10 bits for each script of a generation.
//!
//! Accepts any bytes as a filter. Memory: bounded by the caller, and by [`FILTER_BYTES_MAX`].

use crate::limits::FILTER_BYTES_MAX;
use crate::store::{Bucket, Key, PageKey};
use lydian_index::{RemoteSegment, Table};
use lydian_stdx::lock;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

/// Pages that have one filter: of about 30 kB.
pub(crate) const FILTER_PAGES: u32 = 128;

/// The part of a bucket that is a filter. No list has so many parts.
const FILTER_PART: u32 = 1 << 30;

const BITS_PER_KEY: usize = 10;

/// Bits that are set for a key.
const BITS_SET: u64 = 7;

/// The key of the filter of the pages from this one on.
pub(crate) fn filter_key(generation: u64, page: u32) -> Key {
    Key::Page(PageKey { bucket: Bucket { generation, table: Table::Events, page }, part: FILTER_PART })
}

/// The first pages of the filters of a generation.
pub(crate) fn filter_pages(segment: &RemoteSegment) -> impl Iterator<Item = u32> + use<> {
    let events = segment.facts.tables.iter().find(|(table, _)| *table == Table::Events);
    (0..events.map_or(0, |(_, facts)| facts.pages)).step_by(FILTER_PAGES as usize)
}

/// The bits of a key in a filter of so many bits. Keys are hashes already.
fn bits_of(key: u64, bits: u64) -> impl Iterator<Item = (usize, u8)> {
    let other = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 | 1;
    (0..BITS_SET).map(move |at| {
        let bit = (key & 0xffff_ffff).wrapping_add(at.wrapping_mul(other)) % bits.max(1);
        (usize::try_from(bit / 8).unwrap_or(0), 1 << (bit % 8))
    })
}

/// The filter of keys.
pub(crate) fn encode(keys: &[u64]) -> Vec<u8> {
    let mut filter = vec![0; (keys.len() * BITS_PER_KEY).div_ceil(8)];
    let bits = filter.len() as u64 * 8;
    for (at, mask) in keys.iter().flat_map(|key| bits_of(*key, bits)) {
        if let Some(byte) = filter.get_mut(at) {
            *byte |= mask;
        }
    }
    filter
}

fn may_have(filter: &[u8], key: u64) -> bool {
    bits_of(key, filter.len() as u64 * 8).all(|(at, mask)| filter.get(at).is_some_and(|byte| byte & mask != 0))
}

/// Filters to be read.
#[derive(Debug)]
pub(crate) struct Wanted {
    generation: u64,
    /// Those of the generation that are in memory.
    known: usize,
    pub(crate) keys: Vec<Key>,
}

/// The filters in memory.
#[derive(Debug, Default)]
pub(crate) struct Filters(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// By generation: the filters from the first on.
    filters: HashMap<u64, Vec<Box<[u8]>>>,
    bytes: usize,
    /// The generations that the row names: others get no filters.
    named: HashSet<u64>,
    /// By generation: the size of its next filter, which did not fit when it was read.
    unfit: HashMap<u64, usize>,
}

impl Held {
    /// Whether the next filter of a generation may fit.
    fn may_fit(&self, generation: u64, bytes_max: usize) -> bool {
        self.unfit.get(&generation).is_none_or(|size| self.fits(*size, bytes_max))
    }

    fn fits(&self, size: usize, bytes_max: usize) -> bool {
        self.bytes.saturating_add(size) <= bytes_max.min(FILTER_BYTES_MAX)
    }
}

impl Filters {
    /// False if no page from this generation has the key.
    pub(crate) fn may_have(&self, generation: u64, page: u32, key: u64) -> bool {
        let held = lock(&self.0);
        let filter = held.filters.get(&generation).and_then(|all| all.get((page / FILTER_PAGES) as usize));
        filter.is_none_or(|filter| may_have(filter, key))
    }

    /// Forgets generations that are not among these. What did not fit before may fit then, if that makes room.
    pub(crate) fn retain(&self, segments: &[RemoteSegment]) {
        let mut held = lock(&self.0);
        let Held { filters, named, unfit, .. } = &mut *held;
        *named = segments.iter().map(|segment| segment.generation).collect();
        filters.retain(|generation, _| named.contains(generation));
        unfit.retain(|generation, _| named.contains(generation));
        held.bytes = held.filters.values().flatten().map(|filter| filter.len()).sum();
    }

    /// The keys of the next filters to read, at most so many, all of one generation: those of the smallest generation
    /// first, whose filters save the most reads for their size. `None` if nothing is left that fits.
    pub(crate) fn next(&self, segments: &[RemoteSegment], count: usize, bytes_max: usize) -> Option<Wanted> {
        let held = lock(&self.0);
        let may_fit = |segment: &&RemoteSegment| held.may_fit(segment.generation, bytes_max);
        let mut segments: Vec<&RemoteSegment> = segments.iter().filter(may_fit).collect();
        segments.sort_by_key(|segment| segment.facts.heights.end - segment.facts.heights.start);
        segments.into_iter().find_map(|segment| {
            let generation = segment.generation;
            let known = held.filters.get(&generation).map_or(0, Vec::len);
            let keys = filter_pages(segment).skip(known).take(count).map(|page| filter_key(generation, page));
            let keys: Vec<Key> = keys.collect();
            (!keys.is_empty()).then_some(Wanted { generation, known, keys })
        })
    }

    /// Adds the filters that were wanted, as far as they fit. Does nothing if others were added meanwhile, or if the
    /// row does not name the generation any more.
    pub(crate) fn add(&self, wanted: &Wanted, filters: Vec<Vec<u8>>, bytes_max: usize) {
        let Wanted { generation, known, .. } = *wanted;
        let mut held = lock(&self.0);
        if held.filters.get(&generation).map_or(0, Vec::len) != known || !held.named.contains(&generation) {
            return;
        }
        for filter in filters {
            if !held.fits(filter.len(), bytes_max) {
                held.unfit.insert(generation, filter.len());
                return;
            }
            held.bytes += filter.len();
            held.filters.entry(generation).or_default().push(filter.into_boxed_slice());
        }
        held.unfit.remove(&generation);
    }

    pub(crate) fn bytes(&self) -> usize {
        lock(&self.0).bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_index::{Facts, SegmentFacts};
    use lydian_primitives::BlockHash;
    use lydian_stdx::SplitMix64;
    use std::ops::Range;

    #[test]
    fn a_filter_has_its_keys_and_few_others() {
        let mut random = SplitMix64::new(1);
        for count in [0, 1, 2, 1_000, 40_000] {
            // Of a narrow interval, as those of neighbouring pages.
            let mut keys = |count: usize| (0..count).map(|_| 7 << 48 | random.next_u64() >> 16).collect::<Vec<u64>>();
            let (own, others) = (keys(count), keys(20_000));
            let filter = encode(&own);
            assert_eq!(filter.len(), (count * 10).div_ceil(8));
            assert!(own.iter().all(|key| may_have(&filter, *key)));
            let wrong = others.iter().filter(|key| may_have(&filter, **key)).count();
            assert!(count < 1_000 || (80..240).contains(&wrong), "{wrong} of 20,000");
            assert!(count > 0 || wrong == 0, "an empty filter has nothing");
        }
    }

    fn segment(generation: u64, heights: Range<u32>, pages: u32) -> RemoteSegment {
        let tables = vec![(Table::Events, Facts { first: 0, rows: 0, pages })];
        RemoteSegment { generation, facts: SegmentFacts { heights, hash: BlockHash([0; 32]), tables } }
    }

    fn wanted(generation: u64, known: usize) -> Wanted {
        Wanted { generation, known, keys: Vec::new() }
    }

    /// limit: FILTER_BYTES_MAX at
    /// limit: FILTER_BYTES_MAX above
    #[test]
    fn filters_end_at_their_limit() {
        let segments = [segment(1, 0..512, 3 * FILTER_PAGES), segment(2, 512..768, FILTER_PAGES)];
        for (limit, size) in [(100, 50), (usize::MAX, FILTER_BYTES_MAX / 2)] {
            let filters = Filters::default();
            filters.retain(&segments);
            let next = || filters.next(&segments, 9, limit).map(|wanted| (wanted.generation, wanted.known));
            assert_eq!(next(), Some((2, 0)), "the smallest first");
            // Zeros that nothing touches take no memory.
            filters.add(&wanted(1, 0), vec![vec![0; size], vec![0; size]], limit);
            assert_eq!((filters.bytes(), next()), (2 * size, Some((2, 0))));
            filters.add(&wanted(1, 0), vec![vec![0; 1]], limit);
            assert!(lock(&filters.0).unfit.is_empty(), "these were added before");
            filters.add(&wanted(2, 0), vec![vec![0; 1]], limit);
            assert_eq!((filters.bytes(), next()), (2 * size, Some((1, 2))));
            filters.add(&wanted(1, 2), vec![vec![0; 1]], limit);
            assert_eq!((filters.bytes(), next()), (2 * size, None));
            assert!(!filters.may_have(1, 2 * FILTER_PAGES - 1, 5) && filters.may_have(1, 2 * FILTER_PAGES, 5));
            filters.retain(&[]);
            assert_eq!(filters.bytes(), 0);
        }
    }

    /// A new row makes room only if a generation with filters goes away: otherwise, nothing is read again.
    #[test]
    fn what_did_not_fit_is_wanted_again_when_there_is_room() {
        let (large, small) = (segment(1, 0..512, 2 * FILTER_PAGES), segment(2, 512..768, FILTER_PAGES));
        let (filters, limit) = (Filters::default(), 100);
        let next = |segments: &[RemoteSegment], limit| filters.next(segments, 9, limit).map(|wanted| wanted.generation);
        let both = [large.clone(), small];
        filters.retain(&both);
        filters.add(&wanted(2, 0), vec![vec![0; 30]], limit);
        filters.add(&wanted(1, 0), vec![vec![0; 60], vec![0; 40]], limit);
        assert_eq!((filters.bytes(), next(&both, limit)), (90, None));
        // A row with a delta more.
        filters.retain(&both);
        assert_eq!(next(&both, limit), None);
        assert_eq!(next(&both, limit + 30), Some(1), "the caller has more room");
        // The small generation is replaced by one that does not fit beside the large one.
        let replaced = [large, segment(3, 512..1_024, FILTER_PAGES)];
        filters.retain(&replaced);
        assert_eq!((filters.bytes(), next(&replaced, limit)), (60, Some(1)));
        filters.add(&wanted(1, 1), vec![vec![0; 40]], limit);
        assert_eq!((filters.bytes(), next(&replaced, limit)), (100, Some(3)));
        filters.add(&wanted(3, 0), vec![vec![0; 31]], limit);
        assert_eq!((filters.bytes(), next(&replaced, limit)), (100, None));
        // Filters of a generation that has gone away arrive late.
        filters.add(&wanted(2, 0), vec![Vec::new()], limit);
        assert_eq!(lock(&filters.0).filters.len(), 1);
    }
}
