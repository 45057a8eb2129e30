//! Methods that wait for the tip to move. Each holds a thread of `-rpcthreads`, as in Core, until its time is over or the node stops.

use crate::error::RpcError;
use crate::method::{Arg, Call, Category, Kind, Method, answer};
use lydian_engine::Tip;
use lydian_primitives::BlockHash;
use serde::Serialize;
use std::time::Duration;

const TIMEOUT: Arg = Arg::new("timeout", Kind::Number, "milliseconds to wait at most; 0 for no end").default("0");

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "waitforblock",
        category: Category::Blockchain,
        help: "Waits until a block is the tip. When the time is over, or the node stops, the tip is told.",
        args: &[Arg::new("blockhash", Kind::Hex, "the block"), TIMEOUT],
        result: "{hash, height} of the tip",
        examples: &["\"0000000000079f8ef3d2c688c244eb7a4570b24c9ed7b4a8c619eb02596f8862\" 1000"],
        remark: "",
        call: waitforblock,
    },
    Method {
        name: "waitforblockheight",
        category: Category::Blockchain,
        help: "Waits until the tip has a height at least. When the time is over, or the node stops, the tip is told.",
        args: &[Arg::new("height", Kind::Number, "the height"), TIMEOUT],
        result: "{hash, height} of the tip",
        examples: &["100 1000"],
        remark: "",
        call: waitforblockheight,
    },
    Method {
        name: "waitfornewblock",
        category: Category::Blockchain,
        help: "Waits until the tip is another. When the time is over, or the node stops, the tip is told.",
        args: &[TIMEOUT, Arg::new("current_tip", Kind::Hex, "the block that it shall differ from").omitted()],
        result: "{hash, height} of the tip",
        examples: &["1000"],
        remark: "",
        call: waitfornewblock,
    },
];

#[derive(Debug, Serialize)]
struct TipAnswer {
    hash: String,
    height: u32,
}

/// Milliseconds; `None` for no end.
fn timeout(call: &Call<'_>, index: usize) -> Result<Option<u64>, RpcError> {
    match u64::try_from(call.i32_or(index, 0)?) {
        Ok(0) => Ok(None),
        Ok(millis) => Ok(Some(millis)),
        Err(_) => Err(RpcError::misc("Negative timeout")),
    }
}

fn wait(
    call: &Call<'_>,
    out: &mut Vec<u8>,
    millis: Option<u64>,
    is_over: impl Fn(&Tip) -> bool,
) -> Result<(), RpcError> {
    let (context, engine) = (call.context, call.context.engine()?);
    let end = millis.map(|millis| context.host.steady_micros() + 1_000 * millis);
    let tip = loop {
        let seen = context.tips.moves();
        let tip = engine.tip();
        let left = end.map(|end| end.saturating_sub(context.host.steady_micros()));
        if is_over(&tip) || left == Some(0) || context.is_stopping() {
            break tip;
        }
        context.tips.wait(seen, left.map_or(Duration::from_secs(3_600), Duration::from_micros));
    };
    answer(out, &TipAnswer { hash: tip.hash.to_string(), height: tip.height.0 })
}

fn waitfornewblock(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let millis = timeout(call, 0)?;
    let from: BlockHash = match call.given(1) {
        None => call.context.engine()?.tip().hash,
        Some(_) => call.hash(1, "current_tip")?,
    };
    wait(call, out, millis, |tip| tip.hash != from)
}

fn waitforblock(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let hash = call.hash(0, "blockhash")?;
    let millis = timeout(call, 1)?;
    wait(call, out, millis, |tip| tip.hash == hash)
}

fn waitforblockheight(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let height: i32 = call.arg(0).as_integer()?;
    let millis = timeout(call, 1)?;
    wait(call, out, millis, |tip| i64::from(tip.height.0) >= i64::from(height))
}
