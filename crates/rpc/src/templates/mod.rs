//! [`Template`]: a block that is ready but for its coinbase and its proof of work. [`Templates`]: the last one, kept
//! for the next call.
//!
//! Input: the block after the tip, the transactions chosen for it. Output: a template whose transactions are already
//! written as JSON, since a miner asks for the same ones many times. Invariants: a template that is returned belongs to
//! the tip; it has every change of the mempool that is older than [`STALE_SECONDS`], as in Core. Memory: two bytes for
//! each byte of the block's transactions.

mod next;
mod transactions;

pub(crate) use next::{Commitment, NextBlock};
pub(crate) use transactions::Transactions;

use lydian_consensus::Params;
use lydian_consensus::limits::WITNESS_SCALE_FACTOR;
use lydian_mempool::pool::BlockContent;
use lydian_primitives::{Amount, BlockHash, compact_size_len};
use lydian_stdx::{IgnorePoison, lock};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// After this time a change of the mempool makes a new template: Core's `getblocktemplate`.
const STALE_SECONDS: i64 = 5;

/// With a mempool of at most this many transactions, a template that no call has returned is made anew for any change.
const QUICK_TRANSACTIONS: usize = 2_000;

/// A block without its coinbase.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) next: NextBlock,
    /// The changes of the mempool before it: [`lydian_mempool::pool::PoolInfo::updates`].
    pub(crate) updates: u32,
    /// When it was made, and the time in its header.
    made: i64,
    pub(crate) time: u32,
    pub(crate) transactions: Transactions,
    pub(crate) reward: Amount,
    pub(crate) commitment: Commitment,
    pub(crate) assembled: Assembled,
}

impl Template {
    /// `updates` is the number of changes of the mempool when the content was chosen.
    pub(crate) fn new(
        next: NextBlock,
        updates: u32,
        content: &BlockContent,
        assembled: Assembled,
        params: &Params,
        now: i64,
    ) -> Template {
        let commitment = NextBlock::commitment(content.entries.iter().map(|entry| entry.wtxid()));
        let (time, reward) = (next.time(now), next.reward(params, content.fees));
        let transactions = Transactions::write(&content.entries, next.is_segwit);
        Template { next, updates, made: now, time, transactions, reward, commitment, assembled }
    }
}

/// What Core logs and keeps of a block that was assembled.
#[derive(Debug)]
pub(crate) struct Assembled {
    /// The weight of its transactions with the reserved weight.
    pub(crate) weight: usize,
    /// Its transactions without the coinbase.
    pub(crate) transactions: usize,
    pub(crate) line: String,
}

impl Assembled {
    /// `script` is paid by the coinbase.
    pub(crate) fn new(next: &NextBlock, content: &BlockContent, script: Vec<u8>) -> Assembled {
        let coinbase = next.coinbase(script, content.fees, &[0; 38]);
        let of_coinbase = coinbase.encode().len() + (WITNESS_SCALE_FACTOR - 1) * coinbase.encode_stripped().len();
        let transactions = content.entries.len();
        let weight: usize = content.entries.iter().map(|entry| entry.tx().view().weight()).sum();
        let weight = weight + of_coinbase + WITNESS_SCALE_FACTOR * (HEADER_SIZE + compact_size_len(transactions + 1));
        let BlockContent { fees: Amount(fees), sigops_cost, .. } = content;
        let line =
            format!("CreateNewBlock(): block weight: {weight} txs: {transactions} fees: {fees} sigops {sigops_cost}");
        Assembled { weight: content.weight, transactions, line }
    }
}

const HEADER_SIZE: usize = 80;

/// The last template, and what the thread that makes the next one waits for.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    kept: Mutex<Option<Kept>>,
    /// Held while a template is made, so that many calls wait for one.
    making: Mutex<()>,
    /// When and why the builder's thread works.
    builder: Mutex<BuilderWake>,
    wake: Condvar,
    /// The changes of the mempool before the last template that a call returned: Core's `nTransactionsUpdatedLast`.
    returned_updates: AtomicU32,
}

#[derive(Debug)]
struct Kept {
    template: Arc<Template>,
    /// The time from which its age is counted; `None` until a call returns it.
    counted_from: Option<i64>,
}

/// When and why the builder's thread works.
#[derive(Debug, Default)]
struct BuilderWake {
    /// The steady time of the last call, in microseconds.
    asked_micros: Option<u64>,
    is_woken: bool,
}

/// A template that may be returned now.
#[derive(Debug)]
pub(crate) struct Fresh {
    pub(crate) template: Arc<Template>,
    /// No call has returned it before.
    pub(crate) is_first: bool,
}

/// The state of tip, mempool and clock that a template is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) tip: BlockHash,
    pub(crate) updates: u32,
    pub(crate) pool_len: usize,
    /// Seconds since 1970.
    pub(crate) now: i64,
}

impl Templates {
    /// The last template, if it may be returned now; it counts as returned.
    pub(crate) fn fresh(&self, moment: Moment) -> Option<Fresh> {
        let mut kept = lock(&self.kept);
        let kept = kept.as_mut().filter(|kept| kept.template.next.parent.hash == moment.tip)?;
        let is_same = kept.template.updates == moment.updates;
        let may_be_older = kept.counted_from.is_some() || moment.pool_len > QUICK_TRANSACTIONS;
        let since = kept.counted_from.unwrap_or(kept.template.made);
        let is_young = moment.now.saturating_sub(since) <= STALE_SECONDS;
        if !(is_same || may_be_older && is_young) {
            return None;
        }
        let is_first = kept.counted_from.is_none();
        kept.counted_from.get_or_insert(if is_same { moment.now } else { since });
        self.note_returned(kept.template.updates);
        Some(Fresh { template: Arc::clone(&kept.template), is_first })
    }

    /// The time when the last template was made, and its changes of the mempool; `None` if it is not of this tip.
    pub(crate) fn made(&self, tip: &BlockHash) -> Option<(i64, u32)> {
        let kept = lock(&self.kept);
        let template = &kept.as_ref()?.template;
        (template.next.parent.hash == *tip).then_some((template.made, template.updates))
    }

    /// The changes of the mempool before the last template that a call returned.
    pub(crate) fn returned_updates(&self) -> u32 {
        self.returned_updates.load(Ordering::Relaxed)
    }

    /// A call returns a template, or the error of its block.
    pub(crate) fn note_returned(&self, updates: u32) {
        self.returned_updates.store(updates, Ordering::Relaxed);
    }

    /// Begins to make a template; others wait until the guard is dropped.
    pub(crate) fn make(&self) -> MutexGuard<'_, ()> {
        lock(&self.making)
    }

    /// Keeps a template; with `is_asked`, a call returns it now.
    pub(crate) fn keep(&self, template: Arc<Template>, is_asked: bool) {
        let counted_from = is_asked.then_some(template.made);
        let before = lock(&self.kept).replace(Kept { template, counted_from });
        // Its memory is freed without the lock.
        drop(before);
    }

    /// A call asks for a template.
    pub(crate) fn note_asked(&self, steady_micros: u64) {
        lock(&self.builder).asked_micros = Some(steady_micros);
    }

    /// Has the builder look at the tip.
    pub(crate) fn wake(&self) {
        lock(&self.builder).is_woken = true;
        self.wake.notify_all();
    }

    /// Waits until the builder is woken or a time has passed. Returns the time of the last call.
    pub(crate) fn wait(&self, timeout: Duration) -> Option<u64> {
        let sleeps = |builder: &mut BuilderWake| !builder.is_woken;
        let waited = self.wake.wait_timeout_while(lock(&self.builder), timeout, sleeps);
        let mut builder = waited.ignore_poison().0;
        builder.is_woken = false;
        builder.asked_micros
    }
}
