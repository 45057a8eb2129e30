//! Errors of making and reading chains: impossible settings, foreign files, disk errors.

use lydian_disk::DiskError;
use std::fmt;

#[derive(Debug)]
pub enum ChainsError {
    /// The settings or the files are not those of a possible chain.
    Usage(String),
    /// A file cannot be read or written.
    Disk(DiskError),
}

impl From<DiskError> for ChainsError {
    fn from(error: DiskError) -> ChainsError {
        ChainsError::Disk(error)
    }
}

impl fmt::Display for ChainsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChainsError::Usage(text) => f.write_str(text),
            ChainsError::Disk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChainsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ChainsError::Disk(error) => Some(error),
            ChainsError::Usage(_) => None,
        }
    }
}
