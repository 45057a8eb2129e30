//! The thread that accepts. Input: jobs from a bounded queue. Output: the changed pool, and an answer to each job.
//!
//! Transactions that wait are decided in batches: those that pass the checks of a transaction alone have their coins
//! looked up together, and the scripts of those that would be accepted now are captured and settled together, by
//! several threads if there are many. Then each is accepted in the order of the queue, exactly as alone; a verdict on
//! scripts that is missing by then is made on the spot.

use super::Shared;
use super::fees::FeeSource;
use super::headers::Headers;
use crate::limits::BATCH_MAX;
use crate::policy::steps::check_alone;
use crate::policy::{FeeRate, Mode, NextBlock, Rejection};
use crate::pool::{Accepted, Chain, ChainCoins, How, Package, PackageResult, Pool, TxResult};
use crate::scripts::{InputFailure, SecondCheck, Spend, verify_many};
use lydian_consensus::KnownScripts;
use lydian_engine::{ChainSnapshot, Engine, EngineError};
use lydian_primitives::{Height, OutPoint, Transaction, Txid, Wtxid};
use lydian_script::{CheckCounts, Flags};
use lydian_stdx::{IgnorePoison, lock};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

/// How long to wait for the next step of the chain before looking again.
const STEP: Duration = Duration::from_millis(1);

/// How often a step of a chain that stands still is tried.
const STEP_TRIES_MAX: u32 = 100;

/// The outputs of a transaction without its coins that are looked for, to tell whether it is in the chain already.
const OWN_OUTPUTS_MAX: u32 = 1_000;

/// The fewest transactions for which another thread verifies scripts.
const THREAD_TRANSACTIONS_MIN: usize = 16;

/// The transactions whose scripts a thread verifies before it looks whether the pool is at its end.
const UNTIL_END: usize = 256;

/// A task of the accepting thread.
pub(super) enum Job {
    Accept {
        tx: Arc<Transaction>,
        arrival: Arrival,
        reply: Reply<Result<Accepted, SubmitError>>,
    },
    Package {
        txs: Vec<Arc<Transaction>>,
        feerate_max: Option<FeeRate>,
        reply: Reply<Result<PackageResult, SubmitError>>,
    },
    TestPackage {
        txs: Vec<Arc<Transaction>>,
        reply: Reply<Result<PackageResult, SubmitError>>,
    },
    Settle {
        /// Wait for the end of a reorganisation that is under way; else the chain stands still now.
        whole: bool,
        reply: Reply<()>,
    },
    /// A peer has a transaction that was marked as not broadcast.
    Broadcast(Txid),
    End,
}

impl Job {
    /// Drops a job that was not queued: its callback is not called.
    pub(super) fn forget(self) {
        match self {
            Job::Accept { reply: Reply::Call(mut call), .. } => call.call = None,
            Job::Package { reply: Reply::Call(mut call), .. } => call.call = None,
            _ => {}
        }
    }
}

/// Where an answer goes.
pub(super) enum Reply<T> {
    Channel(SyncSender<T>),
    Call(Callback<T>),
}

impl<T> Reply<T> {
    /// Whether no caller waits for it.
    fn is_of_peer(&self) -> bool {
        matches!(self, Reply::Call(_))
    }

    fn send(self, answer: T) {
        match self {
            // The caller may have gone.
            Reply::Channel(channel) => drop(channel.try_send(answer)),
            Reply::Call(call) => call.answer(answer),
        }
    }
}

/// A function that is called with one answer. If it is dropped instead, since its job is still in the queue when the
/// thread ends, the answer is that the pool has ended.
pub(super) struct Callback<T> {
    call: Option<Box<dyn FnOnce(T) + Send>>,
    end: fn() -> T,
}

impl<T> Callback<Result<T, SubmitError>> {
    pub(super) fn new(call: Box<dyn FnOnce(Result<T, SubmitError>) + Send>) -> Self {
        Callback { call: Some(call), end: || Err(SubmitError::Ended) }
    }
}

impl<T> Callback<T> {
    fn answer(mut self, answer: T) {
        if let Some(call) = self.call.take() {
            call(answer);
        }
    }
}

impl<T> Drop for Callback<T> {
    fn drop(&mut self) {
        if let Some(call) = self.call.take() {
            call((self.end)());
        }
    }
}

/// Why a transaction was not accepted.
#[derive(Clone, Debug)]
pub enum SubmitError {
    Rejected(Rejection),
    /// The node failed, not the transaction.
    Engine(String),
    /// The pool accepts nothing yet, or any more.
    Ended,
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Rejected(rejection) => rejection.fmt(f),
            SubmitError::Engine(reason) => f.write_str(reason),
            SubmitError::Ended => f.write_str("the mempool accepts no transactions now"),
        }
    }
}

impl std::error::Error for SubmitError {}

impl From<EngineError> for SubmitError {
    fn from(error: EngineError) -> SubmitError {
        SubmitError::Engine(error.to_string())
    }
}

/// Verdicts on scripts, with the transactions and their coins.
type Verdicts = HashMap<Wtxid, (Spend, Result<(), InputFailure>)>;

pub(super) struct Worker {
    shared: Arc<Shared>,
    engine: Arc<Engine>,
    second: SecondCheck,
    threads: usize,
}

/// How a transaction comes to the queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    /// The pool stays as it is.
    pub(super) is_test: bool,
    /// The time of its entry, in seconds since 1970; by default that of the decision.
    pub(super) time: Option<i64>,
    /// What is added to its fee before it is decided, as by `prioritisetransaction`.
    pub(super) fee_delta: i64,
}

/// A transaction of the queue.
type Waiting = (Arc<Transaction>, Arrival, Reply<Result<Accepted, SubmitError>>);

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, engine: Arc<Engine>, second: SecondCheck, threads: usize) -> Worker {
        Worker { shared, engine, second, threads: threads.max(1) }
    }

    pub(super) fn run(&self, queue: &Receiver<Job>) {
        let mut checked = 1;
        let mut next = queue.recv().ok();
        while let Some(job) = next.take() {
            match job {
                // What is left in the queue answers when it is dropped.
                Job::End => return,
                Job::Settle { whole, reply } => {
                    self.settle(whole);
                    reply.send(());
                }
                Job::Broadcast(txid) => {
                    let mut pool = lock(&self.shared.pool);
                    pool.remove_unbroadcast(&txid);
                    self.shared.publish(pool);
                }
                Job::Package { txs, feerate_max, reply } => {
                    let decide = |pool: &mut Pool, chain: &Chain<'_, Headers<'_>>, now| {
                        pool.accept_package(&txs, feerate_max, now, chain)
                    };
                    let answer = self.decide_package(&txs, decide);
                    if let Ok(result) = &answer {
                        self.shared.records.decided_package(&txs, reply.is_of_peer(), result, self.shared.now());
                    }
                    self.leave_queue(txs.iter(), &reply);
                    reply.send(answer);
                }
                Job::TestPackage { txs, reply } => {
                    reply.send(self.decide_package(&txs, |pool, chain, now| pool.test_package(&txs, now, chain)));
                }
                Job::Accept { tx, arrival, reply } => {
                    let mut batch: Vec<Waiting> = vec![(tx, arrival, reply)];
                    while batch.len() < BATCH_MAX {
                        match queue.try_recv() {
                            Ok(Job::Accept { tx, arrival, reply }) => batch.push((tx, arrival, reply)),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.decide_batch(batch);
                }
            }
            self.check_sometimes(&mut checked);
            next = next.or_else(|| queue.recv().ok());
        }
    }

    /// `-checkmempool`: checks the whole pool after this many changes. A chain that moves meanwhile, or a failing disk,
    /// puts it off. `checked` is the number of the next change when it was checked last.
    ///
    /// # Panics
    ///
    /// If something does not fit together, which is our bug.
    fn check_sometimes(&self, checked: &mut u64) {
        let interval = u64::from(self.shared.settings.check_interval);
        let sequence = lock(&self.shared.pool).sequence();
        if interval == 0 || sequence - *checked < interval {
            return;
        }
        let Ok(Some((pool, snapshot))) = self.at_tip(true) else { return };
        let (tip, inputs) = (snapshot.tip(), pool.chain_inputs());
        drop(pool);
        let Ok(Some(found)) = coins_at(&snapshot, &inputs) else { return };
        let coins: ChainCoins = inputs.into_iter().zip(found).collect();
        let pool = lock(&self.shared.pool);
        // No transaction comes or goes without this thread but by a block.
        if pool.is_at(&tip) && pool.sequence() == sequence {
            pool.check_all(&coins, Height(tip.height.0 + 1));
            *checked = sequence;
        }
    }

    fn decide_batch(&self, batch: Vec<Waiting>) {
        let txs: Vec<(Arc<Transaction>, Arrival)> =
            batch.iter().map(|(tx, arrival, _)| (Arc::clone(tx), *arrival)).collect();
        let answers = match self.decide(&txs) {
            Ok(answers) => answers.into_iter().map(|answer| answer.map_err(SubmitError::Rejected)).collect(),
            Err(error) => vec![Err(error); txs.len()],
        };
        for ((tx, arrival, reply), answer) in batch.into_iter().zip(answers) {
            if !arrival.is_test {
                self.record(&tx, reply.is_of_peer(), &answer);
            }
            self.leave_queue([&tx], &reply);
            reply.send(answer);
        }
    }

    fn record(&self, tx: &Transaction, is_of_peer: bool, answer: &Result<Accepted, SubmitError>) {
        let verdict = match answer {
            Ok(accepted) => Ok(accepted),
            Err(SubmitError::Rejected(rejection)) => Err(rejection),
            Err(SubmitError::Engine(_) | SubmitError::Ended) => return,
        };
        self.shared.records.decided(tx, is_of_peer, verdict, self.shared.now());
    }

    /// Transactions of peers are decided: their bytes no longer count.
    fn leave_queue<'a, T>(&self, txs: impl IntoIterator<Item = &'a Arc<Transaction>>, reply: &Reply<T>) {
        if reply.is_of_peer() {
            let bytes = txs.into_iter().map(|tx| tx.as_bytes().len()).sum();
            self.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Whether the pool is at its end: then nothing is waited for.
    fn check_running(&self) -> Result<(), SubmitError> {
        if self.shared.is_ended.load(Ordering::Relaxed) { Err(SubmitError::Ended) } else { Ok(()) }
    }

    /// Decides about transactions in their order.
    fn decide(&self, txs: &[(Arc<Transaction>, Arrival)]) -> Result<Vec<Result<Accepted, Rejection>>, SubmitError> {
        let all: Vec<Arc<Transaction>> = txs.iter().map(|(tx, _)| Arc::clone(tx)).collect();
        loop {
            self.check_running()?;
            let Some((pool, snapshot)) = self.at_tip(true)? else { continue };
            drop(pool);
            let Some(headers) = Headers::up_to(&self.engine, &snapshot.tip().hash) else { continue };
            let height = Height(snapshot.tip().height.0 + 1);
            let next = || NextBlock { height, headers: &headers };
            let Some(coins) = self.coins_of(&snapshot, &self.passing_alone_checks(&all, &next()))? else { continue };
            let was_watched = self.engine.signatures().is_watched();
            let no_scripts = |_: &Spend| Ok(());
            let chain = Chain { next: next(), coins: &coins, scripts: &no_scripts };
            let how = How::single(self.shared.now());
            let Some(spends) = self.look_ahead(&all, &how, &chain, |pool| pool.is_at(&snapshot.tip())) else {
                continue;
            };
            let Some(known) = self.verify(spends).map(RefCell::new) else { continue };
            if self.is_doubtful(was_watched) {
                continue;
            }
            let scripts = |spend: &Spend| self.verdict(spend, &known);
            let chain = Chain { next: next(), coins: &coins, scripts: &scripts };
            let mut pool = lock(&self.shared.pool);
            if !pool.is_at(&snapshot.tip()) {
                continue;
            }
            let now = self.shared.now();
            let is_current = |fees: &FeeSource| fees.is_chain_current(&self.engine, &snapshot, now);
            let is_chain_current = self.shared.fees.get().is_some_and(is_current);
            let decide = |(tx, arrival): &(Arc<Transaction>, Arrival)| {
                if arrival.fee_delta != 0 {
                    pool.prioritise(&tx.view().txid(), arrival.fee_delta);
                }
                let time = arrival.time.unwrap_or(now);
                let how = How { is_test: arrival.is_test, time, is_chain_current, ..How::single(now) };
                let accepted = pool.accept(tx, &how, &chain)?;
                self.remember(tx, &known.borrow());
                Ok(accepted)
            };
            let answers = txs.iter().map(decide).collect();
            self.shared.publish(pool);
            if self.is_doubtful(was_watched) {
                self.shared.cache.clear();
            }
            return Ok(answers);
        }
    }

    /// Whether verdicts may be those of a kernel that was found to be wrong meanwhile.
    fn is_doubtful(&self, was_watched: bool) -> bool {
        was_watched && !self.engine.signatures().is_watched()
    }

    /// The transactions that pass the checks of a transaction alone: only their coins are looked up.
    fn passing_alone_checks(
        &self,
        txs: &[Arc<Transaction>],
        next: &NextBlock<'_, Headers<'_>>,
    ) -> Vec<Arc<Transaction>> {
        let is_good = |tx: &&Arc<Transaction>| check_alone(tx.view(), next, &self.shared.settings).is_ok();
        txs.iter().filter(is_good).map(Arc::clone).collect()
    }

    fn decide_package(
        &self,
        txs: &[Arc<Transaction>],
        decide: impl Fn(&mut Pool, &Chain<'_, Headers<'_>>, i64) -> PackageResult,
    ) -> Result<PackageResult, SubmitError> {
        loop {
            self.check_running()?;
            let Some((pool, snapshot)) = self.at_tip(true)? else { continue };
            drop(pool);
            let Some(headers) = Headers::up_to(&self.engine, &snapshot.tip().hash) else { continue };
            let next = NextBlock { height: Height(snapshot.tip().height.0 + 1), headers: &headers };
            let Some(coins) = self.coins_of(&snapshot, &self.passing_alone_checks(txs, &next))? else { continue };
            let was_watched = self.engine.signatures().is_watched();
            let known = RefCell::default();
            let scripts = |spend: &Spend| self.verdict(spend, &known);
            let mut pool = lock(&self.shared.pool);
            if !pool.is_at(&snapshot.tip()) {
                continue;
            }
            let result = decide(&mut pool, &Chain { next, coins: &coins, scripts: &scripts }, self.shared.now());
            for tx in txs {
                let wtxid = tx.view().wtxid();
                if matches!(result.results.get(&wtxid), Some(TxResult::Accepted(_))) {
                    self.remember(tx, &known.borrow());
                }
            }
            self.shared.publish(pool);
            if self.is_doubtful(was_watched) {
                self.shared.cache.clear();
            }
            return Ok(result);
        }
    }

    /// Lets everything of a reorganisation return. Without `whole`, the chain stands still and the caller holds it: a
    /// few tries must do.
    fn settle(&self, whole: bool) {
        let mut tries = 0;
        while lock(&self.shared.pool).is_reorganising() && (whole || tries < STEP_TRIES_MAX) {
            tries += 1;
            // A failing disk is reported with the next transaction.
            if self.check_running().is_err() || self.at_tip(whole).is_err() {
                return;
            }
        }
    }

    /// Keeps the verdict on an accepted transaction for its block, and has it verified again.
    fn remember(&self, tx: &Transaction, verdicts: &Verdicts) {
        let wtxid = tx.view().wtxid();
        self.shared.cache.insert(&wtxid);
        if let Some((spend, _)) = verdicts.get(&wtxid) {
            self.second.push(spend);
        }
    }

    /// The pool with the chain's snapshot at its tip, after everything of a reorganisation has returned. `None` if the
    /// chain moved, so that the caller looks again. With `whole`, a reorganisation ends when no better chain is known.
    fn at_tip(&self, whole: bool) -> Result<Option<(MutexGuard<'_, Pool>, ChainSnapshot)>, EngineError> {
        let snapshot = self.engine.snapshot();
        let pool = lock(&self.shared.pool);
        if pool.tip != snapshot.tip() {
            // The next block is on its way to the pool, or from there to the readers of the chain.
            drop(self.shared.moved.wait_timeout(pool, STEP).ignore_poison());
            return Ok(None);
        }
        if !pool.is_reorganising() {
            return Ok(Some((pool, snapshot)));
        }
        let is_stepwise = !whole || self.shared.stepwise.load(Ordering::Relaxed) > 0;
        let is_final = self.shared.is_chain_final.load(Ordering::Relaxed);
        if !is_stepwise && !is_final && self.engine.with_tree(|tree| tree.best_candidate().is_some()) {
            // In the middle of a reorganisation.
            drop(self.shared.moved.wait_timeout(pool, STEP).ignore_poison());
            return Ok(None);
        }
        self.return_disconnected(pool, &snapshot)?;
        Ok(None)
    }

    /// After a reorganisation: returns the transactions of the blocks that left.
    fn return_disconnected(&self, pool: MutexGuard<'_, Pool>, snapshot: &ChainSnapshot) -> Result<(), EngineError> {
        let moves = pool.moves();
        let returning = pool.disconnected_transactions();
        let Some(headers) = Headers::up_to(&self.engine, &snapshot.tip().hash) else { return Ok(()) };
        let next = NextBlock { height: Height(snapshot.tip().height.0 + 1), headers: &headers };
        let more = pool.coins_to_check(&next);
        drop(pool);
        let Some(mut coins) = self.coins_of(snapshot, &returning)? else { return Ok(()) };
        let Some(found) = coins_at(snapshot, &more)? else { return Ok(()) };
        coins.extend(more.into_iter().zip(found));
        let (now, was_watched) = (self.shared.now(), self.engine.signatures().is_watched());
        let how = How { mode: Mode::DISCONNECTED, ..How::single(now) };
        let no_scripts = |_: &Spend| Ok(());
        let chain = Chain { next, coins: &coins, scripts: &no_scripts };
        let Some(spends) = self.look_ahead(&returning, &how, &chain, |pool| pool.moves() == moves) else {
            return Ok(());
        };
        let Some(known) = self.verify(spends).map(RefCell::new) else { return Ok(()) };
        if self.is_doubtful(was_watched) {
            return Ok(());
        }
        let scripts = |spend: &Spend| self.verdict(spend, &known);
        let chain = Chain { next: chain.next, coins: &coins, scripts: &scripts };
        let mut pool = lock(&self.shared.pool);
        if pool.moves() == moves {
            let returns = !self.shared.drops_disconnected.load(Ordering::Relaxed);
            let returned: HashSet<Txid> = pool.reorganised(returns, now, &chain).into_iter().collect();
            for tx in returning.iter().filter(|tx| returned.contains(&tx.view().txid())) {
                self.remember(tx, &known.borrow());
            }
            self.shared.publish(pool);
        } else {
            drop(pool);
        }
        if self.is_doubtful(was_watched) {
            self.shared.cache.clear();
        }
        Ok(())
    }

    /// The coins in the chain of every input, and of the first outputs of transactions of which an input has none.
    /// `None` if the snapshot has expired.
    fn coins_of(&self, snapshot: &ChainSnapshot, txs: &[Arc<Transaction>]) -> Result<Option<ChainCoins>, EngineError> {
        let prevouts = txs.iter().flat_map(|tx| tx.view().inputs().map(|input| input.prevout).collect::<Vec<_>>());
        let prevouts: Vec<OutPoint> = prevouts.collect();
        let Some(found) = coins_at(snapshot, &prevouts)? else { return Ok(None) };
        let mut coins: ChainCoins = prevouts.into_iter().zip(found).collect();
        let lacks = |tx: &&Arc<Transaction>| {
            tx.view().inputs().any(|input| matches!(coins.get(&input.prevout), Some(None) | None))
        };
        let own: Vec<OutPoint> = txs
            .iter()
            .filter(lacks)
            .flat_map(|tx| {
                let txid = tx.view().txid();
                let outputs = 0..u32::try_from(tx.view().output_count())
                    .map_or(OWN_OUTPUTS_MAX, |count| count.min(OWN_OUTPUTS_MAX));
                outputs.map(move |vout| OutPoint { txid, vout })
            })
            .collect();
        let Some(found) = coins_at(snapshot, &own)? else { return Ok(None) };
        coins.extend(own.into_iter().zip(found));
        Ok(Some(coins))
    }

    /// The transactions whose scripts will be asked for, with their coins, as far as can be seen now. `None` if the
    /// chain moved, or the pool is at its end.
    fn look_ahead(
        &self,
        txs: &[Arc<Transaction>],
        how: &How,
        chain: &Chain<'_, Headers<'_>>,
        is_at: impl Fn(&Pool) -> bool,
    ) -> Option<Vec<Spend>> {
        let package: Package = txs.iter().map(|tx| (tx.view().txid(), Arc::clone(tx))).collect();
        let mut pool = lock(&self.shared.pool);
        if !is_at(&pool) {
            return None;
        }
        let mut spends = Vec::new();
        for tx in txs {
            self.check_running().ok()?;
            spends.extend(pool.look_ahead(tx, how, chain, &package));
        }
        Some(spends)
    }

    /// Whether the scripts were verified before: `sendrawtransaction` tries a transaction before it submits it.
    fn is_known(&self, spend: &Spend) -> bool {
        self.shared.cache.are_valid(&spend.tx().view().wtxid(), Flags::STANDARD)
    }

    /// Verifies scripts in batches, by several threads if there are many; those that are known are left out. `None` if
    /// the pool is at its end: the blocks that a reorganisation disconnects may have thousands of transactions, and a
    /// stop does not wait for them.
    fn verify(&self, mut spends: Vec<Spend>) -> Option<Verdicts> {
        spends.retain(|spend| !self.is_known(spend));
        let spends_of: Vec<&Spend> = spends.iter().collect();
        let share = spends_of.len().div_ceil(self.threads).max(THREAD_TRANSACTIONS_MIN);
        let verify = |part: &[&Spend]| {
            let mut found = Vec::with_capacity(part.len());
            for some in part.chunks(UNTIL_END) {
                self.check_running().ok()?;
                let signatures = &**self.engine.signatures();
                found.extend(verify_many(some, Flags::STANDARD, signatures, &mut CheckCounts::default()));
            }
            Some(found)
        };
        let mut parts = spends_of.chunks(share);
        let own = parts.next().unwrap_or_default();
        let found: Option<Vec<Result<(), InputFailure>>> = std::thread::scope(|scope| {
            let others: Vec<_> = parts.map(|part| scope.spawn(move || verify(part))).collect();
            let mut found = verify(own);
            for other in others {
                let more = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                found = found.zip(more).map(|(mut found, more)| {
                    found.extend(more);
                    found
                });
            }
            found
        });
        let with_wtxid = |(spend, verdict): (Spend, _)| (spend.tx().view().wtxid(), (spend, verdict));
        Some(spends.into_iter().zip(found?).map(with_wtxid).collect())
    }

    /// The verdict on a transaction that was verified with others, or alone now.
    fn verdict(&self, spend: &Spend, known: &RefCell<Verdicts>) -> Result<(), InputFailure> {
        let wtxid = spend.tx().view().wtxid();
        if let Some((_, verdict)) = known.borrow().get(&wtxid) {
            return *verdict;
        }
        if self.is_known(spend) {
            return Ok(());
        }
        let verdict = self.verify_one(spend);
        known.borrow_mut().insert(wtxid, (spend.clone(), verdict));
        verdict
    }

    fn verify_one(&self, spend: &Spend) -> Result<(), InputFailure> {
        let mut counts = CheckCounts::default();
        let verdicts = verify_many(&[spend], Flags::STANDARD, &**self.engine.signatures(), &mut counts);
        let Some(verdict) = verdicts.into_iter().next() else { unreachable!("one spend has one verdict") };
        verdict
    }
}

/// The coins at a snapshot; `None` if it has expired.
fn coins_at(
    snapshot: &ChainSnapshot,
    outpoints: &[OutPoint],
) -> Result<Option<Vec<Option<lydian_consensus::Coin>>>, EngineError> {
    match snapshot.coins(outpoints) {
        Ok(coins) => Ok(Some(coins)),
        Err(EngineError::SnapshotExpired { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    fn package() -> (Job, Receiver<bool>) {
        let (sender, answers) = sync_channel(2);
        let call = move |answer: Result<PackageResult, SubmitError>| {
            sender.send(matches!(answer, Err(SubmitError::Ended))).unwrap();
        };
        let reply = Reply::Call(Callback::new(Box::new(call)));
        (Job::Package { txs: Vec::new(), feerate_max: None, reply }, answers)
    }

    #[test]
    fn a_queued_job_is_answered_once_even_if_nothing_takes_it() {
        let (jobs, queue) = sync_channel(1);
        let (job, answers) = package();
        assert!(jobs.send(job).is_ok());
        drop(queue);
        assert_eq!(answers.iter().collect::<Vec<_>>(), [true]);
        let (job, answers) = package();
        job.forget();
        assert_eq!(answers.iter().count(), 0, "it was not queued");
        let (Job::Package { reply, .. }, answers) = package() else { unreachable!("a package") };
        reply.send(Err(SubmitError::Engine(String::new())));
        assert_eq!(answers.iter().collect::<Vec<_>>(), [false]);
    }
}
