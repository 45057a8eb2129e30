//! Methods about single blocks and their outputs: `getblock`, `gettxout`, and statistics of blocks, of the chain and of
//! the UTXO set.

use crate::error::{RpcError, code};
use crate::json::{Amount, Double, Json, write_text};
use crate::method::{Arg, Call, Category, Kind, Method, answer, parse_hash};
use crate::methods::blockchain::by_hash_or_height;
use crate::methods::blockstats;
use crate::output::{Detail, write_block, write_script};
use lydian_engine::{Engine, HeaderInfo, UtxoHash};
use lydian_primitives::{BlockHash, Height, OutPoint, Txid, push_hex};
use serde::Serialize;

const HASH_OR_HEIGHT: Arg = Arg {
    type_words: "string or numeric",
    ..Arg::new("hash_or_height", Kind::Number, "the hash or height of the block")
};

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getblock",
        category: Category::Blockchain,
        help: "Returns a block.\nVerbosity 0 returns the block in hex, 1 an object with the ids of its transactions, and 2 an object with the transactions. 3 adds \
               the outputs that they spend, if their undo data is available.",
        args: &[
            Arg::new("blockhash", Kind::Hex, "the block hash"),
            Arg::new("verbosity|verbose", Kind::Number, "0 to 3").default("1").unchecked(),
        ],
        result: "the block in hex, or {hash, confirmations, height, version, versionHex, merkleroot, time, mediantime, nonce, bits, target, difficulty, \
                 chainwork, nTx, previousblockhash, nextblockhash, strippedsize, size, weight, coinbase_tx: {version, locktime, sequence, coinbase, witness}, \
                 tx: [...]}",
        examples: &["\"00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09\""],
        remark: "",
        call: getblock,
    },
    Method {
        name: "getblockstats",
        category: Category::Blockchain,
        help: "Computes statistics of a block. Amounts are in satoshis.",
        args: &[
            HASH_OR_HEIGHT.unchecked(),
            Arg {
                oneline: "stats",
                ..Arg::new("stats", Kind::Array, "the values to return").hint("all values").of(&[
                    Arg::new("height", Kind::Text, "the name of a value").omitted(),
                    Arg::new("time", Kind::Text, "the name of a value").omitted(),
                ])
            },
        ],
        result: "{avgfee, avgfeerate, avgtxsize, blockhash, feerate_percentiles, height, ins, maxfee, maxfeerate, maxtxsize, medianfee, mediantime, \
                 mediantxsize, minfee, minfeerate, mintxsize, outs, subsidy, swtotal_size, swtotal_weight, swtxs, time, total_out, total_size, \
                 total_weight, totalfee, txs, utxo_increase, utxo_size_inc, utxo_increase_actual, utxo_size_inc_actual}",
        examples: &["1000 '[\"minfeerate\",\"avgfeerate\"]'"],
        remark: "",
        call: blockstats::getblockstats,
    },
    Method {
        name: "getchaintxstats",
        category: Category::Blockchain,
        help: "Computes the number of transactions in the chain, and their rate over a window of blocks.",
        args: &[
            Arg::new("nblocks", Kind::Number, "the number of blocks in the window").hint("one month"),
            Arg::new("blockhash", Kind::Hex, "the hash of the last block in the window").hint("chain tip"),
        ],
        result: "{time, txcount, window_final_block_hash, window_final_block_height, window_block_count, window_interval, window_tx_count, txrate}",
        examples: &["", "2016"],
        remark: "The counts are omitted if blocks of the window were pruned.",
        call: getchaintxstats,
    },
    Method {
        name: "gettxout",
        category: Category::Blockchain,
        help: "Returns an unspent output.",
        args: &[
            Arg::new("txid", Kind::Text, "the transaction id"),
            Arg::new("n", Kind::Number, "the output index"),
            Arg::new("include_mempool", Kind::Bool, "whether to take the mempool into account").default("true"),
        ],
        result: "null, or {bestblock, confirmations, value, scriptPubKey: {asm, desc, hex, address, type}, coinbase}",
        examples: &["\"txid\" 1"],
        remark: "There is no mempool yet, so `include_mempool` has no effect. While blocks are being validated, `bestblock` may be below the tip: it is the \
                 block for which the answer is valid.",
        call: gettxout,
    },
    Method {
        name: "gettxoutsetinfo",
        category: Category::Blockchain,
        help: "Returns sums over all unspent outputs. Reads the whole UTXO set.",
        args: &[
            Arg::new("hash_type", Kind::Text, "the hash to compute: hash_serialized_3, muhash or none")
                .default("\"hash_serialized_3\""),
            Arg { need: crate::method::Need::Hint("the current best block"), ..HASH_OR_HEIGHT }.unchecked(),
            Arg::new("use_index", Kind::Bool, "whether an index may be used").default("true"),
        ],
        result: "{height, bestblock, txouts, bogosize, hash_serialized_3 or muhash, total_amount, transactions, disk_size}",
        examples: &["", "\"none\""],
        remark: "There is no coinstatsindex yet, so only the tip can be queried. `disk_size` is the size of Lydian's own coin store.",
        call: gettxoutsetinfo,
    },
];

/// Core's error for a block that is not stored.
fn not_available(info: &HeaderInfo) -> RpcError {
    RpcError::misc(match info.is_pruned() {
        true => "Block not available (pruned data)",
        false => "Block not available (not fully downloaded)",
    })
}

pub(crate) fn block_checked(engine: &Engine, info: &HeaderInfo) -> Result<lydian_primitives::Block, RpcError> {
    if info.node.block.is_none() {
        return Err(not_available(info));
    }
    engine.block(info).ok().flatten().ok_or_else(|| RpcError::misc("Block not found on disk"))
}

fn getblock(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let hash = call.hash(0, "blockhash")?;
    let verbosity = match call.given(1) {
        None => 1,
        Some(Json::Bool(is_verbose)) => i32::from(*is_verbose),
        Some(value) => value.as_integer()?,
    };
    let engine = call.context.engine()?;
    let info = engine.header_info(&hash).ok_or_else(RpcError::block_not_found)?;
    if verbosity <= 0 {
        let raw = engine.raw_block(&info).map_err(|_| RpcError::misc("Block not found on disk"))?;
        let raw = raw.ok_or_else(|| not_available(&info))?;
        let size = 2 * raw.as_bytes().len() + 64;
        call.expect_bytes(size)?;
        out.reserve(size);
        out.push(b'"');
        push_hex(out, raw.as_bytes());
        out.push(b'"');
        return Ok(());
    }
    let block = block_checked(&engine, &info)?;
    let detail = match verbosity {
        1 => None,
        2 => Some(Detail::Plain),
        _ => Some(Detail::Prevouts),
    };
    let mut spent = None;
    if detail.is_some() {
        const UNREADABLE: &str = "Undo data expected but can't be read. This could be due to disk corruption or a conflict with a pruning event.";
        let read = engine.spent_coins(&info, &block);
        spent = read.map_err(|_| RpcError::new(code::INTERNAL_ERROR, UNREADABLE))?;
    }
    // About the size of Core's JSON per byte of the block.
    let size = block.total_size() * if detail.is_some() { 8 } else { 1 };
    call.expect_bytes(size)?;
    out.reserve(size);
    write_block(&info, &block, spent.as_deref(), detail, engine.params(), out)
}

fn gettxout(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let txid = Txid(parse_hash(call.arg(0), "txid")?);
    let vout: u32 = call.arg(1).as_integer()?;
    call.bool_or(2, true)?;
    let engine = call.context.engine()?;
    let (coin, at) = engine.coin(OutPoint { txid, vout })?;
    let Some(coin) = coin else { return answer(out, &()) };
    let confirmations = i64::from(at.height.0) - i64::from(coin.height.0) + 1;
    let head = format!(
        "{{\"bestblock\":\"{}\",\"confirmations\":{confirmations},\"value\":{},\"scriptPubKey\":",
        at.hash, coin.value
    );
    out.extend_from_slice(head.as_bytes());
    write_script(&coin.script_pubkey, engine.params().chain, out);
    out.extend_from_slice(if coin.is_coinbase { b",\"coinbase\":true}" } else { b",\"coinbase\":false}" });
    Ok(())
}

#[derive(Debug, Serialize)]
struct CoinsAnswer {
    height: u32,
    bestblock: String,
    txouts: u64,
    bogosize: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    hash_serialized_3: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    muhash: Option<String>,
    total_amount: Amount,
    transactions: u64,
    disk_size: u64,
}

fn gettxoutsetinfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let kind = match call.given(0).map_or(Ok("hash_serialized_3"), Json::as_text)? {
        "hash_serialized_3" => UtxoHash::HashSerialized3,
        "muhash" => UtxoHash::Muhash,
        "none" => UtxoHash::None,
        other => return Err(RpcError::parameter(format!("'{other}' is not a valid hash_type"))),
    };
    call.bool_or(2, true)?;
    if call.given(1).is_some() {
        return Err(RpcError::parameter("Querying specific block heights requires coinstatsindex"));
    }
    let sums = call.context.engine()?.coins_summary(kind)?;
    let shown = |wanted| sums.hash.filter(|_| kind == wanted).map(|hash| BlockHash(hash).to_string());
    answer(
        out,
        &CoinsAnswer {
            height: sums.tip.height.0,
            bestblock: sums.tip.hash.to_string(),
            txouts: sums.coins,
            bogosize: sums.bogosize,
            hash_serialized_3: shown(UtxoHash::HashSerialized3),
            muhash: shown(UtxoHash::Muhash),
            total_amount: Amount(sums.total.0),
            transactions: sums.transactions,
            disk_size: sums.disk_bytes,
        },
    )
}

#[derive(Debug, Serialize)]
struct ChainTxStats {
    time: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    txcount: Option<u64>,
    window_final_block_hash: String,
    window_final_block_height: u32,
    window_block_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_interval: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    window_tx_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    txrate: Option<Double>,
}

/// One month in seconds.
const MONTH_SECONDS: i64 = 30 * 24 * 60 * 60;

fn getchaintxstats(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let engine = call.context.engine()?;
    let last = match call.given(1) {
        None => engine.tip_info(),
        Some(_) => {
            let info = engine.header_info(&call.hash(1, "blockhash")?).ok_or_else(RpcError::block_not_found)?;
            if !info.is_active {
                return Err(RpcError::parameter("Block is not in main chain"));
            }
            info
        }
    };
    let height = i64::from(last.node.height.0);
    let count = match call.given(0) {
        None => (MONTH_SECONDS / engine.params().pow_target_spacing).min(height - 1).max(0),
        Some(value) => {
            let count = i64::from(value.as_integer::<i32>()?);
            if count < 0 || (count > 0 && count >= height) {
                let message = "Invalid block count: should be between 0 and the block's height - 1";
                return Err(RpcError::parameter(message));
            }
            count
        }
    };
    let count = u32::try_from(count).unwrap_or(0);
    let past_height = Height(last.node.height.0 - count);
    let past = engine.ancestor_info(last.id, past_height).ok_or_else(RpcError::block_not_found)?;
    let interval = last.median_time - past.median_time;
    let total = engine.chain_transactions(last.node.height)?;
    let window = match total {
        Some(total) if count > 0 => engine.chain_transactions(past_height)?.map(|before| total.saturating_sub(before)),
        _ => None,
    };
    #[allow(clippy::cast_precision_loss, reason = "a rate; counts and times are far below 2^53")]
    let rate = window.filter(|_| interval > 0).map(|window| Double(window as f64 / interval as f64));
    answer(
        out,
        &ChainTxStats {
            time: last.node.header.time,
            txcount: total,
            window_final_block_hash: last.node.hash.to_string(),
            window_final_block_height: last.node.height.0,
            window_block_count: count,
            window_interval: (count > 0).then_some(interval),
            window_tx_count: window,
            txrate: rate,
        },
    )
}

/// The block that `getblockstats` is called for.
pub(crate) fn stats_block(call: &Call<'_>) -> Result<HeaderInfo, RpcError> {
    by_hash_or_height(call, 0)
}

/// Writes a key of an object.
pub(crate) fn push_key(out: &mut Vec<u8>, key: &str) {
    write_text(key, out);
    out.push(b':');
}
