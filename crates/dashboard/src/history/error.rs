//! [`HistoryError`] and [`Remark`]: what went wrong with a history, in one sentence each.

use lydian_disk::{DiskError, NewerFormat};
use std::fmt;
use std::path::PathBuf;

/// Why there is no history, or no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryError {
    Disk(DiskError),
    /// The file is of a newer format.
    NewerFormat(NewerFormat),
    /// The file is whole, but of another version of the format.
    OtherVersion {
        path: PathBuf,
        version: String,
    },
    /// A query for a series that is not kept.
    UnknownSeries {
        name: String,
    },
    /// A query whose end is not after its start.
    Range,
}

impl From<DiskError> for HistoryError {
    fn from(error: DiskError) -> HistoryError {
        HistoryError::Disk(error)
    }
}

impl fmt::Display for HistoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistoryError::Disk(error) => error.fmt(f),
            HistoryError::NewerFormat(error) => error.fmt(f),
            HistoryError::OtherVersion { path, version } => write!(
                f,
                "{}: this is a history of format {version}, which this version of Lydian cannot read; move it away to begin a new one",
                path.display()
            ),
            HistoryError::UnknownSeries { name } => write!(f, "there is no series \"{name}\" in the history"),
            HistoryError::Range => f.write_str("the end of the time range must be after its start"),
        }
    }
}

impl std::error::Error for HistoryError {}

/// What was found and repaired when a history was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remark {
    /// The head is damaged, and with it the meaning of the numbers.
    BegunAnew { path: PathBuf },
    /// The file was shorter than it must be; what was cut off is lost.
    Cut { path: PathBuf, missing: u64 },
    /// Records that are damaged; they were removed.
    Damaged { path: PathBuf, records: u64, offset: u64 },
    /// There is no room for a series.
    Full { path: PathBuf, name: &'static str },
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Remark::BegunAnew { path } => {
                write!(f, "{}: the head of the history is damaged; a new history was begun", path.display())
            }
            Remark::Cut { path, missing } => {
                write!(f, "{}: the last {missing} bytes of the history are missing; the rest is kept", path.display())
            }
            Remark::Damaged { path, records, offset } => {
                let path = path.display();
                write!(f, "{path}: {records} damaged records of the history were removed, the first at offset {offset}")
            }
            Remark::Full { path, name } => {
                write!(f, "{}: the history has no room for the series {name}, which is not kept", path.display())
            }
        }
    }
}
