//! [`SegmentWriter`]: writes records to segments and their sidecars. Input: coins in index order. Output: synced files,
//! and their data for the manifest.
//!
//! A segment ends at the end of a shard once it is large, and another one is started. A sidecar entry is `shard 8 |
//! fingerprint 29 | units of the record 27`; the location of a record follows from the entries before it. Cost: 1 MiB
//! of memory, and each byte is written once. A file is created only when there is something to write.

use crate::entry::UNITS_MAX;
use crate::error::CoinsError;
use crate::manifest::SegmentInfo;
use crate::record::{UNIT_BYTES, encode_record};
use crate::sections::{FileId, HEADER_BYTES, Kind, SectionsInfo, SectionsWriter};
use lydian_disk::{AppendFile, Disk};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum size at which a segment ends: 512 MiB.
pub(crate) const SEGMENT_UNITS_MAX: u64 = 1 << 26;
/// Size of a file header in units.
pub(crate) const HEADER_UNITS: u64 = (HEADER_BYTES / UNIT_BYTES) as u64;
const BUFFER_BYTES: usize = 1 << 20;
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

#[derive(Debug)]
pub(crate) struct SegmentWriter<'a> {
    disk: &'a dyn Disk,
    dir: &'a Path,
    store: u64,
    sequence: u64,
    next_file: &'a AtomicU64,
    /// The first unit of the next segment.
    base: u64,
    current: Option<Current>,
    finished: Vec<SegmentInfo>,
}

#[derive(Debug)]
struct Current {
    file: Box<dyn AppendFile>,
    buffer: Vec<u8>,
    sidecar: SectionsWriter,
    section: Option<usize>,
    info: SegmentInfo,
}

impl<'a> SegmentWriter<'a> {
    pub(crate) fn new(
        disk: &'a dyn Disk,
        dir: &'a Path,
        store: u64,
        sequence: u64,
        next_file: &'a AtomicU64,
        base: u64,
    ) -> SegmentWriter<'a> {
        SegmentWriter { disk, dir, store, sequence, next_file, base, current: None, finished: Vec::new() }
    }

    /// Writes a coin of a partition. Returns the unit of its record.
    pub(crate) fn push(
        &mut self,
        partition: usize,
        shard: usize,
        fingerprint: u32,
        outpoint: &[u8],
        coin: &[u8],
    ) -> Result<u64, CoinsError> {
        let current = match &mut self.current {
            Some(current) => current,
            None => {
                let created = self.create()?;
                self.current.insert(created)
            }
        };
        let unit = current.info.end();
        let units = encode_record(unit, outpoint, coin, &mut current.buffer);
        if units >> RECORD_UNITS_BITS > 0 || unit + units >= UNITS_MAX {
            return Err(CoinsError::Full { path: self.dir.to_owned() });
        }
        if current.section != Some(partition) {
            current.section = Some(partition);
            current.sidecar.set_first(partition, unit);
        }
        current.sidecar.push(partition, SidecarEntry { shard, fingerprint, units }.encode())?;
        current.info.units += units;
        current.info.records += 1;
        if current.buffer.len() >= BUFFER_BYTES {
            current.file.write(&current.buffer)?;
            current.buffer.clear();
        }
        Ok(unit)
    }

    /// Marks the end of a shard, where a segment may end.
    pub(crate) fn end_shard(&mut self) -> Result<(), CoinsError> {
        match &self.current {
            Some(current) if current.info.units >= SEGMENT_UNITS_MAX => self.end_segment(),
            _ => Ok(()),
        }
    }

    /// Returns the segments that were written, all durable.
    pub(crate) fn finish(mut self) -> Result<Vec<SegmentInfo>, CoinsError> {
        self.end_segment()?;
        Ok(self.finished)
    }

    fn create(&mut self) -> Result<Current, CoinsError> {
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        let id = FileId { store: self.store, kind: Kind::Segment, number };
        let (_, file) = id.create(self.disk, self.dir)?;
        let sidecar = SectionsWriter::create(self.disk, self.dir, FileId { kind: Kind::Sidecar, ..id })?;
        let info = SegmentInfo {
            number,
            sequence: self.sequence,
            base: self.base,
            units: HEADER_UNITS,
            records: 0,
            live: 0,
            sidecar: SectionsInfo::default(),
        };
        Ok(Current { file, buffer: id.header().to_vec(), sidecar, section: None, info })
    }

    fn end_segment(&mut self) -> Result<(), CoinsError> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        current.file.write(&current.buffer)?;
        current.file.sync()?;
        current.info.sidecar = current.sidecar.finish()?;
        current.info.live = current.info.records;
        self.base = current.info.end();
        self.finished.push(current.info);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_sidecars_come_back() {
        let entry = SidecarEntry { shard: 255, fingerprint: (1 << 29) - 1, units: (1 << RECORD_UNITS_BITS) - 1 };
        assert_eq!(SidecarEntry::decode(entry.encode()), entry);
        let entry = SidecarEntry { shard: 1, fingerprint: 2, units: 3 };
        assert_eq!(SidecarEntry::decode(entry.encode()), entry);
    }
}
