//! [`PoolRows`]: what the transactions of a mempool do with scripts; [`Unseen`]: what they touched.
//!
//! Input: transactions with the outputs that they spend, in the order in which they came. Output: the rows of a script,
//! in that order. [`crate::NodePool`] keeps them for the mempool of this node; a copy of another node's mempool keeps
//! the same.
//!
//! Memory: about 120 bytes for an output or an input of the mempool; at most [`TOUCHED_MAX`] things that were touched.

use crate::limits::TOUCHED_MAX;
use crate::source::{FeeRow, PoolRow, PoolTouched, Touched};
use lydian_index::ScriptHash;
use lydian_primitives::{Tx, Txid};
use lydian_script::is_unspendable;
use std::collections::HashMap;

/// The rows of a mempool by script.
#[derive(Debug, Default)]
pub struct PoolRows {
    by_script: HashMap<ScriptHash, Vec<(Txid, PoolRow)>>,
    /// The scripts of each transaction.
    scripts: HashMap<Txid, Vec<ScriptHash>>,
}

impl PoolRows {
    /// `spent`: the script and the value of the output that each input spends.
    pub fn add(&mut self, tx: Tx<'_>, spent: Vec<(ScriptHash, i64)>) {
        let txid = tx.txid();
        let mut scripts = Vec::new();
        let outputs = (0..).zip(tx.outputs()).filter(|(_, output)| !is_unspendable(output.script_pubkey));
        let pays = outputs.map(|(vout, output)| {
            (ScriptHash::of(output.script_pubkey), PoolRow::Pays { vout, value: output.value.0 })
        });
        let spends = tx
            .inputs()
            .zip(spent)
            .map(|(input, (script, value))| (script, PoolRow::Spends { prevout: input.prevout, value }));
        for (script, row) in pays.chain(spends) {
            self.by_script.entry(script).or_default().push((txid, row));
            scripts.push(script);
        }
        scripts.sort_unstable();
        scripts.dedup();
        self.scripts.insert(txid, scripts);
    }

    /// Returns its scripts.
    pub fn remove(&mut self, txid: &Txid) -> Option<Vec<ScriptHash>> {
        let scripts = self.scripts.remove(txid)?;
        for script in &scripts {
            if let Some(rows) = self.by_script.get_mut(script) {
                rows.retain(|(of, _)| of != txid);
                if rows.is_empty() {
                    self.by_script.remove(script);
                }
            }
        }
        Some(scripts)
    }

    /// The scripts of a transaction, each once.
    pub fn scripts(&self, txid: &Txid) -> Option<&Vec<ScriptHash>> {
        self.scripts.get(txid)
    }

    /// The transactions of a script with their rows. `look`: the fee of a transaction, and whether one of its inputs is
    /// unconfirmed; `None` leaves it out.
    pub fn of_script(
        &self,
        script: &ScriptHash,
        look: impl Fn(&Txid) -> Option<(FeeRow, bool)>,
    ) -> Vec<(FeeRow, bool, Vec<PoolRow>)> {
        let mut transactions: Vec<(FeeRow, bool, Vec<PoolRow>)> = Vec::new();
        for (txid, row) in self.by_script.get(script).map_or(&[][..], Vec::as_slice) {
            match transactions.last_mut().filter(|(tx, _, _)| tx.txid == *txid) {
                Some((_, _, rows)) => rows.push(*row),
                None => transactions.extend(look(txid).map(|(fee, chained)| (fee, chained, vec![*row]))),
            }
        }
        transactions
    }
}

/// What was touched since it was last taken. If no server takes it, nothing is kept.
#[derive(Debug, Default)]
pub struct Unseen {
    these: Touched,
    is_all: bool,
}

impl Unseen {
    pub fn all() -> Unseen {
        Unseen { is_all: true, ..Unseen::default() }
    }

    /// Adds a transaction with its scripts.
    pub fn add(&mut self, tx: Tx<'_>, scripts: Option<&Vec<ScriptHash>>) {
        if self.is_all {
            return;
        }
        self.these.add(tx);
        self.these.scripts.extend(scripts.into_iter().flatten());
        self.check();
    }

    pub fn extend(&mut self, other: Unseen) {
        if self.is_all || other.is_all {
            *self = Unseen::all();
            return;
        }
        self.these.extend(other.these);
        self.check();
    }

    fn check(&mut self) {
        if self.these.len() > TOUCHED_MAX {
            *self = Unseen::all();
        }
    }

    pub fn is_empty(&self) -> bool {
        !self.is_all && self.these.is_empty()
    }

    pub fn take(&mut self) -> PoolTouched {
        match std::mem::take(self) {
            Unseen { is_all: true, .. } => PoolTouched::All,
            Unseen { these, .. } => PoolTouched::These(these),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_primitives::build::{MutInput, MutOutput, MutTx};
    use lydian_primitives::{Amount, OutPoint, Transaction};

    /// A transaction with one input and so many outputs.
    fn tx(number: u8, outputs: usize) -> Transaction {
        let prevout = OutPoint { txid: Txid([number; 32]), vout: 7 };
        let input = MutInput { prevout, script_sig: Vec::new(), sequence: 0, witness: Vec::new() };
        let output = || MutOutput { value: Amount(1), script_pubkey: vec![0x51] };
        let outputs = (0..outputs).map(|_| output()).collect();
        Transaction::parse(MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 }.encode()).unwrap()
    }

    /// Esplora alone never takes what was touched, so that it was kept for ever.
    ///
    /// limit: TOUCHED_MAX at
    /// limit: TOUCHED_MAX above
    #[test]
    fn what_no_server_takes_is_not_kept() {
        let mut unseen = Unseen::default();
        // A txid, a script, and the outputs with the one that is spent.
        let (most, script) = (tx(1, TOUCHED_MAX - 3), vec![ScriptHash([1; 32])]);
        unseen.add(most.view(), Some(&script));
        assert!(!unseen.is_all && unseen.these.len() == TOUCHED_MAX);
        let PoolTouched::These(these) = unseen.take() else { panic!("not all") };
        let [first, spent] = [(most.view().txid(), 0), (Txid([1; 32]), 7)];
        assert!([first, spent].into_iter().all(|(txid, vout)| these.outpoints.contains(&OutPoint { txid, vout })));
        assert!(these.txids.contains(&first.0) && these.scripts.contains(&script[0]));
        unseen.add(most.view(), Some(&script));
        unseen.add(tx(2, 1).view(), None);
        assert!(unseen.is_all && unseen.these.is_empty());
        unseen.add(tx(3, 1).view(), None);
        assert!(unseen.these.is_empty(), "all is more than this");
        assert_eq!(unseen.take(), PoolTouched::All);
        assert_eq!(unseen.take(), PoolTouched::These(Touched::default()));
    }
}
