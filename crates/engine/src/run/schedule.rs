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
use std::ops::Range;

/// The bounds of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) workers: usize,
    /// Bytes that the blocks between reading and retirement may take, by estimated cost.
    pub(crate) bytes_max: usize,
    pub(crate) blocks_max: usize,
    /// The most inputs that are verified in one batch.
    pub(crate) batch_inputs: usize,
    pub(crate) followers: usize,
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

#[derive(Clone, Copy, Debug, Default)]
struct FollowerState {
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
    pub(crate) fn new(bounds: Bounds, sizes: Vec<u32>) -> Schedule<P> {
        assert!(bounds.workers > 0 && bounds.blocks_max > 0 && bounds.batch_inputs > 0, "bounds that allow a run");
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
            committed: 0,
            committing: None,
            followers: vec![FollowerState::default(); bounds.followers],
            checkpoint: CheckpointState::None,
            cost: 0,
            running: 0,
        }
    }

    /// The lowest block that is not retired.
    pub(crate) fn base(&self) -> usize {
        self.base
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

    /// The next task for a worker.
    pub(crate) fn next(&mut self) -> Next<P> {
        let task = self
            .next_commit()
            .or_else(|| self.next_checkpoint())
            .or_else(|| self.next_lane())
            .or_else(|| self.next_check_inputs())
            .or_else(|| self.next_follow())
            .or_else(|| self.next_read(self.bounds.bytes_max / 2))
            .or_else(|| self.next_verify(self.batch_inputs_min()))
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

    fn next_follow(&mut self) -> Option<Task<P>> {
        let committed = self.committed;
        let follower = self.followers.iter().position(|state| !state.is_busy && state.next < committed)?;
        let state = &mut self.followers[follower];
        state.is_busy = true;
        Some(Task::Follow { follower, blocks: state.next..committed.min(state.next + PARTITION_BLOCKS_MAX) })
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

    /// A batch, if at least `inputs_min` inputs are waiting.
    fn next_verify(&mut self, inputs_min: usize) -> Option<Task<P>> {
        if self.verify_inputs < inputs_min {
            return None;
        }
        // All workers share the waiting inputs.
        let share = self.verify_inputs.div_ceil(self.bounds.workers);
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
        (!parts.is_empty()).then_some(Task::Verify(parts))
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
        for &index in verified {
            self.slot(index).is_verified = true;
        }
    }

    pub(crate) fn commit_done(&mut self, to: usize) {
        self.finish_task();
        self.committing = None;
        self.committed = to;
    }

    pub(crate) fn follow_done(&mut self, follower: usize, to: usize) {
        self.finish_task();
        self.followers[follower] = FollowerState { next: to, is_busy: false };
        self.retire();
    }

    pub(crate) fn checkpoint_done(&mut self) {
        self.finish_task();
        self.checkpoint = CheckpointState::None;
    }

    /// Removes the blocks that all partitions and followers have finished.
    fn retire(&mut self) {
        let partitions = self.partitions.iter().map(|state| state.applied);
        let done = partitions.chain(self.followers.iter().map(|state| state.next)).min().unwrap_or(0);
        while self.base < done {
            if let Some(slot) = self.slots.pop_front() {
                self.cost -= slot.cost;
            }
            self.base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Inputs(usize);

    impl Piece for Inputs {
        fn input_count(&self) -> usize {
            self.0
        }
    }

    /// The observed effects of tasks; it asserts the invariants, whatever the order of reports.
    #[derive(Default)]
    struct World {
        read: Vec<bool>,
        funded: Vec<Vec<usize>>,
        applied: Vec<Vec<usize>>,
        is_checked: Vec<bool>,
        open_parts: Vec<usize>,
        verified: Vec<bool>,
        committed: usize,
        followed: Vec<usize>,
        checkpoints: Vec<usize>,
        failed: Option<usize>,
    }

    impl World {
        fn new(blocks: usize, followers: usize) -> World {
            World {
                read: vec![false; blocks],
                funded: vec![Vec::new(); PARTITIONS],
                applied: vec![Vec::new(); PARTITIONS],
                is_checked: vec![false; blocks],
                open_parts: vec![0; blocks],
                verified: vec![false; blocks],
                followed: vec![0; followers],
                ..World::default()
            }
        }

        fn fail(&mut self, schedule: &mut Schedule<Inputs>, index: usize) {
            if index < schedule.end() {
                schedule.end_at(index);
                self.failed = Some(index);
            }
        }

        /// Does the work of a task and reports it. `faults` is the block that fails in each step, if any.
        fn finish(
            &mut self,
            schedule: &mut Schedule<Inputs>,
            task: Task<Inputs>,
            faults: [Option<usize>; 3],
            parts: &[usize],
        ) {
            match task {
                Task::Read(range) => {
                    let bad = range.clone().find(|index| faults[0] == Some(*index));
                    let linked = range.start..bad.unwrap_or(range.end);
                    linked.clone().for_each(|index| self.read[index] = true);
                    if let Some(bad) = bad {
                        self.fail(schedule, bad);
                    }
                    schedule.read_done(linked);
                }
                Task::Partition { partition, apply, fund } => {
                    assert!(apply.end <= self.committed, "only committed blocks are applied");
                    assert!(fund.clone().all(|index| self.read[index]), "only blocks that are read are funded");
                    self.applied[partition].extend(apply.clone());
                    self.funded[partition].extend(fund.clone());
                    schedule.partition_done(partition, apply, fund);
                }
                Task::CheckInputs(index) => {
                    assert!(self.funded.iter().all(|funded| funded.contains(&index)), "all partitions have answered");
                    assert!(!std::mem::replace(&mut self.is_checked[index], true), "once");
                    if faults[1] == Some(index) {
                        self.fail(schedule, index);
                        schedule.inputs_checked(index, Vec::new());
                    } else {
                        self.open_parts[index] = parts[index];
                        self.verified[index] = parts[index] == 0;
                        schedule.inputs_checked(index, (0..parts[index]).map(|part| Inputs(part * 100 + 1)).collect());
                    }
                }
                Task::Verify(pieces) => {
                    let mut done = Vec::new();
                    for (index, _) in pieces {
                        self.open_parts[index] -= 1;
                        if self.open_parts[index] == 0 && faults[2] == Some(index) {
                            self.fail(schedule, index);
                        } else if self.open_parts[index] == 0 {
                            self.verified[index] = true;
                            done.push(index);
                        }
                    }
                    schedule.verify_done(&done);
                }
                Task::Commit(range) => {
                    assert_eq!(range.start, self.committed, "in order");
                    assert!(range.clone().all(|index| self.verified[index]), "only verified blocks");
                    self.committed = range.end;
                    schedule.commit_done(range.end);
                }
                Task::Follow { follower, blocks } => {
                    assert_eq!(blocks.start, self.followed[follower], "in order");
                    assert!(blocks.end <= self.committed, "only committed blocks");
                    self.followed[follower] = blocks.end;
                    schedule.follow_done(follower, blocks.end);
                }
                Task::Checkpoint => {
                    let at = self.committed;
                    assert!(self.applied.iter().all(|applied| applied.len() == at), "the store is at one height");
                    assert!(self.funded.iter().all(|funded| funded.len() <= at || schedule.end() <= at), "no window");
                    self.checkpoints.push(at);
                    schedule.checkpoint_done();
                }
            }
        }
    }

    /// Blocks whose parts have the given numbers of inputs, at most 100 each, at the point where they wait for their
    /// batches.
    fn with_checked_inputs(blocks: usize, bounds: Bounds, parts: &[usize]) -> Schedule<Inputs> {
        let mut schedule = Schedule::<Inputs>::new(bounds, vec![1_000; blocks]);
        let mut world = World::new(blocks, 0);
        for _ in 0.. {
            match schedule.next() {
                Next::Task(Task::CheckInputs(index)) => {
                    schedule.inputs_checked(index, parts.iter().map(|inputs| Inputs(*inputs)).collect());
                    if index + 1 == bounds.blocks_max.min(blocks) {
                        return schedule;
                    }
                }
                Next::Task(task) => world.finish(&mut schedule, task, [None; 3], &[]),
                other => panic!("{other:?} before the inputs are checked"),
            }
        }
        schedule
    }

    fn batches(schedule: &mut Schedule<Inputs>) -> Vec<usize> {
        std::iter::from_fn(|| match schedule.next() {
            Next::Task(Task::Verify(parts)) => Some(parts.iter().map(|(_, part)| part.0).sum()),
            _ => None,
        })
        .collect()
    }

    /// limit: BATCH_INPUTS_MIN at
    /// limit: BATCH_INPUTS_MIN below
    #[test]
    fn batches_are_gathered_over_blocks_while_more_come_and_shared_at_the_end() {
        let bounds = Bounds { workers: 4, bytes_max: 1 << 30, blocks_max: 40, batch_inputs: 512, followers: 0 };
        // 40 of 100 blocks are in the pipeline with 20 inputs each: 800 inputs for four workers, but a batch has at
        // least 256.
        let mut schedule = with_checked_inputs(100, bounds, &[20]);
        assert_eq!(batches(&mut schedule), [260, 260, 260, 20]);
        // More than enough for all: no batch is larger than the bound requires.
        let mut schedule = with_checked_inputs(100, bounds, &[100, 100]);
        assert_eq!(batches(&mut schedule)[..8], [600; 8]);
        // The tip: one block, shared by all workers at once.
        let mut schedule = with_checked_inputs(1, bounds, &[40; 10]);
        assert_eq!(batches(&mut schedule), [120, 80, 80, 40, 40, 40]);
    }

    #[test]
    fn a_small_batch_waits_while_blocks_can_be_read() {
        let bounds = Bounds { workers: 1, bytes_max: 100 * 3_000, blocks_max: 100, batch_inputs: 512, followers: 0 };
        let mut schedule = Schedule::<Inputs>::new(bounds, vec![1_000; 500]);
        let mut world = World::new(500, 0);
        let mut on_their_way = 0;
        loop {
            match schedule.next() {
                Next::Task(Task::CheckInputs(index)) => schedule.inputs_checked(index, vec![Inputs(1)]),
                Next::Task(Task::Read(range)) => {
                    on_their_way += range.len();
                    world.finish(&mut schedule, Task::Read(range), [None; 3], &[]);
                }
                Next::Task(Task::Verify(parts)) => {
                    // The window is full with fewer inputs than a batch should have, so the batch takes all there are.
                    assert_eq!((on_their_way, parts.len()), (100, 100));
                    return;
                }
                Next::Task(task) => world.finish(&mut schedule, task, [None; 3], &[]),
                other => panic!("{other:?} while blocks wait"),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Tasks may finish in any order: the chain is whole up to the lowest failure, and no task waits forever.
        #[test]
        fn every_order_of_reports_gives_the_same_chain(
            sizes in prop::collection::vec(1_u32..400_000, 0..60),
            seed in any::<u64>(),
            workers in 1_usize..9,
            blocks_max in 1_usize..20,
            bytes_max in 1_usize..8_000_000,
            followers in 0_usize..3,
            faults in prop::array::uniform3(prop::option::weighted(0.2, 0_usize..60)),
            cancel_at in prop::option::weighted(0.2, 0_usize..400),
            here_at_first in prop::option::of(0_usize..60),
        ) {
            let blocks = sizes.len();
            let mut here = here_at_first.unwrap_or(blocks).min(blocks);
            let bounds = Bounds { workers, bytes_max, blocks_max, batch_inputs: 150, followers };
            let mut schedule = Schedule::<Inputs>::new(bounds, sizes[..here].to_vec());
            let mut world = World::new(blocks, followers);
            let mut random = seed;
            let mut next_random = move |below: usize| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                usize::try_from(random >> 33).unwrap() % below
            };
            let parts: Vec<usize> = (0..blocks).map(|_| next_random(4)).collect();
            let mut running = Vec::new();
            let mut was_cancelled = false;
            for step in 0.. {
                prop_assert!(step < 200_000, "a run ends");
                if cancel_at == Some(step) {
                    schedule.end_at(schedule.uncommitted_from());
                    was_cancelled = true;
                }
                if next_random(50) == 0 {
                    schedule.request_checkpoint();
                }
                if !was_cancelled && schedule.takes_more() && next_random(4) == 0 {
                    let more = next_random(9).min(blocks - here);
                    schedule.extend(sizes[here..here + more].iter().copied());
                    here += more;
                }
                if running.len() < workers && next_random(3) > 0 {
                    match schedule.next() {
                        Next::Task(task) => {
                            running.push(task);
                            continue;
                        }
                        Next::Wait => prop_assert!(!running.is_empty(), "a worker is busy while others wait"),
                        Next::Done => {
                            prop_assert!(running.is_empty());
                            break;
                        }
                    }
                }
                if !running.is_empty() {
                    let task = running.swap_remove(next_random(running.len()));
                    world.finish(&mut schedule, task, faults, &parts);
                }
            }
            // A faulty part is only reached if the block has parts.
            let verify_fault = faults[2].filter(|index| *index < blocks && parts[*index] > 0);
            // Blocks that arrived after the end belong to another run.
            let end = [faults[0], faults[1], verify_fault].into_iter().flatten().min().unwrap_or(here).min(here);
            if was_cancelled {
                prop_assert!(world.committed <= end);
            } else {
                prop_assert_eq!(world.committed, end);
                prop_assert_eq!(world.failed, (end < here).then_some(end));
            }
            let committed: Vec<usize> = (0..world.committed).collect();
            prop_assert!(world.applied.iter().all(|applied| *applied == committed));
            prop_assert!(world.followed.iter().all(|next| *next == world.committed));
            prop_assert_eq!(schedule.base(), world.committed);
        }
    }
}
