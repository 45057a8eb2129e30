//! The simulated disk: without faults it behaves as the real one, and each thing that power loss may do does happen over seeds.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_disk::{Disk, DiskErrorKind, Fault, PathKind, SimDisk, read_whole};
use std::collections::BTreeSet;
use std::path::Path;

const SEEDS: u64 = 400;

fn content(disk: &SimDisk, path: &str) -> Option<Vec<u8>> {
    match read_whole(disk, Path::new(path), 1 << 20) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            assert_eq!(error.kind, DiskErrorKind::NotFound);
            None
        }
    }
}

fn outcomes(disk: &SimDisk, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    (0..SEEDS).map(|seed| content(&disk.power_loss(seed), path)).collect()
}

fn some(bytes: &[u8]) -> Option<Vec<u8>> {
    Some(bytes.to_vec())
}

#[test]
fn what_is_synced_survives_and_what_is_not_may_not() {
    let disk = SimDisk::new(1);
    let mut writer = disk.append(Path::new("log")).unwrap();
    writer.write(b"safe").unwrap();
    writer.sync().unwrap();
    assert_eq!(outcomes(&disk, "log"), BTreeSet::from([some(b"safe")]));
    writer.write(b"AB").unwrap();
    writer.write(b"CD").unwrap();
    assert_eq!(content(&disk, "log"), some(b"safeABCD"));
    let found = outcomes(&disk, "log");
    assert!(found.iter().flatten().all(|bytes| bytes.starts_with(b"safe") && bytes.len() <= 8));
    for expected in [&b"safe"[..], b"safeA", b"safeAB", b"safeABC", b"safeABCD", b"safe\0\0CD", b"safe\0\0\0\0"] {
        assert!(found.contains(&some(expected)), "{:?} never happens", String::from_utf8_lossy(expected));
    }
    assert_eq!(content(&disk.kill(), "log"), some(b"safeABCD"), "the system keeps what a process wrote");
    assert_eq!(outcomes(&disk.kill(), "log"), found, "but has not made it safe");
}

#[test]
fn whole_files_are_old_or_new_wherever_power_is_lost() {
    let path = Path::new("d/f");
    for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
        let mut found = BTreeSet::new();
        for number in 0.. {
            let disk = SimDisk::new(number);
            disk.create_dir(Path::new("d")).unwrap();
            disk.write_whole(path, b"old").unwrap();
            disk.fail_at(disk.operation_count() + number, fault);
            let result = disk.write_whole(path, b"new");
            assert_eq!(result.is_err(), disk.is_crashed());
            if result.is_ok() {
                assert_eq!(outcomes(&disk, "d/f"), BTreeSet::from([some(b"new")]));
                assert_eq!(number, 5, "operations of write_whole");
                break;
            }
            assert_eq!(disk.kind(path).unwrap_err().to_string(), "d/f: the simulated process is gone");
            found.extend(outcomes(&disk, "d/f"));
        }
        assert_eq!(found, BTreeSet::from([some(b"old"), some(b"new")]));
    }
}

#[test]
fn removals_last_once_the_directory_is_synced() {
    let disk = SimDisk::new(1);
    disk.write_whole(Path::new("f"), b"x").unwrap();
    disk.remove(Path::new("f")).unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([None, some(b"x")]));
    disk.sync_dir(Path::new("")).unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([None]));
}

#[test]
fn it_behaves_as_a_disk() {
    let disk = SimDisk::new(1);
    let (dir, file) = (Path::new("/a/b"), Path::new("/a/b/f"));
    let kind = |path: &str| disk.open(Path::new(path)).unwrap_err().kind;
    assert_eq!(disk.append(file).unwrap_err().kind, DiskErrorKind::NotFound);
    disk.create_dir(dir).unwrap();
    disk.create_dir(dir).unwrap();
    let mut writer = disk.append(file).unwrap();
    writer.write(b"0123").unwrap();
    assert_eq!((kind("/a/b"), kind("/a/c")), (DiskErrorKind::IsADirectory, DiskErrorKind::NotFound));
    assert_eq!(kind("/a/b/f/g"), DiskErrorKind::NotADirectory);
    assert_eq!(disk.list(Path::new("/a")).unwrap(), [(dir.to_owned(), PathKind::Directory)]);
    assert_eq!(disk.list(dir).unwrap(), [(file.to_owned(), PathKind::File)]);
    let open = disk.open(file).unwrap();
    disk.truncate(file, 2).unwrap();
    assert_eq!(disk.truncate(file, 3).unwrap_err().kind, DiskErrorKind::UnexpectedEnd { missing: 1 });
    disk.remove(file).unwrap();
    disk.sync_dir(dir).unwrap();
    let mut two = [0; 2];
    open.read_at(0, &mut two).unwrap();
    assert_eq!(&two, b"01", "an open file outlives its name");
    assert_eq!(disk.remove(file).unwrap_err().kind, DiskErrorKind::NotFound);
}

#[test]
fn a_lock_goes_with_its_process() {
    let (disk, path) = (SimDisk::new(1), Path::new(".lock"));
    let held = disk.lock(path).unwrap();
    assert_eq!(disk.clone().lock(path).unwrap_err().kind, DiskErrorKind::Locked);
    drop(disk.kill().lock(path).unwrap());
    drop(disk.power_loss(1).lock(path).unwrap());
    drop(held);
    disk.lock(path).unwrap();
}
