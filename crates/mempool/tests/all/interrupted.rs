//! Saves of `mempool.dat` on the real disk that are interrupted: by SIGKILL, and by a disk without room.
//!
//! `a_failed_save_keeps_the_old_file` in `src/files/tests.rs` does the same at every operation of a simulated disk.

use lydian_disk::{Disk, DiskErrorKind, RealDisk, read_whole};
use lydian_mempool::files::{Dump, DumpedTx, Key};
use lydian_oracle::Scratch;
use lydian_oracle::killed::{SAVED, kill_count, kill_while_saving};
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction, Txid};
use lydian_stdx::SplitMix64;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Set for the process that is killed: where it saves.
const FOLDER: &str = "LYDIAN_KILLED_MEMPOOL";
const KEY: Key = Key(*b"\x01sevenby");
/// Bytes of the script of each transaction, so that a save has many pages to write.
const SCRIPT_SIZE: usize = 10_000;

/// A mempool of `count` transactions.
fn transactions(count: u32) -> Vec<Transaction> {
    let make = |number| {
        let prevout = OutPoint { txid: Txid([7; 32]), vout: number };
        let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0, witness: vec![vec![0x51]] };
        let output = MutOutput { value: Amount(1), script_pubkey: vec![0x6a; SCRIPT_SIZE] };
        MutTx { version: 2, inputs: vec![input], outputs: vec![output], lock_time: 0 }.to_transaction().unwrap()
    };
    (0..count).map(make).collect()
}

fn dump(transactions: &[Transaction]) -> Dump<'_> {
    Dump {
        transactions: transactions.iter().map(|tx| DumpedTx { tx: tx.view(), time: 1, fee_delta: 2 }).collect(),
        deltas: BTreeMap::from([(Txid([1; 32]), -5)]),
        unbroadcast: BTreeSet::from([Txid([2; 32])]),
    }
}

/// Saves one mempool after the other, in the process that is killed.
fn save_for_ever(path: &Path) -> ! {
    let both = [transactions(40), transactions(60)];
    for place in (0..2).cycle() {
        dump(&both[place]).save(&RealDisk, path, Some(KEY)).unwrap();
        if place == 1 {
            eprintln!("{SAVED}");
        }
    }
    unreachable!("the cycle has no end")
}

/// It starts itself as the process that it kills. `LYDIAN_CRASH_RUNS` is the number of kills.
#[test]
fn a_killed_save_keeps_the_old_file() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        save_for_ever(&PathBuf::from(folder).join("mempool.dat"));
    }
    let kills = kill_count();
    let folder = Scratch::new("mempool-killed");
    RealDisk.create_dir(folder.path()).unwrap();
    let path = folder.path().join("mempool.dat");
    let expected = [dump(&transactions(40)).encode(Some(KEY)), dump(&transactions(60)).encode(Some(KEY))];
    let mut random = SplitMix64::new(u64::from(std::process::id()));
    let (mut found, mut unfinished) = ([0; 2], 0);
    for kill in 0..kills {
        let delay = Duration::from_micros(random.below(100_000) as u64);
        kill_while_saving("interrupted::a_killed_save_keeps_the_old_file", FOLDER, folder.path(), delay).unwrap();
        let bytes = read_whole(&RealDisk, &path, 1 << 24).unwrap();
        let place = expected.iter().position(|expected| *expected == bytes);
        found[place.unwrap_or_else(|| panic!("kill {kill}: {} bytes that were never saved", bytes.len()))] += 1;
        unfinished += usize::from(RealDisk.open(&temporary(&path)).is_ok());
    }
    eprintln!("{kills} kills: {found:?} files of each kind, {unfinished} unfinished saves");
    // The next save succeeds in spite of what an unfinished one left behind.
    dump(&transactions(1)).save(&RealDisk, &path, Some(KEY)).unwrap();
    assert!(RealDisk.open(&temporary(&path)).is_err() && read_whole(&RealDisk, &path, 1 << 24).is_ok());
}

/// The file that replaces the other.
fn temporary(path: &Path) -> PathBuf {
    path.with_file_name("mempool.dat.new")
}

/// `/dev/full` refuses every byte, as a disk without room does.
#[test]
fn a_save_without_room_keeps_the_old_file() {
    let folder = Scratch::new("mempool-full");
    RealDisk.create_dir(folder.path()).unwrap();
    let path = folder.path().join("mempool.dat");
    let (old, new) = (transactions(3), transactions(5));
    dump(&old).save(&RealDisk, &path, Some(KEY)).unwrap();
    std::os::unix::fs::symlink("/dev/full", temporary(&path)).unwrap();
    let error = dump(&new).save(&RealDisk, &path, Some(KEY)).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::NoSpace, "{error}");
    assert_eq!(read_whole(&RealDisk, &path, 1 << 24), Ok(dump(&old).encode(Some(KEY))));
    // With room again, it succeeds.
    dump(&new).save(&RealDisk, &path, Some(KEY)).unwrap();
    assert_eq!(read_whole(&RealDisk, &path, 1 << 24), Ok(dump(&new).encode(Some(KEY))));
}
