//! [`Records`]: the last events of the pool, for people who watch it: rejected transactions, replacements, and what the
//! pool had when a block joined the chain.
//!
//! Input: verdicts from the accepting thread, blocks from the follower. Output: the last [`REJECTS_MAX`] rejections and
//! [`REPLACEMENTS_MAX`] replacements, each with a number that grows by one; the blocks since they were last taken, at
//! most [`BLOCKS_MAX`].
//!
//! Invariants: nothing is kept until it is switched on; the writers never wait for more than a copy of what is kept. A
//! rejection keeps no transaction. Memory: about 1 MB, and for each block the pool as it was before it, until the block
//! is taken.

use crate::limits::{BLOCKS_MAX, REJECTS_MAX, REPLACED_MAX, REPLACEMENTS_MAX};
use crate::policy::{Rejection, ValidationResult, virtual_size};
use crate::pool::{Accepted, Entry, PackageResult, Snapshot, TxResult};
use lydian_engine::{ConnectedBlock, Tip};
use lydian_primitives::{Amount, Transaction, Txid, Wtxid};
use lydian_stdx::lock;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A transaction that was not accepted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reject {
    pub number: u64,
    /// Seconds since 1970.
    pub time: i64,
    pub txid: Txid,
    pub wtxid: Wtxid,
    /// Virtual bytes.
    pub vsize: i64,
    /// Core's reason and debug message: the text of `sendrawtransaction`.
    pub reason: String,
}

/// A transaction that took the place of others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replacement {
    pub number: u64,
    /// Seconds since 1970.
    pub time: i64,
    pub txid: Txid,
    /// Virtual bytes.
    pub vsize: i64,
    /// Without any delta.
    pub fee: Amount,
    /// The first [`REPLACED_MAX`] transactions that it replaced, and the sums of all.
    pub replaced: Vec<Txid>,
    pub replaced_count: usize,
    pub replaced_vsize: i64,
    pub replaced_fees: Amount,
}

/// A block that joined the chain.
#[derive(Clone, Debug)]
pub struct Mined {
    pub tip: Tip,
    /// Its header's time.
    pub time: u32,
    /// Without the coinbase.
    pub txids: Vec<Txid>,
    /// What its transactions paid.
    pub fees: Amount,
    /// The pool just before.
    pub before: Arc<Snapshot>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number of the next rejection or replacement.
    next: u64,
    rejects: VecDeque<Reject>,
    replacements: VecDeque<Replacement>,
    blocks: VecDeque<Mined>,
}

/// The last events of the pool. For use from any thread.
#[derive(Debug, Default)]
pub struct Records {
    is_on: AtomicBool,
    /// Grows with each event.
    version: AtomicU64,
    kept: Mutex<Kept>,
}

fn push<T>(queue: &mut VecDeque<T>, max: usize, item: T) {
    if queue.len() == max {
        queue.pop_front();
    }
    queue.push_back(item);
}

impl Records {
    /// Keeps events from now on.
    pub fn switch_on(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Grows when there is something new.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// At most this many of the last rejections, the newest first.
    pub fn rejects(&self, max: usize) -> Vec<Reject> {
        lock(&self.kept).rejects.iter().rev().take(max).cloned().collect()
    }

    /// At most this many of the last replacements, the newest first.
    pub fn replacements(&self, max: usize) -> Vec<Replacement> {
        lock(&self.kept).replacements.iter().rev().take(max).cloned().collect()
    }

    /// The blocks since the last call.
    pub fn take_blocks(&self) -> Vec<Mined> {
        std::mem::take(&mut lock(&self.kept).blocks).into()
    }

    fn keep(&self, add: impl FnOnce(&mut Kept)) {
        add(&mut lock(&self.kept));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// A transaction was decided. One of a peer whose inputs are missing is not rejected: it waits for its parents.
    pub(super) fn decided(&self, tx: &Transaction, is_of_peer: bool, verdict: Result<&Accepted, &Rejection>, now: i64) {
        match verdict {
            _ if !self.is_on() => {}
            Ok(accepted) => self.accepted(tx.view().txid(), accepted, now),
            Err(rejection) if is_of_peer && rejection.result == ValidationResult::MissingInputs => {}
            Err(rejection) => self.rejected(tx, rejection, now),
        }
    }

    /// A package was decided.
    pub(super) fn decided_package(&self, txs: &[Arc<Transaction>], is_of_peer: bool, result: &PackageResult, now: i64) {
        for tx in txs.iter().filter(|_| self.is_on()) {
            match result.results.get(&tx.view().wtxid()) {
                Some(TxResult::Accepted(accepted)) => self.decided(tx, is_of_peer, Ok(accepted), now),
                Some(TxResult::Rejected(rejection)) => self.decided(tx, is_of_peer, Err(rejection), now),
                Some(TxResult::InPool { .. } | TxResult::OtherWitness(_)) | None => {}
            }
        }
    }

    pub(super) fn rejected(&self, tx: &Transaction, rejection: &Rejection, now: i64) {
        if !self.is_on() {
            return;
        }
        let view = tx.view();
        let (txid, wtxid, reason) = (view.txid(), view.wtxid(), rejection.state());
        let vsize = virtual_size(view.weight(), 0, 0);
        self.keep(|kept| {
            let reject = Reject { number: kept.next, time: now, txid, wtxid, vsize, reason };
            kept.next += 1;
            push(&mut kept.rejects, REJECTS_MAX, reject);
        });
    }

    fn accepted(&self, txid: Txid, accepted: &Accepted, now: i64) {
        let all = &accepted.replaced;
        if all.is_empty() {
            return;
        }
        let fees = all.iter().fold(0_i64, |sum, entry| sum.saturating_add(entry.fee().0));
        let replacement = Replacement {
            number: 0,
            time: now,
            txid,
            vsize: accepted.vsize,
            fee: accepted.fee,
            replaced: all.iter().take(REPLACED_MAX).map(|entry| entry.txid()).collect(),
            replaced_count: all.len(),
            replaced_vsize: all.iter().map(|entry: &Arc<Entry>| i64::from(entry.vsize())).sum(),
            replaced_fees: Amount(fees),
        };
        self.keep(|kept| {
            push(&mut kept.replacements, REPLACEMENTS_MAX, Replacement { number: kept.next, ..replacement });
            kept.next += 1;
        });
    }

    /// A block joins the chain. Nothing is kept if the pool was empty, as while the node catches up, or not that of the
    /// block before, as in a reorganisation.
    pub(super) fn mined(&self, block: &ConnectedBlock<'_>, before: Arc<Snapshot>) {
        if !self.is_on() || before.is_empty() || before.info().tip.hash != block.block.header().prev_block {
            return;
        }
        let others = || block.block.txs().skip(1);
        let spent = block.spent.iter().fold(0_i64, |sum, coin| sum.saturating_add(coin.value.0));
        let paid = others().flat_map(|tx| tx.outputs()).fold(0_i64, |sum, output| sum.saturating_add(output.value.0));
        let mined = Mined {
            tip: Tip { height: block.height, hash: block.block.hash() },
            time: block.block.header().time,
            txids: others().map(|tx| tx.txid()).collect(),
            fees: Amount(spent.saturating_sub(paid)),
            before,
        };
        self.keep(|kept| push(&mut kept.blocks, BLOCKS_MAX, mined));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyRule;

    fn transaction() -> Transaction {
        Transaction::clone(Entry::with_script(100).tx())
    }

    fn replacing(count: usize) -> Accepted {
        let replaced = (0..count).map(|size| Arc::new(Entry::with_script(size))).collect();
        let effective_feerate = crate::policy::FeeRate::ZERO;
        Accepted { replaced, vsize: 100, fee: Amount(7), effective_feerate, effective_of: Vec::new() }
    }

    #[test]
    fn nothing_is_kept_until_it_is_switched_on() {
        let records = Records::default();
        records.rejected(&transaction(), &Rejection::of(PolicyRule::TxSize), 1);
        records.decided(&transaction(), false, Ok(&replacing(1)), 1);
        assert_eq!((records.version(), records.rejects(9).len(), records.replacements(9).len()), (0, 0, 0));
    }

    /// limit: REJECTS_MAX at
    /// limit: REJECTS_MAX above
    #[test]
    fn the_last_rejections_are_kept() {
        let records = Records::default();
        records.switch_on();
        let (tx, rejection) = (transaction(), Rejection::of(PolicyRule::TxSize));
        (0..REJECTS_MAX).for_each(|_| records.decided(&tx, true, Err(&rejection), 5));
        let numbers = || records.rejects(usize::MAX).iter().map(|reject| reject.number).collect::<Vec<_>>();
        assert_eq!(numbers(), (0..REJECTS_MAX as u64).rev().collect::<Vec<_>>());
        records.decided(&tx, true, Err(&rejection), 6);
        assert_eq!(numbers(), (1..=REJECTS_MAX as u64).rev().collect::<Vec<_>>());
        let last = records.rejects(1);
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        let vsize = i64::try_from(tx.view().weight().div_ceil(4)).unwrap();
        let expected = Reject { number: 1_000, time: 6, txid, wtxid, vsize, reason: "tx-size".to_owned() };
        assert_eq!((last, records.version()), (vec![expected], 1_001));
    }

    #[test]
    fn a_transaction_of_a_peer_that_waits_for_its_parents_is_not_rejected() {
        let records = Records::default();
        records.switch_on();
        let missing = Rejection::of(PolicyRule::MissingInputs);
        records.decided(&transaction(), true, Err(&missing), 1);
        assert!(records.rejects(9).is_empty());
        records.decided(&transaction(), false, Err(&missing), 1);
        assert_eq!(records.rejects(9).len(), 1, "by RPC it is");
    }

    /// limit: REPLACEMENTS_MAX at
    /// limit: REPLACEMENTS_MAX above
    #[test]
    fn the_last_replacements_are_kept() {
        let records = Records::default();
        records.switch_on();
        records.decided(&transaction(), true, Ok(&replacing(0)), 1);
        assert_eq!(records.version(), 0, "it replaces nothing");
        (0..REPLACEMENTS_MAX).for_each(|_| records.decided(&transaction(), true, Ok(&replacing(1)), 1));
        let oldest = || records.replacements(usize::MAX).last().map(|oldest| oldest.number);
        assert_eq!((records.replacements(usize::MAX).len(), oldest()), (REPLACEMENTS_MAX, Some(0)));
        records.decided(&transaction(), true, Ok(&replacing(2)), 1);
        assert_eq!((records.replacements(usize::MAX).len(), oldest()), (REPLACEMENTS_MAX, Some(1)));
    }

    /// limit: REPLACED_MAX at
    /// limit: REPLACED_MAX above
    #[test]
    fn the_first_replaced_transactions_are_named() {
        let records = Records::default();
        records.switch_on();
        for count in [REPLACED_MAX, REPLACED_MAX + 1] {
            records.decided(&transaction(), true, Ok(&replacing(count)), 1);
        }
        let counts = |found: &Replacement| (found.replaced.len(), found.replaced_count);
        let found: Vec<(usize, usize)> = records.replacements(9).iter().rev().map(counts).collect();
        assert_eq!(found, [(REPLACED_MAX, REPLACED_MAX), (REPLACED_MAX, REPLACED_MAX + 1)]);
    }
}
