//! What each route answers, by what it is about.

pub(crate) mod block;
pub(crate) mod broadcast;
pub(crate) mod mempool;
pub(crate) mod script;
pub(crate) mod transaction;

use crate::call::Call;
use crate::fault::Fault;
use crate::json::TransactionJson;
use crate::reply::kept;
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
