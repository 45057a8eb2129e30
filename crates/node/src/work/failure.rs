//! Why the node cannot go on: one sentence and an exit code. Never a verdict on a block.

use crate::exit;
use lydian_chain::ReadError;
use lydian_disk::DiskErrorKind;
use lydian_engine::{EngineError, Inconsistency};
use std::{fmt, io};

#[derive(Debug)]
pub(super) enum Failure {
    Engine(EngineError),
    Files(ReadError),
    /// `-checkblocks` found something.
    Inconsistent(Inconsistency),
    Thread(io::Error),
}

impl Failure {
    pub(super) fn code(&self) -> u8 {
        match self {
            // The path of the command line makes no sense.
            Failure::Files(ReadError::NoBlockFiles { .. }) => exit::SETTINGS,
            Failure::Files(ReadError::Disk(error)) if error.kind == DiskErrorKind::NotFound => exit::SETTINGS,
            Failure::Engine(_) | Failure::Files(_) | Failure::Inconsistent(_) | Failure::Thread(_) => exit::DISK,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Engine(error) => write!(f, "{error}; what was validated before is kept, start again to go on"),
            Failure::Files(error) => error.fmt(f),
            Failure::Inconsistent(error) => write!(f, "Corrupted block database detected: {error}"),
            Failure::Thread(error) => write!(f, "a thread could not be started: {error}"),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        Failure::Engine(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        Failure::Files(error)
    }
}

impl From<Inconsistency> for Failure {
    fn from(error: Inconsistency) -> Failure {
        Failure::Inconsistent(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Thread(error)
    }
}
