//! Tables as numbered pages: [`PageSink`] and [`PageSource`], and their form on a disk.
//!
//! Input: the pages of a table in their order, with the facts that a reader needs. Output: any of the pages. A page is
//! a few thousand bytes, and which one a row is in follows from the row's key and the facts, so that a lookup reads one
//! page. The two traits are the border to the store: everything above them knows no file.
//!
//! On a disk a table is one file: the pages as records with their number as sequence, the directory with the size of
//! every page, and the facts in a last record of fixed size. Invariants: a file is complete or not used; every byte
//! that is read is covered by a checksum. Memory of an open table: 2.25 bytes for a page.

use super::remote::{RemotePage, RemotePages};
use crate::error::IndexError;
use lydian_disk::format::{DELETE_INDEX, Format, NumberPlace};
use lydian_disk::record::{RECORD_HEAD_SIZE, Records, encode_record};
use lydian_disk::{AppendFile, Disk, OwnDir, ReadFile, ReadRequest};
use lydian_primitives::{ParseError, Reader};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a reader must know of a table, to tell the page of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The number of the first row: of a transaction, or of a block.
    pub first: u64,
    pub rows: u64,
    pub pages: u32,
}

/// The writing side of a table.
pub(super) trait PageSink: Debug {
    /// Adds the next page.
    fn push(&mut self, page: &[u8]) -> Result<(), IndexError>;

    /// Ends the table, durable on return. `facts.pages` is the number of pages that were added.
    fn finish(&mut self, facts: &Facts) -> Result<(), IndexError>;
}

/// The reading side of a table. For use from any thread.
pub(super) trait PageSource: Debug + Send + Sync {
    fn facts(&self) -> &Facts;

    /// A page; its number is below that of the facts.
    fn page(&self, number: u32) -> Result<Vec<u8>, IndexError>;

    /// Several pages, at most [`PAGES_AT_ONCE`]: a disk reads them at the same time.
    fn pages(&self, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        numbers.iter().map(|number| self.page(*number)).collect()
    }

    /// A page if reading it takes no time.
    fn cached_page(&self, number: u32) -> Result<Option<Vec<u8>>, IndexError> {
        self.page(number).map(Some)
    }

    /// Announces that a page will be read soon.
    fn prefetch(&self, _number: u32) {}

    /// The store across a network that has a page, with its name there.
    fn remote(&self, _number: u32) -> Option<(&dyn RemotePages, RemotePage)> {
        None
    }

    /// Whether a page of the table of events may have a script's key. False only if it does not.
    fn may_have(&self, _number: u32, _key: u64) -> bool {
        true
    }

    /// The same as [`PageSource::pages`] of a table of lists, whose keys are in this page of the table of keys.
    fn list_pages(&self, _key_page: u32, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        self.pages(numbers)
    }

    /// The error for a page that cannot be decoded, which a checksum does not notice.
    fn damaged(&self, number: u32, what: &'static str) -> IndexError;
}

/// A page of each of several tables: those that are not in memory are read at the same time.
pub(super) fn page_of_each(wanted: &[(&dyn PageSource, u32)]) -> Result<Vec<Vec<u8>>, IndexError> {
    let remote: Option<Vec<_>> = wanted.iter().map(|(source, number)| source.remote(*number)).collect();
    if let Some(remote) = remote
        && let Some((store, _)) = remote.first()
    {
        let names: Vec<RemotePage> = remote.iter().map(|(_, name)| *name).collect();
        return store.read(&names);
    }
    let cached: Vec<Option<Vec<u8>>> =
        wanted.iter().map(|(source, number)| source.cached_page(*number)).collect::<Result<_, _>>()?;
    let missing = || wanted.iter().zip(&cached).filter(|(_, page)| page.is_none());
    if missing().count() > 1 {
        missing().for_each(|((source, number), _)| source.prefetch(*number));
    }
    let page = |((source, number), cached): (&(&dyn PageSource, u32), Option<Vec<u8>>)| match cached {
        Some(page) => Ok(page),
        None => source.page(*number),
    };
    wanted.iter().zip(cached).map(page).collect()
}

/// Pages that are asked for together: a bound of the memory, about half a megabyte.
pub(super) const PAGES_AT_ONCE: u32 = 128;

/// Pages between two offsets in memory.
const STRIDE: usize = 32;

/// Sizes in one record of the directory.
const SIZES_PER_RECORD: usize = 65_536;

const TEXT: &[u8; 16] = b"lydian pages\0\0\0\0";
const VERSION: u32 = PAGES_FORMAT.number;
/// The format of a table, in the record at its end.
pub const PAGES_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::Record(TEXT), otherwise: DELETE_INDEX };
/// Text, version, first, rows, pages, offset of the directory.
const FACTS_BYTES: usize = 16 + 4 + 8 + 8 + 4 + 8;
const FOOT_BYTES: usize = RECORD_HEAD_SIZE + FACTS_BYTES;

/// A table that is being written to a file.
#[derive(Debug)]
pub(super) struct FileSink {
    file: Box<dyn AppendFile>,
    sizes: Vec<u16>,
    buffer: Vec<u8>,
    is_ended: Arc<AtomicBool>,
}

/// Bytes that are written at once.
const BUFFER_BYTES: usize = 1 << 20;

impl FileSink {
    /// Begins a table. A file with this name, left over from an interrupted seal, is removed first. Once `is_ended` is
    /// set, no page is added: the error is [`IndexError::Ended`].
    pub(super) fn create(
        disk: &dyn Disk,
        own: &OwnDir,
        path: &Path,
        is_ended: Arc<AtomicBool>,
    ) -> Result<FileSink, IndexError> {
        own.remove(disk, path)?;
        Ok(FileSink { file: own.append(disk, path)?, sizes: Vec::new(), buffer: Vec::new(), is_ended })
    }

    fn flush(&mut self) -> Result<(), IndexError> {
        self.file.write(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl PageSink for FileSink {
    fn push(&mut self, page: &[u8]) -> Result<(), IndexError> {
        if self.is_ended.load(Ordering::Relaxed) {
            return Err(IndexError::Ended);
        }
        let Ok(size) = u16::try_from(page.len()) else { unreachable!("a page of {} bytes", page.len()) };
        encode_record(page, self.sizes.len() as u64, &mut self.buffer);
        self.sizes.push(size);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    fn finish(&mut self, facts: &Facts) -> Result<(), IndexError> {
        assert_eq!(facts.pages as usize, self.sizes.len(), "the number of pages");
        let directory = self.file.size() + self.buffer.len() as u64;
        for (number, sizes) in self.sizes.chunks(SIZES_PER_RECORD).enumerate() {
            let bytes: Vec<u8> = sizes.iter().flat_map(|size| size.to_le_bytes()).collect();
            encode_record(&bytes, number as u64, &mut self.buffer);
        }
        let mut foot = TEXT.to_vec();
        foot.extend_from_slice(&VERSION.to_le_bytes());
        foot.extend_from_slice(&facts.first.to_le_bytes());
        foot.extend_from_slice(&facts.rows.to_le_bytes());
        foot.extend_from_slice(&facts.pages.to_le_bytes());
        foot.extend_from_slice(&directory.to_le_bytes());
        encode_record(&foot, 0, &mut self.buffer);
        self.flush()?;
        Ok(self.file.sync()?)
    }
}

/// A table in a file.
#[derive(Debug)]
pub(super) struct FileSource {
    path: PathBuf,
    file: Box<dyn ReadFile>,
    facts: Facts,
    sizes: Vec<u16>,
    /// The offset of every [`STRIDE`]th page.
    offsets: Vec<u64>,
}

impl FileSource {
    pub(super) fn open(disk: &dyn Disk, path: &Path) -> Result<FileSource, IndexError> {
        let file = disk.open(path)?;
        let (facts, directory) = read_foot(file.as_ref(), path)?;
        let sizes = read_sizes(file.as_ref(), path, &facts, directory)?;
        let mut offsets = Vec::with_capacity(sizes.len().div_ceil(STRIDE));
        let mut offset = 0;
        for (number, size) in sizes.iter().enumerate() {
            if number % STRIDE == 0 {
                offsets.push(offset);
            }
            offset += RECORD_HEAD_SIZE as u64 + u64::from(*size);
        }
        if offset != directory {
            return Err(IndexError::damaged(path, directory, "the pages do not end where the directory begins"));
        }
        Ok(FileSource { path: path.to_owned(), file, facts, sizes, offsets })
    }

    fn place_of(&self, number: u32) -> Result<(u64, usize), IndexError> {
        let unknown = || IndexError::damaged(&self.path, 0, "a page is asked for that the table does not have");
        self.place(number).ok_or_else(unknown)
    }

    /// The content of a page whose record this is.
    fn checked<'a>(&self, number: u32, offset: u64, record: &'a [u8]) -> Result<&'a [u8], IndexError> {
        match Records::read(record, u64::from(number)).next() {
            Some(Ok(payload)) if payload.len() + RECORD_HEAD_SIZE == record.len() => Ok(payload),
            _ => Err(IndexError::damaged(&self.path, offset, "the checksum of a page does not match")),
        }
    }

    /// The place of a page: its offset, and its size with the head of the record.
    fn place(&self, number: u32) -> Option<(u64, usize)> {
        let number = number as usize;
        let size = usize::from(*self.sizes.get(number)?);
        let first = number / STRIDE * STRIDE;
        let before = self.sizes.get(first..number)?.iter();
        let skipped: u64 = before.map(|size| RECORD_HEAD_SIZE as u64 + u64::from(*size)).sum();
        Some((self.offsets.get(number / STRIDE)? + skipped, RECORD_HEAD_SIZE + size))
    }
}

impl PageSource for FileSource {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn page(&self, number: u32) -> Result<Vec<u8>, IndexError> {
        let (offset, size) = self.place_of(number)?;
        let mut bytes = vec![0; size];
        self.file.read_at(offset, &mut bytes)?;
        self.checked(number, offset, &bytes)?;
        bytes.drain(..RECORD_HEAD_SIZE);
        Ok(bytes)
    }

    fn cached_page(&self, number: u32) -> Result<Option<Vec<u8>>, IndexError> {
        let (offset, size) = self.place_of(number)?;
        let mut bytes = vec![0; size];
        if !self.file.read_cached(offset, &mut bytes) {
            return Ok(None);
        }
        self.checked(number, offset, &bytes)?;
        bytes.drain(..RECORD_HEAD_SIZE);
        Ok(Some(bytes))
    }

    fn prefetch(&self, number: u32) {
        if let Some((offset, size)) = self.place(number) {
            self.file.prefetch(offset, size as u64);
        }
    }

    fn pages(&self, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        // Pages that follow each other are one read.
        let runs: Vec<&[u32]> = numbers.chunk_by(|one, next| one.checked_add(1) == Some(*next)).collect();
        let mut offsets = Vec::with_capacity(runs.len());
        let mut buffers = Vec::with_capacity(runs.len());
        let mut sizes = Vec::with_capacity(numbers.len());
        for run in &runs {
            let first = sizes.len();
            for (at, number) in run.iter().enumerate() {
                let (offset, size) = self.place_of(*number)?;
                if at == 0 {
                    offsets.push(offset);
                }
                sizes.push(size);
            }
            buffers.push(vec![0; sizes.iter().skip(first).sum()]);
        }
        let requests = buffers.iter_mut().zip(&offsets);
        let mut reads: Vec<ReadRequest<'_>> =
            requests.map(|(buffer, offset)| ReadRequest { offset: *offset, buffer }).collect();
        self.file.read_many(&mut reads)?;
        let mut all = Vec::with_capacity(numbers.len());
        let mut sizes = sizes.into_iter();
        for ((run, bytes), mut offset) in runs.into_iter().zip(&buffers).zip(offsets) {
            let mut rest = &bytes[..];
            for (number, size) in run.iter().zip(&mut sizes) {
                let page = rest.split_off(..size).unwrap_or_default();
                all.push(self.checked(*number, offset, page)?.to_vec());
                offset += size as u64;
            }
        }
        Ok(all)
    }

    fn damaged(&self, number: u32, what: &'static str) -> IndexError {
        let offset = self.place(number).map_or(0, |(offset, _)| offset);
        IndexError::damaged(&self.path, offset, what)
    }
}

fn read_foot(file: &dyn ReadFile, path: &Path) -> Result<(Facts, u64), IndexError> {
    let short = || IndexError::damaged(path, file.size(), "it is shorter than its last record");
    let start = file.size().checked_sub(FOOT_BYTES as u64).ok_or_else(short)?;
    let mut bytes = [0; FOOT_BYTES];
    file.read_at(start, &mut bytes)?;
    let damaged = |what| IndexError::damaged(path, start, what);
    let Some(Ok(payload)) = Records::read(&bytes, 0).next() else {
        return Err(damaged("the checksum of its last record does not match"));
    };
    let mut reader = Reader::new(payload);
    let cut = |_: ParseError| damaged("its last record ends too early");
    if reader.take(TEXT.len()).map_err(cut)? != TEXT {
        return Err(IndexError::OtherFile { path: path.to_owned(), what: "not a table of an index" });
    }
    let found = reader.u32().map_err(cut)?;
    if let Some(error) = PAGES_FORMAT.newer(path, found) {
        return Err(IndexError::NewerFormat(error));
    }
    let first = u64::from_le_bytes(reader.array().map_err(cut)?);
    let rows = u64::from_le_bytes(reader.array().map_err(cut)?);
    let pages = reader.u32().map_err(cut)?;
    let directory = u64::from_le_bytes(reader.array().map_err(cut)?);
    if directory > start {
        return Err(damaged("the directory begins behind the end"));
    }
    Ok((Facts { first, rows, pages }, directory))
}

fn read_sizes(file: &dyn ReadFile, path: &Path, facts: &Facts, directory: u64) -> Result<Vec<u16>, IndexError> {
    let end = file.size() - FOOT_BYTES as u64;
    let damaged = |what| IndexError::damaged(path, directory, what);
    let pages = facts.pages as usize;
    let expected = pages * 2 + pages.div_ceil(SIZES_PER_RECORD) * RECORD_HEAD_SIZE;
    if end - directory != expected as u64 {
        return Err(damaged("the directory has another size than the number of pages says"));
    }
    let mut bytes = vec![0; expected];
    file.read_at(directory, &mut bytes)?;
    let mut sizes = Vec::with_capacity(pages);
    for record in Records::read(&bytes, 0) {
        let Ok(payload) = record else { return Err(damaged("the checksum of the directory does not match")) };
        sizes.extend(payload.as_chunks::<2>().0.iter().map(|size| u16::from_le_bytes(*size)));
    }
    if sizes.len() == pages { Ok(sizes) } else { Err(damaged("the directory lacks pages")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::{DiskErrorKind, OwnFile, Proof, SimDisk, read_whole};
    use lydian_stdx::lock;
    use std::sync::Mutex;

    const FILES: &[OwnFile] = &[OwnFile { name: "*.pages", proof: Proof::Directory }];

    fn page(number: u32) -> Vec<u8> {
        vec![number.to_le_bytes()[0]; (number as usize * 7) % 300]
    }

    fn write(disk: &SimDisk, path: &Path, pages: u32) -> Facts {
        let own = OwnDir::new(Path::new("/"), FILES);
        let mut sink = FileSink::create(disk, &own, path, Arc::default()).unwrap();
        (0..pages).for_each(|number| sink.push(&page(number)).unwrap());
        let facts = Facts { first: 5, rows: 6, pages };
        sink.finish(&facts).unwrap();
        facts
    }

    #[test]
    fn every_page_comes_back_also_from_a_directory_of_several_records() {
        let (disk, path) = (SimDisk::new(1), Path::new("/a.pages"));
        for pages in [0, 1, 33, 65_537] {
            let facts = write(&disk, path, pages);
            let source = FileSource::open(&disk, path).unwrap();
            assert_eq!(*source.facts(), facts);
            for number in (0..pages).filter(|number| *number < 200 || *number > pages - 40) {
                assert_eq!(source.page(number).unwrap(), page(number));
                assert_eq!(source.cached_page(number).unwrap(), Some(page(number)));
            }
            assert!(source.page(pages).is_err());
            let some: Vec<u32> =
                [0, 1, 2, 7, 9, 10, 32, 31, 65_536, 65_536].into_iter().filter(|at| *at < pages).collect();
            let expected: Vec<Vec<u8>> = some.iter().map(|number| page(*number)).collect();
            assert_eq!(source.pages(&some).unwrap(), expected);
            assert!(source.pages(&[pages]).is_err());
        }
    }

    /// A table of which only the pages below a number are in memory.
    #[derive(Debug)]
    struct PartlyCached {
        pages: Vec<Vec<u8>>,
        cached: u32,
        announced: Mutex<Vec<u32>>,
        read: Mutex<Vec<u32>>,
        facts: Facts,
    }

    impl PageSource for PartlyCached {
        fn facts(&self) -> &Facts {
            &self.facts
        }

        fn page(&self, number: u32) -> Result<Vec<u8>, IndexError> {
            lock(&self.read).push(number);
            self.pages.get(number as usize).cloned().ok_or_else(|| self.damaged(number, "no such page"))
        }

        fn cached_page(&self, number: u32) -> Result<Option<Vec<u8>>, IndexError> {
            Ok(self.pages.get(number as usize).filter(|_| number < self.cached).cloned())
        }

        fn prefetch(&self, number: u32) {
            assert!(lock(&self.read).is_empty(), "all are announced before one is read");
            lock(&self.announced).push(number);
        }

        fn damaged(&self, number: u32, what: &'static str) -> IndexError {
            IndexError::damaged(Path::new("memory"), u64::from(number), what)
        }
    }

    #[test]
    fn pages_of_several_tables_are_announced_before_they_are_read() {
        let table = || PartlyCached {
            pages: (0..10).map(page).collect(),
            cached: 5,
            announced: Mutex::default(),
            read: Mutex::default(),
            facts: Facts::default(),
        };
        let cases: [(&[u32], &[u32], &[u32]); 4] =
            [(&[1, 2], &[], &[]), (&[1, 9, 2], &[], &[9]), (&[9, 1, 8, 7], &[9, 8, 7], &[9, 8, 7]), (&[], &[], &[])];
        for (wanted, announced, read) in cases {
            let table = table();
            let sources: Vec<(&dyn PageSource, u32)> =
                wanted.iter().map(|at| (&table as &dyn PageSource, *at)).collect();
            let expected: Vec<Vec<u8>> = wanted.iter().map(|number| page(*number)).collect();
            assert_eq!(page_of_each(&sources).unwrap(), expected);
            assert_eq!((&lock(&table.announced)[..], &lock(&table.read)[..]), (announced, read));
        }
        let table = table();
        assert!(page_of_each(&[(&table, 1), (&table, 10)]).is_err());
    }

    #[test]
    fn a_table_is_left_unfinished_when_the_index_is_closed() {
        let (disk, path, own) = (SimDisk::new(1), Path::new("/a.pages"), OwnDir::new(Path::new("/"), FILES));
        let is_ended: Arc<AtomicBool> = Arc::default();
        let mut sink = FileSink::create(&disk, &own, path, Arc::clone(&is_ended)).unwrap();
        sink.push(&page(1)).unwrap();
        is_ended.store(true, Ordering::Relaxed);
        assert_eq!(sink.push(&page(2)), Err(IndexError::Ended));
        assert!(FileSource::open(&disk, path).is_err());
    }

    #[test]
    fn a_damaged_byte_is_named_with_the_file_and_its_offset() {
        let (disk, path) = (SimDisk::new(1), Path::new("/a.pages"));
        write(&disk, path, 40);
        let whole = read_whole(&disk, path, 1 << 20).unwrap();
        for offset in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[offset] ^= 1;
            disk.write_whole(path, &bytes).unwrap();
            let read = FileSource::open(&disk, path)
                .and_then(|source| (0..40).try_for_each(|number| source.page(number).map(drop)));
            let text = read.unwrap_err().to_string();
            let together =
                FileSource::open(&disk, path).and_then(|source| source.pages(&(0..40).collect::<Vec<u32>>()).map(drop));
            assert_eq!(together.unwrap_err().to_string(), text);
            assert!(text.starts_with("/a.pages:"), "{offset}: {text}");
        }
        for size in 0..whole.len() {
            disk.write_whole(path, &whole[..size]).unwrap();
            let text = FileSource::open(&disk, path).unwrap_err().to_string();
            assert!(text.starts_with("/a.pages:"), "{size}: {text}");
        }
    }

    #[test]
    fn a_file_of_a_later_version_and_a_missing_one_are_named() {
        let (disk, path) = (SimDisk::new(1), Path::new("/a.pages"));
        let error = FileSource::open(&disk, path).unwrap_err();
        assert!(matches!(error, IndexError::Disk(error) if error.kind == DiskErrorKind::NotFound));
        let mut foot = TEXT.to_vec();
        foot.extend_from_slice(&2_u32.to_le_bytes());
        foot.resize(FACTS_BYTES, 0);
        let mut bytes = Vec::new();
        encode_record(&foot, 0, &mut bytes);
        disk.write_whole(path, &bytes).unwrap();
        let error = FileSource::open(&disk, path).unwrap_err();
        assert_eq!(Some(error), PAGES_FORMAT.newer(path, 2_u32).map(IndexError::NewerFormat));
        foot[0] = b'x';
        bytes.clear();
        encode_record(&foot, 0, &mut bytes);
        disk.write_whole(path, &bytes).unwrap();
        let error = FileSource::open(&disk, path).unwrap_err();
        assert!(matches!(error, IndexError::OtherFile { .. }), "{error}");
    }
}
