//! Script failures: one coin, one transaction that spends it incorrectly and one that spends it correctly.
//!
//! Input: cases. Output: a block that funds them all, one refused block for each, and one valid block with all correct
//! spends.

use super::Bench;
use crate::error::ChainsError;
use crate::presets::maker::{FreeCoin, TRUE_SCRIPT, free_tx, output};
use crate::wallet::{LEAF_VERSION_TAPSCRIPT, Spending, ecdsa_signature, leaf_hash, legacy_message, schnorr_signature};
use lydian_primitives::OutPoint;
use lydian_primitives::build::{MutOutput, MutTx};
use secp256k1::Keypair;
use std::rc::Rc;

/// Value of each coin.
const VALUE: i64 = 20_000;

/// scriptSig and witness of the input.
pub(in crate::presets) type Unlocked = (Vec<u8>, Vec<Vec<u8>>);
type Unlock = Rc<dyn Fn(&Signing<'_>) -> Unlocked>;

/// The transaction to be signed; the coin is its only input.
pub(in crate::presets) struct Signing<'a> {
    pub(in crate::presets) tx: &'a MutTx,
    spent: &'a [(i64, Vec<u8>)],
}

impl Signing<'_> {
    pub(in crate::presets) fn legacy(&self, key: &Keypair, script_code: &[u8]) -> Vec<u8> {
        ecdsa_signature(key, legacy_message(self.tx, 0, script_code))
    }

    pub(in crate::presets) fn segwit_v0(&self, key: &Keypair, script_code: &[u8]) -> Vec<u8> {
        ecdsa_signature(key, Spending::new(self.spent).segwit_v0(self.tx, 0, script_code))
    }

    pub(super) fn key_path(&self, key: &Keypair) -> Vec<u8> {
        schnorr_signature(key, Spending::new(self.spent).taproot(self.tx, 0, None))
    }

    pub(super) fn tapscript(&self, key: &Keypair, leaf: &[u8]) -> Vec<u8> {
        let leaf = leaf_hash(LEAF_VERSION_TAPSCRIPT, leaf);
        schnorr_signature(key, Spending::new(self.spent).taproot(self.tx, 0, Some(&leaf)))
    }
}

#[derive(Clone)]
pub(in crate::presets) struct ScriptCase {
    name: String,
    /// Core's text for the script error.
    error: &'static str,
    script_pubkey: Vec<u8>,
    lock_time: u32,
    sequence: u32,
    bad: Unlock,
    good: Option<Unlock>,
}

impl ScriptCase {
    pub(in crate::presets) fn new(
        name: &str,
        error: &'static str,
        script_pubkey: Vec<u8>,
        bad: impl Fn(&Signing<'_>) -> Unlocked + 'static,
    ) -> ScriptCase {
        ScriptCase {
            name: name.into(),
            error,
            script_pubkey,
            lock_time: 0,
            sequence: u32::MAX,
            bad: Rc::new(bad),
            good: None,
        }
    }

    /// Adds the correct spend of the same coin.
    pub(in crate::presets) fn twin(mut self, good: impl Fn(&Signing<'_>) -> Unlocked + 'static) -> ScriptCase {
        self.good = Some(Rc::new(good));
        self
    }

    pub(super) fn locked(mut self, lock_time: u32, sequence: u32) -> ScriptCase {
        (self.lock_time, self.sequence) = (lock_time, sequence);
        self
    }

    pub(in crate::presets) fn name(&self) -> &str {
        &self.name
    }

    /// The answer of Core's `submitblock` to a block with the incorrect spend.
    pub(in crate::presets) fn reason(&self) -> String {
        format!("block-script-verify-flag-failed ({})", self.error)
    }

    /// The output to be spent.
    pub(in crate::presets) fn coin(&self) -> MutOutput {
        output(VALUE, &self.script_pubkey)
    }

    pub(in crate::presets) fn bad_spend(&self, outpoint: OutPoint) -> MutTx {
        self.spend(outpoint, &self.bad)
    }

    pub(in crate::presets) fn good_spend(&self, outpoint: OutPoint) -> Option<MutTx> {
        self.good.as_ref().map(|unlock| self.spend(outpoint, unlock))
    }

    fn spend(&self, outpoint: OutPoint, unlock: &Unlock) -> MutTx {
        let coin = FreeCoin { outpoint, value: VALUE, coinbase_height: None };
        let mut tx = free_tx(&[coin], vec![output(VALUE, &TRUE_SCRIPT)]);
        tx.lock_time = self.lock_time;
        tx.inputs[0].sequence = self.sequence;
        let spent = [(VALUE, self.script_pubkey.clone())];
        let (script_sig, witness) = unlock(&Signing { tx: &tx, spent: &spent });
        tx.inputs[0].script_sig = script_sig;
        tx.inputs[0].witness = witness;
        tx
    }
}

pub(super) fn record(bench: &mut Bench, cases: &[ScriptCase]) -> Result<(), ChainsError> {
    let Some(coin) = bench.maker.rich_coin() else { return Ok(()) };
    let outputs = cases.iter().map(ScriptCase::coin).collect();
    let funding = free_tx(&[coin], outputs);
    let txid = funding.txid();
    bench.twin("chain", "", vec![funding], |_| ())?;
    let mut good = Vec::new();
    for (vout, case) in (0..).zip(cases) {
        let outpoint = OutPoint { txid, vout };
        let bad = case.bad_spend(outpoint);
        bench.broken(&case.name, "block-script-verify-flag-failed", &case.reason(), vec![bad], |_| ())?;
        good.extend(case.good_spend(outpoint));
    }
    bench.twin("every-script-spent-rightly", "block-script-verify-flag-failed", good, |_| ())
}
