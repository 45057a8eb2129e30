//! Methods that submit transactions: `sendrawtransaction`, `testmempoolaccept` and `submitpackage` (Core's
//! rpc/mempool.cpp, and `BroadcastTransaction` of node/transaction.cpp).
//!
//! Input: transactions in hex. Output: the verdicts of the mempool with Core's words. They go through the queue of the
//! accepting thread, as those of peers do. What was accepted is announced to all peers.

use crate::error::{RpcError, code};
use crate::json::Amount;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::raw_tx::{Reading, decode};
use crate::result::{Map, result};
use lydian_mempool::policy::limits::MAX_PACKAGE_COUNT;
use lydian_mempool::policy::{FeeRate, Rejection, ValidationResult, is_child_with_parents_tree, virtual_size};
use lydian_mempool::pool::{Accepted, PackageResult, TxResult};
use lydian_mempool::{Mempool, SubmitError};
use lydian_p2p::manager::Question;
use lydian_primitives::{OutPoint, Transaction, Tx, Txid, Wtxid};
use lydian_script::{has_valid_ops, is_unspendable};
use std::collections::BTreeSet;
use std::sync::Arc;

const MAX_FEERATE: Arg = Arg::new(
    "maxfeerate",
    Kind::Amount,
    "the highest fee rate in BTC/kvB that is accepted, below 1 BTC/kvB; 0 accepts any fee rate",
)
.default("\"0.10\"");
const MAX_BURN: Arg = Arg::new(
    "maxburnamount",
    Kind::Amount,
    "the highest value in BTC of an output that is provably unspendable, such as one with OP_RETURN",
)
.default("\"0.00\"");
const RAW_TX: &[Arg] = &[Arg::new("rawtx", Kind::Hex, "").omitted()];

pub(crate) const METHODS: &[Method] = &[
    Method {
        name: "sendrawtransaction",
        category: Category::Rawtransactions,
        help: "Submits a transaction to the mempool and announces it to all peers.\nA transaction that is already in \
               the mempool is announced again. Peers may conclude that it originates from this node.",
        args: &[Arg::new("hexstring", Kind::Hex, "the transaction in hex"), MAX_FEERATE, MAX_BURN],
        examples: &["\"signedhex\""],
        remark: "There is no private broadcast (`-privatebroadcast`).",
        call: &returns("the transaction hash in hex", sendrawtransaction),
    },
    Method {
        name: "submitpackage",
        category: Category::Rawtransactions,
        help: "Submits a package: a transaction with some, all or none of its unconfirmed parents.\nParents must come \
               before the child and must not depend on each other. Transactions that are accepted are announced to \
               all peers, even if the package as a whole is rejected.",
        args: &[Arg::new("package", Kind::Array, "transactions in hex").of(RAW_TX), MAX_FEERATE, MAX_BURN],
        examples: &["'[\"raw-parent-tx-1\", \"raw-parent-tx-2\", \"raw-child-tx\"]'"],
        remark: "",
        call: &returns("", submitpackage),
    },
    Method {
        name: "testmempoolaccept",
        category: Category::Rawtransactions,
        help: "Tests whether the mempool would accept transactions.\nParents must come before their children. If \
               several transactions are given, none may conflict with another or with the mempool. After one is \
               rejected, the results of others may be incomplete.",
        args: &[Arg::new("rawtxs", Kind::Array, "at most 25 transactions in hex").of(RAW_TX), MAX_FEERATE],
        examples: &["'[\"signedhex\"]'"],
        remark: "",
        call: &returns("the results in the order of the transactions", testmempoolaccept),
    },
];

/// Core's `DEFAULT_MAX_RAW_TX_FEE_RATE`: 0.10 BTC/kvB.
const MAX_FEERATE_DEFAULT: i64 = 10_000_000;
const COIN: i64 = 100_000_000;

/// Core's `ParseFeeRate`, in satoshi per 1,000 virtual bytes.
fn max_feerate(call: &Call<'_>) -> Result<FeeRate, RpcError> {
    let rate = call.given(1).map_or(Ok(MAX_FEERATE_DEFAULT), |value| value.as_amount().map(|amount| amount.0))?;
    if rate >= COIN {
        return Err(RpcError::parameter("Fee rates larger than or equal to 1BTC/kvB are not accepted"));
    }
    Ok(FeeRate::per_kvb(rate))
}

fn max_burn(call: &Call<'_>) -> Result<i64, RpcError> {
    call.given(2).map_or(Ok(0), |value| value.as_amount().map(|amount| amount.0))
}

/// An output of more than this that is provably unspendable is probably a mistake.
fn check_burn(tx: Tx<'_>, burn_max: i64) -> Result<(), RpcError> {
    let is_burnt = |script: &[u8]| is_unspendable(script) || !has_valid_ops(script);
    if tx.outputs().any(|output| is_burnt(output.script_pubkey) && output.value.0 > burn_max) {
        let words = "Unspendable output exceeds maximum configured by user (maxburnamount)";
        return Err(RpcError::new(code::VERIFY_ERROR, words));
    }
    Ok(())
}

fn failed(error: &SubmitError) -> RpcError {
    match error {
        SubmitError::Rejected(rejection) => {
            let is_missing = rejection.result == ValidationResult::MissingInputs;
            let code = if is_missing { code::VERIFY_ERROR } else { code::VERIFY_REJECTED };
            RpcError::new(code, rejection.state())
        }
        // Core's `MEMPOOL_ERROR`.
        SubmitError::Engine(_) | SubmitError::Ended => RpcError::new(code::VERIFY_ERROR, error.to_string()),
    }
}

fn sendrawtransaction(call: &Call<'_>) -> Result<Txid, RpcError> {
    let burn_max = max_burn(call)?;
    let tx = decode(call.text(0)?, Reading::WithWitness).ok_or_else(|| {
        let words = "TX decode failed. Make sure the tx has at least one input.";
        RpcError::new(code::DESERIALIZATION_ERROR, words)
    })?;
    check_burn(tx.view(), burn_max)?;
    // Without its signature operations, which are not counted yet.
    let fee_max = max_feerate(call)?.fee(virtual_size(tx.view().weight(), 0, 0));
    let (txid, tx) = (tx.view().txid(), Arc::new(tx));
    broadcast(call, &tx, fee_max)?;
    Ok(txid)
}

/// Core's `BroadcastTransaction`. A fee above `fee_max` is refused, unless that is zero.
fn broadcast(call: &Call<'_>, tx: &Arc<Transaction>, fee_max: i64) -> Result<(), RpcError> {
    let mempool = call.context.mempool()?;
    let (txid, mut wtxid) = (tx.view().txid(), tx.view().wtxid());
    let outputs = 0..u32::try_from(tx.view().output_count()).unwrap_or(u32::MAX);
    let outpoints: Vec<OutPoint> = outputs.map(|vout| OutPoint { txid, vout }).collect();
    let (_, coins) = call.context.engine()?.coins_now(&outpoints)?;
    if coins.iter().any(Option::is_some) {
        let words = "Transaction outputs already in utxo set";
        return Err(RpcError::new(code::VERIFY_ALREADY_IN_UTXO_SET, words));
    }
    let known = mempool.snapshot().get(&txid).map(|member| member.entry().wtxid());
    if let Some(known) = known {
        // Announced again, with the witness that it has there.
        wtxid = known;
    } else {
        if fee_max > 0 {
            let tested = mempool.submit(Arc::clone(tx), true).map_err(|error| {
                mempool.note_rejected(tx, &error);
                failed(&error)
            })?;
            if tested.fee.0 > fee_max {
                let words = "Fee exceeds maximum configured by user (e.g. -maxtxfee, maxfeerate)";
                return Err(RpcError::new(code::VERIFY_ERROR, words));
            }
        }
        mempool.submit(Arc::clone(tx), false).map_err(|error| failed(&error))?;
        mempool.add_unbroadcast(txid);
    }
    announce(call, txid, wtxid);
    Ok(())
}

/// Announces those transactions of a package that are in the mempool.
fn broadcast_all(call: &Call<'_>, mempool: &Mempool, txs: &[Arc<Transaction>]) -> Result<(), RpcError> {
    let mut count = 0;
    for tx in txs {
        if mempool.snapshot().get(&tx.view().txid()).is_none() {
            continue;
        }
        // It fails only if the transaction has left the mempool meanwhile.
        broadcast(call, tx, 0).map_err(|RpcError { code, message }| {
            // Core has no text for this one here.
            let reason = if code == code::VERIFY_ALREADY_IN_UTXO_SET { "" } else { &*message };
            let words = "transactions were broadcast successfully";
            RpcError::new(code, format!("transaction broadcast failed: {reason} ({count} {words})"))
        })?;
        count += 1;
    }
    Ok(())
}

/// Core's `InitiateTxBroadcastToAll`. Without a network, no peer waits for it.
fn announce(call: &Call<'_>, txid: Txid, wtxid: Wtxid) {
    let _ = call.context.ask_peers(|reply| Question::Announce { txid, wtxid, reply });
}

/// The transactions of the first argument.
fn package(call: &Call<'_>, check: impl Fn(Tx<'_>) -> Result<(), RpcError>) -> Result<Vec<Arc<Transaction>>, RpcError> {
    let mut txs = Vec::new();
    for value in call.arg(0).as_array()? {
        let text = value.as_text()?;
        let tx = decode(text, Reading::WithWitness).ok_or_else(|| {
            let words = format!("TX decode failed: {text} Make sure the tx has at least one input.");
            RpcError::new(code::DESERIALIZATION_ERROR, words)
        })?;
        check(tx.view())?;
        txs.push(Arc::new(tx));
    }
    Ok(txs)
}

fn check_count(call: &Call<'_>) -> Result<(), RpcError> {
    if (1..=MAX_PACKAGE_COUNT).contains(&call.arg(0).as_array()?.len()) {
        return Ok(());
    }
    Err(RpcError::parameter(format!("Array must contain between 1 and {MAX_PACKAGE_COUNT} transactions.")))
}

result! {
    /// The answer of `submitpackage`.
    struct PackageAnswer {
        /// the result for the package; "success": all transactions were accepted or are already in the mempool
        package_msg: String,
        /// the result of every submitted transaction
        #[name("tx-results")]
        #[each(key "wtxid" "transaction wtxid")]
        tx_results: Map<String, SubmittedTx>,
        /// transaction ids of replaced transactions
        #[name("replaced-transactions")]
        #[each("the transaction id")]
        replaced: Option<Vec<Txid>>,
    }
}

result! {
    struct SubmittedTx {
        /// the transaction hash in hex
        txid: Txid,
        /// the wtxid of a transaction in the mempool with the same txid; the submitted one was ignored
        #[name("other-wtxid")]
        other_wtxid: Option<Wtxid>,
        /// sigops-adjusted virtual transaction size
        vsize: Option<i64>,
        /// transaction fees
        fees: Option<SubmittedFees>,
        /// why it was not accepted; "package-not-validated" if the package was refused before
        error: Option<String>,
    }
}

result! {
    struct SubmittedFees {
        /// transaction fee in BTC
        base: Amount,
        /// the effective feerate in BTC/kvB, if the transaction was not already in the mempool
        #[name("effective-feerate")]
        feerate: Option<Amount>,
        /// the transactions whose fees and vsizes are included in effective-feerate
        #[name("effective-includes")]
        #[each("transaction wtxid in hex")]
        includes: Option<Vec<Wtxid>>,
    }
}

impl SubmittedTx {
    fn of(txid: Txid, result: Option<&TxResult>) -> SubmittedTx {
        let empty = SubmittedTx { txid, other_wtxid: None, vsize: None, fees: None, error: None };
        match result {
            None => SubmittedTx { error: Some("package-not-validated".to_owned()), ..empty },
            Some(TxResult::Rejected(rejection)) => SubmittedTx { error: Some(rejection.state()), ..empty },
            Some(TxResult::OtherWitness(wtxid)) => SubmittedTx { other_wtxid: Some(*wtxid), ..empty },
            Some(TxResult::InPool { vsize, fee }) => {
                let fees = SubmittedFees { base: Amount(fee.0), feerate: None, includes: None };
                SubmittedTx { vsize: Some(*vsize), fees: Some(fees), ..empty }
            }
            Some(TxResult::Accepted(accepted)) => {
                let fees = SubmittedFees {
                    base: Amount(accepted.fee.0),
                    feerate: Some(Amount(accepted.effective_feerate.fee_per_kvb())),
                    includes: Some(accepted.effective_of.clone()),
                };
                SubmittedTx { vsize: Some(accepted.vsize), fees: Some(fees), ..empty }
            }
        }
    }
}

fn submitpackage(call: &Call<'_>) -> Result<PackageAnswer, RpcError> {
    check_count(call)?;
    let feerate_max = Some(max_feerate(call)?).filter(|rate| *rate != FeeRate::ZERO);
    let burn_max = max_burn(call)?;
    let txs = package(call, |tx| check_burn(tx, burn_max))?;
    let views: Vec<Tx<'_>> = txs.iter().map(|tx| tx.view()).collect();
    if txs.len() > 1 && !is_child_with_parents_tree(&views) {
        let words = "package topology disallowed. not child-with-parents or parents depend on each other.";
        return Err(RpcError::new(code::VERIFY_ERROR, words));
    }
    let mempool = call.context.mempool()?;
    let found = mempool.submit_package(txs.clone(), feerate_max).map_err(|error| failed(&error))?;
    broadcast_all(call, mempool, &txs)?;
    let mut replaced = BTreeSet::new();
    let mut tx_results: Vec<(String, SubmittedTx)> = Vec::with_capacity(txs.len());
    for tx in views {
        let (wtxid, result) = (tx.wtxid(), found.results.get(&tx.wtxid()));
        if let Some(TxResult::Accepted(accepted)) = result {
            replaced.extend(accepted.replaced.iter().map(|entry| entry.txid()));
        }
        tx_results.push((wtxid.to_string(), SubmittedTx::of(tx.txid(), result)));
    }
    Ok(PackageAnswer {
        package_msg: found.rejection.map_or_else(|| "success".to_owned(), |rejection| rejection.state()),
        tx_results: Map(tx_results),
        replaced: Some(replaced.into_iter().collect()),
    })
}

result! {
    /// An element of the answer of `testmempoolaccept`.
    struct TestedTx {
        /// the transaction hash in hex
        txid: Txid,
        /// the transaction witness hash in hex
        wtxid: Wtxid,
        /// package validation error, if any (only possible if rawtxs had more than 1 transaction)
        #[name("package-error")]
        package_error: Option<String>,
        /// whether this tx would be accepted to the mempool and pass maxfeerate; missing if another tx failed before
        allowed: Option<bool>,
        /// virtual transaction size as defined in BIP 141 (only present when 'allowed' is true)
        vsize: Option<i64>,
        /// transaction fees (only present if 'allowed' is true)
        fees: Option<TestedFees>,
        /// rejection reason (only present when 'allowed' is false)
        #[name("reject-reason")]
        reason: Option<String>,
        /// rejection details (only present when 'allowed' is false and rejection details exist)
        #[name("reject-details")]
        details: Option<String>,
    }
}

result! {
    struct TestedFees {
        /// transaction fee in BTC
        base: Amount,
        /// the effective feerate in BTC/kvB, with modified fees and package feerates
        #[name("effective-feerate")]
        feerate: Amount,
        /// transactions whose fees and vsizes are included in effective-feerate
        #[name("effective-includes")]
        #[each("transaction wtxid in hex")]
        includes: Vec<Wtxid>,
    }
}

impl TestedTx {
    fn allow(&mut self, accepted: &Accepted) {
        self.allowed = Some(true);
        self.vsize = Some(accepted.vsize);
        self.fees = Some(TestedFees {
            base: Amount(accepted.fee.0),
            feerate: Amount(accepted.effective_feerate.fee_per_kvb()),
            includes: accepted.effective_of.clone(),
        });
    }

    fn refuse(&mut self, rejection: &Rejection) {
        self.allowed = Some(false);
        if rejection.result == ValidationResult::MissingInputs {
            self.reason = Some("missing-inputs".to_owned());
        } else {
            self.reason = Some(rejection.reject_reason());
            self.details = Some(rejection.state());
        }
    }
}

fn testmempoolaccept(call: &Call<'_>) -> Result<Vec<TestedTx>, RpcError> {
    check_count(call)?;
    let feerate_max = max_feerate(call)?;
    let txs = package(call, |_| Ok(()))?;
    let found = test(call.context.mempool()?, &txs).map_err(|error| failed(&error))?;
    let of_package = found.rejection.as_ref().filter(|found| found.result == ValidationResult::PackagePolicy);
    let mut tested = Vec::with_capacity(txs.len());
    // After a transaction whose fee is too high, the others would not be submitted.
    let mut is_over = false;
    for tx in txs.iter().map(|tx| tx.view()) {
        let (txid, wtxid, package_error) = (tx.txid(), tx.wtxid(), of_package.map(Rejection::state));
        let mut answer = TestedTx {
            txid,
            wtxid,
            package_error,
            allowed: None,
            vsize: None,
            fees: None,
            reason: None,
            details: None,
        };
        match found.results.get(&wtxid) {
            _ if is_over => {}
            Some(TxResult::Accepted(accepted)) => {
                let fee_max = feerate_max.fee(accepted.vsize);
                is_over = fee_max != 0 && accepted.fee.0 > fee_max;
                if is_over {
                    answer.allowed = Some(false);
                    answer.reason = Some("max-fee-exceeded".to_owned());
                } else {
                    answer.allow(accepted);
                }
            }
            Some(TxResult::Rejected(rejection)) => answer.refuse(rejection),
            Some(TxResult::InPool { .. } | TxResult::OtherWitness(_)) | None => {}
        }
        tested.push(answer);
    }
    Ok(tested)
}

/// One transaction is tested by itself, several as a package.
fn test(mempool: &Mempool, txs: &[Arc<Transaction>]) -> Result<PackageResult, SubmitError> {
    let [tx] = txs else { return mempool.test_package(txs.to_vec()) };
    let result = match mempool.submit(Arc::clone(tx), true) {
        Ok(accepted) => TxResult::Accepted(accepted),
        Err(SubmitError::Rejected(rejection)) => TxResult::Rejected(rejection),
        Err(error) => return Err(error),
    };
    Ok(PackageResult { rejection: None, results: [(tx.view().wtxid(), result)].into() })
}
