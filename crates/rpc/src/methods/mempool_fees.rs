//! Methods about what is added to the fees of transactions: `prioritisetransaction` and `getprioritisedtransactions`
//! (Core's rpc/mining.cpp). Input: a txid and an amount. Output: the mempool in its new order.

use crate::error::RpcError;
use crate::json::Json;
use crate::method::{Arg, Call, Category, Kind, Method, parse_hash, returns};
use crate::result::{Map, result};
use lydian_consensus::format_money;
use lydian_mempool::policy::dust_outputs;
use lydian_primitives::{Amount, Txid};

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "getprioritisedtransactions",
        category: Category::Mining,
        help: "Returns the fee deltas set by prioritisetransaction, by txid.",
        args: &[],
        examples: &[""],
        remark: "",
        call: &returns("prioritisation keyed by txid", getprioritisedtransactions)
            .each_key("<transactionid>", "the transaction"),
    },
    Method {
        name: "prioritisetransaction",
        category: Category::Mining,
        help: "Changes the fee by which a transaction is ordered in the mempool and selected for blocks.",
        args: &[
            Arg::new("txid", Kind::Hex, "the transaction id"),
            Arg::new("dummy", Kind::Number, "must be zero or null (DEPRECATED)").omitted(),
            Arg::new(
                "fee_delta",
                Kind::Number,
                "satoshis to add (negative: to subtract); the fee that the transaction pays does not change",
            ),
        ],
        examples: &["\"txid\" 0.0 10000"],
        remark: "",
        call: &returns("returns true", prioritisetransaction),
    },
];

result! {
    struct Prioritised {
        /// transaction fee delta in satoshis
        fee_delta: i64,
        /// whether this transaction is currently in mempool
        in_mempool: bool,
        /// modified fee in satoshis. Only returned if in_mempool=true
        modified_fee: Option<i64>,
    }
}

fn getprioritisedtransactions(call: &Call<'_>) -> Result<Map<String, Prioritised>, RpcError> {
    let snapshot = call.context.mempool()?.snapshot();
    call.expect_bytes(snapshot.deltas().len() * 160)?;
    let prioritised = |(txid, delta): (&Txid, &i64)| {
        let modified_fee = snapshot.get(txid).map(|member| member.modified_fee());
        (txid.to_string(), Prioritised { fee_delta: *delta, in_mempool: modified_fee.is_some(), modified_fee })
    };
    Ok(Map(snapshot.deltas().sorted().iter().map(prioritised).collect()))
}

fn prioritisetransaction(call: &Call<'_>) -> Result<bool, RpcError> {
    let txid = Txid(parse_hash(call.arg(0), "txid")?);
    let dummy = call.given(1).map(Json::as_double).transpose()?;
    let delta: i64 = call.arg(2).as_integer()?;
    if dummy.is_some_and(|dummy| dummy != 0.0) {
        return Err(RpcError::parameter(
            "Priority is no longer supported, dummy argument to prioritisetransaction must be 0.",
        ));
    }
    let mempool = call.context.mempool()?;
    let (settings, snapshot) = (mempool.settings(), mempool.snapshot());
    let member = snapshot.get(&txid);
    let has_dust = |tx| dust_outputs(tx, settings.dust_relay_fee).next().is_some();
    if settings.require_standard && member.is_some_and(|member| has_dust(member.entry().tx().view())) {
        return Err(RpcError::parameter("Priority is not supported for transactions with dust outputs."));
    }
    let sum = mempool.prioritise(&txid, delta);
    let place = if member.is_some() { "" } else { "not " };
    let line = match sum {
        Amount(0) => format!("PrioritiseTransaction: {txid} ({place}in mempool) delta cleared"),
        _ => {
            let delta = format_money(Amount(delta));
            let sum = format_money(sum);
            format!("PrioritiseTransaction: {txid} ({place}in mempool) fee += {delta}, new delta={sum}")
        }
    };
    call.context.host.log(crate::context::LogLevel::Info, &line);
    Ok(true)
}
