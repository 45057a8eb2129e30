//! Block files in Core's framing: magic, length, block; a new file before 128 MiB are passed.
//!
//! Input: blocks in the order in which they are to lie. Output: `blk00000.dat` and so on in one folder. Invariants: files
//! are never overwritten; a record never spans two files. Cost: one buffered write per block.

use crate::error::LabError;
use crate::limits::BLOCK_FILE_SIZE_MAX;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Magic of regtest (`pchMessageStart`).
pub const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];

/// Where a block lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub file: String,
    /// Of the block's first byte, behind magic and length.
    pub offset: u64,
    pub size: usize,
}

/// Writes block files into a folder.
#[derive(Debug)]
pub struct BlockWriter {
    folder: PathBuf,
    /// The part of the name before the number.
    prefix: &'static str,
    size_max: u64,
    number: u32,
    offset: u64,
    file: Option<BufWriter<File>>,
    bytes: u64,
}

impl BlockWriter {
    /// Makes the folder if need be; refuses one in which the first file lies already.
    pub fn new(folder: &Path, prefix: &'static str) -> Result<BlockWriter, LabError> {
        std::fs::create_dir_all(folder).map_err(LabError::io(folder))?;
        let mut writer = BlockWriter {
            folder: folder.to_path_buf(),
            prefix,
            size_max: BLOCK_FILE_SIZE_MAX,
            number: 0,
            offset: 0,
            file: None,
            bytes: 0,
        };
        writer.open()?;
        Ok(writer)
    }

    fn name(&self) -> String {
        format!("{}{:05}.dat", self.prefix, self.number)
    }

    fn open(&mut self) -> Result<(), LabError> {
        let path = self.folder.join(self.name());
        let file = OpenOptions::new().write(true).create_new(true).open(&path).map_err(LabError::io(&path))?;
        self.file = Some(BufWriter::with_capacity(1 << 20, file));
        self.offset = 0;
        Ok(())
    }

    /// Appends one block.
    pub fn write(&mut self, block: &[u8]) -> Result<Position, LabError> {
        let size = u32::try_from(block.len()).map_err(|_| LabError::Usage("a block of 4 GiB".into()))?;
        let record = u64::from(size) + 8;
        if self.offset > 0 && self.offset + record > self.size_max {
            self.finish()?;
            self.number += 1;
            self.open()?;
        }
        let path = self.folder.join(self.name());
        let Some(file) = self.file.as_mut() else { return Err(LabError::Usage("written after finish".into())) };
        let parts: [&[u8]; 3] = [&MAGIC, &size.to_le_bytes(), block];
        parts.iter().try_for_each(|part| file.write_all(part)).map_err(LabError::io(path))?;
        let position = Position { file: self.name(), offset: self.offset + 8, size: block.len() };
        self.offset += record;
        self.bytes += record;
        Ok(position)
    }

    /// Writes what is buffered; no block can follow but by opening the next file.
    pub fn finish(&mut self) -> Result<(), LabError> {
        let path = self.folder.join(self.name());
        match self.file.take() {
            Some(mut file) => file.flush().map_err(LabError::io(path)),
            None => Ok(()),
        }
    }

    /// Bytes written so far, framing included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Writes a small text file, which must not be there yet.
pub fn write_text(path: &Path, text: &str) -> Result<(), LabError> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(LabError::io(path))?;
    file.write_all(text.as_bytes()).map_err(LabError::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_closed_before_it_passes_its_limit() {
        let folder = std::env::temp_dir().join(format!("lydian-lab-files-{}", std::process::id()));
        let mut writer = BlockWriter::new(&folder, "blk").unwrap();
        writer.size_max = 100;
        let names: Vec<String> = [40, 44, 1, 92, 93].map(|size| writer.write(&vec![1; size]).unwrap().file).to_vec();
        writer.finish().unwrap();
        // 48 + 52 = 100 fits exactly; one byte more does not, and a record larger than the limit stands alone.
        assert_eq!(names, ["blk00000.dat", "blk00000.dat", "blk00001.dat", "blk00002.dat", "blk00003.dat"]);
        assert_eq!(std::fs::metadata(folder.join("blk00000.dat")).unwrap().len(), 100);
        assert!(BlockWriter::new(&folder, "blk").is_err(), "an existing chain is not overwritten");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
