//! [`DiskError`]: the kind of failure, the file, and the offset in it. Its text is one sentence.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// An operating error: the disk, the file system or a damaged file. Never a verdict on a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskError {
    pub path: PathBuf,
    /// Byte offset in the file on disk, if the failure has one.
    pub offset: Option<u64>,
    pub kind: DiskErrorKind,
}

/// The kinds of [`DiskError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskErrorKind {
    NotFound,
    PermissionDenied,
    /// The path is a directory where a file is expected.
    IsADirectory,
    /// The path is a file where a directory is expected.
    NotADirectory,
    /// A pipe, a socket or a device.
    NotAFile,
    /// The file ends before the requested bytes.
    UnexpectedEnd {
        missing: u64,
    },
    /// A `.zst` file whose last frame ends too early.
    CompressedDataTruncated,
    /// A `.zst` file that is not zstd data, or is damaged; the reason is zstd's text.
    CompressedDataInvalid {
        reason: String,
    },
    /// The content is larger than the maximum that is read into memory at once.
    TooLarge {
        size_max: u64,
    },
    /// The file system is full, or the owner's quota is exhausted.
    NoSpace,
    /// The device reports that a read, a write or a sync failed (EIO).
    Io,
    /// Another process holds this lock file.
    Locked,
    /// An earlier write or sync of this writer failed.
    Poisoned,
    /// A change was requested, but nothing proves that the file is ours.
    NotOurs,
    /// Any other failure; the reason is the operating system's text.
    Other {
        reason: String,
    },
}

impl DiskError {
    pub(crate) fn new(path: &Path, offset: Option<u64>, kind: DiskErrorKind) -> DiskError {
        DiskError { path: path.to_owned(), offset, kind }
    }

    pub(crate) fn from_io(path: &Path, offset: Option<u64>, error: &io::Error) -> DiskError {
        let kind = match error.kind() {
            io::ErrorKind::NotFound => DiskErrorKind::NotFound,
            io::ErrorKind::PermissionDenied => DiskErrorKind::PermissionDenied,
            io::ErrorKind::IsADirectory => DiskErrorKind::IsADirectory,
            io::ErrorKind::NotADirectory => DiskErrorKind::NotADirectory,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskErrorKind::NoSpace,
            _ if error.raw_os_error() == Some(libc::EIO) => DiskErrorKind::Io,
            _ => DiskErrorKind::Other { reason: error.to_string() },
        };
        DiskError::new(path, offset, kind)
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, ":{offset}")?;
        }
        f.write_str(": ")?;
        match &self.kind {
            DiskErrorKind::NotFound => f.write_str("there is no such file or directory"),
            DiskErrorKind::PermissionDenied => f.write_str("permission denied"),
            DiskErrorKind::IsADirectory => f.write_str("this is a directory, not a file"),
            DiskErrorKind::NotADirectory => f.write_str("a part of this path is a file, not a directory"),
            DiskErrorKind::NotAFile => f.write_str("this is neither a file nor a directory"),
            DiskErrorKind::UnexpectedEnd { missing } => write!(f, "the file ends {missing} bytes too early"),
            DiskErrorKind::CompressedDataTruncated => f.write_str("the zstd data ends in the middle of a frame"),
            DiskErrorKind::CompressedDataInvalid { reason } => write!(f, "this is not valid zstd data ({reason})"),
            DiskErrorKind::TooLarge { size_max } => {
                write!(f, "the content has more than {size_max} bytes, the maximum that is read into memory at once")
            }
            DiskErrorKind::NoSpace => f.write_str("no space is left on the file system"),
            DiskErrorKind::Io => f.write_str("the device reports an input/output error"),
            DiskErrorKind::Locked => f.write_str("another process holds this lock"),
            DiskErrorKind::Poisoned => f.write_str("an earlier write to this file failed; open it again"),
            DiskErrorKind::NotOurs => f.write_str("this file is not one of Lydian's and was not changed"),
            DiskErrorKind::Other { reason } => f.write_str(reason),
        }
    }
}

impl std::error::Error for DiskError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: io::ErrorKind, text: &str) {
        assert_eq!(DiskError::from_io(Path::new("a/b"), None, &io::Error::from(kind)).to_string(), text);
    }

    #[test]
    fn each_error_is_one_sentence_with_its_path() {
        check(io::ErrorKind::NotFound, "a/b: there is no such file or directory");
        check(io::ErrorKind::PermissionDenied, "a/b: permission denied");
        check(io::ErrorKind::NotADirectory, "a/b: a part of this path is a file, not a directory");
        check(io::ErrorKind::IsADirectory, "a/b: this is a directory, not a file");
        check(io::ErrorKind::StorageFull, "a/b: no space is left on the file system");
        let error = DiskError::from_io(Path::new("a/b"), Some(9), &io::Error::from_raw_os_error(libc::EIO));
        assert_eq!(error.to_string(), "a/b:9: the device reports an input/output error");
        let error = DiskError::new(Path::new(".lock"), None, DiskErrorKind::Locked);
        assert_eq!(error.to_string(), ".lock: another process holds this lock");
        let error = DiskError::new(Path::new("f"), Some(7), DiskErrorKind::UnexpectedEnd { missing: 3 });
        assert_eq!(error.to_string(), "f:7: the file ends 3 bytes too early");
    }
}
