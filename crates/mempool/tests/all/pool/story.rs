//! Random transactions: chained, replacing, packages, TRUC, dust, invalid, floods; with blocks and reorganisations
//! between. After each, both pools have given the same answer; every few, their content is the same.

use super::compare::{compare, satoshi};
use super::maker::{Maker, Output};
use super::world::{World, script, to_hex, witness};
use lydian_mempool::SubmitError;
use lydian_mempool::policy::{FeeRate, Settings, is_child_with_parents_tree};
use lydian_mempool::pool::TxResult;
use lydian_primitives::build::{MutInput, MutOutput, MutTx};
use lydian_primitives::{Amount, OutPoint, Transaction};
use lydian_stdx::SplitMix64;
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

struct Story {
    maker: Maker,
    world: World,
    /// Each transaction that was sent, in hexadecimal, by txid.
    sent: Vec<String>,
    answers: BTreeMap<String, u64>,
}

impl Deref for Story {
    type Target = Maker;

    fn deref(&self) -> &Maker {
        &self.maker
    }
}

impl DerefMut for Story {
    fn deref_mut(&mut self) -> &mut Maker {
        &mut self.maker
    }
}

/// The numbers that a story is told with.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) steps: u64,
    pub(super) data_max: usize,
    pub(super) small_percent: usize,
    pub(super) seed: u64,
}

impl Story {
    /// Confirms many outputs, so that there are many clusters.
    fn fan_out(&mut self) {
        let count = if self.small_percent > 50 { 3 } else { 10 };
        for _ in 0..count {
            let from = self.outputs.remove(0);
            let part = from.value / 101;
            let output = || MutOutput { value: Amount(part), script_pubkey: script() };
            let input =
                MutInput { prevout: from.outpoint, script_sig: Vec::new(), sequence: u32::MAX, witness: witness() };
            let outputs = (0..100).map(|_| output()).collect();
            let tx = MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 }.to_transaction().unwrap();
            self.world.ask("sendrawtransaction", json!([to_hex(tx.as_bytes()), 0]));
            self.world.pool.submit(Arc::new(tx.clone()), false).unwrap();
            self.learn(&tx);
        }
        self.world.generate(1);
    }

    fn count(&mut self, answer: &str) {
        *self.answers.entry(answer.to_owned()).or_default() += 1;
    }

    /// Sends a transaction to both.
    fn send(&mut self, tx: Transaction, when: &str) {
        let bytes = to_hex(tx.as_bytes());
        // Few are spent although they may not exist.
        let is_learnt = self.chance(5);
        let tx = Arc::new(tx);
        let txid = tx.view().txid();
        let tested = self.world.ask("testmempoolaccept", json!([[bytes], 0]));
        let ours = self.world.pool.submit(Arc::clone(&tx), true);
        let is_test_equal = match &ours {
            Ok(accepted) => {
                let fee = &tested[0]["fees"];
                let is_fee = (fee["base"].as_f64().unwrap_or(-1.0) * 1e8).round() == accepted.fee.0 as f64;
                tested[0]["allowed"] == json!(true) && tested[0]["vsize"] == json!(accepted.vsize) && is_fee
            }
            Err(SubmitError::Rejected(rejection)) => {
                let reason = match rejection.reject_reason() {
                    reason if reason == "bad-txns-inputs-missingorspent" => "missing-inputs".to_owned(),
                    reason => reason,
                };
                let details = tested[0]["reject-details"].as_str().unwrap_or_default();
                let is_detail = details == rejection.state() || details.is_empty();
                tested[0]["reject-reason"] == json!(reason) && is_detail
            }
            Err(_) => false,
        };
        assert!(is_test_equal, "{when}: {tested}, ours {ours:?}");
        let theirs = self.world.core.call("sendrawtransaction", &json!([bytes, 0, 21]));
        let ours = self.world.pool.submit(Arc::clone(&tx), false);
        if ours.is_ok() || is_learnt {
            self.learn(&tx);
        }
        match (&theirs, &ours) {
            (Ok(_), Ok(accepted)) => {
                let kind = if accepted.replaced.is_empty() { "accepted" } else { "accepted, replacing" };
                self.count(kind);
                self.sent.push(bytes);
            }
            (Err(error), Err(SubmitError::Rejected(rejection))) => {
                let text = error.to_string();
                let reason = rejection.reject_reason();
                // `sendrawtransaction` looks for the outputs first.
                let is_known = reason == "txn-already-known" && text.contains("outputs already in utxo set");
                assert!(is_known || text.contains(&reason), "{when}: {text}, ours {rejection}");
                self.count(&reason);
            }
            // Core answers with the txid if it is in the pool already.
            (Ok(_), Err(SubmitError::Rejected(rejection))) if rejection.reject_reason() == "txn-already-in-mempool" => {
                self.count("known");
            }
            _ => panic!("{when}: {txid} {theirs:?}, ours {ours:?}"),
        }
    }

    /// Sends a child with parents that pay little.
    fn send_package(&mut self, when: &str) {
        let parents: Vec<Transaction> = (0..1 + self.below(3))
            .map(|_| {
                let inputs = [self.output()];
                let version = if self.chance(40) { 3 } else { 2 };
                let rate = if self.chance(60) { 0 } else { i64::try_from(self.below(2_000)).unwrap() };
                self.transaction(&inputs, rate, version)
            })
            .collect();
        let inputs: Vec<Output> = parents
            .iter()
            .map(|parent| {
                let view = parent.view();
                let outpoint = OutPoint { txid: view.txid(), vout: 0 };
                Output { outpoint, value: view.output(0).value.0, version: view.version() }
            })
            .collect();
        let rate = i64::try_from(self.below(100_000)).unwrap();
        let version = if self.chance(90) { inputs[0].version } else { 2 };
        let child = self.transaction(&inputs, rate, version);
        let txs: Vec<Transaction> = parents.into_iter().chain([child]).collect();
        let bytes: Vec<String> = txs.iter().map(|tx| to_hex(tx.as_bytes())).collect();
        let txs: Vec<Arc<Transaction>> = txs.into_iter().map(Arc::new).collect();
        let theirs = self.world.core.call("submitpackage", &json!([bytes, 0, 21]));
        if !is_child_with_parents_tree(&txs.iter().map(|tx| tx.view()).collect::<Vec<_>>()) {
            // `submitpackage` refuses it.
            assert!(theirs.unwrap_err().to_string().contains("package topology disallowed"), "{when}");
            return self.count("package topology disallowed");
        }
        let ours = self.world.pool.submit_package(txs.clone(), None).unwrap();
        let theirs = match theirs {
            Ok(theirs) => theirs,
            Err(error) => {
                let rejection = ours.rejection.as_ref().unwrap();
                assert!(error.to_string().contains(&rejection.reject_reason()), "{when}: {error}, ours {ours:?}");
                return self.count("package refused");
            }
        };
        let message = ours.rejection.as_ref().map_or("success".to_owned(), |rejection| rejection.state());
        assert_eq!(theirs["package_msg"], json!(message), "{when}: {theirs}, ours {ours:?}");
        for tx in &txs {
            let wtxid = tx.view().wtxid();
            let their = &theirs["tx-results"][wtxid.to_string()];
            let error = |text: &str| their["error"] == json!(text);
            let is_equal = match ours.results.get(&wtxid) {
                None => error("package-not-validated"),
                Some(TxResult::Rejected(rejection)) => error(&rejection.state()),
                Some(TxResult::OtherWitness(other)) => their["other-wtxid"] == json!(other.to_string()),
                Some(TxResult::InPool { vsize, .. }) => their["vsize"] == json!(vsize),
                Some(TxResult::Accepted(accepted)) => {
                    let includes = accepted.effective_of.iter().map(ToString::to_string).collect::<Vec<_>>();
                    their["vsize"] == json!(accepted.vsize)
                        && satoshi(&their["fees"]["base"]) == accepted.fee.0
                        && satoshi(&their["fees"]["effective-feerate"]) == accepted.effective_feerate.fee_per_kvb()
                        && their["fees"]["effective-includes"] == json!(includes)
                }
            };
            assert!(is_equal, "{when}: {their}, ours {:?}", ours.results.get(&wtxid));
        }
        for tx in &txs {
            if self.world.pool.snapshot().get(&tx.view().txid()).is_some() {
                self.learn(tx);
            }
        }
        let reason = ours.rejection.map_or("package accepted".to_owned(), |rejection| rejection.reject_reason());
        self.count(&reason);
    }

    fn prioritise(&mut self) {
        let Some(output) = Some(self.output()).filter(|output| output.version > 0) else { return };
        let delta = i64::try_from(self.below(20_000)).unwrap() - 8_000;
        let txid = output.outpoint.txid;
        self.world.ask("prioritisetransaction", json!([txid.to_string(), 0, delta]));
        self.world.pool.prioritise(&txid, delta);
        self.count("prioritised");
    }

    /// Blocks: Core's best, an empty one, or some transactions of those that were sent.
    fn mine(&mut self) {
        match self.below(4) {
            0 => {
                self.world.generate_with(&[]);
            }
            1 => {
                // The pool's transactions in their order, up to a place.
                let order = self.world.ask("getrawmempool", json!([false]));
                let order = order.as_array().unwrap();
                let count = self.below(order.len().min(30) + 1);
                let txs: Vec<String> = order[..count].iter().map(|txid| txid.as_str().unwrap().to_owned()).collect();
                self.world.generate_with(&txs);
            }
            2 => {
                // A transaction that need not be in the pool, so that it conflicts with some there.
                let sent = self.sent.len();
                if sent > 0 {
                    let place = self.below(sent);
                    let tx = self.sent[place].clone();
                    self.world.generate_with(&[tx]);
                }
            }
            _ => self.world.generate(1),
        }
        self.count("mined");
        let tip = u64::from(self.world.engine.tip().height.0);
        let (outpoint, value) = self.world.coinbase(tip - 100);
        if self.outputs.iter().all(|output| output.outpoint != outpoint) {
            self.outputs.push(Output { outpoint, value, version: 0 });
        }
    }

    /// Lets Core put its clusters in order, as any question about chunks does. Else its usage lacks the chunks of a
    /// cluster that lost a transaction until the next one is accepted, and the next refused package may evict less.
    fn order(&mut self) {
        self.world.ask("getmempoolfeeratediagram", json!([]));
    }

    fn step(&mut self, when: &str) {
        let reorganise_percent = if self.small_percent > 50 { 40 } else { 8 };
        match self.below(100) {
            0 if self.small_percent > 50 || self.chance(30) => self.mine(),
            1 if self.chance(reorganise_percent) => {
                let depth = 1 + self.random.below(3) as u64;
                self.world.leave(depth);
                compare(&mut self.world, &format!("{when}, {depth} blocks left"));
                // Else the block would be the one that was left.
                self.world.pass(600);
                if self.small_percent > 50 {
                    self.world.generate(depth + 1);
                } else {
                    // The pool stays full.
                    for _ in 0..=depth {
                        self.world.generate_with(&[]);
                    }
                }
                self.count("reorganised");
            }
            3..=5 => self.prioritise(),
            6 => {
                let most = if self.chance(10) { 200_000 } else { 4_000 };
                let seconds = 1 + self.below(most);
                self.world.pass(i64::try_from(seconds).unwrap());
                self.count("time");
            }
            7..=16 => {
                self.send_package(when);
                self.order();
            }
            _ => {
                let tx = self.random_transaction();
                self.send(tx, when);
                self.order();
            }
        }
    }
}

/// One world.
pub(super) fn tell(test: &str, options: &[&str], settings: Settings, shape: Shape) -> Option<BTreeMap<String, u64>> {
    let mut world = World::new(test, options, settings)?;
    let outputs = (1..=super::world::BLOCKS - 95)
        .map(|height| {
            let (outpoint, value) = world.coinbase(height);
            Output { outpoint, value, version: 0 }
        })
        .collect();
    let Shape { data_max, small_percent, .. } = shape;
    let maker = Maker { random: SplitMix64::new(shape.seed), outputs, data_max, small_percent };
    let mut story = Story { maker, world, sent: Vec::new(), answers: BTreeMap::new() };
    story.fan_out();
    for step in 0..shape.steps {
        let when = format!("at step {step} of seed {}", shape.seed);
        story.step(&when);
        if step % 20 == 0 {
            let count = compare(&mut story.world, &when) as u64;
            let largest = story.answers.entry(LARGEST_POOL.to_owned()).or_default();
            *largest = count.max(*largest);
        }
    }
    compare(&mut story.world, "at the end");
    Some(story.answers)
}

/// A key of the counted answers that is no answer.
const LARGEST_POOL: &str = "largest pool";
/// Steps of one world. Then another begins, with the next seed.
const WORLD_STEPS: u64 = 5_000;

/// Worlds until all steps are done. Returns how often each answer was given.
fn tell_worlds(
    test: &str,
    options: &[&str],
    settings: &Settings,
    shape: Shape,
    share: u64,
) -> Option<BTreeMap<String, u64>> {
    let all = number_or("LYDIAN_MEMPOOL_STEPS", 10_000).div_ceil(share);
    let mut answers: BTreeMap<String, u64> = BTreeMap::new();
    let mut done = 0;
    for seed in number_or("LYDIAN_MEMPOOL_SEED", 1).. {
        let steps = WORLD_STEPS.min(all - done);
        for (answer, count) in tell(test, options, settings.clone(), Shape { steps, seed, ..shape })? {
            let counted = answers.entry(answer.clone()).or_default();
            *counted = if answer == LARGEST_POOL { count.max(*counted) } else { count + *counted };
        }
        done += steps;
        eprintln!("{test}: {done} steps of {all}, seed {seed} done: {answers:?}");
        if done == all {
            break;
        }
    }
    Some(answers)
}

fn number_or(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|number| number.parse().ok()).unwrap_or(default)
}

/// Half of `LYDIAN_MEMPOOL_STEPS`.
#[test]
fn the_same_answers_and_content_as_core() {
    let shape = Shape { data_max: 3_000, small_percent: 80, steps: 0, seed: 0 };
    let test = "the_same_answers_and_content_as_core";
    let Some(answers) = tell_worlds(test, &[], &Settings::default(), shape, 2) else { return };
    for kind in ["accepted", "accepted, replacing", "package accepted", "reorganised", "insufficient fee"] {
        assert!(answers.contains_key(kind), "{kind}: {answers:?}");
    }
}

/// A quarter.
#[test]
fn a_full_pool_evicts_what_core_evicts() {
    let shape = Shape { data_max: 95_000, small_percent: 10, steps: 0, seed: 0 };
    let settings = Settings { mempool_bytes_max: 5_000_000, ..Settings::default() };
    let test = "a_full_pool_evicts_what_core_evicts";
    let Some(answers) = tell_worlds(test, &["-maxmempool=5"], &settings, shape, 4) else { return };
    assert!(answers.contains_key("mempool min fee not met") || answers.contains_key("mempool full"), "{answers:?}");
}

/// A quarter.
#[test]
fn small_clusters_and_other_fees() {
    let shape = Shape { data_max: 6_000, small_percent: 80, steps: 0, seed: 0 };
    let options =
        ["-limitclustercount=5", "-limitclustersize=9", "-minrelaytxfee=0.00002", "-incrementalrelayfee=0.00001"];
    let settings = Settings {
        cluster_count_max: 5,
        cluster_vbytes_max: 9_000,
        min_relay_fee: FeeRate::per_kvb(2_000),
        incremental_relay_fee: FeeRate::per_kvb(1_000),
        ..Settings::default()
    };
    let test = "small_clusters_and_other_fees";
    let Some(answers) = tell_worlds(test, &options, &settings, shape, 4) else { return };
    assert!(answers.contains_key("too-large-cluster"), "{answers:?}");
}
