//! Runs the workload on the store, then measures the time to reopen it after a clean stop and after a kill. Input:
//! sizes. Output: printed.
//!
//! One thread looks up and applies, like one worker of the engine; checkpoints use two threads.

use crate::run::{self, Sizes, Subject, cpu_time, gb, time};
use crate::workload::Block;
use lydian_coins::{Coins, Key, PARTITIONS, Settings, Tip};
use lydian_consensus::CoinRef;
use lydian_disk::{Disk, RealDisk};
use lydian_primitives::{BlockHash, Height};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const THREADS: usize = 2;

pub(crate) fn bench(sizes: Sizes) {
    let dir = scratch();
    let _ = std::fs::remove_dir_all(&dir);
    let (mut ours, spent) = time(|| Ours::open(&dir, sizes));
    assert!(spent.as_secs() < 5 && ours.coins.is_empty());
    let mut workload = run::run(&mut ours, sizes);
    let stats = ours.coins.stats();
    println!(
        "  store     {} segments, {} checkpoints, {} records read",
        stats.segments, stats.checkpoints, stats.disk_reads
    );
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
            "  open      {:8.2} s after a {what}, {THREADS} threads, {:.2} s of CPU, {:.2} GB of memory",
            spent.as_secs_f64(),
            (cpu_time() - cpu_before).as_secs_f64(),
            gb(ours.coins.memory_bytes())
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
}

impl Ours {
    fn open(dir: &Path, sizes: Sizes) -> Ours {
        let settings = Settings::new(sizes.cache_bytes);
        let coins = Coins::open(Arc::new(RealDisk), dir, settings, [3; 16], THREADS).unwrap();
        Ours { coins, height: 0, keys: Default::default() }
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
        self.coins.checkpoint(Tip { height: Height(self.height), hash: BlockHash::ZERO }, THREADS).unwrap();
    }

    fn sizes(&self) -> (u64, u64) {
        let stats = self.coins.stats();
        (stats.memory_bytes, stats.disk_bytes)
    }
}
