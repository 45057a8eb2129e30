//! Blocks: by hash, on the active chain or beside it, and by height.

use super::{TXS_PER_PAGE, check_size, keep, transactions as to_json};
use crate::call::Call;
use crate::fault::Fault;
use crate::json::{BlockJson, BlockStatusJson};
use crate::reply::{FOR_GOOD, Reply, SHORTLY};
use lydian_primitives::{Block, BlockHash, to_hex};
use lydian_query::{BlockInfo, BlockPage, BlockPlace};
use std::ops::Range;

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
    Ok(Reply::json(&json(call, &info(call, &call.block_hash()?)?)?, FOR_GOOD))
}

fn json(call: &Call<'_>, info: &BlockInfo) -> Result<BlockJson, Fault> {
    let sizes = call.query().block_sizes(&info.hash)?;
    Ok(BlockJson::new(info, sizes.ok_or_else(|| not_found(&info.hash))?))
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
    let BlockPage { transactions, total, place } = page_of(call, start..start + TXS_PER_PAGE)?;
    if start >= total {
        return Err(Fault::not_found(format!("start index out of range: the block has {total} transactions")));
    }
    Ok(Reply::json(&to_json(call, &transactions), keep(call, place)?).of_total(total))
}

fn page_of(call: &Call<'_>, positions: Range<usize>) -> Result<BlockPage, Fault> {
    let hash = call.block_hash()?;
    call.query().block_page(&hash, positions)?.ok_or_else(|| not_found(&hash))
}

pub(crate) fn all_transactions(call: &Call<'_>) -> Result<Reply, Fault> {
    let BlockPage { transactions, place, .. } = page_of(call, 0..usize::MAX)?;
    check_size(&transactions)?;
    Ok(Reply::json(&to_json(call, &transactions), keep(call, place)?))
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
        all.push(json(call, &info)?);
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
