//! Finds block files. Input: a path. Output: its block files, in reading order, each with its key. Reads only file
//! names and `xor.dat`.

use crate::error::ReadError;
use crate::obfuscation::Obfuscation;
use lydian_disk::{Disk, DiskErrorKind, PathKind};
use std::path::{Path, PathBuf};

/// A file of records with Core's framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFile {
    pub path: PathBuf,
    pub key: Obfuscation,
}

impl BlockFile {
    /// A file with its key, `xor.dat` in the same directory. The key applies only to files with Core's names.
    pub fn at(disk: &dyn Disk, path: &Path) -> Result<BlockFile, ReadError> {
        let key = match path.file_name() {
            Some(name) if is_core_name(&name.to_string_lossy()) => read_key(disk, &path.with_file_name("xor.dat"))?,
            _ => Obfuscation::NONE,
        };
        Ok(BlockFile { path: path.to_owned(), key })
    }
}

/// The block files of a path: the file itself, or the block files directly in the directory, `blk00000.dat` upwards,
/// then others by name.
pub fn find_block_files(disk: &dyn Disk, path: &Path) -> Result<Vec<BlockFile>, ReadError> {
    if disk.kind(path)? == PathKind::File {
        return Ok(vec![BlockFile::at(disk, path)?]);
    }
    let mut paths = disk.list(path)?;
    paths.retain(|(path, kind)| *kind == PathKind::File && is_block_file_name(path));
    if paths.is_empty() {
        return Err(ReadError::NoBlockFiles { path: path.to_owned() });
    }
    // By number, so that blk100000.dat follows blk99999.dat.
    paths.sort_by_key(|(path, _)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (if is_core_name(&name) { name.len() } else { usize::MAX }, name)
    });
    paths.iter().map(|(path, _)| BlockFile::at(disk, path)).collect()
}

/// Matches `blk*.dat`, `*.blk`, and both with `.zst`.
pub fn is_block_file_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    name.ends_with(".blk") || (name.starts_with("blk") && name.ends_with(".dat"))
}

/// Matches `blk`, digits and `.dat`: the files that Core writes and to which its key applies.
fn is_core_name(name: &str) -> bool {
    let digits = name.strip_prefix("blk").and_then(|rest| rest.strip_suffix(".dat"));
    digits.is_some_and(|digits| digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(crate) fn read_key(disk: &dyn Disk, path: &Path) -> Result<Obfuscation, ReadError> {
    let file = match disk.open(path) {
        Ok(file) => file,
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(Obfuscation::NONE),
        Err(error) => return Err(error.into()),
    };
    if file.size() != Obfuscation::SIZE as u64 {
        return Err(ReadError::XorKeySize { path: path.to_owned(), size: file.size() });
    }
    let mut key = [0; Obfuscation::SIZE];
    file.read_at(0, &mut key)?;
    Ok(Obfuscation::new(key))
}
