//! Methods about the chain as a whole: heights, hashes, tips, active rules, progress of validation.

use crate::context::{Context, ProgressOf, PruneMode};
use crate::error::{RpcError, code};
use crate::json::{Double, Json};
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::output::{HeaderAnswer, Hex, target};
use crate::result::{Map, Time, cases, result};
use crate::versionbits::{Bip9, testdummy};
use lydian_consensus::deployment::script_flags;
use lydian_consensus::{Deployment, U256};
use lydian_engine::{ChainTip, Engine, HeaderInfo, Standing};
use lydian_primitives::{BlockHash, Height, difficulty};

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getbestblockhash",
        category: Category::Blockchain,
        help: "Returns the hash of the tip of the validated chain.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("the hash of the tip", getbestblockhash),
    },
    Method {
        name: "getblockchaininfo",
        category: Category::Blockchain,
        help: "Returns the state of the chain and the progress of its validation.",
        args: &[],
        examples: &[""],
        remark: "A pre-release build of Core adds a warning about itself; Lydian does not.",
        call: &returns("", getblockchaininfo),
    },
    Method {
        name: "getblockcount",
        category: Category::Blockchain,
        help: "Returns the height of the tip of the validated chain. The genesis block has height 0.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("the height of the tip", getblockcount),
    },
    Method {
        name: "getblockhash",
        category: Category::Blockchain,
        help: "Returns the hash of the block at a height of the validated chain.",
        args: &[Arg::new("height", Kind::Number, "the height")],
        examples: &["1000"],
        remark: "",
        call: &returns("the hash of the block", getblockhash),
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
        examples: &["\"00000000c937983704a73af28acdec37b049d214adbda81d7e2a3dd146f6ed09\""],
        remark: "`nTx` is 0 for a pruned block; Core keeps the number.",
        call: &returns("", getblockheader),
    },
    Method {
        name: "getchainstates",
        category: Category::Blockchain,
        help: "Returns the chainstates of the node. There is always exactly one.",
        args: &[],
        examples: &[""],
        remark: "All of `-dbcache` is reported as `coins_tip_cache_bytes`: the coin store has no cache of its own.",
        call: &returns("", getchainstates),
    },
    Method {
        name: "getchaintips",
        category: Category::Blockchain,
        help: "Returns the tips of all known branches of headers.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("the tips, highest first", getchaintips),
    },
    Method {
        name: "getdeploymentinfo",
        category: Category::Blockchain,
        help: "Returns which consensus changes are active at a block. Changes that are active from genesis on are not listed.",
        args: &[Arg::new("blockhash", Kind::Hex, "the block hash").default("\"hash of current chain tip\"")],
        examples: &[""],
        remark: "",
        call: &returns("", getdeploymentinfo),
    },
    Method {
        name: "getdifficulty",
        category: Category::Blockchain,
        help: "Returns the difficulty of the tip, relative to the easiest target of mainnet (on every chain).",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("the proof-of-work difficulty as a multiple of the minimum difficulty", getdifficulty),
    },
    Method {
        name: "getindexinfo",
        category: Category::Util,
        help: "Returns the progress of each index.",
        args: &[Arg::new("index_name", Kind::Text, "return only this index").omitted()],
        examples: &["", "coinstatsindex"],
        remark: "",
        call: &returns("", getindexinfo).each_key("name", "the state of the index"),
    },
    Method {
        name: "syncwithvalidationinterfacequeue",
        category: Category::Hidden,
        help: "Waits until all notifications about the blocks validated so far have been delivered.",
        args: &[],
        examples: &[""],
        remark: "Lydian has no such queue: notifications about a block have been delivered when the call that added the block returns.",
        call: &returns("", syncwithvalidationinterfacequeue),
    },
];

fn getblockcount(call: &Call<'_>) -> Result<u32, RpcError> {
    Ok(call.context.engine()?.settled_tip().height.0)
}

fn getbestblockhash(call: &Call<'_>) -> Result<BlockHash, RpcError> {
    Ok(call.context.engine()?.settled_tip().hash)
}

fn getblockhash(call: &Call<'_>) -> Result<BlockHash, RpcError> {
    let height: i32 = call.arg(0).as_integer()?;
    let engine = call.context.engine()?;
    let hash = u32::try_from(height).ok().and_then(|height| engine.hash_at(Height(height)));
    hash.ok_or_else(|| RpcError::parameter("Block height out of range"))
}

fn getdifficulty(call: &Call<'_>) -> Result<Double, RpcError> {
    let tip = call.context.engine()?.settled_info();
    Ok(Double(difficulty(tip.node.header.bits)))
}

cases! {
    /// The answer of `getblockheader`.
    enum HeaderResult {
        #[when("for verbose = true")]
        Fields(Box<HeaderAnswer>),
        /// the serialized header
        #[when("for verbose = false")]
        Raw(Hex<[u8; 80]>),
    }
}

fn getblockheader(call: &Call<'_>) -> Result<HeaderResult, RpcError> {
    let hash = call.hash(0, "hash")?;
    let is_verbose = call.bool_or(1, true)?;
    let engine = call.context.engine()?;
    let info = engine.header_info(&hash).ok_or_else(RpcError::block_not_found)?;
    if !is_verbose {
        return Ok(HeaderResult::Raw(Hex(info.node.header.to_bytes())));
    }
    let tx_count = engine.transaction_count(info.id)?.unwrap_or(0);
    let answer = HeaderAnswer::new(&info, tx_count, engine.params());
    Ok(HeaderResult::Fields(Box::new(answer)))
}

result! {
    /// The answer of `getblockchaininfo`.
    struct ChainInfo {
        /// current network name (main, test, testnet4, signet, regtest)
        chain: &'static str,
        /// the height of the most-work fully-validated chain; the genesis block has height 0
        blocks: u32,
        /// the height of the most-work chain of validated headers
        headers: u32,
        /// the hash of the tip
        bestblockhash: BlockHash,
        /// nBits: compact representation of the block difficulty target
        bits: Hex<[u8; 4]>,
        /// the difficulty target
        target: U256,
        /// the current difficulty
        difficulty: Double,
        /// the block time expressed in UNIX epoch time
        time: Time<u32>,
        /// the median block time expressed in UNIX epoch time
        mediantime: Time<i64>,
        /// estimate of verification progress (0 to 1)
        verificationprogress: Double,
        /// (debug information) estimate of whether this node is in Initial Block Download mode
        initialblockdownload: bool,
        /// total amount of work in active chain, in hexadecimal
        chainwork: U256,
        /// the size of the block and undo files on disk
        size_on_disk: u64,
        /// if the blocks are subject to pruning
        pruned: bool,
        /// the first block unpruned, all previous blocks were pruned (only present if pruning is enabled)
        pruneheight: Option<u32>,
        /// whether automatic pruning is enabled (only present if pruning is enabled)
        automatic_pruning: Option<bool>,
        /// the target size used by pruning (only present if automatic pruning is enabled)
        prune_target_size: Option<u64>,
        /// the block challenge (aka. block script), in hexadecimal (only present if the current network is a signet)
        signet_challenge: Option<Hex<Vec<u8>>>,
        warnings: Warnings,
    }
}

fn getblockchaininfo(call: &Call<'_>) -> Result<ChainInfo, RpcError> {
    let (context, engine) = (call.context, call.context.engine()?);
    let tip = engine.settled_info();
    let header = &tip.node.header;
    let prune = context.settings.prune;
    let is_pruning = prune != PruneMode::Never;
    Ok(ChainInfo {
        chain: engine.params().chain.name(),
        blocks: tip.node.height.0,
        headers: engine.best_header_height().0,
        bestblockhash: tip.node.hash,
        bits: Hex(header.bits.to_be_bytes()),
        target: target(header.bits, engine.params()),
        difficulty: Double(difficulty(header.bits)),
        time: Time(header.time),
        mediantime: Time(tip.median_time),
        verificationprogress: Double(progress(context, &engine, &tip)),
        initialblockdownload: context.is_initial_block_download(),
        chainwork: tip.node.chain_work,
        size_on_disk: engine.size_on_disk()?,
        pruned: is_pruning,
        pruneheight: is_pruning.then(|| prune_height(&engine).map_or(0, |height| height + 1)),
        automatic_pruning: is_pruning.then_some(matches!(prune, PruneMode::Target { .. })),
        prune_target_size: match prune {
            PruneMode::Target { bytes } => Some(bytes),
            _ => None,
        },
        signet_challenge: engine.params().signet_challenge.clone().map(Hex),
        warnings: Warnings::of(context),
    })
}

cases! {
    /// Warnings about the node: Core's `GetWarningsForRpc`.
    pub(crate) enum Warnings {
        /// any network and blockchain warnings
        #[each("warning")]
        All(Vec<String>),
        /// with `-deprecatedrpc=warnings`: the latest warning
        Last(String),
    }
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
pub(crate) fn progress(context: &Context, engine: &Engine, tip: &HeaderInfo) -> f64 {
    let of = ProgressOf {
        height: tip.node.height.0,
        time: tip.node.header.time,
        transactions: engine.chain_transactions(tip.node.height).unwrap_or(0),
        headers_height: engine.best_header_height().0,
    };
    context.host.verification_progress(&of, context.now())
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

result! {
    /// The answer of `getchainstates`.
    struct ChainStates {
        /// the height of the most-work chain of validated headers
        headers: u32,
        /// list of the chainstates ordered by work, with the most-work (active) chainstate last
        chainstates: [ChainState; 1],
    }
}

result! {
    struct ChainState {
        /// number of blocks in this chainstate
        blocks: u32,
        /// blockhash of the tip
        bestblockhash: BlockHash,
        /// nBits: compact representation of the block difficulty target
        bits: Hex<[u8; 4]>,
        /// the difficulty target
        target: U256,
        /// difficulty of the tip
        difficulty: Double,
        /// progress towards the network tip
        verificationprogress: Double,
        /// size of the coinsdb cache
        coins_db_cache_bytes: u64,
        /// size of the coinstip cache
        coins_tip_cache_bytes: u64,
        /// whether the chainstate is fully validated
        validated: bool,
    }
}

fn getchainstates(call: &Call<'_>) -> Result<ChainStates, RpcError> {
    let engine = call.context.engine()?;
    let tip = engine.settled_info();
    let bits = tip.node.header.bits;
    let state = ChainState {
        blocks: tip.node.height.0,
        bestblockhash: tip.node.hash,
        bits: Hex(bits.to_be_bytes()),
        target: target(bits, engine.params()),
        difficulty: Double(difficulty(bits)),
        verificationprogress: Double(progress(call.context, &engine, &tip)),
        coins_db_cache_bytes: 0,
        coins_tip_cache_bytes: call.context.settings.cache_bytes,
        validated: true,
    };
    Ok(ChainStates { headers: engine.best_header_height().0, chainstates: [state] })
}

result! {
    /// A tip in the answer of `getchaintips`.
    struct TipAnswer {
        /// height of the chain tip
        height: u32,
        /// block hash of the tip
        hash: BlockHash,
        /// zero for main chain, otherwise length of branch connecting the tip to the main chain
        branchlen: u32,
        /// status of the chain: "active" for the main chain, "valid-fork" (validated before), "valid-headers" (all
        /// blocks stored, never fully validated), "headers-only" (not all blocks stored) or "invalid"
        status: &'static str,
    }
}

fn getchaintips(call: &Call<'_>) -> Result<Vec<TipAnswer>, RpcError> {
    let shown = |tip: ChainTip| TipAnswer {
        height: tip.height.0,
        hash: tip.hash,
        branchlen: tip.branch_length,
        status: tip.status.name(),
    };
    Ok(call.context.engine()?.chain_tips().into_iter().map(shown).collect())
}

result! {
    /// The answer of `getdeploymentinfo`.
    struct DeploymentInfo {
        /// requested block hash (or tip)
        hash: BlockHash,
        /// requested block height (or tip)
        height: u32,
        /// script verify flags for the block
        #[each("a script verify flag")]
        script_flags: Vec<&'static str>,
        #[each(key "xxxx" "name of the deployment")]
        deployments: Map<&'static str, DeploymentState>,
    }
}

cases! {
    enum DeploymentState {
        /// name of a deployment that is part of the rules at a fixed height
        Buried(Buried),
        /// name of a deployment that blocks signal (BIP-0009)
        ByBip9(ByBip9),
    }
}

result! {
    struct Buried {
        /// "buried"
        #[name("type")]
        kind: &'static str,
        /// true if the rules are enforced for the mempool and the next block
        active: bool,
        /// height of the first block which the rules are or will be enforced
        height: u32,
    }
}

result! {
    struct ByBip9 {
        /// "bip9"
        #[name("type")]
        kind: &'static str,
        /// height of the first block which the rules are or will be enforced (only for "active" status)
        height: Option<u32>,
        /// true if the rules are enforced for the mempool and the next block
        active: bool,
        /// status of bip9 softforks
        bip9: Bip9,
    }
}

fn getdeploymentinfo(call: &Call<'_>) -> Result<DeploymentInfo, RpcError> {
    let engine = call.context.engine()?;
    let params = engine.params();
    let info = match call.given(0) {
        None => engine.settled_info(),
        Some(_) => engine.header_info(&call.hash(0, "blockhash")?).ok_or_else(RpcError::block_not_found)?,
    };
    let (hash, height) = (info.node.hash, info.node.height);
    let mut script_flags = script_flags(height, &hash, params).names();
    script_flags.sort_unstable();
    let buried = DEPLOYMENTS.into_iter().map(|(name, deployment)| {
        let active = params.is_active(deployment, Height(height.0.saturating_add(1)));
        let height = params.activation_height(deployment).0;
        (name, DeploymentState::Buried(Buried { kind: "buried", active, height }))
    });
    let mut deployments: Vec<_> = buried.collect();
    if let Some((bip9, active_since)) = engine.with_tree(|tree| testdummy(tree, info.id, &params.testdummy)) {
        let active = active_since.is_some_and(|since| since <= height.0.saturating_add(1));
        let state = ByBip9 { kind: "bip9", height: active_since, active, bip9 };
        deployments.push(("testdummy", DeploymentState::ByBip9(state)));
    }
    Ok(DeploymentInfo { hash, height: height.0, script_flags, deployments: Map(deployments) })
}

/// With Core's names, in the order of its `getdeploymentinfo`.
const DEPLOYMENTS: [(&str, Deployment); 5] = [
    ("bip34", Deployment::HeightInCoinbase),
    ("bip66", Deployment::Dersig),
    ("bip65", Deployment::Cltv),
    ("csv", Deployment::Csv),
    ("segwit", Deployment::Segwit),
];

result! {
    /// An index in the answer of `getindexinfo`.
    struct IndexState {
        /// whether the index is synced or not
        synced: bool,
        /// the block height to which the index is synced
        best_block_height: u32,
        /// (Lydian) why the index is stopped (only present if it is)
        error: Option<String>,
    }
}

fn getindexinfo(call: &Call<'_>) -> Result<Map<String, IndexState>, RpcError> {
    let wanted = call.given(0).map(Json::as_text).transpose()?;
    let engine = call.context.engine()?;
    let mut states = Vec::new();
    for follower in engine.followers().into_iter().filter(|follower| follower.has_files) {
        let state = || IndexState {
            synced: follower.standing == Standing::InStep,
            best_block_height: follower.tip.map_or(0, |tip| tip.height.0),
            error: follower.error.clone(),
        };
        match &call.context.indexes().shared {
            Some((name, indexes)) if *name == follower.name => {
                states.extend(indexes.iter().map(|name| ((*name).to_owned(), state())));
            }
            _ => states.push((follower.name.clone(), state())),
        }
    }
    for (name, reason) in &call.context.indexes().unopened {
        let state = IndexState { synced: false, best_block_height: 0, error: Some(reason.clone()) };
        states.push(((*name).to_owned(), state));
    }
    states.retain(|(name, _)| wanted.is_none_or(|wanted| wanted.is_empty() || wanted == name));
    Ok(Map(states))
}

fn syncwithvalidationinterfacequeue(_: &Call<'_>) -> Result<(), RpcError> {
    Ok(())
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
