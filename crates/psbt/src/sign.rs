//! Signing the inputs of a PSBT: Core's `SignPSBTInput`, `UpdatePSBTOutput` and `RemoveUnnecessaryTransactions`.
//!
//! Input: a PSBT, private keys and what descriptors know. Output: the PSBT with signatures or final scripts, and the
//! reason why an input is not complete. Cost: the transaction is built once for all inputs.

use crate::types::{Input, Psbt};
use lydian_descriptor::{Batch, Keystore, Missing, Signer};
use lydian_primitives::build::MutOutput;
use lydian_primitives::{Amount, Output, Transaction};
use lydian_script::sighash::{SIGHASH_ANYONECANPAY, SIGHASH_DEFAULT};
use lydian_script::{TxContext, witness_program};

const HASH_DEFAULT: i32 = SIGHASH_DEFAULT as i32;
const HASH_ALL: i32 = 1;

/// Why an input is not complete. Displayed with Core's message (`PSBTErrorString`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignError {
    MissingInputs,
    SighashMismatch,
    Incomplete,
    InvalidTx,
}

impl std::fmt::Display for SignError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SignError::MissingInputs => "Inputs missing or spent",
            SignError::SighashMismatch => "Specified sighash value does not match value stored in PSBT",
            SignError::Incomplete => "Input needs additional signatures or other data",
            SignError::InvalidTx => "The transaction cannot be valid",
        })
    }
}

impl std::error::Error for SignError {}

/// How an input is signed: Core's `PSBTFillOptions`.
#[derive(Clone, Copy, Debug)]
pub struct SignOptions {
    /// `None`: DEFAULT for taproot, ALL otherwise.
    pub sighash_type: Option<i32>,
    /// Makes final scripts of an input that is complete.
    pub finalize: bool,
}

/// The unsigned transaction of a PSBT, and the outputs that it spends: Core's `PrecomputePSBTData`.
#[derive(Debug)]
pub struct Prepared {
    tx: Transaction,
    /// In the order of inputs; those that are unknown have no value.
    spent: Vec<Option<MutOutput>>,
}

/// Stands for an output that is unknown.
const UNKNOWN: Output<'_> = Output { value: Amount(-1), script_pubkey: &[] };

fn view(output: &MutOutput) -> Output<'_> {
    Output { value: output.value, script_pubkey: &output.script_pubkey }
}

impl Prepared {
    /// Fails if no lock time satisfies all inputs.
    pub fn new(psbt: &Psbt) -> Result<Prepared, SignError> {
        let tx = psbt.unsigned_tx().ok_or(SignError::InvalidTx)?;
        let tx = Transaction::parse_without_witness(tx.encode_stripped()).map_err(|_| SignError::InvalidTx)?;
        Ok(Prepared { tx, spent: psbt.inputs.iter().map(Input::utxo).collect() })
    }

    /// The outputs that the transaction spends.
    pub fn outputs(&self) -> Vec<Output<'_>> {
        self.spent.iter().map(|spent| spent.as_ref().map_or(UNKNOWN, view)).collect()
    }

    /// `outputs` are those of [`Prepared::outputs`]. `batch` makes and verifies the signatures.
    pub fn context<'a>(&'a self, outputs: &'a [Output<'a>], batch: &'a Batch<'a>) -> Result<Context<'a>, SignError> {
        let tx = TxContext::new(self.tx.view(), outputs).ok_or(SignError::InvalidTx)?;
        Ok(Context { tx, spent: &self.spent, knows_outputs: self.spent.iter().all(Option::is_some), batch })
    }
}

/// Signs the inputs of one PSBT, which must not change otherwise meanwhile.
#[derive(Debug)]
pub struct Context<'a> {
    tx: TxContext<'a>,
    pub(crate) spent: &'a [Option<MutOutput>],
    knows_outputs: bool,
    batch: &'a Batch<'a>,
}

impl Context<'_> {
    /// Whether the final scripts spend the output: Core's `PSBTInputSignedAndVerified`.
    pub(crate) fn is_verified(&self, index: usize, input: &Input) -> bool {
        self.is_verified_with(index, input, self.knows_outputs)
    }

    fn is_verified_with(&self, index: usize, input: &Input, knows_outputs: bool) -> bool {
        let Some(utxo) = self.spent.get(index).and_then(Option::as_ref) else { return false };
        let keys = Keystore::new();
        let signer = Signer::new(&self.tx, index, &keys, self.batch, (HASH_ALL, knows_outputs));
        signer.holds(&utxo.script_pubkey, &input.final_script_sig, &input.final_witness)
    }

    /// Makes and verifies the signatures of all inputs together, before each of them is signed with
    /// [`Context::sign`]. `sighash_type` is that of an input's [`SignOptions`].
    pub fn plan(&self, inputs: &[Input], keys: &Keystore, sighash_type: impl Fn(&Input) -> Option<i32>) {
        self.batch.plan(|| {
            for (index, input) in inputs.iter().enumerate() {
                if input.is_signed() {
                    self.is_verified(index, input);
                    continue;
                }
                // An input with an error asks for nothing here, and reports it when it is signed.
                let Ok(utxo) = self.checked_utxo(index, input) else { continue };
                let Ok(sighash_type) = agreed_sighash(input, utxo, sighash_type(input)) else { continue };
                let signer = Signer::new(&self.tx, index, keys, self.batch, (sighash_type, self.knows_outputs));
                signer.produce(&utxo.script_pubkey, &mut input.signature_data());
            }
        });
    }

    /// Signs one input: Core's `SignPSBTInput`. `missing` receives what was not found.
    pub fn sign(
        &self,
        index: usize,
        input: &mut Input,
        keys: &Keystore,
        options: SignOptions,
        missing: Option<&mut Missing>,
    ) -> Result<(), SignError> {
        if self.is_verified(index, input) {
            return Ok(());
        }
        let utxo = self.checked_utxo(index, input)?;
        let sighash_type = agree_on_sighash(input, utxo, options.sighash_type)?;
        let signer = Signer::new(&self.tx, index, keys, self.batch, (sighash_type, self.knows_outputs));
        complete(&signer, input, utxo, options.finalize, missing)
    }

    /// Gives one input final scripts of the usual sizes, as far as what it has allows: `SignPSBTInput` without data of
    /// the transaction, so that no taproot signature holds.
    pub(crate) fn estimate(&self, index: usize, input: &mut Input, keys: &Keystore) -> Result<(), SignError> {
        if self.is_verified_with(index, input, false) {
            return Ok(());
        }
        let utxo = self.checked_utxo(index, input)?;
        agree_on_sighash(input, utxo, None)?;
        let signer = Signer::estimating(&self.tx, index, keys);
        complete(&signer, input, utxo, true, None)
    }

    fn checked_utxo(&self, index: usize, input: &Input) -> Result<&MutOutput, SignError> {
        let is_given = input.non_witness_utxo.is_some() || input.witness_utxo.is_some();
        let utxo = self.spent.get(index).and_then(Option::as_ref);
        utxo.filter(|_| is_given).ok_or(SignError::MissingInputs)
    }

    /// Adds what is known about each output: Core's `UpdatePSBTOutput`.
    pub fn update_outputs(&self, psbt: &mut Psbt, keys: &Keystore) {
        let signer = Signer::looking_up(&self.tx, keys);
        for output in &mut psbt.outputs {
            let mut data = output.signature_data();
            signer.produce(&output.script, &mut data);
            output.take_signature_data(data);
        }
    }
}

/// The hash type to sign with, which the field, the parameter and all signatures must have.
fn agree_on_sighash(input: &mut Input, utxo: &MutOutput, given: Option<i32>) -> Result<i32, SignError> {
    let sighash_type = wanted_sighash(utxo, given);
    if input.sighash_type.is_some_and(|field| field != sighash_type) {
        return Err(SignError::SighashMismatch);
    }
    let is_usual = sighash_type == HASH_DEFAULT || !is_taproot(utxo) && sighash_type == HASH_ALL;
    if !is_usual {
        input.sighash_type = Some(sighash_type);
    }
    agreed_sighash(input, utxo, given)
}

fn is_taproot(utxo: &MutOutput) -> bool {
    matches!(utxo.script_pubkey[..], [0x51, 32, ..] if utxo.script_pubkey.len() == 34)
}

fn wanted_sighash(utxo: &MutOutput, given: Option<i32>) -> i32 {
    given.unwrap_or(if is_taproot(utxo) { HASH_DEFAULT } else { HASH_ALL })
}

/// The hash type, if the field and all signatures have it.
fn agreed_sighash(input: &Input, utxo: &MutOutput, given: Option<i32>) -> Result<i32, SignError> {
    let sighash_type = wanted_sighash(utxo, given);
    if input.sighash_type.is_some_and(|field| field != sighash_type) {
        return Err(SignError::SighashMismatch);
    }
    let ends = |signature: &[u8]| signature.last().is_some_and(|last| i32::from(*last) == sighash_type);
    let key_signature = Some(&input.taproot_key_signature).filter(|signature| !signature.is_empty());
    let mut taproot = key_signature.into_iter().chain(input.taproot_script_signatures.values());
    let all_agree = match sighash_type {
        HASH_DEFAULT => taproot.all(|signature| signature.len() == 64),
        _ => {
            taproot.all(|signature| signature.len() == 65 && ends(signature))
                && input.signatures.values().all(|(_, signature)| ends(signature))
        }
    };
    if all_agree { Ok(sighash_type) } else { Err(SignError::SighashMismatch) }
}

fn complete(
    signer: &Signer<'_, '_>,
    input: &mut Input,
    utxo: &MutOutput,
    finalize: bool,
    missing: Option<&mut Missing>,
) -> Result<(), SignError> {
    let mut data = input.signature_data();
    signer.produce(&utxo.script_pubkey, &mut data);
    // Only a witness signature commits to the amount of an output whose transaction is unknown.
    if input.non_witness_utxo.is_none() && !data.is_witness {
        return Err(SignError::Incomplete);
    }
    let is_complete = data.is_complete;
    data.is_complete &= finalize;
    if data.is_witness {
        input.witness_utxo = Some(utxo.clone()).filter(|utxo| utxo.value != Amount(-1));
    }
    if let Some(missing) = missing {
        *missing = std::mem::take(&mut data.missing);
    }
    input.take_signature_data(data);
    if is_complete { Ok(()) } else { Err(SignError::Incomplete) }
}

impl Psbt {
    /// Drops whole previous transactions where every input is of taproot or later and signs all inputs: Core's
    /// `RemoveUnnecessaryTransactions`.
    pub fn remove_unnecessary_transactions(&mut self) {
        let commits_to_all = |input: &Input| {
            let program = input.witness_utxo.as_ref().and_then(|utxo| witness_program(&utxo.script_pubkey));
            let sighash_type = input.sighash_type.unwrap_or(0).to_le_bytes()[0];
            program.is_some_and(|program| program.version > 0) && u32::from(sighash_type) & SIGHASH_ANYONECANPAY == 0
        };
        if self.inputs.iter().all(commits_to_all) {
            self.inputs.iter_mut().for_each(|input| input.non_witness_utxo = None);
        }
    }
}
