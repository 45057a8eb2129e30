//! [`Copy`]: the mempool of a node at one of its [`State`]s.
//!
//! Input: transactions that came and left. Output: what the mempool has of scripts, outputs and transactions, and what
//! differs from another copy. Memory: [`Copy::bytes`], an estimate.
//!
//! Invariants: a transaction is in it once; what is removed and was not in it changes nothing.

use crate::message::{PoolTx, State};
use lydian_index::ScriptHash;
use lydian_primitives::{OutPoint, Transaction, Txid};
use lydian_query::{FeeRow, PoolRow, PoolRows, PoolTotals, Unseen};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A change of a mempool.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Added(PoolTx),
    Removed(Txid),
}

/// Memory of an input or an output, and of a transaction without them.
const ROW_BYTES: usize = 250;
const TX_BYTES: usize = 500;

/// The memory of a transaction, estimated.
pub(crate) fn size_of_tx(tx: &Transaction) -> usize {
    let view = tx.view();
    TX_BYTES + tx.as_bytes().len() + ROW_BYTES * (view.input_count() + view.output_count())
}

impl Change {
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Change::Added(added) => size_of_tx(&added.tx),
            Change::Removed(_) => size_of::<Change>(),
        }
    }
}

#[derive(Debug)]
struct Entry {
    tx: Arc<Transaction>,
    row: FeeRow,
    sequence: u64,
    time: i64,
}

/// A mempool.
#[derive(Debug, Default)]
pub(crate) struct Copy {
    /// `None`: none was received yet.
    pub(crate) state: Option<State>,
    rows: PoolRows,
    entries: HashMap<Txid, Entry>,
    spenders: HashMap<OutPoint, Txid>,
    /// Sequence and time of each transaction.
    by_arrival: BTreeSet<(u64, i64, Txid)>,
    totals: PoolTotals,
    bytes: usize,
}

impl Copy {
    /// Adds a transaction. False if it was in it already, and is replaced.
    pub(crate) fn add(&mut self, added: PoolTx) -> bool {
        let PoolTx { tx, fee, vsize, sequence, time, spent } = added;
        let view = tx.view();
        let txid = view.txid();
        let is_new = self.remove(&txid).is_none();
        self.rows.add(view, spent);
        self.spenders.extend(view.inputs().map(|input| (input.prevout, txid)));
        self.by_arrival.insert((sequence, time, txid));
        self.totals.count += 1;
        self.totals.vsize = self.totals.vsize.saturating_add(vsize);
        self.totals.fee = self.totals.fee.saturating_add(fee);
        self.bytes += size_of_tx(&tx);
        let entry = Entry { row: FeeRow { txid, fee, vsize }, sequence, time, tx };
        self.entries.insert(txid, entry);
        is_new
    }

    /// Returns the transaction and its scripts.
    pub(crate) fn remove(&mut self, txid: &Txid) -> Option<(Arc<Transaction>, Vec<ScriptHash>)> {
        let Entry { tx, row, sequence, time } = self.entries.remove(txid)?;
        for input in tx.view().inputs() {
            if self.spenders.get(&input.prevout) == Some(txid) {
                self.spenders.remove(&input.prevout);
            }
        }
        self.by_arrival.remove(&(sequence, time, *txid));
        self.totals.count -= 1;
        self.totals.vsize = self.totals.vsize.saturating_sub(row.vsize);
        self.totals.fee = self.totals.fee.saturating_sub(row.fee);
        self.bytes -= size_of_tx(&tx);
        let scripts = self.rows.remove(txid).unwrap_or_default();
        Some((tx, scripts))
    }

    /// Applies changes, and notes what they touch. False if they do not fit this copy.
    pub(crate) fn apply(&mut self, changes: Vec<Change>, unseen: &mut Unseen) -> bool {
        let mut fits = true;
        let mut changed: Vec<Arc<Transaction>> = Vec::with_capacity(changes.len());
        for change in changes {
            let (tx, scripts) = match change {
                Change::Added(added) => {
                    let tx = Arc::clone(&added.tx);
                    fits &= self.add(added);
                    (tx, None)
                }
                Change::Removed(txid) => match self.remove(&txid) {
                    Some((tx, scripts)) => (tx, Some(scripts)),
                    None => {
                        fits = false;
                        continue;
                    }
                },
            };
            match scripts {
                Some(scripts) => unseen.add(tx.view(), Some(&scripts)),
                None => unseen.add(tx.view(), self.rows.scripts(&tx.view().txid())),
            }
            changed.push(tx);
        }
        // Whether their children have an unconfirmed input may be another.
        for tx in changed {
            let view = tx.view();
            let txid = view.txid();
            for vout in 0..u32::try_from(view.output_count()).unwrap_or(0) {
                let child = self.spenders.get(&OutPoint { txid, vout }).and_then(|child| self.entries.get(child));
                if let Some(child) = child {
                    unseen.add(child.tx.view(), self.rows.scripts(&child.row.txid));
                }
            }
        }
        fits
    }

    /// Notes what has other answers in `next`.
    pub(crate) fn differences(&self, next: &Copy, unseen: &mut Unseen) {
        for (txid, entry) in &self.entries {
            if !next.entries.contains_key(txid) {
                unseen.add(entry.tx.view(), self.rows.scripts(txid));
            }
        }
        for (txid, entry) in &next.entries {
            let is_same = self
                .entries
                .get(txid)
                .is_some_and(|old| old.row == entry.row && self.is_chained(old) == next.is_chained(entry));
            if !is_same {
                unseen.add(entry.tx.view(), next.rows.scripts(txid));
            }
        }
    }

    /// Whether one of its inputs is unconfirmed.
    fn is_chained(&self, entry: &Entry) -> bool {
        entry.tx.view().inputs().any(|input| self.entries.contains_key(&input.prevout.txid))
    }

    pub(crate) fn of_script(&self, script: &ScriptHash) -> Vec<(FeeRow, bool, Vec<PoolRow>)> {
        self.rows.of_script(script, |txid| {
            let entry = self.entries.get(txid)?;
            Some((entry.row, self.is_chained(entry)))
        })
    }

    pub(crate) fn spender(&self, outpoint: &OutPoint) -> Option<(Txid, bool)> {
        let txid = self.spenders.get(outpoint)?;
        Some((*txid, self.is_chained(self.entries.get(txid)?)))
    }

    pub(crate) fn transaction(&self, txid: &Txid) -> Option<(Arc<Transaction>, bool)> {
        let entry = self.entries.get(txid)?;
        Some((Arc::clone(&entry.tx), self.is_chained(entry)))
    }

    pub(crate) fn has(&self, txid: &Txid) -> bool {
        self.entries.contains_key(txid)
    }

    pub(crate) fn totals(&self) -> PoolTotals {
        self.totals
    }

    /// The newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = FeeRow> {
        self.by_arrival.iter().rev().filter_map(|(.., txid)| self.entries.get(txid).map(|entry| entry.row))
    }

    /// Memory, estimated.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
