//! Signs transactions: Core's `SignTransaction`, `ProduceSignature` and `DataFromTransaction` (script/sign.cpp).
//!
//! Input: a transaction, the outputs it spends as far as they are known, private keys and scripts. Output: the
//! transaction with all signatures that could be made, those it already had, and an error for each input that does not
//! verify. [`combine`] only joins signatures that exist.
//!
//! Signed are pay-to-pubkey, pay-to-pubkey-hash, multisig and witness key hashes, each also in P2SH; witness scripts of
//! these kinds or of miniscript; and taproot outputs whose key is given as it is (rawtr). Invariants: signatures are
//! byte for byte Core's (RFC 6979 with low r; BIP-0340 without auxiliary randomness); private keys are wiped when a
//! [`Keystore`] is dropped and are in no text. Cost: a signature hash and two curve multiplications per signature, and
//! a verification of each input before and after.

mod data;
mod key;
mod message;
mod produce;

pub use key::PrivateKey;
pub use message::{sign_message, verify_message};

use data::SignatureData;
use lydian_hash::hash160;
use lydian_primitives::build::MutTx;
use lydian_primitives::{Amount, Output, Tx};
use lydian_script::sighash::{SIGHASH_ALL, SIGHASH_ANYONECANPAY, SIGHASH_DEFAULT, SIGHASH_SINGLE};
use lydian_script::{ScriptError, TxContext};
use produce::Signer;
use std::collections::BTreeMap;
use std::fmt;

/// Private keys and scripts that outputs commit to.
#[derive(Debug, Default)]
pub struct Keystore {
    /// By the hashes of their public keys.
    keys: BTreeMap<[u8; 20], PrivateKey>,
    /// By their hashes.
    scripts: BTreeMap<[u8; 20], Vec<u8>>,
}

impl Keystore {
    pub fn new() -> Keystore {
        Keystore::default()
    }

    pub fn add_key(&mut self, key: PrivateKey) {
        self.keys.entry(hash160(key.public_key())).or_insert(key);
    }

    /// Adds a redeem script or a witness script.
    pub fn add_script(&mut self, script: Vec<u8>) {
        self.scripts.entry(hash160(&script)).or_insert(script);
    }
}

/// Why an input is not signed, or not completely. Displayed with Core's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputError {
    /// The output that it spends is unknown.
    NotFound,
    /// Its signature commits to an amount that was not given.
    MissingAmount,
    /// The input does not verify.
    Script(ScriptError),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InputError::NotFound => "Input not found or already spent",
            InputError::MissingAmount => "Missing amount",
            InputError::Script(ScriptError::InvalidStackOperation) => {
                "Unable to sign input, invalid stack size (possibly missing key)"
            }
            InputError::Script(ScriptError::SigNullFail) => {
                "CHECK(MULTI)SIG failing with non-zero signature (possibly need more signatures)"
            }
            InputError::Script(error) => error.text(),
        })
    }
}

/// A transaction after signing.
#[derive(Clone, Debug)]
pub struct Signed {
    pub tx: MutTx,
    /// Indexes of inputs, ascending, with the reason. Without any, the transaction is complete.
    pub errors: Vec<(usize, InputError)>,
}

/// The largest amount: Core's `MAX_MONEY`, which stands for an amount that was not given.
pub const AMOUNT_NOT_GIVEN: Amount = Amount(21_000_000 * 100_000_000);

/// Stands for an output that is unknown.
const UNKNOWN: Output<'_> = Output { value: Amount(-1), script_pubkey: &[] };

/// Signs what can be signed: Core's `SignTransaction`. `spent` has the output of each input, if it is known; one of
/// [`AMOUNT_NOT_GIVEN`] has no known amount. `hash_type` 0 is DEFAULT for taproot and ALL otherwise.
pub fn sign_transaction(tx: Tx<'_>, spent: &[Option<Output<'_>>], keys: &Keystore, hash_type: u8) -> Signed {
    let mut signed = Signed { tx: MutTx::from(tx), errors: Vec::new() };
    let outputs: Vec<Output<'_>> = spent.iter().map(|output| output.unwrap_or(UNKNOWN)).collect();
    let Some(context) = TxContext::new(tx, &outputs) else { return signed };
    let has_all = spent.iter().all(Option::is_some);
    let is_single = u32::from(hash_type) & !SIGHASH_ANYONECANPAY == SIGHASH_SINGLE;
    for (index, output) in spent.iter().enumerate() {
        let Some(output) = output else {
            signed.errors.push((index, InputError::NotFound));
            continue;
        };
        let signer = Signer::new(&context, index, keys, hash_type, has_all);
        let mut data = SignatureData::of_input(&context, index, tx);
        // SINGLE signs the output with the index of the input.
        if !is_single || index < tx.output_count() {
            signer.produce(output.script_pubkey, &mut data);
        }
        let error = match () {
            () if output.value == AMOUNT_NOT_GIVEN && !data.witness.is_empty() => Some(InputError::MissingAmount),
            () if data.is_complete => None,
            () => signer.verify(output.script_pubkey, &data).err().map(InputError::Script),
        };
        signed.errors.extend(error.map(|error| (index, error)));
        data.move_to(&mut signed.tx.inputs[index]);
    }
    signed
}

/// Joins the signatures of copies of one transaction that differ only in their signatures: the part of Core's
/// `combinerawtransaction` after its checks. `spent` has the output of each input.
pub fn combine(variants: &[Tx<'_>], spent: &[Output<'_>]) -> Option<MutTx> {
    let first = *variants.first()?;
    let mut combined = MutTx::from(first);
    let context = TxContext::new(first, spent)?;
    if variants.iter().any(|variant| variant.input_count() != first.input_count()) {
        return None;
    }
    let no_keys = Keystore::new();
    for (index, input) in combined.inputs.iter_mut().enumerate() {
        let mut data = SignatureData::default();
        for variant in variants {
            data.merge(SignatureData::of_input(&context, index, *variant));
        }
        let hash_type = u8::try_from(SIGHASH_ALL).unwrap_or(SIGHASH_DEFAULT);
        Signer::new(&context, index, &no_keys, hash_type, false).produce(context.spent(index).script_pubkey, &mut data);
        data.move_to(input);
    }
    Some(combined)
}

#[cfg(test)]
mod tests;
