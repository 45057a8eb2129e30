//! The file `fee_estimates.dat`, in Core's format.
//!
//! Input: a path and the time. Output: an estimator and what to log about the file; or the file, replaced atomically.
//! Invariants: a file that cannot be read is no error of the node, which begins without estimates, as Core does. Unlike
//! in Core, nothing is lost: a file that cannot be decoded, such as one of a newer version, is kept as
//! `fee_estimates.dat.bak` before it is replaced; one that cannot be opened, read or kept is not replaced. Memory: the
//! file, at most [`FILE_SIZE_MAX`].

use crate::codec::CodecError;
use crate::estimator::Estimator;
use crate::limits::FILE_SIZE_MAX;
use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof};
use std::path::{Path, PathBuf};

/// The name of the file in the data directory of the chain.
pub const FEE_ESTIMATES_FILE: &str = "fee_estimates.dat";

const BACKUP_FILE: &str = "fee_estimates.dat.bak";

pub const FEE_ESTIMATES_FILES: &[OwnFile] = &[
    OwnFile { name: FEE_ESTIMATES_FILE, proof: Proof::Directory },
    OwnFile { name: BACKUP_FILE, proof: Proof::Directory },
];

/// An older file is not read: Core's `MAX_FILE_AGE`.
const FILE_AGE_HOURS_MAX: i64 = 60;

/// Result of [`load`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loaded {
    Read,
    Missing,
    TooOld {
        hours: i64,
    },
    /// It cannot be decoded; its bytes were kept under another name, or could not be.
    Undecodable {
        error: CodecError,
        kept: Result<(), DiskError>,
    },
    /// It exists, but cannot be opened.
    Unopened(DiskError),
    /// The disk failed.
    Unread(DiskError),
}

impl Loaded {
    /// Whether the file may be replaced: false if it may have something that is nowhere else.
    pub fn may_replace(&self) -> bool {
        match self {
            Loaded::Read | Loaded::Missing | Loaded::TooOld { .. } => true,
            Loaded::Undecodable { kept, .. } => kept.is_ok(),
            Loaded::Unopened(_) | Loaded::Unread(_) => false,
        }
    }

    /// Core's log lines, what becomes of a file that cannot be used, and whether they are warnings.
    pub fn log_lines(&self, path: &Path) -> (bool, Vec<String>) {
        let shown = path.display();
        let unreadable = |reason: String| {
            let first = format!("Unable to read policy estimator data (non-fatal): {reason}");
            vec![first, format!("Failed to read fee estimates from {shown}. Continue anyway.")]
        };
        let (is_warning, mut lines) = match self {
            Loaded::Read => (false, Vec::new()),
            Loaded::Missing => (false, vec![format!("{shown} is not found. Continue anyway.")]),
            Loaded::TooOld { hours } => {
                let line = format!(
                    "Fee estimation file {shown} too old (age={hours} > {FILE_AGE_HOURS_MAX} hours) and will not be \
                     used to avoid serving stale estimates."
                );
                (true, vec![line])
            }
            Loaded::Undecodable { error: error @ CodecError::OldVersion(_), .. } => (true, vec![error.to_string()]),
            Loaded::Undecodable { error, .. } => (true, unreadable(error.to_string())),
            Loaded::Unread(error) => (true, unreadable(error.to_string())),
            Loaded::Unopened(error) => (true, vec![format!("Cannot open fee estimates: {error}. Continue anyway.")]),
        };
        match self {
            Loaded::Undecodable { kept: Ok(()), .. } => {
                lines.push(format!("Kept the contents of {shown} as {}.", backup_of(path).display()));
            }
            Loaded::Undecodable { kept: Err(error), .. } => {
                lines.push(format!("Cannot keep the contents of {shown} as {BACKUP_FILE}: {error}"));
            }
            _ => {}
        }
        if !self.may_replace() {
            lines.push(format!("Leaving {shown} as it is: the estimates of this node are not saved."));
        }
        (is_warning, lines)
    }
}

fn backup_of(path: &Path) -> PathBuf {
    path.with_file_name(BACKUP_FILE)
}

/// Reads the file, unless it is too old: `now` in seconds since 1970, by the clock that dates files. Without a file
/// that can be read, the estimator is a new one.
pub fn load(disk: &dyn Disk, path: &Path, now: i64, accepts_stale: bool) -> (Estimator, Loaded) {
    let file = match disk.open(path) {
        Ok(file) => file,
        Err(error) if error.kind == DiskErrorKind::NotFound => return (Estimator::default(), Loaded::Missing),
        Err(error) => return (Estimator::default(), Loaded::Unopened(error)),
    };
    let hours = file.modified_seconds().map_or(0, |modified| now.saturating_sub(modified) / 3_600);
    if hours > FILE_AGE_HOURS_MAX && !accepts_stale {
        return (Estimator::default(), Loaded::TooOld { hours });
    }
    let size = file.size().min(FILE_SIZE_MAX);
    let mut bytes = vec![0; lydian_stdx::saturating_usize(size)];
    if let Err(error) = file.read_at(0, &mut bytes) {
        return (Estimator::default(), Loaded::Unread(error));
    }
    match Estimator::decode(&bytes) {
        Ok(estimator) => (estimator, Loaded::Read),
        Err(error) => {
            let kept = if size == file.size() { keep(disk, path, &bytes) } else { Err(too_large(path)) };
            (Estimator::default(), Loaded::Undecodable { error, kept })
        }
    }
}

fn keep(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
    OwnDir::of(path, FEE_ESTIMATES_FILES).replace(disk, &backup_of(path), bytes)
}

fn too_large(path: &Path) -> DiskError {
    DiskError { path: path.to_owned(), offset: None, kind: DiskErrorKind::TooLarge { size_max: FILE_SIZE_MAX } }
}

/// Replaces the file. If this fails, the old file stays.
pub fn save(disk: &dyn Disk, path: &Path, estimator: &Estimator) -> Result<(), DiskError> {
    OwnDir::of(path, FEE_ESTIMATES_FILES).replace(disk, path, &estimator.encode())
}
