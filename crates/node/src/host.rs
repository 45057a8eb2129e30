//! What the host is: home, working directory, cores, terminal. Output: plain values, so that settings can be resolved against any host.

use std::env;
use std::path::{Path, PathBuf};
use std::thread;

/// A machine and a process on it.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) home: Option<PathBuf>,
    /// The working directory.
    pub(crate) directory: PathBuf,
    pub(crate) cores: usize,
}

impl Host {
    pub(crate) fn this() -> Host {
        Host {
            home: env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            directory: env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            cores: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Without "." parts, so that a path is written in one way.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.directory.join(path).components().collect()
    }

    pub(crate) fn default_datadir(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(".lydian"))
    }
}
