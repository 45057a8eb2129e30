//! The order of all tasks of a run, as a state machine without threads, blocks or clocks.
//!
//! Input: the reports of workers. Output: the next [`Task`], or that there is none now, or none any more. A block is
//! identified by its index in the run. Invariants, whatever the order of the reports: each partition funds and applies
//! the blocks in order, one task at a time; the inputs of a block are checked once all partitions have funded it; the
//! block is verified after that, committed once it and all before it are verified, and applied and followed only when
//! it is committed; no work at or above [`Schedule::end`] is started. Cost: a few operations for each block and
//! partition. It must never block.

use crate::limits::BATCH_INPUTS_MIN;
use lydian_coins::PARTITIONS;
use lydian_consensus::Part;
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

/// The bounds of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most batches that are verified at the same time.
    pub(crate) verifiers: usize,
    /// Bytes that the blocks between reading and retirement may take, by estimated cost.
    pub(crate) bytes_max: usize,
    pub(crate) blocks_max: usize,
    /// The most inputs that are verified in one batch.
    pub(crate) batch_inputs: usize,
}

/// How a run treats a follower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Feed {
    /// It is not in step, or it failed.
    No,
    Blocks,
    /// A block is prepared before it is connected.
    PreparedBlocks,
}

/// A task for a worker. Ranges are ranges of block indices.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Task<P = Part> {
    /// Read, parse, check and link.
    Read(Range<usize>),
    /// Apply committed blocks to a partition of the coins, then fund blocks from it.
    Partition {
        partition: usize,
        apply: Range<usize>,
        fund: Range<usize>,
    },
    CheckInputs(usize),
    Verify(Vec<(usize, P)>),
    /// Make the rows of the followers that have a preparer.
    Prepare(usize),
    Commit(Range<usize>),
    Follow {
        follower: usize,
        blocks: Range<usize>,
    },
    /// No partition, commit or follower task is running; every block below the end of funding is retired.
    Checkpoint,
}

/// A part of a block's inputs, as far as scheduling is concerned.
pub(crate) trait Piece {
    fn input_count(&self) -> usize;
}

impl Piece for Part {
    fn input_count(&self) -> usize {
        Part::input_count(self)
    }
}

/// The answer to a worker that asks for a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Next<P = Part> {
    Task(Task<P>),
    /// No task now; the report of another worker will change that.
    Wait,
    /// No task any more.
    Done,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    cost: usize,
    is_linked: bool,
    is_verified: bool,
    is_prepared: bool,
    /// The number of partitions that have funded it.
    funded: usize,
}

/// The progress of one partition: the next block to fund, and to apply.
#[derive(Clone, Copy, Debug, Default)]
struct PartitionState {
    funded: usize,
    applied: usize,
    /// The end of the running funding task; equal to `funded` while idle.
    funding: usize,
    is_busy: bool,
}

#[derive(Clone, Copy, Debug)]
struct FollowerState {
    feed: Feed,
    next: usize,
    is_busy: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CheckpointState {
    None,
    /// Blocks below the index are finished first.
    Draining(usize),
    Running(usize),
}

/// The state machine.
#[derive(Debug)]
pub(crate) struct Schedule<P = Part> {
    bounds: Bounds,
    /// Size of each block in bytes.
    sizes: Vec<u32>,
    /// The lowest block that is not retired; `slots` begins with it.
    base: usize,
    slots: VecDeque<Slot>,
    end: usize,
    read_next: usize,
    /// All blocks below are linked.
    linked: usize,
    partitions: [PartitionState; PARTITIONS],
    inputs_queue: VecDeque<usize>,
    verify_queue: VecDeque<(usize, P)>,
    verify_inputs: usize,
    /// The number of batches that are being verified.
    verifying: usize,
    prepare_queue: VecDeque<usize>,
    committed: usize,
    /// The end of the running commit.
    committing: Option<usize>,
    followers: Vec<FollowerState>,
    checkpoint: CheckpointState,
    cost: usize,
    /// Tasks handed out and not yet reported.
    running: usize,
}

/// A block's cost in memory while it is in the pipeline, as a multiple of its size: its tables, links, coins and undo
/// data take about twice its bytes.
const COST_FACTOR: usize = 3;

/// The most blocks read in one task, and the bytes after which it is closed: a small block is not worth a task of its
/// own.
const READ_BLOCKS_MAX: usize = 32;
const READ_BYTES: usize = 256 << 10;

/// The most blocks in one task of a partition.
const PARTITION_BLOCKS_MAX: usize = 64;

impl<P: Piece> Schedule<P> {
    pub(crate) fn new(bounds: Bounds, sizes: Vec<u32>, feeds: &[Feed]) -> Schedule<P> {
        assert!(bounds.verifiers > 0 && bounds.blocks_max > 0 && bounds.batch_inputs > 0, "bounds that allow a run");
        Schedule {
            bounds,
            base: 0,
            slots: VecDeque::new(),
            end: sizes.len(),
            sizes,
            read_next: 0,
            linked: 0,
            partitions: [PartitionState::default(); PARTITIONS],
            inputs_queue: VecDeque::new(),
            verify_queue: VecDeque::new(),
            verify_inputs: 0,
            verifying: 0,
            prepare_queue: VecDeque::new(),
            committed: 0,
            committing: None,
            followers: feeds.iter().map(|feed| FollowerState { feed: *feed, next: 0, is_busy: false }).collect(),
            checkpoint: CheckpointState::None,
            cost: 0,
            running: 0,
        }
    }

    /// The lowest block that is not retired.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// The number of blocks in the pipeline, and the memory that they are counted with.
    pub(crate) fn window(&self) -> (usize, usize) {
        (self.slots.len(), self.cost)
    }

    pub(crate) fn committed(&self) -> usize {
        self.committed
    }

    /// No work is started on blocks at or above this index.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// The lowest block that is neither committed nor being committed.
    pub(crate) fn uncommitted_from(&self) -> usize {
        self.committing.unwrap_or(self.committed)
    }

    /// Starts no work at or above `end` from now on: that block failed, or the run is stopped.
    pub(crate) fn end_at(&mut self, end: usize) {
        assert!(end >= self.uncommitted_from(), "a committed block stays");
        self.end = self.end.min(end);
    }

    /// Whether work has started on every block of the path and none failed: then more may follow.
    pub(crate) fn takes_more(&self) -> bool {
        self.read_next == self.sizes.len() && self.end == self.sizes.len()
    }

    /// Extends the path with blocks of these sizes.
    ///
    /// # Panics
    /// If a block of the path failed.
    pub(crate) fn extend(&mut self, sizes: impl IntoIterator<Item = u32>) {
        assert_eq!(self.end, self.sizes.len(), "no block may follow one that failed");
        self.sizes.extend(sizes);
        self.end = self.sizes.len();
    }

    /// Starts no new funding until all blocks that any partition has funded are retired, then hands out
    /// [`Task::Checkpoint`].
    pub(crate) fn request_checkpoint(&mut self) {
        if self.checkpoint == CheckpointState::None {
            let begun = self.partitions.iter().map(|state| state.funding).max().unwrap_or(0);
            self.checkpoint = CheckpointState::Draining(begun);
        }
    }

    /// The blocks from which on a follower that was not fed may be: committed blocks that are not retired, or the first
    /// block that is not committed.
    pub(crate) fn joinable(&self) -> RangeInclusive<usize> {
        self.base..=self.committed
    }

    /// Feeds a follower from a block on, which must be [`Schedule::joinable`].
    pub(crate) fn join(&mut self, follower: usize, next: usize, feed: Feed) {
        assert!(self.joinable().contains(&next) && self.followers[follower].feed == Feed::No, "a gap in a feed");
        self.followers[follower] = FollowerState { feed, next, is_busy: false };
    }

    /// Feeds a follower no more.
    pub(crate) fn leave(&mut self, follower: usize) {
        self.followers[follower].feed = Feed::No;
        self.retire();
    }

    /// The next task for a worker.
    pub(crate) fn next(&mut self) -> Next<P> {
        let task = self
            .next_commit()
            .or_else(|| self.next_checkpoint())
            .or_else(|| self.next_lane())
            .or_else(|| self.next_check_inputs())
            .or_else(|| self.next_prepare(self.committed))
            .or_else(|| self.next_follow())
            .or_else(|| self.next_read(self.bounds.bytes_max / 2))
            .or_else(|| self.next_verify(self.batch_inputs_min()))
            .or_else(|| self.next_prepare(usize::MAX))
            .or_else(|| self.next_read(self.bounds.bytes_max))
            .or_else(|| self.next_verify(1));
        match task {
            Some(task) => {
                self.running += 1;
                Next::Task(task)
            }
            None if self.running == 0 => {
                assert!(self.base >= self.end, "a run ends with its last block");
                Next::Done
            }
            None => Next::Wait,
        }
    }

    fn slot(&mut self, index: usize) -> &mut Slot {
        let base = self.base;
        &mut self.slots[index - base]
    }

    fn next_commit(&mut self) -> Option<Task<P>> {
        if self.committing.is_some() {
            return None;
        }
        let from = self.committed;
        let verified = self.slots.iter().skip(from - self.base).take_while(|slot| slot.is_verified).count();
        let to = (from + verified).min(self.end);
        (to > from).then(|| {
            self.committing = Some(to);
            Task::Commit(from..to)
        })
    }

    fn next_checkpoint(&mut self) -> Option<Task<P>> {
        let CheckpointState::Draining(to) = self.checkpoint else { return None };
        let is_drained = self.base >= to.min(self.end)
            && self.committing.is_none()
            && self.partitions.iter().all(|state| !state.is_busy);
        let is_quiet = self.followers.iter().all(|follower| !follower.is_busy);
        (is_drained && is_quiet).then(|| {
            self.checkpoint = CheckpointState::Running(to);
            Task::Checkpoint
        })
    }

    /// The index up to which partitions may fund.
    fn fund_end(&self) -> usize {
        let end = self.linked.min(self.end);
        match self.checkpoint {
            CheckpointState::None => end,
            CheckpointState::Draining(to) | CheckpointState::Running(to) => end.min(to),
        }
    }

    /// A task for the idle partition that has made the least progress.
    fn next_lane(&mut self) -> Option<Task<P>> {
        let (fund_end, committed) = (self.fund_end(), self.committed);
        let has_work =
            |state: &PartitionState| !state.is_busy && (state.applied < committed || state.funded < fund_end);
        let partitions = self.partitions.iter().enumerate().filter(|(_, state)| has_work(state));
        let (partition, _) = partitions.min_by_key(|(_, state)| (state.funded, state.applied))?;
        let state = &mut self.partitions[partition];
        state.is_busy = true;
        let limited = |from: usize, to: usize| from..to.max(from).min(from + PARTITION_BLOCKS_MAX);
        let (apply, fund) = (limited(state.applied, committed), limited(state.funded, fund_end));
        state.funding = fund.end;
        Some(Task::Partition { partition, apply, fund })
    }

    fn next_check_inputs(&mut self) -> Option<Task<P>> {
        while let Some(index) = self.inputs_queue.pop_front() {
            if index < self.end {
                return Some(Task::CheckInputs(index));
            }
        }
        None
    }

    /// The lowest block that waits to be prepared, if it is below `end`: a committed block keeps its memory until its
    /// followers have it, and the others can wait for signatures.
    fn next_prepare(&mut self, end: usize) -> Option<Task<P>> {
        while let Some(index) = self.prepare_queue.front().copied().filter(|index| *index < end) {
            self.prepare_queue.pop_front();
            // It may be retired already: the follower that needed it failed.
            if index >= self.base && index < self.end {
                return Some(Task::Prepare(index));
            }
        }
        None
    }

    fn next_follow(&mut self) -> Option<Task<P>> {
        let ends: Vec<usize> = self.followers.iter().map(|state| self.follow_end(state)).collect();
        let has_work = |(state, end): (&FollowerState, &usize)| !state.is_busy && state.next < *end;
        let follower = self.followers.iter().zip(&ends).position(has_work)?;
        let state = &mut self.followers[follower];
        state.is_busy = true;
        Some(Task::Follow { follower, blocks: state.next..ends[follower] })
    }

    /// The index up to which a follower may be given blocks in one task.
    fn follow_end(&self, state: &FollowerState) -> usize {
        let end = self.committed.min(state.next + PARTITION_BLOCKS_MAX);
        match state.feed {
            Feed::No => state.next,
            Feed::Blocks => end,
            Feed::PreparedBlocks => {
                let unprepared = (state.next..end).find(|index| !self.slots[index - self.base].is_prepared);
                unprepared.unwrap_or(end)
            }
        }
    }

    fn has_preparers(&self) -> bool {
        self.followers.iter().any(|state| state.feed == Feed::PreparedBlocks)
    }

    /// The next blocks to read, if those in the pipeline leave room under `bytes_max`; one block is always allowed.
    fn next_read(&mut self, bytes_max: usize) -> Option<Task<P>> {
        let from = self.read_next;
        let (mut to, mut bytes) = (from, 0);
        while to < self.end && to - from < READ_BLOCKS_MAX && bytes < READ_BYTES {
            let cost = self.sizes[to] as usize * COST_FACTOR;
            let is_first = to == self.base;
            let has_room = self.cost + cost <= bytes_max && to - self.base < self.bounds.blocks_max;
            if !is_first && !has_room {
                break;
            }
            self.cost += cost;
            self.slots.push_back(Slot { cost, ..Slot::default() });
            bytes += self.sizes[to] as usize;
            to += 1;
        }
        self.read_next = to;
        (to > from).then_some(Task::Read(from..to))
    }

    /// The fewest inputs of a batch, if that many are waiting: signature kernels work on many at once. While more
    /// blocks follow, a smaller batch is started only by a worker that has nothing else to do. The last blocks, at the
    /// tip the only ones, are verified at once: all workers share them.
    fn batch_inputs_min(&self) -> usize {
        if self.read_next < self.end { BATCH_INPUTS_MIN.min(self.bounds.batch_inputs) } else { 1 }
    }

    /// A batch, if at least `inputs_min` inputs are waiting. Signatures need nothing but the processor: more batches at
    /// the same time than it has cores would be smaller, drive each other out of its caches, and end no sooner. The
    /// other tasks may wait for the disk, so that more workers than cores make sense there.
    fn next_verify(&mut self, inputs_min: usize) -> Option<Task<P>> {
        if self.verify_inputs < inputs_min || self.verifying == self.bounds.verifiers {
            return None;
        }
        // All verifiers share the waiting inputs.
        let share = self.verify_inputs.div_ceil(self.bounds.verifiers);
        let wanted = share.clamp(self.batch_inputs_min(), self.bounds.batch_inputs);
        let (mut parts, mut inputs) = (Vec::new(), 0);
        while inputs < wanted {
            let Some((index, part)) = self.verify_queue.pop_front() else { break };
            self.verify_inputs -= part.input_count();
            if index < self.end {
                inputs += part.input_count();
                parts.push((index, part));
            }
        }
        (!parts.is_empty()).then(|| {
            self.verifying += 1;
            Task::Verify(parts)
        })
    }

    /// Every report of a task starts with this call.
    fn finish_task(&mut self) {
        assert!(self.running > 0, "a report belongs to a task");
        self.running -= 1;
    }

    /// Blocks were read and linked; one that failed has ended the run before ([`Schedule::end_at`]).
    pub(crate) fn read_done(&mut self, linked: Range<usize>) {
        self.finish_task();
        for index in linked {
            self.slot(index).is_linked = true;
        }
        while self.linked < self.read_next && self.slots[self.linked - self.base].is_linked {
            self.linked += 1;
        }
    }

    pub(crate) fn partition_done(&mut self, partition: usize, apply: Range<usize>, fund: Range<usize>) {
        self.finish_task();
        let state = &mut self.partitions[partition];
        assert_eq!((state.applied, state.funded), (apply.start, fund.start), "a partition keeps the order");
        *state = PartitionState { funded: fund.end, applied: apply.end, funding: fund.end, is_busy: false };
        for index in fund {
            let slot = self.slot(index);
            slot.funded += 1;
            if slot.funded == PARTITIONS {
                self.inputs_queue.push_back(index);
            }
        }
        self.retire();
    }

    /// The inputs of a block are checked, and these are its parts; a block without parts is verified.
    pub(crate) fn inputs_checked(&mut self, index: usize, parts: Vec<P>) {
        self.finish_task();
        if index < self.end {
            if self.has_preparers() {
                // Ordered by height, as the queue below.
                let at = self.prepare_queue.partition_point(|other| *other < index);
                self.prepare_queue.insert(at, index);
            } else {
                // A follower that joins later makes the rows itself.
                self.slot(index).is_prepared = true;
            }
        }
        if parts.is_empty() && index < self.end {
            self.slot(index).is_verified = true;
        }
        self.verify_inputs += parts.iter().map(Piece::input_count).sum::<usize>();
        // The queue is ordered by height: the blocks to be committed next come first.
        let at = self.verify_queue.partition_point(|(other, _)| *other < index);
        if at == self.verify_queue.len() {
            self.verify_queue.extend(parts.into_iter().map(|part| (index, part)));
        } else {
            parts.into_iter().rev().for_each(|part| self.verify_queue.insert(at, (index, part)));
        }
    }

    /// A batch is verified, and with it all parts of these blocks.
    pub(crate) fn verify_done(&mut self, verified: &[usize]) {
        self.finish_task();
        self.verifying -= 1;
        for &index in verified {
            self.slot(index).is_verified = true;
        }
    }

    /// The rows of a block are made, and take this number of bytes.
    pub(crate) fn prepare_done(&mut self, index: usize, bytes: usize) {
        self.finish_task();
        if index >= self.base {
            let slot = self.slot(index);
            slot.is_prepared = true;
            slot.cost += bytes;
            self.cost += bytes;
        }
    }

    pub(crate) fn commit_done(&mut self, to: usize) {
        self.finish_task();
        self.committing = None;
        self.committed = to;
    }

    pub(crate) fn follow_done(&mut self, follower: usize, to: usize) {
        self.finish_task();
        let state = &mut self.followers[follower];
        (state.next, state.is_busy) = (to, false);
        self.retire();
    }

    pub(crate) fn checkpoint_done(&mut self) {
        self.finish_task();
        self.checkpoint = CheckpointState::None;
    }

    /// Removes the blocks that all partitions and followers have finished.
    fn retire(&mut self) {
        let partitions = self.partitions.iter().map(|state| state.applied);
        let fed = self.followers.iter().filter(|state| state.feed != Feed::No).map(|state| state.next);
        let done = partitions.chain(fed).min().unwrap_or(0);
        while self.base < done {
            if let Some(slot) = self.slots.pop_front() {
                self.cost -= slot.cost;
            }
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests;
