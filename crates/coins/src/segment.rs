//! [`Segments`]: the files of records, and reading from them. Input: units. Output: records with verified checksums.
//!
//! All segments share one address space of units. Each segment has a range of it, so 34 bits identify a record. Cost:
//! one read of 128 bytes per record, which is enough for all typical ones. The reads of a batch are submitted to the
//! disk together, file by file, after prefetching those of the later files. A finished segment is never changed. A read
//! must never return a record other than the requested one.
//!
//! A checkpoint also adds the segments that it is writing, so that their records are readable at once: the last ones
//! are in the writer's buffer, the others in the file. A list of segments that was cloned while the lock of a partition
//! was held has every unit in that partition's index. It stays readable after later checkpoints have removed the files,
//! because they are open.

use crate::entry::index;
use crate::error::CoinsError;
use crate::gate::Gate;
use crate::manifest::{Manifest, SegmentInfo};
use crate::old::Wanted;
use crate::record::{Record, RecordError, UNIT_BYTES, parse_record};
use crate::sections::{FileId, Kind};
use lydian_disk::{AppendFile, Disk, ReadFile, ReadRequest};
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard};

/// A callback for what was read.
type VisitBytes<'a, W> = &'a mut dyn FnMut(&Segment, &W, &[u8]) -> Result<(), CoinsError>;

/// Bytes of the first read for a record.
const READ_BYTES: u64 = 128;

/// A segment, open for reading.
#[derive(Debug)]
pub(crate) struct Segment {
    /// While it is being written: all units that it may get.
    pub(crate) info: SegmentInfo,
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Finished(Box<dyn ReadFile>),
    Growing(Gate<Growing>),
}

/// The content of a segment that is being written. Each record is either in the file or in the tail.
#[derive(Debug)]
pub(crate) struct Growing {
    /// Bytes that are not in the file yet.
    pub(crate) tail: Vec<u8>,
    /// The file, once it has any bytes, with the size that it has now.
    file: Option<Arc<dyn ReadFile>>,
}

impl Growing {
    fn file_size(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.size())
    }

    /// Writes the tail to the end of the file. After a failure it is still there.
    pub(crate) fn flush(&mut self, disk: &dyn Disk, path: &Path, file: &mut dyn AppendFile) -> Result<(), CoinsError> {
        file.write(&self.tail)?;
        self.file = Some(disk.open(path)?.into());
        self.tail.clear();
        Ok(())
    }
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
        Ok(Segment { info, path, content: Content::Finished(file) })
    }

    /// A segment that is being written, with the first bytes of its file, which are not written yet.
    pub(crate) fn growing(info: SegmentInfo, path: PathBuf, tail: Vec<u8>) -> Segment {
        Segment { info, path, content: Content::Growing(Gate::new(Growing { tail, file: None })) }
    }

    /// The content of a segment that is being written, for its writer. Readers of its records wait meanwhile.
    pub(crate) fn grow(&self) -> MutexGuard<'_, Growing> {
        match &self.content {
            Content::Growing(growing) => growing.lock_after_others(),
            Content::Finished(_) => unreachable!("a finished segment is never changed"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn offset(&self, unit: u64) -> u64 {
        (unit - self.info.base) * UNIT_BYTES as u64
    }

    /// Reads at most `size_max` bytes from `unit` on; fewer at the end of the file.
    pub(crate) fn bytes(&self, unit: u64, size_max: u64) -> Result<Vec<u8>, CoinsError> {
        let mut bytes = Vec::new();
        self.read_into(unit, size_max, &mut bytes)?;
        Ok(bytes)
    }

    /// Like [`Segment::bytes`], into a buffer whose content is replaced.
    pub(crate) fn read_into(&self, unit: u64, size_max: u64, bytes: &mut Vec<u8>) -> Result<(), CoinsError> {
        let offset = self.offset(unit);
        let growing_file;
        let file = match &self.content {
            Content::Finished(file) => file.as_ref(),
            Content::Growing(growing) => {
                let growing = growing.lock();
                match &growing.file {
                    Some(file) if offset < file.size() => growing_file = Arc::clone(file),
                    _ => {
                        let tail = &growing.tail[index(offset - growing.file_size())..];
                        bytes.clear();
                        bytes.extend_from_slice(&tail[..tail.len().min(index(size_max))]);
                        return Ok(());
                    }
                }
                growing_file.as_ref()
            }
        };
        bytes.resize(index(size_max.min(file.size() - offset)), 0);
        Ok(file.read_at(offset, bytes)?)
    }

    /// Like [`Segment::bytes`], for a segment that may be growing: as many bytes as were requested, whether they are in
    /// the file or not, unless the segment ends before.
    fn growing_bytes(&self, unit: u64, size: u64) -> Result<Vec<u8>, CoinsError> {
        let mut bytes = self.bytes(unit, size)?;
        // The file may end inside the range, at the end of a record.
        while (bytes.len() as u64) < size {
            let next = unit + (bytes.len() / UNIT_BYTES) as u64;
            if self.bytes_from(next) == 0 {
                break;
            }
            bytes.extend(self.bytes(next, size - bytes.len() as u64)?);
        }
        Ok(bytes)
    }

    /// Visits the records of a group, with the unit of each and its number in the group, until `visit` returns true.
    /// `bytes` are those of the whole group.
    fn each_record(
        &self,
        group: &Wanted,
        bytes: &[u8],
        visit: &mut dyn FnMut(u64, u32, Record<'_>) -> bool,
    ) -> Result<(), CoinsError> {
        let (mut unit, mut rest) = (group.start, bytes);
        for number in 0.. {
            let damaged = |what| Err(CoinsError::damaged(&self.path, self.offset(unit), what));
            if rest.is_empty() {
                return if number == group.records { Ok(()) } else { damaged("fewer records than the sidecar has") };
            }
            let record = match parse_record(unit, rest) {
                _ if number == group.records => return damaged("more records than the sidecar has"),
                Ok(record) => record,
                Err(RecordError::Checksum) => return damaged("the checksum of a record is wrong"),
                Err(_) => return damaged("a record that cannot be read"),
            };
            if visit(unit, number, record) {
                break;
            }
            unit += record.units;
            rest = &rest[index(record.units) * UNIT_BYTES..];
        }
        Ok(())
    }

    /// Number of bytes that can be read from `unit` on, at least those of its record.
    fn bytes_from(&self, unit: u64) -> u64 {
        let offset = self.offset(unit);
        match &self.content {
            Content::Finished(file) => file.size() - offset,
            Content::Growing(growing) => {
                let growing = growing.lock();
                let written = growing.file_size();
                (if offset < written { written } else { written + growing.tail.len() as u64 }) - offset
            }
        }
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
                Err(RecordError::Incomplete { size_min }) if size_min <= self.bytes_from(unit) => {
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

    /// This list with a further segment, instead of the one with its number if there is one.
    pub(crate) fn with(&self, segment: &Arc<Segment>) -> Segments {
        let others = self.0.iter().filter(|other| other.info.number != segment.info.number);
        Segments::new(others.chain([segment]).cloned().collect())
    }

    /// This list without the segment with a number.
    pub(crate) fn without(&self, number: u64) -> Segments {
        Segments(self.0.iter().filter(|segment| segment.info.number != number).cloned().collect())
    }

    /// The segments of a manifest, in its order. All of them are in this list.
    pub(crate) fn of(&self, manifest: &Manifest) -> Segments {
        let is_named = |segment: &&Arc<Segment>| {
            let place = manifest.segments.partition_point(|info| info.base < segment.info.base);
            manifest.segments.get(place).is_some_and(|info| info.number == segment.info.number)
        };
        let segments: Arc<[_]> = self.0.iter().filter(is_named).cloned().collect();
        assert_eq!(segments.len(), manifest.segments.len(), "a segment of the manifest is not open");
        Segments(segments)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.0.iter()
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
        self.read_each(wanted, &|(unit, _)| (*unit, READ_BYTES), &mut |segment, (unit, key), bytes| {
            segment.with_record(*unit, bytes, |record| visit(key, record))
        })
    }

    /// Reads the records of groups, which must be ordered by unit. Calls `visit` with each record, its unit and its
    /// number in the group, until it returns true.
    pub(crate) fn read_groups(
        &self,
        wanted: &[Wanted],
        visit: &mut dyn FnMut(&Wanted, u64, u32, Record<'_>) -> bool,
    ) -> Result<(), CoinsError> {
        let units = |group: &Wanted| (group.start, (group.end - group.start) * UNIT_BYTES as u64);
        self.read_each(wanted, &units, &mut |segment, group, bytes| {
            segment.each_record(group, bytes, &mut |unit, number, record| visit(group, unit, number, record))
        })
    }

    /// Reads the bytes of each of `wanted`, which must be ordered by unit. `range_of` returns its unit and the number
    /// of bytes to read; fewer are read at the end of a segment.
    fn read_each<W>(
        &self,
        wanted: &[W],
        range_of: &dyn Fn(&W) -> (u64, u64),
        visit: VisitBytes<'_, W>,
    ) -> Result<(), CoinsError> {
        self.prefetch(wanted, range_of);
        let mut rest = wanted;
        while let Some(first) = rest.first() {
            let segment = self.segment_of(range_of(first).0);
            let count = rest.partition_point(|one| range_of(one).0 < segment.info.end());
            let (these, others) = rest.split_at(count);
            rest = others;
            let Content::Finished(file) = &segment.content else {
                for one in these {
                    let (unit, size) = range_of(one);
                    visit(segment, one, &segment.growing_bytes(unit, size)?)?;
                }
                continue;
            };
            let ranges = || {
                these.iter().map(|one| {
                    let (unit, size) = range_of(one);
                    let offset = segment.offset(unit);
                    (offset, size.min(file.size() - offset))
                })
            };
            let mut bytes = vec![0; index(ranges().map(|(_, size)| size).sum())];
            let mut requests = Vec::with_capacity(count);
            let mut tail = &mut bytes[..];
            for (offset, size) in ranges() {
                let (buffer, left) = tail.split_at_mut(index(size));
                requests.push(ReadRequest { offset, buffer });
                tail = left;
            }
            file.read_many(&mut requests)?;
            for (one, request) in these.iter().zip(&requests) {
                visit(segment, one, request.buffer)?;
            }
        }
        Ok(())
    }

    /// Prefetches what is in all files but the first, so that the disk works on the whole batch at once: a `read_many`
    /// covers only one file.
    fn prefetch<W>(&self, wanted: &[W], range_of: &dyn Fn(&W) -> (u64, u64)) {
        let first_end = wanted.first().map_or(0, |one| self.segment_of(range_of(one).0).info.end());
        for one in &wanted[wanted.partition_point(|one| range_of(one).0 < first_end)..] {
            let (unit, size) = range_of(one);
            let segment = self.segment_of(unit);
            if let Content::Finished(file) = &segment.content {
                file.prefetch(segment.offset(unit), size);
            }
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
