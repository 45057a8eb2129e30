//! Power loss, kills and disk failures at every operation of a checkpoint that writes, moves, drops and merges.
//! Reopening the store finds the last checkpoint or the new one, complete, and the store remains usable.

use crate::common;
use crate::common::{Block, MODES, Model, Store, block, files, open, settings_of, tip};
use lydian_coins::{CoinsError, Settings};
use lydian_disk::{DiskErrorKind, Fault, SimDisk};
use lydian_stdx::SplitMix64;
use std::sync::atomic::{AtomicUsize, Ordering};

const NUMBERS: u64 = 400;

/// A store after some checkpoints, and a block that is not yet applied.
struct Scene {
    disk: SimDisk,
    is_low_memory: bool,
    height: u32,
    before: Model,
    block: Block,
    after: Model,
}

fn settings(is_low_memory: bool) -> Settings {
    settings_of(1 << 13, is_low_memory)
}

fn store(disk: &SimDisk, is_low_memory: bool) -> Result<Store, CoinsError> {
    open(disk, settings(is_low_memory)).map(|coins| Store { coins, collides: false })
}

/// The scene before checkpoint number `checkpoints + 1`.
fn scene(seed: u64, checkpoints: u32, is_low_memory: bool) -> Scene {
    let mut random = SplitMix64::new(seed);
    let disk = SimDisk::new(seed);
    let store = store(&disk, is_low_memory).unwrap();
    let mut model = Model::new();
    for height in 1..=checkpoints {
        block(&mut model, height, 120, NUMBERS, &mut random).apply(&store).unwrap();
        store.coins.checkpoint(tip(height), 1).unwrap();
    }
    let before = model.clone();
    let block = block(&mut model, checkpoints + 1, 120, NUMBERS, &mut random);
    Scene { disk, is_low_memory, height: checkpoints + 1, before, block, after: model }
}

impl Scene {
    /// A copy of the disk, and a store on it with the block applied.
    fn enter(&self) -> (SimDisk, Store) {
        let disk = self.disk.kill();
        let store = store(&disk, self.is_low_memory).unwrap();
        self.block.apply(&store).unwrap();
        (disk, store)
    }

    /// The range of disk operations of the checkpoint.
    fn operations(&self) -> std::ops::Range<u64> {
        let (disk, store) = self.enter();
        let start = disk.operation_count();
        store.coins.checkpoint(tip(self.height), 1).unwrap();
        start..disk.operation_count()
    }

    /// Checks that the store has one of the two states, the new one if `is_certain`, and that work can continue.
    fn check(&self, disk: &SimDisk, is_certain: bool, what: &str) {
        let store = store(disk, self.is_low_memory).unwrap_or_else(|error| panic!("{what}: {error}"));
        let is_new = store.coins.tip() == Some(tip(self.height));
        assert!(is_new || store.coins.tip() == (self.height > 1).then(|| tip(self.height - 1)), "{what}");
        assert!(is_new || !is_certain, "{what}: a checkpoint that was made is lost");
        store.compare(if is_new { &self.after } else { &self.before }, NUMBERS);
        if !is_new {
            self.block.apply(&store).unwrap();
        }
        store.coins.checkpoint(tip(self.height), 1).unwrap();
        // Leftover files are removed, even if power is lost before anything else is synced.
        let disk = disk.power_loss(self.height.into());
        // The other kind of store reads the same files.
        let store =
            self::store(&disk, !self.is_low_memory).unwrap_or_else(|error| panic!("{what}, then power loss: {error}"));
        store.compare(&self.after, NUMBERS);
        let segments = usize::try_from(store.coins.stats().segments).unwrap();
        let found = files(&disk);
        let count = |ending| found.iter().filter(|name| name.ends_with(ending)).count();
        assert_eq!((count(".coins"), count(".index")), (segments, segments), "{what}: {found:?}");
        assert!(count(".new") == 0 && count(".scratch") == 0);
    }
}

/// An empty store, stores with few files, and stores in which eight small segments are combined and death files are
/// merged. Each as a store of both kinds.
fn scenes() -> Vec<Scene> {
    let kinds = [(1, 0), (2, 1), (3, 8), (4, 9), (5, 17), (6, 18)];
    let of = |is_low_memory| kinds.map(|(seed, checkpoints)| scene(seed, checkpoints, is_low_memory));
    MODES.map(of).into_iter().flatten().collect()
}

#[test]
fn the_scenes_have_everything() {
    let mut moved = 0;
    for scene in scenes() {
        let (disk, store) = scene.enter();
        let before = files(&disk).len();
        moved += store.coins.checkpoint(tip(scene.height), 1).unwrap().coins_rewritten;
        assert!(files(&disk).len() != before, "files come or go");
    }
    assert!(moved > 100, "{moved}");
}

/// checklist: 86
#[test]
fn a_crash_at_every_operation_of_a_checkpoint() {
    let scenes = scenes();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(scene) = scenes.get(next.fetch_add(1, Ordering::Relaxed)) {
            crash_everywhere(scene);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
}

fn crash_everywhere(scene: &Scene) {
    let operations = scene.operations();
    for operation in operations.clone() {
        for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
            let (disk, store) = scene.enter();
            disk.fail_at(operation, fault);
            let result = store.coins.checkpoint(tip(scene.height), 1);
            assert!(disk.is_crashed());
            let what = format!("{fault:?} at {operation} of {operations:?}, {result:?}");
            scene.check(&disk.kill(), result.is_ok(), &what);
            for seed in 0..2 {
                scene.check(&disk.power_loss(seed), result.is_ok(), &format!("{what}, power loss {seed}"));
            }
            // Kill, reopen, and lose power before anything else happens.
            let killed = disk.kill();
            drop(self::store(&killed, scene.is_low_memory).unwrap());
            for seed in 0..2 {
                scene.check(&killed.power_loss(seed), result.is_ok(), &format!("{what}, kill, power loss {seed}"));
            }
        }
    }
}

#[test]
fn a_crash_at_every_operation_of_making_a_store() {
    let disk = SimDisk::new(1);
    drop(store(&disk, false).unwrap());
    for operation in 0..disk.operation_count() {
        for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
            for is_low_memory in MODES {
                let disk = SimDisk::new(1);
                disk.fail_at(operation, fault);
                assert!(store(&disk, is_low_memory).is_err());
                for disk in [disk.kill(), disk.power_loss(1), disk.power_loss(2)] {
                    assert_eq!(store(&disk, is_low_memory).unwrap().coins.tip(), None);
                }
            }
        }
    }
}

/// checklist: 93
#[test]
fn a_disk_that_is_full_or_fails_at_every_operation() {
    for scene in scenes() {
        for operation in scene.operations() {
            for (fault, kind) in [(Fault::NoSpace, DiskErrorKind::NoSpace), (Fault::Io, DiskErrorKind::Io)] {
                let (disk, store) = scene.enter();
                disk.fail_at(operation, fault);
                let what = format!("{fault:?} at {operation}");
                let result = store.coins.checkpoint(tip(scene.height), 1);
                match &result {
                    // The failed operation was the removal of an unneeded file.
                    Ok(_) => store.compare(&scene.after, NUMBERS),
                    Err(CoinsError::Disk(error)) => {
                        assert_eq!(error.kind, kind, "{what}");
                        assert!(error.to_string().starts_with(common::DIR), "{error}");
                        assert_eq!(store.get(&[common::outpoint(1)]), Err(CoinsError::Poisoned));
                        assert_eq!(store.apply(&[], &[]), Err(CoinsError::Poisoned));
                        assert_eq!(store.coins.checkpoint(tip(9), 1), Err(CoinsError::Poisoned));
                        assert_eq!(store.all(), Err(CoinsError::Poisoned));
                        assert_eq!(store.coins.pin().map(drop), Err(CoinsError::Poisoned));
                    }
                    Err(other) => panic!("{what}: {other:?}"),
                }
                scene.check(&disk.kill(), result.is_ok(), &what);
                scene.check(&disk.power_loss(operation), result.is_ok(), &what);
            }
        }
    }
}

#[test]
fn a_disk_without_room_is_an_error_until_there_is_room() {
    for is_low_memory in MODES {
        let scene = scene(7, 5, is_low_memory);
        let mut failures = 0;
        for capacity in (0..200_000).step_by(1_717) {
            let (disk, store) = scene.enter();
            disk.set_capacity(capacity);
            let result = store.coins.checkpoint(tip(scene.height), 1);
            failures += u32::from(result.is_err());
            disk.set_capacity(u64::MAX);
            scene.check(&disk.kill(), result.is_ok(), &format!("capacity {capacity}"));
        }
        assert!((5..110).contains(&failures), "{failures}");
    }
}

/// checklist: 93
#[test]
fn a_failed_read_is_an_error_and_nothing_more() {
    MODES.into_iter().for_each(fail_reads);
}

fn fail_reads(is_low_memory: bool) {
    let scene = scene(8, 6, is_low_memory);
    let outpoints: Vec<_> = scene.before.keys().copied().collect();
    let disk = scene.disk.kill();
    let store = store(&disk, is_low_memory).unwrap();
    let start = disk.read_count();
    store.get(&outpoints).unwrap();
    for read in 0..disk.read_count() - start {
        disk.fail_read_at(disk.read_count() + read);
        assert!(matches!(store.get(&outpoints), Err(CoinsError::Disk(error)) if error.kind == DiskErrorKind::Io));
        store.compare(&scene.before, NUMBERS);
    }
    // The same for the reads while opening.
    let opening = |read: u64| {
        let disk = scene.disk.kill();
        disk.fail_read_at(read);
        (open(&disk, settings(is_low_memory)).map(drop), disk.read_count())
    };
    let (_, count) = opening(u64::MAX);
    for read in 0..count {
        assert!(matches!(opening(read).0, Err(CoinsError::Disk(_))), "read {read} of {count}");
    }
}

/// A read that fails while a block is applied ends the store, as the block may be half applied; nothing of it is on
/// disk.
#[test]
fn a_failed_read_while_a_block_is_applied_with_little_memory() {
    let scene = scene(9, 6, true);
    let (disk, _) = scene.enter();
    let reads = disk.read_count();
    let start = {
        let disk = scene.disk.kill();
        drop(store(&disk, true).unwrap());
        disk.read_count()
    };
    assert!(reads > start, "a block of coins that are on disk");
    for read in start..reads {
        let disk = scene.disk.kill();
        let store = store(&disk, true).unwrap();
        disk.fail_read_at(read);
        assert!(matches!(scene.block.apply(&store), Err(CoinsError::Disk(error)) if error.kind == DiskErrorKind::Io));
        assert_eq!(store.coins.checkpoint(tip(scene.height), 1), Err(CoinsError::Poisoned));
        drop(store);
        self::store(&disk, true).unwrap().compare(&scene.before, NUMBERS);
    }
}
