//! What can go wrong in the lab: wrong use, and files.

use std::fmt;
use std::path::PathBuf;

#[derive(Debug)]
pub enum LabError {
    /// The command asks for something that cannot be.
    Usage(String),
    /// A file cannot be read or written.
    Io { path: PathBuf, source: std::io::Error },
}

impl LabError {
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> LabError {
        let path = path.into();
        move |source| LabError::Io { path, source }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Usage(text) => f.write_str(text),
            LabError::Io { path, source } => write!(f, "{}: {source}", path.display()),
        }
    }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LabError::Usage(_) => None,
            LabError::Io { source, .. } => Some(source),
        }
    }
}
