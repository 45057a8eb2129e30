//! Blocks: by hash, on the active chain or beside it, and by height.

use super::{TXS_PER_PAGE, keep, transactions as to_json};
use crate::call::Call;
use crate::fault::Fault;
use crate::json::{BlockJson, BlockStatusJson};
use crate::reply::{FOR_GOOD, Reply, SHORTLY};
use lydian_primitives::{Block, BlockHash, Transaction, to_hex};
use lydian_query::{BlockInfo, BlockPlace};
use std::sync::Arc;

/// Blocks on a page: Esplora's `BLOCK_LIMIT`.
const BLOCKS_PER_PAGE: usize = 10;

fn info(call: &Call<'_>, hash: &BlockHash) -> Result<BlockInfo, Fault> {
    call.query().chain().block_info(hash)?.ok_or_else(|| not_found(hash))
}

fn not_found(hash: &BlockHash) -> Fault {
    Fault::not_found(format!("Block not found: {hash}"))
}

fn block(call: &Call<'_>) -> Result<Block, Fault> {
    let hash = call.block_hash()?;
    call.query().chain().block(&hash)?.ok_or_else(|| not_found(&hash))
}

pub(crate) fn whole(call: &Call<'_>) -> Result<Reply, Fault> {
    let info = info(call, &call.block_hash()?)?;
    Ok(Reply::json(&BlockJson::new(&info, &block(call)?), FOR_GOOD))
}

pub(crate) fn header(call: &Call<'_>) -> Result<Reply, Fault> {
    let info = info(call, &call.block_hash()?)?;
    Ok(Reply::text(to_hex(&info.header.to_bytes()), FOR_GOOD))
}

/// The active chain's place of a block.
fn place(info: &BlockInfo) -> Option<BlockPlace> {
    let place = BlockPlace { height: info.height, hash: info.hash, time: info.header.time };
    info.is_active.then_some(place)
}

pub(crate) fn status(call: &Call<'_>) -> Result<Reply, Fault> {
    let info = info(call, &call.block_hash()?)?;
    Ok(Reply::json(&BlockStatusJson::from(&info), keep(call, place(&info))?))
}

pub(crate) fn txids(call: &Call<'_>) -> Result<Reply, Fault> {
    let txids: Vec<String> = block(call)?.txs().map(|tx| tx.txid().to_string()).collect();
    Ok(Reply::json(&txids, FOR_GOOD))
}

pub(crate) fn txid(call: &Call<'_>) -> Result<Reply, Fault> {
    let (block, index) = (block(call)?, call.number("index")?);
    let tx = block.txs().nth(index as usize);
    let count = block.tx_count();
    let tx =
        tx.ok_or_else(|| Fault::not_found(format!("tx index out of range: the block has {count} transactions")))?;
    Ok(Reply::text(tx.txid().to_string(), FOR_GOOD))
}

pub(crate) fn raw(call: &Call<'_>) -> Result<Reply, Fault> {
    Ok(Reply::bytes(block(call)?.as_bytes().to_vec(), FOR_GOOD))
}

pub(crate) fn transactions(call: &Call<'_>) -> Result<Reply, Fault> {
    let start = call.number_or("start", 0)? as usize;
    if !start.is_multiple_of(TXS_PER_PAGE) {
        return Err(Fault::bad(format!("start index must be a multiple of {TXS_PER_PAGE}")));
    }
    let info = info(call, &call.block_hash()?)?;
    let (block, place) = (block(call)?, place(&info));
    if start >= block.tx_count() {
        let count = block.tx_count();
        return Err(Fault::not_found(format!("start index out of range: the block has {count} transactions")));
    }
    let page = block.txs().skip(start).take(TXS_PER_PAGE);
    let page: Result<Vec<_>, _> =
        page.map(|tx| Transaction::parse(tx.bytes()).map(|tx| (Arc::new(tx), place))).collect();
    let page = page.map_err(|error| Fault::internal(format!("block {}: {error}", info.hash)))?;
    let all = call.query().with_spent(page)?;
    Ok(Reply::json(&to_json(call, &all), keep(call, place)?).of_total(block.tx_count()))
}

pub(crate) fn at_height(call: &Call<'_>) -> Result<Reply, Fault> {
    let place = call.query().place(call.number("height")?)?;
    Ok(Reply::text(place.hash.to_string(), keep(call, Some(place))?))
}

pub(crate) fn page(call: &Call<'_>) -> Result<Reply, Fault> {
    let tip = call.query().tip()?.0;
    let start = call.number_or("start", tip)?;
    let mut hash = call.query().place(start)?.hash;
    let mut all = Vec::with_capacity(BLOCKS_PER_PAGE);
    // From each block to the one before it, so that all are of one chain.
    while all.len() < BLOCKS_PER_PAGE {
        let info = info(call, &hash)?;
        let block = call.query().chain().block(&hash)?.ok_or_else(|| not_found(&hash))?;
        all.push(BlockJson::new(&info, &block));
        if info.height == 0 {
            break;
        }
        hash = info.header.prev_block;
    }
    Ok(Reply::json(&all, SHORTLY))
}

pub(crate) fn tip_height(call: &Call<'_>) -> Result<Reply, Fault> {
    Ok(Reply::text(call.query().tip()?.0.to_string(), SHORTLY))
}

pub(crate) fn tip_hash(call: &Call<'_>) -> Result<Reply, Fault> {
    Ok(Reply::text(call.query().tip()?.1.hash().to_string(), SHORTLY))
}
