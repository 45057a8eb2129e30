//! [`BlockUpload`]: the bytes of blocks on their way into the store.
//!
//! Input: the blocks of the node, and the row. Output: the values of blocks, in batches of a bounded size, and rows
//! that name them. What the row lacks is written from the lowest height on, as far as the node has it: one that prunes
//! does not have old blocks. A row names blocks once a quorum has them. Memory: a batch, and a block.

use crate::blocks::{self, BlockHead};
use crate::commit::Commit;
use crate::limits::{BLOCKS_PER_COMMIT_MAX, WRITE_BYTES_MAX};
use crate::plan::Plan;
use crate::runs::{BlockRun, gaps};
use crate::seal::Sealed;
use crate::store::{BlockHeight, Key, Replicas, Store};
use crate::upload::Budget;
use crate::writer::WriterError;
use lydian_primitives::BlockHash;
use std::collections::VecDeque;
use std::fmt;

/// The blocks of the node.
pub trait BlockSource: fmt::Debug + Send {
    /// The lowest height from this one on whose block the node has, on its chain.
    fn first_from(&self, height: u32) -> Option<u32>;

    /// The bytes of a block; `None` if the node does not have it any more. Whatever is returned is checked for its
    /// hash. An error is one sentence.
    fn block(&self, height: u32, hash: &BlockHash) -> Result<Option<Vec<u8>>, String>;
}

/// What is due.
#[derive(Debug)]
pub(crate) enum Task {
    Nothing,
    /// A number for blocks, in this row.
    Reserve(Box<Commit>),
    /// Blocks with these hashes, and what is left of the ones before.
    Write(Vec<BlockHash>),
}

/// What writes blocks.
#[derive(Debug)]
pub(crate) struct BlockUpload {
    source: Box<dyn BlockSource>,
    pending: Option<Pending>,
    /// Why nothing more is written.
    fault: Option<String>,
}

/// Blocks that are being written.
#[derive(Debug)]
struct Pending {
    /// That of their run.
    series: u64,
    /// The end of the run in the row.
    named: u32,
    /// The next height that is read, and the hash of the block below, if it was read here.
    next: u32,
    last: Option<BlockHash>,
    /// Where the run may reach.
    end: u32,
    /// Bytes of the blocks of the run below the next height.
    total: u64,
    /// Values that a quorum does not have yet.
    queue: VecDeque<(Key, Vec<u8>)>,
    /// Bytes that a quorum has and no row names.
    bytes: usize,
    /// The source does not have the next block.
    is_over: bool,
}

impl Pending {
    fn new(run: &BlockRun, total: u64) -> Pending {
        let (series, end) = (run.series, run.heights.end);
        let (queue, last, bytes, is_over) = (VecDeque::new(), None, 0, false);
        Pending { series, named: end, next: end, last, end, total, queue, bytes, is_over }
    }

    /// The height behind the blocks that a quorum has.
    fn acknowledged(&self) -> u32 {
        match self.queue.front() {
            Some((Key::Block(key), _)) => key.at.height,
            _ => self.next,
        }
    }

    /// Follows a change of the row. False if that ends this.
    fn follow(&mut self, commit: &Commit, plan: &Plan) -> Result<bool, WriterError> {
        let Some(run) = commit.blocks.iter().find(|run| run.series == self.series) else { return Ok(false) };
        if run.heights.end == self.acknowledged() {
            (self.named, self.bytes) = (run.heights.end, 0);
        }
        let Some(last) = self.last else { return Ok(run.heights.end == self.named) };
        let is_there = hash_at(commit, plan, self.next - 1)? == Some(last);
        Ok(run.heights.end == self.named && is_there)
    }
}

/// The hash of a block of the row, which is one of the index too.
fn hash_at(commit: &Commit, plan: &Plan, height: u32) -> Result<Option<BlockHash>, WriterError> {
    if height >= commit.written() { Ok(commit.delta_hash(height)) } else { Ok(plan.export.hash(height)?) }
}

impl BlockUpload {
    pub(crate) fn new(source: Box<dyn BlockSource>) -> BlockUpload {
        BlockUpload { source, pending: None, fault: None }
    }

    pub(crate) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// What is due, if the row has the chain of the index.
    pub(crate) fn next(&mut self, commit: &Commit, plan: &Plan, store: &dyn Store) -> Result<Task, WriterError> {
        let tip = commit.tip().map_or(0, |(height, _)| height.saturating_add(1));
        if let Some(mut pending) = self.pending.take()
            && pending.follow(commit, plan)?
        {
            let above = commit.blocks.iter().skip_while(|run| run.series != pending.series).nth(1);
            pending.end = above.map_or(tip, |run| run.heights.start).min(tip);
            let is_done = pending.named == pending.next && (pending.is_over || pending.next >= pending.end);
            // The row may have left these blocks meanwhile, and come back to them with another series.
            let is_cut = pending.next > pending.end;
            self.pending = Some(pending).filter(|_| !is_done && !is_cut);
        }
        if self.pending.is_none()
            && self.fault.is_none()
            && let Some(next) = self.begin(commit, plan, store, tip)?
        {
            return Ok(Task::Reserve(Box::new(next)));
        }
        let Some(pending) = &self.pending else { return Ok(Task::Nothing) };
        let end = pending.end.min(pending.named.saturating_add(BLOCKS_PER_COMMIT_MAX));
        let mut hashes = Vec::new();
        for height in pending.next..end {
            let Some(hash) = hash_at(commit, plan, height)? else { break };
            hashes.push(hash);
        }
        Ok(Task::Write(hashes))
    }

    /// Begins with the lowest block that the row lacks and the source has. Returns a row with a number for it if there
    /// is none.
    fn begin(
        &mut self,
        commit: &Commit,
        plan: &Plan,
        store: &dyn Store,
        tip: u32,
    ) -> Result<Option<Commit>, WriterError> {
        for gap in gaps(&commit.blocks, tip) {
            let first = self.source.first_from(gap.heights.start).filter(|first| gap.heights.contains(first));
            let Some(first) = first else { continue };
            let below = gap.below.checked_sub(1).and_then(|at| commit.blocks.get(at));
            if let Some(run) = below.filter(|run| run.heights.end == first)
                && let Some(total) = total(run, commit, plan, store)?
            {
                self.pending = Some(Pending { end: gap.heights.end, ..Pending::new(run, total) });
                return Ok(None);
            }
            let mut next = commit.clone();
            next.blocks.insert(gap.below, BlockRun { series: next.next, heights: first..first });
            next.next += 1;
            return Ok(Some(next));
        }
        Ok(None)
    }

    /// Reads blocks and writes a batch, which stays if that fails. Returns its bytes.
    pub(crate) fn send(
        &mut self,
        hashes: &[BlockHash],
        store: &dyn Store,
        budget: Budget,
    ) -> Result<usize, WriterError> {
        let BlockUpload { source, pending, fault } = self;
        let Some(pending) = pending else { return Ok(0) };
        let mut bytes: usize = pending.queue.iter().map(|(_, value)| value.len()).sum();
        for hash in hashes {
            if pending.is_over || pending.queue.len() >= budget.writes || bytes >= budget.bytes {
                break;
            }
            match pending.read(source.as_ref(), hash) {
                Ok(read) => bytes += read,
                Err(reason) => *fault = Some(reason),
            }
        }
        if pending.queue.is_empty() {
            return Ok(0);
        }
        let count = budget.take(pending.queue.iter());
        let batch = pending.queue.make_contiguous().get(..count).unwrap_or_default();
        store.write(batch)?;
        let sent = pending.queue.drain(..count).map(|(_, value)| value.len()).sum();
        pending.bytes += sent;
        Ok(sent)
    }

    /// The row that names what a quorum has, once that is much or all.
    pub(crate) fn name(&self, commit: &Commit) -> Option<Commit> {
        let pending = self.pending.as_ref()?;
        let end = pending.acknowledged();
        let is_all = pending.queue.is_empty() && (pending.is_over || pending.next >= pending.end);
        let is_much = end - pending.named >= BLOCKS_PER_COMMIT_MAX || pending.bytes >= WRITE_BYTES_MAX;
        let mut next = commit.clone();
        let run = next.blocks.iter_mut().find(|run| run.series == pending.series)?;
        run.heights.end = end;
        (end > pending.named && (is_all || is_much)).then_some(next)
    }
}

impl Pending {
    /// Reads the next block. Returns the bytes of its values.
    fn read(&mut self, source: &dyn BlockSource, hash: &BlockHash) -> Result<usize, String> {
        let height = self.next;
        self.is_over = true;
        let Some(bytes) = source.block(height, hash)? else { return Ok(0) };
        let at = BlockHeight { series: self.series, height };
        let values = blocks::values(at, *hash, self.total, &bytes)
            .ok_or_else(|| format!("what the node has of block {hash} at height {height} is another block"))?;
        (self.next, self.last, self.is_over) = (height + 1, Some(*hash), false);
        self.total = self.total.saturating_add(bytes.len() as u64);
        let size = values.iter().map(|(_, value)| value.len()).sum();
        self.queue.extend(values);
        Ok(size)
    }
}

/// The bytes of the blocks of a run; `None` if its last block cannot be read, so that it cannot go on.
fn total(run: &BlockRun, commit: &Commit, plan: &Plan, store: &dyn Store) -> Result<Option<u64>, WriterError> {
    if run.heights.is_empty() {
        return Ok(Some(0));
    }
    let height = run.heights.end - 1;
    let Some(hash) = hash_at(commit, plan, height)? else { return Ok(None) };
    let key = blocks::key(BlockHeight { series: run.series, height }, hash, 0);
    let value = store.read(&[key], Replicas::Quorum)?.pop().flatten();
    let content = value.as_deref().and_then(|value| Sealed::Value(key).open(value).ok());
    Ok(content.and_then(|content| BlockHead::decode(content, &hash)).map(|head| head.total))
}
