//! [`Writer`]: brings the store to what the embedded index has.
//!
//! Input: a reader of the embedded index. Output: generations, deltas and the commit row in the store. The writer works
//! in steps of a bounded size, at the pace of its caller, on a copy of what the index has at the moment; so neither
//! validation nor the index waits for it. In each step it does the first of these that is due:
//!
//! 1. *Reserve*: the commit row gives a number to each generation that the store does not have, before anything is
//!    stored under it. So nothing is stored that no row names, and a process that ends at any moment leaves nothing
//!    behind that its successor does not find in the row.
//! 2. *Commit*: deltas of new blocks are written, then the row that names them, and the generations that are complete.
//!    While larger generations are being written, the row names those that it had.
//! 3. *Write* a batch of a generation, those of low heights first.
//! 4. *Store* a batch of blocks, if the store is to have them ([`Writer::with_blocks`]), and name them in the row.
//! 5. *Remove* a batch of what no row has named for an hour ([`KEEP_SECONDS`]). Between two batches of a generation or
//!    of blocks, which may take hours, there is one of these.
//!
//! Every change of the row is a compare-and-set of its sequence. A writer that loses it to another process stops. What
//! was acknowledged before a failure is not written again by this process.
//!
//! Invariants: a row that is [ahead](Ahead) of the index is not changed; a row is proposed once a quorum has
//! acknowledged everything that it names; no number of a generation or series is used twice, so that no late write or
//! removal meets anything that a row names.

use crate::ahead::{Ahead, Course};
use crate::block_upload::{BlockSource, BlockUpload, Task};
use crate::commit::{Commit, Retired, WriterId};
use crate::limits::{WRITE_BYTES_MAX, WRITES_MAX};
use crate::plan::{self, Plan, Target};
use crate::seal::Sealed;
use crate::store::{CommitRead, Key, Keyspace, Store, StoreError, StoredCommit, Swap};
use crate::upload::{Budget, Removal, Upload};
use lydian_index::{Export, Identity, IndexError, RemoteContent, RemoteSegment, TxIndexReader};
use lydian_primitives::BlockHash;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// How long what no commit row names any more is kept for readers of older rows.
pub const KEEP_SECONDS: u64 = 3_600;

/// Fewest copies of each value: with one, a node that is down takes a part of the index with it.
const REPLICATION_MIN: u32 = 2;

/// How often what is under way is halved: down to one write of 256 kB.
const SLOW_MAX: u32 = WRITES_MAX.ilog2();

/// Batches in time after which twice as much may be under way.
const CALM_BATCHES: u32 = 8;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The commit row was made, or numbers were reserved.
    Reserved,
    /// Readers have this height now; `None` if there is no block.
    Committed(Option<u32>),
    /// So many bytes of a generation were written.
    Wrote(usize),
    /// So many bytes of blocks were written.
    Stored(usize),
    /// Something that was due was removed.
    Removed,
    /// An earlier change of the row turned out to be applied.
    Adopted,
    /// The row is ahead of the index, so that nothing is written.
    Waits(Ahead),
    /// The store has what the index has.
    Idle,
}

/// Why a step failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterError {
    Store(StoreError),
    /// The embedded index cannot be read.
    Index(IndexError),
    /// Another process writes to the keyspace: this one must stop.
    Replaced {
        keyspace: String,
        sequence: u64,
    },
    /// The reader is not that of an embedded index.
    NoIndex,
}

impl WriterError {
    /// Whether a further step may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(self, WriterError::Store(error) if error.may_pass())
    }
}

impl fmt::Display for WriterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriterError::Store(error) => error.fmt(f),
            WriterError::Index(error) => error.fmt(f),
            WriterError::Replaced { keyspace, sequence } => write!(
                f,
                "another process writes the index to {keyspace} (its commit row {sequence}): this one stops writing; \
                 let one node write to a keyspace"
            ),
            WriterError::NoIndex => f.write_str("a copy of the index cannot be written from another copy"),
        }
    }
}

impl std::error::Error for WriterError {}

impl From<StoreError> for WriterError {
    fn from(error: StoreError) -> WriterError {
        WriterError::Store(error)
    }
}

impl From<IndexError> for WriterError {
    fn from(error: IndexError) -> WriterError {
        WriterError::Index(error)
    }
}

/// The embedded index that is written.
pub trait Source: fmt::Debug + Send {
    fn identity(&self) -> Identity;

    /// What the index has now; `None` if it cannot be written.
    fn export(&self) -> Option<Export>;
}

impl Source for TxIndexReader {
    fn identity(&self) -> Identity {
        TxIndexReader::identity(self)
    }

    fn export(&self) -> Option<Export> {
        TxIndexReader::export(self)
    }
}

/// Writes the index of this node to a store. For one thread.
#[derive(Debug)]
pub struct Writer {
    store: Arc<dyn Store>,
    index: Box<dyn Source>,
    id: WriterId,
    keyspace: Keyspace,
    /// The row as it is, unless another process replaced it; `None` if it must be read.
    known: Option<Arc<Commit>>,
    /// The sequence of the row that this process changed last, or tried to.
    swapped_from: Option<u64>,
    plan: Option<Plan>,
    upload: Option<Upload>,
    /// What writes blocks; `None`: the store gets none from this process.
    blocks: Option<BlockUpload>,
    /// Generations that this process wrote completely and the row names as being written.
    finished: Vec<RemoteSegment>,
    /// Deltas that a quorum has and no row names yet.
    acknowledged: HashSet<Key>,
    removal: Option<Removal>,
    /// A batch of a generation or of blocks was the last: now is the turn of what is to be removed.
    has_uploaded: bool,
    course: Course,
    /// How often the store was too slow lately, and the batches since that were not.
    slow: u32,
    calm: u32,
}

impl Writer {
    /// `id`: random bytes, of this process alone. Fails if the keyspace cannot be used.
    pub fn open(store: Arc<dyn Store>, index: Box<dyn Source>, id: WriterId) -> Result<Writer, WriterError> {
        let keyspace = store.keyspace()?;
        if keyspace.replication < REPLICATION_MIN {
            let Keyspace { name, replication } = keyspace;
            let reason = format!(
                "{name} has replication {replication}, so that one node that is down takes a part of the index with \
                 it; create it with at least {REPLICATION_MIN}, better 3"
            );
            return Err(StoreError::Refused { reason }.into());
        }
        let mut writer = Writer {
            store,
            index,
            id,
            keyspace,
            known: None,
            swapped_from: None,
            plan: None,
            upload: None,
            blocks: None,
            finished: Vec::new(),
            acknowledged: HashSet::new(),
            removal: None,
            has_uploaded: false,
            course: Course::default(),
            slow: 0,
            calm: 0,
        };
        // Another chain, salt or format is refused at the start.
        writer.read_commit()?;
        Ok(writer)
    }

    /// The same for an index that stays as it is, such as the last checkpoint left it: the row is changed only if it
    /// gets further.
    #[must_use]
    pub fn of_fixed_index(mut self) -> Writer {
        self.course.is_fixed = true;
        self
    }

    /// The same for a store that is to have the bytes of the blocks too, as far as the source has them.
    #[must_use]
    pub fn with_blocks(mut self, source: Box<dyn BlockSource>) -> Writer {
        self.blocks = Some(BlockUpload::new(source));
        self
    }

    /// Why no more blocks are written: the source failed.
    pub fn block_fault(&self) -> Option<&str> {
        self.blocks.as_ref()?.fault()
    }

    /// How many blocks the store has, as far as this writer knows.
    pub fn stored_blocks(&self) -> u32 {
        self.known.as_ref().map_or(0, |commit| commit.stored_blocks())
    }

    /// Does what is due next. `now`: seconds since 1970. After an error that [may pass](WriterError::may_pass), the
    /// caller waits a moment.
    pub fn step(&mut self, now: u64) -> Result<Step, WriterError> {
        let step = self.try_step(now);
        match &step {
            Err(WriterError::Store(StoreError::TimedOut { .. })) => {
                (self.slow, self.calm) = ((self.slow + 1).min(SLOW_MAX), 0);
            }
            Ok(Step::Wrote(_) | Step::Stored(_) | Step::Committed(_)) => {
                self.calm += 1;
                if self.calm == CALM_BATCHES {
                    (self.slow, self.calm) = (self.slow.saturating_sub(1), 0);
                }
            }
            _ => {}
        }
        step
    }

    /// Blocks of the index that readers of the store do not have yet.
    pub fn lag(&self) -> u32 {
        let tip = self.index.export().and_then(|export| export.tip());
        let own = tip.map_or(0, |tip| tip.height.0 + 1);
        let committed = self.known.as_ref().and_then(|commit| commit.tip()).map_or(0, |(height, _)| height + 1);
        own.saturating_sub(committed)
    }

    /// The last block that readers of the store have, as far as this writer knows.
    pub fn tip(&self) -> Option<(u32, BlockHash)> {
        self.known.as_ref()?.tip()
    }

    pub(crate) fn budget(&self) -> Budget {
        Budget { writes: WRITES_MAX >> self.slow, bytes: WRITE_BYTES_MAX >> self.slow }
    }

    fn try_step(&mut self, now: u64) -> Result<Step, WriterError> {
        let Some(commit) = self.read_commit()? else { return self.create() };
        let mut plan = self.take_plan()?;
        let step = self.step_of(&commit, &mut plan, now);
        plan.export.forget_rows();
        self.plan = Some(plan);
        step
    }

    fn step_of(&mut self, commit: &Commit, plan: &mut Plan, now: u64) -> Result<Step, WriterError> {
        if let Some(ahead) = self.course.ahead(commit, plan, &self.store)? {
            return Ok(Step::Waits(ahead));
        }
        if let Some(next) = plan::reserve(commit, plan, now)? {
            return self.swap(commit, next, Step::Reserved);
        }
        self.finished.retain(|segment| commit.writing.contains(segment));
        if let Some(next) = plan::compose(commit, plan, &self.finished, now)? {
            self.write_deltas(commit, &next, plan)?;
            let step = Step::Committed(next.tip().map(|(height, _)| height));
            return self.swap(commit, next, step);
        }
        let is_due = |retired: &&Retired| now >= retired.since.saturating_add(KEEP_SECONDS);
        let due = commit.retired.iter().find(is_due);
        if let Some(due) = due.filter(|_| std::mem::take(&mut self.has_uploaded)) {
            return self.remove(commit, due);
        }
        if self.next_upload(commit, plan).is_none()
            && let Some(step) = self.store_blocks(commit, plan)?
        {
            self.has_uploaded = true;
            return Ok(step);
        }
        // The rest takes longer, and needs segments only.
        plan.export.forget_rows();
        if let Some(written) = self.upload(commit, plan)? {
            self.has_uploaded = true;
            return Ok(Step::Wrote(written));
        }
        due.map_or(Ok(Step::Idle), |due| self.remove(commit, due))
    }

    /// The row: as it was left, or from the store.
    fn read_commit(&mut self) -> Result<Option<Arc<Commit>>, WriterError> {
        if let Some(commit) = &self.known {
            return Ok(Some(Arc::clone(commit)));
        }
        let Some(stored) = self.store.commit(CommitRead::Serial)? else { return Ok(None) };
        let commit = Commit::read(&stored)?;
        check_identity(&commit.identity, &self.index.identity(), &self.keyspace.name)?;
        // Until the first change of this process is applied, the row is that of an earlier one.
        let has_changed = self.swapped_from.is_some_and(|from| commit.sequence > from);
        if has_changed && commit.writer != self.id {
            return Err(self.replaced(commit.sequence));
        }
        self.known = Some(Arc::new(commit));
        Ok(self.known.clone())
    }

    fn replaced(&self, sequence: u64) -> WriterError {
        WriterError::Replaced { keyspace: self.keyspace.name.clone(), sequence }
    }

    /// What the index has, with the generations to be written, which are computed again only if segments change.
    fn take_plan(&mut self) -> Result<Plan, WriterError> {
        let export = self.index.export().ok_or(WriterError::NoIndex)?;
        Ok(Plan::new(export, self.plan.take())?)
    }

    /// Makes the first row.
    fn create(&mut self) -> Result<Step, WriterError> {
        let first = Commit {
            sequence: 0,
            identity: self.index.identity(),
            writer: self.id,
            next: 1,
            content: RemoteContent { segments: Vec::new(), hashes: Vec::new(), epoch: 0 },
            writing: Vec::new(),
            series: 0,
            delta_heights: 0..0,
            retired: Vec::new(),
            blocks: Vec::new(),
        };
        self.swap_from(None, first, Step::Reserved)
    }

    fn swap(&mut self, commit: &Commit, next: Commit, step: Step) -> Result<Step, WriterError> {
        self.swap_from(Some(commit.sequence), next, step)
    }

    fn swap_from(&mut self, expected: Option<u64>, next: Commit, step: Step) -> Result<Step, WriterError> {
        let next = Commit { sequence: expected.unwrap_or(0) + 1, writer: self.id, ..next };
        // Whatever the answer: until it is here, the row is not known.
        self.known = None;
        self.swapped_from = Some(expected.unwrap_or(0));
        match self.store.swap(expected, &next.store())? {
            Swap::Applied => {
                self.acknowledged.clear();
                self.known = Some(Arc::new(next));
                Ok(step)
            }
            Swap::Lost(row) => self.lost(row),
            Swap::Unknown => Err(StoreError::TimedOut { reason: "the commit row was not confirmed".to_owned() }.into()),
        }
    }

    fn lost(&mut self, row: Option<StoredCommit>) -> Result<Step, WriterError> {
        let Some(row) = row else {
            let reason = format!("the commit row of {} was removed", self.keyspace.name);
            return Err(StoreError::Refused { reason }.into());
        };
        let commit = Commit::read(&row)?;
        if commit.writer != self.id {
            return Err(self.replaced(commit.sequence));
        }
        self.known = Some(Arc::new(commit));
        Ok(Step::Adopted)
    }

    /// Writes the deltas that `next` names and `commit` does not, but for those that were acknowledged.
    fn write_deltas(&mut self, commit: &Commit, next: &Commit, plan: &Plan) -> Result<(), WriterError> {
        let new = plan::new_deltas(commit, next);
        let is_new: HashSet<Key> = new.iter().copied().map(Key::Delta).collect();
        self.acknowledged.retain(|key| is_new.contains(key));
        let mut batch: Vec<(Key, Vec<u8>)> = Vec::new();
        for key in new {
            if self.acknowledged.contains(&Key::Delta(key)) {
                continue;
            }
            let Some(delta) = plan.export.delta(key.at.height) else {
                let reason = format!("the index has no rows of block {} at height {}", key.hash, key.at.height);
                return Err(IndexError::Chain { reason }.into());
            };
            let key = Key::Delta(key);
            batch.push((key, Sealed::Value(key).seal(&delta)));
            // The last one may be too much.
            while self.budget().take(batch.iter()) < batch.len() {
                self.send(&mut batch)?;
            }
        }
        while !batch.is_empty() {
            self.send(&mut batch)?;
        }
        Ok(())
    }

    fn send(&mut self, batch: &mut Vec<(Key, Vec<u8>)>) -> Result<(), StoreError> {
        let count = self.budget().take(batch.iter());
        self.store.write(batch.get(..count).unwrap_or_default())?;
        self.acknowledged.extend(batch.drain(..count).map(|(key, _)| key));
        Ok(())
    }

    /// Writes a batch of blocks, or changes the row for them. `None` if there is nothing to do.
    fn store_blocks(&mut self, commit: &Commit, plan: &mut Plan) -> Result<Option<Step>, WriterError> {
        let budget = self.budget();
        let Some(blocks) = &mut self.blocks else { return Ok(None) };
        let hashes = match blocks.next(commit, plan, self.store.as_ref())? {
            Task::Nothing => return Ok(None),
            Task::Reserve(next) => return self.swap(commit, *next, Step::Reserved).map(Some),
            Task::Write(hashes) => hashes,
        };
        // The rest takes longer.
        plan.export.forget_rows();
        let written = blocks.send(&hashes, self.store.as_ref(), budget)?;
        match blocks.name(commit) {
            Some(next) => self.swap(commit, next, Step::Stored(written)).map(Some),
            None => Ok((written > 0).then_some(Step::Stored(written))),
        }
    }

    /// The first generation that is reserved and not complete.
    fn next_upload<'a>(&self, commit: &'a Commit, plan: &'a Plan) -> Option<(&'a Target, &'a RemoteSegment)> {
        plan.targets.iter().find_map(|target| {
            let reserved = commit.writing.iter().find(|segment| segment.facts == target.facts)?;
            (!self.finished.contains(reserved)).then_some((target, reserved))
        })
    }

    /// Writes a batch of the first generation that is reserved and not complete. `None` if there is none.
    fn upload(&mut self, commit: &Commit, plan: &Plan) -> Result<Option<usize>, WriterError> {
        let Some((target, reserved)) = self.next_upload(commit, plan) else { return Ok(None) };
        let mut upload = match self.upload.take().filter(|upload| upload.segment == *reserved) {
            Some(upload) => upload,
            None => Upload::new(reserved.clone(), plan.export.pages(target.parts.clone())?),
        };
        let budget = self.budget();
        upload.fill(budget)?;
        let sent = upload.send(self.store.as_ref(), budget);
        if upload.is_done() {
            self.finished.push(upload.segment);
        } else {
            self.upload = Some(upload);
        }
        Ok(Some(sent?))
    }

    /// Removes a batch of what is due.
    fn remove(&mut self, commit: &Commit, due: &Retired) -> Result<Step, WriterError> {
        let removal = self.removal.take().filter(|removal| removal.what == due.what);
        let mut removal = removal.unwrap_or_else(|| Removal::new(due.what.clone()));
        let is_over = removal.send(self.store.as_ref(), self.budget().writes);
        if is_over == Ok(true) {
            let is_left = |retired: &Retired| retired.what != due.what;
            let retired = commit.retired.iter().filter(|retired| is_left(retired)).cloned().collect();
            return self.swap(commit, Commit { retired, ..commit.clone() }, Step::Removed);
        }
        self.removal = Some(removal);
        is_over?;
        Ok(Step::Removed)
    }
}

/// Refuses a keyspace with another index.
pub(crate) fn check_identity(found: &Identity, own: &Identity, keyspace: &str) -> Result<(), StoreError> {
    let refused = |reason: String| Err(StoreError::Refused { reason });
    if found.genesis != own.genesis {
        let (found, own) = (found.genesis, own.genesis);
        return refused(format!("{keyspace} has the index of the chain with genesis block {found}, not of {own}"));
    }
    if found.salt != own.salt {
        return refused(format!(
            "{keyspace} has an index with another salt than the one of this node: copy indexes/tables of the node that \
             wrote it, or use another keyspace"
        ));
    }
    if found.profile != own.profile {
        return refused(format!("{keyspace} has other tables than the index of this node: use another keyspace"));
    }
    Ok(())
}
