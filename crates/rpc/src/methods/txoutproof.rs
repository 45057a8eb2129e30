//! `gettxoutproof` and `verifytxoutproof`: proofs that transactions are in a block (rpc/txoutproof.cpp).
//!
//! Input: txids, or a proof in hex. Output: a proof, or the txids that it proves. Without a block hash, the block is
//! found by an unspent output of one of the transactions, or by the transaction index.

use super::block::not_available;
use crate::error::{RpcError, code};
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::output::Hex;
use crate::partial_merkle_tree::MerkleBlock;
use lydian_engine::{Engine, HeaderInfo};
use lydian_primitives::{OutPoint, ParseErrorKind, Txid};
use std::collections::BTreeSet;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "gettxoutproof",
        category: Category::Blockchain,
        help: "Returns a proof that transactions are in a block.\n\
               Without a block hash, one of them must have an unspent output, or -txindex must be on.",
        args: &[
            Arg::new("txids", Kind::Array, "the transactions")
                .of(&[Arg::new("txid", Kind::Hex, "a transaction id").omitted()]),
            Arg::new("blockhash", Kind::Hex, "the block that contains the transactions").omitted(),
        ],
        examples: &["'[\"mytxid\"]' \"myblockhash\""],
        remark: "",
        call: &returns("the proof", gettxoutproof),
    },
    Method {
        name: "verifytxoutproof",
        category: Category::Blockchain,
        help: "Returns the transactions that a proof commits to. It is an error if the block is not in the active chain.",
        args: &[Arg::new("proof", Kind::Hex, "a proof from gettxoutproof")],
        examples: &["\"proof\""],
        remark: "For a pruned block the answer is an error, since the number of its transactions is not kept.",
        call: &returns("the transaction ids, or none if the proof is invalid", verifytxoutproof)
            .each("a transaction id"),
    },
];

fn gettxoutproof(call: &Call<'_>) -> Result<Hex<Vec<u8>>, RpcError> {
    let mut txids = BTreeSet::new();
    let values = call.arg(0).as_array()?;
    if values.is_empty() {
        return Err(RpcError::parameter("Parameter 'txids' cannot be empty"));
    }
    for value in values {
        if !txids.insert(Txid(parse_hash(value, "txid")?)) {
            let text = value.as_text()?;
            return Err(RpcError::parameter(format!("Invalid parameter, duplicated txid: {text}")));
        }
    }
    let engine = call.context.engine()?;
    let info = match call.given(1) {
        Some(_) => engine.header_info(&call.hash(1, "blockhash")?).ok_or_else(RpcError::block_not_found)?,
        None => find_block(call, &engine, &txids)?,
    };
    if info.node.block.is_none() {
        return Err(not_available(&info));
    }
    let block = engine.block(&info).ok().flatten();
    let block = block.ok_or_else(|| RpcError::new(code::INTERNAL_ERROR, "Can't read block from disk"))?;
    let all: Vec<Txid> = block.txs().map(|tx| tx.txid()).collect();
    if all.iter().filter(|txid| txids.contains(txid)).count() != txids.len() {
        let words = "Not all transactions found in specified or retrieved block";
        return Err(RpcError::new(code::INVALID_ADDRESS_OR_KEY, words));
    }
    Ok(Hex(MerkleBlock::build(*block.header(), &all, &txids).encode()))
}

/// The block of the first transaction that has an unspent output. Otherwise, the block in which the index has the first
/// transaction.
fn find_block(call: &Call<'_>, engine: &Engine, txids: &BTreeSet<Txid>) -> Result<HeaderInfo, RpcError> {
    for txid in txids {
        if let Some(info) = block_of_unspent(call, engine, txid)? {
            return Ok(info);
        }
    }
    let index = call.context.indexes().transactions.as_ref();
    let found = index.zip(txids.first()).map(|(index, first)| {
        let synced = index.wait_until_synced();
        match index.find(first)? {
            Some(found) => Ok(Some(found)),
            None => synced.map(|_| None),
        }
    });
    let not_yet = || RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Transaction not yet in block");
    let (_, hash) = found.transpose().map_err(RpcError::misc)?.flatten().ok_or_else(not_yet)?;
    let info = engine.header_info(&hash);
    info.ok_or_else(|| RpcError::new(code::INTERNAL_ERROR, "Transaction index corrupt"))
}

/// Core's `MAX_OUTPUTS_PER_BLOCK`: an output has at least 9 bytes of weight 4.
const MAX_OUTPUTS_PER_BLOCK: u32 = 4_000_000 / (4 * 9);

/// The outputs of a transaction are looked up in growing batches, since an early one is usually unspent.
const BATCH_MIN: u32 = 16;
const BATCH_MAX: u32 = 8_192;

/// The block of a transaction that has an unspent output: Core's `AccessByTxid`.
fn block_of_unspent(call: &Call<'_>, engine: &Engine, txid: &Txid) -> Result<Option<HeaderInfo>, RpcError> {
    let (mut start, mut size) = (0, BATCH_MIN);
    while start < MAX_OUTPUTS_PER_BLOCK && !call.context.is_stopping() {
        let end = MAX_OUTPUTS_PER_BLOCK.min(start + size);
        let outpoints: Vec<OutPoint> = (start..end).map(|vout| OutPoint { txid: *txid, vout }).collect();
        let (tip, coins) = engine.coins_now(&outpoints)?;
        if let Some(coin) = coins.into_iter().flatten().next() {
            // In the chain of these coins: the tip may have moved since.
            let tip = engine.header_info(&tip.hash);
            return Ok(tip.and_then(|tip| engine.ancestor_info(tip.id, coin.height)));
        }
        (start, size) = (end, BATCH_MAX.min(2 * size));
    }
    Ok(None)
}

fn verifytxoutproof(call: &Call<'_>) -> Result<Vec<Txid>, RpcError> {
    let bytes = call.arg(0).as_hex("proof")?;
    let proof = MerkleBlock::decode(&bytes).map_err(|error| RpcError::misc(reading_error(&error.kind)))?;
    // A malformed proof leads to zero, as in Core.
    let (root, found) = proof.extract().unwrap_or_default();
    if root != proof.header.merkle_root {
        return Ok(Vec::new());
    }
    let engine = call.context.engine()?;
    let info = engine.header_info(&proof.header.hash()).filter(|info| info.is_active);
    let count = info.map(|info| engine.transaction_count(info.id)).transpose()?.flatten();
    match count.filter(|count| *count > 0) {
        None => Err(RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Block not found in chain")),
        Some(count) if count == proof.transactions => Ok(found),
        Some(_) => Ok(Vec::new()),
    }
}

/// The text of the C++ exception in Core.
fn reading_error(kind: &ParseErrorKind) -> &'static str {
    match kind {
        ParseErrorKind::NonCanonicalCompactSize => "non-canonical ReadCompactSize(): iostream error",
        ParseErrorKind::CompactSizeTooLarge { .. } => "ReadCompactSize(): size too large: iostream error",
        _ => "SpanReader::read(): end of data: iostream error",
    }
}
