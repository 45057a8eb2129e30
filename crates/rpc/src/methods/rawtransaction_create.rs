//! `createrawtransaction`, and the transaction of `createpsbt`: Core's `ConstructTransaction`
//! (rpc/rawtransaction_util.cpp).
//!
//! Input: the arguments. Output: a transaction without signatures, in hex. The checks and their order are Core's. Cost:
//! linear in the arguments.

use crate::error::{RpcError, code};
use crate::json::Json;
use crate::method::{Call, parse_hash};
use crate::output::Hex;
use lydian_consensus::Chain;
use lydian_descriptor::Address;
use lydian_mempool::policy::SEQUENCE_SIGNALLING_MAX;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Txid, hex};
use lydian_script::ScriptBuilder;
use lydian_script::opcodes::OP_RETURN;
use std::collections::{HashMap, HashSet};

/// Core's `CTransaction::CURRENT_VERSION`, `TX_MIN_STANDARD_VERSION` and `TX_MAX_STANDARD_VERSION`.
const VERSION_DEFAULT: u32 = 2;
const VERSION_MIN: u32 = 1;
const VERSION_MAX: u32 = 3;

/// Core's `MAX_SEQUENCE_NONFINAL` and `SEQUENCE_FINAL`.
const SEQUENCE_NONFINAL: u32 = 0xffff_fffe;
const SEQUENCE_FINAL: u32 = 0xffff_ffff;

pub(super) fn createrawtransaction(call: &Call<'_>) -> Result<Hex<Vec<u8>>, RpcError> {
    Ok(Hex(construct(call)?.encode()))
}

/// The transaction that the first five arguments describe.
pub(super) fn construct(call: &Call<'_>) -> Result<MutTx, RpcError> {
    let replaceable = call.given(3).map(Json::as_bool).transpose()?;
    let version = call.given(4).map_or(Ok(VERSION_DEFAULT), Json::as_integer)?;
    let mut tx = MutTx { version, ..MutTx::default() };
    if let Some(value) = call.given(2) {
        let lock_time: i64 = value.as_integer()?;
        let range = || RpcError::parameter("Invalid parameter, locktime out of range");
        tx.lock_time = u32::try_from(lock_time).map_err(|_| range())?;
    }
    if !(VERSION_MIN..=VERSION_MAX).contains(&version) {
        let message = format!("Invalid parameter, version out of range({VERSION_MIN}~{VERSION_MAX})");
        return Err(RpcError::parameter(message));
    }
    for value in call.arg(0).as_array()? {
        tx.inputs.push(parse_input(value, tx.lock_time, replaceable)?);
    }
    tx.outputs = parse_outputs(call.arg(1), call.context.settings.params.chain)?;
    let signals = || tx.inputs.iter().any(|input| input.sequence <= SEQUENCE_SIGNALLING_MAX);
    if replaceable == Some(true) && !tx.inputs.is_empty() && !signals() {
        let message = "Invalid parameter combination: Sequence number(s) contradict replaceable option";
        return Err(RpcError::parameter(message));
    }
    Ok(tx)
}

/// Core's `AddInputs`.
fn parse_input(value: &Json, lock_time: u32, replaceable: Option<bool>) -> Result<MutInput, RpcError> {
    value.as_object()?;
    let txid = Txid(parse_hash(value.field("txid"), "txid")?);
    let vout = match value.field("vout") {
        number @ Json::Number(_) => number.as_integer::<i32>()?,
        _ => return Err(RpcError::parameter("Invalid parameter, missing vout key")),
    };
    let negative = |_| RpcError::parameter("Invalid parameter, vout cannot be negative");
    let vout = u32::try_from(vout).map_err(negative)?;
    let sequence = match value.field("sequence") {
        number @ Json::Number(_) => {
            let range = |_| RpcError::parameter("Invalid parameter, sequence number is out of range");
            u32::try_from(number.as_integer::<i64>()?).map_err(range)?
        }
        _ if replaceable.unwrap_or(true) => SEQUENCE_SIGNALLING_MAX,
        _ if lock_time != 0 => SEQUENCE_NONFINAL,
        _ => SEQUENCE_FINAL,
    };
    Ok(MutInput { prevout: OutPoint { txid, vout }, script_sig: Vec::new(), sequence, witness: Vec::new() })
}

/// Core's `NormalizeOutputs` and `ParseOutputs`: an object, or an array of objects with one key each.
fn parse_outputs(value: &Json, chain: Chain) -> Result<Vec<MutOutput>, RpcError> {
    let mut pairs: Vec<(&str, &Json)> = Vec::new();
    match value {
        Json::Null => return Err(RpcError::parameter("Invalid parameter, output argument must be non-null")),
        Json::Object(entries) => pairs.extend(entries.iter().map(|(key, value)| (&key[..], value))),
        _ => {
            for entry in value.as_array()? {
                let Json::Object(entries) = entry else {
                    return Err(RpcError::parameter("Invalid parameter, key-value pair not an object as expected"));
                };
                let [(key, value)] = &entries[..] else {
                    let message = "Invalid parameter, key-value pair must contain exactly one key";
                    return Err(RpcError::parameter(message));
                };
                pairs.push((key, value));
            }
        }
    }
    // A repeated key has its first value.
    let mut values = HashMap::new();
    for (name, value) in &pairs {
        values.entry(*name).or_insert(*value);
    }
    let (mut outputs, mut has_data, mut addresses) = (Vec::with_capacity(pairs.len()), false, HashSet::new());
    for (name, _) in pairs {
        let value = values.get(name).copied().unwrap_or(&Json::Null);
        if name == "data" {
            if has_data {
                return Err(RpcError::parameter("Invalid parameter, duplicate key: data"));
            }
            has_data = true;
            outputs.push(MutOutput { value: Amount(0), script_pubkey: data_script(value)? });
            continue;
        }
        let address = Address::parse(name, chain);
        let amount = value.as_amount()?;
        let Ok(address) = address else {
            return Err(RpcError::new(code::INVALID_ADDRESS_OR_KEY, format!("Invalid Bitcoin address: {name}")));
        };
        outputs.push(MutOutput { value: amount, script_pubkey: address.script() });
        if !addresses.insert(address) {
            return Err(RpcError::parameter(format!("Invalid parameter, duplicated address: {name}")));
        }
    }
    Ok(outputs)
}

/// `OP_RETURN` and the data. Core also reads a number as hex, and true as `1`.
fn data_script(value: &Json) -> Result<Vec<u8>, RpcError> {
    let text = match value {
        Json::Text(text) | Json::Number(text) => text,
        Json::Bool(true) => "1",
        _ => "",
    };
    let data = hex(text).ok().filter(|data| !data.is_empty());
    let data = data.ok_or_else(|| RpcError::parameter(format!("Data must be hexadecimal string (not '{text}')")))?;
    Ok(ScriptBuilder::new().op(OP_RETURN).push_slice(&data).into_bytes())
}
