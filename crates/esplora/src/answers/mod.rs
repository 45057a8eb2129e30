//! What each route answers, by what it is about.

pub(crate) mod block;
pub(crate) mod broadcast;
pub(crate) mod mempool;
pub(crate) mod script;
pub(crate) mod transaction;

use crate::call::{Call, at_most, txid};
use crate::fault::Fault;
use crate::json::TransactionJson;
use crate::limits::{TXS_MAX, TXS_SIZE_MAX};
use crate::reply::kept;
use lydian_primitives::Txid;
use lydian_query::{BlockPlace, Detailed};

/// Transactions of the chain on a page: Esplora's `CHAIN_TXS_PER_PAGE`.
const TXS_PER_PAGE: usize = 25;

/// How long an answer about a block, or about something in it, may be kept.
fn keep(call: &Call<'_>, block: Option<BlockPlace>) -> Result<u32, Fault> {
    Ok(kept(block.map(|block| block.height), call.query().tip()?.0))
}

fn transactions(call: &Call<'_>, all: &[Detailed]) -> Vec<TransactionJson> {
    all.iter().map(|one| TransactionJson::new(one, call.shared.chain)).collect()
}

/// The txids of the body, a JSON array.
fn txids_of_body(call: &Call<'_>) -> Result<Vec<Txid>, Fault> {
    let texts: Vec<String> = call.json("an array of txids")?;
    at_most(texts.len(), TXS_MAX, "txids")?;
    texts.iter().map(|text| txid(text)).collect()
}

/// Refuses transactions that are too large for one answer.
fn check_size(all: &[Detailed]) -> Result<(), Fault> {
    let size = |one: &Detailed| {
        let scripts = one.spent.iter().flatten().map(|output| output.script_pubkey.len());
        one.tx.as_bytes().len() + scripts.sum::<usize>()
    };
    at_most(all.iter().map(size).sum(), TXS_SIZE_MAX, "bytes of transactions and scripts")
}
