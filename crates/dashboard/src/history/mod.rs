//! The history: one number for each series and interval, in a file of fixed size, kept over restarts.
//!
//! Input: every few seconds the current values; later, queries for a time range. Output: points, in the finest step
//! that is kept for the range and fits into an answer. A day is kept in steps of 10 s, a month in steps of 5 min, five
//! years in hours; intervals of a coarser tier are combined from the finest when they end. `docs/formats/history.md`
//! is the format.
//!
//! Invariants: the place of an interval in the file follows from its time, so that a write changes one slot and damages
//! no other; a slot counts only if its checksum and its time are right, so that whatever a crash leaves is either a
//! value that was recorded or none. The node works without a history. Cost: one write of 1 KiB for each interval, a
//! sync every 5 min; opening reads the file once; a query reads the slots of its range. Reads no clock.

mod error;
mod file;
mod format;
mod open;
mod query;
mod series;
#[cfg(test)]
mod tests;

pub use error::{HistoryError, Remark};
pub use format::HISTORY_FORMAT;
pub use query::Answer;
pub use series::{Combine, Series};

use file::SlotFile;
use format::{Column, Values};
use lydian_disk::{DiskError, OwnFile, Proof};
use lydian_stdx::lock;
use series::Sum;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of the file.
pub const FILE: &str = "history.dat";

/// The file, in the data directory.
pub const HISTORY_FILES: &[OwnFile] = &[OwnFile { name: FILE, proof: Proof::Directory }];

/// The history of one data directory. Any thread may query it while one records.
#[derive(Debug)]
pub struct History {
    file: SlotFile,
    /// The columns of the file, in their order.
    columns: Vec<Column>,
    /// The column of each series of the table; `None` if there is no room for it.
    places: Vec<Option<usize>>,
    /// The start of the last interval that was recorded; 0 if there is none.
    last: AtomicU64,
    writer: Mutex<()>,
}

impl History {
    /// Records the values of the interval that contains `time`, in seconds since 1970, in the order of the table. Its
    /// values replace those recorded before in the same interval. After an error, later intervals may be recorded.
    pub fn record(&self, time: u64, values: &[Option<f64>]) -> Result<(), DiskError> {
        let _writer = lock(&self.writer);
        let start = self.file.start(0, time);
        let closed = self.close_before(start);
        let mut row = vec![f64::NAN; self.columns.len()];
        for (place, value) in self.places.iter().zip(values) {
            if let (Some(cell), Some(value)) = (place.and_then(|place| row.get_mut(place)), value) {
                *cell = *value;
            }
        }
        self.file.write(0, start, &row)?;
        self.last.store(start, Ordering::Release);
        if closed? { self.file.sync() } else { Ok(()) }
    }

    /// The seconds between two intervals of the finest tier.
    pub fn step(&self) -> u64 {
        self.file.tier(0).step
    }

    /// The unit of a series; empty if there is none of this name.
    pub fn unit(&self, name: &str) -> &str {
        self.columns.iter().find(|column| column.name == name).map_or("", |column| &column.unit)
    }

    /// Makes everything recorded durable.
    pub fn sync(&self) -> Result<(), DiskError> {
        self.file.sync()
    }

    /// Writes the intervals of coarser tiers that ended between the last interval and this one.
    fn close_before(&self, start: u64) -> Result<bool, DiskError> {
        let last = self.last.load(Ordering::Acquire);
        let mut is_one_closed = false;
        for tier in (1..self.file.tiers()).filter(|_| last > 0) {
            let ended = self.file.start(tier, last);
            if ended != self.file.start(tier, start) {
                self.combine_into(tier, ended)?;
                is_one_closed = true;
            }
        }
        Ok(is_one_closed)
    }

    /// Writes an interval of a coarser tier from those of the finest.
    fn combine_into(&self, tier: usize, start: u64) -> Result<(), DiskError> {
        let row = self.combined(start, start + self.file.tier(tier).step);
        if row.iter().all(Option::is_none) {
            return Ok(());
        }
        let row: Vec<f64> = row.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        self.file.write(tier, start, &row)
    }

    /// The values of all columns from the intervals of the finest tier in a range.
    fn combined(&self, from: u64, to: u64) -> Vec<Option<f64>> {
        let mut sums = vec![Sum::default(); self.columns.len()];
        self.file.each(0, from, to, &mut |_, values: Values<'_>| {
            for (index, (sum, column)) in sums.iter_mut().zip(&self.columns).enumerate() {
                if let Some(value) = values.get(index) {
                    sum.add(value, column.combine);
                }
            }
        });
        sums.iter().zip(&self.columns).map(|(sum, column)| sum.value(column.combine)).collect()
    }
}
