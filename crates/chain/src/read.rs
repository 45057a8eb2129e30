//! [`BlockFiles`]: a set of block files on a disk. First pass: [`BlockFiles::scan`]. Second pass: [`BlockFiles::read`],
//! one block at a time.
//!
//! At most [`OPEN_FILES_MAX`] files are open at once; the least recently used one is closed. A `.zst` file is
//! decompressed into memory when it is opened, so a set of many such files should be in height order, or be
//! decompressed beforehand.

use crate::error::ReadError;
use crate::files::BlockFile;
use crate::index::BlockIndex;
use crate::limits::OPEN_FILES_MAX;
use crate::scan::{Record, Remark, RemarkKind, View, detect_magic, scan_file};
use lydian_disk::{Disk, ReadFile, open_content};
use lydian_primitives::HEADER_SIZE;
use lydian_primitives::{Block, Header, ParseError, ParseErrorKind, RawBlock};
use std::path::Path;

/// Block files, some of them open.
#[derive(Debug)]
pub struct BlockFiles<'d> {
    disk: &'d dyn Disk,
    files: Vec<BlockFile>,
    /// The open files with their indices, the most recently used one last.
    open: Vec<(usize, Box<dyn ReadFile>)>,
}

/// A block that was read.
#[derive(Clone, Debug)]
pub struct ReadBlock {
    pub block: Block,
    /// Set if the record was longer than the block.
    pub remark: Option<Remark>,
}

impl<'d> BlockFiles<'d> {
    pub fn new(disk: &'d dyn Disk, files: Vec<BlockFile>) -> BlockFiles<'d> {
        BlockFiles { disk, files, open: Vec::new() }
    }

    pub fn files(&self) -> &[BlockFile] {
        &self.files
    }

    /// Detects the magic of one of the files by searching for that of any known chain.
    pub fn detect_magic(&mut self, file: usize) -> Result<[u8; 4], ReadError> {
        self.with_view(file, detect_magic)
    }

    /// Reads all headers. Calls `progress` with the path of each file before it is scanned and the number of records
    /// found so far.
    pub fn scan(&mut self, magic: [u8; 4], progress: &mut dyn FnMut(&Path, usize)) -> Result<BlockIndex, ReadError> {
        let scanned = self.scan_while(magic, &mut |path, found| {
            progress(path, found);
            true
        });
        scanned.map(Option::unwrap_or_default)
    }

    /// Like [`BlockFiles::scan`], but stops and returns `None` when `goes_on` returns false.
    pub fn scan_while(
        &mut self,
        magic: [u8; 4],
        goes_on: &mut dyn FnMut(&Path, usize) -> bool,
    ) -> Result<Option<BlockIndex>, ReadError> {
        let mut index = BlockIndex { files: self.files.clone(), ..BlockIndex::default() };
        for file in 0..self.files.len() {
            if !goes_on(&self.files[file].path, index.records.len()) {
                return Ok(None);
            }
            let number = u32::try_from(file).unwrap_or(u32::MAX);
            let mut remarks = Vec::new();
            let records = self.with_view(file, |view| {
                scan_file(view, number, magic, 0, |remark| remarks.push(remark)).map_err(ReadError::from)
            })?;
            index.records.extend(records);
            remarks.into_iter().for_each(|remark| index.remark(remark));
        }
        Ok(Some(index))
    }

    /// The bytes of one record.
    pub fn read_raw(&mut self, record: &Record) -> Result<RawBlock, ReadError> {
        let file = record.file as usize;
        let bytes = self.with_view(file, |view| {
            let mut bytes = vec![0; record.size as usize];
            view.read_at(record.offset, &mut bytes)?;
            Ok(bytes)
        })?;
        let hash = bytes.first_chunk::<HEADER_SIZE>().map(|header| Header::parse(header).hash());
        if hash != Some(record.hash) {
            let path = self.files[file].path.clone();
            return Err(ReadError::Changed { path, offset: record.offset, hash: record.hash });
        }
        Ok(RawBlock::new(bytes))
    }

    /// Reads one block. Bytes after its last transaction are cut off, as in Core.
    pub fn read(&mut self, record: &Record) -> Result<ReadBlock, ReadError> {
        let parsed = self.read_raw(record)?.parse();
        let path = self.files[record.file as usize].path.clone();
        let fail = |path, error| ReadError::Parse { path, offset: record.offset, hash: record.hash, error };
        let count = match parsed {
            Ok(block) => return Ok(ReadBlock { block, remark: None }),
            Err(ParseError { kind: ParseErrorKind::TrailingBytes { count }, .. }) => count,
            Err(error) => return Err(fail(path, error)),
        };
        let raw = self.read_raw(record)?;
        let size = raw.as_bytes().len() - count;
        let block = RawBlock::new(&raw.as_bytes()[..size]).parse().map_err(|error| fail(path.clone(), error))?;
        let kind = RemarkKind::TrailingBytes { size: count as u64, hash: record.hash };
        Ok(ReadBlock { block, remark: Some(Remark { path, offset: record.offset + size as u64, kind }) })
    }

    fn with_view<T>(
        &mut self,
        file: usize,
        action: impl FnOnce(&View<'_>) -> Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        let BlockFile { path, key } = &self.files[file];
        let (number, opened) = match self.open.iter().position(|(number, _)| *number == file) {
            Some(at) => self.open.remove(at),
            None => {
                // Closed before the next one is opened, so that the limit always holds.
                if self.open.len() == OPEN_FILES_MAX {
                    self.open.remove(0);
                }
                (file, open_content(self.disk, path)?)
            }
        };
        let result = action(&View { path, file: opened.as_ref(), key: *key });
        self.open.push((number, opened));
        result
    }
}
