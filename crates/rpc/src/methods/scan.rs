//! `scantxoutset`: searches the UTXO set for the outputs of descriptors.
//!
//! Input: an action, descriptors. Output: the coins found. Only one search runs at a time in a node; other calls may
//! query its progress and abort it. Cost: reads every coin; blocks wait only for the checkpoint before it.

use super::descriptor::{UNDERSTOOD, outputs_of};
use crate::error::RpcError;
use crate::json::Amount;
use crate::method::{Arg, Call, Category, Kind, Method, returns};
use crate::output::Hex;
use crate::result::{cases, result};
use crate::scan_state::RunningScan;
use lydian_consensus::Coin;
use lydian_engine::EngineError;
use lydian_primitives::{BlockHash, Height, OutPoint, Txid};
use std::collections::HashMap;
use std::ops::ControlFlow;

pub(crate) const METHODS: &[Method] = &[Method {
    name: "scantxoutset",
    category: Category::Blockchain,
    help: "Searches the UTXO set for outputs of descriptors. Reads the whole set.",
    args: &[
        Arg::new("action", Kind::Text, "\"start\"; or \"abort\" or \"status\" for a running search"),
        Arg {
            oneline: "[scanobjects,...]",
            ..Arg::new("scanobjects", Kind::Array, "the descriptors to search for").omitted().of(&[
                Arg::new("descriptor", Kind::Text, "a descriptor").omitted(),
                Arg::new("", Kind::Object, "a descriptor with its range").omitted().of(&[
                    Arg::new("desc", Kind::Text, "the descriptor"),
                    Arg::new("range", Kind::Range, "the end, or [begin,end], of the range to derive").default("1000"),
                ]),
            ])
        },
    ],
    examples: &["start '[\"raw(76a91411b366edfc0a8b66feebae5c2e25a7b6a5d1cf3188ac)\"]'"],
    remark: UNDERSTOOD,
    call: &returns("", scantxoutset),
}];

cases! {
    /// The answer of `scantxoutset`.
    enum ScanResult {
        #[when("when action=='start'; only returns after scan completes")]
        Scan(Scan),
        /// true if a scan will be aborted
        #[when("when action=='abort'")]
        Abort(bool),
        #[when("when action=='status' and a scan is currently in progress")]
        Status(Status),
        #[when("when action=='status' and no scan is in progress - possibly already completed")]
        NoScan(()),
    }
}

result! {
    struct Status {
        /// approximate percent complete
        progress: u8,
    }
}

result! {
    struct Scan {
        /// whether the scan was completed
        success: bool,
        /// the number of unspent transaction outputs scanned
        txouts: u64,
        /// the block height at which the scan was done
        height: u32,
        /// the hash of the block at the tip of the chain
        bestblock: BlockHash,
        unspents: Vec<Unspent>,
        /// the total amount of all found unspent outputs in BTC
        total_amount: Amount,
    }
}

result! {
    struct Unspent {
        /// the transaction id
        txid: Txid,
        /// the vout value
        vout: u32,
        /// the output script
        #[name("scriptPubKey")]
        script: Hex<Box<[u8]>>,
        /// a specialized descriptor for the matched output script
        desc: String,
        /// the total amount in BTC of the unspent output
        amount: Amount,
        /// whether this is a coinbase output
        coinbase: bool,
        /// height of the unspent transaction output
        height: u32,
        /// blockhash of the unspent transaction output
        blockhash: BlockHash,
        /// number of confirmations of the unspent transaction output when the scan was done
        confirmations: u32,
    }
}

fn scantxoutset(call: &Call<'_>) -> Result<ScanResult, RpcError> {
    let state = &call.context.scan;
    match call.text(0)? {
        "start" => {}
        "status" => {
            let status = state.percent().map(|progress| ScanResult::Status(Status { progress }));
            return Ok(status.unwrap_or(ScanResult::NoScan(())));
        }
        "abort" => return Ok(ScanResult::Abort(state.abort())),
        other => return Err(RpcError::parameter(format!("Invalid action '{other}'"))),
    }
    let Some(running) = state.begin() else {
        return Err(RpcError::parameter("Scan already in progress, use action \"abort\" or \"status\""));
    };
    if call.params.len() < 2 {
        return Err(RpcError::misc("scanobjects argument is required for the start action"));
    }
    let chain = call.context.settings.params.chain;
    // Each wanted script with the first descriptor that describes it.
    let mut wanted: HashMap<Vec<u8>, String> = HashMap::new();
    for object in call.arg(1).as_array()? {
        for output in outputs_of(object, chain)? {
            wanted.entry(output.script).or_insert(output.descriptor);
        }
    }
    let engine = call.context.engine()?;
    let (tip, coins) = engine.pin_coins()?;
    let mut search = Search { wanted, found: Vec::new(), coins: coins.len(), txouts: 0, total: 0 };
    let end =
        coins.each(&mut |outpoint, coin| search.visit(&running, call, outpoint, coin)).map_err(EngineError::from)?;
    drop(coins);
    // As in Core, the outputs are ordered by outpoint.
    search.found.sort_unstable_by_key(|(outpoint, ..)| *outpoint);
    let (success, txouts, total) = (end.is_continue(), search.txouts, search.total);
    // The chain of the search's tip, which may have been left since.
    let id = engine.header_info(&tip.hash).map(|info| info.id);
    let hash_at = |height| {
        let info = id.and_then(|id| engine.ancestor_info(id, Height(height)));
        info.map_or(BlockHash::ZERO, |info| info.node.hash)
    };
    let unspents =
        search.found.into_iter().map(|(outpoint, coin, desc)| unspent(&outpoint, &coin, desc, tip.height.0, &hash_at));
    let unspents = unspents.collect();
    let (height, bestblock) = (tip.height.0, tip.hash);
    Ok(ScanResult::Scan(Scan { success, txouts, height, bestblock, unspents, total_amount: Amount(total) }))
}

struct Search {
    wanted: HashMap<Vec<u8>, String>,
    found: Vec<(OutPoint, Coin, String)>,
    /// The number of all coins, and of those visited.
    coins: u64,
    txouts: u64,
    total: i64,
}

impl Search {
    /// Breaks if the search must end.
    fn visit(
        &mut self,
        running: &RunningScan<'_>,
        call: &Call<'_>,
        outpoint: &OutPoint,
        coin: &Coin,
    ) -> ControlFlow<()> {
        if self.txouts.is_multiple_of(256) {
            let percent = (self.txouts * 100 + self.coins / 2) / self.coins.max(1);
            running.set_percent(u8::try_from(percent).unwrap_or(100));
            if running.must_end() || call.context.is_stopping() {
                return ControlFlow::Break(());
            }
        }
        self.txouts += 1;
        if let Some(desc) = self.wanted.get(&*coin.script_pubkey) {
            self.total += coin.value.0;
            self.found.push((*outpoint, coin.clone(), desc.clone()));
        }
        ControlFlow::Continue(())
    }
}

fn unspent(
    outpoint: &OutPoint,
    coin: &Coin,
    desc: String,
    tip_height: u32,
    hash_at: &dyn Fn(u32) -> BlockHash,
) -> Unspent {
    Unspent {
        txid: outpoint.txid,
        vout: outpoint.vout,
        script: Hex(coin.script_pubkey.clone()),
        desc,
        amount: Amount(coin.value.0),
        coinbase: coin.is_coinbase,
        height: coin.height.0,
        blockhash: hash_at(coin.height.0),
        confirmations: (tip_height + 1).saturating_sub(coin.height.0),
    }
}
