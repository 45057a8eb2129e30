//! [`Transactions`]: the transactions of a template as JSON.
//!
//! Input: entries of the mempool in the order of the block. Output: the array of `getblocktemplate`, written once.

use crate::output::Hex;
use crate::result::{Answer, Form, result, write_array};
use lydian_consensus::limits::WITNESS_SCALE_FACTOR;
use lydian_mempool::pool::Entry;
use lydian_primitives::{Txid, Wtxid};
use std::collections::HashMap;
use std::sync::Arc;

result! {
    struct Transaction<'a> {
        /// transaction data encoded in hexadecimal (byte-for-byte)
        data: Hex<&'a [u8]>,
        /// transaction hash excluding witness data, shown in byte-reversed hex
        txid: Txid,
        /// transaction hash including witness data, shown in byte-reversed hex
        hash: Wtxid,
        /// transactions before this one (by 1-based index in the "transactions" list) that must be present in the final
        /// block if this one is
        depends: Vec<usize>,
        /// difference in value between transaction inputs and outputs (in satoshis)
        fee: i64,
        /// total SigOps cost, as counted for purposes of block limits
        sigops: usize,
        /// total transaction weight, as counted for purposes of block limits
        weight: usize,
    }
}

/// An array of transactions. A clone shares the text.
#[derive(Clone, Debug)]
pub(crate) struct Transactions(Arc<Vec<u8>>);

/// More than the fields of a transaction take beside its bytes.
const FIELDS_SIZE: usize = 400;

impl Transactions {
    /// Writes transactions, parents before children. Before segwit, signature operations are counted without its scale.
    pub(super) fn write(entries: &[Arc<Entry>], is_segwit: bool) -> Transactions {
        let scale = if is_segwit { 1 } else { WITNESS_SCALE_FACTOR };
        let mut earlier: HashMap<Txid, usize> = HashMap::with_capacity(entries.len());
        let size: usize = entries.iter().map(|entry| 2 * entry.tx().as_bytes().len() + FIELDS_SIZE).sum();
        let mut out = Vec::with_capacity(size);
        let written = (1..).zip(entries).map(|(index, entry)| {
            let (txid, tx) = (entry.txid(), entry.tx().view());
            earlier.insert(txid, index);
            Transaction {
                data: Hex(entry.tx().as_bytes()),
                txid,
                hash: entry.wtxid(),
                depends: tx.inputs().filter_map(|input| earlier.get(&input.prevout.txid).copied()).collect(),
                fee: entry.fee().0,
                sigops: usize::try_from(entry.sigops_cost()).unwrap_or(usize::MAX) / scale,
                weight: tx.weight(),
            }
        });
        write_array(written, &mut out);
        Transactions(Arc::new(out))
    }

    /// Bytes of the text.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Answer for Transactions {
    const FORM: Form = Form::Array(&Transaction::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0);
    }
}
