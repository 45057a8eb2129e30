//! `utxoupdatepsbt` and `descriptorprocesspsbt`: Core's `ProcessPSBT`.
//!
//! Input: a PSBT and descriptors. Output: the PSBT with the outputs that it spends, with what the descriptors know, and
//! with signatures of their private keys. The outputs come from -txindex, from the mempool and from the coins. The
//! private keys are wiped at the end of the call; no log line contains them, and no error unless they are misspelt: it
//! quotes a key that is not valid, as in Core.

use super::descriptor::add_to_keystore;
use super::psbt::read;
use super::rawtransaction_sign::{find_outputs, parse_hash_type, random};
use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::Call;
use crate::output::Hex;
use crate::result::result;
use lydian_descriptor::{Batch, Keystore};
use lydian_primitives::OutPoint;
use lydian_primitives::build::MutOutput;
use lydian_psbt::{Prepared, Psbt, SignError, SignOptions};
use std::sync::Arc;

result! {
    /// The answer of `descriptorprocesspsbt`.
    pub(super) struct ProcessedAnswer {
        /// the PSBT in base 64
        psbt: String,
        /// whether the transaction has a complete set of signatures
        complete: bool,
        /// the transaction, if it is complete
        hex: Option<Hex<Vec<u8>>>,
    }
}

/// What the descriptors know.
fn keystore(call: &Call<'_>, descriptors: &[Json], has_private: bool) -> Result<Keystore, RpcError> {
    let mut keys = Keystore::new();
    for descriptor in descriptors {
        add_to_keystore(descriptor, call.context.settings.params.chain, has_private, &mut keys)?;
    }
    Ok(keys)
}

pub(super) fn utxoupdatepsbt(call: &Call<'_>) -> Result<String, RpcError> {
    let descriptors = call.given(1).map_or(Ok(&[][..]), Json::as_array)?;
    let keys = keystore(call, descriptors, false)?;
    let options = SignOptions { sighash_type: None, finalize: false };
    Ok(process(call, &keys, options, &Batch::default())?.to_base64())
}

pub(super) fn descriptorprocesspsbt(call: &Call<'_>) -> Result<ProcessedAnswer, RpcError> {
    let mut keys = keystore(call, call.arg(1).as_array()?, true)?;
    let sighash_type = call.given(2).map(parse_hash_type).transpose()?.map(i32::from);
    if !call.bool_or(3, true)? {
        keys.forget_origins();
    }
    keys.add_entropy(random(call.context));
    let engine = call.context.engine()?;
    let batch = Batch::new(engine.signatures().as_ref(), random(call.context));
    let mut psbt = process(call, &keys, SignOptions { sighash_type, finalize: call.bool_or(4, true)? }, &batch)?;
    let complete = psbt.inputs.iter().all(lydian_psbt::Input::is_signed);
    let text = psbt.to_base64();
    let unverified = || RpcError::misc("The final scripts of the PSBT cannot be verified");
    let hex = match complete {
        true => Some(Hex(psbt.finalize(&batch).ok_or_else(unverified)?.encode())),
        false => None,
    };
    Ok(ProcessedAnswer { psbt: text, complete, hex })
}

/// Core's `ProcessPSBT`.
fn process(call: &Call<'_>, keys: &Keystore, options: SignOptions, batch: &Batch<'_>) -> Result<Psbt, RpcError> {
    let mut psbt = read(call, call.text(0)?)?;
    add_outputs(call, &mut psbt, keys)?;
    let failed = |error: SignError| {
        let of = if error == SignError::SighashMismatch { code::DESERIALIZATION_ERROR } else { code::VERIFY_ERROR };
        RpcError::new(of, error.to_string())
    };
    let prepared = Prepared::new(&psbt).map_err(failed)?;
    let outputs = prepared.outputs();
    let context = prepared.context(&outputs, batch).map_err(failed)?;
    context.plan(&psbt.inputs, keys, |_| options.sighash_type);
    for (index, input) in psbt.inputs.iter_mut().enumerate() {
        // An input that is not complete stays so; only what it commits to must be agreed on.
        if !input.is_signed()
            && let Err(error @ SignError::SighashMismatch) = context.sign(index, input, keys, options, None)
        {
            return Err(failed(error));
        }
    }
    context.update_outputs(&mut psbt, keys);
    psbt.remove_unnecessary_transactions();
    Ok(psbt)
}

/// Adds the transactions whose outputs are spent, or else the outputs themselves if a witness spends them.
fn add_outputs(call: &Call<'_>, psbt: &mut Psbt, keys: &Keystore) -> Result<(), RpcError> {
    let index = call.context.indexes().transactions.as_ref();
    if let Some(index) = index {
        // What it has is looked up, also if it is behind.
        let _ = index.wait_until_synced();
    }
    for input in psbt.inputs.iter_mut().filter(|input| input.non_witness_utxo.is_none()) {
        let txid = &input.prevout.txid;
        // An index that cannot be read is as good as none, as in Core.
        let indexed = index.and_then(|index| index.find(txid).ok().flatten()).map(|(tx, _)| Arc::new(tx));
        input.non_witness_utxo = indexed.or_else(|| call.context.mempool_transaction(txid));
    }
    let missing = psbt.inputs.iter().filter(|input| input.non_witness_utxo.is_none());
    let outpoints: Vec<OutPoint> = missing.map(|input| input.prevout).collect();
    if outpoints.is_empty() {
        return Ok(());
    }
    let found = find_outputs(call.context, &outpoints)?;
    for input in psbt.inputs.iter_mut().filter(|input| input.non_witness_utxo.is_none()) {
        let spent = found.get(&input.prevout).filter(|spent| keys.is_witness_output(&spent.script));
        if let Some(spent) = spent {
            input.witness_utxo = Some(MutOutput { value: spent.value, script_pubkey: spent.script.clone() });
        }
    }
    Ok(())
}
