//! [`Segments`]: the files of records, and reading from them. Input: units. Output: records with verified checksums.
//!
//! All segments share one address space of units. Each segment has a range of it, so 34 bits identify a record. Cost:
//! one read of 128 bytes per record, which is enough for all typical ones. The reads of a batch are submitted to the
//! disk together, file by file, after prefetching those of the later files. A segment is never changed. A read must
//! never return a record other than the requested one.

use crate::entry::index;
use crate::error::CoinsError;
use crate::manifest::SegmentInfo;
use crate::record::{Record, RecordError, UNIT_BYTES, parse_record};
use crate::sections::{FileId, Kind};
use lydian_disk::{Disk, ReadFile, ReadRequest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of the first read for a record.
const READ_BYTES: u64 = 128;

/// An open segment file.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) info: SegmentInfo,
    path: PathBuf,
    file: Box<dyn ReadFile>,
}

impl Segment {
    pub(crate) fn open(disk: &dyn Disk, dir: &Path, store: u64, info: SegmentInfo) -> Result<Segment, CoinsError> {
        let id = FileId { store, kind: Kind::Segment, number: info.number };
        let path = id.path(dir);
        let file = disk.open(&path)?;
        if file.size() != info.units * UNIT_BYTES as u64 {
            let offset = file.size().min(info.units * UNIT_BYTES as u64);
            return Err(CoinsError::damaged(&path, offset, "the file size differs from the manifest"));
        }
        id.check(&path, file.as_ref())?;
        Ok(Segment { info, path, file })
    }

    fn offset(&self, unit: u64) -> u64 {
        (unit - self.info.base) * UNIT_BYTES as u64
    }

    /// Reads at most `size_max` bytes from `unit` on; fewer at the end of the file.
    pub(crate) fn bytes(&self, unit: u64, size_max: u64) -> Result<Vec<u8>, CoinsError> {
        let offset = self.offset(unit);
        let mut bytes = vec![0; index(size_max.min(self.file.size() - offset))];
        self.file.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Parses the record at `unit` from bytes that may be too short, and reads more if necessary.
    pub(crate) fn with_record<T>(
        &self,
        unit: u64,
        bytes: &[u8],
        visit: impl FnOnce(Record<'_>) -> T,
    ) -> Result<T, CoinsError> {
        let mut more = Vec::new();
        loop {
            let bytes = if more.is_empty() { bytes } else { &more };
            match parse_record(unit, bytes) {
                Ok(record) => return Ok(visit(record)),
                Err(RecordError::Incomplete { size_min }) if size_min <= self.file.size() - self.offset(unit) => {
                    more = self.bytes(unit, size_min + READ_BYTES)?;
                }
                Err(error) => {
                    let what = match error {
                        RecordError::Checksum => "the checksum of a record is wrong",
                        _ => "a record that cannot be read",
                    };
                    return Err(CoinsError::damaged(&self.path, self.offset(unit), what));
                }
            }
        }
    }
}

/// All segments, ordered by their units. Cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) struct Segments(Arc<[Arc<Segment>]>);

impl Segments {
    pub(crate) fn new(mut segments: Vec<Arc<Segment>>) -> Segments {
        segments.sort_unstable_by_key(|segment| segment.info.base);
        Segments(segments.into())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Index of the segment that contains a unit.
    pub(crate) fn find(&self, unit: u64) -> Option<usize> {
        let place = self.0.partition_point(|segment| segment.info.end() <= unit);
        self.0.get(place).filter(|segment| segment.info.base <= unit).map(|_| place)
    }

    pub(crate) fn get(&self, place: usize) -> &Segment {
        &self.0[place]
    }

    /// Reads one record.
    pub(crate) fn read<T>(&self, unit: u64, visit: impl FnOnce(Record<'_>) -> T) -> Result<T, CoinsError> {
        let segment = self.segment_of(unit);
        segment.with_record(unit, &segment.bytes(unit, READ_BYTES)?, visit)
    }

    /// Reads records. `wanted` must be ordered by unit. Calls `visit` with the key of each record.
    pub(crate) fn read_many<K>(
        &self,
        wanted: &[(u64, K)],
        visit: &mut dyn FnMut(&K, Record<'_>),
    ) -> Result<(), CoinsError> {
        self.prefetch(wanted);
        let mut rest = wanted;
        while let Some((unit, _)) = rest.first() {
            let segment = self.segment_of(*unit);
            let count = rest.partition_point(|(unit, _)| *unit < segment.info.end());
            let (these, others) = rest.split_at(count);
            rest = others;
            let sizes = || these.iter().map(|(unit, _)| READ_BYTES.min(segment.file.size() - segment.offset(*unit)));
            let mut bytes = vec![0; index(sizes().sum())];
            let mut requests = Vec::with_capacity(count);
            let mut tail = &mut bytes[..];
            for ((unit, _), size) in these.iter().zip(sizes()) {
                let (buffer, left) = tail.split_at_mut(index(size));
                requests.push(ReadRequest { offset: segment.offset(*unit), buffer });
                tail = left;
            }
            segment.file.read_many(&mut requests)?;
            for ((unit, key), request) in these.iter().zip(&requests) {
                segment.with_record(*unit, request.buffer, |record| visit(key, record))?;
            }
        }
        Ok(())
    }

    /// Prefetches the records of all files but the first, so that the disk works on the whole batch at once: a
    /// `read_many` covers only one file.
    fn prefetch<K>(&self, wanted: &[(u64, K)]) {
        let first_end = wanted.first().map_or(0, |(unit, _)| self.segment_of(*unit).info.end());
        for (unit, _) in &wanted[wanted.partition_point(|(unit, _)| *unit < first_end)..] {
            let segment = self.segment_of(*unit);
            segment.file.prefetch(segment.offset(*unit), READ_BYTES);
        }
    }

    /// Index of the segment that contains a unit of the index.
    pub(crate) fn place_of(&self, unit: u64) -> usize {
        match self.find(unit) {
            Some(place) => place,
            None => unreachable!("the index names unit {unit}, which is in no segment"),
        }
    }

    fn segment_of(&self, unit: u64) -> &Segment {
        &self.0[self.place_of(unit)]
    }
}
