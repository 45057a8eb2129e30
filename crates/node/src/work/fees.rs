//! The fee estimator of a running node and its file. Input: a session and the mempool. Output: the estimator, which
//! learns from the mempool; `fee_estimates.dat`, read at the start, and written every hour and at the end unless it
//! must stay as it is. Wiring only:
//! `lydian_fees` does the rest.

use crate::clock::{now, now_nanos};
use crate::log::{Category, Log};
use crate::run::Session;
use lydian_disk::Disk;
use lydian_fees::{FEE_ESTIMATES_FILE, FeeEstimates, load, save};
use lydian_mempool::{FeeSource, Mempool};
use lydian_stdx::{IgnorePoison, lock};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// Core's `FEE_FLUSH_INTERVAL`, in seconds.
const FLUSH_INTERVAL: u64 = 60 * 60;

/// How often events that wait are applied if nothing asks for an estimate.
const LOOK: Duration = Duration::from_secs(1);

/// Reads the file and connects the estimator to the mempool. As in Core, a node that accepts no transactions from peers
/// makes no estimates.
pub(super) fn open(session: &Session<'_>, mempool: &Mempool) {
    let settings = &session.settings;
    if settings.mempool.blocks_only {
        return;
    }
    let path = settings.datadir.join(FEE_ESTIMATES_FILE);
    let (estimator, loaded) = load(session.disk.as_ref(), &path, i64::from(now()), settings.acceptstalefeeestimates);
    let (is_warning, lines) = loaded.log_lines(&path);
    for line in lines {
        if is_warning { session.log.warning(line) } else { session.log.info(line) }
    }
    let estimates = FeeEstimates::new(estimator);
    let estimates = Arc::new(if loaded.may_replace() { estimates } else { estimates.leaving_file() });
    mempool.set_fees(FeeSource { estimates, initial_download: Arc::clone(&session.initial_download) });
}

#[derive(Debug)]
struct File {
    estimates: Arc<FeeEstimates>,
    disk: Arc<dyn Disk>,
    path: PathBuf,
    log: Arc<Log>,
}

impl File {
    /// Core's `FlushFeeEstimates`, unless the file must stay as it is.
    fn write(&self) {
        if self.estimates.leaves_file() {
            return;
        }
        let path = self.path.display();
        match save(self.disk.as_ref(), &self.path, &self.estimates.copy()) {
            Ok(()) => self.log.debug(Category::ESTIMATEFEE, || format!("Flushed fee estimates to {path}.")),
            Err(error) => {
                self.log.warning(format!("Failed to write fee estimates to {path}. Continue anyway."));
                self.log.warning(error);
            }
        }
    }

    /// The time in seconds, by a clock that `mockscheduler` moves.
    fn seconds(&self) -> u64 {
        now_nanos() / 1_000_000_000 + self.estimates.forwarded()
    }

    /// Applies events and writes the file at `next` and every hour after that, until the end.
    fn keep(&self, end: &(Mutex<bool>, Condvar), mut next: u64) {
        let mut is_ended = lock(&end.0);
        while !*is_ended {
            is_ended = end.1.wait_timeout(is_ended, LOOK).ignore_poison().0;
            self.estimates.settle();
            if self.seconds() >= next && !*is_ended {
                self.write();
                next = self.seconds() + FLUSH_INTERVAL;
            }
        }
    }
}

/// The file of a running node. At the end, whatever ends the node, the transactions that are unconfirmed count as
/// failures to confirm, and the file is written; so it must be dropped after the mempool has ended.
#[derive(Debug)]
pub(super) struct Keeper {
    file: Arc<File>,
    end: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    /// `None` for a node that estimates nothing.
    pub(super) fn start(session: &Session<'_>, mempool: &Mempool) -> io::Result<Option<Keeper>> {
        let Some(estimates) = mempool.fees().map(Arc::clone) else { return Ok(None) };
        let (disk, log) = (Arc::clone(&session.disk), Arc::clone(&session.log));
        let path = session.settings.datadir.join(FEE_ESTIMATES_FILE);
        let file = Arc::new(File { estimates, disk, path, log });
        let end: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let (kept, ends) = (Arc::clone(&file), Arc::clone(&end));
        // From now on, however late the thread begins: RPC may move the clock before it does.
        let next = file.seconds() + FLUSH_INTERVAL;
        let thread = Builder::new().name("fees".to_owned()).spawn(move || kept.keep(&ends, next))?;
        Ok(Some(Keeper { file, end, thread: Some(thread) }))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        *lock(&self.end.0) = true;
        self.end.1.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was printed by then.
            let _ = thread.join();
        }
        self.file.estimates.flush_unconfirmed();
        self.file.write();
    }
}
