//! Runs the workload on anything that stores coins. Input: the subject and sizes. Output: times, bytes and memory,
//! printed.
//!
//! The clock and the process counters are read only here, around the calls of the subject. The spends of every block
//! must find the created coins.
#![allow(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark reads the clock and prints")]

use crate::workload::{BLOCK, Block, Workload};
use std::time::{Duration, Instant};

/// The store under test.
pub(crate) trait Subject {
    fn name(&self) -> &'static str;
    /// Looks up the spends of the block, applies the block, and returns the sum of the spent values.
    fn apply(&mut self, block: &Block) -> i64;
    /// Looks up the spends of the block and returns the sum of their values.
    fn get(&mut self, block: &Block) -> i64;
    /// Makes everything so far durable if the subject supports it.
    fn sync(&mut self);
    /// Memory as counted by the subject itself, and size of its files, in bytes.
    fn sizes(&self) -> (u64, u64);
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) coins: usize,
    pub(crate) operations: usize,
    pub(crate) cache_bytes: u64,
    pub(crate) is_low_memory: bool,
}

impl Sizes {
    /// `--coins N --operations N --cache-mb N --low-memory`; small if run as a test.
    pub(crate) fn from_arguments() -> Sizes {
        let is_bench = std::env::args().any(|argument| argument == "--bench");
        if is_bench && !std::env::args().any(|argument| argument == "--test") {
            Sizes::from_arguments_or(20_000_000, 50_000_000)
        } else {
            Sizes::from_arguments_or(60_000, 200_000)
        }
    }

    pub(crate) fn from_arguments_or(coins: usize, operations: usize) -> Sizes {
        let arguments: Vec<String> = std::env::args().collect();
        let value = |name: &str| {
            let at = arguments.iter().position(|argument| argument == name)?;
            arguments.get(at + 1)?.parse::<usize>().ok()
        };
        Sizes {
            coins: value("--coins").unwrap_or(coins),
            operations: value("--operations").unwrap_or(operations),
            cache_bytes: (value("--cache-mb").unwrap_or(1_000) as u64) << 20,
            is_low_memory: arguments.iter().any(|argument| argument == "--low-memory"),
        }
    }
}

/// Fills the subject, runs the mix, and prints the results.
pub(crate) fn run(subject: &mut dyn Subject, sizes: Sizes) -> Workload {
    let mut workload = Workload::new();
    let mut fill_time = Duration::ZERO;
    let written_before = written_bytes();
    while workload.live() < sizes.coins {
        let block = workload.fill((sizes.coins - workload.live()).min(20 * BLOCK));
        fill_time += time(|| assert_eq!(subject.apply(&block), 0)).1;
    }
    fill_time += time(|| subject.sync()).1;
    let fill_written = written_bytes() - written_before;
    // Run until the number of young coins is stable.
    for _ in 0..100.min(sizes.operations / BLOCK / 4) {
        let block = workload.block();
        assert_eq!(subject.apply(&block), block.value);
    }
    let (mut mix_time, mut slowest) = (Duration::ZERO, Duration::ZERO);
    let (written_before, blocks) = (written_bytes(), sizes.operations / (2 * BLOCK));
    let (mut in_blocks, cpu_before) = (0, cpu_time());
    let mut generate_time = Duration::ZERO;
    for _ in 0..blocks {
        let before = thread_cpu_time();
        let block = workload.block();
        generate_time += thread_cpu_time() - before;
        let (value, spent) = time(|| subject.apply(&block));
        assert_eq!(value, block.value, "the coins found are those created");
        in_blocks += block.spends.len() + block.creates.len();
        mix_time += spent;
        slowest = slowest.max(spent);
    }
    let (_, spent) = time(|| subject.sync());
    mix_time += spent;
    let cpu = cpu_time().saturating_sub(cpu_before + generate_time);
    let written = written_bytes() - written_before;
    let sample = workload.sample(100_000.min(sizes.coins));
    let (value, get_time) = time(|| subject.get(&sample));
    assert_eq!(value, sample.value);
    let (memory, disk) = subject.sizes();
    let per_second = in_blocks as f64 / mix_time.as_secs_f64();
    println!(
        "{}{}: {} coins, {in_blocks} operations, cache {} MB",
        subject.name(),
        if sizes.is_low_memory { " with little memory" } else { "" },
        sizes.coins,
        sizes.cache_bytes >> 20
    );
    println!("  fill      {:8.1} s, {:6.1} GB written", fill_time.as_secs_f64(), gb(fill_written));
    println!(
        "  mix       {:8.1} s, {per_second:9.0} operations/s, {:6.0} ns each ({:.0} ns of CPU), {:6.1} GB written, slowest block {:.1} s",
        mix_time.as_secs_f64(),
        1e9 / per_second,
        cpu.as_secs_f64() * 1e9 / in_blocks as f64,
        gb(written),
        slowest.as_secs_f64(),
    );
    println!("  sync      {:8.1} s at the end", spent.as_secs_f64());
    println!(
        "  get       {:8.0} ns a coin, old ones at random",
        get_time.as_secs_f64() * 1e9 / sample.spends.len() as f64
    );
    println!(
        "  memory    {:8.2} GB counted by itself, {:.2} GB peak of the process, {:.2} GB in huge pages",
        gb(memory),
        gb(status("VmHWM:")),
        gb(field("/proc/self/smaps_rollup", "AnonHugePages:").unwrap_or(0) << 10)
    );
    println!("  disk      {:8.1} GB", gb(disk));
    workload
}

pub(crate) fn time<T>(action: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = action();
    (result, start.elapsed())
}

pub(crate) fn gb(bytes: u64) -> f64 {
    bytes as f64 / 1e9
}

/// Bytes that this process has written (`/proc/self/io`; includes data still in the page cache).
fn written_bytes() -> u64 {
    field("/proc/self/io", "wchar:").unwrap_or(0)
}

/// A field of `/proc/self/status`, in bytes.
pub(crate) fn status(name: &str) -> u64 {
    field("/proc/self/status", name).unwrap_or(0) << 10
}

/// User and system time of the process.
pub(crate) fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or("").split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

/// CPU time of this thread.
fn thread_cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0))
}

fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find(|line| line.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
}
