//! Compares the store with its specification, a `BTreeMap`: random blocks, caches from empty to large, checkpoints with
//! eviction, rewriting and merging, and reopening after some of them.

use crate::common;
use crate::common::{Model, Store, block, collect, compare_pinned, open, tip};
use lydian_coins::{CoinsError, Settings};
use lydian_consensus::utxo_hash::{hash_serialized_3, muhash};
use lydian_disk::SimDisk;
use lydian_stdx::SplitMix64;
use proptest::prelude::*;

fn run(seed: u64, cache_bytes: u64, collides: bool, blocks: u32, size: usize, threads: usize) {
    let mut random = SplitMix64::new(seed);
    let numbers = if collides { 150 } else { 1500 };
    let settings = Settings::new(cache_bytes);
    let disk = SimDisk::new(seed);
    let mut store = Store { coins: open(&disk, settings).unwrap(), collides };
    let (mut model, mut durable) = (Model::new(), Model::new());
    let mut moved = 0;
    for height in 1..=blocks {
        block(&mut model, height, size, numbers, &mut random).apply(&store).unwrap();
        store.compare(&model, numbers);
        if store.coins.needs_checkpoint() || random.below(4) == 0 {
            moved += store.coins.checkpoint(tip(height), threads).unwrap().coins_rewritten;
            assert_eq!(store.coins.tip(), Some(tip(height)));
            assert!(!store.coins.needs_checkpoint());
            store.compare(&model, numbers);
            compare_pinned(&store.coins.pin().unwrap(), &model);
            durable = model.clone();
            if random.below(2) == 0 {
                drop(store);
                store = Store { coins: open(&disk, settings).unwrap(), collides };
                assert_eq!(store.coins.tip(), Some(tip(height)));
                store.compare(&model, numbers);
            }
        }
    }
    assert!(blocks < 60 || moved > 0, "nothing was ever rewritten");
    drop(store);
    Store { coins: open(&disk, settings).unwrap(), collides }.compare(&durable, numbers);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// checklist: 86
    #[test]
    fn equal_to_the_model(seed: u64, cache in 0u32..22, collides: bool, threads in 1usize..4) {
        let size = if collides { 40 } else { 300 };
        run(seed, (1 << cache) - 1, collides, 16, size, threads);
    }
}

#[test]
fn equal_to_the_model_for_long() {
    for (seed, cache_bytes) in [(1, 1 << 13), (2, 1 << 16), (3, 1 << 22)] {
        run(seed, cache_bytes, false, 90, 200, 2);
    }
    run(4, 1 << 12, true, 90, 40, 1);
}

#[test]
fn hashes_of_the_set_are_those_of_the_model() {
    let mut random = SplitMix64::new(5);
    let disk = SimDisk::new(5);
    let store = Store { coins: open(&disk, Settings::new(1 << 14)).unwrap(), collides: false };
    let mut model = Model::new();
    for height in 1..8 {
        block(&mut model, height, 300, 1500, &mut random).apply(&store).unwrap();
        if height % 2 == 0 {
            store.coins.checkpoint(tip(height), 1).unwrap();
        }
    }
    store.coins.checkpoint(tip(8), 1).unwrap();
    let exported = collect(|visit| store.coins.pin().unwrap().export(visit)).unwrap();
    let pairs = || exported.iter().map(|(outpoint, coin)| (outpoint, coin));
    assert_eq!(hash_serialized_3(pairs()), hash_serialized_3(model.iter()));
    assert_eq!(muhash(pairs()), muhash(model.iter()));
}

#[test]
fn spending_what_is_not_there_is_an_error_and_the_end() {
    let disk = SimDisk::new(5);
    let store = Store { coins: open(&disk, Settings::new(1 << 14)).unwrap(), collides: false };
    let outpoint = common::outpoint(3);
    assert_eq!(store.apply(&[outpoint], &[]), Err(CoinsError::Missing { outpoint }));
    assert_eq!(store.apply(&[], &[]), Err(CoinsError::Poisoned));
    assert_eq!(store.coins.checkpoint(tip(1), 1), Err(CoinsError::Poisoned));
    assert_eq!(store.get(&[outpoint]), Err(CoinsError::Poisoned));
}
