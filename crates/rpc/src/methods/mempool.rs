//! Methods about the mempool and ZeroMQ notifications. Neither exists yet: the answers are those of an empty mempool
//! and of no notifications.

use crate::error::RpcError;
use crate::json::Amount;
use crate::method::{Arg, Call, Category, Kind, Method, answer};
use serde::Serialize;

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getmempoolinfo",
        category: Category::Blockchain,
        help: "Returns the state of the mempool.",
        args: &[],
        result: "{loaded, size, bytes, usage, total_fee, maxmempool, mempoolminfee, minrelaytxfee, incrementalrelayfee, unbroadcastcount, \
                 permitbaremultisig, maxdatacarriersize, limitclustercount, limitclustersize, optimal}",
        examples: &[""],
        remark: "There is no mempool yet: it is always empty, and its limits are Core's defaults.",
        call: getmempoolinfo,
    },
    Method {
        name: "getrawmempool",
        category: Category::Blockchain,
        help: "Returns the transactions in the mempool.",
        args: &[
            Arg::new("verbose", Kind::Bool, "true for an object, false for an array of ids").default("false"),
            Arg::new("mempool_sequence", Kind::Bool, "whether to include the mempool sequence number").default("false"),
        ],
        result: "[txid, ...], or {txid: {...}}, or {txids, mempool_sequence}",
        examples: &["true"],
        remark: "There is no mempool yet: it is always empty.",
        call: getrawmempool,
    },
    Method {
        name: "getzmqnotifications",
        category: Category::Util,
        help: "Lists the ZeroMQ notifications that are sent.",
        args: &[],
        result: "[{type, address, hwm}, ...]",
        examples: &[""],
        remark: "Lydian does not send any yet.",
        call: getzmqnotifications,
    },
];

#[derive(Debug, Serialize)]
struct MempoolInfo {
    loaded: bool,
    size: u64,
    bytes: u64,
    usage: u64,
    total_fee: Amount,
    maxmempool: u64,
    mempoolminfee: Amount,
    minrelaytxfee: Amount,
    incrementalrelayfee: Amount,
    unbroadcastcount: u64,
    permitbaremultisig: bool,
    maxdatacarriersize: u64,
    limitclustercount: u64,
    limitclustersize: u64,
    optimal: bool,
}

fn getmempoolinfo(_: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    answer(
        out,
        &MempoolInfo {
            loaded: true,
            size: 0,
            bytes: 0,
            usage: 0,
            total_fee: Amount(0),
            maxmempool: 300_000_000,
            mempoolminfee: Amount(100),
            minrelaytxfee: Amount(100),
            incrementalrelayfee: Amount(100),
            unbroadcastcount: 0,
            permitbaremultisig: true,
            maxdatacarriersize: 100_000,
            limitclustercount: 64,
            limitclustersize: 101_000,
            optimal: true,
        },
    )
}

#[derive(Debug, Serialize)]
struct WithSequence {
    txids: [String; 0],
    mempool_sequence: u64,
}

fn getrawmempool(call: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    let (is_verbose, has_sequence) = (call.bool_or(0, false)?, call.bool_or(1, false)?);
    match (is_verbose, has_sequence) {
        (true, true) => Err(RpcError::parameter("Verbose results cannot contain mempool sequence values.")),
        (true, false) => {
            out.extend_from_slice(b"{}");
            Ok(())
        }
        (false, true) => answer(out, &WithSequence { txids: [], mempool_sequence: 1 }),
        (false, false) => answer(out, &[""; 0]),
    }
}

fn getzmqnotifications(_: &Call<'_>, out: &mut Vec<u8>) -> Result<(), RpcError> {
    answer(out, &[""; 0])
}
