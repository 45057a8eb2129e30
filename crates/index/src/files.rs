//! The files of an index as files: how large they are, whether their records are whole, whether two are equal.
//!
//! Input: a directory with the table of its files, or paths. Output: sizes by kind of file; the end of the records of a
//! log; the first byte in which two files differ. Reads only, a few megabytes at a time, so that it may run beside a
//! node; a file that vanishes meanwhile is left out of the sizes.

use crate::error::IndexError;
use lydian_disk::limits::RECORD_PAYLOAD_SIZE_MAX;
use lydian_disk::record::{RECORD_HEAD_SIZE, Records};
use lydian_disk::{Disk, DiskErrorKind, OwnDir, OwnFile, PathKind, ReadFile};
use lydian_engine::Tip;
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const PIECE_BYTES: usize = 4 << 20;

/// The files of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSizes {
    /// The end of their names, or the name of a single file.
    pub kind: &'static str,
    pub files: u32,
    pub bytes: u64,
}

/// An index as its files have it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Which tables it has, if there is a choice.
    pub profile: Option<&'static str>,
    /// The block of its last checkpoint; `None` before the genesis block.
    pub tip: Option<Tip>,
    /// The height below which blocks are in segments, if it has segments.
    pub sealed: Option<u32>,
    /// The transactions of the blocks in segments.
    pub sealed_transactions: Option<u64>,
    /// The transactions of all of its blocks.
    pub transactions: Option<u64>,
    /// In the order of the table of its files; kinds without a file are left out.
    pub sizes: Vec<FileSizes>,
}

impl Report {
    /// The size of all files.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().map(|sizes| sizes.bytes).sum()
    }
}

/// A file that is not as a rebuild has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: PathBuf,
    /// `None`: the file is missing.
    pub offset: Option<u64>,
}

/// An index compared with a rebuild.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Files that are equal.
    pub files: u32,
    pub bytes: u64,
    pub difference: Option<Difference>,
    /// What the index has beside the files of the rebuild, as sentences; the next start of the node removes it.
    pub notes: Vec<String>,
}

/// Called with the number of bytes that were read; returns false to end the work with [`IndexError::Ended`].
pub type Advance<'a> = &'a mut dyn FnMut(u64) -> bool;

pub(crate) fn advance(told: Advance<'_>, bytes: u64) -> Result<(), IndexError> {
    if told(bytes) { Ok(()) } else { Err(IndexError::Ended) }
}

/// The end of the names of a kind of file, or its name.
fn kind_of(file: &OwnFile) -> &'static str {
    match file.name.split_once(['#', '*']) {
        Some((_, end)) => end.trim_start_matches('.'),
        None => file.name,
    }
}

/// Our files in a directory, sorted by name, each with its place in the table; `None` if there is no such directory.
pub(crate) fn list(
    disk: &dyn Disk,
    dir: &Path,
    files: &'static [OwnFile],
) -> Result<Option<Vec<(usize, PathBuf)>>, IndexError> {
    let entries = match disk.list(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let kinds: Vec<OwnDir> = files.chunks(1).map(|file| OwnDir::new(dir, file)).collect();
    let paths = entries.into_iter().filter(|(_, kind)| *kind == PathKind::File).map(|(path, _)| path);
    let mut found: Vec<(usize, PathBuf)> =
        paths.filter_map(|path| Some((kinds.iter().position(|kind| kind.has(&path))?, path))).collect();
    found.sort_by(|(_, path), (_, other)| path.cmp(other));
    Ok(Some(found))
}

/// The size of a file; `None` if it is missing.
pub(crate) fn size_of(disk: &dyn Disk, path: &Path) -> Result<Option<u64>, IndexError> {
    match disk.open(path) {
        Ok(file) => Ok(Some(file.size())),
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The sizes of our files in a directory; `None` if there is none of them.
pub(crate) fn sizes(
    disk: &dyn Disk,
    dir: &Path,
    files: &'static [OwnFile],
) -> Result<Option<Vec<FileSizes>>, IndexError> {
    let Some(found) = list(disk, dir, files)? else { return Ok(None) };
    let mut sizes: Vec<FileSizes> =
        files.iter().map(|file| FileSizes { kind: kind_of(file), files: 0, bytes: 0 }).collect();
    for (place, path) in found {
        let (Some(bytes), Some(sizes)) = (size_of(disk, &path)?, sizes.get_mut(place)) else { continue };
        sizes.files += 1;
        sizes.bytes += bytes;
    }
    sizes.retain(|sizes| sizes.files > 0);
    Ok(if sizes.is_empty() { None } else { Some(sizes) })
}

/// Fails if a file is missing.
pub(crate) fn must_exist(disk: &dyn Disk, path: &Path) -> Result<(), IndexError> {
    Ok(disk.open(path).map(drop)?)
}

/// Checks an index without the file that says what the others have: it is missing if these have bytes.
pub(crate) fn check_without(
    disk: &dyn Disk,
    dir: &Path,
    files: &'static [OwnFile],
    missing: &str,
) -> Result<(), IndexError> {
    match sizes(disk, dir, files)? {
        Some(sizes) if sizes.iter().any(|sizes| sizes.bytes > 0) => must_exist(disk, &dir.join(missing)),
        _ => Ok(()),
    }
}

/// The records of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scanned {
    pub(crate) records: u32,
    /// The offset behind the last one.
    pub(crate) end: u64,
    /// Bytes follow that are no record.
    pub(crate) is_torn: bool,
}

/// Reads records with their checksums, at most `count` of them, to the first bytes that are no record. The first one
/// has the sequence number `sequence`.
pub(crate) fn scan(file: &dyn ReadFile, sequence: u64, count: u32, told: Advance<'_>) -> Result<Scanned, IndexError> {
    let mut scanned = Scanned { records: 0, end: 0, is_torn: false };
    let mut wanted = PIECE_BYTES;
    while scanned.records < count && scanned.end < file.size() {
        let left = usize::try_from(file.size() - scanned.end).unwrap_or(usize::MAX);
        let mut bytes = vec![0; wanted.min(left)];
        file.read_at(scanned.end, &mut bytes)?;
        let mut records = Records::read(&bytes, sequence + u64::from(scanned.records));
        let is_torn = records.by_ref().take((count - scanned.records) as usize).any(|record| record.is_err());
        let read = u32::try_from(records.sequence() - sequence).unwrap_or(u32::MAX);
        advance(told, records.offset())?;
        // A record that is larger than a piece is read again, with as many bytes as any record has.
        scanned.is_torn = is_torn && read == scanned.records && bytes.len() == left.min(RECORD_SIZE_MAX);
        wanted = if read == scanned.records { RECORD_SIZE_MAX } else { PIECE_BYTES };
        (scanned.records, scanned.end) = (read, scanned.end + records.offset());
        if scanned.is_torn {
            break;
        }
    }
    Ok(scanned)
}

const RECORD_SIZE_MAX: usize = RECORD_HEAD_SIZE + RECORD_PAYLOAD_SIZE_MAX;

/// Reads exactly `count` records, or fails with the offset of the first that is not whole.
pub(crate) fn check_log(disk: &dyn Disk, path: &Path, count: u32, told: Advance<'_>) -> Result<u64, IndexError> {
    let file = disk.open(path)?;
    let scanned = scan(file.as_ref(), 0, count, told)?;
    match scanned {
        Scanned { records, end, .. } if records == count => Ok(end),
        Scanned { end, is_torn: true, .. } => {
            Err(IndexError::damaged(path, end, "the checksum of a record does not match"))
        }
        Scanned { end, .. } => Err(IndexError::damaged(path, end, "it is shorter than its tip file says")),
    }
}

/// How a file is compared with that of a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Whole,
    /// It may have bytes that are not used behind those of the rebuild.
    Log,
    /// In addition, it may have only the first bytes of it, or be missing: then its records are not used.
    PartOfLog,
    /// The next start of the node removes it.
    Ignored,
}

/// The first offset in which a file differs from another one; `None` if there is none.
pub(crate) fn first_difference(
    disk: &dyn Disk,
    path: &Path,
    expected: &Path,
    rule: Rule,
    told: Advance<'_>,
) -> Result<Option<u64>, IndexError> {
    let (file, expected) = (disk.open(path)?, disk.open(expected)?);
    let common = file.size().min(expected.size());
    let mut offset = 0;
    while offset < common {
        let size = usize::try_from(common - offset).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let (mut own, mut others) = (vec![0; size], vec![0; size]);
        file.read_at(offset, &mut own)?;
        expected.read_at(offset, &mut others)?;
        if let Some(place) = own.iter().zip(&others).position(|(own, other)| own != other) {
            return Ok(Some(offset + place as u64));
        }
        advance(told, size as u64)?;
        offset += size as u64;
    }
    let (may_be_longer, may_be_shorter) = (rule != Rule::Whole, rule == Rule::PartOfLog);
    let is_longer = file.size() > common && !may_be_longer;
    let is_shorter = expected.size() > common && !may_be_shorter;
    Ok((is_shorter || is_longer).then_some(common))
}

/// Compares the files of a directory with those of a rebuild. `told` is called with the bytes of each.
pub(crate) fn compare_dirs(
    disk: &dyn Disk,
    dir: &Path,
    rebuilt: &Path,
    files: &'static [OwnFile],
    rule: &dyn Fn(&Path) -> Rule,
    told: Advance<'_>,
) -> Result<Comparison, IndexError> {
    let mut comparison = Comparison::default();
    let expected = list(disk, rebuilt, files)?.unwrap_or_default();
    for (_, other) in &expected {
        let path = dir.join(other.file_name().unwrap_or_default());
        let rule = rule(&path);
        let size = match size_of(disk, &path)? {
            _ if rule == Rule::Ignored => continue,
            Some(size) => size,
            None if rule == Rule::PartOfLog => 0,
            None => {
                comparison.difference = Some(Difference { path, offset: None });
                return Ok(comparison);
            }
        };
        let is_there = size > 0 || rule != Rule::PartOfLog;
        if is_there && let Some(offset) = first_difference(disk, &path, other, rule, told)? {
            comparison.difference = Some(Difference { path, offset: Some(offset) });
            return Ok(comparison);
        }
        let used = size_of(disk, other)?.unwrap_or(size);
        if size > used {
            let rest = size - used;
            comparison.notes.push(format!("{}: {rest} bytes behind the last block are not used", path.display()));
        } else if size < used {
            let text = "it does not have all blocks of its segment, and is not used";
            comparison.notes.push(format!("{}: {text}", path.display()));
        }
        comparison.files += 1;
        comparison.bytes += used.min(size);
    }
    for (_, path) in list(disk, dir, files)?.unwrap_or_default() {
        let is_expected = expected.iter().any(|(_, other)| other.file_name() == path.file_name());
        if !is_expected && rule(&path) != Rule::Ignored {
            comparison.notes.push(format!("{}: left over from an interrupted write, not used", path.display()));
        }
    }
    Ok(comparison)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::record::encode_record;
    use lydian_disk::{Proof, SimDisk};

    const FILES: &[OwnFile] = &[
        OwnFile { name: "commit", proof: Proof::Directory },
        OwnFile { name: "#.log", proof: Proof::Directory },
        OwnFile { name: "*.pages", proof: Proof::Directory },
    ];

    fn on(_: u64) -> bool {
        true
    }

    fn log(records: u32, size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        (0..records).for_each(|number| encode_record(&vec![7; size], u64::from(number), &mut bytes));
        bytes
    }

    #[test]
    fn sizes_are_by_kind_of_file() {
        let (disk, dir) = (SimDisk::new(1), Path::new("d"));
        assert_eq!(sizes(&disk, dir, FILES), Ok(None));
        disk.create_dir(dir).unwrap();
        disk.write_whole(Path::new("d/other"), b"not ours").unwrap();
        assert_eq!(sizes(&disk, dir, FILES), Ok(None));
        for (name, size) in [("commit", 5), ("1.pages", 10), ("2.pages", 100)] {
            disk.write_whole(&dir.join(name), &vec![0; size]).unwrap();
        }
        let expected =
            vec![FileSizes { kind: "commit", files: 1, bytes: 5 }, FileSizes { kind: "pages", files: 2, bytes: 110 }];
        assert_eq!(sizes(&disk, dir, FILES), Ok(Some(expected)));
    }

    #[test]
    fn records_are_read_to_the_first_one_that_is_damaged() {
        let (disk, path) = (SimDisk::new(1), Path::new("a.log"));
        // Several pieces; the last records are larger than one.
        let mut bytes = log(2_000, 5_000);
        let small_end = bytes.len() as u64;
        let large = vec![9; PIECE_BYTES + 1];
        (2_000..2_003).for_each(|number| encode_record(&large, number, &mut bytes));
        disk.write_whole(path, &bytes).unwrap();
        let file = disk.open(path).unwrap();
        let all = Scanned { records: 2_003, end: bytes.len() as u64, is_torn: false };
        assert_eq!(scan(file.as_ref(), 0, u32::MAX, &mut on), Ok(all));
        assert_eq!(scan(file.as_ref(), 0, 3, &mut on).unwrap().end, 3 * 5_012);
        assert_eq!(scan(file.as_ref(), 0, 3, &mut |_| false), Err(IndexError::Ended));
        assert_eq!(check_log(&disk, path, 2_000, &mut on), Ok(small_end));
        assert!(matches!(check_log(&disk, path, 2_004, &mut on), Err(IndexError::Damaged { .. })));
        for (at, end) in [(5_012 * 1_500 + 77, 5_012 * 1_500), (bytes.len() - 1, bytes.len() - PIECE_BYTES - 13)] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            disk.write_whole(path, &damaged).unwrap();
            let error = check_log(&disk, path, 2_003, &mut on).unwrap_err();
            assert!(matches!(error, IndexError::Damaged { offset, .. } if offset == end as u64), "{at}: {error}");
        }
    }

    #[test]
    fn the_first_byte_that_differs_is_named() {
        let (disk, dir, other) = (SimDisk::new(1), Path::new("d"), Path::new("e"));
        [dir, other].iter().for_each(|dir| disk.create_dir(dir).unwrap());
        let bytes = vec![1; PIECE_BYTES + 1_000];
        let rule = |path: &Path| match path.file_name().unwrap().to_str().unwrap() {
            "1.log" => Rule::Log,
            "2.log" => Rule::PartOfLog,
            "3.log" => Rule::Ignored,
            _ => Rule::Whole,
        };
        let compare = || compare_dirs(&disk, dir, other, FILES, &rule, &mut on).unwrap();
        disk.write_whole(&other.join("1.pages"), &bytes).unwrap();
        assert_eq!(compare().difference, Some(Difference { path: dir.join("1.pages"), offset: None }));
        disk.write_whole(&dir.join("1.pages"), &bytes).unwrap();
        let equal = compare();
        assert_eq!((equal.files, equal.bytes, &equal.difference), (1, bytes.len() as u64, &None));
        for at in [0, PIECE_BYTES - 1, PIECE_BYTES, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] = 2;
            disk.write_whole(&dir.join("1.pages"), &changed).unwrap();
            assert_eq!(compare().difference.unwrap().offset, Some(at as u64));
            disk.write_whole(&dir.join("1.pages"), &bytes[..at]).unwrap();
            assert_eq!(compare().difference.unwrap().offset, Some(at as u64), "shorter");
        }
        disk.write_whole(&dir.join("1.pages"), &[&bytes[..], &[1]].concat()).unwrap();
        assert_eq!(compare().difference.unwrap().offset, Some(bytes.len() as u64), "longer");
        disk.write_whole(&dir.join("1.pages"), &bytes).unwrap();
        // The rest of a log, and a file that the rebuild does not have, are not used.
        disk.write_whole(&other.join("1.log"), b"abc").unwrap();
        disk.write_whole(&dir.join("1.log"), b"abcdef").unwrap();
        disk.write_whole(&dir.join("2.pages"), b"x").unwrap();
        let equal = compare();
        assert_eq!((equal.difference, equal.files, equal.notes.len()), (None, 2, 2));
        // A log beside a segment may be a part.
        disk.write_whole(&other.join("2.log"), b"abcd").unwrap();
        let unequal = |at| Some(Difference { path: dir.join("2.log"), offset: Some(at) });
        for (own, difference) in [(None, None), (Some("ab"), None), (Some("abcd"), None), (Some("xb"), unequal(0))] {
            own.iter().for_each(|own| disk.write_whole(&dir.join("2.log"), own.as_bytes()).unwrap());
            let notes = if own == Some("abcd") { 2 } else { 3 };
            let compared = compare();
            assert_eq!(compared.difference, difference, "{own:?}");
            assert!(difference.is_some() || compared.notes.len() == notes, "{:?}", compared.notes);
        }
        disk.write_whole(&dir.join("2.log"), b"abcd").unwrap();
        [dir, other]
            .iter()
            .for_each(|dir| disk.write_whole(&dir.join("3.log"), dir.to_str().unwrap().as_bytes()).unwrap());
        assert_eq!(compare().difference, None, "not used");
    }
}
