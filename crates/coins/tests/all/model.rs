//! Compares the store with its specification, a `BTreeMap`: random blocks, caches from empty to large, checkpoints with
//! eviction, rewriting and merging, and reopening after some of them.

use crate::common;
use crate::common::{MODES, Model, Store, block, collect, compare_pinned, open, settings_of, tip};
use lydian_coins::CoinsError;
use lydian_consensus::utxo_hash::{hash_serialized_3, muhash};
use lydian_disk::SimDisk;
use lydian_stdx::SplitMix64;
use proptest::prelude::*;

/// How the stores of a run are opened.
#[derive(Clone, Copy, Debug)]
enum Opening {
    Always {
        is_low_memory: bool,
    },
    /// Now with little memory, now with the index of all coins.
    Changing,
}

fn run(opening: Opening, seed: u64, cache_bytes: u64, collides: bool, blocks: u32, size: usize, threads: usize) {
    let mut random = SplitMix64::new(seed);
    let mut opened = 0;
    let mut settings = || {
        opened += 1;
        let is_low_memory = match opening {
            Opening::Always { is_low_memory } => is_low_memory,
            Opening::Changing => opened % 2 == 0,
        };
        settings_of(cache_bytes, is_low_memory)
    };
    let numbers = if collides { 150 } else { 1500 };
    let disk = SimDisk::new(seed);
    let mut store = Store { coins: open(&disk, settings()).unwrap(), collides };
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
                store = Store { coins: open(&disk, settings()).unwrap(), collides };
                assert_eq!(store.coins.tip(), Some(tip(height)));
                store.compare(&model, numbers);
            }
        }
    }
    assert!(blocks < 60 || moved > 0, "nothing was ever rewritten");
    drop(store);
    Store { coins: open(&disk, settings()).unwrap(), collides }.compare(&durable, numbers);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// checklist: 86
    #[test]
    fn equal_to_the_model(seed: u64, cache in 0u32..22, collides: bool, threads in 1usize..4) {
        let size = if collides { 40 } else { 300 };
        run(Opening::Always { is_low_memory: false }, seed, (1 << cache) - 1, collides, 16, size, threads);
    }

    #[test]
    fn equal_to_the_model_with_little_memory(seed: u64, cache in 0u32..22, collides: bool, threads in 1usize..4) {
        let size = if collides { 40 } else { 300 };
        run(Opening::Always { is_low_memory: true }, seed, (1 << cache) - 1, collides, 16, size, threads);
    }

    #[test]
    fn equal_to_the_model_in_changing_modes(seed: u64, cache in 0u32..22, collides: bool, threads in 1usize..4) {
        let size = if collides { 40 } else { 300 };
        run(Opening::Changing, seed, (1 << cache) - 1, collides, 16, size, threads);
    }
}

#[test]
fn equal_to_the_model_for_long() {
    let always = MODES.map(|is_low_memory| Opening::Always { is_low_memory });
    for opening in always.into_iter().chain([Opening::Changing]) {
        for (seed, cache_bytes) in [(1, 1 << 13), (2, 1 << 16), (3, 1 << 22)] {
            run(opening, seed, cache_bytes, false, 90, 200, 2);
        }
        run(opening, 4, 1 << 12, true, 90, 40, 1);
    }
}

#[test]
fn hashes_of_the_set_are_those_of_the_model() {
    for is_low_memory in MODES {
        let mut random = SplitMix64::new(5);
        let disk = SimDisk::new(5);
        let store = Store { coins: open(&disk, settings_of(1 << 14, is_low_memory)).unwrap(), collides: false };
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
}

#[test]
fn spending_what_is_not_there_is_an_error_and_the_end() {
    for is_low_memory in MODES {
        let disk = SimDisk::new(5);
        let store = Store { coins: open(&disk, settings_of(1 << 14, is_low_memory)).unwrap(), collides: false };
        let outpoint = common::outpoint(3);
        assert_eq!(store.apply(&[outpoint], &[]), Err(CoinsError::Missing { outpoint }));
        assert_eq!(store.apply(&[], &[]), Err(CoinsError::Poisoned));
        assert_eq!(store.coins.checkpoint(tip(1), 1), Err(CoinsError::Poisoned));
        assert_eq!(store.get(&[outpoint]), Err(CoinsError::Poisoned));
    }
}

/// A coin on disk is spent once: the second time it is missing, in the same batch, in a later one, after a checkpoint
/// and after a restart.
#[test]
fn a_coin_on_disk_is_spent_once() {
    let mut random = SplitMix64::new(6);
    let coins: Vec<_> = (0..300).map(|number| (common::outpoint(number), common::coin(1, &mut random))).collect();
    for is_low_memory in MODES {
        let settings = settings_of(0, is_low_memory);
        for delay in 0..4 {
            let disk = SimDisk::new(5);
            let mut store = Store { coins: open(&disk, settings).unwrap(), collides: false };
            store.apply(&[], &coins).unwrap();
            store.coins.checkpoint(tip(1), 1).unwrap();
            let outpoint = coins[7].0;
            let result = match delay {
                0 => store.apply(&[outpoint, outpoint], &[]),
                _ => {
                    store.apply(&[outpoint], &[]).unwrap();
                    if delay > 1 {
                        store.coins.checkpoint(tip(2), 1).unwrap();
                    }
                    if delay > 2 {
                        drop(store);
                        store = Store { coins: open(&disk, settings).unwrap(), collides: false };
                    }
                    assert_eq!(store.get(&[outpoint]).unwrap()[&outpoint], None);
                    assert_eq!(store.coins.len(), 299);
                    store.apply(&[outpoint], &[])
                }
            };
            assert_eq!(result, Err(CoinsError::Missing { outpoint }), "{is_low_memory}, {delay}");
        }
    }
}
