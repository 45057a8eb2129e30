//! Errors of the lab: wrong usage, files, other programs.

use crate::difference::Difference;
use lydian_chains::ChainsError;
use lydian_disk::DiskError;
use lydian_report::ReportError;
use lydian_report::read::ResultsFault;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub enum LabError {
    /// The command line asks for something impossible.
    Usage(String),
    /// A file cannot be read or written.
    Disk(DiskError),
    /// The same, for the files of a running node.
    Io { action: &'static str, path: PathBuf, reason: String },
    /// Another program cannot be started, fails, or gives an unexpected answer.
    Program { program: String, reason: String },
    /// A node that could be measured is not installed; the text names the command that installs it.
    NotInstalled(String),
    /// A results file that cannot be used.
    Results { path: PathBuf, fault: ResultsFault },
    /// A comparison cannot continue earlier results.
    Resume(Difference),
    /// Another lab is measuring on this machine.
    Busy { lock: PathBuf },
}

impl LabError {
    pub(crate) fn io(action: &'static str, path: &Path, error: io::Error) -> LabError {
        LabError::Io { action, path: path.to_owned(), reason: error.to_string() }
    }

    pub(crate) fn program(program: impl Into<String>, reason: impl fmt::Display) -> LabError {
        LabError::Program { program: program.into(), reason: reason.to_string() }
    }
}

impl From<DiskError> for LabError {
    fn from(error: DiskError) -> LabError {
        LabError::Disk(error)
    }
}

impl From<ChainsError> for LabError {
    fn from(error: ChainsError) -> LabError {
        match error {
            ChainsError::Usage(text) => LabError::Usage(text),
            ChainsError::Disk(error) => LabError::Disk(error),
        }
    }
}

impl From<ReportError> for LabError {
    fn from(error: ReportError) -> LabError {
        match error {
            ReportError::Usage(text) => LabError::Usage(text),
            ReportError::Disk(error) => LabError::Disk(error),
            ReportError::Results { path, fault } => LabError::Results { path, fault },
        }
    }
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Usage(text) | LabError::NotInstalled(text) => f.write_str(text),
            LabError::Disk(error) => error.fmt(f),
            LabError::Io { action, path, reason } => write!(f, "cannot {action} {}: {reason}", path.display()),
            LabError::Program { program, reason } => write!(f, "{program}: {reason}"),
            LabError::Results { path, fault } => write!(f, "{}: {fault}", path.display()),
            LabError::Resume(difference) => difference.fmt(f),
            LabError::Busy { lock } => write!(
                f,
                "another lydian-lab is measuring on this machine (it holds {}); wait until it has ended",
                lock.display()
            ),
        }
    }
}

impl std::error::Error for LabError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LabError::Disk(error) => Some(error),
            LabError::Usage(_)
            | LabError::NotInstalled(_)
            | LabError::Io { .. }
            | LabError::Program { .. }
            | LabError::Results { .. }
            | LabError::Resume(_)
            | LabError::Busy { .. } => None,
        }
    }
}
