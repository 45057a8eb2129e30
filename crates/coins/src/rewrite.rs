//! Which segments are given up, and reading what lives in them. Input: what the manifest says of the segments; output: [`Victims`], and their records in
//! the order of the index.
//!
//! Given up are segments in which nothing lives; those in which at most half of the records live, the emptiest first, as far as what is moved stays below what
//! is new (or a fixed number of bytes); and small ones when eight have come together. Records lie in a segment in the order of the index, so a pass over the index reads
//! each segment from front to back, a window at a time. Cost: a window of 256 KiB for each segment that is read.

use crate::entry::{UNITS_MAX, index};
use crate::error::CoinsError;
use crate::manifest::SegmentInfo;
use crate::record::{Record, UNIT_BYTES};
use crate::segment::Segments;

/// Bytes that may be moved by any checkpoint.
const MOVED_BYTES: u64 = 64 << 20;
/// Segments below these bytes are put together when there are so many.
const SMALL_BYTES: [u64; 2] = [8 << 20, 64 << 20];
const SMALL_COUNT: usize = 8;
const WINDOW_BYTES: u64 = 256 << 10;
/// A record is not looked for in what is left of a window that is smaller than this.
const TAIL_BYTES: usize = 128;
/// Units of a granule of the coarse map.
const GRANULE_BITS: u32 = 20;

/// Segments that are given up.
#[derive(Debug, Default)]
pub(crate) struct Victims {
    ranges: Vec<(u64, u64)>,
    /// Whether any victim has units in this granule: answers for nearly all units at once.
    granules: Vec<bool>,
    live_bytes: u64,
}

impl Victims {
    /// `new_bytes` are going to be written anyway.
    pub(crate) fn choose(segments: &[SegmentInfo], new_bytes: u64) -> Victims {
        let mut victims = Victims::default();
        let mut left = new_bytes.max(MOVED_BYTES);
        let mut candidates: Vec<&SegmentInfo> = segments.iter().filter(|info| info.live * 2 <= info.records).collect();
        candidates.sort_by_key(|info| info.live * 1024 / info.records.max(1));
        for info in candidates {
            let bytes = live_bytes(info);
            if bytes <= left || victims.ranges.is_empty() {
                victims.add(info);
                left = left.saturating_sub(bytes);
            }
        }
        for bytes_max in SMALL_BYTES {
            let is_small = |info: &&SegmentInfo| info.units * (UNIT_BYTES as u64) < bytes_max;
            let small: Vec<&SegmentInfo> = segments.iter().filter(is_small).collect();
            if small.len() >= SMALL_COUNT {
                small.into_iter().for_each(|info| victims.add(info));
            }
        }
        victims.ranges.sort_unstable();
        victims
    }

    fn add(&mut self, info: &SegmentInfo) {
        if self.contain(info.base) {
            return;
        }
        self.granules.resize(index(UNITS_MAX >> GRANULE_BITS), false);
        self.granules[index(info.base >> GRANULE_BITS)..=index((info.end() - 1) >> GRANULE_BITS)].fill(true);
        self.ranges.push((info.base, info.end()));
        self.live_bytes += live_bytes(info);
    }

    pub(crate) fn contain_any(&self) -> bool {
        !self.ranges.is_empty()
    }

    #[inline]
    pub(crate) fn contain(&self, unit: u64) -> bool {
        self.granules.get(index(unit >> GRANULE_BITS)).is_some_and(|is_any| *is_any)
            && self.ranges.iter().any(|(base, end)| (*base..*end).contains(&unit))
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Units of all of them, dead records too.
    pub(crate) fn units(&self) -> u64 {
        self.ranges.iter().map(|(base, end)| end - base).sum()
    }
}

fn live_bytes(info: &SegmentInfo) -> u64 {
    let bytes = u128::from(info.units) * UNIT_BYTES as u128 * u128::from(info.live) / u128::from(info.records.max(1));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Reads records in the order of the index, many segments side by side.
#[derive(Debug)]
pub(crate) struct Mover<'a> {
    segments: &'a Segments,
    /// For each segment the unit its window begins with, and the window.
    windows: Vec<(u64, Vec<u8>)>,
}

impl<'a> Mover<'a> {
    pub(crate) fn new(segments: &'a Segments) -> Mover<'a> {
        Mover { segments, windows: vec![(0, Vec::new()); segments.len()] }
    }

    pub(crate) fn take<T>(&mut self, unit: u64, visit: impl FnOnce(Record<'_>) -> T) -> Result<T, CoinsError> {
        let place = self.segments.place_of(unit);
        let segment = self.segments.get(place);
        let (start, bytes) = &mut self.windows[place];
        let end = *start + (bytes.len() / UNIT_BYTES) as u64;
        let is_at_end = end == segment.info.end();
        if unit < *start || unit >= end || !is_at_end && index(end - unit) * UNIT_BYTES < TAIL_BYTES {
            *bytes = segment.bytes(unit, WINDOW_BYTES)?;
            *start = unit;
        }
        segment.with_record(unit, &bytes[index(unit - *start) * UNIT_BYTES..], visit)
    }
}
