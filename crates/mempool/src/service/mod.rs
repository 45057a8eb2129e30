//! [`Mempool`]: the pool at work in a node.
//!
//! Input: transactions from any thread, the blocks of the chain through a follower of the engine, the time. Output:
//! verdicts, a [`Snapshot`] that any thread reads without waiting, the [`Feed`] of changes.
//!
//! One thread accepts ([`worker`]). It looks up coins and verifies the scripts of single transactions without holding
//! the pool; if the tip moved meanwhile, it decides again. A block that joins the chain waits for the decisions about
//! one batch or one package at most. Invariants: the published pool is always that of its tip; readers never wait for
//! the writer.

mod fees;
mod follower;
mod headers;
mod persist;
mod records;
mod worker;

pub use fees::FeeSource;
pub use persist::{ImportError, ImportOptions, Imported, Report, dump, load};
pub use records::{Mined, Records, Reject, Replacement};
pub use worker::SubmitError;

use crate::limits::{QUEUE_BYTES_MAX, QUEUE_MAX};
use crate::policy::{FeeRate, Settings};
use crate::pool::{Accepted, Feed, PackageResult, Pool, Snapshot};
use crate::scripts::{OnWrong, ScriptCache, SecondCheck};
use follower::PoolFollower;
use lydian_consensus::KnownScripts;
use lydian_engine::{Engine, Event, Follower, Observer, Tip};
use lydian_fees::FeeEstimates;
use lydian_primitives::{Amount, BlockHash, Height, Transaction, Txid};
use lydian_script::Flags;
use lydian_stdx::{AbortOnPanic, IgnorePoison, lock};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use worker::{Arrival, Callback, Job, Reply, Worker};

/// The time of the node, which a test may set: Core's `GetTime`.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Seconds since 1970.
    fn unix_seconds(&self) -> i64;
}

/// Secrets of the process.
#[derive(Clone, Copy)]
pub struct Secrets {
    /// For the keys of the script cache.
    pub salt: [u8; 32],
    /// For the choice of the transactions that are verified twice.
    pub seed: u64,
}

/// What the follower, the accepting thread and the readers share.
struct Shared {
    settings: Settings,
    pool: Mutex<Pool>,
    /// The chain moved.
    moved: Condvar,
    published: Mutex<Arc<Snapshot>>,
    feed: Arc<Feed>,
    records: Records,
    fees: OnceLock<FeeSource>,
    clock: Arc<dyn Clock>,
    cache: Arc<ScriptCache>,
    /// Calls that disconnect blocks one after another are under way: [`StepwiseDisconnect`].
    stepwise: AtomicUsize,
    /// The chain stays as it is, even if a better one is known.
    is_chain_final: AtomicBool,
    /// What leaves the chain now does not return.
    drops_disconnected: AtomicBool,
    /// Bytes of the transactions in the queue.
    queued_bytes: AtomicUsize,
    is_ended: AtomicBool,
}

impl Shared {
    fn now(&self) -> i64 {
        self.clock.unix_seconds()
    }

    /// Shows readers the pool as it is now, and unlocks it. During a reorganisation they keep the last whole pool.
    fn publish(&self, pool: MutexGuard<'_, Pool>) {
        // Freeing the snapshot takes long if no reader has it: 10 ms with 170,000 transactions.
        drop(self.replace_snapshot(pool));
    }

    /// Publishes the pool. Returns the snapshot that was published before, with the pool unlocked.
    fn replace_snapshot(&self, mut pool: MutexGuard<'_, Pool>) -> Option<Arc<Snapshot>> {
        if let Some(fees) = self.fees.get() {
            fees.estimates.push(pool.take_fee_events());
        }
        if pool.is_reorganising() {
            self.feed.push(pool.take_changes());
            return None;
        }
        let snapshot = Arc::new(pool.snapshot(self.now()));
        // The feed first: a reader that takes the snapshot and then the changes from its number on misses none. Both
        // under the lock: a reader that the feed wakes finds the snapshot with its changes, and need not look again.
        let mut published = lock(&self.published);
        self.feed.push(pool.take_changes());
        Some(std::mem::replace(&mut *published, snapshot))
    }
}

/// What is called with the answer to a queued transaction.
type Done = Box<dyn FnOnce(Result<Accepted, SubmitError>) + Send>;

/// The pool of a node. For use from any thread.
pub struct Mempool {
    shared: Arc<Shared>,
    seed: u64,
    /// Held while `mempool.dat` is written.
    dumping: Mutex<()>,
    jobs: OnceLock<SyncSender<Job>>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

impl Mempool {
    /// An empty pool, made before the engine is opened: the engine gets its [`Mempool::follower`] and its
    /// [`Mempool::known_scripts`].
    pub fn new(settings: Settings, clock: Arc<dyn Clock>, secrets: Secrets) -> Mempool {
        let now = clock.unix_seconds();
        // Until the engine is open, there is no tip.
        let mut pool = Pool::new(settings.clone(), Tip { height: Height(0), hash: BlockHash::ZERO }, now);
        // Half for scripts and half for signatures, as in Core, which keeps single signatures too.
        let bytes = usize::try_from(settings.sigcache_bytes_max / 2).unwrap_or(usize::MAX);
        let cache = Arc::new(ScriptCache::new(bytes, Flags::STANDARD, secrets.salt));
        let snapshot = Arc::new(pool.snapshot(now));
        let feed = Arc::new(Feed::new(pool.sequence()));
        let shared = Shared {
            settings,
            pool: Mutex::new(pool),
            moved: Condvar::new(),
            published: Mutex::new(snapshot),
            feed,
            records: Records::default(),
            fees: OnceLock::new(),
            clock,
            cache,
            stepwise: AtomicUsize::new(0),
            is_chain_final: AtomicBool::new(false),
            drops_disconnected: AtomicBool::new(false),
            queued_bytes: AtomicUsize::new(0),
            is_ended: AtomicBool::new(false),
        };
        let (shared, worker, dumping) = (Arc::new(shared), Mutex::default(), Mutex::default());
        Mempool { shared, seed: secrets.seed, dumping, jobs: OnceLock::new(), worker }
    }

    /// The follower that passes the blocks of the chain to the pool.
    pub fn follower(&self) -> Box<dyn Follower> {
        Box::new(PoolFollower::new(Arc::clone(&self.shared)))
    }

    /// The transactions whose scripts were verified, for `lydian_engine::Settings::known_scripts`.
    pub fn known_scripts(&self) -> Arc<dyn KnownScripts> {
        Arc::<ScriptCache>::clone(&self.shared.cache)
    }

    /// Begins to accept transactions, with `threads` to verify scripts. The engine must have the pool's follower. Until
    /// then, and after [`Mempool::end`], submissions are answered with [`SubmitError::Ended`].
    pub fn start(&self, engine: Arc<Engine>, threads: usize) -> io::Result<()> {
        {
            let mut pool = lock(&self.shared.pool);
            if pool.tip.hash == BlockHash::ZERO {
                pool.tip = engine.snapshot().tip();
                if engine.durable_tip().is_none() {
                    // At its first start, Core connects the genesis block as any other.
                    pool.updated();
                }
            }
            self.shared.publish(pool);
        }
        self.shared.cache.watch(Arc::clone(engine.signatures()));
        let shared = Arc::downgrade(&self.shared);
        let on_wrong: Box<OnWrong> = Box::new(move |found| {
            let Some(shared) = shared.upgrade() else { return };
            shared.cache.clear();
            if let Some((spend, _)) = found {
                let mut pool = lock(&shared.pool);
                pool.remove_invalid_transaction(&spend.tx().view().txid());
                shared.publish(pool);
            }
        });
        let second = SecondCheck::start(Arc::clone(engine.signatures()), Flags::STANDARD, self.seed, on_wrong)?;
        let (jobs, queue) = sync_channel(QUEUE_MAX);
        let worker = Worker::new(Arc::clone(&self.shared), engine, second, threads);
        let run = move || {
            let _guard = AbortOnPanic;
            worker.run(&queue);
        };
        let thread = Builder::new().name("mempool".to_owned()).spawn(run)?;
        *lock(&self.worker) = Some(thread);
        // A pool is started once.
        let _ = self.jobs.set(jobs);
        Ok(())
    }

    /// The node is stopping and the chain moves no more: a reorganisation that was interrupted counts as over, so that
    /// nothing waits for its end.
    pub fn set_chain_final(&self) {
        self.shared.is_chain_final.store(true, Ordering::Relaxed);
        self.shared.moved.notify_all();
    }

    /// Ends the accepting thread; what waits is answered with [`SubmitError::Ended`].
    pub fn end(&self) {
        // Whatever the thread waits for.
        self.shared.is_ended.store(true, Ordering::Relaxed);
        self.shared.moved.notify_all();
        if let Some(jobs) = self.jobs.get() {
            // It fails only if the thread has ended.
            let _ = jobs.send(Job::End);
        }
        if let Some(thread) = lock(&self.worker).take() {
            // A panic was printed by then.
            let _ = thread.join();
        }
        self.shared.feed.end();
    }

    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// The pool as it is now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&lock(&self.shared.published))
    }

    /// The changes of the pool.
    pub fn feed(&self) -> &Arc<Feed> {
        &self.shared.feed
    }

    /// The last rejections and replacements, once they are switched on.
    pub fn records(&self) -> &Records {
        &self.shared.records
    }

    /// Has the estimator learn from what happens from now on. To be called once, before the pool is started.
    pub fn set_fees(&self, fees: FeeSource) {
        if self.shared.fees.set(fees).is_ok() {
            lock(&self.shared.pool).keep_fee_events();
        }
    }

    /// The fee estimator; `None` if the node has none.
    pub fn fees(&self) -> Option<&Arc<FeeEstimates>> {
        self.shared.fees.get().map(|fees| &fees.estimates)
    }

    /// Records a rejection of a transaction that was tried first, before it would have been submitted.
    pub fn note_rejected(&self, tx: &Transaction, error: &SubmitError) {
        if let SubmitError::Rejected(rejection) = error {
            self.shared.records.rejected(tx, rejection, self.shared.now());
        }
    }

    /// Accepts a transaction, or says why not; with `is_test`, the pool stays as it is. Waits for its turn.
    pub fn submit(&self, tx: Arc<Transaction>, is_test: bool) -> Result<Accepted, SubmitError> {
        let arrival = Arrival { is_test, ..Arrival::default() };
        self.ask(|reply| Job::Accept { tx, arrival, reply })?
    }

    /// Queues a transaction of a peer; `done` is called by the accepting thread, also at its end. Returns false if the
    /// queue is full: it has [`QUEUE_MAX`] places and room for [`QUEUE_BYTES_MAX`].
    pub fn offer(&self, tx: Arc<Transaction>, done: Done) -> bool {
        self.offer_as(tx, Arrival::default(), done)
    }

    fn offer_as(&self, tx: Arc<Transaction>, arrival: Arrival, done: Done) -> bool {
        let bytes = tx.as_bytes().len();
        self.queue(bytes, || Job::Accept { tx, arrival, reply: Reply::Call(Callback::new(done)) })
    }

    /// Queues a package of peers like [`Mempool::offer`]. It is accepted as far as possible.
    pub fn offer_package(
        &self,
        txs: Vec<Arc<Transaction>>,
        done: Box<dyn FnOnce(Result<PackageResult, SubmitError>) + Send>,
    ) -> bool {
        let bytes = txs.iter().map(|tx| tx.as_bytes().len()).sum();
        self.queue(bytes, || Job::Package { txs, feerate_max: None, reply: Reply::Call(Callback::new(done)) })
    }

    /// Queues a job of a peer, if there is room.
    fn queue(&self, bytes: usize, job: impl FnOnce() -> Job) -> bool {
        let queued = &self.shared.queued_bytes;
        let is_over = |all: usize| (all + bytes <= QUEUE_BYTES_MAX).then_some(all + bytes);
        if queued.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_over).is_err() {
            return false;
        }
        let is_queued = self.jobs.get().is_some_and(|jobs| match jobs.try_send(job()) {
            Ok(()) => true,
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => {
                job.forget();
                false
            }
        });
        if !is_queued {
            queued.fetch_sub(bytes, Ordering::Relaxed);
        }
        is_queued
    }

    /// Accepts a package as far as possible: `submitpackage`.
    pub fn submit_package(
        &self,
        txs: Vec<Arc<Transaction>>,
        feerate_max: Option<FeeRate>,
    ) -> Result<PackageResult, SubmitError> {
        self.ask(|reply| Job::Package { txs, feerate_max, reply })?
    }

    /// Tries several transactions without changing the pool: `testmempoolaccept`.
    pub fn test_package(&self, txs: Vec<Arc<Transaction>>) -> Result<PackageResult, SubmitError> {
        self.ask(|reply| Job::TestPackage { txs, reply })?
    }

    /// Waits until the pool has everything of a reorganisation that is over: transactions that return are in it.
    pub fn settle(&self) {
        // Without the thread there is nothing to wait for.
        let _ = self.ask(|reply| Job::Settle { whole: true, reply });
    }

    /// Has the accepting thread end a reorganisation, if one is under way for the pool, once no better chain is known.
    /// To be called when a block is settled; it does not wait.
    pub fn settle_soon(&self) {
        if lock(&self.shared.pool).is_reorganising()
            && let Some(jobs) = self.jobs.get()
        {
            let (reply, _) = sync_channel(1);
            // If the queue is full, the next transaction in it does the same.
            let _ = jobs.try_send(Job::Settle { whole: true, reply: Reply::Channel(reply) });
        }
    }

    /// Waits a moment for the pool to reach a block. Returns whether it did.
    pub fn wait_for(&self, tip: &BlockHash) -> bool {
        let is_behind = |pool: &mut Pool| pool.tip.hash != *tip;
        let waited = self.shared.moved.wait_timeout_while(lock(&self.shared.pool), PATIENCE, is_behind);
        !waited.ignore_poison().1.timed_out()
    }

    fn ask<T: Send + 'static>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, SubmitError> {
        let (reply, answer) = sync_channel(1);
        let jobs = self.jobs.get().ok_or(SubmitError::Ended)?;
        jobs.send(job(Reply::Channel(reply))).map_err(|_| SubmitError::Ended)?;
        answer.recv().map_err(|_| SubmitError::Ended)
    }

    /// Adds to the fee by which a transaction is ordered, in satoshi: `prioritisetransaction`. Returns the new sum.
    pub fn prioritise(&self, txid: &Txid, delta: i64) -> Amount {
        let mut pool = lock(&self.shared.pool);
        let sum = pool.prioritise(txid, delta);
        self.shared.publish(pool);
        Amount(sum)
    }

    /// The same for many transactions, in this order.
    pub fn prioritise_all(&self, deltas: impl IntoIterator<Item = (Txid, i64)>) {
        let mut pool = lock(&self.shared.pool);
        for (txid, delta) in deltas {
            pool.prioritise(&txid, delta);
        }
        self.shared.publish(pool);
    }

    /// Marks a transaction of the pool as one that no peer is known to have seen.
    pub fn add_unbroadcast(&self, txid: Txid) {
        self.add_all_unbroadcast([txid]);
    }

    /// The same for many transactions.
    pub fn add_all_unbroadcast(&self, txids: impl IntoIterator<Item = Txid>) {
        let mut pool = lock(&self.shared.pool);
        txids.into_iter().for_each(|txid| pool.add_unbroadcast(txid));
        self.shared.publish(pool);
    }

    /// A peer has a transaction.
    pub fn remove_unbroadcast(&self, txid: &Txid) {
        let mut pool = lock(&self.shared.pool);
        pool.remove_unbroadcast(txid);
        self.shared.publish(pool);
    }

    /// Like [`Mempool::remove_unbroadcast`], but does not wait for the pool. If the queue is full, the transaction
    /// stays marked until another peer has it.
    pub fn note_broadcast(&self, txid: Txid) {
        if self.snapshot().unbroadcast().contains(&txid)
            && let Some(jobs) = self.jobs.get()
        {
            let _ = jobs.try_send(Job::Broadcast(txid));
        }
    }

    /// `mempool.dat` was read, or need not be.
    pub fn set_loaded(&self) {
        let mut pool = lock(&self.shared.pool);
        pool.is_loaded = true;
        self.shared.publish(pool);
    }

    /// What a transaction must pay now: Core's `GetMinFee`. It falls with time.
    pub fn min_fee(&self) -> FeeRate {
        let now = self.shared.now();
        lock(&self.shared.pool).min_fee(now)
    }

    /// Like [`Mempool::min_fee`], but does not wait for the pool: while it is in use, the minimum is that of the last
    /// snapshot.
    pub fn min_fee_at_once(&self) -> FeeRate {
        let now = self.shared.now();
        match self.shared.pool.try_lock() {
            Ok(pool) => pool.min_fee(now),
            Err(_) => self.snapshot().info().min_fee,
        }
    }
}

/// How long [`Mempool::wait_for`] waits.
const PATIENCE: Duration = Duration::from_millis(100);

impl Drop for Mempool {
    fn drop(&mut self) {
        self.end();
    }
}

/// An observer for a call that disconnects blocks one after another, as `invalidateblock`: transactions return to the
/// pool after each block, as in Core, and not only after the last one; those of the eleventh block and later do not
/// return. The call waits for the accepting thread meanwhile, which needs nothing that the call holds.
pub struct StepwiseDisconnect<'a> {
    mempool: &'a Mempool,
    observer: &'a dyn Observer,
    /// The search for the best chain has begun: what it disconnects returns at its end.
    is_reorganising: AtomicBool,
    /// Blocks disconnected so far.
    disconnected: AtomicUsize,
}

/// The blocks whose transactions return: Core's `InvalidateBlock`.
const RETURNING_BLOCKS: usize = 10;

impl<'a> StepwiseDisconnect<'a> {
    pub fn new(mempool: &'a Mempool, observer: &'a dyn Observer) -> StepwiseDisconnect<'a> {
        mempool.shared.stepwise.fetch_add(1, Ordering::Relaxed);
        let (is_reorganising, disconnected) = (AtomicBool::new(false), AtomicUsize::new(0));
        StepwiseDisconnect { mempool, observer, is_reorganising, disconnected }
    }

    fn end_steps(&self) {
        if !self.is_reorganising.swap(true, Ordering::Relaxed) {
            self.mempool.shared.stepwise.fetch_sub(1, Ordering::Relaxed);
            self.mempool.shared.drops_disconnected.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for StepwiseDisconnect<'_> {
    fn drop(&mut self) {
        self.end_steps();
    }
}

impl fmt::Debug for StepwiseDisconnect<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepwiseDisconnect").field("mempool", &self.mempool).finish_non_exhaustive()
    }
}

impl Observer for StepwiseDisconnect<'_> {
    fn event(&self, event: &Event<'_>) {
        self.observer.event(event);
        match event {
            Event::Reorganisation { .. } => self.end_steps(),
            Event::UpdateTip(tip) if tip.is_disconnect => {
                let before = self.disconnected.fetch_add(1, Ordering::Relaxed);
                let is_dropped = before >= RETURNING_BLOCKS && !self.is_reorganising.load(Ordering::Relaxed);
                self.mempool.shared.drops_disconnected.store(is_dropped, Ordering::Relaxed);
            }
            Event::Settled { .. }
                if !self.is_reorganising.load(Ordering::Relaxed)
                    && lock(&self.mempool.shared.pool).is_reorganising() =>
            {
                // Without the thread nothing returns.
                let _ = self.mempool.ask(|reply| Job::Settle { whole: false, reply });
            }
            _ => {}
        }
    }
}

/// Shows no secret.
impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets").finish_non_exhaustive()
    }
}

impl fmt::Debug for Mempool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mempool").field("info", self.snapshot().info()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn unix_seconds(&self) -> i64 {
            1_700_000_000
        }
    }

    /// The snapshot before was once freed while the pool was locked, which blocks and transactions waited for.
    #[test]
    fn the_pool_is_unlocked_when_the_last_snapshot_is_freed() {
        let mempool = Mempool::new(Settings::default(), Arc::new(Still), Secrets { salt: [1; 32], seed: 2 });
        let shared = &mempool.shared;
        let before = mempool.snapshot();
        let old = shared.replace_snapshot(lock(&shared.pool)).unwrap();
        assert!(Arc::ptr_eq(&old, &before) && !Arc::ptr_eq(&old, &mempool.snapshot()));
        assert!(shared.pool.try_lock().is_ok() && shared.published.try_lock().is_ok());
    }
}
