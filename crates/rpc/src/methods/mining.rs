//! Methods that create blocks for tests, such as `generatetoaddress`, and methods about mining. The blocks are
//! identical to Core's if both nodes have the same clock and the same mempool.

use crate::builder::{Chosen, invalid_block};
use crate::error::{RpcError, code};
use crate::json::{Amount, Double, Json};
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::methods::blockchain::Warnings;
use crate::methods::descriptor::{UNDERSTOOD, paid_script};
use crate::output::{Hex, target};
use crate::raw_tx::{Reading, decode};
use crate::result::result;
use crate::templates::{Assembled, NextBlock};
use lydian_consensus::{U256, pow};
use lydian_descriptor::Address;
use lydian_engine::{BadProposal, Engine};
use lydian_mempool::pool::BlockContent;
use lydian_primitives::build::{MutBlock, MutTx};
use lydian_primitives::{Block, BlockHash, Height, RawBlock, Txid, difficulty};
use std::sync::Arc;

const TRIES: Arg = Arg::new("maxtries", Kind::Number, "the number of nonces to try").default("1000000");

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "generateblock",
        category: Category::Hidden,
        help: "Mines a block with the given transactions, in their order. Their fees are not collected.",
        args: &[
            Arg::new("output", Kind::Text, "the address or descriptor to pay"),
            Arg::new("transactions", Kind::Array, "transactions in hex, or ids of transactions in the mempool")
                .of(&[Arg::new("rawtx/txid", Kind::Hex, "").omitted()]),
            Arg::new("submit", Kind::Bool, "whether to submit the block; if not, it is returned").default("true"),
        ],
        examples: &["\"myaddress\" '[\"rawtx\"]'"],
        remark: "",
        call: &returns("", generateblock),
    },
    Method {
        name: "generatetoaddress",
        category: Category::Hidden,
        help: "Mines blocks that pay an address. Returns their hashes.",
        args: &[
            Arg::new("nblocks", Kind::Number, "the number of blocks"),
            Arg::new("address", Kind::Text, "the address to pay"),
            TRIES,
        ],
        examples: &["11 \"myaddress\""],
        remark: "",
        call: &returns("hashes of blocks generated", generatetoaddress).each("blockhash"),
    },
    Method {
        name: "generatetodescriptor",
        category: Category::Hidden,
        help: "Mines blocks that pay a descriptor. Returns their hashes.",
        args: &[
            Arg::new("num_blocks", Kind::Number, "the number of blocks"),
            Arg::new("descriptor", Kind::Text, "the descriptor to pay"),
            TRIES,
        ],
        examples: &["11 \"raw(51)\""],
        remark: UNDERSTOOD,
        call: &returns("hashes of blocks generated", generatetodescriptor).each("blockhash"),
    },
    Method {
        name: "getmininginfo",
        category: Category::Mining,
        help: "Returns the state of mining: the tip, the next block and the network's hash rate.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("", getmininginfo),
    },
    Method {
        name: "getnetworkhashps",
        category: Category::Mining,
        help: "Estimates the network's hash rate over the last blocks.",
        args: &[
            Arg::new("nblocks", Kind::Number, "the number of blocks; -1 for those since the last difficulty change")
                .default("120"),
            Arg::new("height", Kind::Number, "estimate for the blocks up to this height; -1 for the tip").default("-1"),
        ],
        examples: &[""],
        remark: "",
        call: &returns("hashes per second estimated", getnetworkhashps),
    },
];

fn failed() -> RpcError {
    RpcError::misc("Failed to make block.")
}

/// The child of the tip with the best of the mempool, without its proof of work: Core's `CreateNewBlock`. `None` if the
/// tip moved meanwhile.
fn assemble(call: &Call<'_>, engine: &Engine, script: &[u8]) -> Result<Option<MutBlock>, RpcError> {
    call.context.settle_mempool();
    let Some(Chosen { next, content, .. }) = call.context.choose(engine)? else { return Err(failed()) };
    let txs: Vec<MutTx> = content.entries.iter().map(|entry| MutTx::from(entry.tx().view())).collect();
    let block = next.block(engine, call.context.now(), script.to_vec(), txs, content.fees);
    call.context.note_assembled(&Assembled::new(&next, &content, script.to_vec()));
    match fault(call, engine, &block)? {
        None => Ok(Some(block)),
        Some(Fault::OtherTip) => Ok(None),
        Some(Fault::Invalid(state)) => Err(invalid_block(&state)),
    }
}

/// Why a block that was assembled cannot be mined.
enum Fault {
    /// Its parent is no longer the tip.
    OtherTip,
    /// It would be invalid: Core's words.
    Invalid(String),
}

/// Checks a block that was assembled before it is mined.
fn fault(call: &Call<'_>, engine: &Engine, block: &MutBlock) -> Result<Option<Fault>, RpcError> {
    let block = Arc::new(parse(block)?);
    let checked = engine.check_assembled(Arc::clone(&block), call.context.now())?;
    Ok(checked.err().map(|bad| match bad {
        BadProposal::NotBestParent => Fault::OtherTip,
        BadProposal::Violation(violation) => Fault::Invalid(violation.state(Some(&block))),
    }))
}

fn parse(block: &MutBlock) -> Result<Block, RpcError> {
    RawBlock::new(block.encode()).parse().map_err(|_| failed())
}

/// Result of the search for a nonce.
enum Mined {
    Block(Box<Block>),
    /// No nonce is valid for this header.
    NoNonce,
    /// The tries are used up, or the node is stopping.
    GivenUp,
}

fn mine(call: &Call<'_>, engine: &Engine, mut block: MutBlock, tries: &mut u64) -> Result<Mined, RpcError> {
    let params = engine.params();
    let header = &mut block.header;
    while *tries > 0 && header.nonce < u32::MAX && !pow::is_proof_of_work(&header.hash(), header.bits, params) {
        header.nonce += 1;
        *tries -= 1;
        if header.nonce.is_multiple_of(1 << 16) && call.context.is_stopping() {
            return Ok(Mined::GivenUp);
        }
    }
    if *tries == 0 {
        return Ok(Mined::GivenUp);
    }
    if header.nonce == u32::MAX {
        return Ok(Mined::NoNonce);
    }
    Ok(Mined::Block(Box::new(parse(&block)?)))
}

fn generate(call: &Call<'_>, count: i32, script: &[u8], mut tries: u64) -> Result<Vec<BlockHash>, RpcError> {
    let engine = call.context.engine()?;
    let mut hashes = Vec::new();
    let count = usize::try_from(count).unwrap_or(0);
    while hashes.len() < count && !call.context.is_stopping() {
        let Some(block) = assemble(call, &engine, script)? else { continue };
        match mine(call, &engine, block, &mut tries)? {
            Mined::GivenUp => break,
            Mined::NoNonce => {}
            Mined::Block(block) => {
                let hash = block.hash();
                if engine.accept_block(*block, call.context.now(), call.context)?.is_err() {
                    return Err(RpcError::new(code::INTERNAL_ERROR, "ProcessNewBlock, block not accepted"));
                }
                hashes.push(hash);
            }
        }
    }
    call.context.settle_mempool();
    Ok(hashes)
}

/// Core's `DEFAULT_MAX_TRIES`.
const TRIES_DEFAULT: u64 = 1_000_000;

fn generatetoaddress(call: &Call<'_>) -> Result<Vec<BlockHash>, RpcError> {
    let count: i32 = call.arg(0).as_integer()?;
    let tries = match call.given(2) {
        None => TRIES_DEFAULT,
        // Core reads an int and converts it to an unsigned number.
        Some(value) => i64::from(value.as_integer::<i32>()?).cast_unsigned(),
    };
    let address = Address::parse(call.text(1)?, call.context.settings.params.chain);
    let address = address.map_err(|_| RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Error: Invalid address"))?;
    generate(call, count, &address.script(), tries)
}

fn generatetodescriptor(call: &Call<'_>) -> Result<Vec<BlockHash>, RpcError> {
    let count: i32 = call.arg(0).as_integer()?;
    let tries = call.given(2).map_or(Ok(TRIES_DEFAULT), Json::as_integer)?;
    let script = paid_script(call.text(1)?, call.context.settings.params.chain)?;
    let script = script.map_err(|error| RpcError::new(code::INVALID_ADDRESS_OR_KEY, error.to_string()))?;
    generate(call, count, &script, tries)
}

result! {
    /// The answer of `generateblock`.
    struct Generated {
        /// hash of generated block
        hash: BlockHash,
        /// hex of generated block, only present when submit=false
        hex: Option<Hex<Box<[u8]>>>,
    }
}

fn generateblock(call: &Call<'_>) -> Result<Generated, RpcError> {
    let (output, chain) = (call.text(0)?, call.context.settings.params.chain);
    let script = match paid_script(output, chain)? {
        Ok(script) => script,
        Err(_) => Address::parse(output, chain)
            .map_err(|_| RpcError::new(code::INVALID_ADDRESS_OR_KEY, "Error: Invalid address or descriptor"))?
            .script(),
    };
    let mut txs = Vec::new();
    for value in call.arg(1).as_array()? {
        txs.push(transaction(call, value.as_text()?)?);
    }
    let is_submitted = call.bool_or(2, true)?;
    let engine = call.context.engine()?;
    let Some(block) = assemble_with(call, &engine, &script, &txs)? else { return Err(failed()) };
    let mut tries = TRIES_DEFAULT;
    let Mined::Block(block) = mine(call, &engine, block, &mut tries)? else { return Err(failed()) };
    let hash = block.hash();
    if !is_submitted {
        return Ok(Generated { hash, hex: Some(Hex(block.as_bytes().into())) });
    }
    if engine.accept_block(*block, call.context.now(), call.context)?.is_err() {
        return Err(RpcError::new(code::INTERNAL_ERROR, "ProcessNewBlock, block not accepted"));
    }
    call.context.settle_mempool();
    Ok(Generated { hash, hex: None })
}

/// The child of the tip with these transactions, without its proof of work. `None` if the node stops.
fn assemble_with(call: &Call<'_>, engine: &Engine, script: &[u8], txs: &[MutTx]) -> Result<Option<MutBlock>, RpcError> {
    while !call.context.is_stopping() {
        let next = NextBlock::after_tip(engine, call.context.settings.block_version);
        let content = BlockContent::empty(&call.context.settings.block);
        call.context.note_assembled(&Assembled::new(&next, &content, script.to_vec()));
        let with = |txs: &[MutTx]| next.block(engine, call.context.now(), script.to_vec(), txs.to_vec(), content.fees);
        let block = with(txs);
        let Some(first) = fault(call, engine, &block)? else { return Ok(Some(block)) };
        // Core makes a block without the transactions first, and has another error if that one is invalid.
        match (first, fault(call, engine, &with(&[]))?) {
            (_, Some(Fault::Invalid(state))) => return Err(invalid_block(&state)),
            (Fault::Invalid(state), None) => {
                return Err(RpcError::new(code::VERIFY_ERROR, format!("TestBlockValidity failed: {state}")));
            }
            // The tip moved.
            (Fault::OtherTip, _) | (_, Some(Fault::OtherTip)) => {}
        }
    }
    Ok(None)
}

/// A transaction of the mempool by its id, or one in hex.
fn transaction(call: &Call<'_>, text: &str) -> Result<MutTx, RpcError> {
    if let Some(txid) = parse_hash(&Json::Text(text.to_owned()), "").ok().map(Txid) {
        let found = call.context.mempool_transaction(&txid).map(|tx| MutTx::from(tx.view()));
        let message = || format!("Transaction {text} not in mempool.");
        return found.ok_or_else(|| RpcError::new(code::INVALID_ADDRESS_OR_KEY, message()));
    }
    let tx = decode(text, Reading::WithWitness);
    let message = || format!("Transaction decode failed for {text}. Make sure the tx has at least one input.");
    tx.map(|tx| MutTx::from(tx.view())).ok_or_else(|| RpcError::new(code::DESERIALIZATION_ERROR, message()))
}

result! {
    /// The answer of `getmininginfo`.
    struct MiningInfo {
        /// the current block
        blocks: u32,
        /// the weight of the last assembled block with the reserved weight (only present if one was assembled)
        currentblockweight: Option<usize>,
        /// the number of transactions but the coinbase of the last assembled block (only present if one was assembled)
        currentblocktx: Option<usize>,
        /// the current nBits, compact representation of the block difficulty target
        bits: Hex<[u8; 4]>,
        /// the current difficulty
        difficulty: Double,
        /// the current target
        target: U256,
        /// the network hashes per second
        networkhashps: Double,
        /// the size of the mempool
        pooledtx: usize,
        /// minimum feerate of packages selected for block inclusion in BTC/kvB
        blockmintxfee: Amount,
        /// current network name (main, test, testnet4, signet, regtest)
        chain: &'static str,
        /// the next block
        next: NextInfo,
        /// the block challenge (aka. block script), in hexadecimal (only present if the current network is a signet)
        signet_challenge: Option<Hex<Vec<u8>>>,
        warnings: Warnings,
    }
}

result! {
    struct NextInfo {
        /// the next height
        height: u32,
        /// the next target nBits
        bits: Hex<[u8; 4]>,
        /// the next difficulty
        difficulty: Double,
        /// the next target
        target: U256,
    }
}

fn getmininginfo(call: &Call<'_>) -> Result<MiningInfo, RpcError> {
    let engine = call.context.engine()?;
    let (params, tip) = (engine.params(), engine.settled_info());
    let bits = tip.node.header.bits;
    let next = NextBlock::after(&engine, Some(tip.id), None);
    let next = next.header(&engine, next.time(call.context.now())).bits;
    let assembled = call.context.last_assembled();
    Ok(MiningInfo {
        blocks: tip.node.height.0,
        currentblockweight: assembled.map(|(weight, _)| weight),
        currentblocktx: assembled.map(|(_, count)| count),
        bits: Hex(bits.to_be_bytes()),
        difficulty: Double(difficulty(bits)),
        target: target(bits, params),
        networkhashps: Double(network_hash_rate(&engine, 120, -1)?),
        pooledtx: call.context.mempool()?.snapshot().len(),
        blockmintxfee: Amount(call.context.settings.block.min_feerate.fee_per_kvb()),
        chain: params.chain.name(),
        next: NextInfo {
            height: tip.node.height.0.saturating_add(1),
            bits: Hex(next.to_be_bytes()),
            difficulty: Double(difficulty(next)),
            target: target(next, params),
        },
        signet_challenge: params.signet_challenge.clone().map(Hex),
        warnings: Warnings::of(call.context),
    })
}

fn getnetworkhashps(call: &Call<'_>) -> Result<Double, RpcError> {
    let engine = call.context.engine()?;
    Ok(Double(network_hash_rate(&engine, call.i32_or(0, 120)?, call.i32_or(1, -1)?)?))
}

/// Core's `GetNetworkHashPS`: `getnetworkhashps`.
pub fn network_hash_rate(engine: &Engine, lookup: i32, height: i32) -> Result<f64, RpcError> {
    if lookup < -1 || lookup == 0 {
        return Err(RpcError::parameter("Invalid nblocks. Must be a positive number or -1."));
    }
    let interval = engine.params().difficulty_adjustment_interval();
    let found = engine.with_tree(|tree| {
        let tip = tree.height(tree.tip()).0;
        let end = match u32::try_from(height) {
            Ok(height) if height > tip => return None,
            Ok(height) => height,
            Err(_) if height < -1 => return None,
            Err(_) => tip,
        };
        let count = u32::try_from(lookup).unwrap_or(end % interval + 1).min(end);
        let nodes = (end - count..=end).filter_map(|height| tree.active(Height(height)));
        let all: Vec<(u32, U256)> = nodes.map(|id| (tree.header(id).time, tree.node(id).chain_work)).collect();
        Some(all)
    });
    let Some(all) = found else { return Err(RpcError::parameter("Block does not exist at specified height")) };
    let times = || all.iter().map(|(time, _)| *time);
    let seconds = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    let (Some((_, first)), Some((_, last))) = (all.first(), all.last()) else { return Ok(0.0) };
    if seconds == 0 {
        return Ok(0.0);
    }
    Ok(as_double(last.checked_sub(*first).unwrap_or(U256::ZERO)) / f64::from(seconds))
}

/// Core's `getdouble`: adds up 32-bit words, the lowest first.
fn as_double(value: U256) -> f64 {
    let (mut sum, mut factor) = (0.0, 1.0);
    for word in value.to_le_bytes().as_chunks::<4>().0 {
        sum += factor * f64::from(u32::from_le_bytes(*word));
        factor *= 4_294_967_296.0;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn works_as_doubles() {
        assert_eq!(as_double(U256::from_u64(0x1_0001_0001)), 4_295_032_833.0);
        assert_eq!(as_double(U256::ZERO), 0.0);
    }
}
