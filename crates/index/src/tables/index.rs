//! The tables as a follower of the chain: [`TxIndex`].
//!
//! Input: blocks. Output: rows in memory and in logs, for the threads that write segments ([`super::threads`]) and for
//! the reader. The last [`UNSEALED_BLOCKS`] blocks are never sealed, so that a reorganisation removes what was added; a
//! deeper one drops the segments that it reaches. What is on disk follows from the chain, the salt and the height up to
//! which blocks are sealed, once the threads have nothing to do and a checkpoint was made.
//!
//! Invariants: a commit record is written after everything that it names is durable, and before segments are given up,
//! without them. Only a checkpoint changes its block upwards. Files that it does not name are removed when the index is
//! opened.

use super::commit::{self, Commit, Profile};
use super::numbers::Salt;
use super::reader::{Held, TxIndexReader};
use super::rows::BlockRows;
use super::segment::{GROUP_BLOCKS, Segment, Store};
use super::state::{Limit, Shared, State, read_state};
use super::tail::{Group, LogWrite};
use super::{COMMIT_FILE, TABLES_FILES, threads};
use crate::error::IndexError;
use lydian_disk::{Disk, OwnDir};
use lydian_engine::{
    BlockWithSpent, ConnectedBlock, Follower, FollowerError, Left, Prepare, Rows as PreparedRows, Tip,
};
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::{IgnorePoison, lock};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// The index: a follower of the chain.
#[derive(Debug)]
pub struct TxIndex {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl TxIndex {
    /// Opens the index in a directory, or creates it with a random salt; at the block of its last checkpoint. Tables
    /// that it has beside those that are asked for stay; without those that are asked for, it is built anew.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        genesis: BlockHash,
        profile: Profile,
        new_salt: fn() -> [u64; 2],
    ) -> Result<(TxIndex, TxIndexReader), IndexError> {
        disk.create_dir(dir)?;
        let own = OwnDir::new(dir, TABLES_FILES);
        let saved = commit::read(disk.as_ref(), &dir.join(COMMIT_FILE), &genesis)?;
        let saved = saved.filter(|saved| saved.profile.covers(profile));
        let commit = saved.unwrap_or_else(|| {
            let [first, second] = new_salt();
            Commit { salt: Salt(first, second), tip: None, sealed: 0, written: 0, profile }
        });
        let store = Store { disk, own, profile: commit.profile, is_ended: Arc::default() };
        let state = read_state(&store, &commit)?;
        let durable = state.tip;
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let record = Mutex::default();
        let shared = Arc::new(Shared { store, genesis, salt: commit.salt, record, state, changed });
        if saved.is_none() || durable != commit.tip {
            // New, or a checkpoint was interrupted when it had cut a log.
            shared.write_commit(&Commit { tip: durable, ..commit })?;
        }
        let mut index = TxIndex { shared, threads: Vec::new() };
        index.threads = threads::start(&index.shared)?;
        let reader = TxIndexReader(Held::Live(Arc::clone(&index.shared)));
        Ok((index, reader))
    }

    /// From now on, no other blocks are sealed and in segments than these: a rebuild ends with the files of the index
    /// that has this commit record.
    pub(super) fn set_limit(&self, limit: Limit) {
        lock(&self.shared.state).limit = Some(limit);
    }

    /// Waits until the threads have nothing to do.
    pub fn wait_until_idle(&self) {
        let state = lock(&self.shared.state);
        drop(self.shared.changed.wait_while(state, |state| state.is_busy()).ignore_poison());
    }

    /// Brings the files to what follows from the chain alone: everything that can be in segments is, and the commit
    /// record names it. The same blocks and the same salt give the same files.
    pub fn settle(&mut self) -> Result<(), FollowerError> {
        let tip = lock(&self.shared.state).tip;
        let Some(tip) = tip else { return Ok(()) };
        // What a log has may be written to a segment.
        self.checkpoint(tip)?;
        self.wait_until_idle();
        lock(&self.shared.state).check()
    }

    fn preparer_of(&self) -> Preparer {
        Preparer { salt: self.shared.salt, profile: self.shared.profile() }
    }

    fn no_rows(&self, height: Height) -> String {
        let dir = self.shared.dir().display();
        format!(
            "{dir}: two transactions of block {} have the same hash; delete {dir} to build it with another salt",
            height.0
        )
    }

    /// Brings the last blocks that are in a segment back into memory, if they are not sealed: the log has their rows.
    /// False if it does not.
    fn take_back(&self, state: &mut State, height: u32) -> Result<bool, IndexError> {
        let from = height / GROUP_BLOCKS * GROUP_BLOCKS;
        if from < state.sealed || state.written() != from + GROUP_BLOCKS {
            return Ok(false);
        }
        let Store { disk, own, profile, .. } = &self.shared.store;
        let group = Group::read(disk.as_ref(), own.path(), from, height, *profile)?;
        if !group.is_full() {
            return Ok(false);
        }
        let mut kept = Vec::clone(&state.segments);
        let left = kept.pop().map(|segment| self.shared.files_of(&segment));
        // From now on, no commit record names what is removed here. The logs have the blocks up to its tip.
        self.shared.write_commit(&self.shared.commit(state.durable, state.sealed, &kept))?;
        state.segments = Arc::new(kept);
        state.groups.push_front(group);
        self.shared.remove_all(left.into_iter().flatten().collect())?;
        Ok(true)
    }

    /// A block that is sealed, or of which no log has the rows, leaves the chain: the segments that have blocks from
    /// `height` on are given up, with everything above. The index stands at the block below them, which the commit
    /// record names.
    fn drop_segments(&self, state: &mut State, height: u32) -> Result<(), IndexError> {
        let old = Arc::clone(&state.segments);
        let kept: Vec<Segment> = old.iter().take_while(|segment| segment.heights.end <= height).cloned().collect();
        let end = kept.last().map_or(0, |segment| segment.heights.end);
        let tip = match end.checked_sub(1) {
            Some(height) => Some(Tip { height: Height(height), hash: self.shared.hash_at(&kept, height)? }),
            None => None,
        };
        let sealed = state.sealed.min(end);
        // From now on, no commit record names what is removed here.
        self.shared.write_commit(&self.shared.commit(tip, sealed, &kept))?;
        self.shared.replace_segments(state, &old, kept);
        for group in std::mem::take(&mut state.groups) {
            state.obsolete.insert(group.log_path(self.shared.dir()));
        }
        state.obsolete.extend(super::state::logs(self.shared.dir(), end..state.heights.len()));
        state.heights.truncate(end);
        (state.tip, state.durable, state.sealed) = (tip, tip, sealed);
        state.epoch += 1;
        self.shared.remove_all(std::mem::take(&mut state.obsolete))
    }
}

impl Drop for TxIndex {
    fn drop(&mut self) {
        self.shared.store.is_ended.store(true, Ordering::Relaxed);
        lock(&self.shared.state).is_ended = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic was printed by then.
            let _ = thread.join();
        }
    }
}

/// Makes the rows of a block.
#[derive(Clone, Copy, Debug)]
struct Preparer {
    salt: Salt,
    profile: Profile,
}

impl Preparer {
    fn rows(self, block: &BlockWithSpent<'_>) -> Option<BlockRows> {
        BlockRows::of(block, self.salt, self.profile)
    }
}

impl Prepare for Preparer {
    fn prepare(&self, block: &BlockWithSpent<'_>) -> PreparedRows {
        let rows = self.rows(block);
        let bytes = rows.as_ref().map_or(0, BlockRows::bytes);
        PreparedRows::new(rows, bytes)
    }
}

impl Follower for TxIndex {
    fn name(&self) -> &str {
        self.shared.name()
    }

    fn durable_tip(&self) -> Option<Tip> {
        lock(&self.shared.state).durable
    }

    fn preparer(&self) -> Option<Arc<dyn Prepare>> {
        Some(Arc::new(self.preparer_of()))
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, rows: Option<PreparedRows>) -> Result<(), FollowerError> {
        let rows: Option<BlockRows> = match rows {
            Some(rows) => rows.take(),
            None => self.preparer_of().rows(&block.with_spent()),
        };
        let Some(rows) = rows else { return Err(FollowerError::new(self.no_rows(block.height))) };
        let hash = rows.block.hash;
        let state = lock(&self.shared.state);
        let mut state = self.shared.changed.wait_while(state, |state| state.is_behind()).ignore_poison();
        state.check()?;
        assert_eq!(state.heights.len(), block.height.0, "the block above the last one");
        state.push(rows, self.shared.dir())?;
        state.tip = Some(Tip { height: block.height, hash });
        let has_work = state.to_write().is_some() || state.to_seal().is_some();
        drop(state);
        if has_work {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        let height = block.height.0;
        let _recording = lock(&self.shared.record);
        let mut state = settled_at(&self.shared, height);
        state.check()?;
        while let Some(group) = state.groups.pop_back_if(|group| group.blocks() == 0) {
            state.obsolete.insert(group.log_path(self.shared.dir()));
        }
        if state.groups.is_empty() && !self.take_back(&mut state, height)? {
            self.drop_segments(&mut state, height)?;
            return Ok(Left::ToDurableTip);
        }
        if let Some(group) = state.groups.back_mut() {
            group.pop();
        }
        state.heights.truncate(height);
        state.epoch += 1;
        let below = height.checked_sub(1);
        state.tip = below.map(|height| Tip { height: Height(height), hash: block.block.header().prev_block });
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        let Store { disk, own, .. } = &self.shared.store;
        // A thread that removes the log of an earlier group of the same heights is done with it.
        let recording = lock(&self.shared.record);
        let state = lock(&self.shared.state);
        state.check()?;
        assert_eq!(state.tip, Some(tip), "a checkpoint is at the last block");
        let writes: Vec<LogWrite> = state.groups.iter().filter_map(|group| group.log_write(own.path())).collect();
        // Only this thread changes the logs, so readers need not wait for the disk.
        drop(state);
        writes.iter().try_for_each(|write| write.run(disk.as_ref(), own))?;
        let mut state = lock(&self.shared.state);
        for write in writes {
            if let Some(group) = state.groups.iter_mut().find(|group| group.from == write.from) {
                group.logged(write);
            }
        }
        state.durable = Some(tip);
        let commit = self.shared.commit(Some(tip), state.sealed, &state.segments);
        let obsolete = std::mem::take(&mut state.obsolete);
        let has_work = state.to_settle().is_some() || state.to_write().is_some();
        drop(state);
        self.shared.write_commit(&commit)?;
        self.shared.remove_all(obsolete)?;
        drop(recording);
        if has_work {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        let _recording = lock(&self.shared.record);
        let mut state = settled_at(&self.shared, 0);
        let commit = self.shared.commit(None, 0, &[]);
        self.shared.write_commit(&commit)?;
        let State { is_ended, epoch, recording, limit, .. } = *state;
        let epoch = epoch + 1;
        *state = State { is_ended, epoch, recording, limit, ..read_state(&self.shared.store, &commit)? };
        Ok(())
    }
}

/// The state once no thread works on the block at a height, or on segments if the block is in one of them.
fn settled_at(shared: &Shared, height: u32) -> MutexGuard<'_, State> {
    let is_worked_on = |state: &mut State| {
        state.writing.is_some_and(|from| height < from + GROUP_BLOCKS) || (state.is_merging && height < state.written())
    };
    shared.changed.wait_while(lock(&shared.state), is_worked_on).ignore_poison()
}
