//! The progress and cost of runs: counters that any thread may read at any time.
//!
//! Input: tasks, timed by a clock that the caller provides (nothing here reads one). Output: [`Snapshot`]s. Cost: two
//! clock readings per task, about a microsecond. Affects no decision.

use lydian_consensus::Stats;
use lydian_script::CheckCounts;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU64, Ordering};

/// The clock that stages are timed with.
pub trait StageClock: Debug + Send + Sync {
    /// Nanoseconds since some fixed moment.
    fn wall_ns(&self) -> u64;

    /// CPU nanoseconds of the calling thread.
    fn thread_cpu_ns(&self) -> u64;
}

/// A clock that stands still, for callers that need no times.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoClock;

impl StageClock for NoClock {
    fn wall_ns(&self) -> u64 {
        0
    }

    fn thread_cpu_ns(&self) -> u64 {
        0
    }
}

macro_rules! stages {
    ($($stage:ident $name:literal $what:literal)*) => {
        /// The stages of the work.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Stage {
            $(#[doc = $what] $stage,)*
        }

        impl Stage {
            pub const ALL: &[Stage] = &[$(Stage::$stage),*];

            pub fn name(self) -> &'static str {
                match self { $(Stage::$stage => $name,)* }
            }

            pub fn what(self) -> &'static str {
                match self { $(Stage::$stage => $what,)* }
            }

            /// Whether the stage is idle time.
            pub fn is_waiting(self) -> bool {
                matches!(self, Stage::Wait | Stage::Lock | Stage::Blocks)
            }
        }
    };
}

stages! {
    Read "read" "Blocks read from their files."
    Parse "parse" "Blocks parsed, txids and merkle roots hashed."
    Check "check" "Rules that need no coins."
    Link "link" "Outpoints keyed, a block's own spends found."
    Fund "fund" "Coins found, in the window and in the store."
    Inputs "inputs" "Rules of coins; undo data encoded."
    Capture "scripts" "Scripts run, signature hashes made, signatures and hashes of keys collected."
    Settle "signatures" "Signatures verified, hashes of keys compared."
    Rerun "rerun" "Inputs that the batch did not prove, decided one by one."
    Commit "commit" "Blocks committed in their order: the work of one thread alone."
    Prepare "prepare" "Rows of followers made."
    Apply "apply" "Committed blocks applied to the coin store."
    Follow "follow" "Followers, in the order of blocks."
    Checkpoint "checkpoint" "State made durable."
    Disconnect "disconnect" "Blocks disconnected."
    Wait "wait" "Workers without work."
    Lock "lock" "Workers waiting for the lock of the schedule, which another one holds."
    Blocks "blocks" "Workers waiting for blocks whose headers are known."
}

/// Time spent in a stage, by all workers together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StageTime {
    pub wall_ns: u64,
    pub cpu_ns: u64,
}

/// The work done since the meter was created.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Snapshot {
    /// Blocks committed, and their contents.
    pub stats: Stats,
    pub blocks_disconnected: u64,
    /// Blocks committed without running their scripts: verified before, or assumed valid.
    pub blocks_trusted: u64,
    /// Blocks that the run took over as they were checked when they arrived, without reading them from disk.
    pub blocks_taken_over: u64,
    /// In the order of [`Stage::ALL`].
    pub stages: Vec<StageTime>,
    /// Heights of the tip and of the end of the chain that is being validated.
    pub height: u64,
    pub target_height: u64,
    /// Bytes of the blocks validated since the meter was created and of those still to be validated.
    pub bytes_total: u64,
    /// Signature and tweak checks made, including those of blocks in the pipeline, and the number of batches.
    pub checks_made: u64,
    pub batches: u64,
    /// Blocks in the pipeline of the run, and the memory that they are counted with. Both are 0 between runs.
    pub window_blocks: u64,
    pub window_bytes: u64,
}

/// The counters.
#[derive(Debug)]
pub struct Meter {
    clock: Box<dyn StageClock>,
    stages: [(AtomicU64, AtomicU64); Stage::ALL.len()],
    counters: [AtomicU64; COUNTERS],
}

const COUNTERS: usize = 20;

/// The indices of the counters; [`Meter::snapshot`] must match.
#[derive(Clone, Copy)]
enum Counter {
    Blocks,
    Transactions,
    Inputs,
    Outputs,
    Bytes,
    Weight,
    SigopsCost,
    Ecdsa,
    Schnorr,
    Tweak,
    Disconnected,
    Trusted,
    TakenOver,
    Height,
    TargetHeight,
    BytesTotal,
    ChecksMade,
    Batches,
    WindowBlocks,
    WindowBytes,
}

impl Meter {
    pub fn new(clock: Box<dyn StageClock>) -> Meter {
        Meter { clock, stages: Default::default(), counters: Default::default() }
    }

    /// Runs `work` and adds its time to a stage.
    pub(crate) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        self.timed(stage, work).0
    }

    /// Like [`Meter::time`]; returns the nanoseconds too.
    pub(crate) fn timed<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> (T, u64) {
        let (wall, cpu) = (self.clock.wall_ns(), self.clock.thread_cpu_ns());
        let result = work();
        let (wall_ns, cpu_ns) = &self.stages[stage as usize];
        let took = self.clock.wall_ns().saturating_sub(wall);
        wall_ns.fetch_add(took, Ordering::Relaxed);
        cpu_ns.fetch_add(self.clock.thread_cpu_ns().saturating_sub(cpu), Ordering::Relaxed);
        (result, took)
    }

    /// Runs `wait` and adds its time for `workers` workers.
    pub(crate) fn time_all<T>(&self, stage: Stage, workers: usize, wait: impl FnOnce() -> T) -> T {
        let begin = self.clock.wall_ns();
        let result = wait();
        let wall_ns = self.clock.wall_ns().saturating_sub(begin).saturating_mul(workers as u64);
        self.stages[stage as usize].0.fetch_add(wall_ns, Ordering::Relaxed);
        result
    }

    /// The time by the clock.
    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.wall_ns()
    }

    /// Whether `seconds` have passed since the mark was set.
    pub(crate) fn is_past(&self, mark: &AtomicU64, seconds: u64) -> bool {
        let passed = self.clock.wall_ns().saturating_sub(mark.load(Ordering::Relaxed));
        passed >= seconds.saturating_mul(1_000_000_000)
    }

    /// Sets a mark to now.
    pub(crate) fn mark(&self, mark: &AtomicU64) {
        mark.store(self.clock.wall_ns(), Ordering::Relaxed);
    }

    fn add(&self, counter: Counter, value: u64) {
        self.counters[counter as usize].fetch_add(value, Ordering::Relaxed);
    }

    fn set(&self, counter: Counter, value: u64) {
        self.counters[counter as usize].store(value, Ordering::Relaxed);
    }

    fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// Adds a committed block.
    pub(crate) fn committed(&self, stats: &Stats) {
        self.add(Counter::Blocks, stats.blocks);
        self.add(Counter::Transactions, stats.transactions);
        self.add(Counter::Inputs, stats.inputs);
        self.add(Counter::Outputs, stats.outputs);
        self.add(Counter::Bytes, stats.bytes);
        self.add(Counter::Weight, stats.weight);
        self.add(Counter::SigopsCost, stats.sigops_cost);
        self.add(Counter::Ecdsa, stats.checks.ecdsa);
        self.add(Counter::Schnorr, stats.checks.schnorr);
        self.add(Counter::Tweak, stats.checks.tweak);
    }

    pub(crate) fn trusted(&self) {
        self.add(Counter::Trusted, 1);
    }

    pub(crate) fn taken_over(&self) {
        self.add(Counter::TakenOver, 1);
    }

    pub(crate) fn disconnected(&self) {
        self.add(Counter::Disconnected, 1);
    }

    /// Adds a batch of signature and tweak checks.
    pub(crate) fn checks_made(&self, count: u64) {
        self.add(Counter::ChecksMade, count);
        self.add(Counter::Batches, u64::from(count > 0));
    }

    pub(crate) fn at_height(&self, height: u32) {
        self.set(Counter::Height, u64::from(height));
    }

    pub(crate) fn aims_at(&self, height: u32, bytes: u64) {
        self.set(Counter::TargetHeight, u64::from(height));
        self.set(Counter::BytesTotal, self.get(Counter::Bytes) + bytes);
    }

    /// More blocks joined the chain that is being validated.
    pub(crate) fn aims_further(&self, height: u32, bytes: u64) {
        self.set(Counter::TargetHeight, u64::from(height));
        self.add(Counter::BytesTotal, bytes);
    }

    /// The blocks in the pipeline, and the memory that they are counted with.
    pub(crate) fn has_in_window(&self, blocks: usize, bytes: usize) {
        self.set(Counter::WindowBlocks, blocks as u64);
        self.set(Counter::WindowBytes, bytes as u64);
    }

    /// Signature and tweak checks made so far, including those of blocks in the pipeline.
    pub fn checks(&self) -> u64 {
        self.get(Counter::ChecksMade)
    }

    pub fn snapshot(&self) -> Snapshot {
        let time = |(wall_ns, cpu_ns): &(AtomicU64, AtomicU64)| StageTime {
            wall_ns: wall_ns.load(Ordering::Relaxed),
            cpu_ns: cpu_ns.load(Ordering::Relaxed),
        };
        Snapshot {
            stats: Stats {
                blocks: self.get(Counter::Blocks),
                transactions: self.get(Counter::Transactions),
                inputs: self.get(Counter::Inputs),
                outputs: self.get(Counter::Outputs),
                bytes: self.get(Counter::Bytes),
                weight: self.get(Counter::Weight),
                sigops_cost: self.get(Counter::SigopsCost),
                checks: CheckCounts {
                    ecdsa: self.get(Counter::Ecdsa),
                    schnorr: self.get(Counter::Schnorr),
                    tweak: self.get(Counter::Tweak),
                },
            },
            blocks_disconnected: self.get(Counter::Disconnected),
            blocks_trusted: self.get(Counter::Trusted),
            blocks_taken_over: self.get(Counter::TakenOver),
            stages: self.stages.iter().map(time).collect(),
            height: self.get(Counter::Height),
            target_height: self.get(Counter::TargetHeight),
            bytes_total: self.get(Counter::BytesTotal),
            checks_made: self.get(Counter::ChecksMade),
            batches: self.get(Counter::Batches),
            window_blocks: self.get(Counter::WindowBlocks),
            window_bytes: self.get(Counter::WindowBytes),
        }
    }
}
