//! [`Live`]: the records of live coins, by the sidecars minus the deaths. Input: a manifest and its files. Output: the
//! unit of each live record, with its sidecar entry.
//!
//! In sidecars and death files the records of a partition are in the order of their units, so they are merged. Every
//! count is compared with the manifest, and an error names the damaged file. The files stay open: what is read does not
//! depend on their names. Cost: 8 bytes read for each record and death; 256 KiB of memory for one sidecar and for each
//! death file (at most about 20, since similar ones are merged). Records are not read.

use crate::error::CoinsError;
use crate::manifest::{Manifest, SegmentInfo, is_of_any};
use crate::sections::{FileId, Kind, Numbers, Sections, SectionsInfo};
use crate::writer::{HEADER_UNITS, SidecarEntry};
use lydian_disk::Disk;
use std::ops::ControlFlow;
use std::path::Path;

/// The sidecars and death files of a manifest, open for reading.
#[derive(Debug)]
pub(crate) struct Live {
    segments: Vec<SegmentInfo>,
    sidecars: Vec<Sections>,
    /// Each with the checkpoint that wrote it.
    deaths: Vec<(u64, Sections)>,
}

impl Live {
    pub(crate) fn open(disk: &dyn Disk, dir: &Path, manifest: &Manifest) -> Result<Live, CoinsError> {
        let store = manifest.store_id();
        let mut live = Live { segments: manifest.segments.clone(), sidecars: Vec::new(), deaths: Vec::new() };
        for info in &manifest.segments {
            let id = FileId { store, kind: Kind::Sidecar, number: info.number };
            live.sidecars.push(open_counted(disk, dir, id, info.sidecar, info.records)?);
        }
        for info in &manifest.deaths {
            let id = FileId { store, kind: Kind::Deaths, number: info.number };
            live.deaths.push((info.sequence, open_counted(disk, dir, id, info.file, info.count)?));
        }
        Ok(live)
    }

    /// Visits the live records of a partition in the order of their units, until a visit breaks. The first argument is
    /// the index of the segment in the manifest.
    pub(crate) fn each<B>(
        &self,
        partition: usize,
        mut visit: impl FnMut(usize, u64, SidecarEntry) -> Result<ControlFlow<B>, CoinsError>,
    ) -> Result<ControlFlow<B>, CoinsError> {
        self.each_record(
            partition,
            |place, unit, entry, is_dead| {
                if is_dead { Ok(ControlFlow::Continue(())) } else { visit(place, unit, entry) }
            },
        )
    }

    /// Like [`Live::each`], with the dead records too. The last argument is whether the record is dead.
    pub(crate) fn each_record<B>(
        &self,
        partition: usize,
        mut visit: impl FnMut(usize, u64, SidecarEntry, bool) -> Result<ControlFlow<B>, CoinsError>,
    ) -> Result<ControlFlow<B>, CoinsError> {
        let mut deaths = Deaths::new(self, partition)?;
        for (place, (info, sidecar)) in self.segments.iter().zip(&self.sidecars).enumerate() {
            let section = sidecar.section(partition);
            if section.count > 0 && section.first < info.base + HEADER_UNITS {
                return Err(CoinsError::damaged(sidecar.path(), 0, "a section starts before its segment"));
            }
            let (mut unit, mut last) = (section.first, 0);
            let mut numbers = sidecar.numbers(partition);
            while let Some(bits) = numbers.next()? {
                let entry = SidecarEntry::decode(bits);
                if bits >> 27 < last || entry.units == 0 || unit.saturating_add(entry.units) > info.end() {
                    return Err(numbers.damaged("an entry out of order or beyond its segment"));
                }
                let is_dead = deaths.first == unit;
                if is_dead {
                    deaths.advance()?;
                }
                if let ControlFlow::Break(value) = visit(place, unit, entry, is_dead)? {
                    return Ok(ControlFlow::Break(value));
                }
                unit += entry.units;
                last = bits >> 27;
            }
        }
        deaths.finish()?;
        Ok(ControlFlow::Continue(()))
    }
}

fn open_counted(
    disk: &dyn Disk,
    dir: &Path,
    id: FileId,
    info: SectionsInfo,
    count: u64,
) -> Result<Sections, CoinsError> {
    let sections = Sections::open(disk, dir, id, info)?;
    if sections.count() == count {
        Ok(sections)
    } else {
        Err(CoinsError::damaged(sections.path(), info.bytes, "the number of entries differs from the manifest"))
    }
}

/// The deaths of a partition, merged from all files. Those that refer to removed segments are skipped.
struct Deaths<'a> {
    /// The lowest unit, or `u64::MAX` at the end.
    first: u64,
    files: Vec<DeathFile<'a>>,
    segments: &'a [SegmentInfo],
}

struct DeathFile<'a> {
    first: u64,
    sequence: u64,
    numbers: Numbers<'a>,
}

impl<'a> Deaths<'a> {
    fn new(live: &'a Live, partition: usize) -> Result<Deaths<'a>, CoinsError> {
        let mut deaths = Deaths { first: u64::MAX, files: Vec::new(), segments: &live.segments };
        for (sequence, file) in &live.deaths {
            let mut file = DeathFile { first: 0, sequence: *sequence, numbers: file.numbers(partition) };
            file.advance(deaths.segments)?;
            deaths.first = deaths.first.min(file.first);
            deaths.files.push(file);
        }
        Ok(deaths)
    }

    /// Removes the lowest unit.
    fn advance(&mut self) -> Result<(), CoinsError> {
        if let Some(file) = self.files.iter_mut().find(|file| file.first == self.first) {
            file.advance(self.segments)?;
        }
        self.first = self.files.iter().map(|file| file.first).min().unwrap_or(u64::MAX);
        Ok(())
    }

    fn finish(&self) -> Result<(), CoinsError> {
        match self.files.iter().find(|file| file.first != u64::MAX) {
            None => Ok(()),
            Some(file) => Err(CoinsError::damaged(file.numbers.path(), 0, "the death of a coin that is in no segment")),
        }
    }
}

impl DeathFile<'_> {
    fn advance(&mut self, segments: &[SegmentInfo]) -> Result<(), CoinsError> {
        self.first = u64::MAX;
        while let Some(death) = self.numbers.next()? {
            if is_of_any(segments, death, self.sequence) {
                self.first = death;
                break;
            }
        }
        Ok(())
    }
}
