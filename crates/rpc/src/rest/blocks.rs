//! `/rest/block/`, `/rest/block/notxdetails/`, `/rest/blockpart/` and `/rest/spenttxouts/`: blocks, and what they
//! spend.
//!
//! Cost: one read of the bytes that are answered, long ones while they are sent; JSON parses the block. What a block
//! spends is in its undo data alone.

use super::reply::{Made, Refused};
use super::request::{Format, Request, hash_of, integer};
use super::stored::PIECE_SIZE;
use crate::error::code;
use crate::json::{Amount, Json};
use crate::output::ScriptAnswer;
use crate::result::{result, write_array};
use lydian_chain::BlockUndo;
use lydian_consensus::{Chain, Coin};
use lydian_descriptor::OffCurve;
use lydian_engine::{Engine, HeaderInfo};
use lydian_primitives::{BlockHash, write_compact_size};

/// The verbosities of `getblock`.
const IDS: &str = "1";
const PREVOUTS: &str = "3";

/// About the size of JSON per byte of undo data, which leave out much of the common scripts.
const TEXT_PER_SPENT: usize = 450;

/// Core's `rest_block_extended`.
pub(super) fn with_details(request: &Request<'_>) -> Result<Made, Refused> {
    block(request, PREVOUTS)
}

/// Core's `rest_block_notxdetails`.
pub(super) fn without_details(request: &Request<'_>) -> Result<Made, Refused> {
    block(request, IDS)
}

fn block(request: &Request<'_>, verbosity: &str) -> Result<Made, Refused> {
    let engine = request.engine()?;
    let (info, size) = stored(request, &engine)?;
    if request.format != Format::Json {
        return bytes(request, &engine, &info, (0, size));
    }
    request.reply(Vec::new, |out| {
        let params = [Json::Text(info.node.hash.to_string()), Json::Number(verbosity.to_owned())];
        request.call("getblock", &params, out).map_err(|error| match error.code {
            code::MISC_ERROR => unreadable(request),
            _ => Refused::Failed(error.message),
        })
    })
}

/// Core's `rest_block_part`. The arguments are looked at before anything else.
pub(super) fn part(request: &Request<'_>) -> Result<Made, Refused> {
    let number = |name| integer::<u64>(&request.argument(name).unwrap_or_default());
    let offset = number("offset").ok_or_else(|| Refused::bad("Block part offset missing or invalid"))?;
    let size = number("size").ok_or_else(|| Refused::bad("Block part size missing or invalid"))?;
    let engine = request.engine()?;
    let (info, whole) = stored(request, &engine)?;
    let fits = size > 0 && offset.checked_add(size).is_some_and(|end| end <= u64::from(whole));
    let narrow = u32::try_from(offset).ok().zip(u32::try_from(size).ok()).filter(|_| fits);
    let narrow = narrow
        .ok_or_else(|| Refused::bad(format!("Bad block part offset/size {offset}/{size} for {}", request.path)))?;
    bytes(request, &engine, &info, narrow)
}

/// The block of the path and its size, if it is stored.
fn stored(request: &Request<'_>, engine: &Engine) -> Result<(HeaderInfo, u32), Refused> {
    let text = request.path;
    let hash: BlockHash = hash_of(text)?;
    let info = engine.header_info(&hash).ok_or_else(|| Refused::missing(format!("{text} not found")))?;
    match info.node.block {
        Some(position) => Ok((info, position.size)),
        None if info.is_pruned() => Err(Refused::missing(format!("{text} not available (pruned data)"))),
        None => Err(Refused::missing(format!("{text} not available (not fully downloaded)"))),
    }
}

fn unreadable(request: &Request<'_>) -> Refused {
    Refused::unreadable(format!("I/O error reading {}", request.path))
}

/// Bytes of a stored block, by their offset and size. A long part is read while it is sent.
fn bytes(
    request: &Request<'_>,
    engine: &Engine,
    info: &HeaderInfo,
    (offset, size): (u32, u32),
) -> Result<Made, Refused> {
    if size > PIECE_SIZE && matches!(request.format, Format::Binary | Format::Hex) {
        let stored = engine.block_bytes(info, offset, size).map_err(|_| unreadable(request))?;
        if let Some(stored) = stored {
            return request.reply_stored(stored).ok_or_else(|| unreadable(request));
        }
    }
    request.expect_bytes(usize::try_from(size).unwrap_or(usize::MAX))?;
    let bytes = engine.block_part(info, offset, size).ok().flatten().ok_or_else(|| unreadable(request))?;
    request.reply(|| bytes, |_| Err(Refused::bad("JSON output is not supported for this request type")))
}

/// Core's `rest_spent_txouts`.
pub(super) fn spent_outputs(request: &Request<'_>) -> Result<Made, Refused> {
    let engine = request.engine()?;
    let [text] = request.parts()[..] else {
        return Err(Refused::bad("Invalid URI format. Expected /rest/spenttxouts/<hash>.<ext>"));
    };
    let hash: BlockHash = hash_of(text)?;
    let info = engine.header_info(&hash).ok_or_else(|| Refused::missing(format!("{text} not found")))?;
    // Data that cannot be read is not available, as in Core.
    let undo = engine.undo(&info).ok().flatten();
    let undo = undo.ok_or_else(|| Refused::missing(format!("{text} undo not available")))?;
    request.reply(
        || serialized(&undo),
        |out| {
            request.expect_bytes(undo.coins.len() * TEXT_PER_SPENT)?;
            Spent { undo: &undo, chain: engine.params().chain }.write(out);
            Ok(())
        },
    )
}

/// The coins of each transaction but the coinbase, whose undo data have none.
fn by_transaction(undo: &BlockUndo) -> impl Iterator<Item = &[Coin]> {
    let mut rest = &undo.coins[..];
    undo.input_counts.iter().map(move |count| {
        let count = usize::try_from(*count).unwrap_or(usize::MAX).min(rest.len());
        let (own, behind) = rest.split_at(count);
        rest = behind;
        own
    })
}

/// Core's `SerializeBlockUndo`: the outputs that each transaction spends, the coinbase included.
fn serialized(undo: &BlockUndo) -> Vec<u8> {
    let mut out = Vec::new();
    write_compact_size(&mut out, undo.input_counts.len() + 1);
    write_compact_size(&mut out, 0);
    for coins in by_transaction(undo) {
        write_compact_size(&mut out, coins.len());
        for coin in coins {
            write_output(coin, &mut out);
        }
    }
    out
}

/// Appends a coin as the output that it is (`CTxOut`).
pub(super) fn write_output(coin: &Coin, out: &mut Vec<u8>) {
    out.extend_from_slice(&coin.value.0.to_le_bytes());
    write_compact_size(out, coin.script_pubkey.len());
    out.extend_from_slice(&coin.script_pubkey);
}

result! {
    /// A spent output.
    struct SpentOutput<'a> {
        value: Amount,
        #[name("scriptPubKey")]
        script: ScriptAnswer<'a>,
    }
}

/// Core's `BlockUndoToJSON`.
struct Spent<'a> {
    undo: &'a BlockUndo,
    chain: Chain,
}

impl Spent<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"[[]");
        let off_curve = OffCurve::among(self.undo.coins.iter().map(|coin| &coin.script_pubkey[..]));
        for coins in by_transaction(self.undo) {
            out.push(b',');
            let output = |coin| SpentOutput::of(coin, self.chain, &off_curve);
            write_array(coins.iter().map(output), out);
        }
        out.push(b']');
    }
}

impl<'a> SpentOutput<'a> {
    fn of(coin: &'a Coin, chain: Chain, off_curve: &OffCurve) -> SpentOutput<'a> {
        let script = ScriptAnswer::among(&coin.script_pubkey, chain, Some(off_curve));
        SpentOutput { value: Amount(coin.value.0), script }
    }
}
