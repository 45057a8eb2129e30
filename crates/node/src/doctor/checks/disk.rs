//! Checks of the disks: free space, file system, the time of a sync and of a read from the device.
//!
//! A sync is measured on a file without a name, which no other program sees, and reads on files of the node, past the
//! page cache. Cost: at most about half a second each.

use super::with_settings;
use crate::clock::now_nanos;
use crate::display::gigabytes;
use crate::doctor::check::{Answer, Level};
use crate::doctor::facts::{Facts, existing};
use crate::settings::Settings;
use crate::work::space::{FREE_BYTES_MIN, Needs};
use lydian_disk::probe::{DIRECT_READ_BYTES, DirectFile, SyncProbe};
use lydian_disk::{DiskError, PathKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub(crate) fn space(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        let blocks = existing(&settings.blocks);
        let missing = Needs::new(settings).missing(facts.folders(settings));
        let mut findings = Vec::new();
        for path in [existing(&settings.datadir), blocks.clone()] {
            match facts.disk.free_bytes(&path) {
                Ok(free) if free < FREE_BYTES_MIN => findings.push(Answer::bad(format!(
                    "only {} GB are free in {}: the node does not start with less than {} MB",
                    gigabytes(free),
                    path.display(),
                    FREE_BYTES_MIN >> 20
                ))),
                Ok(_) => {}
                Err(error) => findings.push(Answer::warning(format!("the free space is not known: {error}"))),
            }
        }
        let free = facts.disk.free_bytes(&blocks).unwrap_or(u64::MAX);
        let words = format!(
            "{} GB are free in {}, and the chain needs about {} GB more",
            gigabytes(free),
            blocks.display(),
            gigabytes(missing)
        );
        if free < missing.saturating_add(FREE_BYTES_MIN) && findings.is_empty() {
            findings.push(Answer::bad(words.clone()));
        }
        findings.dedup();
        Answer::worst(findings, || Answer::ok(words))
    })
}

/// A kind of file system, by the number that `statfs` returns.
struct FileSystem {
    magic: u32,
    name: &'static str,
    level: Level,
    why: &'static str,
}

const fn good(magic: u32, name: &'static str) -> FileSystem {
    FileSystem { magic, name, level: Level::Ok, why: "" }
}

const fn doubtful(magic: u32, name: &'static str, why: &'static str) -> FileSystem {
    FileSystem { magic, name, level: Level::Warning, why }
}

const fn bad(magic: u32, name: &'static str, why: &'static str) -> FileSystem {
    FileSystem { magic, name, level: Level::Bad, why }
}

const NETWORK: &str = "locks and syncs over a network depend on the server";
const LOST: &str = "everything in it is lost when the machine restarts";
const SIMPLE: &str = "it has no journal, no owners and no private files, and blocks were damaged on it";

/// Numbers of Linux's `magic.h` and of the file systems' own sources.
const FILE_SYSTEMS: &[FileSystem] = &[
    good(0xef53, "ext4"),
    good(0x5846_5342, "XFS"),
    good(0x9123_683e, "btrfs"),
    good(0x2fc1_2fc1, "ZFS"),
    good(0xf2f5_2010, "F2FS"),
    good(0xca45_1a4e, "bcachefs"),
    doubtful(0x6969, "NFS", NETWORK),
    doubtful(0xff53_4d42, "CIFS", NETWORK),
    doubtful(0xfe53_4d42, "SMB", NETWORK),
    doubtful(0x517b, "SMB", NETWORK),
    doubtful(0x00c3_6400, "Ceph", NETWORK),
    doubtful(0x0102_1997, "9P", NETWORK),
    doubtful(0x6573_5546, "FUSE", "what a sync does depends on the program behind it"),
    doubtful(0x794c_7630, "overlay", "files in the layer of a container are lost with it; use a volume"),
    doubtful(0x5346_544e, "NTFS", "it is slow for many small writes, and owners depend on how it is mounted"),
    doubtful(0x7366_746e, "NTFS", "it is slow for many small writes, and owners depend on how it is mounted"),
    doubtful(0x0102_1994, "tmpfs", LOST),
    doubtful(0x8584_58f6, "ramfs", LOST),
    bad(0x2011_bab0, "exFAT", SIMPLE),
    bad(0x4d44, "FAT", SIMPLE),
];

fn judge(magic: u32, path: &Path) -> Answer {
    let path = path.display();
    match FILE_SYSTEMS.iter().find(|one| one.magic == magic) {
        Some(FileSystem { name, level: Level::Ok, .. }) => Answer::ok(format!("{path} is on {name}")),
        Some(one) => Answer { level: one.level, text: format!("{path} is on {}: {}", one.name, one.why) },
        None => Answer::ok(format!("{path} is on a file system that this program does not know ({magic:#x})")),
    }
}

pub(crate) fn file_system(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        let mut paths = vec![existing(&settings.datadir), existing(&settings.blocks), existing(&settings.coins())];
        paths.dedup_by_key(|path| device_of(path));
        let of = |path: &PathBuf| match rustix::fs::statfs(path.as_path()) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers have 32 bits")]
            Ok(answer) => judge(answer.f_type as u32, path),
            Err(error) => Answer::warning(format!("{}: {error}", path.display())),
        };
        Answer::worst(paths.iter().map(of).collect(), || Answer::skipped("there is no directory"))
    })
}

fn device_of(path: &Path) -> Option<u64> {
    Some(path.metadata().ok()?.dev())
}

/// The median of several measurements in microseconds, and their number; fewer if they take too long.
fn median_us(
    count: usize,
    mut measure: impl FnMut() -> Result<(), DiskError>,
) -> Result<Option<(u64, usize)>, DiskError> {
    const TIME_MAX_NS: u64 = 500_000_000;
    let begin = now_nanos();
    let mut times = Vec::new();
    while times.len() < count && now_nanos() - begin < TIME_MAX_NS {
        let start = now_nanos();
        measure()?;
        times.push((now_nanos() - start) / 1_000);
    }
    times.sort_unstable();
    Ok(times.get(times.len() / 2).map(|median| (*median, times.len())))
}

/// "0.42 ms".
fn milliseconds(us: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
    let ms = us as f64 / 1e3;
    format!("{ms:.2} ms")
}

fn by_limits(us: u64, warning_us: u64, bad_us: u64, text: String) -> Answer {
    match us {
        us if us >= bad_us => Answer::bad(text),
        us if us >= warning_us => Answer::warning(text),
        _ => Answer::ok(text),
    }
}

/// A checkpoint has about twenty syncs, during which validation waits.
pub(crate) const SYNC_WARNING_US: u64 = 100_000;
pub(crate) const SYNC_BAD_US: u64 = 1_000_000;

pub(crate) fn sync(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        let directory = existing(&settings.coins());
        let measured = SyncProbe::new(&directory).and_then(|probe| {
            let mut offset = 0;
            median_us(8, || {
                offset += 4_096;
                probe.write_and_sync(offset, &[0; 4_096])
            })
        });
        match measured {
            Ok(Some((us, count))) => {
                let text = format!("4 KiB are on disk after {} (median of {count})", milliseconds(us));
                by_limits(us, SYNC_WARNING_US, SYNC_BAD_US, text)
            }
            Ok(None) => Answer::skipped("nothing was measured"),
            Err(error) => Answer::skipped(format!("a file without a name cannot be written: {error}")),
        }
    })
}

/// With `-lowmem` a block may need 20,000 reads of coins, 64 at once; a rotating disk takes about 8 ms.
pub(crate) const READ_WARNING_US: u64 = 5_000;
pub(crate) const READ_BAD_US: u64 = 100_000;

/// Smaller files would be read again and again at the same places.
const READ_FILE_BYTES_MIN: u64 = 1 << 20;

pub(crate) fn reads(facts: &Facts<'_>) -> Answer {
    with_settings(facts, |settings| {
        let Some((path, size)) = largest_file(facts, settings) else {
            return Answer::skipped("no file of the node is large enough yet");
        };
        let pages = size / DIRECT_READ_BYTES as u64;
        let measured = DirectFile::open(&path).and_then(|mut file| median_us(64, || file.read(facts.below(pages))));
        match measured {
            Ok(Some((us, count))) => {
                let text = format!("a random read of 4 KiB takes {} (median of {count})", milliseconds(us));
                by_limits(us, READ_WARNING_US, READ_BAD_US, text)
            }
            Ok(None) => Answer::skipped("nothing was measured"),
            Err(error) => Answer::skipped(format!("the page cache cannot be passed by: {error}")),
        }
    })
}

/// The largest file of the coins, or else of the blocks.
fn largest_file(facts: &Facts<'_>, settings: &Settings) -> Option<(PathBuf, u64)> {
    let largest = |directory: &Path| {
        let files = facts.disk.list(directory).unwrap_or_default().into_iter();
        let sizes = files.filter(|(_, kind)| *kind == PathKind::File);
        sizes
            .filter_map(|(path, _)| path.metadata().ok().map(|found| (path, found.len())))
            .max_by_key(|(_, size)| *size)
    };
    let found = [settings.coins(), settings.blocks.clone()]
        .iter()
        .filter_map(|directory| largest(directory))
        .collect::<Vec<_>>();
    found.into_iter().find(|(_, size)| *size >= READ_FILE_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_file_system_has_its_level() {
        let level = |magic| judge(magic, Path::new("/d")).level;
        // The numbers of NFS, CIFS, FUSE and of a container's layer; exFAT, and FAT; ext4, XFS and btrfs: of statfs(2).
        assert_eq!([0x6969, 0xff53_4d42, 0x6573_5546, 0x794c_7630].map(level), [Level::Warning; 4]);
        assert_eq!([0x2011_bab0, 0x4d44].map(level), [Level::Bad; 2]);
        assert_eq!([0xef53, 0x5846_5342, 0x9123_683e].map(level), [Level::Ok; 3]);
        assert_eq!(level(0x0102_1994), Level::Warning, "memory");
        let words = |magic| judge(magic, Path::new("/d")).text;
        assert!(words(0x6969).starts_with("/d is on NFS: locks and syncs") && words(0x2011_bab0).contains("exFAT"));
        assert_eq!(
            judge(1, Path::new("/d")),
            Answer::ok("/d is on a file system that this program does not know (0x1)")
        );
    }

    #[test]
    fn slow_disks_are_reported() {
        let levels = [0, SYNC_WARNING_US - 1, SYNC_WARNING_US, SYNC_BAD_US - 1, SYNC_BAD_US]
            .map(|us| by_limits(us, SYNC_WARNING_US, SYNC_BAD_US, String::new()).level);
        assert_eq!(levels, [Level::Ok, Level::Ok, Level::Warning, Level::Warning, Level::Bad]);
        let mut left = 3;
        let measured = median_us(3, || {
            left -= 1;
            Ok(())
        });
        assert!(measured.is_ok_and(|found| found.is_some_and(|(_, count)| count <= 3)) && left >= 0);
        assert_eq!(milliseconds(1_234), "1.23 ms");
    }
}
