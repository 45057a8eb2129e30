//! The simulated disk: without faults it behaves like a real one, and over many seeds every possible effect of a power
//! loss occurs.

use lydian_disk::{Disk, DiskError, DiskErrorKind, Fault, PathKind, SimDisk, read_whole};
use std::collections::{BTreeMap, BTreeSet};
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
    let mut writer = disk.append_file(Path::new("log")).unwrap();
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
    disk.remove_file(Path::new("f")).unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([None, some(b"x")]));
    disk.sync_dir(Path::new("")).unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([None]));
}

#[test]
fn it_behaves_as_a_disk() {
    let disk = SimDisk::new(1);
    let (dir, file) = (Path::new("/a/b"), Path::new("/a/b/f"));
    let kind = |path: &str| disk.open(Path::new(path)).unwrap_err().kind;
    assert_eq!(disk.append_file(file).unwrap_err().kind, DiskErrorKind::NotFound);
    disk.create_dir(dir).unwrap();
    disk.create_dir(dir).unwrap();
    let mut writer = disk.append_file(file).unwrap();
    writer.write(b"0123").unwrap();
    assert_eq!((kind("/a/b"), kind("/a/c")), (DiskErrorKind::IsADirectory, DiskErrorKind::NotFound));
    assert_eq!(kind("/a/b/f/g"), DiskErrorKind::NotADirectory);
    assert_eq!(disk.list(Path::new("/a")).unwrap(), [(dir.to_owned(), PathKind::Directory)]);
    assert_eq!(disk.list(dir).unwrap(), [(file.to_owned(), PathKind::File)]);
    let open = disk.open(file).unwrap();
    disk.truncate_file(file, 2).unwrap();
    assert_eq!(disk.truncate_file(file, 3).unwrap_err().kind, DiskErrorKind::UnexpectedEnd { missing: 1 });
    disk.remove_file(file).unwrap();
    disk.sync_dir(dir).unwrap();
    let mut two = [0; 2];
    open.read_at(0, &mut two).unwrap();
    assert_eq!(&two, b"01", "an open file outlives its name");
    assert_eq!(disk.remove_file(file).unwrap_err().kind, DiskErrorKind::NotFound);
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

#[test]
fn pages_of_one_write_come_in_any_order_and_old_bytes_may_show() {
    let disk = SimDisk::new(1);
    let mut writer = disk.append_file(Path::new("f")).unwrap();
    writer.write(&[1; 3 * 4096]).unwrap();
    let found = outcomes(&disk, "f");
    let pages = |bytes: &[u8]| -> Vec<bool> {
        bytes.chunks(4096).map(|page| page.len() == 4096 && page.iter().all(|byte| *byte == 1)).collect()
    };
    assert!(found.iter().flatten().any(|bytes| pages(bytes) == [true, false, true]));
    assert!(found.iter().flatten().any(|bytes| pages(bytes) == [false, false, true]));
    assert!(found.iter().flatten().flatten().any(|byte| *byte > 1), "old content of the disk");
}

#[test]
fn overwrites_are_lost_until_they_are_synced_and_spare_their_neighbours() {
    let disk = SimDisk::new(1);
    let file = disk.fixed_file(Path::new("f"), 8).unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([some(&[0; 8])]), "the size is durable");
    file.write_at(2, b"ab").unwrap();
    file.sync().unwrap();
    assert_eq!(outcomes(&disk, "f"), BTreeSet::from([some(b"\0\0ab\0\0\0\0")]));
    file.write_at(2, b"cdef").unwrap();
    assert_eq!(content(&disk.kill(), "f"), some(b"\0\0cdef\0\0"), "the system keeps what a process wrote");
    let found = outcomes(&disk.kill(), "f");
    for expected in [&b"\0\0ab\0\0\0\0"[..], b"\0\0cb\0\0\0\0", b"\0\0cdef\0\0"] {
        assert!(found.contains(&some(expected)), "{expected:?} never happens");
    }
    assert!(found.iter().flatten().all(|bytes| bytes[..2] == [0; 2] && bytes[6..] == [0; 2]), "{found:?}");
    assert!(found.iter().flatten().flatten().any(|byte| !b"\0abcdef".contains(byte)), "garbage");

    let error = file.write_at(5, b"wxyz").unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::UnexpectedEnd { missing: 1 });
    assert_eq!(content(&disk, "f"), some(b"\0\0cdef\0\0"));
}

#[test]
fn a_failed_sync_of_overwrites_is_not_made_good_by_a_later_one() {
    let disk = SimDisk::new(1);
    let file = disk.fixed_file(Path::new("f"), 4).unwrap();
    file.write_at(0, b"abcd").unwrap();
    disk.fail_at(disk.operation_count(), Fault::Io);
    file.sync().unwrap_err();
    file.write_at(1, b"xy").unwrap();
    file.sync().unwrap();
    let found = outcomes(&disk, "f");
    assert!(found.iter().flatten().all(|bytes| &bytes[1..3] == b"xy"), "what was written again is durable");
    assert!(found.contains(&some(b"\0xy\0")) && found.contains(&some(b"axyd")), "{found:?}");
}

#[test]
fn a_file_of_fixed_size_needs_room_once() {
    let disk = SimDisk::new(1);
    disk.set_capacity(7);
    assert_eq!(disk.fixed_file(Path::new("f"), 8).unwrap_err().kind, DiskErrorKind::NoSpace);
    disk.set_capacity(8);
    let file = disk.fixed_file(Path::new("f"), 8).unwrap();
    file.write_at(0, &[1; 8]).unwrap();
    disk.fail_at(disk.operation_count(), Fault::NoSpace);
    assert_eq!(file.write_at(0, &[2; 8]).unwrap_err().kind, DiskErrorKind::NoSpace);
    file.write_at(0, &[3; 8]).unwrap();
    assert_eq!(content(&disk, "f"), some(&[3; 8]), "a failed write is followed by others");
    let longer = disk.fixed_file(Path::new("f"), 4).unwrap();
    assert_eq!(longer.size(), 8, "a longer file keeps its size");
    assert!(longer.is_named());
}

#[test]
fn names_are_lost_or_kept_each_for_itself() {
    let disk = SimDisk::new(1);
    drop(disk.lock(Path::new("a")).unwrap());
    drop(disk.lock(Path::new("b")).unwrap());
    let both = |disk: &SimDisk| ["a", "b"].map(|path| content(disk, path).is_some());
    let found: BTreeSet<_> = (0..SEEDS).map(|seed| both(&disk.power_loss(seed))).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(both(&disk.kill()), [true, true]);

    // The rename of a file written whole: old or new name, both, or neither.
    let disk = SimDisk::new(1);
    disk.fail_at(4, Fault::CrashBefore);
    disk.write_whole(Path::new("f"), b"x").unwrap_err();
    let found: BTreeSet<_> =
        (0..SEEDS).map(|seed| ["f", "f.new"].map(|path| content(&disk.power_loss(seed), path))).collect();
    let x = some(b"x");
    assert_eq!(found, BTreeSet::from([[x.clone(), None], [None, x.clone()], [x.clone(), x], [None, None]]));

    // A directory with an unsynced name, because the sync failed.
    let disk = SimDisk::new(1);
    disk.fail_at(1, Fault::Io);
    assert_eq!(disk.create_dir(Path::new("d")).unwrap_err().kind, DiskErrorKind::Io);
    disk.write_whole(Path::new("d/f"), b"x").unwrap();
    assert_eq!(outcomes(&disk, "d/f"), BTreeSet::from([None, some(b"x")]), "it is lost with its directory");
}

/// After a failed sync, the kernel treats pages as clean although they could not be written, so that the next sync
/// succeeds.
///
/// checklist: 93
#[test]
fn what_a_failed_sync_was_to_save_is_never_safe() {
    let disk = SimDisk::new(1);
    let path = Path::new("log");
    let mut writer = disk.append_file(path).unwrap();
    writer.write(b"lost").unwrap();
    disk.fail_at(disk.operation_count(), Fault::Io);
    assert_eq!(writer.sync().unwrap_err().to_string(), "log:4: the device reports an input/output error");
    assert_eq!(writer.write(b"x").unwrap_err().kind, DiskErrorKind::Poisoned);
    let mut writer = disk.append_file(path).unwrap();
    writer.write(b"kept").unwrap();
    writer.sync().unwrap();
    let found = outcomes(&disk, "log");
    assert!(found.contains(&some(b"lostkept")) && found.contains(&some(b"\0\0\0\0kept")));
    disk.truncate_file(path, 0).unwrap();
    let mut writer = disk.append_file(path).unwrap();
    writer.write(b"safe").unwrap();
    writer.sync().unwrap();
    assert_eq!(outcomes(&disk, "log"), BTreeSet::from([some(b"safe")]), "rewriting the data makes it durable");
}

/// Regression: the model treated a process killed during a sync like a failed disk.
#[test]
fn what_a_sync_cut_off_was_to_save_is_saved_by_the_next() {
    let disk = SimDisk::new(1);
    let mut writer = disk.append_file(Path::new("log")).unwrap();
    writer.write(b"data").unwrap();
    disk.fail_at(disk.operation_count(), Fault::CrashInside);
    writer.sync().unwrap_err();
    assert!(outcomes(&disk, "log").len() > 1);
    let next = disk.kill();
    next.append_file(Path::new("log")).unwrap().sync().unwrap();
    assert_eq!(outcomes(&next, "log"), BTreeSet::from([some(b"data")]));
}

/// Every kind of operation that a store performs on its disk.
fn script(disk: &SimDisk) -> Result<(), DiskError> {
    disk.create_dir(Path::new("d"))?;
    disk.write_whole(Path::new("d/whole"), b"one")?;
    let mut log = disk.append_file(Path::new("d/log"))?;
    log.write(b"first")?;
    log.sync()?;
    log.write(b"second")?;
    log.sync()?;
    drop(log);
    disk.truncate_file(Path::new("d/log"), 7)?;
    disk.write_whole(Path::new("d/whole"), b"two")?;
    disk.remove_file(Path::new("d/whole"))?;
    disk.sync_dir(Path::new("d"))
}

/// checklist: 93
#[test]
fn each_operation_may_fail_and_says_so() {
    let disk = SimDisk::new(0);
    script(&disk).unwrap();
    let count = disk.operation_count();
    assert_eq!(count, 2 + 5 + 2 + 4 + 1 + 5 + 2);
    for number in 0..count {
        for (fault, kind) in [(Fault::NoSpace, DiskErrorKind::NoSpace), (Fault::Io, DiskErrorKind::Io)] {
            let disk = SimDisk::new(number);
            disk.fail_at(number, fault);
            let error = script(&disk).unwrap_err();
            assert_eq!(error.kind, kind, "operation {number}");
            assert!(error.path.starts_with("d"));
            assert!(!disk.is_crashed());
            script(&disk).unwrap();
            assert_eq!(disk.files(), BTreeMap::from([("d/log".into(), disk.files()[Path::new("d/log")].clone())]));
        }
        for fault in [Fault::CrashBefore, Fault::CrashInside, Fault::CrashAfter] {
            let disk = SimDisk::new(number);
            disk.fail_at(number, fault);
            let error = script(&disk).unwrap_err();
            assert!(error.to_string().ends_with("the simulated process is gone"));
            assert!(disk.is_crashed());
            assert_eq!(disk.operation_count(), number + 1);
            script(&disk).unwrap_err();
            assert_eq!(disk.operation_count(), number + 1, "a dead process performs no operations");
            script(&disk.kill()).unwrap();
            script(&disk.power_loss(number)).unwrap();
        }
    }
}

/// checklist: 93
#[test]
fn a_writer_that_failed_stays_failed_and_its_file_holds_a_part() {
    let path = Path::new("log");
    let mut sizes = BTreeSet::new();
    for (seed, fault) in (0..100).flat_map(|seed| [(seed, Fault::NoSpace), (seed, Fault::Io)]) {
        let disk = SimDisk::new(seed);
        let mut writer = disk.append_file(path).unwrap();
        writer.write(b"12").unwrap();
        disk.fail_at(disk.operation_count(), fault);
        assert_eq!(writer.write(b"345").unwrap_err().offset, Some(2));
        assert_eq!(writer.write(b"345").unwrap_err().kind, DiskErrorKind::Poisoned);
        assert_eq!(writer.sync().unwrap_err().kind, DiskErrorKind::Poisoned);
        assert_eq!(writer.size(), 2);
        let found = content(&disk, "log").unwrap();
        assert!(b"12345".starts_with(&found[..]));
        assert_eq!(disk.append_file(path).unwrap().size(), found.len() as u64);
        sizes.insert(found.len());
    }
    assert_eq!(sizes, BTreeSet::from([2, 3, 4, 5]));
}

/// checklist: 93
#[test]
fn a_disk_that_is_full_takes_what_fits() {
    let disk = SimDisk::new(1);
    disk.set_capacity(5);
    let mut writer = disk.append_file(Path::new("f")).unwrap();
    writer.write(b"123").unwrap();
    assert_eq!(disk.free_bytes(Path::new("f")).unwrap(), 2);
    assert_eq!(writer.write(b"456").unwrap_err().to_string(), "f:3: no space is left on the file system");
    assert_eq!((content(&disk, "f"), disk.free_bytes(Path::new("")).unwrap()), (some(b"12345"), 0));
    assert_eq!(disk.write_whole(Path::new("g"), b"x").unwrap_err().kind, DiskErrorKind::NoSpace);
    assert_eq!(disk.list(Path::new("")).unwrap().len(), 1, "no temporary file is left");
    disk.remove_file(Path::new("f")).unwrap();
    assert_eq!(disk.free_bytes(Path::new("")).unwrap(), 0, "the writer still has it open");
    drop(writer);
    disk.sync_dir(Path::new("")).unwrap();
    disk.write_whole(Path::new("g"), b"x").unwrap();
}

/// checklist: 94
#[test]
fn reads_fail_and_bytes_rot_where_planned() {
    let disk = SimDisk::new(1);
    disk.write_whole(Path::new("f"), b"abc").unwrap();
    let file = disk.open(Path::new("f")).unwrap();
    let mut byte = [0];
    disk.fail_read_at(disk.read_count() + 1);
    file.read_at(2, &mut byte).unwrap();
    assert_eq!(file.read_at(2, &mut byte).unwrap_err().to_string(), "f:2: the device reports an input/output error");
    file.read_at(2, &mut byte).unwrap();
    let before = disk.kill();
    disk.flip(Path::new("f"), 1, 0x03).unwrap();
    assert_eq!((content(&disk, "f"), content(&before, "f")), (some(b"aac"), some(b"abc")));
    let error = disk.flip(Path::new("f"), 3, 1).unwrap_err();
    assert_eq!((error.offset, error.kind), (Some(3), DiskErrorKind::UnexpectedEnd { missing: 1 }));
}

#[test]
fn the_same_seeds_give_the_same_disk() {
    let run = |seed, loss| {
        let disk = SimDisk::new(seed);
        disk.fail_at(16, Fault::CrashInside);
        script(&disk).unwrap_err();
        disk.power_loss(loss).files()
    };
    for seed in 0..50 {
        assert_eq!(run(seed, seed + 1), run(seed, seed + 1));
    }
    assert!((0..50).any(|seed| run(1, seed) != run(1, seed + 1)));
}
