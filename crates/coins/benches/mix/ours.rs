//! Runs the workload on the store, then measures the time to reopen it after a clean stop and after a kill. Input:
//! sizes. Output: printed.
//!
//! One thread looks up and applies, like one worker of the engine; checkpoints use two threads.

use crate::run::{self, Sizes, Subject, cpu_time, gb, time};
use crate::workload::{Block, Workload};
use lydian_coins::{Coins, Key, PARTITIONS, Settings, Tip};
use lydian_consensus::CoinRef;
use lydian_disk::{Disk, RealDisk};
use lydian_primitives::{BlockHash, Height, OutPoint};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const THREADS: usize = 2;

pub(crate) fn bench(sizes: Sizes) {
    let dir = scratch();
    let _ = std::fs::remove_dir_all(&dir);
    let (mut ours, spent) = time(|| Ours::open(&dir, sizes));
    assert!(spent.as_secs() < 5 && ours.coins.is_empty());
    let mut workload = run::run(&mut ours, sizes);
    let stats = ours.coins.stats();
    println!(
        "  store     {} segments, {} checkpoints ({:.2} s, {:.2} s of CPU), {} records read",
        stats.segments,
        stats.checkpoints,
        ours.checkpoints.0.as_secs_f64(),
        ours.checkpoints.1.as_secs_f64(),
        stats.disk_reads
    );
    ours.count_reads(&mut workload);
    ours.checkpoint_often(&mut workload);
    ours.look_up_during_checkpoints(&mut workload);
    if !std::env::args().any(|argument| argument == "--no-scan") {
        ours.scan(&mut workload);
    }
    let coins = ours.coins.len();
    for what in ["clean stop", "kill"] {
        if what == "kill" {
            // Blocks without a checkpoint, and a file of an unfinished checkpoint.
            for _ in 0..20 {
                ours.put(&workload.block());
            }
            RealDisk.append_file(&dir.join("99999999.coins")).unwrap().write(b"torn").unwrap();
        }
        drop(ours);
        let cpu_before = cpu_time();
        let (opened, spent) = time(|| Ours::open(&dir, sizes));
        ours = opened;
        assert_eq!(ours.coins.len(), coins);
        println!(
            "  open      {:8.2} s after a {what}, {THREADS} threads, {:.2} s of CPU, {:.2} GB of memory, {:.2} bytes a coin",
            spent.as_secs_f64(),
            (cpu_time() - cpu_before).as_secs_f64(),
            gb(ours.coins.memory_bytes()),
            ours.coins.memory_bytes() as f64 / coins as f64
        );
    }
    drop(ours);
    std::fs::remove_dir_all(&dir).unwrap();
}

/// `LYDIAN_BENCH_DIR`, or the system's directory for temporary files.
fn scratch() -> PathBuf {
    let parent = std::env::var_os("LYDIAN_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    parent.join(format!("lydian-bench-coins-{}", std::process::id()))
}

struct Ours {
    coins: Coins,
    height: u32,
    keys: [Vec<Key>; PARTITIONS],
    /// Wall and CPU time of all checkpoints.
    checkpoints: (Duration, Duration),
}

impl Ours {
    fn open(dir: &Path, sizes: Sizes) -> Ours {
        let of = if sizes.is_low_memory { Settings::low_memory } else { Settings::new };
        let settings = of(sizes.cache_bytes);
        let coins = Coins::open(Arc::new(RealDisk), dir, settings, [3; 16], THREADS).unwrap();
        Ours { coins, height: 0, keys: Default::default(), checkpoints: Default::default() }
    }

    /// Looks up coins on disk and coins that do not exist, one batch of many, and counts the records or groups read.
    fn count_reads(&mut self, workload: &mut Workload) {
        self.sync();
        let sample = workload.sample(100_000);
        let absent = |outpoint: &OutPoint| OutPoint { vout: outpoint.vout + 1000, ..*outpoint };
        let absent = Block { spends: sample.spends.iter().map(absent).collect(), ..Block::default() };
        for (name, block, value) in [("existing", &sample, sample.value), ("absent", &absent, 0)] {
            let (reads_before, cpu_before) = (self.coins.stats().disk_reads, cpu_time());
            let (found, spent) = time(|| self.get(block));
            assert_eq!(found, value);
            let count = block.spends.len() as f64;
            println!(
                "  reads     {:8.4} a lookup of {name} coins; {:.0} ns, {:.0} ns of CPU",
                (self.coins.stats().disk_reads - reads_before) as f64 / count,
                spent.as_secs_f64() * 1e9 / count,
                (cpu_time() - cpu_before).as_secs_f64() * 1e9 / count
            );
        }
    }

    /// Makes a checkpoint after each block, as at the tip.
    fn checkpoint_often(&mut self, workload: &mut Workload) {
        const COUNT: u32 = 40;
        self.sync();
        self.checkpoints = Default::default();
        for _ in 0..COUNT {
            let block = workload.block();
            assert_eq!(self.get(&block), block.value);
            self.put(&block);
            self.sync();
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(COUNT);
        println!(
            "  tip       {:8.1} ms a checkpoint after one block, {:.1} ms of CPU",
            ms(self.checkpoints.0),
            ms(self.checkpoints.1)
        );
    }

    /// Looks up old coins, one at a time, while a checkpoint is made, and while there is none.
    fn look_up_during_checkpoints(&mut self, workload: &mut Workload) {
        for is_checkpoint in [false, true, false, true] {
            for _ in 0..100 {
                let block = workload.block();
                assert_eq!(self.get(&block), block.value);
                self.put(&block);
            }
            let sample = workload.sample(20_000);
            let keys: Vec<Key> = sample.spends.iter().map(|outpoint| self.coins.key(*outpoint)).collect();
            let is_done = AtomicBool::new(!is_checkpoint);
            let mut times = std::thread::scope(|scope| {
                let coins = &self.coins;
                let reader = scope.spawn(|| {
                    let mut times = Vec::new();
                    for key in keys.iter().cycle() {
                        let look_up = || coins.get(Coins::partition(key), &[*key], &mut Vec::new()).unwrap();
                        times.push(time(look_up).1);
                        if is_done.load(Ordering::Relaxed) && times.len() >= keys.len() {
                            break;
                        }
                    }
                    times
                });
                if is_checkpoint {
                    let tip = Tip { height: Height(self.height + 1), hash: BlockHash::ZERO };
                    coins.checkpoint(tip, THREADS).unwrap();
                    is_done.store(true, Ordering::Relaxed);
                }
                reader.join().unwrap()
            });
            self.sync();
            times.sort_unstable();
            let us = |per_million: usize| times[(times.len() - 1) * per_million / 1_000_000].as_secs_f64() * 1e6;
            println!(
                "  lookups   {:8.1} us the median of {}, {:.0} us the slowest of 1,000, {:.0} us the slowest, {} a checkpoint",
                us(500_000),
                times.len(),
                us(999_000),
                us(1_000_000),
                if is_checkpoint { "during" } else { "without" }
            );
        }
    }

    /// Reads all coins in both orders, and applies blocks during a scan and without one.
    fn scan(&mut self, workload: &mut Workload) {
        self.sync();
        let pinned = self.coins.pin().unwrap();
        let scan = |is_ordered| {
            let (cpu_before, mut count) = (cpu_time(), 0);
            let mut visit = |_: &_, _: &_| -> ControlFlow<()> {
                count += 1;
                ControlFlow::Continue(())
            };
            let (_, spent) =
                time(|| if is_ordered { pinned.export(&mut visit) } else { pinned.each(&mut visit) }.unwrap());
            assert_eq!(count, pinned.len());
            (spent.as_secs_f64(), (cpu_time() - cpu_before).as_secs_f64())
        };
        for (name, is_ordered) in [("each", false), ("export", true), ("each", false), ("export", true)] {
            let (spent, cpu) = scan(is_ordered);
            println!("  {name:9} {spent:8.2} s, {cpu:.2} s of CPU");
        }
        for is_scanned in [false, true, false, true] {
            let is_done = AtomicBool::new(!is_scanned);
            let mut times = Vec::new();
            std::thread::scope(|scope| {
                if is_scanned {
                    scope.spawn(|| {
                        scan(true);
                        is_done.store(true, Ordering::Relaxed);
                    });
                }
                while !is_done.load(Ordering::Relaxed) || times.len() < 200 {
                    let block = workload.block();
                    times.push(time(|| assert_eq!(self.get(&block), block.value)).1 + time(|| self.put(&block)).1);
                }
            });
            times.sort_unstable();
            println!(
                "  blocks    {:8.2} ms the slowest of {}, {:.2} ms the median, {} a scan",
                times[times.len() - 1].as_secs_f64() * 1e3,
                times.len(),
                times[times.len() / 2].as_secs_f64() * 1e3,
                if is_scanned { "during" } else { "without" }
            );
        }
        self.sync();
    }

    fn put(&mut self, block: &Block) {
        let mut creates: [Vec<(Key, CoinRef<'_>)>; PARTITIONS] = Default::default();
        for (outpoint, coin) in &block.creates {
            let key = self.coins.key(*outpoint);
            creates[Coins::partition(&key)].push((key, coin.as_ref()));
        }
        for (partition, creates) in creates.into_iter().enumerate() {
            self.coins.apply(partition, self.keys[partition].iter().copied(), creates.into_iter()).unwrap();
        }
    }
}

impl Subject for Ours {
    fn name(&self) -> &'static str {
        "lydian-coins"
    }

    fn apply(&mut self, block: &Block) -> i64 {
        let value = self.get(block);
        self.put(block);
        if self.coins.needs_checkpoint() {
            self.sync();
        }
        value
    }

    fn get(&mut self, block: &Block) -> i64 {
        self.keys.iter_mut().for_each(Vec::clear);
        for outpoint in &block.spends {
            let key = self.coins.key(*outpoint);
            self.keys[Coins::partition(&key)].push(key);
        }
        let mut value = 0;
        let mut found = Vec::new();
        for (partition, keys) in self.keys.iter().enumerate() {
            found.clear();
            self.coins.get(partition, keys, &mut found).unwrap();
            value += found.iter().flatten().map(|coin| coin.value.0).sum::<i64>();
        }
        value
    }

    fn sync(&mut self) {
        self.height += 1;
        let (tip, cpu_before) = (Tip { height: Height(self.height), hash: BlockHash::ZERO }, cpu_time());
        self.checkpoints.0 += time(|| self.coins.checkpoint(tip, THREADS).unwrap()).1;
        self.checkpoints.1 += cpu_time() - cpu_before;
    }

    fn sizes(&self) -> (u64, u64) {
        let stats = self.coins.stats();
        (stats.memory_bytes, stats.disk_bytes)
    }
}
