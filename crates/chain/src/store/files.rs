//! The store's files by number, some of them open for reading. Input: positions. Output: bytes without obfuscation.
//!
//! Our own files are `blk?????.dat` and `rev?????.dat`, both named by their number. Adopted files have any path, and
//! only their undo data is ours. At most [`OPEN_READERS_MAX`] files are open at once, and at most [`OPEN_FILES_MAX`]
//! `.zst` files, whose entire content is in memory. A caller that still reads from one of them keeps it open longer.

use super::error::ChainError;
use crate::files::BlockFile;
use crate::limits::{FILE_NUMBER_MAX, OPEN_FILES_MAX, OPEN_READERS_MAX};
use crate::obfuscation::Obfuscation;
use lydian_disk::{
    Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof, ReadFile, ReadRequest, is_zst, open_content,
};
use lydian_stdx::{IgnorePoison, lock};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, RwLock};

/// The files that the store writes, except the index.
pub const BLOCKS_FILES: &[OwnFile] = &[
    OwnFile { name: "blk#.dat", proof: Proof::Directory },
    OwnFile { name: "rev#.dat", proof: Proof::Directory },
    OwnFile { name: KEY_FILE, proof: Proof::Directory },
];

/// The file with the obfuscation key.
pub(super) const KEY_FILE: &str = "xor.dat";

/// The files of the index.
pub const INDEX_FILES: &[OwnFile] =
    &[OwnFile { name: "index.log", proof: Proof::Directory }, OwnFile { name: "reindex", proof: Proof::Directory }];

/// The blocks directory, which [`crate::owner`] has found to be ours.
pub(super) fn own_blocks(blocks: &Path) -> OwnDir {
    OwnDir::new(blocks, BLOCKS_FILES)
}

/// The index directory, which [`crate::owner`] has found to be ours.
pub(super) fn own_index(index: &Path) -> OwnDir {
    OwnDir::new(index, INDEX_FILES)
}

/// A block file of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreFile {
    pub(crate) path: PathBuf,
    pub(crate) key: Obfuscation,
    /// Never written to and never removed.
    pub(crate) is_external: bool,
}

/// Selects one of the two files with the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Blocks,
    Undo,
}

/// A file open for reading.
#[derive(Debug)]
pub(crate) struct OpenFile {
    file: Box<dyn ReadFile>,
    path: PathBuf,
    key: Obfuscation,
}

impl OpenFile {
    /// Reads bytes. Checks the file size first, so that nothing is allocated for missing bytes.
    pub(crate) fn read(&self, offset: u64, size: usize) -> Result<Vec<u8>, DiskError> {
        self.check_end(offset, size)?;
        let mut bytes = vec![0; size];
        self.file.read_at(offset, &mut bytes)?;
        self.key.apply(offset, &mut bytes);
        Ok(bytes)
    }

    /// The same at several offsets, at the same time.
    pub(crate) fn read_many(&self, places: &[(u64, usize)]) -> Result<Vec<Vec<u8>>, DiskError> {
        places.iter().try_for_each(|(offset, size)| self.check_end(*offset, *size))?;
        let mut all: Vec<Vec<u8>> = places.iter().map(|(_, size)| vec![0; *size]).collect();
        let requests = all.iter_mut().zip(places);
        let mut reads: Vec<ReadRequest<'_>> =
            requests.map(|(buffer, (offset, _))| ReadRequest { offset: *offset, buffer }).collect();
        self.file.read_many(&mut reads)?;
        all.iter_mut().zip(places).for_each(|(bytes, (offset, _))| self.key.apply(*offset, bytes));
        Ok(all)
    }

    /// Fills a buffer.
    pub(crate) fn fill(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_at(offset, buffer)?;
        self.key.apply(offset, buffer);
        Ok(())
    }

    /// Fills a buffer if that takes no time.
    pub(crate) fn fill_cached(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let is_filled = self.file.read_cached(offset, buffer);
        if is_filled {
            self.key.apply(offset, buffer);
        }
        is_filled
    }

    /// Whether its entire content is in memory.
    pub(crate) fn is_whole(&self) -> bool {
        is_zst(&self.path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn check_end(&self, offset: u64, size: usize) -> Result<(), DiskError> {
        let missing = offset.saturating_add(size as u64).saturating_sub(self.size());
        if missing == 0 {
            return Ok(());
        }
        let kind = DiskErrorKind::UnexpectedEnd { missing };
        Err(DiskError { path: self.path.clone(), offset: Some(offset), kind })
    }

    pub(crate) fn prefetch(&self, offset: u64, size: u64) {
        self.file.prefetch(offset, size);
    }

    pub(crate) fn size(&self) -> u64 {
        self.file.size()
    }
}

#[derive(Debug, Default)]
struct Table {
    files: BTreeMap<u32, StoreFile>,
    /// Greater than every number ever used, so that no number is reused.
    next: u32,
}

impl Table {
    fn insert(&mut self, file: u32, known: StoreFile) {
        self.note(file);
        self.files.insert(file, known);
    }

    fn note(&mut self, file: u32) {
        self.next = self.next.max(file.saturating_add(1));
    }
}

#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    blocks: OwnDir,
    /// The key of our own files, including undo files.
    pub(crate) key: Obfuscation,
    table: RwLock<Table>,
    /// Number, part and file; the most recently used one last.
    open: Mutex<Vec<(u32, Part, Arc<OpenFile>)>>,
}

impl Files {
    pub(crate) fn new(disk: Arc<dyn Disk>, blocks: &Path, key: Obfuscation) -> Files {
        Files { disk, blocks: own_blocks(blocks), key, table: RwLock::default(), open: Mutex::default() }
    }

    /// The directory of our own files.
    pub(crate) fn directory(&self) -> &OwnDir {
        &self.blocks
    }

    pub(crate) fn path(&self, file: u32, part: Part) -> PathBuf {
        own_path(self.blocks.path(), file, part)
    }

    /// Registers a file of our own by its number.
    pub(crate) fn insert_own(&self, file: u32) {
        let own = StoreFile { path: self.path(file, Part::Blocks), key: self.key, is_external: false };
        self.write().insert(file, own);
    }

    /// Registers any file. Returns its number and whether it is new.
    pub(crate) fn adopt(&self, block_file: &BlockFile, is_external: bool) -> (u32, bool) {
        let mut table = self.write();
        if let Some((file, _)) = table.files.iter().find(|(_, known)| known.path == block_file.path) {
            return (*file, false);
        }
        let file = table.next;
        let BlockFile { path, key } = block_file.clone();
        table.insert(file, StoreFile { path, key, is_external });
        (file, true)
    }

    pub(crate) fn restore(&self, file: u32, adopted: StoreFile) {
        self.write().insert(file, adopted);
    }

    /// Registers a new file of our own and returns its number.
    pub(crate) fn new_own(&self) -> u32 {
        let mut table = self.write();
        let file = table.next;
        let own = StoreFile { path: self.path(file, Part::Blocks), key: self.key, is_external: false };
        table.insert(file, own);
        file
    }

    /// Marks a number as used. Its file may no longer exist.
    pub(crate) fn note(&self, file: u32) {
        self.write().note(file);
    }

    pub(crate) fn get(&self, file: u32) -> Option<StoreFile> {
        self.read().files.get(&file).cloned()
    }

    pub(crate) fn all(&self) -> Vec<(u32, StoreFile)> {
        self.read().files.iter().map(|(file, known)| (*file, known.clone())).collect()
    }

    /// Removes a file that no longer exists.
    pub(crate) fn forget(&self, file: u32) {
        self.write().files.remove(&file);
        self.close(file);
    }

    pub(crate) fn close(&self, file: u32) {
        lock(&self.open).retain(|(number, ..)| *number != file);
    }

    /// Opens a file for reading that has at least `size` bytes, if the file has that many at all. A file that has grown
    /// since it was opened is reopened, and so is one that was removed, renamed or replaced, because Core opens files
    /// for each read.
    pub(crate) fn open(&self, file: u32, part: Part, size: u64) -> Result<Arc<OpenFile>, ChainError> {
        let mut open = lock(&self.open);
        if let Some(at) = open.iter().position(|(number, its_part, _)| (*number, *its_part) == (file, part)) {
            let found = open.remove(at);
            if found.2.size() >= size && found.2.file.is_named() {
                open.push(found.clone());
                return Ok(found.2);
            }
        }
        let (path, key) = match part {
            Part::Blocks => {
                let known = self.get(file).ok_or(ChainError::UnknownFile { file })?;
                (known.path, known.key)
            }
            Part::Undo => (self.path(file, part), self.key),
        };
        let is_whole = is_zst(&path);
        let max = if is_whole { OPEN_FILES_MAX } else { OPEN_READERS_MAX };
        let is_like = |(_, _, other): &(u32, Part, Arc<OpenFile>)| is_zst(&other.path) == is_whole;
        // Closed before the next one is opened, so that the limit always holds.
        while open.iter().filter(|other| is_like(other)).count() >= max
            && let Some(at) = open.iter().position(is_like)
        {
            open.remove(at);
        }
        let content = open_content(self.disk.as_ref(), &path)?;
        let opened = Arc::new(OpenFile { file: content, path, key });
        open.push((file, part, Arc::clone(&opened)));
        Ok(opened)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Table> {
        self.table.read().ignore_poison()
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Table> {
        self.table.write().ignore_poison()
    }
}

pub(super) fn own_path(blocks: &Path, file: u32, part: Part) -> PathBuf {
    let name = match part {
        Part::Blocks => "blk",
        Part::Undo => "rev",
    };
    blocks.join(format!("{name}{file:05}.dat"))
}

/// The number in the name of a file of our own.
pub(super) fn own_number(path: &Path, part: Part) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let prefix = match part {
        Part::Blocks => "blk",
        Part::Undo => "rev",
    };
    let digits = name.strip_prefix(prefix)?.strip_suffix(".dat")?;
    let number = digits.parse().ok().filter(|number| *number <= FILE_NUMBER_MAX)?;
    // Only the canonical name, not one that merely parses to the same number.
    (path.file_name() == own_path(Path::new(""), number, part).file_name()).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::SimDisk;

    /// limit: OPEN_READERS_MAX at
    /// limit: OPEN_READERS_MAX above
    #[test]
    fn so_many_files_are_open_and_no_more() {
        let disk = SimDisk::new(1);
        disk.create_dir("b".as_ref()).unwrap();
        let files = Files::new(Arc::new(disk.clone()), Path::new("b"), Obfuscation::NONE);
        let max = u32::try_from(OPEN_READERS_MAX).unwrap();
        for file in 0..=max {
            files.insert_own(file);
            disk.write_whole(&files.path(file, Part::Blocks), &[7]).unwrap();
        }
        let is_open = |file: u32| lock(&files.open).iter().any(|(number, ..)| *number == file);
        for file in 0..max {
            files.open(file, Part::Blocks, 1).unwrap();
        }
        assert!((0..max).all(is_open));
        files.open(0, Part::Blocks, 1).unwrap();
        files.open(max, Part::Blocks, 1).unwrap();
        assert_eq!(lock(&files.open).len(), OPEN_READERS_MAX);
        assert!(is_open(0) && is_open(max) && !is_open(1), "the one used longest ago is closed");
    }

    /// limit: FILE_NUMBER_MAX at
    /// limit: FILE_NUMBER_MAX above
    #[test]
    fn names_of_our_own_files() {
        for (name, blocks, undo) in [
            ("blk00000.dat", Some(0), None),
            ("rev00012.dat", None, Some(12)),
            ("blk123456.dat", Some(123_456), None),
            ("blk99999999.dat", Some(FILE_NUMBER_MAX), None),
            ("blk100000000.dat", None, None),
            ("blk0001.dat", None, None),
            ("blk+0001.dat", None, None),
            ("blk000001.dat", None, None),
            ("blk99999999999.dat", None, None),
            ("blk00000.dat.new", None, None),
            ("xor.dat", None, None),
        ] {
            let path = Path::new("b").join(name);
            assert_eq!((own_number(&path, Part::Blocks), own_number(&path, Part::Undo)), (blocks, undo), "{name}");
        }
    }
}
