//! An in-memory disk and hand-made block files for the tests of this crate.
#![allow(dead_code, reason = "each test binary uses a part")]

pub(crate) mod blocks;

use lydian_chain::{BlockFile, BlockFiles, BlockIndex, Obfuscation, Ordered};
use lydian_disk::{AppendFile, Disk, DiskError, DiskErrorKind, FixedFile, Lock, PathKind, ReadFile};
use lydian_primitives::{BlockHash, Header};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) const MAIN: [u8; 4] = [0xf9, 0xbe, 0xb4, 0xd9];
pub(crate) const TEST: [u8; 4] = [0x0b, 0x11, 0x09, 0x07];

/// Files by path; directories exist if a file's path implies them.
#[derive(Debug, Default)]
pub(crate) struct MemoryDisk(pub(crate) BTreeMap<PathBuf, Vec<u8>>);

impl MemoryDisk {
    pub(crate) fn with(files: &[(&str, &[u8])]) -> MemoryDisk {
        MemoryDisk(files.iter().map(|(path, bytes)| (PathBuf::from(path), bytes.to_vec())).collect())
    }
}

#[derive(Debug)]
struct MemoryFile(PathBuf, Vec<u8>);

fn fail<T>(path: &Path, offset: Option<u64>, kind: DiskErrorKind) -> Result<T, DiskError> {
    Err(DiskError { path: path.to_owned(), offset, kind })
}

impl Disk for MemoryDisk {
    fn kind(&self, path: &Path) -> Result<PathKind, DiskError> {
        match self.0.keys().find(|key| key.starts_with(path)) {
            Some(key) if key == path => Ok(PathKind::File),
            Some(_) => Ok(PathKind::Directory),
            None => fail(path, None, DiskErrorKind::NotFound),
        }
    }
    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError> {
        match self.0.get(path) {
            Some(bytes) => Ok(Box::new(MemoryFile(path.to_owned(), bytes.clone()))),
            None => fail(path, None, DiskErrorKind::NotFound),
        }
    }
    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError> {
        let inside = self.0.keys().filter(|key| key.parent() == Some(path));
        Ok(inside.map(|key| (key.clone(), PathKind::File)).collect())
    }
    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        fail(path, None, DiskErrorKind::PermissionDenied)
    }
    fn write_whole(&self, path: &Path, _: &[u8]) -> Result<(), DiskError> {
        fail(path, None, DiskErrorKind::PermissionDenied)
    }
    fn append_file(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError> {
        fail(path, None, DiskErrorKind::PermissionDenied)
    }
    fn fixed_file(&self, path: &Path, _: u64) -> Result<Box<dyn FixedFile>, DiskError> {
        fail(path, None, DiskErrorKind::PermissionDenied)
    }
    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        fail(path, None, DiskErrorKind::PermissionDenied)
    }
    fn truncate_file(&self, path: &Path, _: u64) -> Result<(), DiskError> {
        fail(path, None, DiskErrorKind::PermissionDenied)
    }
    fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        fail(path, None, DiskErrorKind::PermissionDenied)
    }
    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        fail(path, None, DiskErrorKind::PermissionDenied)
    }
    fn free_bytes(&self, _: &Path) -> Result<u64, DiskError> {
        Ok(0)
    }
}

impl ReadFile for MemoryFile {
    fn size(&self) -> u64 {
        self.1.len() as u64
    }
    fn is_named(&self) -> bool {
        true
    }
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let tail = usize::try_from(offset).ok().and_then(|offset| self.1.get(offset..)).unwrap_or_default();
        match tail.get(..buffer.len()) {
            Some(bytes) => buffer.copy_from_slice(bytes),
            None => return fail(&self.0, Some(offset), DiskErrorKind::UnexpectedEnd { missing: 1 }),
        }
        Ok(())
    }
}

/// A record with Core's framing.
pub(crate) fn record(magic: [u8; 4], block: &[u8]) -> Vec<u8> {
    let length = u32::try_from(block.len()).unwrap_or(u32::MAX);
    [&magic[..], &length.to_le_bytes(), block].concat()
}

/// The bytes and hash of a block with a header and no transactions.
pub(crate) fn block(prev_block: BlockHash, nonce: u32) -> (BlockHash, Vec<u8>) {
    let header = Header { version: 1, prev_block, merkle_root: [7; 32], time: 1, bits: 2, nonce };
    let mut bytes = header.to_bytes().to_vec();
    bytes.push(0);
    (header.hash(), bytes)
}

/// A chain of such blocks.
pub(crate) fn chain(genesis_nonce: u32, count: usize) -> Vec<(BlockHash, Vec<u8>)> {
    let mut blocks: Vec<(BlockHash, Vec<u8>)> = Vec::new();
    for _ in 0..count {
        let prev = blocks.last().map_or(BlockHash::ZERO, |last| last.0);
        blocks.push(block(prev, genesis_nonce));
    }
    blocks
}

/// Scans files named `a`, `b`, ... with the given contents.
pub(crate) fn scan(contents: &[&[u8]], genesis: BlockHash) -> (BlockIndex, Ordered) {
    let names = ["a", "b", "c"];
    let files: Vec<_> = names.iter().copied().zip(contents.iter().copied()).collect();
    let disk = MemoryDisk::with(&files);
    let files = files.iter().map(|(name, _)| BlockFile { path: name.into(), key: Obfuscation::NONE }).collect();
    let mut index = match BlockFiles::new(&disk, files).scan(MAIN, &mut |_, _| {}) {
        Ok(index) => index,
        Err(error) => panic!("{error}"),
    };
    let ordered = index.order(genesis);
    (index, ordered)
}

pub(crate) fn sentences(index: &BlockIndex) -> Vec<String> {
    index.remarks.iter().map(ToString::to_string).collect()
}
