//! Transactions as JSON: Core's `TxToUniv` (core_io.cpp).
//!
//! Input: a transaction, and the coins it spends, if known. Output: typed answers that borrow its bytes. Cost: one
//! pass; only addresses and descriptors are allocated.

use super::hashes::Hex;
use super::script::{Asm, ScriptAnswer};
use crate::json::Amount;
use crate::result::{Answer, Form, Inline, result, write_array};
use lydian_consensus::{Chain, Coin};
use lydian_descriptor::OffCurve;
use lydian_primitives::{BlockHash, Transaction, Tx, Txid, Wtxid};

/// How much is written about inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The contents of the transaction itself.
    Plain,
    /// Also the spent outputs.
    Prevouts,
}

result! {
    /// A transaction with its bytes, and its fee if the coins it spends are known.
    pub(crate) struct TransactionAnswer<'a> {
        fields: Inline<TransactionFields<'a>>,
        /// the transaction fee in BTC, omitted if block undo data is not available
        fee: Option<Amount>,
        /// the serialized transaction
        hex: Hex<&'a [u8]>,
    }
}

result! {
    /// A transaction: Core's `TxToUniv` without hex.
    struct TransactionFields<'a> {
        /// the transaction id
        txid: Txid,
        /// the transaction hash (differs from txid for witness transactions)
        hash: Wtxid,
        /// the version
        version: u32,
        /// the serialized transaction size
        size: usize,
        /// the virtual transaction size (differs from size for witness transactions)
        vsize: usize,
        /// the transaction's weight (between vsize*4-3 and vsize*4)
        weight: usize,
        /// the lock time
        locktime: u32,
        vin: Inputs<'a>,
        vout: Outputs<'a>,
    }
}

impl<'a> TransactionAnswer<'a> {
    /// `spent` has a coin for each input. `off_curve`: of scripts that include all that are written.
    pub(crate) fn new(
        tx: Tx<'a>,
        spent: Option<&'a [Coin]>,
        detail: Detail,
        chain: Chain,
        off_curve: Option<&'a OffCurve>,
    ) -> TransactionAnswer<'a> {
        let fee = spent.map(|spent| {
            let total_in: i128 = spent.iter().map(|coin| i128::from(coin.value.0)).sum();
            let total_out: i128 = tx.outputs().map(|output| i128::from(output.value.0)).sum();
            Amount(i64::try_from(total_in - total_out).unwrap_or(0))
        });
        let shown = spent.filter(|_| detail == Detail::Prevouts);
        let fields = Inline(TransactionFields::new(tx, shown, chain, off_curve));
        TransactionAnswer { fields, fee, hex: Hex(tx.bytes()) }
    }
}

impl<'a> TransactionFields<'a> {
    /// `spent` has a coin for each input, if they are written.
    fn new(
        tx: Tx<'a>,
        spent: Option<&'a [Coin]>,
        chain: Chain,
        off_curve: Option<&'a OffCurve>,
    ) -> TransactionFields<'a> {
        let weight = tx.weight();
        TransactionFields {
            txid: tx.txid(),
            hash: tx.wtxid(),
            version: tx.version(),
            size: tx.total_size(),
            vsize: weight.div_ceil(4),
            weight,
            locktime: tx.lock_time(),
            vin: Inputs { tx, spent, chain, off_curve },
            vout: Outputs { tx, chain, off_curve },
        }
    }
}

result! {
    /// A transaction with the block that contains it, if any, as `TxToUniv` writes the two.
    pub(crate) struct IndexedTransaction<'a> {
        fields: Inline<TransactionFields<'a>>,
        /// the block hash
        blockhash: Option<BlockHash>,
        /// the serialized transaction
        hex: Hex<&'a [u8]>,
    }
}

impl<'a> IndexedTransaction<'a> {
    pub(crate) fn new(tx: Tx<'a>, blockhash: Option<BlockHash>, chain: Chain) -> IndexedTransaction<'a> {
        let fields = Inline(TransactionFields::new(tx, None, chain, None));
        IndexedTransaction { fields, blockhash, hex: Hex(tx.bytes()) }
    }
}

/// A transaction that outlives its block.
#[derive(Debug)]
pub(crate) struct OwnedTransaction {
    pub(crate) tx: Transaction,
    /// The coin of each input, if they are known.
    pub(crate) spent: Option<Vec<Coin>>,
    pub(crate) chain: Chain,
}

impl OwnedTransaction {
    fn answer(&self) -> TransactionAnswer<'_> {
        TransactionAnswer::new(self.tx.view(), self.spent.as_deref(), Detail::Prevouts, self.chain, None)
    }
}

impl Answer for OwnedTransaction {
    const FORM: Form = TransactionAnswer::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        self.answer().write(out);
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        self.answer().write_fields(out);
    }
}

/// A transaction without its bytes.
#[derive(Debug)]
pub(crate) struct DecodedTransaction {
    pub(crate) tx: Transaction,
    pub(crate) chain: Chain,
}

impl Answer for DecodedTransaction {
    const FORM: Form = TransactionFields::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        TransactionFields::new(self.tx.view(), None, self.chain, None).write(out);
    }
}

/// A transaction inside of another answer, without its bytes.
#[derive(Debug)]
pub(crate) struct PlainTransaction<'a> {
    pub(crate) tx: Tx<'a>,
    pub(crate) chain: Chain,
}

impl Answer for PlainTransaction<'_> {
    const FORM: Form = TransactionFields::FORM;

    fn write(&self, out: &mut Vec<u8>) {
        TransactionFields::new(self.tx, None, self.chain, None).write(out);
    }
}

/// The inputs of a transaction.
#[derive(Debug)]
struct Inputs<'a> {
    tx: Tx<'a>,
    /// The coin of each input, if they are written.
    spent: Option<&'a [Coin]>,
    chain: Chain,
    off_curve: Option<&'a OffCurve>,
}

result! {
    struct InputAnswer<'a> {
        /// the coinbase value (only if coinbase transaction)
        coinbase: Option<Hex<&'a [u8]>>,
        /// the transaction id (if not coinbase transaction)
        txid: Option<Txid>,
        /// the output number (if not coinbase transaction)
        vout: Option<u32>,
        /// the script (if not coinbase transaction)
        #[name("scriptSig")]
        script: Option<ScriptSig<'a>>,
        /// hex-encoded witness data (if any)
        #[each("a stack element")]
        txinwitness: Option<Vec<Hex<&'a [u8]>>>,
        /// the spent output (only for verbosity = 3 and if undo data is available)
        prevout: Option<PrevoutAnswer<'a>>,
        /// the script sequence number
        sequence: u32,
    }
}

result! {
    struct ScriptSig<'a> {
        /// disassembly of the signature script
        asm: Asm<'a>,
        /// the raw signature script bytes
        hex: Hex<&'a [u8]>,
    }
}

result! {
    struct PrevoutAnswer<'a> {
        /// coinbase or not
        generated: bool,
        /// the height of the prevout
        height: u32,
        /// the value in BTC
        value: Amount,
        #[name("scriptPubKey")]
        script: ScriptAnswer<'a>,
    }
}

impl Answer for Inputs<'_> {
    const FORM: Form = Form::Array(&InputAnswer::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        let is_coinbase = self.tx.is_coinbase();
        let inputs = self.tx.inputs().enumerate().map(|(index, input)| {
            let coin = self.spent.and_then(|spent| spent.get(index));
            let asm = Asm { script: input.script_sig, may_sign: true };
            let witness = || input.witness.iter().map(Hex).collect();
            InputAnswer {
                coinbase: is_coinbase.then_some(Hex(input.script_sig)),
                txid: (!is_coinbase).then_some(input.prevout.txid),
                vout: (!is_coinbase).then_some(input.prevout.vout),
                script: (!is_coinbase).then_some(ScriptSig { asm, hex: Hex(input.script_sig) }),
                txinwitness: (!input.witness.is_empty()).then(witness),
                prevout: coin.map(|coin| PrevoutAnswer {
                    generated: coin.is_coinbase,
                    height: coin.height.0,
                    value: Amount(coin.value.0),
                    script: ScriptAnswer::among(&coin.script_pubkey, self.chain, self.off_curve),
                }),
                sequence: input.sequence,
            }
        });
        write_array(inputs, out);
    }
}

/// The outputs of a transaction.
#[derive(Debug)]
struct Outputs<'a> {
    tx: Tx<'a>,
    chain: Chain,
    off_curve: Option<&'a OffCurve>,
}

result! {
    struct OutputAnswer<'a> {
        /// the value in BTC
        value: Amount,
        /// index
        n: usize,
        #[name("scriptPubKey")]
        script: ScriptAnswer<'a>,
    }
}

impl Answer for Outputs<'_> {
    const FORM: Form = Form::Array(&OutputAnswer::FORM);

    fn write(&self, out: &mut Vec<u8>) {
        let outputs = self.tx.outputs().enumerate().map(|(n, output)| OutputAnswer {
            value: Amount(output.value.0),
            n,
            script: ScriptAnswer::among(output.script_pubkey, self.chain, self.off_curve),
        });
        write_array(outputs, out);
    }
}
