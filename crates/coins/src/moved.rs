//! Finds the live records of the segments that a checkpoint rewrites in a store with little memory, where no index in
//! memory names them. Input: the sidecars of these segments, and the deaths in memory (`old`). Output: the records of
//! one shard after another, each with its fingerprint, in index order.
//!
//! Cost: 8 bytes read for each record of these segments; 256 KiB of memory for each of them.

use crate::error::CoinsError;
use crate::manifest::{Manifest, SegmentInfo};
use crate::old::Old;
use crate::rewrite::Victims;
use crate::sections::{FileId, Kind, Numbers, Sections};
use crate::store::Coins;
use crate::writer::SidecarEntry;

/// The sidecars of the segments that are rewritten, open for reading.
#[derive(Debug, Default)]
pub(crate) struct Sidecars(Vec<(SegmentInfo, Sections)>);

/// A live record to be moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MovedRecord {
    pub(crate) fingerprint: u32,
    pub(crate) unit: u64,
}

/// The records of a partition that are to be moved.
pub(crate) struct MovedRecords<'a>(Vec<Stream<'a>>);

/// The records of one segment and partition.
struct Stream<'a> {
    segment: &'a SegmentInfo,
    numbers: Numbers<'a>,
    /// The unit and the number of the next record.
    unit: u64,
    record: u64,
    next: Option<SidecarEntry>,
}

impl Sidecars {
    pub(crate) fn open(coins: &Coins, manifest: &Manifest, victims: &Victims) -> Result<Sidecars, CoinsError> {
        let store = manifest.store_id();
        let open = |info: &SegmentInfo| {
            let id = FileId { store, kind: Kind::Sidecar, number: info.number };
            Ok((*info, Sections::open(coins.disk.as_ref(), &coins.dir, id, info.sidecar)?))
        };
        let moved = manifest.segments.iter().filter(|info| victims.contain(info.base));
        Ok(Sidecars(moved.map(open).collect::<Result<_, CoinsError>>()?))
    }

    pub(crate) fn records(&self, partition: usize) -> Result<MovedRecords<'_>, CoinsError> {
        let mut streams = Vec::new();
        for (segment, sidecar) in &self.0 {
            let (numbers, unit) = (sidecar.numbers(partition), sidecar.section(partition).first);
            let mut stream = Stream { segment, numbers, unit, record: 0, next: None };
            stream.read()?;
            streams.push(stream);
        }
        Ok(MovedRecords(streams))
    }
}

impl MovedRecords<'_> {
    /// The records of a shard. The shards must be asked for in their order.
    pub(crate) fn of_shard(&mut self, shard: usize, old: &Old) -> Result<Vec<MovedRecord>, CoinsError> {
        let mut records = Vec::new();
        for stream in &mut self.0 {
            let Some(part) = old.part_of_segment(stream.segment.number) else { continue };
            while let Some(entry) = stream.next.filter(|entry| entry.shard == shard) {
                let Some(is_dead) = part.is_dead(stream.record) else {
                    return Err(stream.numbers.damaged("more entries than when the store was opened"));
                };
                if !is_dead {
                    records.push(MovedRecord { fingerprint: entry.fingerprint, unit: stream.unit });
                }
                stream.unit += entry.units;
                stream.record += 1;
                stream.read()?;
            }
        }
        records.sort_by_key(|record| record.fingerprint);
        Ok(records)
    }
}

impl Stream<'_> {
    fn read(&mut self) -> Result<(), CoinsError> {
        self.next = self.numbers.next()?.map(SidecarEntry::decode);
        match self.next {
            Some(entry) if self.unit.saturating_add(entry.units) > self.segment.end() => {
                Err(self.numbers.damaged("an entry beyond its segment"))
            }
            _ => Ok(()),
        }
    }
}
