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
    prepared: Vec<bool>,
    /// Blocks whose inputs were checked when no follower had a preparer.
    never_prepared: Vec<bool>,
    feeds: Vec<Feed>,
    /// The next block of each follower that is fed.
    followed: Vec<usize>,
    checkpoints: Vec<usize>,
    failed: Option<usize>,
}

impl World {
    fn new(blocks: usize, feeds: &[Feed]) -> World {
        World {
            read: vec![false; blocks],
            funded: vec![Vec::new(); PARTITIONS],
            applied: vec![Vec::new(); PARTITIONS],
            is_checked: vec![false; blocks],
            open_parts: vec![0; blocks],
            verified: vec![false; blocks],
            prepared: vec![false; blocks],
            never_prepared: vec![false; blocks],
            feeds: feeds.to_vec(),
            followed: vec![0; feeds.len()],
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
                self.never_prepared[index] = !self.feeds.contains(&Feed::PreparedBlocks);
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
            Task::Prepare(index) => {
                assert!(self.is_checked[index], "only blocks with their coins are prepared");
                assert!(!std::mem::replace(&mut self.prepared[index], true), "once");
                schedule.prepare_done(index, 1_000);
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
                if self.feeds[follower] == Feed::PreparedBlocks {
                    assert!(blocks.clone().all(|index| self.prepared[index] || self.never_prepared[index]));
                }
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
    let mut schedule = Schedule::<Inputs>::new(bounds, vec![1_000; blocks], &[]);
    let mut world = World::new(blocks, &[]);
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
    let mut is_running = false;
    std::iter::from_fn(|| match schedule.next() {
        Next::Task(Task::Verify(parts)) => {
            // The batch before is done; the last one stays in progress, so that the run does not end.
            if std::mem::replace(&mut is_running, true) {
                schedule.verify_done(&[]);
            }
            Some(parts.iter().map(|(_, part)| part.0).sum())
        }
        _ => None,
    })
    .collect()
}

/// limit: BATCH_INPUTS_MIN at
/// limit: BATCH_INPUTS_MIN below
#[test]
fn batches_are_gathered_over_blocks_while_more_come_and_shared_at_the_end() {
    let bounds = Bounds { verifiers: 4, bytes_max: 1 << 30, blocks_max: 40, batch_inputs: 512 };
    // 40 of 100 blocks are in the pipeline with 20 inputs each: 800 inputs for four verifiers, but a batch has at
    // least 256.
    let mut schedule = with_checked_inputs(100, bounds, &[20]);
    assert_eq!(batches(&mut schedule), [260, 260, 260, 20]);
    // More than enough for all: no batch is larger than the bound requires.
    let mut schedule = with_checked_inputs(100, bounds, &[100, 100]);
    assert_eq!(batches(&mut schedule)[..8], [600; 8]);
    // The tip: one block, shared by all verifiers at once.
    let mut schedule = with_checked_inputs(1, bounds, &[40; 10]);
    assert_eq!(batches(&mut schedule), [120, 80, 80, 40, 40, 40]);
}

#[test]
fn a_small_batch_waits_while_blocks_can_be_read() {
    let bounds = Bounds { verifiers: 1, bytes_max: 100 * 3_000, blocks_max: 100, batch_inputs: 512 };
    let mut schedule = Schedule::<Inputs>::new(bounds, vec![1_000; 500], &[]);
    let mut world = World::new(500, &[]);
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
        verifiers in 1_usize..9,
        blocks_max in 1_usize..20,
        bytes_max in 1_usize..8_000_000,
        feeds in prop::collection::vec(prop::sample::select(vec![Feed::No, Feed::Blocks, Feed::PreparedBlocks]), 0..4),
        faults in prop::array::uniform3(prop::option::weighted(0.2, 0_usize..60)),
        cancel_at in prop::option::weighted(0.2, 0_usize..400),
        here_at_first in prop::option::of(0_usize..60),
    ) {
        let blocks = sizes.len();
        let mut here = here_at_first.unwrap_or(blocks).min(blocks);
        let bounds = Bounds { verifiers, bytes_max, blocks_max, batch_inputs: 150 };
        let mut schedule = Schedule::<Inputs>::new(bounds, sizes[..here].to_vec(), &feeds);
        let mut world = World::new(blocks, &feeds);
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
            if !feeds.is_empty() && next_random(20) == 0 {
                let follower = next_random(feeds.len());
                let is_busy = running.iter().any(|task| matches!(task, Task::Follow { follower: of, .. } if *of == follower));
                if world.feeds[follower] == Feed::No {
                    // It joins at any block that is still here.
                    let (first, last) = schedule.joinable().into_inner();
                    world.feeds[follower] = [Feed::Blocks, Feed::PreparedBlocks][next_random(2)];
                    world.followed[follower] = first + next_random(last - first + 1);
                    schedule.join(follower, world.followed[follower], world.feeds[follower]);
                } else if !is_busy && next_random(4) == 0 {
                    world.feeds[follower] = Feed::No;
                    schedule.leave(follower);
                }
            }
            if running.len() < workers && next_random(3) > 0 {
                match schedule.next() {
                    Next::Task(task) => {
                        running.push(task);
                        let verifying = running.iter().filter(|task| matches!(task, Task::Verify(_))).count();
                        prop_assert!(verifying <= verifiers, "no more batches than cores");
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
        let mut fed = world.feeds.iter().zip(&world.followed).filter(|(feed, _)| **feed != Feed::No);
        prop_assert!(fed.all(|(_, next)| *next == world.committed));
        prop_assert_eq!(schedule.base(), world.committed);
    }
}
