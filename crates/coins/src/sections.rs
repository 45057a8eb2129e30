//! Files of numbers in 16 sections, one for each partition: sidecars of segments, and death files. Input: numbers,
//! section by section. Output: the file, and its numbers.
//!
//! ```text
//! header      magic 8 | format u32 | kind u32 | store u64 | number of the file u64
//! sections    blocks: checksum u64 | at most 8,191 numbers u64; each section begins a block
//! directory   16 times: count of numbers u64 | first u64
//! checksum    of header and directory u64; the manifest has it too
//! ```
//!
//! All integers are little-endian; checksums are XXH3-64 seeded with the offset in the file. The caller chooses
//! `first`: sidecars use it for the location of the section's first record. Cost: 64 KiB of memory to write, 256 KiB to
//! read, for any size. A finished file is never appended to.

use crate::PARTITIONS;
use crate::entry::index;
use crate::error::CoinsError;
use crate::manifest::FORMAT;
use crate::open::own;
use lydian_disk::{AppendFile, Disk, ReadFile};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(crate) const HEADER_BYTES: usize = 32;
/// Number of numbers in a full block; with its checksum the block has 64 KiB.
const BLOCK_NUMBERS: usize = 8191;
const BLOCK_BYTES: usize = (1 + BLOCK_NUMBERS) * 8;
const DIRECTORY_BYTES: usize = PARTITIONS * 16;
/// Number of blocks read at once.
const BLOCKS_READ: usize = 4;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Segment = 1,
    Sidecar = 2,
    Deaths = 3,
}

/// The identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    pub(crate) store: u64,
    pub(crate) kind: Kind,
    pub(crate) number: u64,
}

impl FileId {
    /// The header at the start of each file.
    pub(crate) fn header(self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(b"lydcoins");
        out[8..12].copy_from_slice(&FORMAT.to_le_bytes());
        out[12..16].copy_from_slice(&(self.kind as u32).to_le_bytes());
        out[16..24].copy_from_slice(&self.store.to_le_bytes());
        out[24..].copy_from_slice(&self.number.to_le_bytes());
        out
    }

    pub(crate) fn path(self, dir: &Path) -> PathBuf {
        let ending = match self.kind {
            Kind::Segment => "coins",
            Kind::Sidecar => "index",
            Kind::Deaths => "deaths",
        };
        dir.join(format!("{:08}.{ending}", self.number))
    }

    /// Fails unless the file starts with the expected header.
    pub(crate) fn check(self, path: &Path, file: &dyn ReadFile) -> Result<(), CoinsError> {
        let mut header = [0; HEADER_BYTES];
        file.read_at(0, &mut header)?;
        if header == self.header() { Ok(()) } else { Err(CoinsError::damaged(path, 0, "unexpected file header")) }
    }

    /// Creates a file without content; the caller writes the header.
    pub(crate) fn create(self, disk: &dyn Disk, dir: &Path) -> Result<(PathBuf, Box<dyn AppendFile>), CoinsError> {
        let path = self.path(dir);
        let file = own(dir).append(disk, &path)?;
        if file.size() > 0 {
            return Err(CoinsError::damaged(&path, 0, "a file that no manifest names already exists"));
        }
        Ok((path, file))
    }
}

/// The manifest's data about a finished file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SectionsInfo {
    pub(crate) bytes: u64,
    pub(crate) checksum: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) count: u64,
    pub(crate) first: u64,
}

/// Writes a file sequentially.
#[derive(Debug)]
pub(crate) struct SectionsWriter {
    file: Box<dyn AppendFile>,
    header: [u8; HEADER_BYTES],
    directory: [Section; PARTITIONS],
    section: usize,
    /// First the header, then the current block with its checksum still missing.
    buffer: Vec<u8>,
    block_start: usize,
}

impl SectionsWriter {
    pub(crate) fn create(disk: &dyn Disk, dir: &Path, id: FileId) -> Result<SectionsWriter, CoinsError> {
        let (_, file) = id.create(disk, dir)?;
        let header = id.header();
        Ok(SectionsWriter {
            file,
            header,
            directory: Default::default(),
            section: 0,
            buffer: header.to_vec(),
            block_start: HEADER_BYTES,
        })
    }

    /// Appends a number to a section, which must be the current one or a later one.
    pub(crate) fn push(&mut self, section: usize, number: u64) -> Result<(), CoinsError> {
        assert!(section >= self.section, "sections are written in their order");
        let is_full = self.buffer.len() == self.block_start + BLOCK_BYTES;
        if section > self.section || is_full {
            self.end_block()?;
            self.section = section;
        }
        if self.buffer.len() == self.block_start {
            self.buffer.extend_from_slice(&[0; 8]);
        }
        self.buffer.extend_from_slice(&number.to_le_bytes());
        self.directory[section].count += 1;
        Ok(())
    }

    /// Sets the `first` value of a section.
    pub(crate) fn set_first(&mut self, section: usize, first: u64) {
        self.directory[section].first = first;
    }

    /// Writes the remaining data and the directory. The file is durable on return.
    pub(crate) fn finish(mut self) -> Result<SectionsInfo, CoinsError> {
        self.end_block()?;
        let mut tail = Vec::with_capacity(DIRECTORY_BYTES + 8);
        for section in self.directory {
            tail.extend_from_slice(&section.count.to_le_bytes());
            tail.extend_from_slice(&section.first.to_le_bytes());
        }
        let checksum = directory_checksum(&self.header, &tail, self.file.size() + self.buffer.len() as u64);
        tail.extend_from_slice(&checksum.to_le_bytes());
        self.buffer.extend_from_slice(&tail);
        self.file.write(&self.buffer)?;
        self.file.sync()?;
        Ok(SectionsInfo { bytes: self.file.size(), checksum })
    }

    fn end_block(&mut self) -> Result<(), CoinsError> {
        if self.buffer.len() > self.block_start {
            let offset = self.file.size() + self.block_start as u64;
            let checksum = xxh3_64_with_seed(&self.buffer[self.block_start + 8..], offset);
            self.buffer[self.block_start..self.block_start + 8].copy_from_slice(&checksum.to_le_bytes());
            self.file.write(&self.buffer)?;
            self.buffer.clear();
            self.block_start = 0;
        }
        Ok(())
    }
}

fn directory_checksum(header: &[u8], directory: &[u8], offset: u64) -> u64 {
    xxh3_64_with_seed(&[header, directory].concat(), offset)
}

/// A finished file, open for reading.
#[derive(Debug)]
pub(crate) struct Sections {
    file: Box<dyn ReadFile>,
    path: PathBuf,
    directory: [Section; PARTITIONS],
}

impl Sections {
    pub(crate) fn open(disk: &dyn Disk, dir: &Path, id: FileId, info: SectionsInfo) -> Result<Sections, CoinsError> {
        let path = id.path(dir);
        let file = disk.open(&path)?;
        let damaged = |offset, what| Err(CoinsError::damaged(&path, offset, what));
        let tail_bytes = DIRECTORY_BYTES as u64 + 8;
        if file.size() != info.bytes || info.bytes < HEADER_BYTES as u64 + tail_bytes {
            return damaged(file.size().min(info.bytes), "the file size differs from the manifest");
        }
        id.check(&path, file.as_ref())?;
        let offset = info.bytes - tail_bytes;
        let mut tail = [0; DIRECTORY_BYTES + 8];
        file.read_at(offset, &mut tail)?;
        let (directory, checksum) = tail.split_at(DIRECTORY_BYTES);
        let computed = directory_checksum(&id.header(), directory, offset);
        if (checksum != info.checksum.to_le_bytes() || computed != info.checksum) && !cfg!(fuzzing) {
            return damaged(offset, "the checksum of the directory is wrong");
        }
        let mut sections = [Section::default(); PARTITIONS];
        let numbers = directory.as_chunks::<8>().0;
        for (section, pair) in sections.iter_mut().zip(numbers.as_chunks::<2>().0) {
            *section = Section { count: u64::from_le_bytes(pair[0]), first: u64::from_le_bytes(pair[1]) };
        }
        let sections = Sections { file, path: path.clone(), directory: sections };
        if sections.start(PARTITIONS) == Some(offset) {
            Ok(sections)
        } else {
            damaged(offset, "the directory does not match the file size")
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn section(&self, section: usize) -> Section {
        self.directory[section]
    }

    pub(crate) fn count(&self) -> u64 {
        self.directory.iter().map(|section| section.count).sum()
    }

    /// The numbers of a section, in the order in which they were written.
    pub(crate) fn numbers(&self, section: usize) -> Numbers<'_> {
        Numbers {
            sections: self,
            left: self.directory[section].count,
            offset: self.start(section).unwrap_or(0),
            buffer: Vec::new(),
            block: 0,
            next: 0,
            end: 0,
        }
    }

    /// The offset of a section. Returns `None` if the directory is impossible.
    fn start(&self, section: usize) -> Option<u64> {
        self.directory[..section]
            .iter()
            .try_fold(HEADER_BYTES as u64, |start, section| start.checked_add(block_bytes(section.count)?))
    }
}

/// Reads the numbers of a section. Each block is checked before its first number is returned.
#[derive(Debug)]
pub(crate) struct Numbers<'a> {
    sections: &'a Sections,
    /// Number of numbers not yet read from disk.
    left: u64,
    /// Offset of the buffer in the file.
    offset: u64,
    /// Whole blocks.
    buffer: Vec<u8>,
    /// Where the current block, the next number and the next block start in the buffer.
    block: usize,
    next: usize,
    end: usize,
}

impl Numbers<'_> {
    /// The next number; `None` at the end of the section.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<u64>, CoinsError> {
        if self.next == self.end && !self.next_block()? {
            return Ok(None);
        }
        let number = self.buffer[self.next..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        self.next += 8;
        Ok(Some(number))
    }

    /// An error about the current block.
    pub(crate) fn damaged(&self, what: &'static str) -> CoinsError {
        CoinsError::damaged(&self.sections.path, self.offset + self.block as u64, what)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.sections.path
    }

    fn next_block(&mut self) -> Result<bool, CoinsError> {
        if self.end == self.buffer.len() {
            let numbers = self.left.min((BLOCKS_READ * BLOCK_NUMBERS) as u64);
            if numbers == 0 {
                return Ok(false);
            }
            self.offset += self.buffer.len() as u64;
            self.buffer.resize(index(block_bytes(numbers).unwrap_or(0)), 0);
            (self.next, self.end) = (0, 0);
            self.sections.file.read_at(self.offset, &mut self.buffer)?;
            self.left -= numbers;
        }
        self.block = self.end;
        self.end = (self.block + BLOCK_BYTES).min(self.buffer.len());
        let (checksum, numbers) = self.buffer[self.block..self.end].split_at(8);
        let computed = xxh3_64_with_seed(numbers, self.offset + self.block as u64);
        if checksum != computed.to_le_bytes() && !cfg!(fuzzing) {
            return Err(self.damaged("the checksum of a block is wrong"));
        }
        self.next = self.block + 8;
        Ok(true)
    }
}

/// Size in bytes of the blocks for this many numbers.
fn block_bytes(numbers: u64) -> Option<u64> {
    numbers.checked_add(numbers.div_ceil(BLOCK_NUMBERS as u64))?.checked_mul(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::SimDisk;

    const ID: FileId = FileId { store: 5, kind: Kind::Deaths, number: 3 };

    fn write(disk: &SimDisk, counts: &[(usize, u64)]) -> SectionsInfo {
        disk.create_dir(Path::new("/c")).unwrap();
        let mut writer = SectionsWriter::create(disk, Path::new("/c"), ID).unwrap();
        for (section, count) in counts {
            writer.set_first(*section, *count + 7);
            (0..*count).for_each(|number| writer.push(*section, number * 3).unwrap());
        }
        writer.finish().unwrap()
    }

    fn all(sections: &Sections, section: usize) -> Result<Vec<u64>, CoinsError> {
        let (mut found, mut numbers) = (Vec::new(), sections.numbers(section));
        while let Some(number) = numbers.next()? {
            found.push(number);
        }
        assert_eq!(numbers.next(), Ok(None));
        Ok(found)
    }

    #[test]
    fn numbers_come_back_at_and_beyond_a_block_and_a_read() {
        let block = BLOCK_NUMBERS as u64;
        let counts = [(0, block - 1), (1, block), (3, block + 1), (9, 1), (15, block * 17)];
        let disk = SimDisk::new(1);
        let info = write(&disk, &counts);
        let sections = Sections::open(&disk, Path::new("/c"), ID, info).unwrap();
        assert_eq!(sections.count(), counts.iter().map(|(_, count)| count).sum::<u64>());
        for section in 0..PARTITIONS {
            let count = counts.iter().find(|(one, _)| *one == section).map_or(0, |(_, count)| *count);
            assert!(all(&sections, section).unwrap().into_iter().eq((0..count).map(|number| number * 3)));
            assert_eq!(sections.section(section).first, if count > 0 { count + 7 } else { 0 });
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let disk = SimDisk::new(1);
        let info = write(&disk, &[(2, 3), (5, 1)]);
        let path = ID.path(Path::new("/c"));
        let bytes = lydian_disk::read_whole(&disk, &path, 1 << 20).unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            disk.write_whole(&path, &bytes).unwrap();
            let read = Sections::open(&disk, Path::new("/c"), ID, info)
                .and_then(|sections| (0..PARTITIONS).try_for_each(|section| all(&sections, section).map(drop)));
            assert!(
                matches!(&read, Err(CoinsError::Damaged { path: named, .. }) if *named == path),
                "bit {bit}: {read:?}"
            );
        }
    }
}
