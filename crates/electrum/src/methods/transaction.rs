//! The methods `blockchain.transaction.*`: transactions, proofs, submission.

use super::{Call, Method};
use crate::fault::{Fault, code};
use crate::version::{V1_6, V1_7};
use crate::watched::Watch;
use crate::write::{Json, put, put_hash, put_hex, put_list};
use lydian_primitives::{BlockHash, Txid, push_hex_reversed};
use lydian_query::QueryError;
use serde_json::{Value, json};

pub(super) const METHODS: &[Method] = &[
    Method::new("blockchain.transaction.get", get).takes(&["tx_hash", "verbose"], 1),
    Method::new("blockchain.transaction.get_merkle", merkle).takes(&["tx_hash", "height"], 1),
    Method::new("blockchain.transaction.id_from_pos", id_from_pos).takes(&["height", "tx_pos", "merkle"], 2),
    Method::new("blockchain.transaction.get_height", height).takes(&["tx_hash"], 1),
    Method::new("blockchain.transaction.get_confirmed_blockhash", block_hash).takes(&["tx_hash", "include_header"], 1),
    Method::new("blockchain.transaction.subscribe", subscribe).takes(&["tx_hash"], 1),
    Method::new("blockchain.transaction.unsubscribe", unsubscribe).takes(&["tx_hash"], 1),
    Method::new("blockchain.transaction.broadcast", broadcast).takes(&["raw_tx"], 1).costs(10),
    Method::new("blockchain.transaction.broadcast_package", broadcast_package)
        .takes(&["raw_txs", "verbose"], 1)
        .costs(10)
        .from(V1_6),
    Method::new("blockchain.transaction.testmempoolaccept", test).takes(&["raw_txs"], 1).costs(10).from(V1_7),
];

fn get(call: &Call<'_>) -> Result<Json, Fault> {
    let txid = call.params.txid(0)?;
    if call.params.switch(1)? {
        return verbose(call, &txid);
    }
    let tx = call.shared.query.transaction(&txid)?;
    let mut out = Vec::with_capacity(2 * tx.as_bytes().len() + 2);
    put_hex(&mut out, tx.as_bytes());
    Ok(out)
}

/// The object of Core's `getrawtransaction`.
fn verbose(call: &Call<'_>, txid: &Txid) -> Result<Json, Fault> {
    let block = call.shared.query.block_of(txid)?;
    let params = match block {
        Some((hash, _)) => json!([txid.to_string(), 1, hash.to_string()]),
        None => json!([txid.to_string(), 1]),
    };
    match (call.shared.calls.call("getrawtransaction", &params.to_string()), block) {
        (Ok(answer), _) => Ok(answer.into_bytes()),
        (Err(error), Some((hash, _))) if error.message == NOT_AVAILABLE => of_pruned(call, txid, &hash),
        (Err(error), _) => Err(error.into()),
    }
}

/// The error of `getrawtransaction` for a block that is not on disk.
const NOT_AVAILABLE: &str = "Block not available";

/// The object of a transaction in a block that the node has pruned, which only `query` can read.
fn of_pruned(call: &Call<'_>, txid: &Txid, hash: &BlockHash) -> Result<Json, Fault> {
    let query = &call.shared.query;
    let moving = || Fault::from(QueryError::Moving);
    let info = query.chain().block_info(hash)?.filter(|info| info.is_active).ok_or_else(moving)?;
    let mut hex = Vec::new();
    put_hex(&mut hex, query.transaction(txid)?.as_bytes());
    let hex: Value = serde_json::from_slice(&hex).map_err(|error| Fault::new(code::INTERNAL, error.to_string()))?;
    let decoded = call.shared.calls.call("decoderawtransaction", &json!([hex]).to_string())?;
    let decoded = serde_json::from_str(&decoded).map_err(|error| Fault::new(code::INTERNAL, error.to_string()))?;
    let Value::Object(mut object) = decoded else { return Err(moving()) };
    let tip = query.chain().tip()?.height.0;
    let more = [
        ("in_active_chain", json!(true)),
        ("hex", hex),
        ("blockhash", json!(hash.to_string())),
        ("confirmations", json!(tip.saturating_sub(info.height).saturating_add(1))),
        ("time", json!(info.header.time)),
        ("blocktime", json!(info.header.time)),
    ];
    object.extend(more.map(|(name, value)| (name.to_owned(), value)));
    Ok(Value::Object(object).to_string().into_bytes())
}

/// Without a height, as in Fulcrum, it is looked up.
fn merkle(call: &Call<'_>) -> Result<Json, Fault> {
    let txid = call.params.txid(0)?;
    let height = match call.params.value(1) {
        Some(_) => call.params.number(1)?,
        None => confirmed(call, &txid)?.1,
    };
    let proof = call.shared.query.merkle(&txid, height)?;
    let mut out = format!("{{\"block_height\":{height},\"merkle\":").into_bytes();
    put_list(&mut out, &proof.branch, put_hash);
    put(&mut out, format_args!(",\"pos\":{}}}", proof.position));
    Ok(out)
}

fn id_from_pos(call: &Call<'_>) -> Result<Json, Fault> {
    let (height, position) = (call.params.number(0)?, call.params.number(1)?);
    let (txid, proof) = call.shared.query.merkle_at(height, position)?;
    let mut out = Vec::new();
    if !call.params.switch(2)? {
        put_hash(&mut out, &txid.0);
        return Ok(out);
    }
    out.extend_from_slice(b"{\"merkle\":");
    put_list(&mut out, &proof.branch, put_hash);
    out.extend_from_slice(b",\"tx_hash\":\"");
    push_hex_reversed(&mut out, &txid.0);
    out.extend_from_slice(b"\"}");
    Ok(out)
}

/// As in Fulcrum: 0 in the mempool, null if there is no such transaction.
pub(crate) fn height_json(height: Option<i64>) -> Json {
    height.map_or_else(|| "null".to_owned(), |height| height.max(0).to_string()).into_bytes()
}

fn height(call: &Call<'_>) -> Result<Json, Fault> {
    Ok(height_json(call.shared.query.height_of(&call.params.txid(0)?)?))
}

fn subscribe(call: &Call<'_>) -> Result<Json, Fault> {
    super::subscribe(call, Watch::Transaction(call.params.txid(0)?))
}

fn unsubscribe(call: &Call<'_>) -> Result<Json, Fault> {
    super::unsubscribe(call, &Watch::Transaction(call.params.txid(0)?))
}

/// The block of a transaction, and its height.
fn confirmed(call: &Call<'_>, txid: &Txid) -> Result<(BlockHash, u32), Fault> {
    let found = call.shared.query.block_of(txid)?;
    found.ok_or_else(|| Fault::bad(format!("transaction {txid} is not in a block")))
}

/// As in Fulcrum: an error if it is not in a block.
fn block_hash(call: &Call<'_>) -> Result<Json, Fault> {
    let (txid, with_header) = (call.params.txid(0)?, call.params.switch(1)?);
    let (hash, height) = confirmed(call, &txid)?;
    let mut out = b"{\"block_hash\":".to_vec();
    put_hash(&mut out, &hash.0);
    if with_header {
        let info = call.shared.query.chain().block_info(&hash)?.ok_or(QueryError::Moving)?;
        out.extend_from_slice(b",\"block_header\":");
        put_hex(&mut out, &info.header.to_bytes());
    }
    put(&mut out, format_args!(",\"block_height\":{height}}}"));
    Ok(out)
}

/// Core's `sendrawtransaction`.
fn broadcast(call: &Call<'_>) -> Result<Json, Fault> {
    let params = json!([call.params.hex_text(0)?]).to_string();
    match call.shared.calls.call("sendrawtransaction", &params) {
        Ok(txid) => Ok(txid.into_bytes()),
        Err(error) => Err(Fault::bad(format!("the transaction was rejected by network rules.\n\n{}", error.message))),
    }
}

/// The JSON of an RPC method's answer.
fn parsed(answer: &str) -> Result<Value, Fault> {
    serde_json::from_str(answer).map_err(|error| Fault::new(code::INTERNAL, format!("the answer of RPC: {error}")))
}

/// Core's `submitpackage`.
fn broadcast_package(call: &Call<'_>) -> Result<Json, Fault> {
    let (txs, is_verbose) = (call.params.hex_list(0)?, call.params.switch(1)?);
    let answer = call
        .shared
        .calls
        .call("submitpackage", &json!([txs]).to_string())
        .map_err(|error| Fault::bad(format!("the package was rejected by network rules.\n\n{}", error.message)))?;
    if is_verbose {
        return Ok(answer.into_bytes());
    }
    let answer = parsed(&answer)?;
    let is_success = answer["package_msg"] == "success";
    let results = answer["tx-results"].as_object().into_iter().flatten();
    let errors = results.filter_map(|(_, result)| {
        let error = result.get("error")?;
        Some(json!({ "txid": result["txid"], "error": error }))
    });
    let errors: Vec<Value> = errors.collect();
    let mut out = json!({ "success": is_success });
    if !errors.is_empty() {
        out["errors"] = Value::from(errors);
    }
    Ok(out.to_string().into_bytes())
}

/// Core's `testmempoolaccept`, with the fields of the protocol.
fn test(call: &Call<'_>) -> Result<Json, Fault> {
    let txs = call.params.hex_list(0)?;
    let answer = call.shared.calls.call("testmempoolaccept", &json!([txs]).to_string())?;
    let answer = parsed(&answer)?;
    let not_a_list = || Fault::new(code::INTERNAL, "the answer of RPC is not a list");
    let results = answer.as_array().ok_or_else(not_a_list)?;
    let fields = |result: &Value| -> Value {
        let pick = [("txid", "txid"), ("wtxid", "wtxid"), ("allowed", "allowed"), ("reason", "reject-reason")];
        pick.into_iter().filter_map(|(name, of)| Some((name, result.get(of)?.clone()))).collect()
    };
    Ok(results.iter().map(fields).collect::<Value>().to_string().into_bytes())
}
