//! Saves of `fee_estimates.dat` that are interrupted: at every operation of a simulated disk; and on the real disk by
//! SIGKILL, and by a disk without room. The file is the old one or the new one, whatever happens.

#![allow(clippy::print_stderr, reason = "the killed process reports, and the test says what it did")]

use crate::{Estimator, Event, FEE_ESTIMATES_FILE, Loaded, TxInfo, load, save};
use lydian_disk::{Disk, DiskErrorKind, Fault, RealDisk, SimDisk, read_whole};
use lydian_oracle::Scratch;
use lydian_oracle::killed::{SAVED, kill_count, kill_while_saving};
use lydian_primitives::Txid;
use lydian_stdx::SplitMix64;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Set for the process that is killed: where it saves.
const FOLDER: &str = "LYDIAN_KILLED_FEES";

/// An estimator that has seen this many blocks.
fn estimator(blocks: u32) -> Estimator {
    let mut estimator = Estimator::default();
    for height in 1..=blocks {
        let tx = TxInfo { txid: Txid([7; 32]), feerate: 1_000 + i64::from(height), height: height - 1 };
        estimator.apply(&Event::Added { tx, counts: true });
        estimator.apply(&Event::Block { height, txs: vec![tx] });
    }
    estimator
}

fn read(disk: &dyn Disk, path: &Path) -> Vec<u8> {
    let bytes = read_whole(disk, path, 1 << 20).unwrap();
    assert_eq!(load(disk, path, 0, true).1, Loaded::Read, "{} bytes", bytes.len());
    bytes
}

#[test]
fn a_failed_save_keeps_the_old_file() {
    let path = Path::new("/fee_estimates.dat");
    let both = [estimator(3), estimator(5)];
    let [old, new] = [both[0].encode(), both[1].encode()];
    let begin = || {
        let disk = SimDisk::new(0);
        save(&disk, path, &both[0]).unwrap();
        disk
    };
    let whole = begin();
    let first = whole.operation_count();
    save(&whole, path, &both[1]).unwrap();
    let operations = whole.operation_count() - first;
    assert!(operations >= 1);
    let mut found = [0; 2];
    for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter, Fault::NoSpace, Fault::Io] {
        for operation in 0..operations {
            let disk = begin();
            disk.fail_at(disk.operation_count() + operation, fault);
            let result = save(&disk, path, &both[1]);
            for seed in 0..4 {
                let after = if disk.is_crashed() { disk.power_loss(seed) } else { disk.clone() };
                let bytes = read(&after, path);
                let place = [&old, &new].iter().position(|expected| **expected == bytes);
                found[place.unwrap_or_else(|| panic!("{fault:?} at {operation}"))] += 1;
                assert!(result.is_err() || bytes == new, "{fault:?} at {operation}");
                // The next save succeeds.
                save(&after, path, &both[1]).unwrap();
            }
        }
    }
    assert!(found.iter().all(|count| *count > 0), "{found:?}");
}

/// Saves one estimator after the other, in the process that is killed.
fn save_for_ever(path: &Path) -> ! {
    let both = [estimator(3), estimator(5)];
    for place in (0..2).cycle() {
        save(&RealDisk, path, &both[place]).unwrap();
        if place == 1 {
            eprintln!("{SAVED}");
        }
    }
    unreachable!("the cycle has no end")
}

/// The file that replaces the other.
fn temporary(path: &Path) -> PathBuf {
    path.with_file_name("fee_estimates.dat.new")
}

/// It starts itself as the process that it kills. `LYDIAN_CRASH_RUNS` is the number of kills.
#[test]
fn a_killed_save_keeps_the_old_file() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        save_for_ever(&PathBuf::from(folder).join(FEE_ESTIMATES_FILE));
    }
    let kills = kill_count();
    let folder = Scratch::new("fees-killed");
    RealDisk.create_dir(folder.path()).unwrap();
    let path = folder.path().join(FEE_ESTIMATES_FILE);
    let expected = [estimator(3).encode(), estimator(5).encode()];
    let mut random = SplitMix64::new(u64::from(std::process::id()));
    let (mut found, mut unfinished) = ([0; 2], 0);
    for kill in 0..kills {
        let delay = Duration::from_micros(random.below(100_000) as u64);
        kill_while_saving("interrupted::a_killed_save_keeps_the_old_file", FOLDER, folder.path(), delay).unwrap();
        let bytes = read(&RealDisk, &path);
        let place = expected.iter().position(|expected| *expected == bytes);
        found[place.unwrap_or_else(|| panic!("kill {kill}: {} bytes that were never saved", bytes.len()))] += 1;
        unfinished += usize::from(RealDisk.open(&temporary(&path)).is_ok());
    }
    eprintln!("{kills} kills: {found:?} files of each kind, {unfinished} unfinished saves");
    // The next save succeeds in spite of what an unfinished one left behind.
    save(&RealDisk, &path, &estimator(1)).unwrap();
    assert!(RealDisk.open(&temporary(&path)).is_err() && read(&RealDisk, &path) == estimator(1).encode());
}

/// `/dev/full` refuses every byte, as a disk without room does.
#[test]
fn a_save_without_room_keeps_the_old_file() {
    let folder = Scratch::new("fees-full");
    RealDisk.create_dir(folder.path()).unwrap();
    let path = folder.path().join(FEE_ESTIMATES_FILE);
    let [old, new] = [estimator(3), estimator(5)];
    save(&RealDisk, &path, &old).unwrap();
    std::os::unix::fs::symlink("/dev/full", temporary(&path)).unwrap();
    let error = save(&RealDisk, &path, &new).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::NoSpace, "{error}");
    assert_eq!(read(&RealDisk, &path), old.encode());
    // With room again, it succeeds.
    save(&RealDisk, &path, &new).unwrap();
    assert_eq!(read(&RealDisk, &path), new.encode());
}
