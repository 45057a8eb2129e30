//! What a report about a machine asks of its disks: the holder of a lock, how long a sync and a read from the device
//! take.
//!
//! Input: paths. Output: a holder, or an action that the caller times, since nothing here reads a clock. Invariants: no
//! lock is taken, no name appears in any directory, and no file that exists is changed.

use crate::sys;
use crate::{DiskError, DiskErrorKind};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The holder of a lock file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No process holds it.
    Free,
    /// A process of this number.
    Process(u32),
    /// A process that the system does not name: the lock belongs to an open file, as Lydian's.
    Unnamed,
}

/// Asks which process holds a lock file, without taking the lock. [`Holder::Free`] if there is no such file.
pub fn lock_holder(path: &Path) -> Result<Holder, DiskError> {
    let asked = OpenOptions::new().read(true).open(path).and_then(|file| sys::record_lock(&file));
    match asked {
        Ok(None) => Ok(Holder::Free),
        Ok(Some(process)) => Ok(u32::try_from(process).map_or(Holder::Unnamed, Holder::Process)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Holder::Free),
        Err(error) => Err(DiskError::from_io(path, None, &error)),
    }
}

/// A file without a name in a directory; it is gone when this value is dropped.
#[derive(Debug)]
pub struct SyncProbe {
    file: File,
    path: PathBuf,
}

impl SyncProbe {
    /// Fails if the file system has no files without names.
    pub fn new(directory: &Path) -> Result<SyncProbe, DiskError> {
        let opened =
            OpenOptions::new().read(true).write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(directory);
        let file = opened.map_err(|error| DiskError::from_io(directory, None, &error))?;
        Ok(SyncProbe { file, path: directory.to_owned() })
    }

    /// Writes the bytes at an offset and returns when the device reports that it has them.
    pub fn write_and_sync(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        let written = self.file.write_all_at(bytes, offset).and_then(|()| self.file.sync_data());
        written.map_err(|error| DiskError::from_io(&self.path, Some(offset), &error))
    }
}

/// Bytes of one direct read: a multiple of the sector of every disk.
pub const DIRECT_READ_BYTES: usize = 4_096;

/// A file that is read from its device, past the page cache.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    path: PathBuf,
    /// Twice the bytes, so that an aligned part has all of them.
    buffer: Vec<u8>,
}

impl DirectFile {
    /// Fails if the file system always uses the page cache.
    pub fn open(path: &Path) -> Result<DirectFile, DiskError> {
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT | libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|error| DiskError::from_io(path, None, &error))?;
        Ok(DirectFile { file, path: path.to_owned(), buffer: vec![0; 2 * DIRECT_READ_BYTES] })
    }

    /// Reads the bytes from `page * DIRECT_READ_BYTES` on; the file may end in them.
    pub fn read(&mut self, page: u64) -> Result<(), DiskError> {
        let offset = page.saturating_mul(DIRECT_READ_BYTES as u64);
        let start = self.buffer.as_ptr().align_offset(DIRECT_READ_BYTES);
        let Some(aligned) = self.buffer.get_mut(start..start.saturating_add(DIRECT_READ_BYTES)) else {
            let reason = "memory cannot be aligned".to_owned();
            return Err(DiskError::new(&self.path, Some(offset), DiskErrorKind::Other { reason }));
        };
        match self.file.read_at(aligned, offset) {
            Ok(_) => Ok(()),
            Err(error) => Err(DiskError::from_io(&self.path, Some(offset), &error)),
        }
    }
}

/// Why this process cannot use io_uring; `None` if it can.
pub fn ring_refusal() -> Option<String> {
    sys::Ring::new().err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, RealDisk};

    #[test]
    fn a_holder_is_found_without_the_lock() {
        let path = std::env::temp_dir().join(format!("lydian-disk-holder-{}", std::process::id()));
        assert_eq!(lock_holder(&path), Ok(Holder::Free), "no file");
        let ours = RealDisk.lock(&path).unwrap();
        assert_eq!(lock_holder(&path), Ok(Holder::Unnamed));
        drop(ours);
        assert_eq!(lock_holder(&path), Ok(Holder::Free));
        assert!(RealDisk.lock(&path).is_ok(), "asking takes no lock");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn probes_leave_nothing_behind() {
        let directory = std::env::temp_dir().join(format!("lydian-disk-probe-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        match SyncProbe::new(&directory) {
            Ok(probe) => probe.write_and_sync(0, &[1; 100]).unwrap(),
            Err(error) => assert!(matches!(error.kind, DiskErrorKind::Other { .. }), "{error}"),
        }
        assert_eq!(RealDisk.list(&directory).unwrap(), []);
        let path = directory.join("file");
        RealDisk.write_whole(&path, &[7; 10_000]).unwrap();
        if let Ok(mut file) = DirectFile::open(&path) {
            (0..3).for_each(|page| file.read(page).unwrap());
        }
        assert!(DirectFile::open(&directory.join("none")).is_err());
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
