//! Transactions and recorded calls for the tests and fuzz targets of this module.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction, Txid};
use std::sync::Arc;

/// What a transaction looks like; the ids follow from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) prevouts: Vec<OutPoint>,
    pub(super) outputs: usize,
    /// Changes the txid.
    pub(super) salt: u32,
    /// Bytes of witness in the first input, which change the wtxid only; none if 0.
    pub(super) witness_size: usize,
    /// The first byte of the witness.
    pub(super) witness_salt: u8,
}

impl Sample {
    pub(super) fn build(&self) -> Arc<Transaction> {
        let input = |(index, prevout): (usize, &OutPoint)| {
            let mut item = vec![0; if index == 0 { self.witness_size } else { 0 }];
            item.first_mut().into_iter().for_each(|first| *first = self.witness_salt);
            let witness = if item.is_empty() { vec![] } else { vec![item] };
            MutInput { prevout: *prevout, script_sig: vec![], sequence: u32::MAX, witness }
        };
        let tx = MutTx {
            version: 2,
            inputs: self.prevouts.iter().enumerate().map(input).collect(),
            outputs: vec![MutOutput { value: Amount(1000), script_pubkey: vec![0x51] }; self.outputs],
            lock_time: self.salt,
        };
        Arc::new(tx.to_transaction().unwrap())
    }
}

pub(super) fn outpoint(txid: Txid, vout: u32) -> OutPoint {
    OutPoint { txid, vout }
}

/// A transaction that spends the first output of each parent.
pub(super) fn child(parents: &[Txid], salt: u32) -> Arc<Transaction> {
    let prevouts = parents.iter().map(|txid| outpoint(*txid, 0)).collect();
    Sample { prevouts, outputs: 1, salt, witness_size: 1, witness_salt: 1 }.build()
}

/// A transaction with a witness, whose parents are not known.
#[cfg(test)]
pub(super) fn lone(salt: u32) -> Arc<Transaction> {
    child(&[Txid([0xee; 32])], salt)
}

/// Unpacks a recording of calls.
#[cfg(test)]
pub(super) fn core_trace(compressed: &[u8]) -> String {
    String::from_utf8(zstd::decode_all(compressed).unwrap()).unwrap()
}
