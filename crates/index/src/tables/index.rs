//! The tables as a follower of the chain: [`TxIndex`], with its reader and the thread that seals.
//!
//! Input: blocks. Output: where the transactions of a txid are, and the outputs of a script. The last
//! [`UNSEALED_BLOCKS`] blocks are never sealed, so that a reorganisation removes what was added; a deeper one drops the
//! segments that it reaches. What is on disk follows from the chain, the salt and the height up to which blocks are
//! sealed, once the sealing thread has nothing to do.
//!
//! Invariants: the commit record is written in a checkpoint only, after everything that it names is durable; or before
//! segments are dropped, for the block below them. Files that it does not name are removed when the index is opened.

use super::commit::{self, Commit, Profile};
use super::numbers::Salt;
use super::places::{Heights, Place, read_blocks};
use super::rows::{BlockRows, ScriptHash};
use super::scripts::{ScriptOutput, Unsealed};
use super::segment::{self, GROUP_BLOCKS, Rows, Segment, Store, ranges};
use super::tail::{self, Group};
use crate::error::IndexError;
use lydian_disk::{Disk, OwnDir, OwnFile, PathKind, Proof};
use lydian_engine::{
    BlockWithSpent, ConnectedBlock, Follower, FollowerError, Left, Prepare, Rows as PreparedRows, Tip,
};
use lydian_primitives::{BlockHash, Height, Txid};
use lydian_stdx::{AbortOnPanic, IgnorePoison, lock};
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{Builder, JoinHandle};

/// The name in `getindexinfo`, as in Core.
pub const TXINDEX_NAME: &str = "txindex";

/// The name in `getindexinfo` of the same tables with those of scripts, as in Core.
pub const TXOSPENDERINDEX_NAME: &str = "txospenderindex";

/// The name in `getindexinfo` of the same tables when servers read them.
pub const ADDRESSINDEX_NAME: &str = "addressindex";

/// The directory, relative to the data directory of the chain.
pub const TABLES_DIR: &str = "indexes/tables";

/// The files in it.
pub const TABLES_FILES: &[OwnFile] = &[
    OwnFile { name: COMMIT_FILE, proof: Proof::Directory },
    OwnFile { name: "#.log", proof: Proof::Directory },
    OwnFile { name: "*.numbers", proof: Proof::Directory },
    OwnFile { name: "*.sizes", proof: Proof::Directory },
    OwnFile { name: "*.blocks", proof: Proof::Directory },
    OwnFile { name: "*.events", proof: Proof::Directory },
    OwnFile { name: "*.lists", proof: Proof::Directory },
    OwnFile { name: "*.positions", proof: Proof::Directory },
];

const COMMIT_FILE: &str = "commit";

/// The last blocks of the chain are not sealed: more than any reorganisation, and what a pruned node keeps.
pub const UNSEALED_BLOCKS: u32 = 1_088;

/// Full groups that wait to be sealed before a block waits for them.
const WAITING_GROUPS_MAX: u32 = 2;

/// The index: a follower of the chain.
#[derive(Debug)]
pub struct TxIndex {
    shared: Arc<Shared>,
    sealer: Option<JoinHandle<()>>,
    durable: Option<Tip>,
}

/// Answers queries, from any thread.
#[derive(Clone, Debug)]
pub struct TxIndexReader(Arc<Shared>);

/// The outputs of a script, as the index has them at one moment.
#[derive(Clone, Debug, Default)]
pub struct ScriptOutputs {
    /// In the order of the chain.
    pub outputs: Vec<ScriptOutput>,
    /// The block up to which the index has the chain.
    pub tip: Option<Tip>,
    /// See [`TxIndexReader::epoch`].
    pub epoch: u64,
}

/// The scripts that some blocks pay to or spend from.
#[derive(Clone, Debug)]
pub struct TouchedScripts {
    salt: Salt,
    keys: HashSet<u64>,
}

impl TouchedScripts {
    /// Whether the script is one of them. It may be none of them if this is true, with a probability of 2^-64 each.
    pub fn has(&self, script: &ScriptHash) -> bool {
        self.keys.contains(&self.salt.script_key(script))
    }
}

#[derive(Debug)]
struct Shared {
    store: Store,
    genesis: BlockHash,
    salt: Salt,
    state: Mutex<State>,
    /// The state changed.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    tip: Option<Tip>,
    /// The number of times that blocks left: numbers of transactions that were read before may be those of others.
    epoch: u64,
    heights: Heights,
    segments: Arc<Vec<Segment>>,
    sealed: u32,
    groups: VecDeque<Group>,
    /// Files that nothing names once the next commit record is written.
    obsolete: BTreeSet<PathBuf>,
    is_sealing: bool,
    is_ended: bool,
    /// The error of the sealing thread: the next call of the engine returns it.
    failed: Option<IndexError>,
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
            Commit { salt: Salt(first, second), tip: None, sealed: 0, profile }
        });
        let store = Store { disk, own, profile: commit.profile, is_ended: Arc::default() };
        let state = read_state(&store, &commit)?;
        let durable = state.tip;
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let shared = Arc::new(Shared { store, genesis, salt: commit.salt, state, changed });
        if saved.is_none() || durable != commit.tip {
            // New, or a checkpoint was interrupted when it had cut a log.
            shared.write_commit(&Commit { tip: durable, ..commit })?;
        }
        let sealing = Arc::clone(&shared);
        let run = move || {
            let _guard = AbortOnPanic;
            sealing.seal_all();
        };
        let sealer = Builder::new().name("txindex".to_owned()).spawn(run);
        let sealer = Some(sealer.map_err(|error| IndexError::Thread { reason: error.to_string() })?);
        let reader = TxIndexReader(Arc::clone(&shared));
        Ok((TxIndex { shared, sealer, durable }, reader))
    }

    /// Waits until everything that can be sealed is.
    pub fn wait_until_sealed(&self) {
        let state = lock(&self.shared.state);
        let is_busy = |state: &mut State| {
            state.failed.is_none() && (state.is_sealing || state.due().is_some() || state.to_settle().is_some())
        };
        drop(self.shared.changed.wait_while(state, is_busy).ignore_poison());
    }
}

impl Drop for TxIndex {
    fn drop(&mut self) {
        self.shared.store.is_ended.store(true, Ordering::Relaxed);
        lock(&self.shared.state).is_ended = true;
        self.shared.changed.notify_all();
        if let Some(sealer) = self.sealer.take() {
            // A panic was printed by then.
            let _ = sealer.join();
        }
    }
}

impl TxIndexReader {
    /// The block up to which the index has the chain.
    pub fn tip(&self) -> Option<Tip> {
        lock(&self.0.state).tip
    }

    /// The places where a transaction of this txid may be, the last one of the chain first: the caller compares the
    /// txid of what it reads there.
    pub fn candidates(&self, txid: &Txid) -> Result<Vec<(u32, Place)>, IndexError> {
        let key = self.0.salt.key(txid);
        let (segments, mut found) = {
            let state = lock(&self.0.state);
            (Arc::clone(&state.segments), state.find_unsealed(key))
        };
        for segment in segments.iter() {
            for number in segment.find(key)? {
                let Some(block) = lock(&self.0.state).heights.block_at(number) else { continue };
                found.extend(segment.place(&block, number)?.map(|place| (number, place)));
            }
        }
        found.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
        Ok(found.into_iter().filter_map(|(number, place)| Some((u32::try_from(number).ok()?, place))).collect())
    }

    /// The name of the follower.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Whether the index has tables of scripts.
    pub fn has_scripts(&self) -> bool {
        self.0.store.profile.has_scripts
    }

    /// The outputs that pay to a script, each with its value or its spender. Scripts are known by a salted hash of 64
    /// bits: another script that has the same one is possible, if improbable, so a caller compares the script of what
    /// it reads.
    pub fn outputs(&self, script: &ScriptHash) -> Result<ScriptOutputs, IndexError> {
        let key = self.0.salt.script_key(script);
        let (segments, unsealed, tip, epoch) = {
            let state = lock(&self.0.state);
            let groups: Vec<&Rows> = state.groups.iter().map(|group| group.rows.as_ref()).collect();
            let unsealed = Unsealed::find(key, state.sealed, &groups, &state.heights)?;
            (Arc::clone(&state.segments), unsealed, state.tip, state.epoch)
        };
        Ok(ScriptOutputs { outputs: unsealed.join(key, &segments)?, tip, epoch })
    }

    /// A number that changes whenever blocks leave the index. If it is the same before and after, numbers of
    /// transactions have meant the same meanwhile.
    pub fn epoch(&self) -> u64 {
        lock(&self.0.state).epoch
    }

    /// The scripts that the blocks from a height on pay to or spend from; `None` if some of them are sealed.
    pub fn touched(&self, from: Height) -> Option<TouchedScripts> {
        let groups: Vec<(u32, Arc<Rows>)> = {
            let state = lock(&self.0.state);
            if from.0 < state.sealed {
                return None;
            }
            let groups = state.groups.iter().filter(|group| group.from + group.blocks() > from.0);
            groups.map(|group| (group.from, Arc::clone(&group.rows))).collect()
        };
        let mut keys = HashSet::new();
        for (first, rows) in &groups {
            for part in rows.parts().filter(|part| first + part.blocks.1 > from.0) {
                // The blocks of the part that are below.
                let below = from.0.saturating_sub(first + part.blocks.0) as usize;
                let counts = rows.blocks.iter().skip(part.blocks.0 as usize).take(below);
                let least: u32 = counts.map(|block| block.transactions).sum();
                keys.extend(part.creates.iter().filter(|row| row.position >= least).map(|row| row.key));
                keys.extend(part.spends.iter().filter(|row| row.position >= least).map(|row| row.key));
            }
        }
        Some(TouchedScripts { salt: self.0.salt, keys })
    }

    /// The height of the block of a transaction.
    pub fn height_of(&self, number: u32) -> Option<Height> {
        lock(&self.0.state).heights.block_of(u64::from(number)).map(Height)
    }

    /// Where a transaction is.
    pub fn place(&self, number: u32) -> Result<Option<Place>, IndexError> {
        let number = u64::from(number);
        let (segments, block) = {
            let state = lock(&self.0.state);
            let Some(block) = state.heights.block_at(number) else { return Ok(None) };
            if let Some(group) = state.groups.iter().rev().find(|group| state.heights.first(group.from) <= number) {
                return Ok(group.place(&state.heights, number));
            }
            (Arc::clone(&state.segments), block)
        };
        for segment in segments.iter() {
            if let Some(place) = segment.place(&block, number)? {
                return Ok(Some(place));
            }
        }
        Ok(None)
    }
}

impl State {
    /// The transactions of a key in the blocks that are not sealed.
    fn find_unsealed(&self, key: u64) -> Vec<(u64, Place)> {
        let mut found = Vec::new();
        for group in &self.groups {
            let first = self.heights.first(group.from);
            let numbers = group.find(key).map(|place| first + u64::from(place));
            found.extend(numbers.filter_map(|number| Some((number, group.place(&self.heights, number)?))));
        }
        found
    }

    /// The group that is to be sealed now.
    fn due(&self) -> Option<&Group> {
        let is_due =
            |group: &&Group| group.is_full() && self.heights.len() >= group.from + GROUP_BLOCKS + UNSEALED_BLOCKS;
        self.groups.front().filter(is_due)
    }

    /// A group whose rows are to be settled.
    fn to_settle(&self) -> Option<&Group> {
        self.groups.iter().find(|group| group.may_settle())
    }

    /// The error of the sealing thread, if there was one.
    fn check(&self) -> Result<(), FollowerError> {
        self.failed.clone().map_or(Ok(()), |error| Err(error.into()))
    }

    fn push(&mut self, block: BlockRows, dir: &Path) -> Result<(), FollowerError> {
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
fn read_state(store: &Store, commit: &Commit) -> Result<State, IndexError> {
    let (disk, dir) = (store.disk.as_ref(), store.own.path());
    let segments: Vec<Segment> =
        ranges(commit.sealed).into_iter().map(|range| store.open(range)).collect::<Result<_, _>>()?;
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
    let blocks = commit.tip.map_or(0, |tip| tip.height.0 + 1);
    let mut groups = VecDeque::new();
    while heights.len() < blocks {
        let group = Group::read(disk, dir, heights.len(), blocks - 1, commit.profile.has_scripts)?;
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
    if commit.sealed > heights.len() {
        return Err(IndexError::damaged(&dir.join(COMMIT_FILE), 0, "the tables have fewer blocks than it says"));
    }
    let state = State {
        tip,
        epoch: 0,
        heights,
        segments: Arc::new(segments),
        sealed: commit.sealed,
        groups,
        obsolete: BTreeSet::new(),
        is_sealing: false,
        is_ended: false,
        failed: None,
    };
    remove_others(store, &state)?;
    Ok(state)
}

/// Removes the files of ours that the state does not have: those of an interrupted seal.
fn remove_others(store: &Store, state: &State) -> Result<(), IndexError> {
    let (disk, dir) = (store.disk.as_ref(), store.own.path());
    let mut named: BTreeSet<PathBuf> = state.groups.iter().map(|group| group.log_path(dir)).collect();
    named.extend(state.segments.iter().flat_map(|segment| segment::files(dir, &segment.heights, store.profile)));
    named.insert(dir.join(COMMIT_FILE));
    for (path, kind) in disk.list(dir)? {
        if kind == PathKind::File && store.own.has(&path) && !named.contains(&path) {
            store.own.remove(disk, &path)?;
        }
    }
    Ok(disk.sync_dir(dir)?)
}

impl Shared {
    fn dir(&self) -> &Path {
        self.store.own.path()
    }

    fn name(&self) -> &'static str {
        if self.store.profile.has_scripts { TXOSPENDERINDEX_NAME } else { TXINDEX_NAME }
    }

    fn commit(&self, tip: Option<Tip>, sealed: u32) -> Commit {
        Commit { salt: self.salt, tip, sealed, profile: self.store.profile }
    }

    fn files_of(&self, segment: &Segment) -> Vec<PathBuf> {
        segment::files(self.dir(), &segment.heights, self.store.profile)
    }

    fn write_commit(&self, commit: &Commit) -> Result<(), IndexError> {
        let bytes = commit::encode(commit, &self.genesis);
        Ok(self.store.own.replace(self.store.disk.as_ref(), &self.dir().join(COMMIT_FILE), &bytes)?)
    }

    /// Removes files that no commit record names any more.
    fn remove_obsolete(&self, state: &mut State) -> Result<(), IndexError> {
        for path in std::mem::take(&mut state.obsolete) {
            self.store.own.remove(self.store.disk.as_ref(), &path)?;
        }
        Ok(())
    }

    /// The sealing thread.
    fn seal_all(&self) {
        loop {
            let idle = |state: &mut State| {
                let has_work = state.due().is_some() || state.to_settle().is_some();
                !state.is_ended && (state.failed.is_some() || !has_work)
            };
            let mut state = self.changed.wait_while(lock(&self.state), idle).ignore_poison();
            if state.is_ended {
                return;
            }
            if state.due().is_none() {
                let group = state.to_settle().map(|group| (group.from, Arc::clone(&group.rows)));
                drop(state);
                if let Some((from, rows)) = group {
                    self.settle(from, &rows);
                }
                continue;
            }
            let Some((from, rows)) = state.due().map(|group| (group.from, Arc::clone(&group.rows))) else { continue };
            let (heights, segments) = (state.heights.clone(), Arc::clone(&state.segments));
            state.is_sealing = true;
            drop(state);
            let range = from..from + GROUP_BLOCKS;
            let sealed = self.store.seal(range.clone(), &rows, &segments, &heights).and_then(|new| {
                let all: Vec<Segment> = segments.iter().cloned().chain([new]).collect();
                Ok((self.store.arrange(&all, range.end, &heights)?, all))
            });
            drop(rows);
            let mut state = lock(&self.state);
            state.is_sealing = false;
            match sealed {
                Ok((arranged, all)) => {
                    let log = state.groups.pop_front().map(|group| group.log_path(self.dir()));
                    state.obsolete.extend(log);
                    self.replace_segments(&mut state, &all, arranged, range.end);
                }
                Err(IndexError::Ended) => return,
                Err(error) => state.failed = Some(error),
            }
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Settles the rows of a group, unless it changed meanwhile.
    fn settle(&self, from: u32, rows: &Arc<Rows>) {
        let settled = Arc::new(Group::settle(rows));
        let mut state = lock(&self.state);
        let group = state.groups.iter_mut().find(|group| group.from == from);
        let old = group
            .filter(|group| Arc::ptr_eq(&group.rows, rows))
            .map(|group| std::mem::replace(&mut group.rows, settled));
        drop(state);
        // Freed outside of the lock.
        drop(old);
        self.changed.notify_all();
    }

    /// Takes other segments; those of `old` that are not among them are obsolete.
    fn replace_segments(&self, state: &mut State, old: &[Segment], new: Vec<Segment>, sealed: u32) {
        let kept: BTreeSet<PathBuf> = new.iter().flat_map(|segment| self.files_of(segment)).collect();
        let left = old.iter().flat_map(|segment| self.files_of(segment)).filter(|path| !kept.contains(path));
        state.obsolete.extend(left);
        state.obsolete.retain(|path| !kept.contains(path));
        state.segments = Arc::new(new);
        state.sealed = sealed;
    }

    /// A block below all that is not sealed leaves the chain: the segments that have blocks from `height` on are given
    /// up, with everything above. The index stands at the block below them, which the commit record names.
    fn drop_segments<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        height: u32,
    ) -> Result<(MutexGuard<'a, State>, Option<Tip>), IndexError> {
        let mut state = self.changed.wait_while(state, |state| state.is_sealing).ignore_poison();
        let old = Arc::clone(&state.segments);
        let kept: Vec<Segment> = old.iter().take_while(|segment| segment.heights.end <= height).cloned().collect();
        let sealed = kept.last().map_or(0, |segment| segment.heights.end);
        let tip = match sealed.checked_sub(1) {
            Some(height) => Some(Tip { height: Height(height), hash: self.hash_at(&kept, height)? }),
            None => None,
        };
        // From now on, no commit record names what is removed here.
        self.write_commit(&self.commit(tip, sealed))?;
        self.replace_segments(&mut state, &old, kept, sealed);
        for group in std::mem::take(&mut state.groups) {
            state.obsolete.insert(group.log_path(self.dir()));
        }
        state.heights.truncate(sealed);
        state.tip = tip;
        state.epoch += 1;
        self.remove_obsolete(&mut state)?;
        Ok((state, tip))
    }

    fn hash_at(&self, segments: &[Segment], height: u32) -> Result<BlockHash, IndexError> {
        let unknown = || IndexError::damaged(self.dir(), 0, "no segment has a block that is sealed");
        let segment = segments.iter().find(|segment| segment.heights.contains(&height)).ok_or_else(unknown)?;
        let row = read_blocks(segment.blocks.as_ref()).nth((height - segment.heights.start) as usize);
        Ok(row.ok_or_else(unknown)??.hash)
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
        BlockRows::of(block, self.salt, self.profile.has_scripts)
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
        self.durable
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
        let is_behind = |state: &mut State| {
            let waiting = state.heights.len().saturating_sub(state.sealed + UNSEALED_BLOCKS);
            state.failed.is_none() && waiting >= (WAITING_GROUPS_MAX + 1) * GROUP_BLOCKS
        };
        let state = lock(&self.shared.state);
        let mut state = self.shared.changed.wait_while(state, is_behind).ignore_poison();
        state.check()?;
        assert_eq!(state.heights.len(), block.height.0, "the block above the last one");
        state.push(rows, self.shared.dir())?;
        state.tip = Some(Tip { height: block.height, hash });
        let is_due = state.due().is_some();
        drop(state);
        if is_due {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        let state = lock(&self.shared.state);
        // What is being sealed is sealed first.
        let is_sealing = |state: &mut State| state.is_sealing && block.height.0 < state.sealed + GROUP_BLOCKS;
        let mut state = self.shared.changed.wait_while(state, is_sealing).ignore_poison();
        state.check()?;
        while let Some(group) = state.groups.back()
            && group.blocks() == 0
            && state.groups.len() > 1
        {
            let path = group.log_path(self.shared.dir());
            state.obsolete.insert(path);
            state.groups.pop_back();
        }
        if state.groups.back().is_none_or(|group| group.blocks() == 0) {
            let (state, durable) = self.shared.drop_segments(state, block.height.0)?;
            drop(state);
            self.durable = durable;
            return Ok(Left::ToDurableTip);
        }
        if let Some(group) = state.groups.back_mut() {
            group.pop();
        }
        state.heights.truncate(block.height.0);
        state.epoch += 1;
        let below = block.height.0.checked_sub(1);
        state.tip = below.map(|height| Tip { height: Height(height), hash: block.block.header().prev_block });
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        let mut state = lock(&self.shared.state);
        state.check()?;
        assert_eq!(state.tip, Some(tip), "a checkpoint is at the last block");
        let Store { disk, own, .. } = &self.shared.store;
        for group in &mut state.groups {
            group.write_log(disk.as_ref(), own)?;
        }
        let commit = self.shared.commit(Some(tip), state.sealed);
        self.shared.write_commit(&commit)?;
        self.durable = Some(tip);
        self.shared.remove_obsolete(&mut state)?;
        let may_settle = state.to_settle().is_some();
        drop(state);
        if may_settle {
            self.shared.changed.notify_all();
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        let state = lock(&self.shared.state);
        let mut state = self.shared.changed.wait_while(state, |state| state.is_sealing).ignore_poison();
        let commit = self.shared.commit(None, 0);
        self.shared.write_commit(&commit)?;
        let (is_ended, epoch) = (state.is_ended, state.epoch + 1);
        *state = State { is_ended, epoch, ..read_state(&self.shared.store, &commit)? };
        self.durable = None;
        Ok(())
    }
}

impl TxIndex {
    fn preparer_of(&self) -> Preparer {
        Preparer { salt: self.shared.salt, profile: self.shared.store.profile }
    }

    fn no_rows(&self, height: Height) -> String {
        let dir = self.shared.dir().display();
        format!(
            "{dir}: two transactions of block {} have the same hash; delete {dir} to build it with another salt",
            height.0
        )
    }
}
