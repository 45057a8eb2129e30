//! Scripts, by address or by hash: sums, transactions, unspent outputs.

use super::{TXS_PER_PAGE, transactions as to_json};
use crate::call::{Call, at_most, script_hash, txid};
use crate::fault::Fault;
use crate::json::{StatsJson, Status, UtxoJson};
use crate::limits::SCRIPTS_MAX;
use crate::reply::{Reply, SHORTLY};
use lydian_query::{BlockPlace, Coin, Detailed, Question, ScriptHash};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Transactions of the mempool in an answer about a script: Esplora's `MAX_MEMPOOL_TXS`.
const POOL_TXS_MAX: usize = 50;

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

/// The newest transactions of the chain of several scripts, each once.
fn of_several(call: &Call<'_>, scripts: &[ScriptHash]) -> Result<Reply, Fault> {
    if call.option("after_txid").is_some() {
        return Err(Fault::bad("after_txid is not supported for several scripts"));
    }
    let asked = Question { pool_max: 0, chain_max: TXS_PER_PAGE, after: None };
    let (mut all, mut seen): (Vec<Detailed>, BTreeSet<lydian_primitives::Txid>) = Default::default();
    for script in scripts {
        let page = call.query().page(script, asked)?;
        all.extend(page.transactions.into_iter().filter(|one| seen.insert(one.tx.view().txid())));
    }
    // The order within a block is that of the pages.
    all.sort_by_key(|one| Reverse(one.block.map(|block| block.height)));
    all.truncate(TXS_PER_PAGE);
    Ok(Reply::json(&to_json(call, &all), SHORTLY))
}

pub(crate) fn of_addresses(call: &Call<'_>) -> Result<Reply, Fault> {
    let texts: Vec<String> = call.json("an array of addresses")?;
    at_most(texts.len(), SCRIPTS_MAX, "addresses")?;
    let scripts: Result<Vec<ScriptHash>, Fault> = texts.iter().map(|text| call.address(text)).collect();
    of_several(call, &scripts?)
}

pub(crate) fn of_scripts(call: &Call<'_>) -> Result<Reply, Fault> {
    let texts: Vec<String> = call.json("an array of script hashes")?;
    at_most(texts.len(), SCRIPTS_MAX, "script hashes")?;
    let scripts: Result<Vec<ScriptHash>, Fault> = texts.iter().map(|text| script_hash(text)).collect();
    of_several(call, &scripts?)
}
