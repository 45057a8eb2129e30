//! [`RealDisk`]: the operating system's files. Input and output as in [`Disk`](crate::Disk).
//!
//! Cost: one system call a read (`pread`) or append; nothing is buffered here. Invariant: no file is opened before it is known to be a
//! regular one, so that a named pipe cannot hold the caller for ever.

use crate::{AppendFile, Disk, DiskError, DiskErrorKind, PathKind, ReadFile};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn kind(&self, path: &Path) -> Result<PathKind, DiskError> {
        let metadata = fs::metadata(path).map_err(|error| DiskError::from_io(path, None, &error))?;
        kind_of(&metadata).ok_or_else(|| DiskError::new(path, None, DiskErrorKind::NotAFile))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError> {
        if self.kind(path)? == PathKind::Directory {
            return Err(DiskError::new(path, None, DiskErrorKind::IsADirectory));
        }
        let open = || -> io::Result<(File, u64)> {
            let file = OpenOptions::new().read(true).open(path)?;
            let size = file.metadata()?.len();
            Ok((file, size))
        };
        let (file, size) = open().map_err(|error| DiskError::from_io(path, None, &error))?;
        Ok(Box::new(RealReadFile { file, path: path.to_owned(), size }))
    }

    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError> {
        let fail = |error: io::Error| DiskError::from_io(path, None, &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let is_link = entry.file_type().map_err(fail)?.is_symlink();
            // A link to nowhere and a socket are no files of ours; a link to a directory may lead a walk round and round.
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
        fs::create_dir_all(path).map_err(|error| DiskError::from_io(path, None, &error))
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
        write().map_err(|error| DiskError::from_io(path, None, &error))
    }

    fn append(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError> {
        let open = || -> io::Result<(File, u64)> {
            let file = OpenOptions::new().append(true).create(true).open(path)?;
            let size = file.metadata()?.len();
            sync_directory_of(path)?;
            Ok((file, size))
        };
        let (file, size) = open().map_err(|error| DiskError::from_io(path, None, &error))?;
        Ok(Box::new(RealAppendFile { file, path: path.to_owned(), size, is_poisoned: false }))
    }
}

fn kind_of(metadata: &Metadata) -> Option<PathKind> {
    match metadata.file_type() {
        kind if kind.is_file() => Some(PathKind::File),
        kind if kind.is_dir() => Some(PathKind::Directory),
        _ => None,
    }
}

/// A new name is durable only once its directory is.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    OpenOptions::new().read(true).open(parent)?.sync_all()
}

#[derive(Debug)]
struct RealReadFile {
    file: File,
    path: PathBuf,
    size: u64,
}

impl ReadFile for RealReadFile {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let end = offset.saturating_add(buffer.len() as u64);
        if end > self.size {
            let kind = DiskErrorKind::UnexpectedEnd { missing: end - self.size };
            return Err(DiskError::new(&self.path, Some(offset), kind));
        }
        self.file.read_exact_at(buffer, offset).map_err(|error| DiskError::from_io(&self.path, Some(offset), &error))
    }
}

#[derive(Debug)]
struct RealAppendFile {
    file: File,
    path: PathBuf,
    size: u64,
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

    fn write(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        self.attempt(|file| file.write_all(bytes))?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<(), DiskError> {
        self.attempt(|file| file.sync_all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The story: a write that failed half-way was followed by one that succeeded, and the file had a hole nobody knew of.
    #[test]
    fn a_failed_write_poisons_the_writer() {
        let path = Path::new("/dev/full");
        let file = OpenOptions::new().append(true).open(path).unwrap();
        let mut writer = RealAppendFile { file, path: path.to_owned(), size: 0, is_poisoned: false };
        let first = writer.write(b"x").unwrap_err();
        assert!(matches!(first.kind, DiskErrorKind::Other { .. }), "{first}");
        assert_eq!(writer.write(b"x").unwrap_err().kind, DiskErrorKind::Poisoned);
        assert_eq!(writer.sync().unwrap_err().kind, DiskErrorKind::Poisoned);
        assert_eq!(writer.size(), 0);
    }
}
