//! [`RealDisk`]: the operating system's files, with input and output as in [`Disk`](crate::Disk).
//!
//! Cost: one system call per read (`pread`) or append, fewer for many reads at once (`many`); nothing is buffered here.
//! Invariant: an existing path is opened only after its metadata says that it is a regular file, so that a named pipe
//! cannot block the caller forever.

use crate::many::{self, ReadWay};
use crate::{AppendFile, Disk, DiskError, DiskErrorKind, FixedFile, Lock, PathKind, ReadFile, ReadRequest, sys};
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl RealDisk {
    /// Opens a regular file whose `read_many` uses this way, if the system supports it; `open` uses the best one.
    pub fn open_by(&self, path: &Path, way: ReadWay) -> Result<Box<dyn ReadFile>, DiskError> {
        if self.kind(path)? == PathKind::Directory {
            return Err(DiskError::new(path, None, DiskErrorKind::IsADirectory));
        }
        let open = || -> io::Result<(File, Metadata)> {
            let file = OpenOptions::new().read(true).open(path)?;
            let metadata = file.metadata()?;
            Ok((file, metadata))
        };
        let (file, metadata) = open().map_err(|error| DiskError::from_io(path, None, &error))?;
        let (file, size, identity) = (Arc::new(file), metadata.len(), Identity::of(&metadata));
        Ok(Box::new(RealReadFile { file, path: path.to_owned(), size, identity, way }))
    }

    /// Returns an error unless the path is a regular file or does not exist.
    fn check_may_append(&self, path: &Path) -> Result<(), DiskError> {
        match self.kind(path) {
            Ok(PathKind::File) => Ok(()),
            Ok(PathKind::Directory) => Err(DiskError::new(path, None, DiskErrorKind::IsADirectory)),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Disk for RealDisk {
    fn kind(&self, path: &Path) -> Result<PathKind, DiskError> {
        let metadata = fs::metadata(path).map_err(|error| DiskError::from_io(path, None, &error))?;
        kind_of(&metadata).ok_or_else(|| DiskError::new(path, None, DiskErrorKind::NotAFile))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError> {
        self.open_by(path, ReadWay::best())
    }

    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError> {
        let fail = |error: io::Error| DiskError::from_io(path, None, &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let is_link = entry.file_type().map_err(fail)?.is_symlink();
            // Dangling links and sockets are not our files; a link to a directory may lead a walk into a cycle.
            if let Ok(metadata) = fs::metadata(entry.path())
                && let Some(kind) = kind_of(&metadata)
                && !(is_link && kind == PathKind::Directory)
            {
                found.push((entry.path(), kind));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        let missing: Vec<&Path> = path.ancestors().take_while(|path| !is_directory(path)).collect();
        for path in missing.into_iter().rev() {
            let made = fs::create_dir(path).or_else(|error| match error.kind() {
                // Another process may have created it at the same time.
                _ if is_directory(path) => Ok(()),
                io::ErrorKind::AlreadyExists => Err(io::Error::from(io::ErrorKind::NotADirectory)),
                _ => Err(error),
            });
            made.and_then(|()| sync_directory_of(path)).map_err(|error| DiskError::from_io(path, None, &error))?;
        }
        Ok(())
    }

    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let temporary = path.with_file_name(name);
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            fs::rename(&temporary, path)?;
            sync_directory_of(path)
        };
        write().map_err(|error| {
            // Best effort: the next attempt replaces the file in any case.
            let _ = fs::remove_file(&temporary);
            DiskError::from_io(path, None, &error)
        })
    }

    fn append_file(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError> {
        self.check_may_append(path)?;
        let open = || -> io::Result<(File, Metadata)> {
            let file = OpenOptions::new().append(true).create(true).open(path)?;
            let metadata = file.metadata()?;
            sync_directory_of(path)?;
            Ok((file, metadata))
        };
        let (file, metadata) = open().map_err(|error| DiskError::from_io(path, None, &error))?;
        let (size, identity) = (metadata.len(), Identity::of(&metadata));
        Ok(Box::new(RealAppendFile { file, path: path.to_owned(), size, identity, is_poisoned: false }))
    }

    fn fixed_file(&self, path: &Path, size: u64) -> Result<Box<dyn FixedFile>, DiskError> {
        self.check_may_append(path)?;
        let open = || -> io::Result<(File, Metadata)> {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            if file.metadata()?.len() < size {
                file.set_len(size)?;
            }
            file.sync_all()?;
            sync_directory_of(path)?;
            let metadata = file.metadata()?;
            Ok((file, metadata))
        };
        let (file, metadata) = open().map_err(|error| DiskError::from_io(path, None, &error))?;
        let (file, size, identity) = (Arc::new(file), metadata.len(), Identity::of(&metadata));
        Ok(Box::new(RealReadFile { file, path: path.to_owned(), size, identity, way: ReadWay::best() }))
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        fs::remove_file(path).map_err(|error| DiskError::from_io(path, None, &error))
    }

    fn truncate_file(&self, path: &Path, size: u64) -> Result<(), DiskError> {
        if self.kind(path)? == PathKind::Directory {
            return Err(DiskError::new(path, None, DiskErrorKind::IsADirectory));
        }
        let fail = |error: io::Error| DiskError::from_io(path, Some(size), &error);
        let file = OpenOptions::new().write(true).open(path).map_err(fail)?;
        let missing = size.saturating_sub(file.metadata().map_err(fail)?.len());
        if missing > 0 {
            return Err(DiskError::new(path, Some(size), DiskErrorKind::UnexpectedEnd { missing }));
        }
        file.set_len(size).and_then(|()| file.sync_all()).map_err(fail)
    }

    fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        if self.kind(path)? == PathKind::File {
            return Err(DiskError::new(path, None, DiskErrorKind::NotADirectory));
        }
        sync_directory(path).map_err(|error| DiskError::from_io(path, None, &error))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        self.check_may_append(path)?;
        let fail = |error: io::Error| DiskError::from_io(path, None, &error);
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(fail)?;
        let locked = || Err(DiskError::new(path, None, DiskErrorKind::Locked));
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return locked(),
            Err(TryLockError::Error(error)) => return Err(fail(error)),
        }
        if sys::lock_records(&file).map_err(fail)? { Ok(Box::new(RealLock(file))) } else { locked() }
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        sys::free_bytes(path).map_err(|error| DiskError::from_io(path, None, &error))
    }
}

/// An open file with both locks. The kernel releases them when the last descriptor of this open file description is
/// closed, that is, on drop or when the process ends.
#[derive(Debug)]
struct RealLock(#[expect(dead_code, reason = "held for its drop")] File);

impl Lock for RealLock {}

/// Whether the path is a directory; the empty path is the current directory.
fn is_directory(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

fn kind_of(metadata: &Metadata) -> Option<PathKind> {
    match metadata.file_type() {
        kind if kind.is_file() => Some(PathKind::File),
        kind if kind.is_dir() => Some(PathKind::Directory),
        _ => None,
    }
}

/// Syncs the parent directory: a new name is durable only once its directory is.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    OpenOptions::new().read(true).open(path)?.sync_all()
}

/// Identifies a file independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Identity {
        Identity { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Whether the path names this file.
    fn is_at(self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|metadata| Identity::of(&metadata) == self)
    }
}

#[derive(Debug)]
struct RealReadFile {
    file: Arc<File>,
    path: PathBuf,
    size: u64,
    identity: Identity,
    way: ReadWay,
}

impl RealReadFile {
    fn check_end(&self, offset: u64, size: usize) -> Result<(), DiskError> {
        let end = offset.saturating_add(size as u64);
        if end > self.size {
            let kind = DiskErrorKind::UnexpectedEnd { missing: end - self.size };
            return Err(DiskError::new(&self.path, Some(offset), kind));
        }
        Ok(())
    }
}

impl ReadFile for RealReadFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn is_named(&self) -> bool {
        self.identity.is_at(&self.path)
    }

    fn modified_seconds(&self) -> Option<i64> {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().ok().map(|metadata| metadata.mtime())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.check_end(offset, buffer.len())?;
        many::fill(&self.file, offset, buffer).map_err(|failure| failure.at(&self.path, offset))
    }

    fn read_many(&self, reads: &mut [ReadRequest<'_>]) -> Result<(), DiskError> {
        reads.iter().try_for_each(|read| self.check_end(read.offset, read.buffer.len()))?;
        many::fill_many(&self.file, reads, self.way)
            .map_err(|(index, failure)| failure.at(&self.path, reads.get(index).map_or(0, |read| read.offset)))
    }

    fn read_cached(&self, offset: u64, buffer: &mut [u8]) -> bool {
        sys::read_cached(&self.file, offset, buffer)
    }

    fn prefetch(&self, offset: u64, size: u64) {
        sys::prefetch(&self.file, offset, size);
    }
}

/// A file of fixed size is the reader of it, with which it is also written.
impl FixedFile for RealReadFile {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.check_end(offset, bytes.len())?;
        self.file.write_all_at(bytes, offset).map_err(|error| DiskError::from_io(&self.path, Some(offset), &error))
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.file.sync_all().map_err(|error| DiskError::from_io(&self.path, None, &error))
    }
}

#[derive(Debug)]
struct RealAppendFile {
    file: File,
    path: PathBuf,
    size: u64,
    identity: Identity,
    is_poisoned: bool,
}

impl RealAppendFile {
    fn attempt(&mut self, action: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), DiskError> {
        if self.is_poisoned {
            return Err(DiskError::new(&self.path, Some(self.size), DiskErrorKind::Poisoned));
        }
        action(&mut self.file).map_err(|error| {
            self.is_poisoned = true;
            DiskError::from_io(&self.path, Some(self.size), &error)
        })
    }
}

impl AppendFile for RealAppendFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn is_named(&self) -> bool {
        self.identity.is_at(&self.path)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.attempt(|file| file.write_all(bytes))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn write_back(&mut self) {
        sys::write_back(&self.file);
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.attempt(|file| file.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file on which every read and write fails with EIO: no process has memory mapped at address 0.
    const BROKEN: &str = "/proc/self/mem";

    const ANY: Identity = Identity { device: 0, inode: 0 };

    #[test]
    fn every_operation_reports_path_and_offset_of_a_failing_device() {
        for &way in ReadWay::available() {
            let file = Arc::new(OpenOptions::new().read(true).open(BROKEN).unwrap());
            let file = RealReadFile { file, path: BROKEN.into(), size: 100, identity: ANY, way };
            let mut buffers = [[0; 2]; 3];
            let reads = |buffers: &mut [[u8; 2]]| {
                let mut reads: Vec<ReadRequest<'_>> =
                    buffers.iter_mut().map(|buffer| ReadRequest { offset: 7, buffer }).collect();
                file.read_many(&mut reads).unwrap_err()
            };
            for error in [file.read_at(7, &mut [0; 2]).unwrap_err(), reads(&mut buffers), reads(&mut buffers[..1])] {
                let expected = DiskError { path: BROKEN.into(), offset: Some(7), kind: DiskErrorKind::Io };
                assert_eq!(error, expected, "{way:?}");
            }
        }
    }

    #[test]
    fn cached_bytes_are_those_of_the_file() {
        let path = std::env::temp_dir().join(format!("lydian-disk-cached-{}", std::process::id()));
        let bytes: Vec<u8> = (0..100_000_u32).map(|at| at.to_le_bytes()[at as usize % 3]).collect();
        RealDisk.write_whole(&path, &bytes).unwrap();
        let file = RealDisk.open(&path).unwrap();
        for (offset, size) in [(0, 10), (4_090, 5_000), (99_990, 10), (0, 100_000)] {
            let mut read = vec![0; size];
            file.read_at(offset as u64, &mut read).unwrap();
            // The page cache has what was read, unless memory is short.
            let mut cached = vec![0; size];
            if file.read_cached(offset as u64, &mut cached) {
                assert_eq!(cached, bytes[offset..offset + size]);
            }
            assert_eq!(read, bytes[offset..offset + size]);
        }
        assert!(!file.read_cached(99_990, &mut [0; 11]) && !file.read_cached(u64::MAX, &mut [0]));
        fs::remove_file(&path).unwrap();
        let broken = Arc::new(OpenOptions::new().read(true).open(BROKEN).unwrap());
        let way = ReadWay::Plain;
        let broken = RealReadFile { file: broken, path: BROKEN.into(), size: 100, identity: ANY, way };
        assert!(!broken.read_cached(7, &mut [0; 2]));
    }

    /// Regression: another program truncated a file after it was opened, and the reads waited for its bytes forever.
    #[test]
    fn a_file_that_became_shorter_ends_early_by_every_way() {
        for &way in ReadWay::available() {
            let file = Arc::new(OpenOptions::new().read(true).open("/proc/self/cmdline").unwrap());
            let file = RealReadFile { file, path: "cut".into(), size: 1 << 40, identity: ANY, way };
            let mut buffers = [[0; 1], [0; 1]];
            let [first, second] = &mut buffers;
            let mut reads = [ReadRequest { offset: 0, buffer: first }, ReadRequest { offset: 1 << 30, buffer: second }];
            let error = file.read_many(&mut reads).unwrap_err();
            let kind = DiskErrorKind::UnexpectedEnd { missing: 1 };
            assert_eq!(error, DiskError { path: "cut".into(), offset: Some(1 << 30), kind }, "{way:?}");
        }
    }

    fn check_poisoned(
        path: &str,
        kind: &DiskErrorKind,
        action: impl FnOnce(&mut RealAppendFile) -> Result<(), DiskError>,
    ) {
        let file = OpenOptions::new().write(true).open(path).unwrap();
        let mut writer = RealAppendFile { file, path: path.into(), size: 9, identity: ANY, is_poisoned: false };
        let error = action(&mut writer).unwrap_err();
        assert_eq!((&error.kind, error.offset), (kind, Some(9)), "{error}");
        assert_eq!(writer.write(b"x").unwrap_err().kind, DiskErrorKind::Poisoned);
        assert_eq!(writer.sync().unwrap_err().kind, DiskErrorKind::Poisoned);
        assert_eq!(writer.size(), 9);
    }

    /// Regression: a write that failed partway was followed by one that succeeded, which left an undetected hole in the
    /// file.
    ///
    /// checklist: 93
    #[test]
    fn a_failed_write_or_sync_poisons_the_writer() {
        check_poisoned("/dev/full", &DiskErrorKind::NoSpace, |writer| writer.write(b"x"));
        check_poisoned(BROKEN, &DiskErrorKind::Io, |writer| writer.write(b"x"));
        // A device without a backing disk cannot be synced.
        let no_sync = DiskErrorKind::Other { reason: io::Error::from_raw_os_error(libc::EINVAL).to_string() };
        check_poisoned("/dev/full", &no_sync, AppendFile::sync);
    }
}
