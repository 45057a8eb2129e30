//! Only one lab measures on a machine at a time.
//!
//! Input: the cache folder. Output: a lock that is held until it is dropped or the process exits, for whatever reason.
//! Must never: wait.

use super::system::create_dir;
use crate::error::LabError;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

const FILE: &str = "lab.lock";

#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Fails with [`LabError::Busy`] while another process holds the lock.
pub fn lock(cache: &Path) -> Result<Lock, LabError> {
    create_dir(cache)?;
    let path = cache.join(FILE);
    let open = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = open.map_err(|error| LabError::io("open", &path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(LabError::Busy { lock: path }),
        Err(TryLockError::Error(error)) => Err(LabError::io("lock", &path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_until_the_first_has_ended() {
        let folder = std::env::temp_dir().join(format!("lydian-lab-lock-{}", std::process::id()));
        let first = lock(&folder).unwrap();
        let error = lock(&folder).unwrap_err();
        assert!(matches!(error, LabError::Busy { .. }) && error.to_string().contains("another lydian-lab"), "{error}");
        drop(first);
        lock(&folder).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
