//! Pins: what was pinned stays readable, whatever is applied, written and removed afterwards.

use crate::common;
use crate::common::{DIR, Model, Store, block, collect, compare_pinned, files, open, settings_of, tip};
use lydian_coins::{Coins, CoinsError, PinnedCoins, Settings};
use lydian_disk::{Disk, DiskErrorKind, RealDisk, SimDisk};
use lydian_stdx::SplitMix64;
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Blocks and checkpoints, and pins taken at random moments, each compared with the coins of its tip at random moments
/// and again at the end.
fn run(disk: &SimDisk, seed: u64, settings: Settings, collides: bool, blocks: u32) {
    let mut random = SplitMix64::new(seed);
    let numbers = if collides { 150 } else { 1500 };
    let mut store = Store { coins: open(disk, settings).unwrap(), collides };
    let (mut model, mut durable) = (Model::new(), (None, Model::new()));
    let mut pins: Vec<(PinnedCoins, Model)> = Vec::new();
    for height in 1..=blocks {
        block(&mut model, height, 200, numbers, &mut random).apply(&store).unwrap();
        if random.below(2) == 0 {
            store.coins.checkpoint(tip(height), 2).unwrap();
            durable = (Some(tip(height)), model.clone());
        }
        // Often not directly after a checkpoint: then the pin has the coins of that checkpoint.
        if random.below(3) == 0 {
            let pinned = store.coins.pin().unwrap();
            assert_eq!(pinned.tip(), durable.0);
            pins.push((pinned, durable.1.clone()));
        }
        if random.below(4) == 0 && !pins.is_empty() {
            let (pinned, expected) = pins.swap_remove(random.below(pins.len()));
            compare_pinned(&pinned, &expected);
        }
        if random.below(10) == 0 {
            // A pin does not need the store it comes from, and its files do not disturb the next one.
            drop(store);
            store = Store { coins: open(disk, settings).unwrap(), collides };
            assert_eq!(store.coins.tip(), durable.0);
            model.clone_from(&durable.1);
        }
    }
    pins.iter().for_each(|(pinned, expected)| compare_pinned(pinned, expected));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_pin_has_the_coins_of_its_tip(seed: u64, cache in 0u32..22, collides: bool, is_low_memory: bool) {
        run(&SimDisk::new(seed), seed, settings_of((1 << cache) - 1, is_low_memory), collides, 25);
    }
}

/// Long enough that every segment and death file of the first pins is removed.
#[test]
fn a_pin_has_the_coins_of_its_tip_for_long() {
    run(&SimDisk::new(3), 3, Settings::new(1 << 13), false, 120);
    run(&SimDisk::new(3), 3, Settings::low_memory(1 << 13), false, 120);
}

/// A store with a pin all of whose files were removed since.
fn outlived(disk: Arc<dyn Disk>, dir: &Path) -> (Store, PinnedCoins, Model) {
    let mut random = SplitMix64::new(7);
    let coins = Coins::open(disk.clone(), dir, Settings::new(1 << 13), [7; 16], 1).unwrap();
    let store = Store { coins, collides: false };
    let mut model = Model::new();
    let names = || disk.list(dir).unwrap().into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    for height in 1..=5 {
        block(&mut model, height, 200, 1500, &mut random).apply(&store).unwrap();
        store.coins.checkpoint(tip(height), 1).unwrap();
    }
    let (pinned, pinned_model, before) = (store.coins.pin().unwrap(), model.clone(), names());
    for height in 6..=40 {
        block(&mut model, height, 200, 1500, &mut random).apply(&store).unwrap();
        store.coins.checkpoint(tip(height), 1).unwrap();
    }
    let after = names();
    assert_eq!(before.iter().filter(|path| after.contains(path)).count(), 1, "only the manifest keeps its name");
    (store, pinned, pinned_model)
}

#[test]
fn removed_files_stay_readable_on_the_simulated_disk() {
    let disk = SimDisk::new(1);
    let (store, pinned, model) = outlived(Arc::new(disk.clone()), Path::new(DIR));
    disk.sync_dir(Path::new(DIR)).unwrap();
    compare_pinned(&pinned, &model);
    drop(store);
    compare_pinned(&pinned, &model);
    // After a crash nothing of the pin is left.
    for disk in [disk.kill(), disk.power_loss(1), disk.power_loss(2)] {
        let segments = usize::try_from(open(&disk, Settings::new(0)).unwrap().stats().segments).unwrap();
        assert_eq!(files(&disk).iter().filter(|name| name.ends_with(".coins")).count(), segments);
    }
}

#[test]
fn removed_files_stay_readable_on_a_real_disk() {
    let dir = std::env::temp_dir().join(format!("lydian-pinned-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    let (store, pinned, model) = outlived(Arc::new(RealDisk), &dir);
    compare_pinned(&pinned, &model);
    drop(store);
    compare_pinned(&pinned, &model);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_scan_ends_where_a_visit_breaks_and_nothing_is_left() {
    let disk = SimDisk::new(1);
    let (_, pinned, model) = outlived(Arc::new(disk.clone()), Path::new(DIR));
    let before = files(&disk);
    for count in [1, 2, model.len() / 2, model.len()] {
        let mut left = count;
        let mut visit = |outpoint: &_, _: &_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(*outpoint) } else { ControlFlow::Continue(()) }
        };
        assert_eq!(pinned.export(&mut visit), Ok(ControlFlow::Break(*model.keys().nth(count - 1).unwrap())));
        left = count;
        let mut visit = |outpoint: &_, _: &_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(*outpoint) } else { ControlFlow::Continue(()) }
        };
        assert!(matches!(pinned.each(&mut visit), Ok(ControlFlow::Break(last)) if model.contains_key(&last)));
        assert_eq!(left, 0);
        assert_eq!(files(&disk), before);
    }
}

/// Two threads export while a third one applies blocks and makes checkpoints.
#[test]
fn two_exports_at_once_while_blocks_are_applied() {
    let disk = SimDisk::new(1);
    let (store, pinned, model) = outlived(Arc::new(disk.clone()), Path::new(DIR));
    let mut now = store.all().unwrap();
    std::thread::scope(|scope| {
        let scans = [(); 2].map(|()| scope.spawn(|| (0..5).for_each(|_| compare_pinned(&pinned, &model))));
        let mut random = SplitMix64::new(9);
        for height in 41.. {
            block(&mut now, height, 200, 1500, &mut random).apply(&store).unwrap();
            store.coins.checkpoint(tip(height), 1).unwrap();
            if scans.iter().all(|scan| scan.is_finished()) {
                break;
            }
        }
    });
    store.compare(&now, 1500);
    assert!(files(&disk).iter().all(|name| !name.ends_with(".scratch")));
}

/// Every read of a scan fails once: the error names the file and the offset, and the pin and the store go on.
///
/// checklist: 93
#[test]
fn a_failed_read_of_a_scan_names_file_and_offset() {
    let disk = SimDisk::new(1);
    let (store, pinned, model) = outlived(Arc::new(disk.clone()), Path::new(DIR));
    let start = disk.read_count();
    compare_pinned(&pinned, &model);
    let reads = (disk.read_count() - start) / 2;
    assert!(reads > 16, "{reads}");
    for read in 0..reads {
        disk.fail_read_at(disk.read_count() + read);
        match collect(|visit| pinned.each(visit)) {
            Err(CoinsError::Disk(error)) => {
                assert_eq!(error.kind, DiskErrorKind::Io);
                assert!(error.path.starts_with(DIR) && error.offset.is_some(), "{error}");
            }
            other => panic!("read {read}: {other:?}"),
        }
    }
    compare_pinned(&pinned, &model);
    store.get(&[common::outpoint(1)]).unwrap();
}

/// checklist: 94
#[test]
fn a_flipped_bit_is_found_by_a_scan_and_named() {
    let disk = SimDisk::new(1);
    let store = Store { coins: open(&disk, Settings::new(0)).unwrap(), collides: false };
    let mut model = Model::new();
    for height in 1..=3 {
        block(&mut model, height, 60, 400, &mut SplitMix64::new(height.into())).apply(&store).unwrap();
        store.coins.checkpoint(tip(height), 1).unwrap();
    }
    let pinned = store.coins.pin().unwrap();
    for name in files(&disk).iter().filter(|name| *name != "manifest") {
        let path = Path::new(DIR).join(name);
        let (mut unseen, size) = (0, disk.open(&path).unwrap().size());
        for offset in 32..size {
            disk.flip(&path, offset, 1 << (offset % 8)).unwrap();
            match collect(|visit| pinned.each(visit)) {
                Err(CoinsError::Damaged { path: named, .. }) => assert_eq!(named, path),
                Err(other) => panic!("{name}:{offset}: {other}"),
                // A dead record, or the directory of a file, which was read before.
                Ok(found) => {
                    assert!(found.into_iter().collect::<Model>() == model, "{name}:{offset}");
                    unseen += 1;
                }
            }
            disk.flip(&path, offset, 1 << (offset % 8)).unwrap();
        }
        assert!(unseen < size - 32, "{name}: nothing was found");
    }
    compare_pinned(&pinned, &model);
}
