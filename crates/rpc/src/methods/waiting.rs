//! Methods that wait for a new tip, until the timeout, the client disconnects or the node stops. They occupy no thread
//! of `-rpcthreads` while they wait.

use crate::context::Context;
use crate::error::RpcError;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::result;
use crate::wait::{Finish, Later, Until};
use lydian_primitives::BlockHash;

const TIMEOUT: Arg =
    Arg::new("timeout", Kind::Number, "the maximum wait in milliseconds; 0 for no timeout").default("0");

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "waitforblock",
        category: Category::Blockchain,
        help: "Waits until a block is the tip, the timeout has passed, or the node stops. Returns the current tip.",
        args: &[Arg::new("blockhash", Kind::Hex, "the block hash"), TIMEOUT],
        examples: &["\"0000000000079f8ef3d2c688c244eb7a4570b24c9ed7b4a8c619eb02596f8862\" 1000"],
        remark: "",
        call: &returns("the tip", waitforblock),
    },
    Method {
        name: "waitforblockheight",
        category: Category::Blockchain,
        help: "Waits until the tip has reached a height, the timeout has passed, or the node stops. Returns the current tip.",
        args: &[Arg::new("height", Kind::Number, "the height"), TIMEOUT],
        examples: &["100 1000"],
        remark: "",
        call: &returns("the tip", waitforblockheight),
    },
    Method {
        name: "waitfornewblock",
        category: Category::Blockchain,
        help: "Waits until the tip changes, the timeout has passed, or the node stops. Returns the current tip.",
        args: &[
            TIMEOUT,
            Arg::new("current_tip", Kind::Hex, "the hash of the block that the tip must differ from").omitted(),
        ],
        examples: &["1000"],
        remark: "",
        call: &returns("the tip", waitfornewblock),
    },
];

result! {
    struct TipAnswer {
        /// the block hash
        hash: BlockHash,
        /// the block height
        height: u32,
    }
}

/// The timeout in milliseconds; `None`: no timeout.
fn timeout(call: &Call<'_>, index: usize) -> Result<Option<u64>, RpcError> {
    match u64::try_from(call.i32_or(index, 0)?) {
        Ok(0) => Ok(None),
        Ok(millis) => Ok(Some(millis)),
        Err(_) => Err(RpcError::misc("Negative timeout")),
    }
}

fn wait(call: &Call<'_>, millis: Option<u64>, until: Until) -> Later<TipAnswer> {
    let now = call.context.host.steady_micros();
    let end_micros = millis.map(|millis| now.saturating_add(millis.saturating_mul(1_000)));
    call.wait(until, end_micros)
}

impl Finish for TipAnswer {
    fn finish(context: &Context, _: Until) -> Result<TipAnswer, RpcError> {
        let tip = context.engine()?.settled_tip();
        Ok(TipAnswer { hash: tip.hash, height: tip.height.0 })
    }
}

fn waitfornewblock(call: &Call<'_>) -> Result<Later<TipAnswer>, RpcError> {
    let millis = timeout(call, 0)?;
    let from: BlockHash = match call.given(1) {
        None => call.context.engine()?.settled_tip().hash,
        Some(_) => call.hash(1, "current_tip")?,
    };
    Ok(wait(call, millis, Until::OtherThan(from)))
}

fn waitforblock(call: &Call<'_>) -> Result<Later<TipAnswer>, RpcError> {
    let hash = call.hash(0, "blockhash")?;
    let millis = timeout(call, 1)?;
    Ok(wait(call, millis, Until::Block(hash)))
}

fn waitforblockheight(call: &Call<'_>) -> Result<Later<TipAnswer>, RpcError> {
    let height: i32 = call.arg(0).as_integer()?;
    let millis = timeout(call, 1)?;
    Ok(wait(call, millis, Until::Height(height)))
}
