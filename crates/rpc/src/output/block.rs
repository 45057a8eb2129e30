//! Headers and blocks as JSON: Core's `blockheaderToJSON` and `blockToJSON` (rpc/blockchain.cpp).
//!
//! Input: the engine's data on a header, a parsed block, the coins it spent. Output: text.

use super::transaction::{Detail, write_transaction};
use crate::error::RpcError;
use crate::json::Double;
use crate::method::answer;
use lydian_consensus::{Coin, Params, U256, pow};
use lydian_engine::HeaderInfo;
use lydian_primitives::{Block, BlockHash, push_hex, push_hex_reversed};
use serde::Serialize;
use std::io::Write;

/// The answer of `getblockheader`.
#[derive(Debug, Serialize)]
pub(crate) struct HeaderAnswer {
    hash: String,
    confirmations: i64,
    height: u32,
    version: i32,
    #[serde(rename = "versionHex")]
    version_hex: String,
    merkleroot: String,
    time: u32,
    mediantime: i64,
    nonce: u32,
    bits: String,
    target: String,
    difficulty: Double,
    chainwork: String,
    #[serde(rename = "nTx")]
    tx_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    previousblockhash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nextblockhash: Option<String>,
}

impl HeaderAnswer {
    pub(crate) fn new(info: &HeaderInfo, tx_count: u32, params: &Params) -> HeaderAnswer {
        let header = &info.node.header;
        HeaderAnswer {
            hash: info.node.hash.to_string(),
            confirmations: info.confirmations(),
            height: info.node.height.0,
            version: header.version,
            version_hex: format!("{:08x}", header.version),
            merkleroot: BlockHash(header.merkle_root).to_string(),
            time: header.time,
            mediantime: info.median_time,
            nonce: header.nonce,
            bits: format!("{:08x}", header.bits),
            target: target(header.bits, params),
            difficulty: Double(difficulty(header.bits)),
            chainwork: shown_work(info.node.chain_work),
            tx_count,
            previousblockhash: info.node.parent.map(|_| header.prev_block.to_string()),
            nextblockhash: info.next.map(|hash| hash.to_string()),
        }
    }
}

/// A chain work or a target, in the displayed order of hashes.
pub(crate) fn shown_work(work: U256) -> String {
    BlockHash(work.to_le_bytes()).to_string()
}

/// The target of a header.
pub(crate) fn target(bits: u32, params: &Params) -> String {
    shown_work(pow::derive_target(bits, params).unwrap_or(U256::ZERO))
}

/// The difficulty relative to the easiest target of mainnet, on every chain: Core's `GetDifficulty`, with its rounding.
pub(crate) fn difficulty(bits: u32) -> f64 {
    let mut shift = bits >> 24;
    let mut difficulty = f64::from(0xffff) / f64::from(bits & 0x00ff_ffff);
    while shift < 29 {
        difficulty *= 256.0;
        shift += 1;
    }
    while shift > 29 {
        difficulty /= 256.0;
        shift -= 1;
    }
    difficulty
}

/// Writes the answer of `getblock` for verbosity 1 (`detail` is `None`), 2 and 3. `spent`: the coins of all inputs in
/// order, if known.
pub(crate) fn write_block(
    info: &HeaderInfo,
    block: &Block,
    spent: Option<&[Coin]>,
    detail: Option<Detail>,
    params: &Params,
    out: &mut Vec<u8>,
) -> Result<(), RpcError> {
    let tx_count = u32::try_from(block.tx_count()).unwrap_or(u32::MAX);
    answer(out, &HeaderAnswer::new(info, tx_count, params))?;
    // The object is continued.
    out.pop();
    let (stripped, total) = (block.base_size(), block.total_size());
    let weight = 3 * stripped + total;
    // Writing to memory does not fail.
    let _ = write!(out, ",\"strippedsize\":{stripped},\"size\":{total},\"weight\":{weight},\"coinbase_tx\":");
    write_coinbase(block, out);
    out.extend_from_slice(b",\"tx\":[");
    let mut rest = spent;
    for (index, tx) in block.txs().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let Some(detail) = detail else {
            out.push(b'"');
            push_hex_reversed(out, &tx.txid().0);
            out.push(b'"');
            continue;
        };
        let mut own = None;
        if let Some(coins) = rest.filter(|_| index > 0) {
            let (first, behind) = coins.split_at(tx.input_count().min(coins.len()));
            (own, rest) = (Some(first), Some(behind));
        }
        write_transaction(tx, own, detail, params.chain, out);
    }
    out.extend_from_slice(b"]}");
    Ok(())
}

/// Core's `coinbaseTxToJSON`.
fn write_coinbase(block: &Block, out: &mut Vec<u8>) {
    let Some((tx, input)) = block.txs().next().and_then(|tx| Some((tx, tx.inputs().next()?))) else {
        out.extend_from_slice(b"{}");
        return;
    };
    let (version, lock_time, sequence) = (tx.version(), tx.lock_time(), input.sequence);
    let _ = write!(out, "{{\"version\":{version},\"locktime\":{lock_time},\"sequence\":{sequence},\"coinbase\":\"");
    push_hex(out, input.script_sig);
    if let Some(item) = input.witness.iter().next() {
        out.extend_from_slice(b"\",\"witness\":\"");
        push_hex(out, item);
    }
    out.extend_from_slice(b"\"}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::double_text;

    /// From Core's rpc/blockchain tests (blockchain_tests.cpp) and chains.
    /// checklist: 25
    #[test]
    fn difficulties() {
        for (bits, value) in
            [(0x1f11_1111, 0.000_001), (0x1ef8_8f6f, 0.000_016), (0x1df8_8f6f, 0.004_023), (0x1cf8_8f6f, 1.029_916)]
        {
            assert!((difficulty(bits) - value).abs() < 0.000_01, "{bits:08x}");
        }
        let high = difficulty(0x1234_5678);
        assert!((high / 5_913_134_931_067_755_359_633_408.0 - 1.0).abs() < 1e-12, "{high}");
        assert_eq!(double_text(difficulty(0x207f_ffff)), "4.656542373906925e-10");
        assert_eq!(difficulty(0x1d00_ffff), 1.0);
    }
}
