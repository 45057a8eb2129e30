//! Reads whole files into memory and decompresses `.zst` files.
//!
//! Input: a path and a limit. Output: the bytes, never more than the limit. Cost: memory for the content, and for
//! zstd's window (at most 128 MiB, zstd's own limit). While decompressing, memory grows with the bytes read, never with
//! the size that a header declares.

use crate::limits::WHOLE_FILE_SIZE_MAX;
use crate::{Disk, DiskError, DiskErrorKind, ReadFile};
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

/// Number of bytes read at once while decompressing.
const CHUNK_SIZE: usize = 128 << 10;

/// Reads a file, decompressed if its name ends in `.zst`.
pub fn read_whole(disk: &dyn Disk, path: &Path, size_max: u64) -> Result<Vec<u8>, DiskError> {
    let file = disk.open(path)?;
    if is_zst(path) {
        return decompress(path, file.as_ref(), size_max);
    }
    match usize::try_from(file.size()) {
        Ok(size) if file.size() <= size_max => {
            let mut bytes = vec![0; size];
            file.read_at(0, &mut bytes)?;
            Ok(bytes)
        }
        _ => Err(DiskError::new(path, None, DiskErrorKind::TooLarge { size_max })),
    }
}

/// Opens a file for reading at offsets of its content; a `.zst` file is decompressed into memory first.
pub fn open_content(disk: &dyn Disk, path: &Path) -> Result<Box<dyn ReadFile>, DiskError> {
    if is_zst(path) {
        let bytes = read_whole(disk, path, WHOLE_FILE_SIZE_MAX)?;
        Ok(Box::new(MemoryFile { path: path.to_owned(), bytes }))
    } else {
        disk.open(path)
    }
}

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl ReadFile for MemoryFile {
    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The file on disk is not needed any more.
    fn is_named(&self) -> bool {
        true
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        let tail = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
        match tail.get(..buffer.len()) {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => {
                let missing = (buffer.len() - tail.len()) as u64;
                Err(DiskError::new(&self.path, Some(offset), DiskErrorKind::UnexpectedEnd { missing }))
            }
        }
    }
}

/// Whether the file name indicates that the content is compressed.
pub fn is_zst(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

fn decompress(path: &Path, file: &dyn ReadFile, size_max: u64) -> Result<Vec<u8>, DiskError> {
    let source = Source { file, offset: 0, buffer: Vec::new(), used: 0, error: None };
    let mut decoder =
        zstd::stream::read::Decoder::with_buffer(source).map_err(|error| DiskError::from_io(path, None, &error))?;
    let mut bytes = Vec::new();
    let mut chunk = vec![0; CHUNK_SIZE];
    loop {
        match decoder.read(&mut chunk) {
            Ok(0) => return Ok(bytes),
            Ok(count) if (bytes.len() + count) as u64 > size_max => {
                return Err(DiskError::new(path, None, DiskErrorKind::TooLarge { size_max }));
            }
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) => {
                let source = decoder.get_mut();
                let kind = match error.kind() {
                    io::ErrorKind::UnexpectedEof => DiskErrorKind::CompressedDataTruncated,
                    _ => DiskErrorKind::CompressedDataInvalid { reason: error.to_string() },
                };
                let offset = source.offset + source.used as u64;
                return Err(source.error.take().unwrap_or_else(|| DiskError::new(path, Some(offset), kind)));
            }
        }
    }
}

/// Reads a [`ReadFile`] sequentially; stores the [`DiskError`], which does not fit into an `io::Error`.
struct Source<'a> {
    file: &'a dyn ReadFile,
    /// Offset of `buffer` in the file.
    offset: u64,
    buffer: Vec<u8>,
    used: usize,
    error: Option<DiskError>,
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.offset += self.used as u64;
            self.used = 0;
            let left = self.file.size().saturating_sub(self.offset);
            self.buffer.resize(usize::try_from(left).unwrap_or(CHUNK_SIZE).min(CHUNK_SIZE), 0);
            if let Err(error) = self.file.read_at(self.offset, &mut self.buffer) {
                self.buffer.clear();
                self.error = Some(error);
                return Err(io::Error::other("disk"));
            }
        }
        Ok(&self.buffer[self.used..])
    }

    fn consume(&mut self, count: usize) {
        self.used += count;
    }
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let ready = self.fill_buf()?;
        let count = ready.len().min(buffer.len());
        buffer[..count].copy_from_slice(&ready[..count]);
        self.consume(count);
        Ok(count)
    }
}
