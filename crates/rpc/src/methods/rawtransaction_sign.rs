//! `signrawtransactionwithkey` and `combinerawtransaction`: the arguments and answers around [`lydian_descriptor`]'s
//! signing.
//!
//! Input: transactions in hex, private keys, descriptions of outputs. Output: the transaction with signatures. The
//! outputs that it spends come from the mempool, from the chain, and from the argument, which wins. The private keys
//! and the request that brought them are wiped at the end of the call ([`crate::wiped`]). No error and no log line
//! contains them.

use crate::context::Context;
use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Call, parse_hash};
use crate::output::Hex;
use crate::raw_tx::{Reading, decode};
use crate::result::result;
use lydian_descriptor::{
    AMOUNT_NOT_GIVEN, Batch, InputError, Keystore, PrivateKey, combine, sign_transaction, solve, write_asm,
};
use lydian_descriptor::{Signed, TxoutType};
use lydian_hash::{hash160, sha256};
use lydian_primitives::build::MutInput;
use lydian_primitives::{Amount, OutPoint, Output, Transaction, Tx, Txid, to_hex};
use lydian_script::builder::scripts;
use std::collections::HashMap;

result! {
    /// The answer of `signrawtransactionwithkey`.
    pub(super) struct SignedAnswer {
        /// the transaction with signatures
        hex: Hex<Vec<u8>>,
        /// whether the transaction has a complete set of signatures
        complete: bool,
        /// script verification errors (if there are any)
        errors: Option<Vec<InputErrorAnswer>>,
    }
}

result! {
    struct InputErrorAnswer {
        /// the hash of the transaction that is spent
        txid: Txid,
        /// the index of the output that is spent
        vout: u32,
        #[each("an element of the witness")]
        witness: Vec<Hex<Vec<u8>>>,
        /// the signature script
        #[name("scriptSig")]
        script_sig: Hex<Vec<u8>>,
        /// the script sequence number
        sequence: u32,
        /// the verification or signing error
        error: String,
    }
}

/// An output that is spent.
#[derive(Clone, Debug)]
pub(super) struct Spent {
    pub(super) value: Amount,
    pub(super) script: Vec<u8>,
}

impl Spent {
    fn output(&self) -> Output<'_> {
        Output { value: self.value, script_pubkey: &self.script }
    }
}

pub(super) fn signrawtransactionwithkey(call: &Call<'_>) -> Result<SignedAnswer, RpcError> {
    let tx = decode(call.text(0)?, Reading::WithWitness).ok_or_else(|| {
        let words = "TX decode failed. Make sure the tx has at least one input.";
        RpcError::new(code::DESERIALIZATION_ERROR, words)
    })?;
    let mut keys = Keystore::new();
    for value in call.arg(1).as_array()? {
        let key = PrivateKey::from_wif(value.as_text()?, call.context.settings.params.chain);
        keys.add_key(key.ok_or_else(|| RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Invalid private key"))?);
    }
    let outpoints: Vec<OutPoint> = tx.view().inputs().map(|input| input.prevout).collect();
    let mut spent = find_outputs(call.context, &outpoints)?;
    if let Some(given) = call.given(2) {
        for value in given.as_array()? {
            add_given(value, &mut spent, &mut keys)?;
        }
    }
    let hash_type = call.given(3).map_or(Ok(0), parse_hash_type)?;
    let outputs: Vec<Option<Output<'_>>> =
        outpoints.iter().map(|outpoint| spent.get(outpoint).map(Spent::output)).collect();
    let engine = call.context.engine()?;
    let batch = Batch::new(engine.signatures().as_ref(), random(call.context));
    let signed = sign_transaction(tx.view(), &outputs, &keys, hash_type, &batch);
    answer(signed, &spent)
}

/// 32 random bytes.
pub(super) fn random(context: &Context) -> [u8; 32] {
    let mut bytes = [0; 32];
    context.host.fill_random(&mut bytes);
    bytes
}

/// Core's `SignTransactionResultToJSON`.
fn answer(signed: Signed, spent: &HashMap<OutPoint, Spent>) -> Result<SignedAnswer, RpcError> {
    let mut errors = Vec::with_capacity(signed.errors.len());
    for (index, error) in &signed.errors {
        let Some(input) = signed.tx.inputs.get(*index) else { continue };
        if let (InputError::MissingAmount, Some(output)) = (error, spent.get(&input.prevout)) {
            return Err(missing_amount(output));
        }
        errors.push(input_error(input, *error));
    }
    let complete = errors.is_empty();
    Ok(SignedAnswer { hex: Hex(signed.tx.encode()), complete, errors: (!complete).then_some(errors) })
}

fn input_error(input: &MutInput, error: InputError) -> InputErrorAnswer {
    InputErrorAnswer {
        txid: input.prevout.txid,
        vout: input.prevout.vout,
        witness: input.witness.iter().cloned().map(Hex).collect(),
        script_sig: Hex(input.script_sig.clone()),
        sequence: input.sequence,
        error: error.to_string(),
    }
}

/// Core shows the output as `CTxOut::ToString` does: the first 30 digits of its script.
fn missing_amount(output: &Spent) -> RpcError {
    let script: String = to_hex(&output.script).chars().take(30).collect();
    let value = output.value;
    RpcError::new(code::TYPE_ERROR, format!("Missing amount for CTxOut(nValue={value}, scriptPubKey={script})"))
}

/// Core's `FindCoins`: outputs in the mempool and in the chain.
pub(super) fn find_outputs(context: &Context, outpoints: &[OutPoint]) -> Result<HashMap<OutPoint, Spent>, RpcError> {
    let (_, coins) = context.engine()?.coins_now(outpoints)?;
    let mut spent = HashMap::with_capacity(outpoints.len());
    for (outpoint, coin) in outpoints.iter().zip(coins) {
        let unconfirmed = context.mempool_transaction(&outpoint.txid).and_then(|tx| {
            let output = tx.view().outputs().nth(usize::try_from(outpoint.vout).ok()?)?;
            Some(Spent { value: output.value, script: output.script_pubkey.to_vec() })
        });
        let confirmed = || coin.map(|coin| Spent { value: coin.value, script: coin.script_pubkey.into_vec() });
        if let Some(found) = unconfirmed.or_else(confirmed) {
            spent.insert(*outpoint, found);
        }
    }
    Ok(spent)
}

/// Adds an output that the argument describes, and its scripts: Core's `ParsePrevouts`.
fn add_given(value: &Json, spent: &mut HashMap<OutPoint, Spent>, keys: &mut Keystore) -> Result<(), RpcError> {
    let undecodable = |message: String| RpcError::new(code::DESERIALIZATION_ERROR, message);
    if value.as_object().is_err() {
        return Err(undecodable("expected object with {\"txid'\",\"vout\",\"scriptPubKey\"}".to_owned()));
    }
    for (name, expected) in [("scriptPubKey", "string"), ("txid", "string"), ("vout", "number")] {
        value.typed_field(name, expected, true)?;
    }
    let txid = Txid(parse_hash(value.field("txid"), "txid")?);
    let vout = u32::try_from(value.field("vout").as_integer::<i32>()?);
    let outpoint = OutPoint { txid, vout: vout.map_err(|_| undecodable("vout cannot be negative".to_owned()))? };
    let script = value.field("scriptPubKey").as_hex("scriptPubKey")?;
    if let Some(known) = spent.get(&outpoint).filter(|known| known.script != script) {
        let (known, given) = (asm(&known.script), asm(&script));
        return Err(undecodable(format!("Previous output scriptPubKey mismatch:\n{known}\nvs:\n{given}")));
    }
    let amount = value.get("amount").map_or(Ok(AMOUNT_NOT_GIVEN), Json::as_amount)?;
    let kind = solve(&script);
    if matches!(kind, TxoutType::ScriptHash(_) | TxoutType::WitnessV0ScriptHash(_)) {
        add_scripts(value, &script, &kind, keys)?;
    }
    spent.insert(outpoint, Spent { value: amount, script });
    Ok(())
}

/// Adds the scripts of an output that pays a script hash.
fn add_scripts(value: &Json, script_pubkey: &[u8], kind: &TxoutType<'_>, keys: &mut Keystore) -> Result<(), RpcError> {
    let redeem_script = value.typed_field("redeemScript", "string", false)?;
    let witness_script = value.typed_field("witnessScript", "string", false)?;
    let script = match (witness_script, redeem_script) {
        (Some(witness_script), _) => witness_script.as_hex("witnessScript")?,
        (None, Some(redeem_script)) => redeem_script.as_hex("redeemScript")?,
        (None, None) => return Err(RpcError::parameter("Missing redeemScript/witnessScript")),
    };
    let witness_program = scripts::witness_program(0, &sha256(&script));
    if let (Some(witness_script), Some(redeem_script)) = (witness_script, redeem_script)
        && witness_script != redeem_script
        && redeem_script.as_hex("redeemScript")? != witness_program
    {
        return Err(RpcError::parameter("redeemScript does not correspond to witnessScript"));
    }
    let is_paid = match kind {
        TxoutType::ScriptHash(hash) => hash160(&script) == **hash || hash160(&witness_program) == **hash,
        _ => script_pubkey == witness_program,
    };
    if !is_paid {
        return Err(RpcError::parameter("redeemScript/witnessScript does not match scriptPubKey"));
    }
    keys.add_script(script);
    keys.add_script(witness_program);
    Ok(())
}

fn asm(script: &[u8]) -> String {
    let mut text = Vec::new();
    write_asm(script, false, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Core's `SighashFromStr`.
pub(super) fn parse_hash_type(value: &Json) -> Result<u8, RpcError> {
    match value.as_text()? {
        "DEFAULT" => Ok(0),
        "ALL" => Ok(1),
        "NONE" => Ok(2),
        "SINGLE" => Ok(3),
        "ALL|ANYONECANPAY" => Ok(0x81),
        "NONE|ANYONECANPAY" => Ok(0x82),
        "SINGLE|ANYONECANPAY" => Ok(0x83),
        other => Err(RpcError::parameter(format!("'{other}' is not a valid sighash parameter."))),
    }
}

pub(super) fn combinerawtransaction(call: &Call<'_>) -> Result<Hex<Vec<u8>>, RpcError> {
    let undecodable = |message: String| RpcError::new(code::DESERIALIZATION_ERROR, message);
    let values = call.arg(0).as_array()?;
    if values.len() < 2 {
        return Err(undecodable("Missing transactions. At least two transactions required.".to_owned()));
    }
    let mut txs: Vec<Transaction> = Vec::with_capacity(values.len());
    for (index, value) in values.iter().enumerate() {
        let tx = decode(value.as_text()?, Reading::WithWitness);
        let words = || format!("TX decode failed for tx {index}. Make sure the tx has at least one input.");
        txs.push(tx.ok_or_else(|| undecodable(words()))?);
    }
    let views: Vec<Tx<'_>> = txs.iter().map(Transaction::view).collect();
    let unsigned_txid = |tx: &Tx<'_>| {
        let mut tx = lydian_primitives::build::MutTx::from(*tx);
        tx.inputs.iter_mut().for_each(|input| input.script_sig.clear());
        tx.txid()
    };
    let first = views.first().map(unsigned_txid);
    if let Some(other) = views.iter().position(|tx| Some(unsigned_txid(tx)) != first) {
        let message = format!("Transaction number {} not compatible with first transaction", other + 1);
        return Err(RpcError::parameter(message));
    }
    let outpoints: Vec<OutPoint> = views.iter().take(1).flat_map(|tx| tx.inputs()).map(|input| input.prevout).collect();
    let spent = find_outputs(call.context, &outpoints)?;
    let outputs: Option<Vec<Output<'_>>> =
        outpoints.iter().map(|outpoint| spent.get(outpoint).map(Spent::output)).collect();
    let combined = outputs.and_then(|outputs| combine(&views, &outputs));
    let not_found = || RpcError::new(code::VERIFY_ERROR, "Input not found or already spent");
    Ok(Hex(combined.ok_or_else(not_found)?.encode()))
}
