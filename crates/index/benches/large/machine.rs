//! The machine: time, memory, the page cache, and a disk that counts its reads.

use lydian_disk::{AppendFile, Disk, DiskError, FixedFile, Lock, PathKind, ReadFile, ReadRequest, RealDisk};
use rustix::fs::Advice;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// User and system time of the process.
pub(crate) fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

/// Wall and processor time of a piece of work.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration, Duration) {
    let (start, before) = (Instant::now(), cpu());
    let result = work();
    (result, start.elapsed(), cpu() - before)
}

/// A field of a file of `/proc`; `None` without one.
fn field(path: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find(|line| line.starts_with(name))?.split_whitespace().nth(1)?.parse().ok()
}

/// Bytes that this process read from a device.
pub(crate) fn device_bytes() -> u64 {
    field("/proc/self/io", "read_bytes:").unwrap_or(0)
}

/// The most memory that this process had, in bytes.
pub(crate) fn peak_memory() -> u64 {
    field("/proc/self/status", "VmHWM:").unwrap_or(0) << 10
}

fn available_memory() -> u64 {
    field("/proc/meminfo", "MemAvailable:").unwrap_or(0) << 10
}

/// Drops the pages of these files from the page cache, written ones too.
pub(crate) fn drop_cached(dir: &Path) {
    for path in files(dir) {
        // The index may remove a file meanwhile.
        if let Ok(file) = std::fs::File::open(path) {
            let _ = file.sync_all();
            rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        }
    }
}

/// The files of a directory that are open, so that their pages are dropped in little time.
#[derive(Debug)]
pub(crate) struct Droppable(Vec<std::fs::File>);

impl Droppable {
    pub(crate) fn new(dir: &Path) -> Droppable {
        Droppable(files(dir).into_iter().filter_map(|path| std::fs::File::open(path).ok()).collect())
    }

    pub(crate) fn drop_cached(&self) {
        self.0.iter().for_each(|file| rustix::fs::fadvise(file, 0, None, Advice::DontNeed).unwrap());
    }
}

pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Bytes of the files of a directory.
pub(crate) fn size_of(dir: &Path) -> u64 {
    files(dir).iter().filter_map(|path| Some(path.metadata().ok()?.len())).sum()
}

/// With swap space, memory that is taken is not used up.
pub(crate) fn has_swap() -> bool {
    field("/proc/meminfo", "SwapTotal:") != Some(0)
}

const CHUNK: usize = 64 << 20;
/// Often enough for a program beside this one that needs memory.
const TICK: Duration = Duration::from_millis(50);

/// Takes memory until only so much is left for everything else, the page cache included, and keeps it so: it returns
/// some if others need it. It is the first process to be ended if memory runs out. It ends when its input does.
pub(crate) fn take_memory(left: u64) {
    std::fs::write("/proc/self/oom_score_adj", "1000").unwrap();
    let (ended, is_ended) = std::sync::mpsc::sync_channel(1);
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        let _ = ended.send(());
    });
    let (mut taken, mut is_ready) = (Vec::new(), false);
    while is_ended.try_recv().is_err() {
        let available = available_memory();
        if available > left + CHUNK as u64 {
            // Each page is written, so that it exists.
            taken.push(vec![1_u8; CHUNK]);
            continue;
        }
        if available + (CHUNK as u64) < left {
            taken.pop();
        }
        if !std::mem::replace(&mut is_ready, true) {
            println!("taken {}", taken.len() * CHUNK);
        }
        std::thread::sleep(TICK);
    }
}

/// Reads of all files.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    pub(crate) calls: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

impl Reads {
    pub(crate) fn now(&self) -> (u64, u64) {
        (self.calls.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// The real disk, with counts of what is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountingDisk(pub(crate) Arc<Reads>);

#[derive(Debug)]
struct CountingFile {
    file: Box<dyn ReadFile>,
    reads: Arc<Reads>,
}

impl ReadFile for CountingFile {
    fn size(&self) -> u64 {
        self.file.size()
    }

    fn is_named(&self) -> bool {
        self.file.is_named()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), DiskError> {
        self.reads.calls.fetch_add(1, Ordering::Relaxed);
        self.reads.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.file.read_at(offset, buffer)
    }

    fn read_cached(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let is_read = self.file.read_cached(offset, buffer);
        if is_read {
            self.reads.calls.fetch_add(1, Ordering::Relaxed);
            self.reads.bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        }
        is_read
    }

    fn read_many(&self, reads: &mut [ReadRequest<'_>]) -> Result<(), DiskError> {
        self.reads.calls.fetch_add(reads.len() as u64, Ordering::Relaxed);
        let bytes: usize = reads.iter().map(|read| read.buffer.len()).sum();
        self.reads.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.file.read_many(reads)
    }

    fn prefetch(&self, offset: u64, size: u64) {
        self.file.prefetch(offset, size);
    }
}

impl Disk for CountingDisk {
    fn kind(&self, path: &Path) -> Result<PathKind, DiskError> {
        RealDisk.kind(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError> {
        Ok(Box::new(CountingFile { file: RealDisk.open(path)?, reads: Arc::clone(&self.0) }))
    }

    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError> {
        RealDisk.list(path)
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        RealDisk.create_dir(path)
    }

    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        RealDisk.write_whole(path, bytes)
    }

    fn append_file(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError> {
        RealDisk.append_file(path)
    }

    fn fixed_file(&self, path: &Path, size: u64) -> Result<Box<dyn FixedFile>, DiskError> {
        RealDisk.fixed_file(path, size)
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        RealDisk.remove_file(path)
    }

    fn truncate_file(&self, path: &Path, size: u64) -> Result<(), DiskError> {
        RealDisk.truncate_file(path, size)
    }

    fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        RealDisk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        RealDisk.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        RealDisk.free_bytes(path)
    }
}
