//! Methods about the chain as a whole: heights, hashes, tips, active rules, progress of validation.

use crate::context::{Context, ProgressOf, PruneMode};
use crate::error::{RpcError, code};
use crate::json::{Double, write_text};
use crate::method::{Arg, Call, Category, Kind, Method, answer};
use crate::output::{HeaderAnswer, difficulty, shown_work, target};
use crate::versionbits::{Bip9, testdummy};
use lydian_consensus::Deployment;
use lydian_consensus::deployment::script_flags;
use lydian_engine::{ChainTip, Engine, HeaderInfo};
use lydian_primitives::{Height, push_hex, to_hex};
use serde::Serialize;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getbestblockhash",
        category: Category::Blockchain,
        help: "Returns the hash of the tip of the validated chain.",
        args: &[],
        result: "the block hash",
        examples: &[""],
        remark: "",
        call: getbestblockhash,
    },
    Method {
        name: "getblockchaininfo",
        category: Category::Blockchain,
        help: "Returns the state of the chain and the progress of its validation.",
        args: &[],
        result: "{chain, blocks, headers, bestblockhash, bits, target, difficulty, time, mediantime, verificationprogress, initialblockdownload, \
                 chainwork, size_on_disk, pruned, pruneheight, automatic_pruning, prune_target_size, signet_challenge, warnings}",
        examples: &[""],
        remark: "A pre-release build of Core adds a warning about itself; Lydian does not.",
        call: getblockchaininfo,
    },
    Method {
        name: "getblockcount",
        category: Category::Blockchain,
        help: "Returns the height of the tip of the validated chain. The genesis block has height 0.",
        args: &[],
        result: "the height",
        examples: &[""],
        remark: "",
        call: getblockcount,
    },
    Method {
        name: "getblockhash",
        category: Category::Blockchain,
        help: "Returns the hash of the block at a height of the validated chain.",
        args: &[Arg::new("height", Kind::Number, "the height")],
        result: "the block hash",
        examples: &["1000"],
        remark: "",
        call: getblockhash,
    },
    Method {
        name: "getblockheader",
        category: Category::Blockchain,
        help: "Returns a block header and its position in the chain.",
        args: &[
            Arg::new("blockhash", Kind::Hex, "the block hash"),
            Arg::new("verbose", Kind::Bool, "true for an object, false for the 80 bytes of the header in hex")
                .default("true"),
        ],
        result: "{hash, confirmations, height, version, versionHex, merkleroot, time, mediantime, nonce, bits, target, difficulty, chainwork, nTx, \
                 previousblockhash, nextblockhash}; confirmations is -1 for a block outside the validated chain",
        examples: &["\"00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09\""],
        remark: "`nTx` is 0 for a pruned block; Core keeps the number.",
        call: getblockheader,
    },
    Method {
        name: "getchainstates",
        category: Category::Blockchain,
        help: "Returns the chainstates of the node. There is always exactly one.",
        args: &[],
        result: "{headers, chainstates: [{blocks, bestblockhash, bits, target, difficulty, verificationprogress, coins_db_cache_bytes, \
                 coins_tip_cache_bytes, validated}]}",
        examples: &[""],
        remark: "All of `-dbcache` is reported as `coins_tip_cache_bytes`: the coin store has no cache of its own.",
        call: getchainstates,
    },
    Method {
        name: "getchaintips",
        category: Category::Blockchain,
        help: "Returns the tips of all known branches of headers.",
        args: &[],
        result: "[{height, hash, branchlen, status}, ...], highest first; status is active, valid-fork (validated before), valid-headers (all blocks \
                 stored, never validated), headers-only or invalid",
        examples: &[""],
        remark: "",
        call: getchaintips,
    },
    Method {
        name: "getdeploymentinfo",
        category: Category::Blockchain,
        help: "Returns which consensus changes are active at a block. Changes that are active from genesis on are not listed.",
        args: &[Arg::new("blockhash", Kind::Hex, "the block hash").default("\"hash of current chain tip\"")],
        result: "{hash, height, script_flags: [flag, ...], deployments: {name: {type, active, height} or {type, height, active, bip9}}}",
        examples: &[""],
        remark: "",
        call: getdeploymentinfo,
    },
    Method {
        name: "getdifficulty",
        category: Category::Blockchain,
        help: "Returns the difficulty of the tip, relative to the easiest target of mainnet (on every chain).",
        args: &[],
        result: "the difficulty",
        examples: &[""],
        remark: "",
        call: getdifficulty,
    },
    Method {
        name: "getindexinfo",
        category: Category::Util,
        help: "Returns the progress of each index.",
        args: &[Arg::new("index_name", Kind::Text, "return only this index").omitted()],
        result: "{name: {synced, best_block_height}}",
        examples: &["", "txindex"],
        remark: "Lydian has no index yet.",
        call: getindexinfo,
    },
    Method {
        name: "syncwithvalidationinterfacequeue",
        category: Category::Hidden,
        help: "Waits until all notifications about the blocks validated so far have been delivered.",
        args: &[],
        result: "null",
        examples: &[""],
        remark: "Lydian has no such queue: notifications about a block have been delivered when the call that added the block returns.",
        call: syncwithvalidationinterfacequeue,
    },
];

fn getblockcount(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    answer(out, &call.context.engine()?.tip().height.0)
}

fn getbestblockhash(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    answer(out, &call.context.engine()?.tip().hash.to_string())
}

fn getblockhash(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let height: i32 = call.arg(0).as_integer()?;
    let engine = call.context.engine()?;
    let hash = u32::try_from(height).ok().and_then(|height| engine.hash_at(Height(height)));
    let hash = hash.ok_or_else(|| RpcError::parameter("Block height out of range"))?;
    answer(out, &hash.to_string())
}

fn getdifficulty(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let tip = call.context.engine()?.tip_info();
    answer(out, &Double(difficulty(tip.node.header.bits)))
}

fn getblockheader(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let hash = call.hash(0, "hash")?;
    let is_verbose = call.bool_or(1, true)?;
    let engine = call.context.engine()?;
    let info = engine.header_info(&hash).ok_or_else(RpcError::block_not_found)?;
    if !is_verbose {
        out.push(b'"');
        push_hex(out, &info.node.header.to_bytes());
        out.push(b'"');
        return Ok(());
    }
    let tx_count = engine.transaction_count(info.id)?.unwrap_or(0);
    answer(out, &HeaderAnswer::new(&info, tx_count, engine.params()))
}

#[derive(Debug, Serialize)]
struct ChainInfo {
    chain: &'static str,
    blocks: u32,
    headers: u32,
    bestblockhash: String,
    bits: String,
    target: String,
    difficulty: Double,
    time: u32,
    mediantime: i64,
    verificationprogress: Double,
    initialblockdownload: bool,
    chainwork: String,
    size_on_disk: u64,
    pruned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pruneheight: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    automatic_pruning: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prune_target_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signet_challenge: Option<String>,
    warnings: Warnings,
}

fn getblockchaininfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let (context, engine) = (call.context, call.context.engine()?);
    let tip = engine.tip_info();
    let header = &tip.node.header;
    let prune = context.settings.prune;
    let is_pruning = prune != PruneMode::Never;
    answer(
        out,
        &ChainInfo {
            chain: engine.params().chain.name(),
            blocks: tip.node.height.0,
            headers: engine.best_header_height().0,
            bestblockhash: tip.node.hash.to_string(),
            bits: format!("{:08x}", header.bits),
            target: target(header.bits, engine.params()),
            difficulty: Double(difficulty(header.bits)),
            time: header.time,
            mediantime: tip.median_time,
            verificationprogress: Double(progress(call, &engine, &tip)?),
            initialblockdownload: context.is_initial_block_download(),
            chainwork: shown_work(tip.node.chain_work),
            size_on_disk: engine.size_on_disk()?,
            pruned: is_pruning,
            pruneheight: is_pruning.then(|| prune_height(&engine).map_or(0, |height| height + 1)),
            automatic_pruning: is_pruning.then_some(matches!(prune, PruneMode::Target { .. })),
            prune_target_size: match prune {
                PruneMode::Target { bytes } => Some(bytes),
                _ => None,
            },
            signet_challenge: engine.params().signet_challenge.as_deref().map(to_hex),
            warnings: Warnings::of(context),
        },
    )
}

/// Warnings about the node: Core's `GetWarningsForRpc`. A list, or the last one with `-deprecatedrpc=warnings`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Warnings {
    All(Vec<String>),
    Last(String),
}

impl Warnings {
    pub(crate) fn of(context: &Context) -> Warnings {
        let mut messages = context.settings.warnings.messages();
        match context.settings.is_deprecated_enabled("warnings") {
            true => Warnings::Last(messages.pop().unwrap_or_default()),
            false => Warnings::All(messages),
        }
    }
}

/// Core's `GuessVerificationProgress` of the tip.
fn progress(call: &Call<'_>, engine: &Engine, tip: &HeaderInfo) -> Result<f64, RpcError> {
    let of = ProgressOf {
        height: tip.node.height.0,
        time: tip.node.header.time,
        transactions: engine.chain_transactions(tip.node.height)?.unwrap_or(0),
        headers_height: engine.best_header_height().0,
    };
    Ok(call.context.host.verification_progress(&of, call.context.now()))
}

/// Height of the highest pruned block: Core's `GetPruneHeight`.
pub(crate) fn prune_height(engine: &Engine) -> Option<u32> {
    engine.with_tree(|tree| {
        let tip = tree.height(tree.tip()).0;
        let is_here = |height: &u32| {
            tree.active(Height(*height)).is_some_and(|id| tree.block(id).is_some() && tree.undo(id).is_some())
        };
        (1..=tip).rev().find(|height| !is_here(height))
    })
}

#[derive(Debug, Serialize)]
struct ChainStates {
    headers: u32,
    chainstates: [ChainState; 1],
}

#[derive(Debug, Serialize)]
struct ChainState {
    blocks: u32,
    bestblockhash: String,
    bits: String,
    target: String,
    difficulty: Double,
    verificationprogress: Double,
    coins_db_cache_bytes: u64,
    coins_tip_cache_bytes: u64,
    validated: bool,
}

fn getchainstates(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let engine = call.context.engine()?;
    let tip = engine.tip_info();
    let bits = tip.node.header.bits;
    let state = ChainState {
        blocks: tip.node.height.0,
        bestblockhash: tip.node.hash.to_string(),
        bits: format!("{bits:08x}"),
        target: target(bits, engine.params()),
        difficulty: Double(difficulty(bits)),
        verificationprogress: Double(progress(call, &engine, &tip)?),
        coins_db_cache_bytes: 0,
        coins_tip_cache_bytes: call.context.settings.cache_bytes,
        validated: true,
    };
    answer(out, &ChainStates { headers: engine.best_header_height().0, chainstates: [state] })
}

#[derive(Debug, Serialize)]
struct TipAnswer {
    height: u32,
    hash: String,
    branchlen: u32,
    status: &'static str,
}

fn getchaintips(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let shown = |tip: ChainTip| TipAnswer {
        height: tip.height.0,
        hash: tip.hash.to_string(),
        branchlen: tip.branch_length,
        status: tip.status.name(),
    };
    let tips: Vec<TipAnswer> = call.context.engine()?.chain_tips().into_iter().map(shown).collect();
    answer(out, &tips)
}

#[derive(Debug, Serialize)]
struct Buried {
    #[serde(rename = "type")]
    kind: &'static str,
    active: bool,
    height: u32,
}

#[derive(Debug, Serialize)]
struct ByBip9 {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    height: Option<u32>,
    active: bool,
    bip9: Bip9,
}

fn getdeploymentinfo(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let engine = call.context.engine()?;
    let params = engine.params();
    let info = match call.given(0) {
        None => engine.tip_info(),
        Some(_) => engine.header_info(&call.hash(0, "blockhash")?).ok_or_else(RpcError::block_not_found)?,
    };
    let (hash, height) = (info.node.hash, info.node.height);
    let mut flags = script_flags(height, &hash, params).names();
    flags.sort_unstable();
    out.extend_from_slice(b"{\"hash\":\"");
    out.extend_from_slice(hash.to_string().as_bytes());
    out.extend_from_slice(format!("\",\"height\":{height},\"script_flags\":").as_bytes());
    answer(out, &flags)?;
    out.extend_from_slice(b",\"deployments\":{");
    for (index, (name, deployment)) in DEPLOYMENTS.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_text(name, out);
        out.push(b':');
        let active = params.is_active(deployment, Height(height.0.saturating_add(1)));
        answer(out, &Buried { kind: "buried", active, height: params.activation_height(deployment).0 })?;
    }
    if let Some((bip9, active_since)) = engine.with_tree(|tree| testdummy(tree, info.id, &params.testdummy)) {
        let active = active_since.is_some_and(|since| since <= height.0.saturating_add(1));
        out.extend_from_slice(b",\"testdummy\":");
        answer(out, &ByBip9 { kind: "bip9", height: active_since, active, bip9 })?;
    }
    out.extend_from_slice(b"}}");
    Ok(())
}

/// With Core's names, in the order of its `getdeploymentinfo`.
const DEPLOYMENTS: [(&str, Deployment); 5] = [
    ("bip34", Deployment::HeightInCoinbase),
    ("bip66", Deployment::Dersig),
    ("bip65", Deployment::Cltv),
    ("csv", Deployment::Csv),
    ("segwit", Deployment::Segwit),
];

fn getindexinfo(_: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    out.extend_from_slice(b"{}");
    Ok(())
}

fn syncwithvalidationinterfacequeue(_: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    answer(out, &())
}

/// Returns a block by its height in the validated chain or by its hash: Core's `ParseHashOrHeight`.
pub(crate) fn by_hash_or_height(call: &Call<'_>, index: usize) -> Result<HeaderInfo, RpcError> {
    let engine = call.context.engine()?;
    let value = call.arg(index);
    if value.type_name() != "number" {
        let hash = call.hash(index, "hash_or_height")?;
        return engine.header_info(&hash).ok_or_else(RpcError::block_not_found);
    }
    let height: i32 = value.as_integer()?;
    let refuse = |message| Err(RpcError::new(code::INVALID_PARAMETER, message));
    let Ok(wanted) = u32::try_from(height) else { return refuse(format!("Target block height {height} is negative")) };
    match engine.header_info_at(Height(wanted)) {
        Some(info) => Ok(info),
        None => refuse(format!("Target block height {height} after current tip {}", engine.tip().height)),
    }
}
