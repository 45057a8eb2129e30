//! Selects the segments to rewrite and reads their live records. Input: the manifest's data about the segments. Output:
//! [`Victims`], and their records in index order.
//!
//! Segments to rewrite are those without live records; those in which at most half of the records are live, the
//! emptiest first, as long as fewer bytes are moved than are new (or than a fixed number); and small ones if there are
//! at least eight. Records in a segment are in index order, so a pass over the index reads each segment sequentially,
//! one window at a time. Cost: a window of 256 KiB for each segment that is read.

use crate::entry::{UNITS_MAX, index};
use crate::error::CoinsError;
use crate::manifest::SegmentInfo;
use crate::record::{Record, UNIT_BYTES};
use crate::segment::{Segment, Segments};
use std::ops::Range;

/// Number of bytes that every checkpoint may move.
const MOVED_BYTES: u64 = 64 << 20;
/// Segments smaller than these sizes are combined if there are `SMALL_COUNT` of them.
const SMALL_BYTES: [u64; 2] = [8 << 20, 64 << 20];
const SMALL_COUNT: usize = 8;
const WINDOW_BYTES: u64 = 256 << 10;
/// If fewer bytes than this remain in a window, a new window is read instead of parsing a record there.
const TAIL_BYTES: usize = 128;
/// Size of a granule of the coarse map, as a power of two of units.
const GRANULE_BITS: u32 = 20;

/// Segments to rewrite.
#[derive(Debug, Default)]
pub(crate) struct Victims {
    ranges: Vec<(u64, u64)>,
    /// Whether any victim has units in this granule, which answers for nearly all units quickly.
    granules: Vec<bool>,
    live_bytes: u64,
}

impl Victims {
    /// Selects the segments. `new_bytes` will be written in any case.
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

    /// The units from the first victim to the last one; an empty range at 1 if there is none.
    pub(crate) fn bounds(&self) -> Range<u64> {
        match (self.ranges.first(), self.ranges.last()) {
            (Some((start, _)), Some((_, end))) => *start..*end,
            _ => 1..1,
        }
    }

    #[inline]
    pub(crate) fn contain(&self, unit: u64) -> bool {
        self.granules.get(index(unit >> GRANULE_BITS)).is_some_and(|is_any| *is_any)
            && self.ranges.iter().any(|(base, end)| (*base..*end).contains(&unit))
    }

    pub(crate) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Number of units in all victims, including dead records.
    pub(crate) fn units(&self) -> u64 {
        self.ranges.iter().map(|(base, end)| end - base).sum()
    }
}

/// Estimated size of the live records, from their share of all.
pub(crate) fn live_bytes(info: &SegmentInfo) -> u64 {
    let bytes = u128::from(info.units) * UNIT_BYTES as u128 * u128::from(info.live) / u128::from(info.records.max(1));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Reads records in index order from many segments at once.
#[derive(Debug)]
pub(crate) struct Mover<'a> {
    segments: &'a Segments,
    /// One for each segment.
    windows: Vec<Window>,
}

impl<'a> Mover<'a> {
    pub(crate) fn new(segments: &'a Segments) -> Mover<'a> {
        Mover { segments, windows: segments.iter().map(|_| Window::default()).collect() }
    }

    pub(crate) fn take<T>(&mut self, unit: u64, visit: impl FnOnce(Record<'_>) -> T) -> Result<T, CoinsError> {
        let place = self.segments.place_of(unit);
        self.windows[place].take(self.segments.get(place), unit, visit)
    }
}

/// A part of a segment in memory, for records that are read in their order.
#[derive(Debug, Default)]
pub(crate) struct Window {
    start: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// Reads a record. The segment may be another one than before.
    pub(crate) fn take<T>(
        &mut self,
        segment: &Segment,
        unit: u64,
        visit: impl FnOnce(Record<'_>) -> T,
    ) -> Result<T, CoinsError> {
        let end = self.start + (self.bytes.len() / UNIT_BYTES) as u64;
        let is_at_end = end == segment.info.end();
        if unit < self.start || unit >= end || !is_at_end && index(end - unit) * UNIT_BYTES < TAIL_BYTES {
            // After a failed read the window is empty.
            let mut bytes = std::mem::take(&mut self.bytes);
            segment.read_into(unit, WINDOW_BYTES, &mut bytes)?;
            (self.start, self.bytes) = (unit, bytes);
        }
        segment.with_record(unit, &self.bytes[index(unit - self.start) * UNIT_BYTES..], visit)
    }
}
