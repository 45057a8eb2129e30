//! The files of the coin statistics for `lydian index`: how far they are, whether they are whole, whether they are
//! those of a rebuild.
//!
//! Input: a directory. Output: a report, nothing, or an error with file and offset. Reads only. The log keeps the
//! records of blocks that left the chain, which no rebuild has: the records of the chain's blocks are compared, one by
//! one, and the sums and the MuHash of the tip file.

use super::log::{self, RECORD_SIZE, Record};
use super::tip::{self, Saved};
use super::{COINSTATS_FILES, LOG_FILE, TIP_FILE};
use crate::error::IndexError;
use crate::files::{self, Advance, Comparison, Difference, Report};
use lydian_consensus::Params;
use lydian_disk::Disk;
use std::path::Path;

/// Records between two calls of the progress.
const TOLD_RECORDS: usize = 4_096;

/// The state of the files; `None` if there are none. A log that the tip file needs and that is missing is an error.
pub(crate) fn report(disk: &dyn Disk, dir: &Path, params: &Params) -> Result<Option<Report>, IndexError> {
    let Some(sizes) = files::sizes(disk, dir, COINSTATS_FILES)? else { return Ok(None) };
    let saved = tip::read(disk, &dir.join(TIP_FILE), params)?;
    if saved.is_some() {
        files::must_exist(disk, &dir.join(LOG_FILE))?;
    }
    Ok(Some(Report { tip: saved.map(|saved| saved.tip), sizes, ..Report::default() }))
}

/// Reads the records of all blocks with their checksums.
pub(crate) fn check(disk: &dyn Disk, dir: &Path, params: &Params, told: Advance<'_>) -> Result<(), IndexError> {
    match tip::read(disk, &dir.join(TIP_FILE), params)? {
        Some(saved) => files::check_log(disk, &dir.join(LOG_FILE), saved.records, told).map(drop),
        None => files::check_without(disk, dir, COINSTATS_FILES, TIP_FILE),
    }
}

pub(crate) fn compare(
    disk: &dyn Disk,
    dir: &Path,
    rebuilt: &Path,
    params: &Params,
    told: Advance<'_>,
) -> Result<Comparison, IndexError> {
    let (own_tip, own_log) = (dir.join(TIP_FILE), dir.join(LOG_FILE));
    let mut comparison = Comparison::default();
    let saved = (tip::read(disk, &own_tip, params)?, tip::read(disk, &rebuilt.join(TIP_FILE), params)?);
    let (Some(own), Some(expected)) = saved else {
        if saved.1.is_some() {
            comparison.difference = Some(Difference { path: own_tip, offset: None });
        }
        return Ok(comparison);
    };
    if let Some(number) = first_record(disk, &own_log, &own, &rebuilt.join(LOG_FILE), &expected, told)? {
        comparison.difference = Some(Difference { path: own_log, offset: Some(u64::from(number) * RECORD_SIZE) });
        return Ok(comparison);
    }
    let content = |saved: &Saved| (saved.tip, saved.sums, saved.muhash.finalize());
    if content(&own) != content(&expected) {
        comparison.difference = Some(Difference { path: own_tip, offset: Some(0) });
        return Ok(comparison);
    }
    let others = own.records.saturating_sub(expected.records);
    if others > 0 {
        comparison.notes.push(format!("{}: {others} records of blocks that left the chain", own_log.display()));
    }
    let used = u64::from(own.records) * RECORD_SIZE;
    let size = files::size_of(disk, &own_log)?.unwrap_or(used);
    if size > used {
        let rest = size - used;
        comparison.notes.push(format!("{}: {rest} bytes behind the last block are not used", own_log.display()));
    }
    comparison.files = 2;
    comparison.bytes = used + files::size_of(disk, &own_tip)?.unwrap_or(0);
    Ok(comparison)
}

/// The number of the first record of a block of the chain that is not that of the rebuild.
fn first_record(
    disk: &dyn Disk,
    own: &Path,
    own_saved: &Saved,
    rebuilt: &Path,
    expected: &Saved,
    told: Advance<'_>,
) -> Result<Option<u32>, IndexError> {
    let (file, other) = (disk.open(own)?, disk.open(rebuilt)?);
    let (by_height, _) = log::read_all(file.as_ref(), own, own_saved)?;
    let record = |number: u32| -> Result<Record, IndexError> { log::read_one(file.as_ref(), own, number) };
    for (height, number) in (0..expected.records).zip(by_height.iter().copied()) {
        if record(number)? != log::read_one(other.as_ref(), rebuilt, height)? {
            return Ok(Some(number));
        }
        if (height as usize).is_multiple_of(TOLD_RECORDS) {
            files::advance(told, TOLD_RECORDS as u64 * RECORD_SIZE)?;
        }
    }
    let is_as_long = by_height.len() == expected.records as usize;
    Ok(if is_as_long { None } else { Some(own_saved.records.min(expected.records)) })
}
