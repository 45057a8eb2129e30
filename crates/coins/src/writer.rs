//! [`SegmentWriter`]: writes records to segments and their sidecars. Input: coins in index order. Output: synced files,
//! and their data for the manifest.
//!
//! A segment ends at the end of a shard once it is large, and another one is started. A sidecar entry is `shard 8 |
//! fingerprint 29 | units of the record 27`; the location of a record follows from the entries before it. Each segment
//! is in the shared list of segments as soon as it has a record, so that its records are readable when the locks of the
//! shard are released. Nothing waits for the disk under these locks, except for a write of 1 MiB when the buffer is
//! full. Cost: 1 MiB of memory, and each byte is written once.

use crate::entry::UNITS_MAX;
use crate::error::CoinsError;
use crate::manifest::SegmentInfo;
use crate::open::own;
use crate::record::{UNIT_BYTES, encode_record};
use crate::sections::{FileId, HEADER_BYTES, Kind, SectionsInfo, SectionsWriter};
use crate::segment::{Growing, Segment, Segments};
use lydian_disk::{AppendFile, Disk};
use lydian_stdx::IgnorePoison;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Minimum size at which a segment ends: 512 MiB.
const SEGMENT_UNITS_MAX: u64 = 1 << 26;
/// Size of a file header in units.
pub(crate) const HEADER_UNITS: u64 = (HEADER_BYTES / UNIT_BYTES) as u64;
const BUFFER_BYTES: usize = 1 << 20;
/// Each further writer leaves smaller segments, and small ones are soon combined, so only one comes early.
const WRITER_BYTES_MIN: u64 = 64 << 20;
const SECOND_WRITER_BYTES_MIN: u64 = 16 << 20;
const RECORD_UNITS_BITS: u32 = 27;

/// The parts of a sidecar entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SidecarEntry {
    pub(crate) shard: usize,
    pub(crate) fingerprint: u32,
    pub(crate) units: u64,
}

impl SidecarEntry {
    pub(crate) fn encode(self) -> u64 {
        (self.shard as u64) << 56 | u64::from(self.fingerprint) << RECORD_UNITS_BITS | self.units
    }

    pub(crate) fn decode(number: u64) -> SidecarEntry {
        SidecarEntry {
            shard: usize::from((number >> 56) as u8),
            fingerprint: (number >> RECORD_UNITS_BITS & 0x1fff_ffff) as u32,
            units: number & ((1 << RECORD_UNITS_BITS) - 1),
        }
    }
}

/// The sizes of what a checkpoint writes. Tests use smaller ones.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) segment_units_max: u64,
    pub(crate) buffer_bytes: usize,
    /// Bytes of each writer, a separate thread with files of its own, if there are more than two.
    pub(crate) writer_bytes_min: u64,
    /// Bytes of a checkpoint that justify a second writer.
    pub(crate) second_writer_bytes_min: u64,
}

impl Sizes {
    /// The number of writers for a checkpoint of this size.
    pub(crate) fn writers(&self, bytes: u64, threads: usize) -> usize {
        let early = 1 + usize::from(bytes >= self.second_writer_bytes_min);
        let many = usize::try_from(bytes / self.writer_bytes_min).unwrap_or(usize::MAX);
        early.max(many).clamp(1, threads.max(1))
    }
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            segment_units_max: SEGMENT_UNITS_MAX,
            buffer_bytes: BUFFER_BYTES,
            writer_bytes_min: WRITER_BYTES_MIN,
            second_writer_bytes_min: SECOND_WRITER_BYTES_MIN,
        }
    }
}

/// Where a writer writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) disk: &'a dyn Disk,
    pub(crate) dir: &'a Path,
    /// The list that readers use.
    pub(crate) segments: &'a RwLock<Segments>,
    pub(crate) store: u64,
    pub(crate) sequence: u64,
    pub(crate) next_file: &'a AtomicU64,
}

#[derive(Debug)]
pub(crate) struct SegmentWriter<'a> {
    target: Target<'a>,
    sizes: Sizes,
    /// The units of the next segments.
    units: Range<u64>,
    current: Option<Current>,
    finished: Vec<SegmentInfo>,
}

#[derive(Debug)]
struct Current {
    file: Box<dyn AppendFile>,
    sidecar: SectionsWriter,
    section: Option<usize>,
    /// What was written so far.
    info: SegmentInfo,
    segment: Arc<Segment>,
    /// Whether bytes were written since the disk was last asked to take them.
    is_dirty: bool,
}

impl<'a> SegmentWriter<'a> {
    /// The segments get units of this range, which must be large enough.
    pub(crate) fn new(target: Target<'a>, sizes: Sizes, units: Range<u64>) -> SegmentWriter<'a> {
        SegmentWriter { target, sizes, units, current: None, finished: Vec::new() }
    }

    /// Creates the next segment, if none is being written. No lock may be held, because this waits for the disk.
    pub(crate) fn prepare(&mut self) -> Result<(), CoinsError> {
        if self.current.is_none() {
            let target = self.target;
            let number = target.next_file.fetch_add(1, Ordering::Relaxed);
            let id = FileId { store: target.store, kind: Kind::Segment, number };
            let (path, file) = id.create(target.disk, target.dir)?;
            let sidecar = SectionsWriter::create(target.disk, target.dir, FileId { kind: Kind::Sidecar, ..id })?;
            let info = SegmentInfo {
                number,
                sequence: target.sequence,
                base: self.units.start,
                units: HEADER_UNITS,
                records: 0,
                live: 0,
                sidecar: SectionsInfo::default(),
            };
            let all_units = SegmentInfo { units: self.units.end - self.units.start, ..info };
            let segment = Arc::new(Segment::growing(all_units, path, id.header().to_vec()));
            target.share(|segments| segments.with(&segment));
            self.current = Some(Current { file, sidecar, section: None, info, segment, is_dirty: false });
        }
        Ok(())
    }

    /// The segment that is being written. [`SegmentWriter::push`] needs what its [`Segment::grow`] returns.
    pub(crate) fn segment(&self) -> Option<Arc<Segment>> {
        self.current.as_ref().map(|current| Arc::clone(&current.segment))
    }

    /// Writes a coin of a partition. Returns the unit of its record.
    pub(crate) fn push(
        &mut self,
        growing: &mut Growing,
        place: (usize, usize),
        fingerprint: u32,
        outpoint: &[u8],
        coin: &[u8],
    ) -> Result<u64, CoinsError> {
        let (partition, shard) = place;
        let current = match &mut self.current {
            Some(current) => current,
            None => unreachable!("a coin to be written, and no segment was prepared"),
        };
        let unit = current.info.end();
        let units = encode_record(unit, outpoint, coin, &mut growing.tail);
        if units >> RECORD_UNITS_BITS > 0 || unit + units >= UNITS_MAX {
            return Err(CoinsError::Full { path: self.target.dir.to_owned() });
        }
        assert!(unit + units <= self.units.end, "a segment has more units than were reserved for it");
        if current.section != Some(partition) {
            current.section = Some(partition);
            current.sidecar.set_first(partition, unit);
        }
        current.sidecar.push(partition, SidecarEntry { shard, fingerprint, units }.encode())?;
        current.info.units += units;
        current.info.records += 1;
        if growing.tail.len() >= self.sizes.buffer_bytes {
            growing.flush(self.target.disk, current.segment.path(), current.file.as_mut())?;
            current.is_dirty = true;
        }
        Ok(unit)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.target.dir
    }

    /// The unit after the last record that was written.
    pub(crate) fn next_unit(&self) -> u64 {
        self.current.as_ref().map_or(self.units.start, |current| current.info.end())
    }

    /// Marks the end of a shard, where a segment may end. No lock may be held.
    pub(crate) fn end_shard(&mut self) -> Result<(), CoinsError> {
        if let Some(current) = self.current.as_mut().filter(|current| current.is_dirty) {
            // The disk writes while the next shards are encoded.
            current.file.write_back();
            current.is_dirty = false;
        }
        match &self.current {
            Some(current) if current.info.units >= self.sizes.segment_units_max => self.end_segment(),
            _ => Ok(()),
        }
    }

    /// Returns the segments that were written, all durable and in the shared list.
    pub(crate) fn finish(mut self) -> Result<Vec<SegmentInfo>, CoinsError> {
        self.end_segment()?;
        Ok(self.finished)
    }

    fn end_segment(&mut self) -> Result<(), CoinsError> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        let target = self.target;
        if current.info.records == 0 {
            let number = current.info.number;
            target.share(|segments| segments.without(number));
            for kind in [Kind::Segment, Kind::Sidecar] {
                // A file that remains is removed when the store is opened next.
                let path = FileId { store: target.store, kind, number }.path(target.dir);
                let _ = own(target.dir).remove(target.disk, &path);
            }
            return Ok(());
        }
        current.segment.grow().flush(target.disk, current.segment.path(), current.file.as_mut())?;
        current.file.sync()?;
        current.info.sidecar = current.sidecar.finish()?;
        current.info.live = current.info.records;
        self.units.start = current.info.end();
        let segment = Arc::new(Segment::open(target.disk, target.dir, target.store, current.info)?);
        target.share(|segments| segments.with(&segment));
        self.finished.push(current.info);
        Ok(())
    }
}

impl Target<'_> {
    /// Changes the list that readers use.
    fn share(&self, change: impl FnOnce(&Segments) -> Segments) {
        let mut segments = self.segments.write().ignore_poison();
        *segments = change(&segments);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_writer_comes_early_and_further_ones_late() {
        let writers = |mib: u64, threads| Sizes::default().writers(mib << 20, threads);
        assert_eq!([0, 15, 16, 191, 192, 255, 256].map(|mib| writers(mib, 16)), [1, 1, 2, 2, 3, 3, 4]);
        assert_eq!([0, 15, 16, 4_000].map(|mib| writers(mib, 2)), [1, 1, 2, 2]);
        assert_eq!([writers(4_000, 1), writers(4_000, 0), writers(4_000, 16)], [1, 1, 16]);
    }

    #[test]
    fn numbers_of_sidecars_come_back() {
        let entry = SidecarEntry { shard: 255, fingerprint: (1 << 29) - 1, units: (1 << RECORD_UNITS_BITS) - 1 };
        assert_eq!(SidecarEntry::decode(entry.encode()), entry);
        let entry = SidecarEntry { shard: 1, fingerprint: 2, units: 3 };
        assert_eq!(SidecarEntry::decode(entry.encode()), entry);
    }
}
