//! Changes to existing files, limited to files that are ours.
//!
//! Input: a directory that is known to be ours, a table of the names of our files in it, a path. Output: the file is
//! removed, shortened, replaced or opened for appending or overwriting; or the call fails with
//! [`DiskErrorKind::NotOurs`] and changes nothing.
//!
//! Every crate has a table of the files that it creates ([`OwnFile`]), with the proof that a file with such a name is
//! ours; `docs/formats/files.md` lists all tables. Invariant: outside this crate, program code changes files only
//! through [`OwnDir`] (`xtask tidy` checks it), so that a file of another program is never changed, whatever directory
//! the user names. Cost: one comparison of the name.

use crate::{AppendFile, Disk, DiskError, DiskErrorKind, FixedFile};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A kind of file that we create, and may therefore change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// The name. It may contain one `#`, which stands for decimal digits, or one `*`, which stands for any characters.
    pub name: &'static str,
    pub proof: Proof,
}

/// Why a file with a certain name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The directory has a mark of ours and none of Bitcoin Core, and this process holds its lock.
    Directory,
    /// An option names the file for this purpose, as in Bitcoin Core; or it has its default name in a directory that is
    /// ours.
    Option,
}

impl Proof {
    /// The name of the proof in `docs/formats/files.md`.
    pub fn name(self) -> &'static str {
        match self {
            Proof::Directory => "directory",
            Proof::Option => "option",
        }
    }
}

/// A change to a file.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// See [`Disk::remove_file`].
    Remove,
    /// See [`Disk::truncate_file`].
    Truncate { size: u64 },
    /// See [`Disk::write_whole`].
    Replace { bytes: &'a [u8] },
}

/// A directory in which files with certain names are ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnDir {
    path: PathBuf,
    files: &'static [OwnFile],
}

impl OwnDir {
    /// The caller must have the proof that the table requires.
    pub fn new(path: &Path, files: &'static [OwnFile]) -> OwnDir {
        OwnDir { path: path.to_owned(), files }
    }

    /// The directory of a file that an option names.
    pub fn of(file: &Path, files: &'static [OwnFile]) -> OwnDir {
        OwnDir { path: file.parent().unwrap_or(Path::new("")).to_owned(), files }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is one of our files: it is directly in the directory and its name is in the table.
    pub fn has(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(OsStr::to_str);
        let is_inside = path.parent() == Some(&self.path);
        is_inside && name.is_some_and(|name| self.files.iter().any(|file| is_named(name, file.name)))
    }

    /// Removes, shortens or replaces one of our files; the only function that does so.
    pub fn change(&self, disk: &dyn Disk, path: &Path, change: Change<'_>) -> Result<(), DiskError> {
        self.check(path)?;
        match change {
            Change::Remove => disk.remove_file(path),
            Change::Truncate { size } => disk.truncate_file(path, size),
            Change::Replace { bytes } => disk.write_whole(path, bytes),
        }
    }

    /// Replaces one of our files, or creates it.
    pub fn replace(&self, disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.change(disk, path, Change::Replace { bytes })
    }

    /// Removes one of our files. Returns whether it existed; a missing file is not an error.
    pub fn remove(&self, disk: &dyn Disk, path: &Path) -> Result<bool, DiskError> {
        match self.change(disk, path, Change::Remove) {
            Ok(()) => Ok(true),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Opens one of our files for appending, or creates it.
    pub fn append(&self, disk: &dyn Disk, path: &Path) -> Result<Box<dyn AppendFile>, DiskError> {
        self.check(path)?;
        disk.append_file(path)
    }

    /// Opens one of our files of fixed size for overwriting, or creates it.
    pub fn fixed(&self, disk: &dyn Disk, path: &Path, size: u64) -> Result<Box<dyn FixedFile>, DiskError> {
        self.check(path)?;
        disk.fixed_file(path, size)
    }

    fn check(&self, path: &Path) -> Result<(), DiskError> {
        if self.has(path) { Ok(()) } else { Err(DiskError::new(path, None, DiskErrorKind::NotOurs)) }
    }
}

fn is_named(name: &str, pattern: &str) -> bool {
    let Some((start, end)) = pattern.split_once(['#', '*']) else { return name == pattern };
    let middle = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(end)).filter(|middle| !middle.is_empty());
    let has_digits_only = pattern.contains('#');
    middle.is_some_and(|middle| !has_digits_only || middle.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SimDisk, read_whole};

    const FILES: &[OwnFile] = &[
        OwnFile { name: "rev#.dat", proof: Proof::Directory },
        OwnFile { name: "manifest", proof: Proof::Directory },
        OwnFile { name: "export-*.scratch", proof: Proof::Directory },
    ];

    /// Regression: `-reindex-chainstate` removed every file in `chainstate/`, even those of other programs; in a
    /// directory of Bitcoin Core that is its coins database.
    #[test]
    fn only_files_of_our_names_in_our_directory_are_changed() {
        let disk = SimDisk::new(1);
        let dir = OwnDir::new(Path::new("d"), FILES);
        for name in ["d", "d/e", "other"] {
            disk.create_dir(Path::new(name)).unwrap();
        }
        let names = [
            ("d/rev00000.dat", true),
            ("d/rev1.dat", true),
            ("d/manifest", true),
            ("d/export-0a.scratch", true),
            ("d/rev.dat", false),
            ("d/revx.dat", false),
            ("d/rev00000.dat.bak", false),
            ("d/blk00000.dat", false),
            ("d/000005.ldb", false),
            ("d/CURRENT", false),
            ("d/MANIFEST-000001", false),
            ("d/e/manifest", false),
            ("other/manifest", false),
        ];
        for (path, is_ours) in names {
            let path = Path::new(path);
            let changes = [Change::Truncate { size: 1 }, Change::Replace { bytes: b"new" }, Change::Remove];
            for change in changes {
                disk.write_whole(path, b"old").unwrap();
                let result = dir.change(&disk, path, change);
                match is_ours {
                    true => result.unwrap(),
                    false => {
                        assert_eq!(result.unwrap_err().kind, DiskErrorKind::NotOurs, "{path:?}");
                        assert_eq!(read_whole(&disk, path, 9).unwrap(), b"old", "{path:?}");
                    }
                }
            }
            assert_eq!(dir.append(&disk, path).is_ok(), is_ours, "{path:?}");
            assert_eq!(dir.fixed(&disk, path, 1).is_ok(), is_ours, "{path:?}");
            assert_eq!(dir.has(path), is_ours, "{path:?}");
        }
        assert_eq!(dir.remove(&disk, Path::new("d/rev7.dat")), Ok(false));
        assert_eq!(dir.remove(&disk, Path::new("d/rev1.dat")), Ok(true));
        let error = dir.remove(&disk, Path::new("d/LOCK")).unwrap_err();
        assert_eq!(error.to_string(), "d/LOCK: this file is not one of Lydian's and was not changed");
    }
}
