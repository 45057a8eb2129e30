//! Methods that change the chain: submitting blocks and headers, invalidating blocks by hand, pruning, verification.

use crate::context::PruneMode;
use crate::error::{RpcError, code};
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::methods::blockchain::prune_height;
use crate::result::cases;
use lydian_consensus::{Chain, Deployment, Rejected};
use lydian_engine::{Engine, HeaderId, LastBlocksEnd};
use lydian_mempool::StepwiseDisconnect;
use lydian_primitives::{Block, Header, Height, ParseErrorKind, RawBlock, Reader, hex, write_compact_size};

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "invalidateblock",
        category: Category::Hidden,
        help: "Marks a block as invalid until reconsiderblock is called, also after a restart.",
        args: &[Arg::new("blockhash", Kind::Hex, "the block hash")],
        examples: &["\"blockhash\""],
        remark: "",
        call: &returns("", invalidateblock),
    },
    Method {
        name: "preciousblock",
        category: Category::Blockchain,
        help: "Prefers a block over others with the same work. A later call overrides an earlier one. The effect ends with a restart.",
        args: &[Arg::new("blockhash", Kind::Hex, "the block hash")],
        examples: &["\"blockhash\""],
        remark: "",
        call: &returns("", preciousblock),
    },
    Method {
        name: "pruneblockchain",
        category: Category::Blockchain,
        help: "Deletes block files up to a height or a time, as far as pruning allows. Requires -prune.",
        args: &[Arg::new(
            "height",
            Kind::Number,
            "the height; or a time in seconds since 1970, for blocks that are two hours older",
        )],
        examples: &["1000"],
        remark: "",
        call: &returns("height of the last block pruned", pruneblockchain),
    },
    Method {
        name: "reconsiderblock",
        category: Category::Hidden,
        help: "Removes the invalid mark from a block, its ancestors and its descendants, and selects the best chain again.",
        args: &[Arg::new("blockhash", Kind::Hex, "the block hash")],
        examples: &["\"blockhash\""],
        remark: "",
        call: &returns("", reconsiderblock),
    },
    Method {
        name: "submitblock",
        category: Category::Mining,
        help: "Submits a block (BIP-0022).",
        args: &[
            Arg::new("hexdata", Kind::Hex, "the block in hex"),
            Arg::new("dummy", Kind::Text, "has no effect").hint("ignored"),
        ],
        examples: &["\"mydata\""],
        remark: "",
        call: &returns("", submitblock),
    },
    Method {
        name: "submitheader",
        category: Category::Mining,
        help: "Submits a block header. If it is invalid, the error contains the reason.",
        args: &[Arg::new("hexdata", Kind::Hex, "the header in hex")],
        examples: &["\"aabbcc\""],
        remark: "",
        call: &returns("", submitheader),
    },
    Method {
        name: "verifychain",
        category: Category::Blockchain,
        help: "Verifies the stored blocks.",
        args: &[
            Arg::new(
                "checklevel",
                Kind::Number,
                "0 reads blocks, 1 checks each by itself, 2 reads undo data, 3 compares the coins, 4 reconnects the blocks",
            )
            .hint("3, range=0-4"),
            Arg::new("nblocks", Kind::Number, "the number of blocks, from the tip down").hint("6, 0=all"),
        ],
        examples: &[""],
        remark: "",
        call: &returns("verification finished successfully; if false, the log has the reason", verifychain),
    },
];

fn find(call: &Call<'_>) -> Result<HeaderId, RpcError> {
    let hash = call.hash(0, "blockhash")?;
    let info = call.context.engine()?.header_info(&hash).ok_or_else(RpcError::block_not_found)?;
    Ok(info.id)
}

fn invalidateblock(call: &Call<'_>) -> Result<(), RpcError> {
    let (id, engine) = (find(call)?, call.context.engine()?);
    {
        // The transactions of each block return before the next one leaves, as in Core.
        let observer = StepwiseDisconnect::new(call.context.mempool()?, call.context);
        engine.invalidate_block(id, &observer)?;
    }
    call.context.settle_mempool();
    Ok(())
}

fn reconsiderblock(call: &Call<'_>) -> Result<(), RpcError> {
    let id = find(call)?;
    call.context.engine()?.reconsider_block(id, call.context)?;
    call.context.settle_mempool();
    Ok(())
}

fn preciousblock(call: &Call<'_>) -> Result<(), RpcError> {
    let id = find(call)?;
    call.context.engine()?.precious_block(id, call.context)?;
    call.context.settle_mempool();
    Ok(())
}

cases! {
    /// The answer of `submitblock`.
    enum Submission {
        #[when("if the block was accepted")]
        Accepted(()),
        /// "duplicate", "inconclusive" or the reject reason, according to BIP22
        #[when("otherwise")]
        Otherwise(String),
    }
}

fn submitblock(call: &Call<'_>) -> Result<Submission, RpcError> {
    let undecodable = || RpcError::new(code::DESERIALIZATION_ERROR, "Block decode failed");
    let bytes = hex(call.text(0)?).map_err(|_| undecodable())?;
    let engine = call.context.engine()?;
    let block = parse_leniently(bytes).ok_or_else(undecodable)?;
    let block = add_witness_nonce(&engine, block).ok_or_else(undecodable)?;
    let submission = engine.accept_block(block, call.context.now(), call.context)?;
    call.context.settle_mempool();
    Ok(match submission {
        Ok(accepted) if accepted.is_active => Submission::Accepted(()),
        Ok(_) => Submission::Otherwise("inconclusive".to_owned()),
        Err(rejected) => Submission::Otherwise(rejected.reason()),
    })
}

/// Parses the block at the start of the bytes. Like Core, ignores what follows it.
pub(crate) fn parse_leniently(mut bytes: Vec<u8>) -> Option<Block> {
    match RawBlock::new(bytes.clone()).parse() {
        Err(error) => match error.kind {
            ParseErrorKind::TrailingBytes { count } => {
                bytes.truncate(bytes.len().saturating_sub(count));
                RawBlock::new(bytes).parse().ok()
            }
            _ => None,
        },
        Ok(block) => Some(block),
    }
}

/// Adds a witness of zeros to a coinbase that commits to witnesses but has none: Core's
/// `UpdateUncommittedBlockStructures`, for miners that send blocks without it.
fn add_witness_nonce(engine: &Engine, block: Block) -> Option<Block> {
    let parent = engine.header_info(&block.header().prev_block);
    let is_segwit = parent.is_some_and(|parent| {
        engine.params().is_active(Deployment::Segwit, Height(parent.node.height.0.saturating_add(1)))
    });
    if !is_segwit || block.witness_commitment().is_none() || block.tx(0).has_witness() {
        return Some(block);
    }
    let (tx, bytes) = (block.tx(0).bytes(), block.as_bytes());
    let mut out = Vec::with_capacity(bytes.len() + 36);
    out.extend_from_slice(&block.header().to_bytes());
    write_compact_size(&mut out, block.tx_count());
    let start = out.len();
    out.extend_from_slice(&tx[..4]);
    out.extend_from_slice(&[0, 1]);
    out.extend_from_slice(&tx[4..tx.len() - 4]);
    out.extend_from_slice(&[1, 32]);
    out.extend_from_slice(&[0; 32]);
    out.extend_from_slice(&tx[tx.len() - 4..]);
    out.extend_from_slice(&bytes[start + tx.len()..]);
    RawBlock::new(out).parse().ok()
}

fn submitheader(call: &Call<'_>) -> Result<(), RpcError> {
    let undecodable = || RpcError::new(code::DESERIALIZATION_ERROR, "Block header decode failed");
    let bytes = hex(call.text(0)?).map_err(|_| undecodable())?;
    let header = Header::read(&mut Reader::new(&bytes)).map_err(|_| undecodable())?;
    let engine = call.context.engine()?;
    if engine.header_info(&header.prev_block).is_none() {
        let message = format!("Must submit previous header ({}) first", header.prev_block);
        return Err(RpcError::new(code::VERIFY_ERROR, message));
    }
    match engine.accept_header(&header, call.context.now())? {
        Ok(()) => Ok(()),
        Err(rejected) => Err(RpcError::new(code::VERIFY_ERROR, header_reason(&rejected))),
    }
}

fn header_reason(rejected: &Rejected) -> String {
    rejected.reason()
}

fn verifychain(call: &Call<'_>) -> Result<bool, RpcError> {
    let level = call.i32_or(0, call.context.settings.check_level)?.clamp(0, 4);
    let blocks = call.i32_or(1, call.context.settings.check_blocks)?;
    let engine = call.context.engine()?;
    let height = engine.tip().height.0;
    let blocks = u32::try_from(blocks).ok().filter(|blocks| (1..=height).contains(blocks)).unwrap_or(height);
    let is_stopping = || call.context.is_stopping();
    // The findings are in the log.
    let seen = engine.verify_last_blocks(blocks, level.unsigned_abs(), &is_stopping, call.context);
    Ok(seen.is_ok_and(|seen| seen.end == LastBlocksEnd::Done))
}

/// Core's `nPruneAfterHeight`.
fn prune_after_height(chain: Chain, is_fast_prune: bool) -> u32 {
    match chain {
        Chain::Main => 100_000,
        Chain::Regtest if is_fast_prune => 100,
        Chain::Test | Chain::Testnet4 | Chain::Signet | Chain::Regtest => 1_000,
    }
}

/// Core's `MIN_BLOCKS_TO_KEEP`.
const BLOCKS_TO_KEEP_MIN: u32 = 288;

/// Core's `TIMESTAMP_WINDOW`.
const TIMESTAMP_WINDOW_SECONDS: i64 = 2 * 60 * 60;

fn pruneblockchain(call: &Call<'_>) -> Result<i64, RpcError> {
    if call.context.settings.prune == PruneMode::Never {
        return Err(RpcError::misc("Cannot prune blocks because node is not in prune mode."));
    }
    let engine = call.context.engine()?;
    let given: i32 = call.arg(0).as_integer()?;
    let Ok(mut height) = u32::try_from(given) else { return Err(RpcError::parameter("Negative block height.")) };
    // Above any height and below any block time.
    if height > 1_000_000_000 {
        let time = i64::from(height) - TIMESTAMP_WINDOW_SECONDS;
        height = first_at_or_after(&engine, time)
            .ok_or_else(|| RpcError::parameter("Could not find block with at least the specified timestamp."))?;
    }
    let tip = engine.tip().height.0;
    if tip < prune_after_height(engine.params().chain, call.context.settings.is_fast_prune) {
        return Err(RpcError::misc("Blockchain is too short for pruning."));
    }
    if height > tip {
        return Err(RpcError::parameter("Blockchain is shorter than the attempted prune height."));
    }
    engine.prune_to(Height(height.min(tip.saturating_sub(BLOCKS_TO_KEEP_MIN))), call.context)?;
    Ok(prune_height(&engine).map_or(-1, i64::from))
}

/// The height of the first block of the chain with a time of at least `time`: Core's `FindEarliestAtLeast`.
fn first_at_or_after(engine: &Engine, time: i64) -> Option<u32> {
    engine.with_tree(|tree| {
        let tip = tree.height(tree.tip()).0;
        (0..=tip).find(|height| tree.active(Height(*height)).is_some_and(|id| i64::from(tree.header(id).time) >= time))
    })
}
