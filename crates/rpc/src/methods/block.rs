//! Methods about single blocks and their outputs: `getblock`, `gettxout`, and statistics of blocks, of the chain and of
//! the UTXO set.

use crate::error::{RpcError, code};
use crate::json::{Amount, Double, Json};
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::methods::blockchain::by_hash_or_height;
use crate::methods::blockstats;
use crate::output::{BlockAnswer, Detail, OwnedScript, SerializedBlock, Transactions, TxIds};
use crate::result::{Time, cases, result};
use lydian_consensus::Coin;
use lydian_engine::{Engine, HeaderInfo, Standing, Tip, UtxoHash};
use lydian_index::{COINSTATS_NAME, CoinStats, CoinStatsReader};
use lydian_mempool::Mempool;
use lydian_mempool::pool::Snapshot;
use lydian_primitives::{BlockHash, Height, OutPoint, Txid};
use std::sync::Arc;

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
        examples: &["\"00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09\""],
        remark: "",
        call: &returns("", getblock),
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
        examples: &["1000 '[\"minfeerate\",\"avgfeerate\"]'"],
        remark: "",
        call: &returns("the chosen values", blockstats::getblockstats),
    },
    Method {
        name: "getchaintxstats",
        category: Category::Blockchain,
        help: "Computes the number of transactions in the chain, and their rate over a window of blocks.",
        args: &[
            Arg::new("nblocks", Kind::Number, "the number of blocks in the window").hint("one month"),
            Arg::new("blockhash", Kind::Hex, "the hash of the last block in the window").hint("chain tip"),
        ],
        examples: &["", "2016"],
        remark: "The counts are omitted if blocks of the window were pruned.",
        call: &returns("", getchaintxstats),
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
        examples: &["\"txid\" 1"],
        remark: "While blocks are being validated, `bestblock` may be below the tip: it is the \
                 block for which the answer is valid.",
        call: &returns("", gettxout),
    },
    Method {
        name: "gettxoutsetinfo",
        category: Category::Blockchain,
        help: "Returns sums over all unspent outputs. Reads the whole UTXO set, unless the index of `-coinstatsindex` has the answer.",
        args: &[
            Arg::new("hash_type", Kind::Text, "the hash to compute: hash_serialized_3, muhash or none")
                .default("\"hash_serialized_3\""),
            Arg { need: crate::method::Need::Hint("the current best block"), ..HASH_OR_HEIGHT }.unchecked(),
            Arg::new("use_index", Kind::Bool, "use coinstatsindex, if available").default("true"),
        ],
        examples: &["", "\"none\""],
        remark: "`disk_size` is the size of Lydian's own coin store.",
        call: &returns("", gettxoutsetinfo),
    },
];

/// Core's error for a block that is not stored.
pub(super) fn not_available(info: &HeaderInfo) -> RpcError {
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

/// The coins that a block spent, for its answer: Core's `GetUndoChecked`.
pub(crate) fn spent_checked(
    engine: &Engine,
    info: &HeaderInfo,
    block: &lydian_primitives::Block,
) -> Result<Vec<Coin>, RpcError> {
    if info.node.parent.is_some() && info.node.undo.is_none() {
        return Err(RpcError::misc(match info.is_pruned() {
            true => "Undo data not available (pruned data)",
            false => "Undo data not available",
        }));
    }
    let spent = engine.spent_coins(info, block).ok().flatten();
    spent.ok_or_else(|| RpcError::misc("Can't read undo data from disk"))
}

cases! {
    /// The answer of `getblock`.
    enum BlockResult {
        /// the serialized block
        #[when("for verbosity = 0")]
        Raw(SerializedBlock),
        #[when("for verbosity = 1")]
        Summary(Box<BlockAnswer<TxIds>>),
        #[when("for verbosity = 2 and verbosity = 3")]
        Full(Box<BlockAnswer<Transactions>>),
    }
}

fn getblock(call: &Call<'_>) -> Result<BlockResult, RpcError> {
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
        call.expect_bytes(2 * raw.as_bytes().len() + 64)?;
        return Ok(BlockResult::Raw(SerializedBlock(raw)));
    }
    let block = block_checked(&engine, &info)?;
    let detail = match verbosity {
        1 => None,
        2 => Some(Detail::Plain),
        _ => Some(Detail::Prevouts),
    };
    let Some(detail) = detail else {
        call.expect_bytes(block.total_size())?;
        let answer = BlockAnswer::new(&info, block, engine.params(), TxIds);
        return Ok(BlockResult::Summary(Box::new(answer)));
    };
    const UNREADABLE: &str = "Undo data expected but can't be read. This could be due to disk corruption or a conflict with a pruning event.";
    let spent = engine.spent_coins(&info, &block);
    let spent = spent.map_err(|_| RpcError::new(code::INTERNAL_ERROR, UNREADABLE))?;
    // About the size of Core's JSON per byte of the block.
    let size = block.total_size() * 8;
    call.expect_bytes(size)?;
    let chain = engine.params().chain;
    let transactions = |block| Transactions { block, spent, detail, chain, size };
    let answer = BlockAnswer::new(&info, block, engine.params(), transactions);
    Ok(BlockResult::Full(Box::new(answer)))
}

cases! {
    /// The answer of `gettxout`.
    enum OutputResult {
        #[when("if the UTXO was not found")]
        Missing(()),
        #[when("otherwise")]
        Found(OutputAnswer),
    }
}

result! {
    struct OutputAnswer {
        /// the hash of the block for which the answer is valid
        bestblock: BlockHash,
        /// the number of confirmations
        confirmations: i64,
        /// the transaction value in BTC
        value: Amount,
        /// the output script
        #[name("scriptPubKey")]
        script: OwnedScript,
        /// coinbase or not
        coinbase: bool,
    }
}

/// How often the mempool and the coins are looked at until both are of the same block.
const SAME_BLOCK_TRIES: usize = 5;

/// The mempool, if it is asked for, the tip and the coins.
type At = (Option<Arc<Snapshot>>, Tip, Vec<Option<Coin>>);

/// A snapshot of the mempool and the coins of outpoints, of the same block if the chain does not move all the time.
pub(crate) fn snapshot_and_coins(
    engine: &Engine,
    mempool: Option<&Arc<Mempool>>,
    outpoints: &[OutPoint],
) -> Result<At, RpcError> {
    let look = || {
        // Before the coins: then a transaction that is mined meanwhile is found in one of the two.
        let snapshot = mempool.map(|mempool| mempool.snapshot());
        let (at, coins) = engine.coins_now(outpoints)?;
        Ok::<_, RpcError>((snapshot, at, coins))
    };
    for _ in 1..SAME_BLOCK_TRIES {
        let (snapshot, at, coins) = look()?;
        match (&snapshot, mempool) {
            (Some(found), Some(mempool)) if found.info().tip.hash != at.hash => {
                mempool.wait_for(&at.hash);
            }
            _ => return Ok((snapshot, at, coins)),
        }
    }
    look()
}

fn gettxout(call: &Call<'_>) -> Result<OutputResult, RpcError> {
    let txid = Txid(parse_hash(call.arg(0), "txid")?);
    let vout: u32 = call.arg(1).as_integer()?;
    let (outpoint, has_mempool) = (OutPoint { txid, vout }, call.bool_or(2, true)?);
    let engine = call.context.engine()?;
    let mempool = has_mempool.then(|| call.context.mempool()).transpose()?;
    let (snapshot, at, mut coins) = snapshot_and_coins(&engine, mempool, &[outpoint])?;
    if let Some(snapshot) = snapshot {
        if snapshot.spender(&outpoint).is_some() {
            return Ok(OutputResult::Missing(()));
        }
        if let Some(member) = snapshot.get(&txid) {
            let outputs = member.entry().tx().view();
            let index = usize::try_from(vout).unwrap_or(usize::MAX);
            let Some(output) = outputs.outputs().nth(index) else { return Ok(OutputResult::Missing(())) };
            return Ok(OutputResult::Found(OutputAnswer {
                bestblock: at.hash,
                confirmations: 0,
                value: Amount(output.value.0),
                script: OwnedScript::new(output.script_pubkey, engine.params().chain),
                coinbase: false,
            }));
        }
    }
    let Some(coin) = coins.pop().flatten() else { return Ok(OutputResult::Missing(())) };
    Ok(OutputResult::Found(OutputAnswer {
        bestblock: at.hash,
        confirmations: i64::from(at.height.0) - i64::from(coin.height.0) + 1,
        value: Amount(coin.value.0),
        script: OwnedScript::new(coin.script_pubkey, engine.params().chain),
        coinbase: coin.is_coinbase,
    }))
}

result! {
    /// The answer of `gettxoutsetinfo`.
    struct CoinsAnswer {
        /// the block height (index) of the returned statistics
        height: u32,
        /// the hash of the block at which these statistics are calculated
        bestblock: BlockHash,
        /// the number of unspent transaction outputs
        txouts: u64,
        /// database-independent, meaningless metric indicating the UTXO set size
        bogosize: u64,
        /// the serialized hash (only present if 'hash_serialized_3' hash_type is chosen)
        hash_serialized_3: Option<BlockHash>,
        /// the serialized hash (only present if 'muhash' hash_type is chosen)
        muhash: Option<BlockHash>,
        /// the total amount of coins in the UTXO set
        total_amount: Amount,
        /// the number of transactions with unspent outputs (not available when coinstatsindex is used)
        transactions: Option<u64>,
        /// the size of the coin store on disk (not available when coinstatsindex is used)
        disk_size: Option<u64>,
        /// the total amount of coins permanently excluded from the UTXO set (only available if coinstatsindex is used)
        total_unspendable_amount: Option<Amount>,
        /// info on amounts in the block at this block height (only available if coinstatsindex is used)
        block_info: Option<BlockAmounts>,
    }
}

result! {
    /// What one block changed, in the answer of `gettxoutsetinfo`.
    struct BlockAmounts {
        /// total amount of all prevouts spent in this block
        prevout_spent: Amount,
        /// coinbase subsidy amount of this block
        coinbase: Amount,
        /// total amount of new outputs created by this block
        new_outputs_ex_coinbase: Amount,
        /// total amount of unspendable outputs created in this block
        unspendable: Amount,
        /// detailed view of the unspendable categories
        unspendables: UnspendableAmounts,
    }
}

result! {
    /// The parts of `unspendable`.
    struct UnspendableAmounts {
        /// the unspendable amount of the Genesis block subsidy
        genesis_block: Amount,
        /// transactions overridden by duplicates (no longer possible with BIP30)
        bip30: Amount,
        /// amounts sent to scripts that are unspendable (for example OP_RETURN outputs)
        scripts: Amount,
        /// fee rewards that miners did not claim in their coinbase transaction
        unclaimed_rewards: Amount,
    }
}

fn gettxoutsetinfo(call: &Call<'_>) -> Result<CoinsAnswer, RpcError> {
    let kind = match call.given(0).map_or(Ok("hash_serialized_3"), Json::as_text)? {
        "hash_serialized_3" => UtxoHash::HashSerialized3,
        "muhash" => UtxoHash::Muhash,
        "none" => UtxoHash::None,
        other => return Err(RpcError::parameter(format!("'{other}' is not a valid hash_type"))),
    };
    let may_use_index = call.bool_or(2, true)?;
    let index = call.context.indexes().coinstats.as_ref();
    let engine = call.context.engine()?;
    let wanted = match call.given(1) {
        None => None,
        Some(_) => {
            let refuse = |message: &str| Err(RpcError::parameter(message));
            if index.is_none() {
                let reason = call.context.indexes().unopened(COINSTATS_NAME);
                return match reason {
                    Some(reason) => Err(RpcError::misc(reason)),
                    None => refuse("Querying specific block heights requires coinstatsindex"),
                };
            }
            if kind == UtxoHash::HashSerialized3 {
                return refuse("hash_serialized_3 hash type cannot be queried for a specific block");
            }
            if !may_use_index {
                return refuse("Cannot set use_index to false when querying for a specific block");
            }
            Some(by_hash_or_height(call, 1)?)
        }
    };
    if let Some(index) = index.filter(|_| may_use_index && kind != UtxoHash::HashSerialized3) {
        return indexed_coins(&engine, index, &wanted.unwrap_or_else(|| engine.settled_info()), kind);
    }
    let sums = engine.coins_summary(kind)?;
    let shown = |wanted| sums.hash.filter(|_| kind == wanted).map(BlockHash);
    Ok(CoinsAnswer {
        height: sums.tip.height.0,
        bestblock: sums.tip.hash,
        txouts: sums.coins,
        bogosize: sums.bogosize,
        hash_serialized_3: shown(UtxoHash::HashSerialized3),
        muhash: shown(UtxoHash::Muhash),
        total_amount: Amount(sums.total.0),
        transactions: Some(sums.transactions),
        disk_size: Some(sums.disk_bytes),
        total_unspendable_amount: None,
        block_info: None,
    })
}

/// The answer of `gettxoutsetinfo` from the index.
fn indexed_coins(
    engine: &Engine,
    index: &CoinStatsReader,
    block: &HeaderInfo,
    kind: UtxoHash,
) -> Result<CoinsAnswer, RpcError> {
    // No more than Core's wait for the blocks that are connected.
    engine.wait_for_follower(COINSTATS_NAME, block.node.height.min(engine.tip().height));
    let stats = stats_at(engine, index, block)?;
    let parent = block.node.parent.and_then(|parent| engine.ancestor_info(parent, Height(block.node.height.0 - 1)));
    // The genesis block is compared with nothing.
    let before = parent.map(|parent| stats_at(engine, index, &parent)).transpose()?;
    let change = |part: fn(&CoinStats) -> i128| {
        let change = part(&stats) - before.as_ref().map_or(0, part);
        Amount(i64::try_from(change).unwrap_or(i64::MAX))
    };
    Ok(CoinsAnswer {
        height: stats.height.0,
        bestblock: stats.hash,
        txouts: stats.coins,
        bogosize: stats.bogosize,
        hash_serialized_3: None,
        muhash: (kind == UtxoHash::Muhash).then_some(BlockHash(stats.muhash)),
        total_amount: Amount(stats.total.0),
        transactions: None,
        disk_size: None,
        total_unspendable_amount: Some(Amount(stats.unspendable().0)),
        block_info: Some(BlockAmounts {
            prevout_spent: change(|stats| stats.prevouts_spent),
            coinbase: change(|stats| stats.coinbase),
            new_outputs_ex_coinbase: change(|stats| stats.new_outputs_ex_coinbase),
            unspendable: change(|stats| stats.unspendable().0.into()),
            unspendables: UnspendableAmounts {
                genesis_block: change(|stats| stats.unspendable_genesis.0.into()),
                bip30: change(|stats| stats.unspendable_bip30.0.into()),
                scripts: change(|stats| stats.unspendable_scripts.0.into()),
                unclaimed_rewards: change(|stats| stats.unspendable_unclaimed.0.into()),
            },
        }),
    })
}

fn stats_at(engine: &Engine, index: &CoinStatsReader, block: &HeaderInfo) -> Result<CoinStats, RpcError> {
    let found = index.at(block.node.height, &block.node.hash);
    if let Some(stats) = found.map_err(|error| RpcError::misc(error.to_string()))? {
        return Ok(stats);
    }
    let follower = engine.follower(COINSTATS_NAME);
    if let Some(failure) = follower.as_ref().and_then(|follower| follower.failure(COINSTATS_NAME)) {
        return Err(RpcError::misc(failure));
    }
    let is_synced = follower.as_ref().is_some_and(|follower| follower.standing == Standing::InStep);
    let height = follower.and_then(|follower| follower.tip).map_or(0, |tip| tip.height.0);
    if is_synced || height >= block.node.height.0 {
        // A block that was never connected.
        return Err(RpcError::new(code::INTERNAL_ERROR, "Unable to read UTXO set"));
    }
    let text = format!("Unable to get data because coinstatsindex is still syncing. Current height: {height}");
    Err(RpcError::new(code::INTERNAL_ERROR, text))
}

result! {
    /// The answer of `getchaintxstats`.
    struct ChainTxStats {
        /// the timestamp for the final block in the window, expressed in UNIX epoch time
        time: Time<u32>,
        /// the total number of transactions in the chain up to that point, if known
        txcount: Option<u64>,
        /// the hash of the final block in the window
        window_final_block_hash: BlockHash,
        /// the height of the final block in the window
        window_final_block_height: u32,
        /// size of the window in number of blocks
        window_block_count: u32,
        /// the elapsed time in the window in seconds (only present if "window_block_count" is > 0)
        window_interval: Option<i64>,
        /// the number of transactions in the window (only present if "window_block_count" is > 0 and the number is
        /// known)
        window_tx_count: Option<u64>,
        /// the average rate of transactions per second in the window (only present if "window_interval" is > 0 and
        /// "window_tx_count" is present)
        txrate: Option<Double>,
    }
}

/// One month in seconds.
const MONTH_SECONDS: i64 = 30 * 24 * 60 * 60;

fn getchaintxstats(call: &Call<'_>) -> Result<ChainTxStats, RpcError> {
    let engine = call.context.engine()?;
    let last = match call.given(1) {
        None => engine.settled_info(),
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
    let total = engine.chain_transactions(last.node.height);
    let window = match total {
        Some(total) if count > 0 => engine.chain_transactions(past_height).map(|before| total.saturating_sub(before)),
        _ => None,
    };
    #[allow(clippy::cast_precision_loss, reason = "a rate; counts and times are far below 2^53")]
    let rate = window.filter(|_| interval > 0).map(|window| Double(window as f64 / interval as f64));
    Ok(ChainTxStats {
        time: Time(last.node.header.time),
        txcount: total,
        window_final_block_hash: last.node.hash,
        window_final_block_height: last.node.height.0,
        window_block_count: count,
        window_interval: (count > 0).then_some(interval),
        window_tx_count: window,
        txrate: rate,
    })
}

/// The block that `getblockstats` is called for.
pub(crate) fn stats_block(call: &Call<'_>) -> Result<HeaderInfo, RpcError> {
    by_hash_or_height(call, 0)
}
