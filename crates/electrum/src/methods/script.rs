//! The methods `blockchain.scripthash.*` (to 1.6), `blockchain.scriptpubkey.*` and `blockchain.outpoint.*` (from 1.7).

use super::{Call, Method};
use crate::fault::Fault;
use crate::params::ADDRESS;
use crate::stream::{List, put_entry, put_list};
use crate::version::{V1_4_2, V1_7, Version};
use crate::watched::Watch;
use crate::write::{Json, put, put_hash, put_hex};
use lydian_primitives::OutPoint;
use lydian_query::{OutpointStatus, ScriptHash};
use std::ops::Range;

/// The last version with script hashes as arguments.
const LAST: Version = Version(1, 6, u32::MAX);

const HISTORY: &[&str] = &["scripthash", "from_height", "to_height"];
const ADDRESS_HISTORY: &[&str] = &[ADDRESS, "from_height", "to_height"];
const SCRIPT_HISTORY: &[&str] = &["scriptpubkey", "from_height", "to_height"];

pub(super) const METHODS: &[Method] = &[
    Method::new("blockchain.scripthash.get_balance", balance).takes(&["scripthash"], 1).to(LAST),
    Method::new("blockchain.scripthash.get_history", history).takes(HISTORY, 1).to(LAST),
    Method::new("blockchain.scripthash.get_mempool", pool).takes(&["scripthash"], 1).to(LAST),
    Method::new("blockchain.scripthash.listunspent", coins).takes(&["scripthash"], 1).to(LAST),
    Method::new("blockchain.scripthash.subscribe", subscribe).takes(&["scripthash"], 1).to(LAST),
    Method::new("blockchain.scripthash.unsubscribe", unsubscribe).takes(&["scripthash"], 1).from(V1_4_2).to(LAST),
    Method::new("blockchain.scripthash.get_first_use", first_use).takes(&["scripthash"], 1).to(LAST),
    Method::new("blockchain.scripthash.get_status", status).takes(&["scripthash"], 1).to(LAST),
    Method::new("blockchain.address.get_balance", balance).takes(&[ADDRESS], 1).to(LAST),
    Method::new("blockchain.address.get_history", history).takes(ADDRESS_HISTORY, 1).to(LAST),
    Method::new("blockchain.address.get_mempool", pool).takes(&[ADDRESS], 1).to(LAST),
    Method::new("blockchain.address.listunspent", coins).takes(&[ADDRESS], 1).to(LAST),
    Method::new("blockchain.address.get_first_use", first_use).takes(&[ADDRESS], 1).to(LAST),
    Method::new("blockchain.address.get_scripthash", hash_of_address).takes(&[ADDRESS], 1).to(LAST),
    Method::new("blockchain.scriptpubkey.get_balance", balance).takes(&["scriptpubkey"], 1).from(V1_7),
    Method::new("blockchain.scriptpubkey.get_history", history).takes(SCRIPT_HISTORY, 1).from(V1_7),
    Method::new("blockchain.scriptpubkey.get_mempool", pool).takes(&["scriptpubkey"], 1).from(V1_7),
    Method::new("blockchain.scriptpubkey.listunspent", coins).takes(&["scriptpubkey"], 1).from(V1_7),
    Method::new("blockchain.scriptpubkey.subscribe", subscribe).takes(&["scriptpubkey"], 1).from(V1_7),
    Method::new("blockchain.scriptpubkey.unsubscribe", unsubscribe).takes(&["scriptpubkey"], 1).from(V1_7),
    Method::new("blockchain.outpoint.subscribe", outpoint_subscribe).takes(OUTPOINT, 2).from(V1_7),
    Method::new("blockchain.outpoint.get_status", outpoint_status).takes(OUTPOINT, 2).from(V1_7),
    Method::new("blockchain.outpoint.unsubscribe", outpoint_unsubscribe).takes(&["tx_hash", "txout_idx"], 2).from(V1_7),
    Method::new("blockchain.utxo.get_info", coin_info).takes(&["tx_hash", "out_n"], 2).to(LAST),
];

const OUTPOINT: &[&str] = &["tx_hash", "txout_idx", "spk_hint"];

/// The script of the first argument.
fn script(call: &Call<'_>) -> Result<ScriptHash, Fault> {
    match call.version < V1_7 {
        true if call.params.is_address(0) => call.params.address(0, call.shared.identity.chain),
        true => call.params.scripthash(0),
        false => Ok(ScriptHash::of(&call.params.bytes(0)?)),
    }
}

/// As in Fulcrum: the script hash of an address, by which a client may subscribe.
fn hash_of_address(call: &Call<'_>) -> Result<Json, Fault> {
    let mut out = Vec::new();
    put_hash(&mut out, &script(call)?.0);
    Ok(out)
}

/// From 1.7 on, lists are fields of an object.
fn in_object(call: &Call<'_>, name: &str, list: Json) -> Json {
    if call.version < V1_7 {
        return list;
    }
    let mut out = format!("{{\"{name}\":").into_bytes();
    out.extend(list);
    out.push(b'}');
    out
}

fn balance(call: &Call<'_>) -> Result<Json, Fault> {
    let balance = call.shared.query.balance(&script(call)?)?;
    let text = format!("{{\"confirmed\":{},\"unconfirmed\":{}}}", balance.confirmed, balance.unconfirmed);
    Ok(text.into_bytes())
}

/// The heights of `from_height` and `to_height`, which is not included; -1: up to and with the mempool, as in Fulcrum.
fn heights(call: &Call<'_>) -> Result<(Range<u32>, bool), Fault> {
    let (from, to) = (call.params.number_or(1, 0)?, call.params.signed_or(2, -1)?);
    match u32::try_from(to) {
        Ok(to) => Ok((from..to, false)),
        Err(_) if to == -1 => Ok((from..u32::MAX, true)),
        Err(_) => Err(Fault::params("argument 3 (to_height) must be a height, or -1")),
    }
}

fn history(call: &Call<'_>) -> Result<Json, Fault> {
    let (heights, with_pool) = heights(call)?;
    let mut parts = call.shared.query.history_parts(&script(call)?, heights)?;
    if !with_pool {
        parts.pool.clear();
    }
    list(call, "history", List::History(parts))
}

/// A list of the script, which is sent in parts if it is long.
fn list(call: &Call<'_>, name: &str, list: List) -> Result<Json, Fault> {
    let (begin, end) = match call.version < V1_7 {
        true => ("[".to_owned(), "]"),
        false => (format!("{{\"{name}\":["), "]}"),
    };
    put_list(&call.shared.query, list, &begin, end, call.slot)
}

/// Each entry was written with a comma behind it.
fn end_list(out: &mut Json) {
    if out.last() == Some(&b',') {
        out.pop();
    }
    out.push(b']');
}

fn pool(call: &Call<'_>) -> Result<Json, Fault> {
    let mut out = vec![b'['];
    call.shared.query.pool_history(&script(call)?)?.iter().for_each(|entry| put_entry(&mut out, entry));
    end_list(&mut out);
    Ok(in_object(call, "history", out))
}

fn coins(call: &Call<'_>) -> Result<Json, Fault> {
    list(call, "utxos", List::Coins(call.shared.query.coin_parts(&script(call)?)?))
}

/// The form of a status.
pub(crate) fn status_json(status: Option<[u8; 32]>) -> Json {
    let mut out = Vec::new();
    match status {
        Some(status) => put_hex(&mut out, &status),
        None => out.extend_from_slice(b"null"),
    }
    out
}

fn subscribe(call: &Call<'_>) -> Result<Json, Fault> {
    super::subscribe(call, Watch::Script(script(call)?))
}

fn unsubscribe(call: &Call<'_>) -> Result<Json, Fault> {
    super::unsubscribe(call, &Watch::Script(script(call)?))
}

fn status(call: &Call<'_>) -> Result<Json, Fault> {
    Ok(status_json(call.shared.query.status(&script(call)?)?))
}

/// The first transaction of the chain, otherwise of the mempool.
fn first_use(call: &Call<'_>) -> Result<Json, Fault> {
    let script = script(call)?;
    let query = &call.shared.query;
    let mut out = Vec::new();
    if let Some(first) = query.first_use(&script)? {
        let hash = query.header(first.height)?.hash();
        out.extend_from_slice(b"{\"block_hash\":");
        put_hash(&mut out, &hash.0);
        put(&mut out, format_args!(",\"height\":{},\"tx_hash\":", first.height));
        put_hash(&mut out, &first.txid.0);
        out.push(b'}');
    } else if let Some(entry) = query.pool_history(&script)?.first() {
        put(&mut out, format_args!("{{\"block_hash\":\"{}\",\"height\":0,\"tx_hash\":", "0".repeat(64)));
        put_hash(&mut out, &entry.txid.0);
        out.push(b'}');
    } else {
        out.extend_from_slice(b"null");
    }
    Ok(out)
}

fn outpoint(call: &Call<'_>) -> Result<OutPoint, Fault> {
    Ok(OutPoint { txid: call.params.txid(0)?, vout: call.params.number(1)? })
}

/// Checks the script of the output as the client knows it. It is not needed: outputs are found by their transactions.
fn check_hint(call: &Call<'_>) -> Result<(), Fault> {
    call.params.value(2).map_or(Ok(()), |_| call.params.bytes(2).map(drop))
}

/// The form of what is known of an output.
pub(crate) fn outpoint_json(status: &OutpointStatus) -> Json {
    let mut out = vec![b'{'];
    if let Some(height) = status.funder_height {
        put(&mut out, format_args!("\"funder_height\":{height}"));
    }
    if let Some((txid, height)) = status.spender {
        put(&mut out, format_args!(",\"spender_height\":{height},\"spender_txhash\":"));
        put_hash(&mut out, &txid.0);
    }
    out.push(b'}');
    out
}

fn outpoint_status(call: &Call<'_>) -> Result<Json, Fault> {
    check_hint(call)?;
    Ok(outpoint_json(&call.shared.query.outpoint(&outpoint(call)?)?))
}

fn outpoint_subscribe(call: &Call<'_>) -> Result<Json, Fault> {
    check_hint(call)?;
    super::subscribe(call, Watch::Output(outpoint(call)?))
}

fn outpoint_unsubscribe(call: &Call<'_>) -> Result<Json, Fault> {
    super::unsubscribe(call, &Watch::Output(outpoint(call)?))
}

/// An unspent output, as Fulcrum describes it: null if there is none.
fn coin_info(call: &Call<'_>) -> Result<Json, Fault> {
    let outpoint = outpoint(call)?;
    let query = &call.shared.query;
    let status = query.outpoint(&outpoint)?;
    let (Some(height), None) = (status.funder_height, status.spender) else { return Ok(b"null".to_vec()) };
    let tx = query.transaction(&outpoint.txid)?;
    let Some(output) = tx.view().outputs().nth(outpoint.vout as usize) else { return Ok(b"null".to_vec()) };
    let mut out = vec![b'{'];
    if height > 0 {
        put(&mut out, format_args!("\"confirmed_height\":{height},"));
    }
    out.extend_from_slice(b"\"scripthash\":");
    put_hash(&mut out, &ScriptHash::of(output.script_pubkey).0);
    put(&mut out, format_args!(",\"value\":{}}}", output.value.0));
    Ok(out)
}
