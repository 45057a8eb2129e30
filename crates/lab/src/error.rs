//! What can go wrong in the lab: wrong use, and files.

use lydian_disk::DiskError;
use std::fmt;

#[derive(Debug)]
pub enum LabError {
    /// The command asks for something that cannot be.
    Usage(String),
    /// A file cannot be read or written.
    Disk(DiskError),
}

impl From<DiskError> for LabError {
    fn from(error: DiskError) -> LabError {
        LabError::Disk(error)
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Usage(text) => f.write_str(text),
            LabError::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LabError::Usage(_) => None,
            LabError::Disk(error) => Some(error),
        }
    }
}
