//! The real disk: written data is read back, limits hold, and each failure is reported with its kind.

use lydian_disk::limits::WHOLE_FILE_SIZE_MAX;
use lydian_disk::{Disk, DiskErrorKind, PathKind, ReadRequest, RealDisk, SimDisk, open_content, read_whole};
use std::path::{Path, PathBuf};

/// A fresh directory below the test's own.
fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    RealDisk.create_dir(&path).unwrap();
    path
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::stream::encode_all(bytes, 1).unwrap()
}

#[test]
fn written_files_read_back_and_replace_each_other() {
    let dir = scratch("whole");
    let path = dir.join("a");
    RealDisk.write_whole(&path, b"first").unwrap();
    RealDisk.write_whole(&path, b"second").unwrap();
    assert_eq!(read_whole(&RealDisk, &path, 6).unwrap(), b"second");
    assert_eq!(RealDisk.list(&dir).unwrap(), [(path.clone(), PathKind::File)], "no temporary file is left");

    let file = RealDisk.open(&path).unwrap();
    let mut two = [0; 2];
    file.read_at(4, &mut two).unwrap();
    assert_eq!(&two, b"nd");
    let error = file.read_at(5, &mut two).unwrap_err();
    assert_eq!((error.offset, error.kind), (Some(5), DiskErrorKind::UnexpectedEnd { missing: 1 }));
    assert!(file.read_at(u64::MAX, &mut two).is_err());
}

#[test]
fn appended_bytes_follow_those_already_there() {
    let path = scratch("append").join("log");
    for part in [b"one ", b"two "] {
        let mut writer = RealDisk.append_file(&path).unwrap();
        writer.write(part).unwrap();
        writer.sync().unwrap();
    }
    assert_eq!(RealDisk.append_file(&path).unwrap().size(), 8);
    assert_eq!(read_whole(&RealDisk, &path, 8).unwrap(), b"one two ");
}

/// Regression: because of a link to its own directory, every file in the directory was verified sixteen times.
#[test]
fn links_to_files_are_listed_and_links_to_directories_are_not() {
    let dir = scratch("links");
    RealDisk.write_whole(&dir.join("a"), b"x").unwrap();
    RealDisk.create_dir(&dir.join("below")).unwrap();
    for (target, link) in [("a", "b"), (".", "loop"), ("none", "nowhere")] {
        std::os::unix::fs::symlink(target, dir.join(link)).unwrap();
    }
    let expected = [("a", PathKind::File), ("b", PathKind::File), ("below", PathKind::Directory)];
    assert_eq!(RealDisk.list(&dir).unwrap(), expected.map(|(name, kind)| (dir.join(name), kind)));
}

#[test]
fn failures_are_distinguished() {
    let dir = scratch("failures");
    let file = dir.join("file");
    RealDisk.write_whole(&file, b"x").unwrap();
    let kind = |path: &Path| RealDisk.open(path).unwrap_err().kind;
    assert_eq!(kind(&dir.join("none")), DiskErrorKind::NotFound);
    assert_eq!(kind(&dir), DiskErrorKind::IsADirectory);
    assert_eq!(kind(&file.join("inside")), DiskErrorKind::NotADirectory);
    assert_eq!(kind(Path::new("/dev/null")), DiskErrorKind::NotAFile);
    // Opening a named pipe without a reader would wait forever.
    for path in ["/dev/null", "/dev/zero"] {
        assert_eq!(RealDisk.append_file(Path::new(path)).unwrap_err().kind, DiskErrorKind::NotAFile);
        assert_eq!(RealDisk.lock(Path::new(path)).unwrap_err().kind, DiskErrorKind::NotAFile);
    }
    assert_eq!(RealDisk.append_file(&dir).unwrap_err().kind, DiskErrorKind::IsADirectory);
    assert_eq!(RealDisk.lock(&dir).unwrap_err().kind, DiskErrorKind::IsADirectory);
    assert_eq!(RealDisk.list(&file).unwrap_err().kind, DiskErrorKind::NotADirectory);
    assert_eq!(RealDisk.list(&dir.join("none")).unwrap_err().kind, DiskErrorKind::NotFound);
    assert!(RealDisk.write_whole(&dir.join("none/file"), b"x").is_err());
}

#[test]
fn compressed_files_are_read_and_damaged_ones_are_named() {
    let dir = scratch("zst");
    let content: Vec<u8> = (0..1_000_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    let good = zst(&content);
    let write = |name: &str, bytes: &[u8]| {
        let path = dir.join(name);
        RealDisk.write_whole(&path, bytes).unwrap();
        path
    };
    assert_eq!(read_whole(&RealDisk, &write("good.zst", &good), WHOLE_FILE_SIZE_MAX).unwrap(), content);
    let opened = open_content(&RealDisk, &dir.join("good.zst")).unwrap();
    let mut three = [0; 3];
    opened.read_at(1000, &mut three).unwrap();
    assert_eq!((opened.size(), &three[..]), (content.len() as u64, &content[1000..1003]));
    let error = opened.read_at(opened.size() - 1, &mut three).unwrap_err();
    assert_eq!(error.kind, DiskErrorKind::UnexpectedEnd { missing: 2 });
    let two = [good.clone(), zst(b"tail")].concat();
    let both = read_whole(&RealDisk, &write("two.zst", &two), WHOLE_FILE_SIZE_MAX).unwrap();
    assert_eq!(
        (both.len(), &both[content.len()..]),
        (content.len() + 4, &b"tail"[..]),
        "a file may have several frames"
    );

    let cut = good.len() / 2;
    let error = read_whole(&RealDisk, &write("cut.zst", &good[..cut]), WHOLE_FILE_SIZE_MAX).unwrap_err();
    assert_eq!((error.offset, error.kind), (Some(cut as u64), DiskErrorKind::CompressedDataTruncated));
    let error = read_whole(&RealDisk, &write("text.zst", b"this is plain text"), WHOLE_FILE_SIZE_MAX).unwrap_err();
    assert!(matches!(error.kind, DiskErrorKind::CompressedDataInvalid { .. }), "{error}");
}

/// limit: WHOLE_FILE_SIZE_MAX at
/// limit: WHOLE_FILE_SIZE_MAX above
#[test]
fn whole_files_are_limited_by_what_they_hold_not_by_what_they_weigh() {
    let dir = scratch("limit");
    let size = usize::try_from(WHOLE_FILE_SIZE_MAX).unwrap();
    let path = dir.join("zeros.zst");
    RealDisk.write_whole(&path, &zst(&vec![0; size])).unwrap();
    assert!(RealDisk.open(&path).unwrap().size() < 100_000);
    assert_eq!(read_whole(&RealDisk, &path, WHOLE_FILE_SIZE_MAX).unwrap().len(), size);
    RealDisk.write_whole(&path, &zst(&vec![0; size + 1])).unwrap();
    let too_large = DiskErrorKind::TooLarge { size_max: WHOLE_FILE_SIZE_MAX };
    assert_eq!(read_whole(&RealDisk, &path, WHOLE_FILE_SIZE_MAX).unwrap_err().kind, too_large);

    let plain = dir.join("plain");
    RealDisk.write_whole(&plain, &[0; 100]).unwrap();
    assert_eq!(read_whole(&RealDisk, &plain, 100).unwrap().len(), 100);
    assert_eq!(read_whole(&RealDisk, &plain, 99).unwrap_err().kind, DiskErrorKind::TooLarge { size_max: 99 });
}

#[test]
fn files_are_cut_and_removed() {
    let dir = scratch("cut");
    let path = dir.join("log");
    let mut writer = RealDisk.append_file(&path).unwrap();
    writer.write(b"one two").unwrap();
    assert_eq!(RealDisk.open(&path).unwrap().size(), 7, "written bytes are visible before a sync");
    drop(writer);
    RealDisk.truncate_file(&path, 3).unwrap();
    assert_eq!(read_whole(&RealDisk, &path, 8).unwrap(), b"one");
    let error = RealDisk.truncate_file(&path, 5).unwrap_err();
    assert_eq!((error.offset, error.kind), (Some(5), DiskErrorKind::UnexpectedEnd { missing: 2 }));
    assert_eq!(RealDisk.truncate_file(&dir, 0).unwrap_err().kind, DiskErrorKind::IsADirectory);
    RealDisk.remove_file(&path).unwrap();
    RealDisk.sync_dir(&dir).unwrap();
    assert_eq!(RealDisk.remove_file(&path).unwrap_err().kind, DiskErrorKind::NotFound);
    assert_eq!(RealDisk.truncate_file(&path, 0).unwrap_err().kind, DiskErrorKind::NotFound);
    assert_eq!(RealDisk.sync_dir(&path).unwrap_err().kind, DiskErrorKind::NotFound);
}

#[test]
fn a_lock_is_held_by_one_until_it_is_dropped() {
    let path = scratch("lock").join(".lock");
    let held = RealDisk.lock(&path).unwrap();
    assert_eq!(RealDisk.lock(&path).unwrap_err().kind, DiskErrorKind::Locked);
    drop(held);
    drop(RealDisk.lock(&path).unwrap());
}

/// Both kinds of open file report whether their path still names them, on both disks.
#[test]
fn a_file_knows_whether_it_kept_its_name() {
    let dir = scratch("named");
    let sim = SimDisk::new(1);
    sim.create_dir(&dir).unwrap();
    let disks: [&dyn Disk; 2] = [&RealDisk, &sim];
    for disk in disks {
        let path = dir.join("f");
        let mut writer = disk.append_file(&path).unwrap();
        writer.write(b"1").unwrap();
        let reader = disk.open(&path).unwrap();
        assert!(writer.is_named() && reader.is_named());
        disk.write_whole(&path, b"another").unwrap();
        assert!(!writer.is_named() && !reader.is_named(), "replaced");
        let reader = disk.open(&path).unwrap();
        assert!(reader.is_named());
        disk.remove_file(&path).unwrap();
        assert!(!reader.is_named(), "removed");
    }
}

#[test]
fn free_space_is_reported_for_existing_paths() {
    let dir = scratch("free");
    assert!(RealDisk.free_bytes(&dir).unwrap() > 0);
    assert_eq!(RealDisk.free_bytes(&dir.join("none")).unwrap_err().kind, DiskErrorKind::NotFound);
}

#[test]
fn many_reads_are_answered_and_a_bad_one_is_named() {
    let path = scratch("many").join("f");
    RealDisk.write_whole(&path, b"0123456789").unwrap();
    let file = RealDisk.open(&path).unwrap();
    file.prefetch(0, 10);
    let (mut a, mut b) = ([0; 2], [0; 3]);
    let mut reads = [ReadRequest { offset: 7, buffer: &mut a }, ReadRequest { offset: 0, buffer: &mut b }];
    file.read_many(&mut reads).unwrap();
    assert_eq!((&a, &b), (b"78", b"012"));
    let mut reads = [ReadRequest { offset: 0, buffer: &mut a }, ReadRequest { offset: 8, buffer: &mut b }];
    let error = file.read_many(&mut reads).unwrap_err();
    assert_eq!((error.path, error.offset, error.kind), (path, Some(8), DiskErrorKind::UnexpectedEnd { missing: 1 }));
}

#[test]
fn files_of_fixed_size_are_overwritten_within_their_size() {
    let dir = scratch("fixed");
    let sim = SimDisk::new(1);
    sim.create_dir(&dir).unwrap();
    let disks: [&dyn Disk; 2] = [&RealDisk, &sim];
    for disk in disks {
        let path = dir.join("f");
        let file = disk.fixed_file(&path, 8).unwrap();
        file.write_at(6, b"ab").unwrap();
        file.sync().unwrap();
        let mut bytes = [1; 8];
        file.read_at(0, &mut bytes).unwrap();
        assert_eq!((&bytes, file.size(), file.is_named()), (b"\0\0\0\0\0\0ab", 8, true));
        let kind = DiskErrorKind::UnexpectedEnd { missing: 1 };
        assert_eq!(file.write_at(6, b"xyz").unwrap_err().kind, kind);
        assert_eq!(file.read_at(7, &mut [0; 2]).unwrap_err().kind, kind);
        assert_eq!(read_whole(disk, &path, 9).unwrap(), b"\0\0\0\0\0\0ab");
        disk.remove_file(&path).unwrap();
        assert!(!file.is_named());
        assert_eq!(disk.fixed_file(&dir, 8).unwrap_err().kind, DiskErrorKind::IsADirectory);
    }
}
