//! Errors of reading results and of making something of them.

use crate::read::ResultsFault;
use lydian_disk::DiskError;
use std::fmt;
use std::path::PathBuf;

#[derive(Debug)]
pub enum ReportError {
    /// The request is impossible, or a file is not what it should be.
    Usage(String),
    /// A file cannot be read or written.
    Disk(DiskError),
    /// A results file that cannot be used.
    Results { path: PathBuf, fault: ResultsFault },
}

impl From<DiskError> for ReportError {
    fn from(error: DiskError) -> ReportError {
        ReportError::Disk(error)
    }
}

impl fmt::Display for ReportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReportError::Usage(text) => f.write_str(text),
            ReportError::Disk(error) => error.fmt(f),
            ReportError::Results { path, fault } => write!(f, "{}: {fault}", path.display()),
        }
    }
}

impl std::error::Error for ReportError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReportError::Disk(error) => Some(error),
            ReportError::Usage(_) | ReportError::Results { .. } => None,
        }
    }
}
