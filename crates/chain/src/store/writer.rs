//! Appends blocks and undo data with Core's framing (node/blockstorage.cpp): magic, size, bytes, and for undo data a
//! checksum. Input: bytes. Output: positions. A file is synced before it is closed, when it is full or for another
//! reason, so that only files open here can lose bytes.

use super::error::ChainError;
use super::files::{Files, Part};
use crate::limits::{BLOCK_FILE_SIZE_MAX, OPEN_UNDO_WRITERS_MAX, UNDO_FILE_SIZE_MAX};
use crate::position::{BlockPosition, UndoPosition};
use lydian_disk::{AppendFile, Change, Disk, DiskError, DiskErrorKind};
use lydian_hash::Sha256;
use lydian_primitives::BlockHash;
use std::collections::HashMap;

/// Size of magic and size field.
pub(super) const FRAME_SIZE: usize = 8;
pub(super) const CHECKSUM_SIZE: usize = 32;

/// A file open for appending.
#[derive(Debug)]
struct Tail {
    file: u32,
    writer: Box<dyn AppendFile>,
    is_dirty: bool,
}

impl Tail {
    fn sync(&mut self) -> Result<(), DiskError> {
        if self.is_dirty {
            self.writer.sync()?;
            self.is_dirty = false;
        }
        Ok(())
    }
}

/// The end of the last block file.
#[derive(Debug)]
pub(super) struct BlockWriter {
    tail: Option<Tail>,
    /// The file to continue, and the size to truncate it to first: the bytes after that were torn by a crash.
    resume: Option<(u32, u64)>,
    /// The size at which a file is full.
    pub(super) size_max: u64,
    buffer: Vec<u8>,
}

impl BlockWriter {
    pub(super) fn new(resume: Option<(u32, u64)>) -> BlockWriter {
        BlockWriter { tail: None, resume, size_max: BLOCK_FILE_SIZE_MAX, buffer: Vec::new() }
    }

    /// The file that is being appended to, or will be next.
    pub(super) fn current(&self) -> Option<u32> {
        self.tail.as_ref().map(|tail| tail.file).or(self.resume.map(|(file, _)| file))
    }

    /// Sets the file to continue, unless a new one was started.
    pub(super) fn resume(&mut self, resume: Option<(u32, u64)>) {
        if self.current().is_none() {
            self.resume = resume;
        }
    }

    pub(super) fn append(
        &mut self,
        disk: &dyn Disk,
        files: &Files,
        magic: [u8; 4],
        block: &[u8],
    ) -> Result<BlockPosition, ChainError> {
        let size = u32_size(block);
        let mut buffer = std::mem::take(&mut self.buffer);
        let tail = self.tail_for(disk, files, FRAME_SIZE as u64 + u64::from(size))?;
        let start = tail.writer.size();
        buffer.clear();
        buffer.extend_from_slice(&magic);
        buffer.extend_from_slice(&size.to_le_bytes());
        buffer.extend_from_slice(block);
        files.key.apply(start, &mut buffer);
        tail.is_dirty = true;
        tail.writer.write(&buffer)?;
        let position = BlockPosition { file: tail.file, offset: start + FRAME_SIZE as u64, size };
        self.buffer = buffer;
        Ok(position)
    }

    fn tail_for(&mut self, disk: &dyn Disk, files: &Files, size: u64) -> Result<&mut Tail, ChainError> {
        // A file that was removed or renamed cannot be appended to; Core creates a new one too.
        self.tail.take_if(|tail| !tail.writer.is_named());
        if self.tail.as_ref().is_some_and(|tail| is_full(tail.writer.size(), size, self.size_max))
            && let Some(mut full) = self.tail.take()
        {
            full.sync()?;
        }
        let tail = match self.tail.take() {
            Some(tail) => tail,
            None => self.open(disk, files, size)?,
        };
        Ok(self.tail.insert(tail))
    }

    fn open(&mut self, disk: &dyn Disk, files: &Files, size: u64) -> Result<Tail, ChainError> {
        let file = match self.resume.take() {
            Some((file, end)) if !is_full(end, size, self.size_max) && cut(disk, files, file, end)? => file,
            _ => files.new_own(),
        };
        let writer = files.directory().append(disk, &files.path(file, Part::Blocks))?;
        Ok(Tail { file, writer, is_dirty: false })
    }

    pub(super) fn sync(&mut self) -> Result<(), DiskError> {
        self.tail.as_mut().map_or(Ok(()), Tail::sync)
    }
}

/// Cuts off the bytes after the last block of a file of ours. Returns false if the file does not exist.
fn cut(disk: &dyn Disk, files: &Files, file: u32, end: u64) -> Result<bool, DiskError> {
    let path = files.path(file, Part::Blocks);
    let size = match disk.open(&path) {
        Ok(opened) => opened.size(),
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if size > end {
        files.directory().change(disk, &path, Change::Truncate { size: end })?;
        files.close(file);
    }
    Ok(true)
}

/// Core's rule: a file stays below its limit, unless a single block reaches it.
fn is_full(file_size: u64, size: u64, size_max: u64) -> bool {
    file_size > 0 && file_size + size >= size_max
}

/// Every record must start below the limit.
fn is_undo_full(file_size: u64, size_max: u64) -> bool {
    file_size >= size_max
}

/// The ends of the undo files in use. Undo data goes to the file with the number of its block file.
#[derive(Debug)]
pub(super) struct UndoWriter {
    /// The most recently used one last.
    tails: Vec<Tail>,
    /// The undo file that continues a full one, by block file.
    overflow: HashMap<u32, u32>,
    size_max: u64,
    buffer: Vec<u8>,
}

impl UndoWriter {
    pub(super) fn new() -> UndoWriter {
        UndoWriter { tails: Vec::new(), overflow: HashMap::new(), size_max: UNDO_FILE_SIZE_MAX, buffer: Vec::new() }
    }

    pub(super) fn append(
        &mut self,
        disk: &dyn Disk,
        files: &Files,
        magic: [u8; 4],
        block: BlockPosition,
        prev_hash: &BlockHash,
        undo: &[u8],
    ) -> Result<UndoPosition, ChainError> {
        let size = u32_size(undo);
        let mut file = self.overflow.get(&block.file).copied().unwrap_or(block.file);
        while self.is_lost(file) || is_undo_full(self.tail(disk, files, file)?.writer.size(), self.size_max) {
            file = files.new_own();
            self.overflow.insert(block.file, file);
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let tail = self.tail(disk, files, file)?;
        let start = tail.writer.size();
        buffer.clear();
        buffer.extend_from_slice(&magic);
        buffer.extend_from_slice(&size.to_le_bytes());
        buffer.extend_from_slice(undo);
        buffer.extend_from_slice(&undo_checksum(prev_hash, undo));
        files.key.apply(start, &mut buffer);
        tail.is_dirty = true;
        tail.writer.write(&buffer)?;
        self.buffer = buffer;
        Ok(UndoPosition { file, offset: start + FRAME_SIZE as u64, size })
    }

    /// Whether the file was removed or renamed while it was open. If so, closes it.
    fn is_lost(&mut self, file: u32) -> bool {
        let is_lost = |tail: &mut Tail| tail.file == file && !tail.writer.is_named();
        self.tails.extract_if(.., is_lost).count() > 0
    }

    fn tail(&mut self, disk: &dyn Disk, files: &Files, file: u32) -> Result<&mut Tail, ChainError> {
        let tail = match self.tails.iter().position(|tail| tail.file == file) {
            Some(at) => self.tails.remove(at),
            None => {
                if self.tails.len() == OPEN_UNDO_WRITERS_MAX {
                    self.tails.remove(0).sync()?;
                }
                let writer = files.directory().append(disk, &files.path(file, Part::Undo))?;
                Tail { file, writer, is_dirty: false }
            }
        };
        self.tails.push(tail);
        let last = self.tails.len() - 1;
        Ok(&mut self.tails[last])
    }

    pub(super) fn sync(&mut self) -> Result<(), DiskError> {
        self.tails.iter_mut().try_for_each(Tail::sync)
    }

    /// Forgets a file that is to be removed.
    pub(super) fn forget(&mut self, file: u32) {
        self.tails.retain(|tail| tail.file != file);
        self.overflow.retain(|_, other| *other != file);
    }
}

/// Core's checksum: the hash of the parent's hash and the undo data.
pub(super) fn undo_checksum(prev_hash: &BlockHash, undo: &[u8]) -> [u8; CHECKSUM_SIZE] {
    Sha256::new().update(&prev_hash.0).update(undo).finalize_double()
}

pub(super) fn u32_size(bytes: &[u8]) -> u32 {
    match u32::try_from(bytes.len()) {
        Ok(size) => size,
        Err(_) => unreachable!("a block and its undo data are far smaller than 4 GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::FAST_PRUNE_FILE_SIZE_MAX;
    use crate::obfuscation::Obfuscation;
    use lydian_disk::SimDisk;
    use std::path::Path;
    use std::sync::Arc;

    /// limit: BLOCK_FILE_SIZE_MAX at
    /// limit: BLOCK_FILE_SIZE_MAX above
    /// limit: FAST_PRUNE_FILE_SIZE_MAX at
    /// limit: FAST_PRUNE_FILE_SIZE_MAX above
    /// limit: UNDO_FILE_SIZE_MAX at
    /// limit: UNDO_FILE_SIZE_MAX above
    #[test]
    fn when_files_are_full() {
        let is_full = |file_size, size| is_full(file_size, size, BLOCK_FILE_SIZE_MAX);
        assert!(!is_full(BLOCK_FILE_SIZE_MAX - 101, 100));
        assert!(is_full(BLOCK_FILE_SIZE_MAX - 100, 100), "Core's files stay below the limit");
        assert!(is_full(BLOCK_FILE_SIZE_MAX - 99, 100));
        assert!(!is_full(0, BLOCK_FILE_SIZE_MAX + 1), "an empty file takes anything");
        let is_small_full = |file_size, size| super::is_full(file_size, size, FAST_PRUNE_FILE_SIZE_MAX);
        assert!(
            !is_small_full(0xfff0, 15) && is_small_full(0xfff0, 16),
            "Core leaves the file when it would have 64 KiB"
        );
        assert!(!is_small_full(0, 0x1_0000) && is_small_full(1, 0x1_0000), "one block alone may be larger");
        let is_full = |file_size| is_undo_full(file_size, UndoWriter::new().size_max);
        assert!(!is_full(UNDO_FILE_SIZE_MAX - 1));
        assert!(is_full(UNDO_FILE_SIZE_MAX) && is_full(UNDO_FILE_SIZE_MAX + 1));
    }

    /// limit: OPEN_UNDO_WRITERS_MAX at
    /// limit: OPEN_UNDO_WRITERS_MAX above
    #[test]
    fn undo_files_that_are_closed_are_synced() {
        let disk = SimDisk::new(1);
        disk.create_dir("b".as_ref()).unwrap();
        let files = Files::new(Arc::new(disk.clone()), Path::new("b"), Obfuscation::new([1; 8]));
        let mut writer = UndoWriter::new();
        let mut append = |file: usize| {
            let block = BlockPosition { file: u32::try_from(file).unwrap(), offset: 8, size: 1 };
            writer.append(&disk, &files, [7; 4], block, &BlockHash::ZERO, &[0]).unwrap();
            (writer.tails.len(), writer.tails.iter().any(|tail| tail.file == 0))
        };
        for file in 0..OPEN_UNDO_WRITERS_MAX {
            append(file);
        }
        assert_eq!(append(0), (OPEN_UNDO_WRITERS_MAX, true), "the one used last stays");
        assert_eq!(append(OPEN_UNDO_WRITERS_MAX), (OPEN_UNDO_WRITERS_MAX, true));
        let lost = disk.power_loss(1);
        let size = lost.open(&files.path(1, Part::Undo)).unwrap().size();
        assert_eq!(size, 8 + 1 + 32, "closed, and safe");
    }

    /// A full file is followed by another, which the next restart finds by its number.
    #[test]
    fn undo_data_overflows_into_a_file_of_its_own() {
        let disk = SimDisk::new(1);
        disk.create_dir("b".as_ref()).unwrap();
        let files = Files::new(Arc::new(disk.clone()), Path::new("b"), Obfuscation::NONE);
        files.insert_own(4);
        let mut writer = UndoWriter::new();
        let block = BlockPosition { file: 4, offset: 8, size: 1 };
        writer.size_max = 1_000;
        let mut used = Vec::new();
        for _ in 0..5 {
            let position = writer.append(&disk, &files, [7; 4], block, &BlockHash::ZERO, &[0; 460]).unwrap();
            assert!(position.offset < writer.size_max + 8);
            used.push(position.file);
        }
        assert_eq!(used, [4, 4, 5, 5, 6]);
    }
}
