//! A folder for what a test writes. Input: a name. Output: a path where nothing is, of this process alone; what was written
//! there is removed when the test ends well, and kept to look at when it fails.

use std::path::{Path, PathBuf};

/// The folder. It is not made, only kept free: whoever writes makes it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Removes what an earlier process of the same number left there.
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
