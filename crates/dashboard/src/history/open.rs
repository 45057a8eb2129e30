//! Opening a history: reads the head and every slot once, removes what is damaged, adds new series to the head, and
//! combines the intervals that ended while no process ran. Input: a directory that is ours, the table of series, the
//! time. Output: a [`History`], and remarks for the log.
//!
//! The order of writes keeps one whole head at any moment: the copy that was read is replaced last, each copy is synced
//! before the other is written, and no slot has a new column before both are durable.

use super::file::SlotFile;
use super::format::{Column, HEADS, HISTORY_FORMAT, Head, LAYOUT, Layout, Slot, decode_head, encode_head};
use super::series::{Combine, Series};
use super::{FILE, HISTORY_FILES, History, HistoryError, Remark};
use crate::limits::HISTORY_SERIES_MAX;
use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

impl History {
    /// Opens the history of a data directory that is ours and locked, or begins one. `now` is in seconds since 1970.
    pub fn open(
        disk: &dyn Disk,
        dir: &Path,
        table: &'static [Series],
        now: u64,
    ) -> Result<(History, Vec<Remark>), HistoryError> {
        History::open_as(disk, dir, table, now, LAYOUT)
    }

    pub(super) fn open_as(
        disk: &dyn Disk,
        dir: &Path,
        table: &'static [Series],
        now: u64,
        layout: Layout,
    ) -> Result<(History, Vec<Remark>), HistoryError> {
        let mut remarks = Vec::new();
        let path = dir.join(FILE);
        let own = OwnDir::new(dir, HISTORY_FILES);
        let missing = missing(disk, &path, &layout)?;
        let open = || own.fixed(disk, &path, layout.file_size()).map(|file| SlotFile { file, layout });
        let mut file = open()?;
        let mut found = heads(&file, &path)?;
        let mut slots = Slots::read(&file, now);
        if found.columns.is_none() && !(found.is_empty && slots.is_empty()) {
            own.remove(disk, &path)?;
            file = open()?;
            (found, slots) = (Heads::default(), Slots::default());
            remarks.push(Remark::BegunAnew { path: path.clone() });
        } else if missing > 0 {
            remarks.push(Remark::Cut { path: path.clone(), missing });
        }
        if let Some(offset) = slots.erase_damaged(&file) {
            remarks.push(Remark::Damaged { path: path.clone(), records: slots.damaged.len() as u64, offset });
        }
        let mut columns = found.columns.unwrap_or_default();
        // Slots may have columns that the head does not name only if both copies of a later head are lost.
        for number in columns.len()..slots.columns {
            columns.push(Column { name: format!("lost_{number}"), unit: "?".to_owned(), combine: Combine::Last });
        }
        let places = places(&mut columns, table);
        for (series, _) in table.iter().zip(&places).filter(|(_, place)| place.is_none()) {
            remarks.push(Remark::Full { path: path.clone(), name: series.name });
        }
        write_heads(&file, &columns, found.newest)?;
        let last = AtomicU64::new(slots.fine.last().copied().unwrap_or(0));
        let history = History { file, columns, places, last, writer: Mutex::new(()) };
        history.close_ended(&slots, now)?;
        Ok((history, remarks))
    }

    /// Writes the intervals of coarser tiers that ended, but were not written.
    fn close_ended(&self, slots: &Slots, now: u64) -> Result<(), DiskError> {
        for tier in 1..self.file.tiers() {
            let ended: BTreeSet<u64> = slots.fine.iter().map(|time| self.file.start(tier, *time)).collect();
            for start in ended {
                let has_ended = start + self.file.tier(tier).step <= now;
                if has_ended && !slots.coarse.contains(&(tier, start)) {
                    self.combine_into(tier, start)?;
                }
            }
        }
        self.file.sync()
    }
}

/// Bytes that an existing file lacks.
fn missing(disk: &dyn Disk, path: &Path, layout: &Layout) -> Result<u64, DiskError> {
    match disk.open(path) {
        // A process that ends while it begins a history leaves an empty file.
        Ok(file) if file.size() == 0 => Ok(0),
        Ok(file) => Ok(layout.file_size().saturating_sub(file.size())),
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// What the copies of the head say.
#[derive(Debug, Default)]
struct Heads {
    /// Of the newest whole copy.
    columns: Option<Vec<Column>>,
    /// The number of that copy.
    newest: u64,
    /// Nothing was ever written.
    is_empty: bool,
}

fn heads(file: &SlotFile, path: &Path) -> Result<Heads, HistoryError> {
    let mut found = Heads { is_empty: true, ..Heads::default() };
    for copy in 0..HEADS {
        // A copy that cannot be read is as good as a damaged one.
        let bytes = file.head(copy).unwrap_or_else(|_| vec![1]);
        found.is_empty &= bytes.iter().all(|byte| *byte == 0);
        match decode_head(&file.layout, &bytes) {
            None => {}
            Some(Head::Other { version }) => {
                let newer = version.parse::<u64>().ok().and_then(|found| HISTORY_FORMAT.newer(path, found));
                if let Some(error) = newer {
                    return Err(HistoryError::NewerFormat(error));
                }
                return Err(HistoryError::OtherVersion { path: path.to_owned(), version });
            }
            // Series are only added: the longer list is the newer one.
            Some(Head::Columns(columns)) if found.columns.as_ref().is_none_or(|old| old.len() < columns.len()) => {
                found.columns = Some(columns);
                found.newest = copy;
            }
            Some(Head::Columns(_)) => {}
        }
    }
    Ok(found)
}

/// The columns of the series; those that are new are added.
fn places(columns: &mut Vec<Column>, table: &[Series]) -> Vec<Option<usize>> {
    let mut place = |series: &Series| {
        let known = columns.iter().position(|column| column.name == series.name);
        if known.is_none() && columns.len() == HISTORY_SERIES_MAX {
            return None;
        }
        match known.and_then(|place| columns.get_mut(place)) {
            Some(column) => *column = Column::from(series),
            None => columns.push(Column::from(series)),
        }
        known.or(Some(columns.len() - 1))
    };
    table.iter().map(&mut place).collect()
}

/// Writes the copies of the head that differ, the newest last.
fn write_heads(file: &SlotFile, columns: &[Column], newest: u64) -> Result<(), DiskError> {
    let bytes = encode_head(&file.layout, columns);
    let others = (0..HEADS).filter(|copy| *copy != newest);
    for copy in others.chain([newest]) {
        if !file.head(copy).is_ok_and(|old| old == bytes) {
            file.write_head(copy, &bytes)?;
        }
    }
    Ok(())
}

/// What the slots contain.
#[derive(Debug, Default)]
struct Slots {
    /// The intervals of the finest tier, up to now.
    fine: BTreeSet<u64>,
    /// The tiers and starts of the others, of the time that the finest tier keeps.
    coarse: BTreeSet<(usize, u64)>,
    damaged: Vec<u64>,
    /// The most columns of a slot.
    columns: usize,
    count: u64,
}

impl Slots {
    fn read(file: &SlotFile, now: u64) -> Slots {
        let mut slots = Slots::default();
        let kept_since = now.saturating_sub(file.tier(0).span() + file.tier(usize::MAX).step);
        file.each_slot(0, file.layout.slots(), &mut |number, slot| match slot {
            Slot::Empty => {}
            Slot::Damaged => slots.damaged.push(number),
            Slot::Values { time, values } => {
                slots.count += 1;
                slots.columns = slots.columns.max(values.columns());
                match file.layout.place(number) {
                    Some((0, _)) if time <= now => drop(slots.fine.insert(time)),
                    Some((tier, _)) if time >= kept_since => drop(slots.coarse.insert((tier, time))),
                    _ => {}
                }
            }
        });
        slots
    }

    fn is_empty(&self) -> bool {
        self.count == 0 && self.damaged.is_empty()
    }

    /// Returns the offset of the first damaged slot.
    fn erase_damaged(&self, file: &SlotFile) -> Option<u64> {
        for slot in &self.damaged {
            // A damaged slot has no values, whether it is erased or not; erased ones are reported once.
            let _ = file.erase(*slot);
        }
        self.damaged.first().map(|slot| super::format::slot_offset(*slot))
    }
}
