//! [`Segments`]: the files of records, and reading from them. Input: units; output: records, their checksums compared.
//!
//! All segments share one space of units; a segment has a range of it, so 34 bits name a record. Cost: a read of 128 bytes a record, which is enough for all
//! usual ones; the reads of a batch are handed to the disk together, file by file, after those of the files behind were asked for. A segment is never changed. It must never give a record that is not the one asked for.

use crate::entry::index;
use crate::error::CoinsError;
use crate::manifest::SegmentInfo;
use crate::record::{Record, RecordError, UNIT_BYTES, parse_record};
use crate::sections::{FileId, Kind};
use lydian_disk::{Disk, ReadFile, ReadRequest};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read for a record at first.
const READ_BYTES: u64 = 128;

/// One file of records, open.
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
            return Err(CoinsError::damaged(&path, offset, "the file has another size than the manifest says"));
        }
        id.check(&path, file.as_ref())?;
        Ok(Segment { info, path, file })
    }

    fn offset(&self, unit: u64) -> u64 {
        (unit - self.info.base) * UNIT_BYTES as u64
    }

    /// Bytes from `unit` on, at most `size_max`; fewer at the end of the file.
    pub(crate) fn bytes(&self, unit: u64, size_max: u64) -> Result<Vec<u8>, CoinsError> {
        let offset = self.offset(unit);
        let mut bytes = vec![0; index(size_max.min(self.file.size() - offset))];
        self.file.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads the record at `unit` from bytes that may end too early; reads what is missing.
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
                        RecordError::Checksum => "the checksum of a record differs",
                        _ => "a record that cannot be read",
                    };
                    return Err(CoinsError::damaged(&self.path, self.offset(unit), what));
                }
            }
        }
    }
}

/// All segments, ordered by their units. A clone is cheap.
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

    /// The place of the segment that a unit lies in.
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

    /// Reads records, ordered by unit; says to `visit` which of `wanted` it has.
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

    /// Has the system fetch the records of all files but the first, so that a disk has the whole batch under way: a `read_many` is of one file.
    fn prefetch<K>(&self, wanted: &[(u64, K)]) {
        let first_end = wanted.first().map_or(0, |(unit, _)| self.segment_of(*unit).info.end());
        for (unit, _) in &wanted[wanted.partition_point(|(unit, _)| *unit < first_end)..] {
            let segment = self.segment_of(*unit);
            segment.file.prefetch(segment.offset(*unit), READ_BYTES);
        }
    }

    /// The place of the segment of a unit that the index names.
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
