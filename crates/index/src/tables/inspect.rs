//! The files of the tables for `lydian index`: how far they are, whether they are whole, and how they are built again
//! with the same salt, to compare the two.
//!
//! Input: a directory. Output: a report, nothing, or an error with file and offset; a follower that builds the same
//! files in another directory, with blocks in segments up to the same heights. Reads only, but for that other
//! directory. Cost: a check reads every byte once.

use super::commit::{self, Commit, Profile};
use super::pages::{FileSource, PageSource};
use super::segment::{self, GROUP_BLOCKS, ranges};
use super::state::Limit;
use super::tail::{self, Group};
use super::{COMMIT_FILE, TABLES_FILES, TxIndex, UNSEALED_BLOCKS};
use crate::error::IndexError;
use crate::files::{self, Advance, Comparison, Report, Rule};
use crate::rebuild::Rebuilt;
use lydian_disk::{Disk, DiskErrorKind, OwnDir};
use lydian_engine::{FollowerError, Tip};
use lydian_primitives::{BlockHash, Height};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// The name of a set of tables.
fn name_of(profile: Profile) -> &'static str {
    match profile {
        Profile { has_scripts: false, .. } => "transactions",
        Profile { has_txids: false, .. } => "compact",
        Profile { .. } => "full",
    }
}

/// The heights of the segments that a commit record names.
fn segments_of(commit: &Commit) -> Vec<Range<u32>> {
    let groups = (commit.sealed..commit.written).step_by(GROUP_BLOCKS as usize);
    ranges(commit.sealed).into_iter().chain(groups.map(|from| from..from + GROUP_BLOCKS)).collect()
}

fn blocks_of(commit: &Commit) -> u32 {
    commit.tip.map_or(0, |tip| tip.height.0.saturating_add(1))
}

/// The first height of the logs that are used. The next start seals the groups below, which need no log.
fn first_log(commit: &Commit) -> u32 {
    let deep = blocks_of(commit).saturating_sub(UNSEALED_BLOCKS) / GROUP_BLOCKS * GROUP_BLOCKS;
    deep.min(commit.written).max(commit.sealed)
}

fn read_commit(disk: &dyn Disk, dir: &Path, genesis: &BlockHash) -> Result<Option<Commit>, IndexError> {
    commit::read(disk, &dir.join(COMMIT_FILE), genesis)
}

/// The blocks that are in no segment: the last one that the logs have, if any, and the number of transactions.
fn read_logs(disk: &dyn Disk, dir: &Path, commit: &Commit) -> Result<(Option<Tip>, u64), IndexError> {
    let (mut tip, mut transactions) = (None, 0);
    let Some(last) = commit.tip.map(|tip| tip.height.0) else { return Ok((None, 0)) };
    for from in (commit.written..=last).step_by(GROUP_BLOCKS as usize) {
        let group = Group::read(disk, dir, from, last, commit.profile)?;
        for (height, row) in (from..).zip(&group.rows.blocks) {
            tip = Some(Tip { height: Height(height), hash: row.hash });
            transactions += u64::from(row.transactions);
        }
        if !group.is_full() {
            // At the tip; or lower, if a checkpoint was interrupted when it had cut the log.
            break;
        }
    }
    Ok((tip, transactions))
}

/// The state of the files; `None` if there are none. A file that is missing is an error.
pub(crate) fn report(disk: &dyn Disk, dir: &Path, genesis: &BlockHash) -> Result<Option<Report>, IndexError> {
    let Some(sizes) = files::sizes(disk, dir, TABLES_FILES)? else { return Ok(None) };
    let Some(commit) = read_commit(disk, dir, genesis)? else {
        files::check_without(disk, dir, TABLES_FILES, COMMIT_FILE)?;
        return Ok(Some(Report { sizes, ..Report::default() }));
    };
    let mut in_segments = 0;
    let mut sealed_transactions = 0;
    for range in segments_of(&commit) {
        segment::files(dir, &range, commit.profile).iter().try_for_each(|path| files::must_exist(disk, path))?;
        let numbers = FileSource::open(disk, &segment::path(dir, &range, segment::NUMBERS))?;
        in_segments += numbers.facts().rows;
        if range.end <= commit.sealed {
            sealed_transactions = in_segments;
        }
    }
    let (_, in_logs) = read_logs(disk, dir, &commit)?;
    Ok(Some(Report {
        profile: Some(name_of(commit.profile)),
        tip: commit.tip,
        sealed: Some(commit.sealed),
        sealed_transactions: Some(sealed_transactions),
        transactions: Some(in_segments + in_logs),
        sizes,
    }))
}

/// The hash of a block that the last checkpoint has; `None` if it does not have the height.
pub(crate) fn hash_at(
    disk: &dyn Disk,
    dir: &Path,
    genesis: &BlockHash,
    height: u32,
) -> Result<Option<BlockHash>, IndexError> {
    let Some(commit) = read_commit(disk, dir, genesis)? else { return Ok(None) };
    let Some(last) = blocks_of(&commit).checked_sub(1).filter(|last| height <= *last) else { return Ok(None) };
    if let Some(range) = segments_of(&commit).into_iter().find(|range| range.contains(&height)) {
        let table = FileSource::open(disk, &segment::path(dir, &range, segment::BLOCKS))?;
        return Ok(super::places::block_at(&table, height - range.start)?.map(|row| row.hash));
    }
    let from = height / GROUP_BLOCKS * GROUP_BLOCKS;
    let group = Group::read(disk, dir, from, last, commit.profile)?;
    Ok(group.rows.blocks.get((height - from) as usize).map(|row| row.hash))
}

/// Reads every page of the segments, and the records of the blocks in logs, with their checksums.
pub(crate) fn check(disk: &dyn Disk, dir: &Path, genesis: &BlockHash, told: Advance<'_>) -> Result<(), IndexError> {
    let Some(commit) = read_commit(disk, dir, genesis)? else {
        return files::check_without(disk, dir, TABLES_FILES, COMMIT_FILE);
    };
    for range in segments_of(&commit) {
        for path in segment::files(dir, &range, commit.profile) {
            let table = FileSource::open(disk, &path)?;
            for number in 0..table.facts().pages {
                let page = table.page(number)?;
                files::advance(told, page.len() as u64)?;
            }
        }
    }
    let blocks = blocks_of(&commit);
    for from in (first_log(&commit)..blocks).step_by(GROUP_BLOCKS as usize) {
        let path = tail::log_path(dir, from);
        let count = GROUP_BLOCKS.min(blocks - from);
        let file = match disk.open(&path) {
            Ok(file) => file,
            // There is a segment of the group.
            Err(error) if error.kind == DiskErrorKind::NotFound && from < commit.written => continue,
            // The checkpoint was interrupted when it had removed the log.
            Err(error) if error.kind == DiskErrorKind::NotFound => break,
            Err(error) => return Err(error.into()),
        };
        let scanned = files::scan(file.as_ref(), u64::from(from), count, told)?;
        if scanned.is_torn {
            return Err(IndexError::damaged(&path, scanned.end, "the checksum of a record does not match"));
        }
        if scanned.records < count && from >= commit.written {
            break;
        }
    }
    Ok(())
}

/// Reads up to `count` random pages with their checksums; returns the number that was read. `random` returns a number
/// below its argument, which is not 0.
pub(crate) fn sample(
    disk: &dyn Disk,
    dir: &Path,
    genesis: &BlockHash,
    count: usize,
    random: &mut dyn FnMut(u64) -> u64,
) -> Result<usize, IndexError> {
    let Some(commit) = read_commit(disk, dir, genesis)? else { return Ok(0) };
    let ranges = segments_of(&commit);
    let paths: Vec<_> = ranges.iter().flat_map(|range| segment::files(dir, range, commit.profile)).collect();
    if paths.is_empty() {
        return Ok(0);
    }
    let mut pick = |count: usize| lydian_stdx::saturating_usize(random(count as u64));
    for _ in 0..count {
        let table = FileSource::open(disk, &paths[pick(paths.len())])?;
        if let pages @ 1.. = table.facts().pages {
            let number = pick(pages as usize);
            table.page(u32::try_from(number).unwrap_or(0))?;
        }
    }
    Ok(count)
}

/// A follower that builds the tables of a directory again in another, empty one, and the block at which it ends.
pub(crate) fn rebuild(
    disk: &Arc<dyn Disk>,
    dir: &Path,
    scratch: &Path,
    genesis: BlockHash,
) -> Result<Option<(TxIndex, Tip)>, IndexError> {
    let Some(commit) = read_commit(disk.as_ref(), dir, &genesis)? else { return Ok(None) };
    let Some(tip) = usable_tip(disk.as_ref(), dir, &commit)? else { return Ok(None) };
    disk.create_dir(scratch)?;
    let own = OwnDir::new(scratch, TABLES_FILES);
    let fresh = Commit { tip: None, sealed: 0, written: 0, ..commit };
    own.replace(disk.as_ref(), &scratch.join(COMMIT_FILE), &commit::encode(&fresh, &genesis))?;
    let (index, _) = TxIndex::open(Arc::clone(disk), scratch, genesis, commit.profile, || [0; 2])?;
    index.set_limit(Limit { sealed: commit.sealed, written: commit.written });
    Ok(Some((index, tip)))
}

/// The block at which the index stands when it is opened.
fn usable_tip(disk: &dyn Disk, dir: &Path, commit: &Commit) -> Result<Option<Tip>, IndexError> {
    if blocks_of(commit) == commit.written {
        return Ok(commit.tip);
    }
    let (tip, _) = read_logs(disk, dir, commit)?;
    match (tip, commit.tip) {
        // The comparison says if the log has another block there.
        (Some(found), Some(tip)) if found.height == tip.height => Ok(Some(tip)),
        (Some(found), _) => Ok(Some(found)),
        (None, _) => last_of_segments(disk, dir, commit),
    }
}

fn last_of_segments(disk: &dyn Disk, dir: &Path, commit: &Commit) -> Result<Option<Tip>, IndexError> {
    let Some(range) = segments_of(commit).pop() else { return Ok(None) };
    let table = FileSource::open(disk, &segment::path(dir, &range, segment::BLOCKS))?;
    let last = super::places::read_blocks(&table).last().transpose()?;
    Ok(last.map(|row| Tip { height: Height(range.end.saturating_sub(1)), hash: row.hash }))
}

/// The height in the name of a log.
fn log_start(path: &Path) -> Option<u32> {
    let is_log = path.extension().is_some_and(|end| end == "log");
    path.file_stem().filter(|_| is_log)?.to_str()?.parse().ok()
}

pub(crate) fn compare(
    disk: &dyn Disk,
    dir: &Path,
    rebuilt: &Path,
    genesis: &BlockHash,
    told: Advance<'_>,
) -> Result<Comparison, IndexError> {
    let commit = read_commit(disk, dir, genesis)?;
    let rebuilt_commit = read_commit(disk, rebuilt, genesis)?;
    let rule = |path: &Path| match (log_start(path), &commit) {
        (Some(from), Some(commit)) if from < first_log(commit) => Rule::Ignored,
        (Some(from), Some(commit)) if from < commit.written => Rule::PartOfLog,
        (Some(_), _) => Rule::Log,
        (None, _) => Rule::Whole,
    };
    let tip_of = |commit: &Option<Commit>| commit.as_ref().and_then(|commit| commit.tip);
    let is_at_checkpoint = tip_of(&commit) == tip_of(&rebuilt_commit);
    // The record may name a block that the logs lost with an interrupted checkpoint.
    let compared = if is_at_checkpoint { TABLES_FILES } else { TABLES_FILES.get(1..).unwrap_or_default() };
    let mut comparison = files::compare_dirs(disk, dir, rebuilt, compared, &rule, told)?;
    if !is_at_checkpoint {
        let note =
            format!("{}: a checkpoint was interrupted; the blocks below are used", dir.join(COMMIT_FILE).display());
        comparison.notes.push(note);
    }
    Ok(comparison)
}

impl Rebuilt for TxIndex {
    fn finish(&mut self, _: Tip) -> Result<(), FollowerError> {
        self.settle()
    }
}
