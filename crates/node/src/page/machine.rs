//! What the page shows of the machine: where the node's files are and how large they are, the log, the settings.
//!
//! A thread adds up the files of the data directory once a minute, since that takes long with many of them. Nothing
//! here is asked while a block waits.

use super::PageNode;
use super::past::Slot;
use crate::limits::{WALK_DEPTH_MAX, WALK_ENTRIES_MAX};
use crate::log::Log;
use crate::run::Session;
use crate::settings::Shown;
use crate::work::space::Needs;
use lydian_disk::Disk;
use lydian_second_opinion::Monitor;
use lydian_stdx::{IgnorePoison, lock};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between two walks through the data directory: at first short, since the folders come into being, then longer.
const WALK_INTERVAL_MIN: Duration = Duration::from_secs(1);
const WALK_INTERVAL_MAX: Duration = Duration::from_secs(60);

/// What a `stat` counts blocks in.
const STAT_BLOCK_BYTES: u64 = 512;

/// What stays the same while the node runs, and what the threads of the page found.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) cores: u64,
    pub(super) datadir: PathBuf,
    blocks: PathBuf,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) log: Arc<Log>,
    pub(super) shown: Vec<Shown>,
    /// Settings that others have changed.
    pub(super) interactions: Vec<String>,
    pub(super) needs: Needs,
    pub(super) history: Slot,
    /// With `-secondopinion`.
    pub(super) second_opinion: OnceLock<Monitor>,
    folders: Mutex<Option<BTreeMap<String, u64>>>,
}

impl Machine {
    pub(super) fn new(session: &Session<'_>) -> Machine {
        let settings = session.settings;
        Machine {
            cores: thread::available_parallelism().map_or(1, |count| count.get() as u64),
            datadir: settings.datadir.clone(),
            blocks: settings.blocks.clone(),
            disk: Arc::clone(&session.disk),
            log: Arc::clone(&session.log),
            shown: settings.shown.clone(),
            interactions: settings.net.notes.clone(),
            needs: Needs::new(settings),
            history: Slot::new(),
            second_opinion: OnceLock::new(),
            folders: Mutex::default(),
        }
    }

    /// Bytes of each folder, and of the files beside them, as they were added up last.
    pub(super) fn folders(&self) -> Option<BTreeMap<String, u64>> {
        lock(&self.folders).clone()
    }

    /// Free space of the file system of the blocks.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.disk.free_bytes(&self.blocks).ok()
    }

    fn add_up(&self) {
        *lock(&self.folders) = Some(folder_sizes(&self.datadir, &self.blocks));
    }
}

/// Bytes of each folder of a data directory, and of the files beside them.
pub(crate) fn folder_sizes(datadir: &Path, blocks: &Path) -> BTreeMap<String, u64> {
    let mut walk = Walk { folders: BTreeMap::new(), entries_left: WALK_ENTRIES_MAX };
    walk.top(datadir);
    if !blocks.starts_with(datadir) {
        walk.folder("blocks", blocks);
    }
    walk.folders
}

/// A walk through the data directory.
struct Walk {
    folders: BTreeMap<String, u64>,
    entries_left: usize,
}

/// The key of the files that are in no folder.
const FILES: &str = "files";

/// Folders whose own folders are shown each.
const SPLIT: [&str; 2] = ["blocks", "indexes"];

impl Walk {
    fn top(&mut self, datadir: &Path) {
        for (path, metadata) in self.entries(datadir) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match metadata.is_dir() {
                true => self.folder(&name, &path),
                false => self.add(FILES, allocated(&metadata)),
            }
        }
    }

    /// Adds a folder, or the folders in it.
    fn folder(&mut self, name: &str, path: &Path) {
        if !SPLIT.contains(&name) {
            let bytes = self.bytes(path, 0);
            return self.add(name, bytes);
        }
        for (path, metadata) in self.entries(path) {
            let inner = path.file_name().unwrap_or_default().to_string_lossy();
            match metadata.is_dir() {
                true => {
                    let bytes = self.bytes(&path, 0);
                    self.add(&format!("{name}/{inner}"), bytes);
                }
                false => self.add(name, allocated(&metadata)),
            }
        }
    }

    fn add(&mut self, name: &str, bytes: u64) {
        *self.folders.entry(name.to_owned()).or_default() += bytes;
    }

    fn bytes(&mut self, folder: &Path, depth: usize) -> u64 {
        let mut sum = 0;
        for (path, metadata) in self.entries(folder) {
            sum += match metadata.is_dir() {
                true if depth < WALK_DEPTH_MAX => self.bytes(&path, depth + 1),
                true => 0,
                false => allocated(&metadata),
            };
        }
        sum
    }

    /// The entries of a folder; links are not followed, and what cannot be read has no size.
    fn entries(&mut self, folder: &Path) -> Vec<(PathBuf, fs::Metadata)> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let found = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            Some((entry.path(), entry.metadata().ok()?))
        });
        let found: Vec<_> = found.take(self.entries_left).collect();
        self.entries_left -= found.len();
        found
    }
}

/// Bytes that a file occupies: a file with holes needs less than its size.
fn allocated(metadata: &fs::Metadata) -> u64 {
    metadata.blocks() * STAT_BLOCK_BYTES
}

/// The thread that adds up files, until it is dropped.
#[derive(Debug)]
pub(super) struct Folders {
    ending: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Folders {
    pub(super) fn start(node: &Arc<PageNode>) -> io::Result<Folders> {
        let ending = Arc::<(Mutex<bool>, Condvar)>::default();
        let (node, ended) = (Arc::clone(node), Arc::clone(&ending));
        let thread = thread::Builder::new().name("page-folders".to_owned()).spawn(move || {
            let mut interval = WALK_INTERVAL_MIN;
            loop {
                node.machine.add_up();
                let guard = lock(&ended.0);
                let waited = ended.1.wait_timeout_while(guard, interval, |is_ended| !*is_ended);
                if *waited.ignore_poison().0 {
                    return;
                }
                interval = (interval * 2).min(WALK_INTERVAL_MAX);
            }
        })?;
        Ok(Folders { ending, thread: Some(thread) })
    }
}

impl Drop for Folders {
    fn drop(&mut self) {
        *lock(&self.ending.0) = true;
        self.ending.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // If it panicked, that is in the log.
            let _ = thread.join();
        }
    }
}
