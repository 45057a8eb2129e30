//! The file `fee_estimates.dat`, in Core's format.
//!
//! Input: a path and the time. Output: an estimator and what to log about the file; or the file, replaced atomically.
//! Invariants: a file that cannot be read is no error of the node, which begins without estimates, as Core does. A file
//! of a newer version is kept as `fee_estimates.dat.bak` before it is replaced, which Core does not do. Memory: the
//! file, at most [`FILE_SIZE_MAX`].

use crate::codec::CodecError;
use crate::estimator::Estimator;
use crate::limits::FILE_SIZE_MAX;
use lydian_disk::{Disk, DiskError, OwnDir, OwnFile, Proof};
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

/// What became of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loaded {
    Read,
    /// It does not exist, or cannot be opened.
    Missing,
    TooOld {
        hours: i64,
    },
    Unreadable(CodecError),
    Disk(DiskError),
}

impl Loaded {
    /// Core's log lines, and whether they are warnings.
    pub fn log_lines(&self, path: &Path) -> (bool, Vec<String>) {
        let path = path.display();
        let unreadable = |reason: String| {
            let first = format!("Unable to read policy estimator data (non-fatal): {reason}");
            (true, vec![first, format!("Failed to read fee estimates from {path}. Continue anyway.")])
        };
        match self {
            Loaded::Read => (false, Vec::new()),
            Loaded::Missing => (false, vec![format!("{path} is not found. Continue anyway.")]),
            Loaded::TooOld { hours } => {
                let line = format!(
                    "Fee estimation file {path} too old (age={hours} > {FILE_AGE_HOURS_MAX} hours) and will not be \
                     used to avoid serving stale estimates."
                );
                (true, vec![line])
            }
            Loaded::Unreadable(error @ CodecError::OldVersion(_)) => (true, vec![error.to_string()]),
            Loaded::Unreadable(error) => unreadable(error.to_string()),
            Loaded::Disk(error) => unreadable(error.to_string()),
        }
    }
}

fn backup_of(path: &Path) -> PathBuf {
    path.with_file_name(BACKUP_FILE)
}

/// Reads the file, unless it is too old: `now` in seconds since 1970, by the clock that dates files. Without a file
/// that can be read, the estimator is a new one.
pub fn load(disk: &dyn Disk, path: &Path, now: i64, accepts_stale: bool) -> (Estimator, Loaded) {
    let Ok(file) = disk.open(path) else { return (Estimator::default(), Loaded::Missing) };
    let hours = file.modified_seconds().map_or(0, |modified| now.saturating_sub(modified) / 3_600);
    if hours > FILE_AGE_HOURS_MAX && !accepts_stale {
        return (Estimator::default(), Loaded::TooOld { hours });
    }
    let size = file.size().min(FILE_SIZE_MAX);
    let mut bytes = vec![0; lydian_stdx::saturating_usize(size)];
    if let Err(error) = file.read_at(0, &mut bytes) {
        return (Estimator::default(), Loaded::Disk(error));
    }
    match Estimator::decode(&bytes) {
        Ok(estimator) => (estimator, Loaded::Read),
        Err(error) => {
            if matches!(error, CodecError::NewVersion(_)) && size == file.size() {
                // If this fails, the node goes on all the same.
                let _ = OwnDir::of(path, FEE_ESTIMATES_FILES).replace(disk, &backup_of(path), &bytes);
            }
            (Estimator::default(), Loaded::Unreadable(error))
        }
    }
}

/// Replaces the file. If this fails, the old file stays.
pub fn save(disk: &dyn Disk, path: &Path, estimator: &Estimator) -> Result<(), DiskError> {
    OwnDir::of(path, FEE_ESTIMATES_FILES).replace(disk, path, &estimator.encode())
}
