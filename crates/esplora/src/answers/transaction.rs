//! Transactions: their bytes, places, proofs, and who spends their outputs.

use super::{check_size, keep, transactions, txids_of_body};
use crate::call::{Call, at_most, txid};
use crate::fault::Fault;
use crate::json::{OutspendJson, Status, TransactionJson};
use crate::limits::{OUTSPENDS_MAX, TXS_SIZE_MAX};
use crate::reply::{Reply, SHORTLY};
use lydian_primitives::{Txid, to_hex};
use lydian_query::{BlockPlace, QueryError, Spending};
use serde_json::json;

pub(crate) fn whole(call: &Call<'_>) -> Result<Reply, Fault> {
    let detailed = call.query().detailed(&call.txid()?)?;
    let keep = keep(call, detailed.block)?;
    Ok(Reply::json(&TransactionJson::new(&detailed, call.shared.chain), keep))
}

/// Those that are known, in the order in which they are asked for.
pub(crate) fn several(call: &Call<'_>) -> Result<Reply, Fault> {
    let (mut found, mut size) = (Vec::new(), 0);
    let txids = txids_of_body(call)?;
    call.query().check_fetches(txids.iter())?;
    for txid in txids {
        match call.query().placed(&txid) {
            Err(QueryError::NoTransaction(_)) => continue,
            one => found.push(one?),
        }
        size += found.last().map_or(0, |found| found.tx.as_bytes().len());
        at_most(size, TXS_SIZE_MAX, "bytes of transactions")?;
    }
    let all = call.query().with_spent(found)?;
    check_size(&all)?;
    Ok(Reply::json(&transactions(call, &all), 0))
}

/// An unknown transaction is not confirmed, as in Blockstream's electrs.
pub(crate) fn status(call: &Call<'_>) -> Result<Reply, Fault> {
    let place = match call.query().place_of(&call.txid()?) {
        Err(QueryError::NoTransaction(_)) => None,
        place => place?,
    };
    Ok(Reply::json(&Status::from(place), keep(call, place)?))
}

/// The bytes of a transaction, and how long they may be kept.
fn bytes(call: &Call<'_>) -> Result<(Vec<u8>, u32), Fault> {
    let txid = call.txid()?;
    let tx = call.query().transaction(&txid)?;
    Ok((tx.as_bytes().to_vec(), keep(call, call.query().place_of(&txid)?)?))
}

pub(crate) fn hex(call: &Call<'_>) -> Result<Reply, Fault> {
    let (bytes, keep) = bytes(call)?;
    Ok(Reply::text(to_hex(&bytes), keep))
}

pub(crate) fn raw(call: &Call<'_>) -> Result<Reply, Fault> {
    let (bytes, keep) = bytes(call)?;
    Ok(Reply::bytes(bytes, keep))
}

fn confirmed(call: &Call<'_>) -> Result<(Txid, BlockPlace), Fault> {
    let txid = call.txid()?;
    let place = match call.query().place_of(&txid) {
        Err(QueryError::NoTransaction(_)) => None,
        place => place?,
    };
    let place = place.ok_or_else(|| Fault::not_found(format!("Transaction not found or is unconfirmed: {txid}")))?;
    Ok((txid, place))
}

pub(crate) fn merkle_proof(call: &Call<'_>) -> Result<Reply, Fault> {
    let (txid, place) = confirmed(call)?;
    let proof = call.query().merkle(&txid, place.height)?;
    let merkle: Vec<String> = proof.branch.iter().map(|hash| Txid(*hash).to_string()).collect();
    let answer = json!({ "block_height": place.height, "merkle": merkle, "pos": proof.position });
    Ok(Reply::json(&answer, keep(call, Some(place))?))
}

/// Core's `gettxoutproof`.
pub(crate) fn merkleblock_proof(call: &Call<'_>) -> Result<Reply, Fault> {
    let (txid, place) = confirmed(call)?;
    let params = json!([[txid.to_string()], place.hash.to_string()]).to_string();
    let proof = call.shared.calls.call("gettxoutproof", &params).map_err(|error| Fault::internal(error.message))?;
    Ok(Reply::text(proof.trim_matches('"'), keep(call, Some(place))?))
}

/// An unknown output is not spent, as in Blockstream's electrs.
pub(crate) fn outspend(call: &Call<'_>) -> Result<Reply, Fault> {
    let (txid, vout) = (call.txid()?, call.number("vout")?);
    let spending = match call.query().spendings(&txid) {
        Err(QueryError::NoTransaction(_)) => None,
        spendings => spendings?.get(vout as usize).copied().flatten(),
    };
    let keep = keep(call, spending.and_then(|spending| spending.block))?;
    Ok(Reply::json(&OutspendJson::from(spending), keep))
}

fn spending_of(spendings: &[Option<Spending>], txid: &Txid, vout: u32) -> Result<Option<Spending>, Fault> {
    let no_output =
        || Fault::not_found(format!("transaction {txid} has {} outputs: there is no output {vout}", spendings.len()));
    spendings.get(vout as usize).copied().ok_or_else(no_output)
}

fn of_all(call: &Call<'_>, txid: &Txid) -> Result<Vec<OutspendJson>, Fault> {
    Ok(call.query().spendings(txid)?.into_iter().map(OutspendJson::from).collect())
}

pub(crate) fn outspends(call: &Call<'_>) -> Result<Reply, Fault> {
    Ok(Reply::json(&of_all(call, &call.txid()?)?, SHORTLY))
}

/// A list for each txid; an empty one for a transaction that is not known, as in mempool/electrs.
fn of_many(call: &Call<'_>, texts: &[&str]) -> Result<Reply, Fault> {
    at_most(texts.len(), OUTSPENDS_MAX, "txids")?;
    let one = |text: &&str| match call.query().spendings(&txid(text)?) {
        Err(QueryError::NoTransaction(_)) => Ok(Vec::new()),
        found => Ok(found?.into_iter().map(OutspendJson::from).collect()),
    };
    let all: Result<Vec<Vec<OutspendJson>>, Fault> = texts.iter().map(one).collect();
    Ok(Reply::json(&all?, SHORTLY))
}

pub(crate) fn outspends_of_query(call: &Call<'_>) -> Result<Reply, Fault> {
    let texts = call.option("txids").ok_or_else(|| Fault::bad("the query has no txids"))?;
    let texts: Vec<&str> = texts.split(',').filter(|text| !text.is_empty()).collect();
    of_many(call, &texts)
}

pub(crate) fn outspends_by_txid(call: &Call<'_>) -> Result<Reply, Fault> {
    let texts: Vec<String> = call.json("an array of txids")?;
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    of_many(call, &texts)
}

pub(crate) fn outspends_by_outpoint(call: &Call<'_>) -> Result<Reply, Fault> {
    let texts: Vec<String> = call.json("an array of outpoints, \"txid:vout\"")?;
    at_most(texts.len(), OUTSPENDS_MAX, "outpoints")?;
    let one = |text: &String| {
        let parts = text.split_once(':').and_then(|(of, vout)| Some((txid(of).ok()?, vout.parse::<u32>().ok()?)));
        let (of, vout) = parts.ok_or_else(|| Fault::bad(format!("\"{text}\" is no outpoint: txid:vout")))?;
        match call.query().spendings(&of) {
            Err(QueryError::NoTransaction(_)) => Ok(OutspendJson::from(None)),
            found => Ok(OutspendJson::from(spending_of(&found?, &of, vout)?)),
        }
    };
    let all: Result<Vec<OutspendJson>, Fault> = texts.iter().map(one).collect();
    Ok(Reply::json(&all?, SHORTLY))
}
