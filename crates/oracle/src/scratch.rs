//! A folder for files that a test writes.
//!
//! Input: a name. Output: a path unique to this process that does not exist yet. Its content is removed if the test
//! succeeds, and kept for inspection if it fails.

use std::path::{Path, PathBuf};

/// The path of the folder. The folder is not created here; the test creates it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Removes what an earlier process with the same id left behind.
    pub fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("lydian-test-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        Scratch(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Copies a folder with everything below it. What `to` had before is removed.
pub fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => drop(std::fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
