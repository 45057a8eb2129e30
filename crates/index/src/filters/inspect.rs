//! The files of the block filters for `lydian index`: how far they are, whether they are whole, whether they are those
//! of a rebuild.
//!
//! Input: a directory. Output: a report, nothing, or an error with file and offset. Reads only. Both logs follow from
//! the chain alone, so that they are compared byte by byte.

use super::{ENTRIES_FILE, FILTERS_FILE, FILTERS_FILES, TIP_FILE, tip};
use crate::error::IndexError;
use crate::files::{self, Advance, Comparison, Report, Rule};
use lydian_disk::Disk;
use lydian_engine::Tip;
use lydian_primitives::BlockHash;
use std::path::Path;

fn tip_of(disk: &dyn Disk, dir: &Path, genesis: &BlockHash) -> Result<Option<Tip>, IndexError> {
    tip::read(disk, &dir.join(TIP_FILE), genesis)
}

/// The state of the files; `None` if there are none. A log that the tip file needs and that is missing is an error.
pub(crate) fn report(disk: &dyn Disk, dir: &Path, genesis: &BlockHash) -> Result<Option<Report>, IndexError> {
    let Some(sizes) = files::sizes(disk, dir, FILTERS_FILES)? else { return Ok(None) };
    let tip = tip_of(disk, dir, genesis)?;
    if tip.is_some() {
        [ENTRIES_FILE, FILTERS_FILE].iter().try_for_each(|name| files::must_exist(disk, &dir.join(name)))?;
    }
    Ok(Some(Report { tip, sizes, ..Report::default() }))
}

/// Reads the records of all blocks with their checksums.
pub(crate) fn check(disk: &dyn Disk, dir: &Path, genesis: &BlockHash, told: Advance<'_>) -> Result<(), IndexError> {
    let Some(tip) = tip_of(disk, dir, genesis)? else {
        return files::check_without(disk, dir, FILTERS_FILES, TIP_FILE);
    };
    let blocks = tip.height.0.saturating_add(1);
    files::check_log(disk, &dir.join(ENTRIES_FILE), blocks, told)?;
    files::check_log(disk, &dir.join(FILTERS_FILE), blocks, told)?;
    Ok(())
}

pub(crate) fn compare(
    disk: &dyn Disk,
    dir: &Path,
    rebuilt: &Path,
    told: Advance<'_>,
) -> Result<Comparison, IndexError> {
    let rule = |path: &Path| if path.ends_with(TIP_FILE) { Rule::Whole } else { Rule::Log };
    files::compare_dirs(disk, dir, rebuilt, FILTERS_FILES, &rule, told)
}
