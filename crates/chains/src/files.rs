//! Block files in Core's framing: magic, length, block; a new file is started before one exceeds 128 MiB.
//!
//! Input: blocks in file order. Output: `blk00000.dat` and so on in one directory. Invariants: files are never
//! overwritten; a record never spans two files. Cost: one write per block. Format: `docs/formats/blk.md`.

use crate::error::ChainsError;
use crate::limits::{BLOCK_FILE_SIZE_MAX, CHAIN_FILE_SIZE_MAX};
use lydian_disk::{AppendFile, Disk, DiskErrorKind, RealDisk, read_whole};
use std::path::{Path, PathBuf};

/// Magic of regtest (`pchMessageStart`).
pub const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

/// The position of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub file: String,
    /// Offset of the block's first byte, after magic and length.
    pub offset: u64,
    pub size: usize,
}

/// Writes block files into a directory.
#[derive(Debug)]
pub struct BlockWriter {
    folder: PathBuf,
    /// The part of the name before the number.
    prefix: &'static str,
    number: u32,
    offset: u64,
    file: Box<dyn AppendFile>,
    bytes: u64,
}

impl BlockWriter {
    /// Creates the directory if needed; fails if the first file exists already.
    pub fn new(folder: &Path, prefix: &'static str) -> Result<BlockWriter, ChainsError> {
        RealDisk.create_dir(folder)?;
        let file = create(&folder.join(name_of(prefix, 0)))?;
        Ok(BlockWriter { folder: folder.to_path_buf(), prefix, number: 0, offset: 0, file, bytes: 0 })
    }

    /// Appends one block.
    pub fn write(&mut self, block: &[u8]) -> Result<Position, ChainsError> {
        let size = u32::try_from(block.len()).map_err(|_| ChainsError::Usage("a block of 4 GiB".into()))?;
        let record = [&MAGIC, &size.to_le_bytes(), block].concat();
        let length = record.len() as u64;
        if self.offset > 0 && self.offset + length > BLOCK_FILE_SIZE_MAX {
            self.number += 1;
            self.file = create(&self.folder.join(name_of(self.prefix, self.number)))?;
            self.offset = 0;
        }
        self.file.write(&record)?;
        let file = name_of(self.prefix, self.number);
        let position = Position { file, offset: self.offset + 8, size: block.len() };
        self.offset += length;
        self.bytes += length;
        Ok(position)
    }

    /// Bytes written so far, including framing.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Reads the blocks that a [`BlockWriter`] wrote into this folder, in their order.
pub fn read_blocks(folder: &Path, prefix: &'static str) -> Result<Vec<Vec<u8>>, ChainsError> {
    let mut blocks = Vec::new();
    for number in 0.. {
        let path = folder.join(name_of(prefix, number));
        if number > 0 && RealDisk.kind(&path).is_err() {
            break;
        }
        let bytes = read_whole(&RealDisk, &path, CHAIN_FILE_SIZE_MAX)?;
        let mut rest = bytes.as_slice();
        while let Some((block, after)) = record(rest) {
            blocks.push(block.to_vec());
            rest = after;
        }
        if !rest.is_empty() {
            return Err(ChainsError::Usage(format!("{}: a block is cut off", path.display())));
        }
    }
    Ok(blocks)
}

/// Splits the first block from the bytes of a file.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (size, rest) = bytes.strip_prefix(&MAGIC)?.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*size)).ok()?)
}

/// Writes a small text file, which must not exist yet.
pub fn write_text(path: &Path, text: &str) -> Result<(), ChainsError> {
    Ok(create(path)?.write(text.as_bytes())?)
}

fn name_of(prefix: &str, number: u32) -> String {
    format!("{prefix}{number:05}.dat")
}

fn create(path: &Path) -> Result<Box<dyn AppendFile>, ChainsError> {
    match RealDisk.kind(path) {
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(RealDisk.append_file(path)?),
        Err(error) => Err(error.into()),
        Ok(_) => Err(ChainsError::Usage(format!("{} exists already; choose another folder", path.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_cut_file_is_refused() {
        let folder = std::env::temp_dir().join(format!("lydian-chains-read-{}", std::process::id()));
        let mut writer = BlockWriter::new(&folder, "blk").unwrap();
        let blocks = [vec![1; 90], vec![2; 200], vec![3; 80]];
        writer.write(&blocks[0]).unwrap();
        writer.offset = BLOCK_FILE_SIZE_MAX;
        writer.write(&blocks[1]).unwrap();
        writer.write(&blocks[2]).unwrap();
        assert_eq!(read_blocks(&folder, "blk").unwrap(), blocks);
        let path = folder.join("blk00001.dat");
        let bytes = read_whole(&RealDisk, &path, 1_000).unwrap();
        RealDisk.write_whole(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert!(read_blocks(&folder, "blk").unwrap_err().to_string().contains("cut off"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// limit: BLOCK_FILE_SIZE_MAX at
    /// limit: BLOCK_FILE_SIZE_MAX above
    #[test]
    fn a_file_is_closed_before_it_passes_its_limit() {
        let folder = std::env::temp_dir().join(format!("lydian-chains-files-{}", std::process::id()));
        let mut writer = BlockWriter::new(&folder, "blk").unwrap();
        let mut name_of_block = |offset: u64, size: usize| {
            writer.offset = offset;
            writer.write(&vec![1; size]).unwrap().file
        };
        // With its frame of 8 bytes the block ends exactly at the limit; then one byte above it.
        assert_eq!(name_of_block(BLOCK_FILE_SIZE_MAX - 108, 100), "blk00000.dat");
        assert_eq!(name_of_block(BLOCK_FILE_SIZE_MAX - 108, 101), "blk00001.dat");
        assert!(BlockWriter::new(&folder, "blk").is_err(), "an existing chain is not overwritten");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
