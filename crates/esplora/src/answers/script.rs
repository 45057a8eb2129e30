//! Scripts, by address or by hash: sums, transactions, unspent outputs.

use super::{TXS_PER_PAGE, transactions as to_json};
use crate::call::{Call, at_most, script_hash, txid};
use crate::fault::Fault;
use crate::json::{StatsJson, Status, SummaryJson, UtxoJson};
use crate::limits::SCRIPTS_MAX;
use crate::reply::{Reply, SHORTLY};
use lydian_primitives::Txid;
use lydian_query::{BlockPlace, Coin, QueryError, Question, ScriptHash};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Transactions of the mempool in an answer about a script: Esplora's `MAX_MEMPOOL_TXS`.
const POOL_TXS_MAX: usize = 50;

/// Transactions of several scripts on a page, and entries of a summary: those of mempool/electrs.
const SEVERAL_TXS_PER_PAGE: usize = 50;
const SUMMARY_ENTRIES_PER_PAGE: usize = 5_000;

pub(crate) fn stats(call: &Call<'_>) -> Result<Reply, Fault> {
    let (chain, pool) = call.query().stats(&call.script()?)?;
    let name = if call.value("address").is_some() { "address" } else { "scripthash" };
    let mut answer = Map::new();
    answer.insert(name.to_owned(), call.value(name).unwrap_or_default().into());
    answer.insert("chain_stats".to_owned(), json!(StatsJson::from(chain)));
    answer.insert("mempool_stats".to_owned(), json!(StatsJson::from(pool)));
    Ok(Reply::json(&Value::from(answer), SHORTLY))
}

pub(crate) fn transactions(call: &Call<'_>) -> Result<Reply, Fault> {
    let after = call.option("after_txid").map(txid).transpose()?;
    let asked = Question { pool_max: POOL_TXS_MAX, chain_max: TXS_PER_PAGE, after: after.as_ref() };
    let page = call.query().page(&call.script()?, asked)?;
    Ok(Reply::json(&to_json(call, &page.transactions), SHORTLY).of_total(page.pool_total + page.chain_total))
}

pub(crate) fn of_chain(call: &Call<'_>) -> Result<Reply, Fault> {
    let after = call.value("last_seen").map(txid).transpose()?;
    let asked = Question { pool_max: 0, chain_max: TXS_PER_PAGE, after: after.as_ref() };
    let page = call.query().page(&call.script()?, asked)?;
    Ok(Reply::json(&to_json(call, &page.transactions), SHORTLY).of_total(page.chain_total))
}

pub(crate) fn of_pool(call: &Call<'_>) -> Result<Reply, Fault> {
    let asked = Question { pool_max: POOL_TXS_MAX, ..Question::default() };
    let page = call.query().page(&call.script()?, asked)?;
    Ok(Reply::json(&to_json(call, &page.transactions), SHORTLY).of_total(page.pool_total))
}

pub(crate) fn utxo(call: &Call<'_>) -> Result<Reply, Fault> {
    let coins = call.query().placed_coins(&call.script()?)?;
    let one = |(coin, place): (Coin, Option<BlockPlace>)| UtxoJson {
        txid: coin.txid.to_string(),
        vout: coin.vout,
        status: Status::from(place),
        value: coin.value,
    };
    let all: Vec<UtxoJson> = coins.into_iter().map(one).collect();
    let total = all.len();
    Ok(Reply::json(&all, SHORTLY).of_total(total))
}

/// The index knows hashes of scripts only.
pub(crate) fn prefix(_: &Call<'_>) -> Result<Reply, Fault> {
    Err(Fault::bad("address search disabled"))
}

/// What mempool/electrs answers if there is no transaction after which the page begins.
fn after_not_found(error: QueryError) -> Fault {
    match error {
        QueryError::NoTransaction(txid) => Fault::unprocessable(format!("after_txid not found: {txid}")),
        error => error.into(),
    }
}

/// The scripts that the body names, by address or by hash, each once.
fn scripts_of_body(call: &Call<'_>, kind: Kind) -> Result<Vec<ScriptHash>, Fault> {
    let what = match kind {
        Kind::Addresses => "addresses",
        Kind::Hashes => "script hashes",
    };
    let texts: Vec<String> = call.json(&format!("an array of {what}"))?;
    at_most(texts.len(), SCRIPTS_MAX, what)?;
    let one = |text: &String| match kind {
        Kind::Addresses => call.address(text),
        Kind::Hashes => script_hash(text),
    };
    let mut scripts = texts.iter().map(one).collect::<Result<Vec<ScriptHash>, Fault>>()?;
    let mut seen = HashSet::new();
    scripts.retain(|script| seen.insert(*script));
    Ok(scripts)
}

/// How the body names scripts.
#[derive(Clone, Copy)]
enum Kind {
    Addresses,
    Hashes,
}

fn of_several(call: &Call<'_>, kind: Kind) -> Result<Reply, Fault> {
    let after = call.option("after_txid").map(txid).transpose()?;
    let (scripts, count) = (scripts_of_body(call, kind)?, call.count(SEVERAL_TXS_PER_PAGE)?);
    let page = call.query().page_of_several(&scripts, count, after.as_ref()).map_err(after_not_found)?;
    Ok(Reply::json(&to_json(call, &page), SHORTLY))
}

pub(crate) fn of_addresses(call: &Call<'_>) -> Result<Reply, Fault> {
    of_several(call, Kind::Addresses)
}

pub(crate) fn of_scripts(call: &Call<'_>) -> Result<Reply, Fault> {
    of_several(call, Kind::Hashes)
}

fn summary_of(call: &Call<'_>, scripts: &[ScriptHash]) -> Result<(Vec<SummaryJson>, usize), Fault> {
    let after: Option<Txid> = call.value("last_seen").map(txid).transpose()?;
    let count = call.count(SUMMARY_ENTRIES_PER_PAGE)?;
    let summary = call.query().summary(scripts, count, after.as_ref()).map_err(after_not_found)?;
    Ok((summary.entries.iter().map(SummaryJson::from).collect(), summary.total))
}

pub(crate) fn summary(call: &Call<'_>) -> Result<Reply, Fault> {
    let (entries, total) = summary_of(call, &[call.script()?])?;
    Ok(Reply::json(&entries, SHORTLY).of_total(total))
}

pub(crate) fn summary_of_addresses(call: &Call<'_>) -> Result<Reply, Fault> {
    Ok(Reply::json(&summary_of(call, &scripts_of_body(call, Kind::Addresses)?)?.0, SHORTLY))
}

pub(crate) fn summary_of_scripts(call: &Call<'_>) -> Result<Reply, Fault> {
    Ok(Reply::json(&summary_of(call, &scripts_of_body(call, Kind::Hashes)?)?.0, SHORTLY))
}
