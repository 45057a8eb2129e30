//! Model checks of the workers: `workers.rs` compiled again with locks and threads that `shuttle` schedules, with the
//! real schedule and with work that only checks the order of tasks. A worker that is never woken is a deadlock, which
//! shuttle finds.

mod sync {
    use shuttle::sync::mpsc::sync_channel;
    pub(super) use shuttle::sync::{Condvar, Mutex, MutexGuard};
    use shuttle::thread::Scope;

    /// Shuttle's scope, in which the last thread to end wakes the caller wherever it is waiting. The extra thread ends
    /// after `run`, so that it is the last.
    pub(super) fn scope<'env, T>(run: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
        shuttle::thread::scope(|scope| {
            let (is_over, wait) = sync_channel::<()>(1);
            scope.spawn(move || wait.recv());
            let result = run(scope);
            drop(is_over);
            result
        })
    }
}
#[path = "workers.rs"]
#[allow(clippy::duplicate_mod, reason = "the code under test, over other locks")]
mod workers;

use super::schedule::{Bounds, Feed, Next, Piece, Schedule, Task};
use super::window::Window;
use super::window::tests::Story;
use crate::chainstate::settings::Cancel;
use lydian_coins::{CoinsError, PARTITIONS, Tip};
use lydian_primitives::{BlockHash, Height};
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::Barrier;
use shuttle::thread::yield_now;
use shuttle::{Config, Runner};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::TryLockError;
use std::sync::{Mutex, MutexGuard};
use workers::{Crew, Step, work_off};

/// The number of orders that each test tries, with each of two schedulers.
const ORDERS: usize = 2_000;
const STORIES: usize = 500;

#[derive(Clone, Debug, PartialEq)]
struct Inputs(usize);

impl Piece for Inputs {
    fn input_count(&self) -> usize {
        self.0
    }
}

/// The fault of a run. The number is that of a block, or in the last three that of a task.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    Read(usize),
    CheckInputs(usize),
    Verify(usize),
    Disk(usize),
    Panic(usize),
    PanicUnderTheLock(usize),
}

/// The effects of the tasks so far.
#[derive(Default)]
struct World {
    read: Vec<bool>,
    funded: Vec<usize>,
    open_parts: Vec<Option<usize>>,
    verified: Vec<bool>,
    committed: usize,
    followed: Vec<usize>,
    /// Whether the run feeds each follower.
    fed: Vec<bool>,
    ask: Ask,
    /// The run has ended.
    is_over: bool,
    checkpoints: usize,
    /// Tasks in progress that touch the stores or the followers.
    running: usize,
    tasks: usize,
    failed: Option<usize>,
}

/// What the follower that catches up asked the run for, and the answer.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
enum Ask {
    #[default]
    Nothing,
    /// To be fed from this block on.
    For(usize),
    Granted,
    Refused,
}

/// The progress of one partition.
#[derive(Default)]
struct PartitionState {
    funded: usize,
    applied: usize,
}

/// A crew whose work only checks that it is allowed. A task that needs exclusive access to something holds its lock and
/// lets the others run meanwhile; a task that finds the lock taken has found a bug.
struct Fake {
    parts: Vec<usize>,
    fault: Fault,
    world: Mutex<World>,
    partitions: [Mutex<PartitionState>; PARTITIONS],
    commits: Mutex<()>,
    followers: Vec<Mutex<()>>,
    cancel: Cancel,
}

#[derive(Debug, PartialEq)]
struct DiskFull;

struct Done {
    number: usize,
    task: Task<Inputs>,
    bad: Option<usize>,
    verified: Vec<usize>,
}

/// Takes as long to drop as a block.
struct Retired;

impl Drop for Retired {
    fn drop(&mut self) {
        pause();
    }
}

fn is_of_the_stores(task: &Task<Inputs>) -> bool {
    !matches!(task, Task::Read(_) | Task::CheckInputs(_) | Task::Verify(_) | Task::Prepare(_))
}

fn alone<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    match mutex.try_lock() {
        Ok(guard) => guard,
        // A worker panicked while holding the lock; others may get here before they learn of it.
        Err(TryLockError::Poisoned(guard)) => guard.into_inner(),
        Err(TryLockError::WouldBlock) => panic!("one at a time"),
    }
}

fn pause() {
    (0..thread_rng().gen_range(0..2)).for_each(|_| yield_now());
}

impl Fake {
    fn new(blocks: usize, followers: usize, fault: Fault) -> Fake {
        let world = World {
            read: vec![false; blocks],
            funded: vec![0; blocks],
            open_parts: vec![None; blocks],
            verified: vec![false; blocks],
            followed: vec![0; followers],
            fed: vec![true; followers],
            ..World::default()
        };
        Fake {
            parts: (0..blocks).map(|_| thread_rng().gen_range(0..3)).collect(),
            fault,
            world: Mutex::new(world),
            partitions: Default::default(),
            commits: Mutex::default(),
            followers: (0..followers).map(|_| Mutex::default()).collect(),
            cancel: Cancel::new(),
        }
    }

    /// Held for a few instructions, during which no other thread runs.
    fn world(&self) -> MutexGuard<'_, World> {
        alone(&self.world)
    }

    fn read(&self, range: &Range<usize>) -> Option<usize> {
        pause();
        let bad = range.clone().find(|index| self.fault == Fault::Read(*index));
        let mut world = self.world();
        for index in range.start..bad.unwrap_or(range.end) {
            assert!(!std::mem::replace(&mut world.read[index], true), "read once");
        }
        bad
    }

    fn partition(&self, partition: usize, apply: &Range<usize>, fund: &Range<usize>) {
        let mut state = alone(&self.partitions[partition]);
        assert_eq!((state.applied, state.funded), (apply.start, fund.start), "a partition keeps the order");
        assert!(apply.end <= self.world().committed, "only what is committed is applied");
        pause();
        let mut world = self.world();
        for index in fund.clone() {
            assert!(world.read[index], "only what is read is funded");
            world.funded[index] += 1;
        }
        *state = PartitionState { funded: fund.end, applied: apply.end };
    }

    fn check_inputs(&self, index: usize) -> Option<usize> {
        assert_eq!(self.world().funded[index], PARTITIONS, "inputs are checked when every partition has answered");
        pause();
        if self.fault == Fault::CheckInputs(index) {
            return Some(index);
        }
        let mut world = self.world();
        assert_eq!(world.open_parts[index].replace(self.parts[index]), None, "inputs are checked once");
        world.verified[index] = self.parts[index] == 0;
        None
    }

    /// The blocks that become verified with these parts, and the one that fails.
    fn verify(&self, parts: &[(usize, Inputs)]) -> (Vec<usize>, Option<usize>) {
        pause();
        let (mut verified, mut bad) = (Vec::new(), None);
        let mut world = self.world();
        for &(index, _) in parts {
            let open = world.open_parts[index].as_mut().expect("verified when its inputs are checked");
            *open -= 1;
            if *open > 0 {
                continue;
            }
            if self.fault == Fault::Verify(index) {
                bad = Some(index);
            } else {
                world.verified[index] = true;
                verified.push(index);
            }
        }
        (verified, bad)
    }

    fn commit(&self, range: &Range<usize>) {
        let _alone = alone(&self.commits);
        for index in range.clone() {
            {
                let mut world = self.world();
                assert_eq!(world.committed, index, "committed in order");
                assert!(world.verified[index], "committed when verified");
                world.committed += 1;
            }
            pause();
        }
    }

    fn follow(&self, follower: usize, blocks: &Range<usize>) {
        let _alone = alone(&self.followers[follower]);
        pause();
        let mut world = self.world();
        assert_eq!(world.followed[follower], blocks.start, "followed in order");
        assert!(blocks.end <= world.committed, "followed when committed");
        world.followed[follower] = blocks.end;
    }

    fn checkpoint(&self) {
        let partitions: Vec<_> = self.partitions.iter().map(alone).collect();
        let committed = self.world().committed;
        for _ in 0..3 {
            let mut world = self.world();
            assert_eq!((world.running, world.committed), (1, committed), "nothing else touches the stores");
            let mut fed = world.followed.iter().zip(&world.fed).filter(|(_, is_fed)| **is_fed);
            assert!(fed.all(|(next, _)| *next == committed), "followers are there");
            world.checkpoints += 1;
            drop(world);
            yield_now();
        }
        assert!(partitions.iter().all(|state| state.applied == committed), "the store is at the tip");
    }

    /// The last follower is not fed at first. It takes committed blocks from their files, and asks the run to take over
    /// whenever it is at the tip, until it is taken over or the run has ended.
    fn catch_up(&self) {
        let late = self.followers.len() - 1;
        loop {
            yield_now();
            {
                let mut world = self.world();
                let committed = world.committed;
                if world.followed[late] < committed {
                    world.followed[late] += 1;
                    continue;
                }
                if world.is_over {
                    return;
                }
                world.ask = Ask::For(committed);
            }
            (0..thread_rng().gen_range(0..4)).for_each(|_| yield_now());
            if std::mem::take(&mut self.world().ask) == Ask::Granted {
                return;
            }
        }
    }

    /// Answers the follower that catches up.
    fn admit(&self, schedule: &mut Schedule<Inputs>) {
        let mut world = self.world();
        let Ask::For(next) = world.ask else { return };
        let (late, is_here) = (self.followers.len() - 1, schedule.joinable().contains(&next));
        if is_here {
            schedule.join(late, next, Feed::Blocks);
            world.fed[late] = true;
        }
        world.ask = if is_here { Ask::Granted } else { Ask::Refused };
    }
}

impl Crew for Fake {
    type State = Schedule<Inputs>;
    type Work = Task<Inputs>;
    type Report = Done;
    type Error = DiskFull;
    type Rest = Retired;

    fn next(&self, schedule: &mut Schedule<Inputs>) -> Step<Task<Inputs>> {
        if self.cancel.is_cancelled() {
            let end = schedule.uncommitted_from();
            schedule.end_at(end);
        }
        self.admit(schedule);
        let next = schedule.next();
        if let Next::Task(task) = &next {
            let highest = match task {
                Task::Read(range) | Task::Commit(range) | Task::Partition { fund: range, .. } => range.end,
                Task::CheckInputs(index) | Task::Prepare(index) => index + 1,
                Task::Verify(parts) => parts.iter().map(|(index, _)| index + 1).max().unwrap_or(0),
                Task::Follow { .. } | Task::Checkpoint => 0,
            };
            assert!(highest <= schedule.end() || matches!(task, Task::Partition { fund, .. } if fund.is_empty()));
        }
        match next {
            Next::Task(task) => Step::Work(task),
            Next::Wait => Step::Wait,
            Next::Done => Step::Done,
        }
    }

    fn perform(&self, task: Task<Inputs>) -> Result<Done, DiskFull> {
        let number = {
            let mut world = self.world();
            world.running += usize::from(is_of_the_stores(&task));
            world.tasks += 1;
            world.tasks - 1
        };
        pause();
        let (mut bad, mut verified) = (None, Vec::new());
        match &task {
            _ if self.fault == Fault::Disk(number) => return Err(DiskFull),
            // `resume_unwind` does not run the panic hook, which would print the message.
            _ if self.fault == Fault::Panic(number) => resume_unwind(Box::new("a mistake")),
            Task::Read(range) => bad = self.read(range),
            Task::Partition { partition, apply, fund } => self.partition(*partition, apply, fund),
            Task::CheckInputs(index) => bad = self.check_inputs(*index),
            Task::Verify(parts) => (verified, bad) = self.verify(parts),
            // Its preconditions are tested with the schedule.
            Task::Prepare(_) => pause(),
            Task::Commit(range) => self.commit(range),
            Task::Follow { follower, blocks } => self.follow(*follower, blocks),
            Task::Checkpoint => self.checkpoint(),
        }
        self.world().running -= usize::from(is_of_the_stores(&task));
        Ok(Done { number, task, bad, verified })
    }

    fn enter(&self, schedule: &mut Schedule<Inputs>, done: Done) -> Option<Retired> {
        if self.fault == Fault::PanicUnderTheLock(done.number) {
            resume_unwind(Box::new("a mistake"));
        }
        if let Some(bad) = done.bad.filter(|bad| *bad < schedule.end()) {
            schedule.end_at(bad);
            self.world().failed = Some(bad);
        }
        match done.task {
            Task::Read(range) => schedule.read_done(range.start..done.bad.unwrap_or(range.end)),
            Task::Partition { partition, apply, fund } => {
                schedule.partition_done(partition, apply, fund);
                if thread_rng().gen_range(0..24) == 0 {
                    schedule.request_checkpoint();
                }
                return thread_rng().gen_bool(0.2).then_some(Retired);
            }
            Task::CheckInputs(index) => {
                let parts = if done.bad.is_some() { 0 } else { self.parts[index] };
                schedule.inputs_checked(index, vec![Inputs(40); parts]);
            }
            Task::Verify(_) => schedule.verify_done(&done.verified),
            Task::Prepare(index) => schedule.prepare_done(index, 100),
            Task::Commit(range) => schedule.commit_done(range.end),
            Task::Follow { follower, blocks } => schedule.follow_done(follower, blocks.end),
            Task::Checkpoint => schedule.checkpoint_done(),
        }
        None
    }
}

/// Makes a run with `workers` workers and checks its result. With `is_late`, one follower joins during the run.
fn check(workers: usize, fault: Fault, is_cancelled: bool, is_late: bool) {
    let (blocks, followers) = (thread_rng().gen_range(0..6), thread_rng().gen_range(0..2));
    let bounds = Bounds {
        verifiers: thread_rng().gen_range(1..workers + 1),
        bytes_max: thread_rng().gen_range(1..2_000_000),
        blocks_max: thread_rng().gen_range(1..6),
        batch_inputs: 64,
    };
    let mut feeds: Vec<Feed> =
        (0..followers).map(|_| if thread_rng().gen_bool(0.5) { Feed::Blocks } else { Feed::PreparedBlocks }).collect();
    if is_late {
        feeds.push(Feed::No);
    }
    let sizes = (0..blocks).map(|_| thread_rng().gen_range(1..200_000)).collect();
    let fake = Fake::new(blocks, feeds.len(), fault);
    if is_late {
        fake.world().fed[followers] = false;
    }
    let result = sync::scope(|scope| {
        if is_late {
            scope.spawn(|| fake.catch_up());
        }
        scope.spawn(|| {
            let pauses = if is_cancelled { thread_rng().gen_range(0..200) } else { return };
            (0..pauses).for_each(|_| yield_now());
            fake.cancel.cancel();
        });
        let result = catch_unwind(AssertUnwindSafe(|| work_off(&fake, Schedule::new(bounds, sizes, &feeds), workers)));
        fake.world().is_over = true;
        result
    });
    let world = fake.world();
    let is_hit = |number| world.tasks > number;
    let state = match (result, fault) {
        (Ok(Ok(state)), _) => state,
        (Ok(Err(DiskFull)), Fault::Disk(number)) if is_hit(number) => return,
        (Err(payload), Fault::Panic(number) | Fault::PanicUnderTheLock(number)) if is_hit(number) => {
            assert!(payload.is::<&str>(), "the panic of the crew, whose message is a text");
            return;
        }
        (Ok(Err(DiskFull)), _) => panic!("an error without a fault"),
        (Err(payload), _) => resume_unwind(payload),
    };
    if let Fault::Disk(number) | Fault::Panic(number) | Fault::PanicUnderTheLock(number) = fault {
        assert!(!is_hit(number), "an error or a panic ends a run");
    }
    assert_eq!((world.running, state.committed(), state.base()), (0, world.committed, world.committed));
    assert!(
        fake.partitions.iter().all(|state| alone(state).applied == world.committed),
        "all that is committed is applied"
    );
    assert!(world.followed.iter().all(|next| *next == world.committed));
    let bad = match fault {
        Fault::Read(bad) | Fault::CheckInputs(bad) => bad,
        Fault::Verify(bad) if fake.parts.get(bad).is_some_and(|parts| *parts > 0) => bad,
        _ => blocks,
    };
    if is_cancelled {
        assert!(world.committed <= bad.min(blocks));
    } else {
        assert_eq!(world.committed, bad.min(blocks));
        assert_eq!(world.failed, (bad < blocks).then_some(bad));
    }
}

/// Random orders, and orders with few preemptions at the worst places.
fn check_orders(check: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(check.clone(), ORDERS);
    shuttle::check_pct(check, ORDERS, 3);
}

#[test]
fn every_order_of_workers_gives_the_whole_chain() {
    check_orders(|| check(thread_rng().gen_range(1..5), Fault::None, false, false));
}

#[test]
fn every_order_of_workers_stops_at_the_block_that_fails() {
    check_orders(|| {
        let block = thread_rng().gen_range(0..6);
        let fault = [Fault::Read(block), Fault::CheckInputs(block), Fault::Verify(block)][thread_rng().gen_range(0..3)];
        check(thread_rng().gen_range(1..5), fault, thread_rng().gen_bool(0.2), false);
    });
}

#[test]
fn a_run_that_is_cancelled_ends_whole() {
    check_orders(|| check(thread_rng().gen_range(1..5), Fault::None, true, false));
}

/// The hand-over of a follower that caught up: whatever the order, it gets every committed block once, in order, from
/// the files or from the run, also if the run fails or is stopped.
#[test]
fn a_follower_joins_without_a_gap() {
    check_orders(|| {
        let block = thread_rng().gen_range(0..12);
        let fault = if block < 6 { Fault::Verify(block) } else { Fault::None };
        check(thread_rng().gen_range(1..5), fault, thread_rng().gen_bool(0.2), true);
    });
}

/// checklist: 58
#[test]
fn an_error_or_a_panic_of_one_worker_ends_all() {
    check_orders(|| {
        let task = thread_rng().gen_range(0..60);
        let faults = [Fault::Disk(task), Fault::Panic(task), Fault::PanicUnderTheLock(task)];
        check(thread_rng().gen_range(1..5), faults[thread_rng().gen_range(0..3)], false, false);
    });
}

/// One task, and then one per worker; those wait for each other.
struct Meeting {
    workers: usize,
    barrier: Barrier,
}

#[derive(Default)]
struct Attendance {
    begun: usize,
    done: usize,
}

impl Crew for Meeting {
    type State = Attendance;
    /// Whether it is the first task.
    type Work = bool;
    type Report = ();
    type Error = DiskFull;
    type Rest = Retired;

    fn next(&self, state: &mut Attendance) -> Step<bool> {
        let may_begin = state.begun == 0 || state.done > 0 && state.begun <= self.workers;
        state.begun += usize::from(may_begin);
        match may_begin {
            true => Step::Work(state.begun == 1),
            false if state.done == self.workers + 1 => Step::Done,
            false => Step::Wait,
        }
    }

    fn perform(&self, is_first: bool) -> Result<(), DiskFull> {
        if !is_first {
            self.barrier.wait();
        }
        Ok(())
    }

    fn enter(&self, state: &mut Attendance, (): ()) -> Option<Retired> {
        state.done += 1;
        None
    }
}

/// A report that wakes no worker would leave the work to those awake: not a deadlock in the tests above, but one here.
#[test]
fn a_report_wakes_everybody_who_waits() {
    check_orders(|| {
        let workers = thread_rng().gen_range(1..5);
        let meeting = Meeting { workers, barrier: Barrier::new(workers) };
        let attendance = work_off(&meeting, Attendance::default(), workers);
        assert_eq!(attendance.map(|attendance| attendance.done), Ok(workers + 1));
    });
}

/// Work that ends and comes again after a worker found none left, as blocks may arrive while a run ends.
struct Latecomer;

#[derive(Default)]
struct Arrivals {
    is_told: bool,
    late: usize,
}

impl Crew for Latecomer {
    type State = Arrivals;
    type Work = ();
    type Report = ();
    type Error = DiskFull;
    type Rest = Retired;

    fn next(&self, state: &mut Arrivals) -> Step<()> {
        if !state.is_told || state.late > 3 {
            state.is_told = true;
            return Step::Done;
        }
        state.late += 1;
        Step::Work(())
    }

    fn perform(&self, (): ()) -> Result<(), DiskFull> {
        Ok(())
    }

    fn enter(&self, _: &mut Arrivals, (): ()) -> Option<Retired> {
        None
    }
}

/// Otherwise the run would continue with the remaining workers, perhaps a single one: blocks that arrive late belong to
/// the next run.
#[test]
fn no_worker_continues_alone() {
    check_orders(|| {
        let arrivals = work_off(&Latecomer, Arrivals::default(), 3);
        assert_eq!(arrivals.map(|arrivals| arrivals.late), Ok(0));
    });
}

/// The real windows over a real coin store: a partition's window is handed from worker to worker.
struct HandOver<'a> {
    story: &'a Story,
    windows: [Mutex<Window>; PARTITIONS],
}

impl Crew for HandOver<'_> {
    type State = Schedule<Inputs>;
    type Work = Task<Inputs>;
    type Report = (Task<Inputs>, bool);
    type Error = CoinsError;
    type Rest = Retired;

    fn next(&self, schedule: &mut Schedule<Inputs>) -> Step<Task<Inputs>> {
        match schedule.next() {
            Next::Task(task) => Step::Work(task),
            Next::Wait => Step::Wait,
            Next::Done => Step::Done,
        }
    }

    fn perform(&self, task: Task<Inputs>) -> Result<(Task<Inputs>, bool), CoinsError> {
        pause();
        let mut is_good = true;
        match &task {
            Task::Partition { partition, apply, fund } => {
                let mut window = alone(&self.windows[*partition]);
                window.apply(apply.len(), &self.story.coins)?;
                pause();
                window.fund(&self.story.jobs[fund.clone()], &self.story.coins)?;
                pause();
            }
            // Above a bad block the coins found may be wrong and are not used.
            Task::CheckInputs(index) => is_good = *index > self.story.end() || self.story.check_found(*index),
            Task::Checkpoint => {
                let tip = Tip { height: Height(1), hash: BlockHash::ZERO };
                self.story.coins.checkpoint(tip, 1)?;
            }
            _ => {}
        }
        Ok((task, is_good))
    }

    fn enter(&self, schedule: &mut Schedule<Inputs>, (task, is_good): (Task<Inputs>, bool)) -> Option<Retired> {
        match task {
            Task::Read(range) => schedule.read_done(range),
            Task::Partition { partition, apply, fund } => {
                schedule.partition_done(partition, apply, fund);
                if thread_rng().gen_range(0..40) == 0 {
                    schedule.request_checkpoint();
                }
            }
            Task::CheckInputs(index) => {
                if !is_good && index < schedule.end() {
                    schedule.end_at(index);
                }
                schedule.inputs_checked(index, Vec::new());
            }
            Task::Verify(_) => schedule.verify_done(&[]),
            Task::Prepare(index) => schedule.prepare_done(index, 100),
            Task::Commit(range) => schedule.commit_done(range.end),
            Task::Follow { follower, blocks } => schedule.follow_done(follower, blocks.end),
            Task::Checkpoint => schedule.checkpoint_done(),
        }
        None
    }
}

#[test]
fn every_order_of_workers_finds_the_coins_of_the_plain_map() {
    let check = || {
        let blocks = thread_rng().gen_range(0..7);
        let story = Story::new(blocks, &mut |below| thread_rng().gen_range(0..below));
        let workers = thread_rng().gen_range(1..5);
        let blocks_max = thread_rng().gen_range(1..8);
        let bounds = Bounds { verifiers: workers, bytes_max: 1 << 20, blocks_max, batch_inputs: 64 };
        let windows = std::array::from_fn(|partition| Mutex::new(Window::new(partition)));
        let crew = HandOver { story: &story, windows };
        let state = match work_off(&crew, Schedule::new(bounds, vec![1000; blocks], &[]), workers) {
            Ok(state) => state,
            Err(error) => panic!("{error}"),
        };
        assert_eq!(state.committed(), story.end());
        story.check_store(state.committed());
    };
    // The store needs a larger stack than shuttle's default.
    let mut config = Config::new();
    config.stack_size = 1 << 20;
    Runner::new(RandomScheduler::new(STORIES), config.clone()).run(check);
    Runner::new(PctScheduler::new(3, STORIES), config).run(check);
}
