//! The checkpoint. Input: the partitions and the last manifest. Output: new files, and the manifest that names them.
//!
//! Files are written in this order, each synced before the next: segments with their sidecars, the death file, the
//! manifest. Only then files are removed that the manifest no longer names. So a crash at any moment leaves either the
//! last manifest or the new one, with all of its files.
//!
//! Coins can be looked up at any moment, but not changed. The pass takes the lock of a partition for one shard at a
//! time, and lets the lookups that wait come first. When it releases the lock, every unit in the index is readable: the
//! segments that are being written are in the list that readers use (`segment`, `writer`), and those that are rewritten
//! are removed from it at the end. So a lookup waits for the work on one shard (about a millisecond), and then possibly
//! for one more if its record is still in the writer's buffer.
//!
//! One pass over the index, in its order, writes the coins that are not yet on disk, moves the live coins of rewritten
//! segments, and drops coins from memory that have become old. Segments are rewritten if more than half of their
//! records are dead, or if there are many small ones; each checkpoint moves at most as many bytes as are new, or a
//! fixed number if that is more, as at the tip. Death files are merged if there are many of them or if most of their
//! entries are obsolete. Cost: one pass over the index (4 GB per second and thread for 180 million coins) and the new
//! bytes. Memory: up to 2 MiB per thread, and a window of 256 KiB per thread for each rewritten segment. After any
//! failure the store is unusable until it is reopened.

use crate::CheckpointReport;
use crate::arena::Arena;
use crate::entry::{AGE_MAX, Entry, Place, SHARDS, UNITS_MAX, index};
use crate::error::CoinsError;
use crate::manifest::{DeathsInfo, Manifest, SegmentInfo, is_of_any};
use crate::moved::{MovedRecord, MovedRecords, Sidecars};
use crate::old::{Added, Old};
use crate::open::own;
use crate::partition::{Partition, in_memory, set_unit, unit_of};
use crate::record::UNIT_BYTES;
use crate::rewrite::{Mover, Victims};
use crate::sections::{FileId, HEADER_BYTES, Kind, Sections, SectionsWriter};
use crate::segment::{Growing, Segment, Segments};
use crate::store::Coins;
use crate::writer::{SegmentWriter, Sizes, Target};
use crate::{PARTITIONS, Tip};
use std::hint::black_box;
use std::ops::Range;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of chunks of the arena that are freed under one lock: 4 MiB.
const TRIMMED_CHUNKS: usize = 64;
/// Number of slots that the pass over the index looks at together.
const WORD: usize = 64;
/// Number of death files of similar size that are merged into one.
const DEATHS_FILES: usize = 8;

/// The decisions of a checkpoint before it starts.
struct Plan {
    victims: Victims,
    eviction: Eviction,
    sequence: u64,
    store: u64,
    next_file: AtomicU64,
    /// Whether there are coins to write.
    writes: bool,
}

/// What tests vary and watch.
#[derive(Clone, Copy)]
pub(crate) struct Manner<'a> {
    pub(crate) sizes: Sizes,
    /// Called after each shard, when no lock is held.
    pub(crate) after_shard: &'a (dyn Fn() + Sync),
}

/// Makes the checkpoint. Returns the manifest that is now on disk, and its segments.
pub(crate) fn run(
    coins: &Coins,
    old: &Manifest,
    segments: &Segments,
    tip: Tip,
    threads: usize,
    manner: Manner<'_>,
) -> Result<(Manifest, Segments, CheckpointReport), CoinsError> {
    let mut segment_infos = old.segments.clone();
    let (mut bytes_by_age, mut new_bytes) = ([0; AGE_MAX + 1], [0; PARTITIONS]);
    let mut deaths: [Vec<u64>; PARTITIONS] = Default::default();
    for ((gate, new_bytes), deaths) in coins.partitions.iter().zip(&mut new_bytes).zip(&mut deaths) {
        {
            let mut partition = gate.lock();
            *deaths = std::mem::take(&mut partition.deaths);
            *new_bytes = partition.bytes_by_age[0];
            bytes_by_age.iter_mut().zip(partition.bytes_by_age).for_each(|(sum, bytes)| *sum += bytes);
        }
        for place in deaths.iter().filter_map(|death| segments.find(*death)) {
            segment_infos[place].live -= 1;
        }
    }
    let all_new = new_bytes.iter().sum::<u64>();
    let victims = Victims::choose(&segment_infos, all_new);
    let plan = Plan {
        eviction: Eviction::new(&bytes_by_age, coins.settings.kept_bytes_max()),
        sequence: old.sequence + 1,
        store: old.store_id(),
        next_file: AtomicU64::new(old.next_file),
        writes: all_new + victims.live_bytes() > 0,
        victims,
    };
    let mut next = Manifest { tip: Some(tip), sequence: plan.sequence, ..old.clone() };
    let writers = manner.sizes.writers(all_new + plan.victims.live_bytes(), threads);
    let segment_units_max = manner.sizes.segment_units_max;
    let ranges = room(&mut next.next_unit, &segment_infos, &plan.victims, &new_bytes, writers, segment_units_max)
        .ok_or_else(|| CoinsError::Full { path: coins.dir.clone() })?;
    let written = write_all(coins, segments, old, &plan, &ranges, manner)?;
    let mut report = CheckpointReport::default();
    let is_kept = |info: &SegmentInfo| !plan.victims.contain(info.base);
    next.segments = segment_infos.into_iter().filter(is_kept).collect();
    for one in written {
        report.coins_written += one.coins_written;
        report.coins_rewritten += one.coins_moved;
        for info in one.segments {
            next.next_unit = next.next_unit.max(info.end());
            report.bytes_written += info.units * UNIT_BYTES as u64 + info.sidecar.bytes;
            next.segments.push(info);
        }
    }
    if next.next_unit >= UNITS_MAX {
        next.next_unit = 1;
    }
    next.segments.sort_unstable_by_key(|info| info.base);
    next.coins = next.segments.iter().map(|info| info.live).sum();
    report.bytes_written += write_deaths(coins, deaths, old, &mut next, &plan)?;
    next.next_file = plan.next_file.load(Ordering::Relaxed);
    let segments = coins.segments().of(&next);
    let bytes = next.encode();
    own(&coins.dir).replace(coins.disk.as_ref(), &coins.dir.join(crate::manifest::NAME), &bytes)?;
    report.bytes_written += bytes.len() as u64;
    Ok((next, segments, report))
}

/// The work of one writer: its partitions, and the units that it may use.
struct Writes {
    partitions: Range<usize>,
    units: Range<u64>,
}

/// Finds a range of units for the segments of each writer, large enough for the worst case.
fn room(
    next_unit: &mut u64,
    segments: &[SegmentInfo],
    victims: &Victims,
    new_bytes: &[u64; PARTITIONS],
    writers: usize,
    segment_units_max: u64,
) -> Option<Vec<Writes>> {
    let step = PARTITIONS.div_ceil(writers);
    let mut taken: Vec<(u64, u64)> = segments.iter().map(|info| (info.base, info.end())).collect();
    let mut ranges = Vec::new();
    for start in (0..PARTITIONS).step_by(step) {
        let partitions = start..(start + step).min(PARTITIONS);
        let bytes: u64 = new_bytes[partitions.clone()].iter().sum();
        let records = bytes / UNIT_BYTES as u64 + victims.units();
        let headers = (records / segment_units_max + 2) * (HEADER_BYTES / UNIT_BYTES) as u64;
        let size = records + headers;
        taken.sort_unstable();
        let base = find_gap(*next_unit, &taken, size).or_else(|| find_gap(1, &taken, size))?;
        taken.push((base, base + size));
        *next_unit = base;
        ranges.push(Writes { partitions, units: base..base + size });
    }
    Some(ranges)
}

/// The lowest start at or above `from` of a gap of `size` free units.
fn find_gap(from: u64, taken: &[(u64, u64)], size: u64) -> Option<u64> {
    let mut base = from;
    for (start, end) in taken {
        if *end > base {
            if base + size <= *start {
                break;
            }
            base = *end;
        }
    }
    (base + size < UNITS_MAX).then_some(base)
}

/// The result of one writer.
#[derive(Default)]
struct Written {
    segments: Vec<SegmentInfo>,
    coins_written: u64,
    coins_moved: u64,
}

fn write_all(
    coins: &Coins,
    segments: &Segments,
    old: &Manifest,
    plan: &Plan,
    ranges: &[Writes],
    manner: Manner<'_>,
) -> Result<Vec<Written>, CoinsError> {
    let write = |range: &Writes| write_range(coins, segments, old, plan, range, manner);
    let Some((first, others)) = ranges.split_first() else { return Ok(Vec::new()) };
    std::thread::scope(|scope| {
        let handles: Vec<_> = others.iter().map(|range| scope.spawn(|| write(range))).collect();
        let join = |handle: std::thread::ScopedJoinHandle<'_, _>| match handle.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let first = write(first);
        std::iter::once(first).chain(handles.into_iter().map(join)).collect()
    })
}

fn write_range(
    coins: &Coins,
    segments: &Segments,
    old: &Manifest,
    plan: &Plan,
    range: &Writes,
    manner: Manner<'_>,
) -> Result<Written, CoinsError> {
    let target = Target {
        disk: coins.disk.as_ref(),
        dir: &coins.dir,
        segments: &coins.segments,
        store: plan.store,
        sequence: plan.sequence,
        next_file: &plan.next_file,
    };
    let mut writer = SegmentWriter::new(target, manner.sizes, range.units.clone());
    let mut mover = Mover::new(segments);
    let sidecars =
        if coins.settings.is_low_memory { Sidecars::open(coins, old, &plan.victims)? } else { Sidecars::default() };
    let mut written = Written::default();
    for number in range.partitions.clone() {
        let gate = &coins.partitions[number];
        let mut moved = sidecars.records(number)?;
        if let Some(old) = &mut gate.lock_after_others().old {
            old.begin_checkpoint();
        }
        for shard in 0..SHARDS {
            if plan.writes {
                writer.prepare()?;
            }
            {
                let segment = writer.segment();
                let mut partition = gate.lock_after_others();
                let growing = segment.as_deref().map(Segment::grow);
                let mut step = Step { plan, place: (number, shard), writer: &mut writer, growing, mover: &mut mover };
                if partition.old.is_some() {
                    step.write_shard_low_memory(&mut partition, &mut moved, &mut written)?;
                } else {
                    step.write_shard(&mut partition, &mut written)?;
                }
                if shard + 1 == SHARDS {
                    partition.grow_older();
                    if let Some(old) = &mut partition.old {
                        old.end_checkpoint(&|part| plan.victims.contain(part.first));
                    }
                }
            }
            writer.end_shard()?;
            (manner.after_shard)();
        }
        let mut start = 0;
        while gate.lock_after_others().arena.trim(start, TRIMMED_CHUNKS) {
            start += TRIMMED_CHUNKS;
        }
    }
    written.segments = writer.finish()?;
    Ok(written)
}

/// The work on one shard, under the locks of its partition and of the segment that is being written.
struct Step<'a, 's> {
    plan: &'a Plan,
    /// The partition and the shard.
    place: (usize, usize),
    writer: &'a mut SegmentWriter<'s>,
    growing: Option<MutexGuard<'a, Growing>>,
    mover: &'a mut Mover<'s>,
}

impl Step<'_, '_> {
    fn write_shard(&mut self, partition: &mut Partition, written: &mut Written) -> Result<(), CoinsError> {
        let Partition { tables, arena, bytes_by_age, .. } = partition;
        let Step { plan, place, writer, growing, mover } = self;
        let table = &mut tables[place.1];
        let mut push = |fingerprint, outpoint: &[u8], coin: &[u8]| match growing {
            Some(growing) => writer.push(growing, *place, fingerprint, outpoint, coin),
            None => unreachable!("a coin to be written in a checkpoint that has none"),
        };
        let moved_units = plan.victims.bounds();
        for start in (0..table.slots().len()).step_by(WORD) {
            let work = slots_with_work(&table.slots()[start..], &moved_units);
            touch_new(&table.slots()[start..], work, arena);
            for slot in each_bit(work).map(|bit| start + bit) {
                let entry = table.slots()[slot];
                let fingerprint = entry.fingerprint();
                match entry.place() {
                    Place::Memory { address, age } => {
                        let is_moved = age > 0
                            && plan.victims.contain_any()
                            && plan.victims.contain(unit_of(arena.bytes(address)));
                        if age == 0 || is_moved {
                            let record = in_memory(arena.bytes(address));
                            let unit = push(fingerprint, record.outpoint, record.coin_bytes)?;
                            set_unit(arena.bytes_mut(address), unit);
                            *if is_moved { &mut written.coins_moved } else { &mut written.coins_written } += 1;
                        }
                        if plan.eviction.drops(age, fingerprint) {
                            table.replace(slot, Entry::disk(fingerprint, unit_of(arena.bytes(address))));
                            bytes_by_age[age] -= arena.slot_bytes(address);
                            arena.release(address);
                        } else {
                            table.replace(slot, Entry::memory(fingerprint, address, (age + 1).min(AGE_MAX)));
                        }
                    }
                    Place::Disk { unit } if plan.victims.contain(unit) => {
                        let unit =
                            mover.take(unit, |record| push(fingerprint, record.outpoint, record.coin_bytes))??;
                        table.replace(slot, Entry::disk(fingerprint, unit));
                        written.coins_moved += 1;
                    }
                    Place::Disk { .. } => {}
                }
            }
        }
        table.shrink();
        Ok(())
    }
}

/// A bit for each of the next slots that may have work for a checkpoint: those of coins in memory, and of coins on disk
/// at one of these units. Nearly all slots have none, so the pass skips them without a branch for each.
fn slots_with_work(slots: &[Entry], moved_units: &Range<u64>) -> u64 {
    let (first, count) = (moved_units.start, moved_units.end - moved_units.start);
    let has_work = |entry: &Entry| entry.is_in_memory() | entry.is_at(first, count);
    slots.iter().take(WORD).zip(0..).fold(0, |work, (entry, bit)| work | u64::from(has_work(entry)) << bit)
}

/// The positions of the bits that are set, in order.
fn each_bit(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (bits != 0).then(|| index(u64::from(bits.trailing_zeros())));
        bits &= bits.wrapping_sub(1);
        bit
    })
}

/// Reads the coins to be written of the next slots that have work, to load them into the processor's cache together.
fn touch_new(slots: &[Entry], work: u64, arena: &Arena) {
    let touch = |bit: usize| match slots[bit].place() {
        Place::Memory { address, age: 0 } => arena.touch(address),
        _ => 0,
    };
    black_box(each_bit(work).map(touch).fold(0, |sum, bits| sum ^ bits));
}

impl Step<'_, '_> {
    /// Like [`Step::write_shard`] in a store with little memory: all coins leave memory, and the live records of
    /// victims are found in their sidecars. Both are written in the order of their fingerprints.
    fn write_shard_low_memory(
        &mut self,
        partition: &mut Partition,
        moved: &mut MovedRecords<'_>,
        written: &mut Written,
    ) -> Result<(), CoinsError> {
        let Partition { tables, arena, bytes_by_age, old, .. } = partition;
        let Some(old) = old else { return Ok(()) };
        let (_, shard) = self.place;
        let mut added = Vec::new();
        let mut moved = moved.of_shard(shard, old)?.into_iter().peekable();
        let table = &mut tables[shard];
        for entry in table.slots().iter().filter(|entry| !entry.is_empty()) {
            let fingerprint = entry.fingerprint();
            while let Some(record) = moved.next_if(|record| record.fingerprint < fingerprint) {
                added.push(self.move_record(record, old)?);
                written.coins_moved += 1;
            }
            let Place::Memory { address, .. } = entry.place() else {
                unreachable!("a coin on disk in the table of a store with little memory")
            };
            let record = in_memory(arena.bytes(address));
            let unit = self.push(fingerprint, record.outpoint, record.coin_bytes)?;
            added.push(self.add(fingerprint, unit, old)?);
            written.coins_written += 1;
        }
        for record in moved {
            added.push(self.move_record(record, old)?);
            written.coins_moved += 1;
        }
        // Nothing fails from here on: until then the coins are in memory, where lookups find them.
        old.rebuild(shard, added, &|part| self.plan.victims.contain(part.first));
        for entry in std::mem::take(table).slots().iter().filter(|entry| !entry.is_empty()) {
            if let Place::Memory { address, .. } = entry.place() {
                bytes_by_age[0] -= arena.slot_bytes(address);
                arena.release(address);
            }
        }
        Ok(())
    }

    fn push(&mut self, fingerprint: u32, outpoint: &[u8], coin: &[u8]) -> Result<u64, CoinsError> {
        match &mut self.growing {
            Some(growing) => self.writer.push(growing, self.place, fingerprint, outpoint, coin),
            None => unreachable!("a coin to be written in a checkpoint that has none"),
        }
    }

    fn move_record(&mut self, record: MovedRecord, old: &mut Old) -> Result<u64, CoinsError> {
        let Step { place, writer, growing, mover, .. } = self;
        let unit = mover.take(record.unit, |one| match growing {
            Some(growing) => writer.push(growing, *place, record.fingerprint, one.outpoint, one.coin_bytes),
            None => unreachable!("a record to be moved in a checkpoint that moves none"),
        })??;
        self.add(record.fingerprint, unit, old)
    }

    /// Adds the record that was written last. Returns its entry for the filter.
    fn add(&mut self, fingerprint: u32, unit: u64, old: &mut Old) -> Result<u64, CoinsError> {
        let shard = self.place.1;
        let record = Added { shard, fingerprint, unit, end: self.writer.next_unit(), is_dead: false };
        let segment = self.writer.segment().map_or(0, |segment| segment.info.number);
        old.append(segment, &record).ok_or_else(|| CoinsError::Full { path: self.writer.dir().to_owned() })
    }
}

/// The coins that leave memory: all above a certain age, and a fraction of those of that age.
#[derive(Clone, Copy, Debug)]
struct Eviction {
    age: usize,
    /// How many of 256 coins of that age stay.
    kept: u32,
}

impl Eviction {
    /// Keeps at most `bytes_max`, the youngest.
    fn new(bytes_by_age: &[u64; AGE_MAX + 1], bytes_max: u64) -> Eviction {
        let mut left = bytes_max;
        for (age, bytes) in bytes_by_age.iter().enumerate() {
            if *bytes > left {
                return Eviction { age, kept: u32::try_from(left * 256 / bytes).unwrap_or(0) };
            }
            left -= bytes;
        }
        Eviction { age: AGE_MAX + 1, kept: 0 }
    }

    fn drops(&self, age: usize, fingerprint: u32) -> bool {
        age > self.age || age == self.age && (fingerprint & 0xff) >= self.kept
    }
}

/// Writes the deaths since the last checkpoint, together with those of the merged files. Returns the number of bytes
/// written.
fn write_deaths(
    coins: &Coins,
    new_deaths: [Vec<u64>; PARTITIONS],
    old: &Manifest,
    next: &mut Manifest,
    plan: &Plan,
) -> Result<u64, CoinsError> {
    let new: u64 = new_deaths.iter().map(|deaths| deaths.len() as u64).sum();
    let dead: u64 = next.segments.iter().map(|info| info.records - info.live).sum();
    if dead == 0 {
        next.deaths.clear();
        return Ok(0);
    }
    let start = first_folded(&old.deaths, new, dead);
    if start == old.deaths.len() && new == 0 {
        return Ok(0);
    }
    let mut folded = Vec::new();
    for info in next.deaths.drain(start..) {
        let id = FileId { store: plan.store, kind: Kind::Deaths, number: info.number };
        folded.push((info.sequence, Sections::open(coins.disk.as_ref(), &coins.dir, id, info.file)?));
    }
    let number = plan.next_file.fetch_add(1, Ordering::Relaxed);
    let id = FileId { store: plan.store, kind: Kind::Deaths, number };
    let mut writer = SectionsWriter::create(coins.disk.as_ref(), &coins.dir, id)?;
    let mut count = 0;
    for (section, mut deaths) in new_deaths.into_iter().enumerate() {
        deaths.retain(|death| is_of_any(&next.segments, *death, next.sequence));
        for (sequence, file) in &folded {
            let mut numbers = file.numbers(section);
            while let Some(death) = numbers.next()? {
                if is_of_any(&next.segments, death, *sequence) {
                    deaths.push(death);
                }
            }
        }
        deaths.sort_unstable();
        count += deaths.len() as u64;
        deaths.iter().try_for_each(|death| writer.push(section, *death))?;
    }
    let file = writer.finish()?;
    next.deaths.push(DeathsInfo { number, sequence: next.sequence, count, file });
    Ok(file.bytes)
}

/// Index of the first of the death files that are merged into a new one. If half of all entries are obsolete, all files
/// are merged. Otherwise, if there are many, the last ones are merged, as long as none has more than four times as many
/// entries as those after it.
fn first_folded(files: &[DeathsInfo], new: u64, dead: u64) -> usize {
    let all = files.iter().map(|info| info.count).sum::<u64>() + new;
    if !files.is_empty() && all > 2 * dead {
        return 0;
    }
    let (mut start, mut behind) = (files.len(), new.max(1));
    while start > 0 && files[start - 1].count <= 4 * behind {
        start -= 1;
        behind += files[start].count;
    }
    if files.len() - start + 1 >= DEATHS_FILES { start } else { files.len() }
}

/// Removes the files that the old manifest names and the new one does not.
pub(crate) fn remove_unnamed(coins: &Coins, old: &Manifest, new: &Manifest) {
    let store = old.store_id();
    let given_up = old.segments.iter().filter(|info| new.segments.iter().all(|other| other.number != info.number));
    let folded = old.deaths.iter().filter(|info| new.deaths.iter().all(|other| other.number != info.number));
    let files = given_up
        .flat_map(|info| [(Kind::Segment, info.number), (Kind::Sidecar, info.number)])
        .chain(folded.map(|info| (Kind::Deaths, info.number)));
    for (kind, number) in files {
        // The checkpoint is valid. A file that cannot be removed now is removed when the store is opened next.
        let _ = own(&coins.dir).remove(coins.disk.as_ref(), &FileId { store, kind, number }.path(&coins.dir));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{ADDRESSES_MAX, FINGERPRINT_BITS};
    use crate::sections::SectionsInfo;

    #[test]
    fn room_is_found_in_gaps_and_refused_when_there_is_none() {
        let taken = [(10, 20), (30, 40)];
        assert_eq!(find_gap(1, &taken, 9), Some(1));
        assert_eq!(find_gap(1, &taken, 10), Some(20));
        assert_eq!(find_gap(15, &taken, 11), Some(40));
        assert_eq!(find_gap(22, &taken, 8), Some(22));
        assert_eq!(find_gap(41, &taken, UNITS_MAX - 42), Some(41));
        assert_eq!(find_gap(41, &taken, UNITS_MAX - 41), None);
    }

    /// Compared with the plain test of one slot.
    #[test]
    fn slots_with_work_are_those_in_memory_and_those_to_be_moved() {
        let last = (1 << FINGERPRINT_BITS) - 1;
        let units = [1, 2, 99, 100, 101, 199, 200, 201, UNITS_MAX - 1];
        let mut slots: Vec<Entry> = units.iter().flat_map(|unit| [0, last].map(|f| Entry::disk(f, *unit))).collect();
        slots.extend([0, 7, ADDRESSES_MAX - 1].map(|address| Entry::memory(last, address, 0)));
        slots.extend([0, AGE_MAX].map(|age| Entry::memory(0, 100, age)));
        slots.extend([Entry::EMPTY; 3]);
        // More than a word.
        let slots: Vec<Entry> = slots.iter().chain(slots.iter().rev()).chain(&slots).copied().collect();
        for moved in [1..1, 1..2, 100..200, 1..UNITS_MAX, UNITS_MAX - 1..UNITS_MAX] {
            let has_work = |entry: Entry| match entry.place() {
                Place::Memory { .. } => true,
                Place::Disk { unit } => !entry.is_empty() && moved.contains(&unit),
            };
            for start in 0..slots.len() {
                let found: Vec<usize> = each_bit(slots_with_work(&slots[start..], &moved)).collect();
                let wanted = (0..(slots.len() - start).min(WORD)).filter(|bit| has_work(slots[start + bit]));
                assert_eq!(found, wanted.collect::<Vec<_>>(), "{moved:?} from {start}");
            }
        }
        assert_eq!(each_bit(u64::MAX).count(), 64);
    }

    fn files(counts: &[u64]) -> Vec<DeathsInfo> {
        let file = SectionsInfo::default();
        counts.iter().map(|count| DeathsInfo { number: 0, sequence: 0, count: *count, file }).collect()
    }

    #[test]
    fn deaths_are_folded_when_many_files_are_alike_or_half_are_out_of_date() {
        assert_eq!(first_folded(&files(&[]), 5, 5), 0);
        assert_eq!(first_folded(&files(&[100, 100]), 100, 300), 2);
        assert_eq!(first_folded(&files(&[100, 100]), 100, 150), 2);
        assert_eq!(first_folded(&files(&[100, 100]), 100, 149), 0);
        assert_eq!(first_folded(&files(&[100; 7]), 100, 800), 0);
        assert_eq!(first_folded(&files(&[100_000, 100, 100, 100, 100, 100, 100, 100]), 100, 100_800), 1);
        assert_eq!(first_folded(&files(&[100_000, 100, 100, 100, 100, 100, 100]), 100, 100_700), 7);
    }

    #[test]
    fn the_youngest_stay_in_memory() {
        let mut bytes = [0; AGE_MAX + 1];
        bytes[0] = 100;
        bytes[3] = 100;
        let all = Eviction::new(&bytes, 200);
        assert!((0..=AGE_MAX).all(|age| !all.drops(age, 0)));
        let half = Eviction::new(&bytes, 150);
        assert!(!half.drops(0, 255) && !half.drops(3, 127) && half.drops(3, 128) && half.drops(4, 0));
        let none = Eviction::new(&bytes, 0);
        assert!((0..=AGE_MAX).all(|age| none.drops(age, 0)));
    }
}
