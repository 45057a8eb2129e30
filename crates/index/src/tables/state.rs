//! What the index has: segments, and the blocks behind them in memory and in logs.
//!
//! Input: the commit record and the files that it names. Output: [`State`], behind the lock of [`Shared`]. Segments
//! cover the blocks below `written`. Those of groups of blocks that are not sealed yet have logs beside them, so that a
//! reorganisation finds the rows of these blocks again.
//!
//! Invariants: no file is read or written under the lock, but for a reorganisation that leaves the blocks in memory.

use super::commit::{self, Commit, Profile};
use super::moment::Moment;
use super::numbers::Salt;
use super::places::{Heights, read_blocks};
use super::rows::BlockRows;
use super::segment::{self, GROUP_BLOCKS, Segment, Store, ranges};
use super::tail::{self, Group};
use super::{COMMIT_FILE, UNSEALED_BLOCKS};
use crate::error::IndexError;
use crate::limits::{UNMERGED_BLOCKS_MAX, WAITING_BLOCKS_MAX};
use lydian_disk::PathKind;
use lydian_engine::{FollowerError, Tip};
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::lock;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// The follower, its threads and its readers have this in common.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) store: Store,
    pub(super) genesis: BlockHash,
    pub(super) salt: Salt,
    /// Held while a commit record is made and written, what it no longer names is removed, and logs are written. Taken
    /// before `state`.
    pub(super) record: Mutex<()>,
    pub(super) state: Mutex<State>,
    /// The state changed.
    pub(super) changed: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) tip: Option<Tip>,
    /// The block of the last checkpoint.
    pub(super) durable: Option<Tip>,
    /// The number of times that blocks left: numbers of transactions that were read before may be those of others.
    pub(super) epoch: u64,
    pub(super) heights: Heights,
    /// Those of sealed blocks, as [`ranges`] says, and behind them one for each group that is not sealed.
    pub(super) segments: Arc<Vec<Segment>>,
    /// The blocks below are sealed.
    pub(super) sealed: u32,
    /// The blocks behind the segments.
    pub(super) groups: VecDeque<Group>,
    /// Files that nothing names once the next commit record is written.
    pub(super) obsolete: BTreeSet<PathBuf>,
    /// The first height of the group whose segment is being written.
    pub(super) writing: Option<u32>,
    pub(super) is_merging: bool,
    /// Threads that have segments which the commit record may not name yet.
    pub(super) recording: u32,
    /// Only a rebuild has one.
    pub(super) limit: Option<Limit>,
    pub(super) is_ended: bool,
    /// The error of a thread of the index: the next call of the engine returns it.
    pub(super) failed: Option<IndexError>,
}

/// Up to which heights blocks are sealed and in segments, whatever the height of the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) sealed: u32,
    pub(super) written: u32,
}

impl State {
    /// The height behind the last segment.
    pub(super) fn written(&self) -> u32 {
        self.segments.last().map_or(0, |segment| segment.heights.end)
    }

    /// Whether a group that begins at this height has enough blocks above it to be sealed.
    fn is_deep(&self, from: u32) -> bool {
        self.heights.len() >= from + GROUP_BLOCKS + UNSEALED_BLOCKS
    }

    /// What a reader sees of it.
    pub(super) fn moment(&self) -> Moment<'_> {
        let State { segments, groups, heights, tip, epoch, .. } = self;
        Moment { segments, groups, heights, tip: *tip, epoch: *epoch }
    }

    /// A group whose segment is to be written: its log has it, or it is to be sealed anyway.
    pub(super) fn to_write(&self) -> Option<&Group> {
        let may_be_written = |group: &Group| self.limit.is_none_or(|limit| group.from < limit.written);
        let is_due = |group: &&Group| {
            group.is_full() && may_be_written(group) && (group.is_logged() || self.is_deep(group.from))
        };
        self.groups.front().filter(is_due)
    }

    /// A group whose rows are to be settled.
    pub(super) fn to_settle(&self) -> Option<&Group> {
        self.groups.iter().find(|group| group.may_settle())
    }

    /// The heights whose segments are to be sealed.
    pub(super) fn to_seal(&self) -> Option<Range<u32>> {
        let deep = self.heights.len().saturating_sub(UNSEALED_BLOCKS) / GROUP_BLOCKS * GROUP_BLOCKS;
        let end = self.limit.map_or(deep, |limit| limit.sealed).min(self.written());
        (end > self.sealed).then_some(self.sealed..end)
    }

    /// Whether a further block waits for a thread of the index.
    pub(super) fn is_behind(&self) -> bool {
        let above = |height: u32| self.heights.len().saturating_sub(height.saturating_add(UNSEALED_BLOCKS));
        self.failed.is_none()
            && (above(self.written()) >= WAITING_BLOCKS_MAX || above(self.sealed) >= UNMERGED_BLOCKS_MAX)
    }

    pub(super) fn is_busy(&self) -> bool {
        let has_work = self.to_write().is_some() || self.to_settle().is_some() || self.to_seal().is_some();
        self.failed.is_none() && (self.writing.is_some() || self.is_merging || self.recording > 0 || has_work)
    }

    /// The error of a thread of the index, if there was one.
    pub(super) fn check(&self) -> Result<(), FollowerError> {
        self.failed.clone().map_or(Ok(()), |error| Err(error.into()))
    }

    pub(super) fn push(&mut self, block: BlockRows, dir: &Path) -> Result<(), FollowerError> {
        let height = self.heights.len();
        if self.heights.push(block.block.transactions, block.block.outputs).is_none() {
            return Err(FollowerError::new("the chain has more than 4,294,967,295 transactions"));
        }
        if self.groups.back().is_none_or(Group::is_full) {
            // A log of blocks that left the chain is cut to nothing.
            let is_old = self.obsolete.remove(&tail::log_path(dir, height));
            self.groups.push_back(Group::new(height, if is_old { u64::MAX } else { 0 }));
        }
        if let Some(group) = self.groups.back_mut() {
            group.push(block);
        }
        Ok(())
    }
}

/// The state at a commit record. Removes files that it does not name.
pub(super) fn read_state(store: &Store, commit: &Commit) -> Result<State, IndexError> {
    let (disk, dir) = (store.disk.as_ref(), store.own.path());
    let early = (commit.sealed..commit.written).step_by(GROUP_BLOCKS as usize).map(|from| from..from + GROUP_BLOCKS);
    let segments: Vec<Segment> =
        ranges(commit.sealed).into_iter().chain(early).map(|range| store.open(range)).collect::<Result<_, _>>()?;
    let mut heights = Heights::new();
    let mut tip = None;
    let too_many = || IndexError::damaged(dir, 0, "its blocks have more transactions than there are numbers");
    for segment in &segments {
        for row in read_blocks(segment.blocks.as_ref()) {
            let row = row?;
            tip = Some(Tip { height: Height(heights.len()), hash: row.hash });
            heights.push(row.transactions, row.outputs).ok_or_else(too_many)?;
        }
    }
    if commit.written != heights.len() {
        return Err(IndexError::damaged(&dir.join(COMMIT_FILE), 0, "the tables do not have the blocks that it says"));
    }
    let blocks = commit.tip.map_or(0, |tip| tip.height.0 + 1);
    let mut groups = VecDeque::new();
    while heights.len() < blocks {
        let group = Group::read(disk, dir, heights.len(), blocks - 1, commit.profile)?;
        for row in &group.rows.blocks {
            tip = Some(Tip { height: Height(heights.len()), hash: row.hash });
            heights.push(row.transactions, row.outputs).ok_or_else(too_many)?;
        }
        let is_last = !group.is_full();
        groups.push_back(group);
        if is_last {
            // At the tip; or lower, if a checkpoint was interrupted when it had cut the log.
            break;
        }
    }
    let state = State {
        tip,
        durable: tip,
        epoch: 0,
        heights,
        segments: Arc::new(segments),
        sealed: commit.sealed,
        groups,
        obsolete: BTreeSet::new(),
        writing: None,
        is_merging: false,
        recording: 0,
        limit: None,
        is_ended: false,
        failed: None,
    };
    remove_others(store, &state)?;
    Ok(state)
}

/// Removes the files of ours that the state does not have: those of segments that were not finished.
fn remove_others(store: &Store, state: &State) -> Result<(), IndexError> {
    let (disk, dir) = (store.disk.as_ref(), store.own.path());
    let mut named: BTreeSet<PathBuf> = state.groups.iter().map(|group| group.log_path(dir)).collect();
    named.extend(logs(dir, state.sealed..state.written()));
    named.extend(state.segments.iter().flat_map(|segment| segment::files(dir, &segment.heights, store.profile)));
    named.insert(dir.join(COMMIT_FILE));
    for (path, kind) in disk.list(dir)? {
        if kind == PathKind::File && store.own.has(&path) && !named.contains(&path) {
            store.own.remove(disk, &path)?;
        }
    }
    Ok(disk.sync_dir(dir)?)
}

/// The logs of these heights.
pub(super) fn logs(dir: &Path, heights: Range<u32>) -> impl Iterator<Item = PathBuf> {
    heights.step_by(GROUP_BLOCKS as usize).map(move |from| tail::log_path(dir, from))
}

impl Shared {
    pub(super) fn dir(&self) -> &Path {
        self.store.own.path()
    }

    pub(super) fn name(&self) -> &'static str {
        self.store.profile.name()
    }

    pub(super) fn profile(&self) -> Profile {
        self.store.profile
    }

    /// The commit record of these segments at a block.
    pub(super) fn commit(&self, tip: Option<Tip>, sealed: u32, segments: &[Segment]) -> Commit {
        let written = segments.last().map_or(0, |segment| segment.heights.end);
        Commit { salt: self.salt, tip, sealed, written, profile: self.store.profile }
    }

    pub(super) fn files_of(&self, segment: &Segment) -> Vec<PathBuf> {
        segment::files(self.dir(), &segment.heights, self.store.profile)
    }

    pub(super) fn write_commit(&self, commit: &Commit) -> Result<(), IndexError> {
        let bytes = commit::encode(commit, &self.genesis);
        Ok(self.store.own.replace(self.store.disk.as_ref(), &self.dir().join(COMMIT_FILE), &bytes)?)
    }

    /// Writes a commit record with the segments that there are at the block of the last checkpoint, and removes what it
    /// no longer names. Nothing is written if segments have blocks above that one: the next checkpoint names them. The
    /// caller holds `record`.
    pub(super) fn write_record(&self, _recording: &MutexGuard<'_, ()>) -> Result<(), IndexError> {
        let mut state = lock(&self.state);
        if state.written() > state.durable.map_or(0, |tip| tip.height.0 + 1) {
            return Ok(());
        }
        let commit = self.commit(state.durable, state.sealed, &state.segments);
        let obsolete = std::mem::take(&mut state.obsolete);
        drop(state);
        self.write_commit(&commit)?;
        self.remove_all(obsolete)
    }

    /// Removes files that no commit record names any more.
    pub(super) fn remove_all(&self, obsolete: BTreeSet<PathBuf>) -> Result<(), IndexError> {
        for path in obsolete {
            self.store.own.remove(self.store.disk.as_ref(), &path)?;
        }
        Ok(())
    }

    /// The hash of the block at a height that a segment has.
    pub(super) fn hash_at(&self, segments: &[Segment], height: u32) -> Result<BlockHash, IndexError> {
        let unknown = || IndexError::damaged(self.dir(), 0, "no segment has a block that is sealed");
        let segment = segments.iter().find(|segment| segment.heights.contains(&height)).ok_or_else(unknown)?;
        let row = read_blocks(segment.blocks.as_ref()).nth((height - segment.heights.start) as usize);
        Ok(row.ok_or_else(unknown)??.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::TABLES_FILES;
    use crate::tables::places::BlockRow;
    use crate::tables::testing::MemoryTable;
    use lydian_disk::{OwnDir, SimDisk};

    fn empty() -> State {
        let (disk, own) = (Arc::new(SimDisk::new(1)), OwnDir::new(Path::new("/"), TABLES_FILES));
        let profile = Profile { has_scripts: false, has_txids: false };
        let store = Store { disk, own, profile, is_ended: Arc::default() };
        read_state(&store, &Commit { salt: Salt(1, 2), tip: None, sealed: 0, written: 0, profile }).unwrap()
    }

    fn push(state: &mut State) {
        let block = BlockRow { hash: BlockHash([0; 32]), transactions: 0, outputs: 0 };
        let rows = BlockRows { block, transactions: Vec::new(), txids: Vec::new(), scripts: None };
        state.push(rows, Path::new("/")).unwrap();
    }

    /// limit: WAITING_BLOCKS_MAX at
    /// limit: WAITING_BLOCKS_MAX above
    #[test]
    fn a_block_waits_for_segments_to_be_written() {
        let mut state = empty();
        (1..UNSEALED_BLOCKS + WAITING_BLOCKS_MAX).for_each(|_| push(&mut state));
        assert!(!state.is_behind());
        push(&mut state);
        assert!(state.is_behind());
        // An error is returned to the engine at once.
        state.failed = Some(IndexError::Ended);
        assert!(!state.is_behind());
    }

    /// limit: UNMERGED_BLOCKS_MAX at
    /// limit: UNMERGED_BLOCKS_MAX above
    #[test]
    fn a_block_waits_for_segments_to_be_merged() {
        let mut state = empty();
        for _ in 1..UNSEALED_BLOCKS + UNMERGED_BLOCKS_MAX {
            state.heights.push(1, 1).unwrap();
        }
        let table = Arc::new(MemoryTable::default());
        let (numbers, sizes, blocks) = (table.clone(), table.clone(), table);
        let heights = 0..state.heights.len();
        state.segments = Arc::new(vec![Segment { heights, numbers, sizes, blocks, txids: None, scripts: None }]);
        assert!(!state.is_behind());
        state.heights.push(1, 1).unwrap();
        assert!(state.is_behind());
    }
}
