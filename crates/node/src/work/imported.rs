//! Paths of blocks that were imported in place, for `-reindex`, which discards the index and with it the positions of
//! blocks in files that are not ours. Input and output: `imported` in the blocks directory, one absolute path per line.

use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof, read_whole};
use std::path::{Path, PathBuf};

use crate::limits::SOURCES_SIZE_MAX;

pub(crate) const FILE: &str = "imported";

/// The file, in `blocks`.
pub(crate) const IMPORTED_FILES: &[OwnFile] = &[OwnFile { name: FILE, proof: Proof::Directory }];

fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// The paths, in the order in which they were imported.
pub(super) fn read(disk: &dyn Disk, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
    match read_whole(disk, &path(directory), SOURCES_SIZE_MAX) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).lines().map(PathBuf::from).collect()),
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Adds a path, unless it is listed already. It must be listed before its blocks are added to the index.
pub(super) fn add(disk: &dyn Disk, directory: &Path, source: &Path) -> Result<(), DiskError> {
    let mut sources = read(disk, directory)?;
    if sources.iter().any(|known| known == source) {
        return Ok(());
    }
    sources.push(source.to_owned());
    let lines: Vec<String> = sources.iter().map(|source| format!("{}\n", source.display())).collect();
    OwnDir::new(directory, IMPORTED_FILES).replace(disk, &path(directory), lines.concat().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::SimDisk;

    /// limit: SOURCES_SIZE_MAX at
    /// limit: SOURCES_SIZE_MAX above
    #[test]
    fn sources_are_kept_once_and_in_order() {
        let (disk, directory) = (SimDisk::new(0), Path::new("/"));
        assert_eq!(read(&disk, directory).unwrap(), [""; 0].map(PathBuf::from));
        for source in ["/b c", "/a", "/b c"] {
            add(&disk, directory, Path::new(source)).unwrap();
        }
        assert_eq!(read(&disk, directory).unwrap(), ["/b c", "/a"].map(PathBuf::from));
        let size = usize::try_from(SOURCES_SIZE_MAX).unwrap();
        disk.write_whole(&path(directory), &vec![b'a'; size]).unwrap();
        assert_eq!(read(&disk, directory).unwrap().len(), 1);
        disk.write_whole(&path(directory), &vec![b'a'; size + 1]).unwrap();
        assert!(read(&disk, directory).is_err());
    }
}
