//! Lookups from other threads while checkpoints are made: every answer is right at any moment.

use crate::common;
use crate::common::{DIR, MODES, Model, Store, block, settings_of, tip};
use lydian_coins::{Coins, Settings};
use lydian_disk::{Disk, RealDisk, SimDisk};
use lydian_stdx::SplitMix64;
use proptest::prelude::*;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

/// Blocks are applied while no thread reads, as the model changes, too; checkpoints are made while two threads read.
fn run(disk: Arc<dyn Disk>, dir: &Path, seed: u64, settings: Settings, collides: bool, blocks: u32) {
    let mut random = SplitMix64::new(seed);
    let numbers = if collides { 150 } else { 1500 };
    let coins = Coins::open(disk, dir, settings, [7; 16], 2).unwrap();
    let store = Store { coins, collides };
    let model = RwLock::new(Model::new());
    let (is_checkpoint, is_done, reads) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let read = |mut random: SplitMix64| {
        while !is_done.load(Ordering::SeqCst) {
            let outpoints: Vec<_> = (0..20).map(|_| common::outpoint(random.next_u64() % numbers)).collect();
            let model = model.read().unwrap();
            let was_checkpoint = is_checkpoint.load(Ordering::SeqCst);
            for (outpoint, coin) in store.get(&outpoints).unwrap() {
                assert_eq!(coin.as_ref(), model.get(&outpoint), "{outpoint}");
            }
            reads.fetch_add(u64::from(was_checkpoint && is_checkpoint.load(Ordering::SeqCst)), Ordering::SeqCst);
        }
    };
    std::thread::scope(|scope| {
        let readers = [1, 2].map(|number| scope.spawn(move || read(SplitMix64::new(seed ^ number))));
        // Longer if the readers were not scheduled during any of these checkpoints.
        for height in 1.. {
            if height > blocks && (reads.load(Ordering::SeqCst) > 0 || height > 100 * blocks) {
                break;
            }
            {
                let mut model = model.write().unwrap();
                block(&mut model, height, 300, numbers, &mut random).apply(&store).unwrap();
            }
            is_checkpoint.store(true, Ordering::SeqCst);
            store.coins.checkpoint(tip(height), 2).unwrap();
            is_checkpoint.store(false, Ordering::SeqCst);
            if readers.iter().any(|reader| reader.is_finished()) {
                break;
            }
        }
        is_done.store(true, Ordering::SeqCst);
    });
    assert!(reads.into_inner() > 0, "nothing was read during a checkpoint");
    store.compare(&model.into_inner().unwrap(), numbers);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn lookups_are_right_during_checkpoints(seed: u64, cache in 0u32..22, collides: bool, is_low_memory: bool) {
        let settings = settings_of((1 << cache) - 1, is_low_memory);
        run(Arc::new(SimDisk::new(seed)), Path::new(DIR), seed, settings, collides, 40);
    }
}

#[test]
fn lookups_are_right_during_checkpoints_on_a_real_disk() {
    for is_low_memory in MODES {
        let dir = std::env::temp_dir().join(format!("lydian-reads-{}-{is_low_memory}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        run(Arc::new(RealDisk), &dir, 1, settings_of(1 << 13, is_low_memory), false, 60);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
