//! Methods about fee estimates: `estimatesmartfee` and `estimaterawfee` (Core's rpc/fees.cpp). Input: a target in
//! blocks. Output: feerates. `lydian_fees` estimates.

use crate::error::{RpcError, code};
use crate::json::{Amount, Double, Json};
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::result::result;
use lydian_fees::{Bucket, FeeEstimates, Horizon, Mode, RawEstimate};
use lydian_mempool::Mempool;
use lydian_mempool::policy::FeeRate;
use std::sync::Arc;

const TARGET: Arg = Arg::new("conf_target", Kind::Number, "confirmation target in blocks (1 - 1008)");

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "estimatesmartfee",
        category: Category::Util,
        help: "Estimates the fee rate that a transaction needs to begin confirmation within a number of blocks, and \
               returns the number of blocks for which the estimate is valid.\nUses virtual transaction size as defined \
               in BIP 141.",
        args: &[
            TARGET,
            Arg::new(
                "estimate_mode",
                Kind::Text,
                "\"unset\" (the default mode), \"economical\" (a shorter time horizon, which follows drops of the fee \
                 market sooner and may be lower) or \"conservative\" (a longer time horizon, which may be higher)",
            )
            .default("\"economical\""),
        ],
        examples: &["6"],
        remark: "",
        call: &returns("", estimatesmartfee),
    },
    Method {
        name: "estimaterawfee",
        category: Category::Hidden,
        help: "WARNING: This interface is unstable and depends on how fees are estimated.\nEstimates the fee rate that a \
               transaction needs to begin confirmation within a number of blocks, for each time horizon that tracks \
               it.\nUses virtual transaction size as defined in BIP 141.",
        args: &[
            TARGET,
            Arg::new(
                "threshold",
                Kind::Number,
                "the proportion of transactions in a range of fee rates that must have been confirmed within the \
                 target, so that lower ranges are considered",
            )
            .default("0.95"),
        ],
        examples: &["6 0.9"],
        remark: "",
        call: &returns("the horizons that track the target", estimaterawfee),
    },
];

fn estimates<'a>(call: &'a Call<'_>) -> Result<&'a Arc<FeeEstimates>, RpcError> {
    let none = || RpcError::new(code::INTERNAL_ERROR, "Fee estimation disabled");
    call.context.mempool().ok().and_then(|mempool| mempool.fees()).ok_or_else(none)
}

/// Core's `ParseConfirmTarget`.
fn target(value: &Json, highest: u32) -> Result<u32, RpcError> {
    let target = u32::try_from(value.as_integer::<i32>()?).ok().filter(|target| (1..=highest).contains(target));
    target.ok_or_else(|| RpcError::parameter(format!("Invalid conf_target, must be between 1 and {highest}")))
}

/// Core's `FeeModeFromString`. The default mode is economical.
fn mode(text: &str) -> Result<Mode, RpcError> {
    match text.to_ascii_lowercase().as_str() {
        "unset" | "economical" => Ok(Mode::Economical),
        "conservative" => Ok(Mode::Conservative),
        _ => Err(RpcError::parameter(
            "Invalid estimate_mode parameter, must be one of: \"unset\", \"economical\", \"conservative\"",
        )),
    }
}

result! {
    struct Smart {
        /// estimated fee rate in BTC/kvB (only present if no errors were encountered)
        feerate: Option<Amount>,
        /// errors encountered during processing (if there are any)
        #[each("error")]
        errors: Option<[&'static str; 1]>,
        /// block number where estimate was found: the target, or a lower one if the estimator has not seen enough
        blocks: u32,
    }
}

fn estimatesmartfee(call: &Call<'_>) -> Result<Smart, RpcError> {
    let estimates = estimates(call)?;
    let target = target(call.arg(0), estimates.highest_target(Horizon::Long))?;
    let mode = call.given(1).map(Json::as_text).transpose()?.map_or(Ok(Mode::default()), mode)?;
    let found = estimates.smart(target, mode);
    let mempool = call.context.mempool()?;
    let at_least = |feerate: i64| {
        let floor = mempool.min_fee().max(mempool.settings().min_relay_fee);
        Amount(FeeRate::per_kvb(feerate).max(floor).fee_per_kvb())
    };
    let feerate = found.feerate.map(at_least);
    let errors = feerate.is_none().then_some(["Insufficient data or no feerate found"]);
    Ok(Smart { feerate, errors, blocks: found.target })
}

/// The answer of `estimatesmartfee` for a target by the default mode, in satoshi per 1,000 virtual bytes. It does not
/// wait for the mempool.
pub(crate) fn smart_feerate(mempool: &Mempool, target: u32) -> Option<i64> {
    let found = mempool.fees()?.smart(target, Mode::default()).feerate?;
    let floor = mempool.min_fee_at_once().max(mempool.settings().min_relay_fee);
    Some(found.max(floor.fee_per_kvb()))
}

result! {
    struct Range {
        /// start of feerate range
        startrange: Double,
        /// end of feerate range
        endrange: Double,
        /// number of txs over history horizon in the feerate range that were confirmed within target
        withintarget: Double,
        /// number of txs over history horizon in the feerate range that were confirmed at any point
        totalconfirmed: Double,
        /// current number of txs in mempool in the feerate range unconfirmed for at least target blocks
        inmempool: Double,
        /// number of txs over history horizon in the feerate range that left mempool unconfirmed after target
        leftmempool: Double,
    }
}

result! {
    struct Raw {
        /// estimated fee rate in BTC/kvB
        feerate: Option<Amount>,
        /// exponential decay (per block) for historical moving average of confirmation data
        decay: Double,
        /// the resolution of confirmation targets at this time horizon
        scale: u32,
        /// the lowest range of feerates to succeed in meeting the threshold
        pass: Option<Range>,
        /// the highest range of feerates to fail to meet the threshold
        fail: Option<Range>,
        /// errors encountered during processing (if there are any)
        #[each("error")]
        errors: Option<[&'static str; 1]>,
    }
}

result! {
    struct Horizons {
        /// estimate for short time horizon
        short: Option<Raw>,
        /// estimate for medium time horizon
        medium: Option<Raw>,
        /// estimate for long time horizon
        long: Option<Raw>,
    }
}

fn range(bucket: &Bucket) -> Range {
    let hundredths = |value: f64| Double((value * 100.0).round() / 100.0);
    Range {
        startrange: Double(bucket.start.round()),
        endrange: Double(bucket.end.round()),
        withintarget: hundredths(bucket.within_target),
        totalconfirmed: hundredths(bucket.total_confirmed),
        inmempool: hundredths(bucket.in_mempool),
        leftmempool: hundredths(bucket.left_mempool),
    }
}

fn raw((feerate, estimate): (Option<i64>, RawEstimate)) -> Raw {
    let is_found = feerate.is_some();
    // Without a start, all ranges passed.
    #[allow(clippy::float_cmp, reason = "-1 stands for no range")]
    let has_fail = !is_found || estimate.fail.start != -1.0;
    Raw {
        feerate: feerate.map(Amount),
        decay: Double(estimate.decay),
        scale: estimate.scale,
        pass: is_found.then(|| range(&estimate.pass)),
        fail: has_fail.then(|| range(&estimate.fail)),
        errors: (!is_found).then_some(["Insufficient data or no feerate found which meets threshold"]),
    }
}

fn estimaterawfee(call: &Call<'_>) -> Result<Horizons, RpcError> {
    let estimates = estimates(call)?;
    let target = target(call.arg(0), estimates.highest_target(Horizon::Long))?;
    let threshold = call.given(1).map(Json::as_double).transpose()?.unwrap_or(0.95);
    if !(0.0..=1.0).contains(&threshold) {
        return Err(RpcError::parameter("Invalid threshold"));
    }
    let of = |horizon| estimates.raw(target, threshold, horizon).map(raw);
    Ok(Horizons { short: of(Horizon::Short), medium: of(Horizon::Medium), long: of(Horizon::Long) })
}
