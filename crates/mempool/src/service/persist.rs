//! `mempool.dat` and the pool: Core's `LoadMempool` and `DumpMempool` (node/mempool_persist.cpp).
//!
//! Input: a file, or the pool. Output: the pool with the transactions of the file that are accepted now, or the file;
//! Core's log lines, through a [`Report`].
//!
//! Transactions of a file are queued as those of peers are, so that they are decided in batches; their order and the
//! result are those of one after another. At most [`IN_FLIGHT_MAX`] wait at a time, which leaves peers their places in
//! the queue. If a file ends early, what was accepted stays.

use super::worker::Arrival;
use super::{Done, Mempool, Shared, SubmitError};
use crate::files::{Dump, DumpedTx, Key, LoadError, LoadProblem, Loader, Record};
use crate::limits::BATCH_MAX;
use crate::pool::Member;
use lydian_disk::{Disk, DiskError};
use lydian_primitives::{Transaction, Txid};
use lydian_stdx::{IgnorePoison, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Transactions of a file that wait for a decision: two batches, so that the accepting thread has always one.
const IN_FLIGHT_MAX: usize = 2 * BATCH_MAX;

/// How long to wait before a full queue is tried again, or an ended pool is noticed.
const STEP: Duration = Duration::from_millis(10);

/// The program around: log, clock, shutdown.
pub trait Report {
    /// Logs a line at the level of information.
    fn log(&self, line: String);

    /// Microseconds since an arbitrary start; never goes backwards.
    fn steady_micros(&self) -> u64;

    /// Whether the node is stopping.
    fn is_stopping(&self) -> bool;
}

/// What is taken over from a file: Core's `ImportMempoolOptions`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportOptions {
    /// Transactions came now, and not at the time that the file states.
    pub use_current_time: bool,
    pub apply_fee_delta_priority: bool,
    pub apply_unbroadcast_set: bool,
}

/// With the defaults of Core's struct, for a file of the node itself.
impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions { use_current_time: false, apply_fee_delta_priority: true, apply_unbroadcast_set: true }
    }
}

/// What became of the transactions of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Imported {
    pub accepted: u64,
    pub failed: u64,
    pub expired: u64,
    /// Not accepted, since the pool has them.
    pub already_there: u64,
    /// Transactions of the file that no peer had requested.
    pub unbroadcast: u64,
}

/// Core's log line.
impl fmt::Display for Imported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Imported { accepted, failed, expired, already_there, unbroadcast } = self;
        write!(
            f,
            "Imported mempool transactions from file: {accepted} succeeded, {failed} failed, {expired} expired, \
             {already_there} already there, {unbroadcast} waiting for initial broadcast"
        )
    }
}

/// Why a file was not read to its end.
#[derive(Clone, Debug)]
pub enum ImportError {
    File(LoadError),
    /// The pool cannot decide now.
    Mempool(SubmitError),
    /// The node is stopping.
    Stopped,
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::File(error) => error.fmt(f),
            ImportError::Mempool(error) => error.fmt(f),
            ImportError::Stopped => f.write_str("the node is stopping"),
        }
    }
}

impl std::error::Error for ImportError {}

/// Reads a file into the pool.
pub fn load(
    mempool: &Mempool,
    disk: &dyn Disk,
    path: &Path,
    options: ImportOptions,
    report: &dyn Report,
) -> Result<Imported, ImportError> {
    let loaded = match Loader::open(disk, path) {
        Ok(loader) => Import::new(mempool, options, report).run(loader),
        Err(error) if matches!(error.problem, LoadProblem::Disk(_)) => {
            report.log("Failed to open mempool file. Continuing anyway.".to_owned());
            return Err(ImportError::File(error));
        }
        Err(error) => Err(ImportError::File(error)),
    };
    match &loaded {
        Ok(imported) => report.log(imported.to_string()),
        Err(ImportError::Stopped) => {}
        Err(error) => {
            report.log(format!("Failed to deserialize mempool data on file: {error}. Continuing anyway."));
        }
    }
    loaded
}

/// Results that came, and how many did not yet.
#[derive(Debug, Default)]
struct Progress {
    in_flight: usize,
    imported: Imported,
    failure: Option<SubmitError>,
}

/// What is applied after the transactions of a file.
#[derive(Debug, Default)]
struct Rest {
    /// Fee deltas of the last transactions, which expired.
    expired: Vec<(Txid, i64)>,
    /// Fee deltas of transactions that are not in the file.
    deltas: BTreeMap<Txid, i64>,
    unbroadcast: BTreeSet<Txid>,
    unbroadcast_count: u64,
}

/// A file on its way into the pool.
struct Import<'a> {
    mempool: &'a Mempool,
    options: ImportOptions,
    report: &'a dyn Report,
    now: i64,
    progress: Arc<(Mutex<Progress>, Condvar)>,
}

impl<'a> Import<'a> {
    fn new(mempool: &'a Mempool, options: ImportOptions, report: &'a dyn Report) -> Import<'a> {
        Import { mempool, options, report, now: mempool.shared.now(), progress: Arc::default() }
    }

    fn run(self, mut loader: Loader) -> Result<Imported, ImportError> {
        let mut rest = Rest::default();
        let read = self.read(&mut loader, &mut rest);
        if matches!(read, Err(ImportError::Stopped)) {
            return Err(ImportError::Stopped);
        }
        let decided = self.wait_until(1);
        if decided.is_ok() {
            self.mempool.prioritise_all(std::mem::take(&mut rest.expired));
            // As in Core, they count even if the rest of the file is missing.
            if loader.has_read_deltas() {
                self.mempool.prioritise_all(std::mem::take(&mut rest.deltas));
            }
        }
        read.and(decided)?;
        self.mempool.add_all_unbroadcast(rest.unbroadcast);
        Ok(Imported { unbroadcast: rest.unbroadcast_count, ..lock(&self.progress.0).imported })
    }

    /// Queues the transactions. What is left to do at the end is added to `rest`.
    fn read(&self, loader: &mut Loader, rest: &mut Rest) -> Result<(), ImportError> {
        let total = loader.transaction_count();
        self.report.log(format!("Loading {total} mempool transactions from file..."));
        let (mut tried, mut tenth) = (0_u64, 0);
        while let Some(record) = loader.next_record().map_err(ImportError::File)? {
            match record {
                Record::Transaction { transaction, time, fee_delta } => {
                    self.report_progress(tried, total, &mut tenth);
                    tried += 1;
                    self.take(transaction, time, fee_delta, &mut rest.expired)?;
                    if self.report.is_stopping() {
                        return Err(ImportError::Stopped);
                    }
                }
                Record::Delta { txid, delta } => {
                    if self.options.apply_fee_delta_priority {
                        rest.deltas.entry(txid).or_insert(delta);
                    }
                }
                Record::Unbroadcast(txid) => {
                    if self.options.apply_unbroadcast_set {
                        if rest.unbroadcast_count == 0 {
                            // Which of them were accepted is known from now on.
                            self.wait_until(1)?;
                        }
                        rest.unbroadcast_count += 1;
                        if self.mempool.snapshot().get(&txid).is_some() {
                            rest.unbroadcast.insert(txid);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Core's line at every tenth.
    fn report_progress(&self, tried: u64, total: u64, tenth: &mut u64) {
        let percent = tried.saturating_mul(100) / total.max(1);
        if *tenth < percent / 10 {
            let left = total.saturating_sub(tried);
            self.report.log(format!(
                "Progress loading mempool transactions from file: {percent}% (tried {tried}, {left} remaining)"
            ));
            *tenth = percent / 10;
        }
    }

    /// Queues a transaction, if it did not expire. The fee delta of one that did is added to `expired`, to be applied
    /// with those of its neighbours.
    fn take(
        &self,
        tx: Transaction,
        time: i64,
        fee_delta: i64,
        expired: &mut Vec<(Txid, i64)>,
    ) -> Result<(), ImportError> {
        let time = if self.options.use_current_time { self.now } else { time };
        let fee_delta = if self.options.apply_fee_delta_priority { fee_delta } else { 0 };
        let expiry = i64::try_from(self.mempool.settings().expiry.as_secs()).unwrap_or(i64::MAX);
        if time <= self.now.saturating_sub(expiry) {
            if fee_delta != 0 {
                expired.push((tx.view().txid(), fee_delta));
            }
            lock(&self.progress.0).imported.expired += 1;
            return Ok(());
        }
        if !expired.is_empty() {
            // After the decisions about those before them.
            self.wait_until(1)?;
            self.mempool.prioritise_all(expired.drain(..));
        }
        self.wait_until(IN_FLIGHT_MAX)?;
        lock(&self.progress.0).in_flight += 1;
        let arrival = Arrival { is_test: false, time: Some(time), fee_delta };
        let tx = Arc::new(tx);
        while !self.mempool.offer_as(Arc::clone(&tx), arrival, self.done(tx.view().txid())) {
            // The queue is full of what peers sent, or the pool has ended.
            let is_ended = self.mempool.jobs.get().is_none() || self.mempool.shared.is_ended.load(Ordering::Relaxed);
            if is_ended || self.report.is_stopping() {
                lock(&self.progress.0).in_flight -= 1;
                return Err(if is_ended { ImportError::Mempool(SubmitError::Ended) } else { ImportError::Stopped });
            }
            let progress = lock(&self.progress.0);
            drop(self.progress.1.wait_timeout(progress, STEP).ignore_poison());
        }
        Ok(())
    }

    /// Counts the result for a transaction.
    fn done(&self, txid: Txid) -> Done {
        let (shared, progress): (Arc<Shared>, _) = (Arc::clone(&self.mempool.shared), Arc::clone(&self.progress));
        Box::new(move |answer| {
            // As in Core, it is there whatever the reason was.
            let is_there = answer.is_err() && lock(&shared.published).get(&txid).is_some();
            let mut found = lock(&progress.0);
            found.in_flight -= 1;
            match answer {
                Ok(_) => found.imported.accepted += 1,
                Err(SubmitError::Rejected(_)) if is_there => found.imported.already_there += 1,
                Err(SubmitError::Rejected(_)) => found.imported.failed += 1,
                Err(failure) => found.failure = Some(failure),
            }
            drop(found);
            progress.1.notify_all();
        })
    }

    /// Waits until fewer transactions than this are undecided.
    fn wait_until(&self, below: usize) -> Result<(), ImportError> {
        let mut progress = lock(&self.progress.0);
        while progress.in_flight >= below {
            // A decision may be long in coming: a transaction waits for the end of a reorganisation.
            if self.report.is_stopping() {
                return Err(ImportError::Stopped);
            }
            if self.mempool.shared.is_ended.load(Ordering::Relaxed) {
                return Err(ImportError::Mempool(SubmitError::Ended));
            }
            progress = self.progress.1.wait_timeout(progress, STEP).ignore_poison().0;
        }
        match &progress.failure {
            Some(failure) => Err(ImportError::Mempool(failure.clone())),
            None => Ok(()),
        }
    }
}

/// Writes the pool to a file. Returns the size in bytes; the old file stays if this fails. `key` is the random key of
/// the file, `None` for a file of version 1 (`-persistmempoolv1`).
pub fn dump(
    mempool: &Mempool,
    disk: &dyn Disk,
    path: &Path,
    key: Option<Key>,
    report: &dyn Report,
) -> Result<u64, DiskError> {
    let begin = report.steady_micros();
    let _one_at_a_time = lock(&mempool.dumping);
    let snapshot = mempool.snapshot();
    let members = snapshot.in_mining_order();
    let middle = report.steady_micros();
    let transactions: Vec<DumpedTx<'_>> = members.iter().copied().map(dumped).collect();
    let deltas = snapshot.deltas().sorted();
    let unbroadcast: BTreeSet<Txid> = snapshot.unbroadcast().sorted().into_keys().collect();
    report.log(format!("Writing {} mempool transactions to file...", transactions.len()));
    report.log(format!("Writing {} unbroadcast transactions to file.", unbroadcast.len()));
    let saved = Dump { transactions, deltas, unbroadcast }.save(disk, path, key);
    let end = report.steady_micros();
    #[allow(clippy::cast_precision_loss, reason = "durations in a log line")]
    let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e6;
    let (copy, write) = (seconds(begin, middle), seconds(middle, end));
    report.log(match &saved {
        Ok(bytes) => {
            format!("Dumped mempool: {copy:.3}s to copy, {write:.3}s to dump, {bytes} bytes dumped to file")
        }
        Err(error) => format!("Failed to dump mempool: {error}. Continuing anyway."),
    });
    saved
}

fn dumped(member: &Member) -> DumpedTx<'_> {
    let entry = member.entry();
    let fee_delta = member.modified_fee().saturating_sub(entry.fee().0);
    DumpedTx { tx: entry.tx().view(), time: entry.time(), fee_delta }
}
