//! `getblockfilter`, `scanblocks` and `getdescriptoractivity`: block filters, and what blocks have of descriptors
//! (rpc/blockchain.cpp).
//!
//! Input: a block, or descriptors and a range of blocks. Output: the block's filter; the blocks whose filters match; or
//! the outputs and inputs of the descriptors' scripts. Only one scan runs at a time in a node; other calls may query
//! its progress and abort it. Cost: a scan reads the filter of each block, a search for activity each block as a whole.

use super::block::{block_checked, spent_checked};
use super::descriptor::{UNDERSTOOD, outputs_of};
use crate::error::{RpcError, code};
use crate::json::{Amount, Json};
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::output::{Hex, OwnedScript};
use crate::result::{cases, result};
use lydian_engine::{Engine, HeaderInfo};
use lydian_index::{FILTERS_NAME, FilterReader, match_any};
use lydian_primitives::{BlockHash, Height, OutPoint, Tx, Txid};
use std::collections::{BTreeMap, HashSet};

const SCAN_OBJECTS: Arg = Arg {
    oneline: "[scanobjects,...]",
    ..Arg::new("scanobjects", Kind::Array, "the descriptors to search for").of(&[
        Arg::new("descriptor", Kind::Text, "a descriptor").omitted(),
        Arg::new("", Kind::Object, "a descriptor with its range").omitted().of(&[
            Arg::new("desc", Kind::Text, "the descriptor"),
            Arg::new("range", Kind::Range, "the end, or [begin,end], of the range to derive").default("1000"),
        ]),
    ])
};

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getblockfilter",
        category: Category::Blockchain,
        help: "Returns the filter of a block (BIP-0157). Needs -blockfilterindex.",
        args: &[
            Arg::new("blockhash", Kind::Hex, "the block"),
            Arg::new("filtertype", Kind::Text, "the type of the filter").default("\"basic\""),
        ],
        examples: &["\"00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09\" \"basic\""],
        remark: "",
        call: &returns("", getblockfilter),
    },
    Method {
        name: "scanblocks",
        category: Category::Blockchain,
        help: "Returns the blocks that may have outputs or inputs of descriptors. Needs -blockfilterindex.",
        args: &[
            Arg::new("action", Kind::Text, "\"start\"; or \"abort\" or \"status\" for a running scan"),
            SCAN_OBJECTS.omitted(),
            Arg::new("start_height", Kind::Number, "the first height").default("0"),
            Arg::new("stop_height", Kind::Number, "the last height").hint("chain tip"),
            Arg::new("filtertype", Kind::Text, "the type of the filter").default("\"basic\""),
            Arg {
                oneline: "options",
                ..Arg::new("options", Kind::Options, "").omitted().of(&[Arg::new(
                    "filter_false_positives",
                    Kind::Bool,
                    "whether each block that matches is read, so that no other is returned (fails for pruned blocks)",
                )
                .default("false")])
            },
        ],
        examples: &["start '[\"addr(bcrt1q4u4nsgk6ug0sqz7r3rj9tykjxrsl0yy4d0wwte)\"]' 300000", "status"],
        remark: UNDERSTOOD,
        call: &returns("", scanblocks),
    },
    Method {
        name: "getdescriptoractivity",
        category: Category::Blockchain,
        help: "Returns the outputs and inputs of descriptors in some blocks, and in the mempool.",
        args: &[
            Arg::new("blockhashes", Kind::Array, "blocks of the active chain, in any order").of(&[Arg::new(
                "blockhash",
                Kind::Hex,
                "a block",
            )
            .omitted()]),
            SCAN_OBJECTS,
            Arg::new("include_mempool", Kind::Bool, "whether to search the mempool").default("true"),
        ],
        examples: &[
            "'[\"000000000000000000001347062c12fded7c528943c8ce133987e2e2f5a840ee\"]' '[\"addr(bc1qzl6nsgqzu89a66l50cvwapnkw5shh23zarqkw9)\"]'",
        ],
        remark: UNDERSTOOD,
        call: &returns("", getdescriptoractivity),
    },
];

result! {
    struct BlockFilter {
        /// the filter
        filter: Hex<Vec<u8>>,
        /// the filter header
        header: Hex<Vec<u8>>,
    }
}

fn getblockfilter(call: &Call<'_>) -> Result<BlockFilter, RpcError> {
    let hash = call.hash(0, "blockhash")?;
    let index = index_of(call, 1)?;
    let engine = call.context.engine()?;
    let info = engine.header_info(&hash).ok_or_else(RpcError::block_not_found)?;
    engine.wait_for_follower(FILTERS_NAME, engine.tip().height);
    match index.filter_of(&engine, &hash).map_err(|error| RpcError::misc(error.to_string()))? {
        Some((filter, entry)) => {
            // Shown as other hashes are.
            let header = entry.header.into_iter().rev().collect();
            Ok(BlockFilter { filter: Hex(filter), header: Hex(header) })
        }
        None if !info.node.is_verified => {
            let text = "Filter not found. Block was not connected to active chain.";
            Err(RpcError::new(code::INVALID_ADDRESS_OR_KEY, text))
        }
        None => {
            check_index(&engine)?;
            Err(RpcError::misc("Filter not found. Block filters are still in the process of being indexed."))
        }
    }
}

/// Fails if the index gets no more blocks.
fn check_index(engine: &Engine) -> Result<(), RpcError> {
    let failure = engine.follower(FILTERS_NAME).and_then(|follower| follower.failure(FILTERS_NAME));
    failure.map_or(Ok(()), |failure| Err(RpcError::misc(failure)))
}

/// The index of the filter type that an argument names.
fn index_of<'a>(call: &Call<'a>, argument: usize) -> Result<&'a FilterReader, RpcError> {
    let name = match call.given(argument) {
        Some(name) => name.as_text()?,
        None => "basic",
    };
    if name != "basic" {
        return Err(RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Unknown filtertype"));
    }
    let indexes = call.context.indexes();
    indexes.filters.as_ref().ok_or_else(|| {
        let reason = indexes.unopened(FILTERS_NAME);
        RpcError::misc(reason.unwrap_or_else(|| "Index is not enabled for filtertype basic".to_owned()))
    })
}

cases! {
    /// The answer of `scanblocks`.
    enum ScanBlocksResult {
        #[when("when action=='start'; only returns after scan completes")]
        Scan(BlocksFound),
        /// true if a scan will be aborted
        #[when("when action=='abort'")]
        Abort(bool),
        #[when("when action=='status' and a scan is currently in progress")]
        Status(BlocksStatus),
        #[when("when action=='status' and no scan is in progress - possibly already completed")]
        NoScan(()),
    }
}

result! {
    struct BlocksStatus {
        /// approximate percent complete
        progress: u8,
        /// height of the block currently being scanned
        current_height: u32,
    }
}

result! {
    struct BlocksFound {
        /// the height at which the scan began
        from_height: u32,
        /// the height at which the scan ended
        to_height: u32,
        /// the blocks whose filters match
        #[each("a block hash")]
        relevant_blocks: Vec<BlockHash>,
        /// false if the scan was aborted
        completed: bool,
    }
}

fn scanblocks(call: &Call<'_>) -> Result<ScanBlocksResult, RpcError> {
    let state = &call.context.block_scan;
    match call.text(0)? {
        "start" => {}
        "status" => {
            let status = state.progress().map(|(progress, current_height)| BlocksStatus { progress, current_height });
            return Ok(status.map_or(ScanBlocksResult::NoScan(()), ScanBlocksResult::Status));
        }
        "abort" => return Ok(ScanBlocksResult::Abort(state.abort())),
        other => return Err(RpcError::parameter(format!("Invalid action '{other}'"))),
    }
    let Some(running) = state.begin() else {
        return Err(RpcError::parameter("Scan already in progress, use action \"abort\" or \"status\""));
    };
    let index = index_of(call, 4)?;
    let option = call.given(5).and_then(|options| options.get("filter_false_positives"));
    let is_checked = option.map(Json::as_bool).transpose()?.unwrap_or(false);
    let engine = call.context.engine()?;
    let (from, to) = heights_of(call, &engine)?;
    let scripts = scripts_of(call, 1)?;
    let mut found = BlocksFound { from_height: from, to_height: from, relevant_blocks: Vec::new(), completed: true };
    let mut next = from;
    while next <= to {
        if running.must_end() || call.context.is_stopping() {
            found.completed = false;
            break;
        }
        let filters = index.filters(Height(next), to - next + 1).map_err(|error| RpcError::misc(error.to_string()))?;
        if filters.is_empty() {
            check_index(&engine)?;
            // The index is behind, or the chain became shorter.
            found.to_height = to;
            break;
        }
        for (block, filter) in filters {
            let scripts = scripts.iter().map(Vec::as_slice);
            let is_match = match_any(&filter, &block, scripts)
                .map_err(|error| RpcError::misc(format!("the filter of block {block}: {error}")))?;
            if is_match && (!is_checked || has_activity(call, &engine, &block)?) {
                found.relevant_blocks.push(block);
            }
            found.to_height = next;
            next += 1;
        }
        let percent = match to - from {
            0 => 100,
            all => u64::from(found.to_height - from) * 100 / u64::from(all),
        };
        running.set_progress(u8::try_from(percent).unwrap_or(100), found.to_height);
    }
    Ok(ScanBlocksResult::Scan(found))
}

/// The first and the last height of a scan.
fn heights_of(call: &Call<'_>, engine: &Engine) -> Result<(u32, u32), RpcError> {
    let tip = engine.settled_tip().height.0;
    let height = |index: usize, default: u32| match call.given(index) {
        None => Ok(Some(default)),
        Some(value) => {
            let height: i32 = value.as_integer()?;
            Ok::<_, RpcError>(u32::try_from(height).ok().filter(|height| *height <= tip))
        }
    };
    let from = height(2, 0)?.ok_or_else(|| RpcError::misc("Invalid start_height"))?;
    let to = height(3, tip)?.filter(|to| *to >= from).ok_or_else(|| RpcError::misc("Invalid stop_height"))?;
    Ok((from, to))
}

/// The scripts of the descriptors of an argument.
fn scripts_of(call: &Call<'_>, argument: usize) -> Result<HashSet<Vec<u8>>, RpcError> {
    let chain = call.context.settings.params.chain;
    let mut scripts = HashSet::new();
    for object in call.arg(argument).as_array()? {
        scripts.extend(outputs_of(object, chain)?.into_iter().map(|output| output.script));
    }
    Ok(scripts)
}

/// Whether a block has an output of one of the scripts or spends one.
fn has_activity(call: &Call<'_>, engine: &Engine, block: &BlockHash) -> Result<bool, RpcError> {
    let scripts = scripts_of(call, 1)?;
    let info = engine.header_info(block).ok_or_else(RpcError::block_not_found)?;
    let block = block_checked(engine, &info)?;
    let has_output = block.txs().flat_map(|tx| tx.outputs()).any(|output| scripts.contains(output.script_pubkey));
    Ok(has_output || spent_checked(engine, &info, &block)?.iter().any(|coin| scripts.contains(&*coin.script_pubkey)))
}

cases! {
    /// An input or an output of a descriptor.
    enum ActivityEvent {
        #[when("for an input")]
        Spend(SpendEvent),
        #[when("for an output")]
        Receive(ReceiveEvent),
    }
}

result! {
    struct SpendEvent {
        /// always 'spend'
        #[name("type")]
        kind: &'static str,
        /// the amount in BTC of the output that is spent
        amount: Amount,
        /// the block of the transaction (omitted if unconfirmed)
        blockhash: Option<BlockHash>,
        /// the height of that block (omitted if unconfirmed)
        height: Option<u32>,
        /// the txid of the spending transaction
        spend_txid: Txid,
        /// the index of the input
        spend_vin: u32,
        /// the txid of the output that is spent
        prevout_txid: Txid,
        /// its index
        prevout_vout: u32,
        prevout_spk: OwnedScript,
    }
}

result! {
    struct ReceiveEvent {
        /// always 'receive'
        #[name("type")]
        kind: &'static str,
        /// the amount in BTC of the output
        amount: Amount,
        /// the block of the transaction (omitted if unconfirmed)
        blockhash: Option<BlockHash>,
        /// the height of that block (omitted if unconfirmed)
        height: Option<u32>,
        /// the txid of the transaction
        txid: Txid,
        /// the index of the output
        vout: u32,
        output_spk: OwnedScript,
    }
}

result! {
    struct DescriptorActivity {
        /// inputs and outputs, in the order of the blocks
        activity: Vec<ActivityEvent>,
    }
}

/// Collects events of scripts.
struct Activity<'a> {
    call: &'a Call<'a>,
    scripts: HashSet<Vec<u8>>,
    events: Vec<ActivityEvent>,
}

impl Activity<'_> {
    fn spend(
        &mut self,
        tx: Tx<'_>,
        vin: u32,
        prevout: OutPoint,
        script: &[u8],
        value: i64,
        block: Option<&HeaderInfo>,
    ) {
        if self.scripts.contains(script) {
            self.events.push(ActivityEvent::Spend(SpendEvent {
                kind: "spend",
                amount: Amount(value),
                blockhash: block.map(|info| info.node.hash),
                height: block.map(|info| info.node.height.0),
                spend_txid: tx.txid(),
                spend_vin: vin,
                prevout_txid: prevout.txid,
                prevout_vout: prevout.vout,
                prevout_spk: OwnedScript::new(script, self.call.context.settings.params.chain),
            }));
        }
    }

    fn receive(&mut self, tx: Tx<'_>, block: Option<&HeaderInfo>) {
        for (vout, output) in (0..).zip(tx.outputs()) {
            if self.scripts.contains(output.script_pubkey) {
                self.events.push(ActivityEvent::Receive(ReceiveEvent {
                    kind: "receive",
                    amount: Amount(output.value.0),
                    blockhash: block.map(|info| info.node.hash),
                    height: block.map(|info| info.node.height.0),
                    txid: tx.txid(),
                    vout,
                    output_spk: OwnedScript::new(output.script_pubkey, self.call.context.settings.params.chain),
                }));
            }
        }
    }

    fn block(&mut self, engine: &Engine, info: &HeaderInfo) -> Result<(), RpcError> {
        let block = block_checked(engine, info)?;
        let spent = spent_checked(engine, info, &block)?;
        let mut spent = spent.iter();
        for tx in block.txs() {
            if !tx.is_coinbase() {
                for ((vin, input), coin) in (0..).zip(tx.inputs()).zip(&mut spent) {
                    self.spend(tx, vin, input.prevout, &coin.script_pubkey, coin.value.0, Some(info));
                }
            }
            self.receive(tx, Some(info));
        }
        Ok(())
    }

    /// The transactions of the mempool, in the order of mining; Core's order is that of a hash table.
    fn mempool(&mut self, engine: &Engine) -> Result<(), RpcError> {
        let snapshot = self.call.context.mempool()?.snapshot();
        for member in snapshot.in_mining_order() {
            let entry = member.entry();
            let tx = entry.tx().view();
            let prevouts: Vec<OutPoint> = tx.inputs().map(|input| input.prevout).collect();
            let (_, coins) = engine.coins_now(&prevouts)?;
            for ((vin, prevout), coin) in (0..).zip(prevouts).zip(coins) {
                if let Some(coin) = coin {
                    self.spend(tx, vin, prevout, &coin.script_pubkey, coin.value.0, None);
                } else if let Some(parent) = snapshot.get(&prevout.txid)
                    && let Some(output) = parent.entry().tx().view().outputs().nth(prevout.vout as usize)
                {
                    self.spend(tx, vin, prevout, output.script_pubkey, output.value.0, None);
                }
            }
            self.receive(tx, None);
        }
        Ok(())
    }
}

fn getdescriptoractivity(call: &Call<'_>) -> Result<DescriptorActivity, RpcError> {
    let engine = call.context.engine()?;
    let mut blocks = BTreeMap::new();
    for value in call.arg(0).as_array()? {
        let hash = BlockHash(parse_hash(value, "blockhash")?);
        let info = engine.header_info(&hash).ok_or_else(RpcError::block_not_found)?;
        if !info.is_active {
            return Err(RpcError::parameter("Block is not in main chain"));
        }
        blocks.insert(info.node.height, info);
    }
    let mut activity = Activity { call, scripts: scripts_of(call, 1)?, events: Vec::new() };
    blocks.values().try_for_each(|info| activity.block(&engine, info))?;
    if call.bool_or(2, true)? {
        activity.mempool(&engine)?;
    }
    Ok(DescriptorActivity { activity: activity.events })
}
