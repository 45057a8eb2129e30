//! Threads that meet on a file, brought there one step at a time by a disk that holds an operation.

use super::*;
use lydian_disk::{AppendFile, Disk, DiskError, Fault, FixedFile, Lock, PathKind, ReadFile};
use lydian_engine::{FollowerError, Tip};
use lydian_stdx::{IgnorePoison, lock};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// A disk on which the file of one name is not written until the test goes on.
#[derive(Debug)]
struct HeldDisk {
    disk: SimDisk,
    state: Mutex<Held>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    /// The name of the file.
    name: &'static str,
    /// An operation waits.
    is_reached: bool,
    /// The names of files that were opened for appending since then.
    appended: HashSet<String>,
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

impl HeldDisk {
    fn new() -> Arc<HeldDisk> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(HeldDisk { disk: SimDisk::new(1), state, changed })
    }

    /// Lets what waits go on. From now on, a write of this file waits; none if the name is empty.
    fn hold(&self, name: &'static str) {
        *lock(&self.state) = Held { name, ..Held::default() };
        self.changed.notify_all();
    }

    /// Waits until a write waits.
    fn wait_until_reached(&self) {
        drop(self.changed.wait_while(lock(&self.state), |held| !held.is_reached).ignore_poison());
    }

    /// Lets what waits go on once a file was opened for appending, or when that does not happen for a while.
    fn release_after_append(&self, name: &str) {
        const LONG: Duration = Duration::from_millis(500);
        let held = lock(&self.state);
        let waited = self.changed.wait_timeout_while(held, LONG, |held| !held.appended.contains(name));
        drop(waited.ignore_poison());
        self.hold("");
    }

    fn pass(&self, path: &Path) {
        let mut held = lock(&self.state);
        let name = name_of(path);
        if held.name == name {
            held.is_reached = true;
            self.changed.notify_all();
            drop(self.changed.wait_while(held, |held| held.name == name).ignore_poison());
        }
    }
}

impl Disk for HeldDisk {
    fn kind(&self, path: &Path) -> Result<PathKind, DiskError> {
        self.disk.kind(path)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadFile>, DiskError> {
        self.disk.open(path)
    }

    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError> {
        self.disk.list(path)
    }

    fn create_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.disk.create_dir(path)
    }

    fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), DiskError> {
        self.pass(path);
        self.disk.write_whole(path, bytes)
    }

    fn append_file(&self, path: &Path) -> Result<Box<dyn AppendFile>, DiskError> {
        self.pass(path);
        let file = self.disk.append_file(path);
        lock(&self.state).appended.insert(name_of(path));
        self.changed.notify_all();
        file
    }

    fn fixed_file(&self, path: &Path, size: u64) -> Result<Box<dyn FixedFile>, DiskError> {
        self.disk.fixed_file(path, size)
    }

    fn remove_file(&self, path: &Path) -> Result<(), DiskError> {
        self.disk.remove_file(path)
    }

    fn truncate_file(&self, path: &Path, size: u64) -> Result<(), DiskError> {
        self.disk.truncate_file(path, size)
    }

    fn sync_dir(&self, path: &Path) -> Result<(), DiskError> {
        self.disk.sync_dir(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Lock>, DiskError> {
        self.disk.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> Result<u64, DiskError> {
        self.disk.free_bytes(path)
    }
}

/// A thread is about to record a segment, and to remove the log of the last group, whose blocks left the chain after a
/// checkpoint; others of the same heights came.
fn before_a_log_is_removed() -> (Arc<HeldDisk>, Chain, TxIndex, TxIndexReader) {
    let held = HeldDisk::new();
    let disk: Arc<dyn Disk> = Arc::clone(&held) as Arc<dyn Disk>;
    let (mut index, reader) = TxIndex::open(disk, Path::new(DIR), BlockHash([1; 32]), FULL, || [5, 6]).unwrap();
    let mut chain = Chain::new(21);
    chain.grow(768 + 10);
    chain.feed(&mut index, &reader);
    held.hold("0000000-0000256.numbers");
    index.checkpoint(reader.tip().unwrap()).unwrap();
    held.wait_until_reached();
    chain.cut(767);
    chain.feed(&mut index, &reader);
    held.hold("commit");
    held.wait_until_reached();
    chain.grow(20);
    chain.feed(&mut index, &reader);
    (held, chain, index, reader)
}

const LOG: &str = "0000768.log";

/// A checkpoint while the thread waits. Returns its result, and the log before and after it.
fn checkpoint(held: &HeldDisk, index: &mut TxIndex, tip: Tip) -> (Result<(), FollowerError>, [Option<Vec<u8>>; 2]) {
    let log = || held.disk.files().remove(&Path::new(DIR).join(LOG));
    let before = log();
    let result = std::thread::scope(|scope| {
        scope.spawn(|| held.release_after_append(LOG));
        index.checkpoint(tip)
    });
    (result, [before, log()])
}

/// Regression: the checkpoint wrote the new blocks to the log that the thread removed then: its record named blocks
/// that no file had.
#[test]
fn the_log_of_a_group_that_is_made_anew_is_kept() {
    let (held, chain, mut index, reader) = before_a_log_is_removed();
    let tip = reader.tip().unwrap();
    let (result, [before, after]) = checkpoint(&held, &mut index, tip);
    drop(index);
    assert_eq!(result, Ok(()));
    assert!(before.is_some() && after.is_some() && before != after);
    let disk = held.disk.kill();
    let (mut index, reader) = open(&disk);
    assert_eq!((reader.tip(), index.durable_tip()), (Some(tip), Some(tip)), "every block of the record");
    chain.compare(&reader, 7);
    settle(&mut index, &reader);
    drop(index);
    assert!(disk.files() == chain.files());
}

/// If the log cannot be removed, nothing is written behind the blocks that left the chain.
#[test]
fn a_log_that_was_not_removed_is_not_continued() {
    let (held, chain, mut index, reader) = before_a_log_is_removed();
    held.disk.fail_at(held.disk.operation_count(), Fault::Io);
    let (result, [before, after]) = checkpoint(&held, &mut index, reader.tip().unwrap());
    drop(index);
    assert!(result.unwrap_err().reason.contains("commit"));
    assert!(before.is_some() && before == after);
    let disk = held.disk.kill();
    let (mut index, reader) = open(&disk);
    chain.feed(&mut index, &reader);
    settle(&mut index, &reader);
    drop(index);
    assert!(disk.files() == chain.files());
}
