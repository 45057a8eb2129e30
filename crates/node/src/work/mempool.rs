//! The mempool of a running node. Input: a session; the engine, once it is open. Output: the mempool, which accepts
//! transactions. Wiring only: `lydian_mempool` does the rest.

use super::Task;
use super::opening::secret;
use crate::clock::{mockable_now, now_nanos};
use crate::log::Log;
use crate::run::Session;
use crate::signals::Stop;
use lydian_disk::Disk;
use lydian_engine::Engine;
use lydian_mempool::files::{Key, MEMPOOL_FILE};
use lydian_mempool::{Clock, ImportError, ImportOptions, Mempool, Report, Secrets};
use lydian_rpc::MempoolFile;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// An empty mempool, if the node runs: tasks that end by themselves have none. Its follower and its verified scripts go
/// to the engine before it is opened.
pub(super) fn new(session: &Session<'_>, task: &Task) -> Option<Arc<Mempool>> {
    let is_running = matches!(task, Task::Run);
    let secrets = || Secrets { salt: secret(), seed: u64::from_le_bytes(secret()) };
    is_running.then(|| Arc::new(Mempool::new(session.settings.mempool.clone(), Arc::new(NodeClock), secrets())))
}

/// Lets it accept transactions.
pub(super) fn start(session: &Session<'_>, mempool: &Mempool, engine: &Arc<Engine>) -> io::Result<()> {
    mempool.start(Arc::clone(engine), session.settings.threads)
}

/// Ends the mempool when the node ends, whatever ends it: its thread keeps the engine open.
#[derive(Debug)]
pub(super) struct End(pub(super) Arc<Mempool>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The file, for the calls that read and write it.
pub(super) fn file(session: &Session<'_>) -> MempoolFile {
    let (disk, path) = (Arc::clone(&session.disk), session.settings.datadir.join(MEMPOOL_FILE));
    MempoolFile { disk, path, new_key: secret }
}

/// The time of Core's `GetTime`, which `setmocktime` sets.
#[derive(Debug)]
struct NodeClock;

impl Clock for NodeClock {
    fn unix_seconds(&self) -> i64 {
        i64::try_from(mockable_now()).unwrap_or(i64::MAX)
    }
}

/// `mempool.dat`: read in the background at the start, written at the end.
#[derive(Debug)]
pub(super) struct File {
    mempool: Arc<Mempool>,
    surroundings: Surroundings,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    loading: JoinHandle<()>,
}

impl File {
    /// Reads the file in a thread, if `-persistmempool` is on. Core's `initload` does it after the blocks on disk.
    pub(super) fn load(session: &Session<'_>, mempool: &Arc<Mempool>) -> io::Result<File> {
        let (log, stop) = (Arc::clone(&session.log), session.stop.clone());
        let surroundings = Surroundings { log, stop, is_ending: Arc::default() };
        let (disk, path) = (Arc::clone(&session.disk), session.settings.datadir.join(MEMPOOL_FILE));
        let (pool, around, from, name) = (Arc::clone(mempool), surroundings.clone(), Arc::clone(&disk), path.clone());
        let load = move || {
            let mut is_cut_short = false;
            if pool.settings().persist {
                // Its result is in the log, and if the file is bad, the node goes on, as in Core.
                let loaded = lydian_mempool::load(&pool, from.as_ref(), &name, ImportOptions::default(), &around);
                is_cut_short = matches!(loaded, Err(ImportError::Mempool(_)));
            }
            if !around.is_stopping() && !is_cut_short {
                pool.set_loaded();
            }
        };
        let loading = Builder::new().name("mempoolload".to_owned()).spawn(load)?;
        Ok(File { mempool: Arc::clone(mempool), surroundings, disk, path, loading })
    }

    /// Writes the file, if `-persistmempool` is on. A file that was not read to its end is kept as it is.
    pub(super) fn save(self) {
        self.surroundings.is_ending.store(true, Ordering::Relaxed);
        // A panic was printed by then.
        let _ = self.loading.join();
        let settings = self.mempool.settings();
        if settings.persist && self.mempool.snapshot().info().is_loaded {
            let key = (!settings.persist_v1).then(|| Key(secret()));
            // Its result is in the log.
            let _ = lydian_mempool::dump(&self.mempool, self.disk.as_ref(), &self.path, key, &self.surroundings);
        }
    }
}

#[derive(Clone, Debug)]
struct Surroundings {
    log: Arc<Log>,
    stop: Stop,
    /// The node ends without a request to stop, after a failure or at `-stopatheight`.
    is_ending: Arc<AtomicBool>,
}

impl Report for Surroundings {
    fn log(&self, line: String) {
        self.log.info(line);
    }

    fn steady_micros(&self) -> u64 {
        now_nanos() / 1_000
    }

    fn is_stopping(&self) -> bool {
        self.stop.is_asked() || self.is_ending.load(Ordering::Relaxed)
    }
}
