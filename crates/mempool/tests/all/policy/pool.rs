//! Transactions against others in the mempool: known ones, conflicts, replacement, TRUC, dust, clusters, minimum fee.
//! Both sides submit what both accept.

use super::draft::{Draft, Fee};
use super::duel::{Counts, ask, compare, count};
use super::locks::Lock;
use super::model::{Accepted, Model};
use super::world::{Fund, World, dropping, open_lock, output, spend_open};
use lydian_mempool::policy::{BrokenRule, FeeRate, PolicyRule, Rejection, Settings};
use lydian_oracle::Daemon;
use lydian_oracle::generate::Random;
use lydian_primitives::build::MutTx;
use lydian_primitives::{Amount, OutPoint, Transaction, to_hex};
use serde_json::json;

/// The same pool on both sides.
pub struct Pair<'w> {
    pub core: Daemon,
    pub model: Model<'w>,
    pub counts: Counts,
}

impl<'w> Pair<'w> {
    pub fn new(test: &str, world: &'w World, options: &[&str], settings: Settings) -> Option<Pair<'w>> {
        let core = world.daemon(test, options)?;
        Some(Pair { core, model: Model::new(world, settings), counts: Counts::new() })
    }

    /// Compares the verdicts on a transaction.
    pub fn ask(&mut self, what: &str, tx: &Transaction) -> Result<Accepted, Rejection> {
        let ours = self.model.check(tx.view());
        compare(what, &ours, &ask(&mut self.core, &[tx])[0]);
        count(&mut self.counts, &ours);
        ours
    }

    /// Compares, and expects a broken rule.
    pub fn refuse(&mut self, rule: PolicyRule, tx: &Transaction) {
        let broken = self.ask(rule.info().name, tx).err().map(|rejection| rejection.rule);
        assert_eq!(broken, Some(BrokenRule::Policy(rule)));
    }

    /// Compares, expects that both accept, and submits to both. Returns the outputs.
    pub fn submit(&mut self, what: &str, tx: Transaction) -> Vec<OutPoint> {
        let accepted = self.ask(what, &tx).unwrap_or_else(|rejection| panic!("{what}: {rejection}"));
        self.core.call("sendrawtransaction", &json!([to_hex(tx.as_bytes()), 0, 21_000_000])).unwrap();
        let txid = tx.view().txid();
        let outputs = (0..).zip(tx.view().outputs()).map(|(vout, _)| OutPoint { txid, vout }).collect();
        self.model.submit(tx, &accepted);
        outputs
    }

    /// A payment from these outputs, all with the open lock, to outputs with it.
    pub fn payment(&self, version: u32, from: &[OutPoint], outputs: i64, fee: i64) -> Transaction {
        pay(self, version, from, outputs, fee).to_transaction().unwrap()
    }
}

/// The payment before it is encoded.
pub fn pay(pair: &Pair<'_>, version: u32, from: &[OutPoint], outputs: i64, fee: i64) -> MutTx {
    use lydian_mempool::policy::PoolView;
    let value: i64 = pair.model.coins(from).into_iter().flatten().map(|coin| coin.value.0).sum();
    let each = |_| output((value - fee) / outputs, open_lock().script_pubkey());
    let mut tx = MutTx {
        version,
        inputs: from.iter().copied().map(spend_open).collect(),
        outputs: (0..outputs).map(each).collect(),
        lock_time: 0,
    };
    tx.outputs[0].value.0 += (value - fee) % outputs;
    tx
}

fn outpoints(funds: &[Fund]) -> Vec<OutPoint> {
    funds.iter().map(|fund| fund.outpoint).collect()
}

/// A payment of one input and one output has 96 virtual bytes, and pays at least 10 satoshi.
const FEE: i64 = 500;

#[test]
fn known_transactions_and_replacement() {
    let world = World::new();
    let test = "known_transactions_and_replacement";
    let Some(mut pair) = Pair::new(test, &world, &[], Settings::default()) else { return };
    let coins = outpoints(&world.funds(&open_lock()));
    let first = pair.payment(2, &coins[..1], 2, FEE);
    let made = pair.submit("a payment", first.clone());
    pair.refuse(PolicyRule::AlreadyInMempool, &first);
    // The same txid with two witnesses.
    let drop = world.funds(&Lock::Wsh(dropping(1)))[0].outpoint;
    let mut with_item = pay(&pair, 2, &[drop], 1, FEE);
    with_item.inputs[0].witness = vec![vec![1], dropping(1)];
    pair.submit("a payment with an element", with_item.to_transaction().unwrap());
    with_item.inputs[0].witness[0] = vec![2];
    pair.refuse(PolicyRule::SameNonwitnessData, &with_item.to_transaction().unwrap());
    // Replacement: fees below those of the first, without relay, and at the limit.
    let replacement = |pair: &Pair<'_>, fee| pair.payment(1, &coins[..1], 2, fee);
    let vsize = i64::try_from(first.view().weight().div_ceil(4)).unwrap();
    let relay = FeeRate::per_kvb(100).fee(vsize);
    let tx = replacement(&pair, FEE - 1);
    pair.refuse(PolicyRule::ReplacementFee, &tx);
    let tx = replacement(&pair, FEE + relay - 1);
    pair.refuse(PolicyRule::ReplacementRelayFee, &tx);
    let tx = replacement(&pair, FEE + relay);
    pair.ask("pays for its relay", &tx).unwrap();
    let both = pair.payment(2, &[coins[0], made[0]], 1, 100 * FEE);
    pair.refuse(PolicyRule::SpendsConflicting, &both);
    // The child leaves with its parent, and its fee counts.
    let child = pair.payment(2, &made[..1], 1, 4 * FEE);
    pair.submit("a child", child);
    let tx = replacement(&pair, 5 * FEE - 1);
    pair.refuse(PolicyRule::ReplacementFee, &tx);
    // Prioritised: the modified fee counts.
    let tx = replacement(&pair, 5 * FEE);
    let txid = tx.view().txid();
    pair.refuse(PolicyRule::ReplacementRelayFee, &tx);
    pair.core.call("prioritisetransaction", &json!([txid.to_string(), 0, 1000])).unwrap();
    pair.model.deltas.insert(txid, Amount(1000));
    pair.submit("a prioritised replacement", tx);
    let dusty = {
        let mut tx = pay(&pair, 2, &coins[2..3], 1, 0);
        tx.outputs.push(output(0, Lock::Anchor.script_pubkey()));
        tx.to_transaction().unwrap()
    };
    pair.refuse(PolicyRule::MinRelayFee, &dusty);
    let txid = dusty.view().txid();
    pair.core.call("prioritisetransaction", &json!([txid.to_string(), 0, 1000])).unwrap();
    pair.model.deltas.insert(txid, Amount(1000));
    pair.refuse(PolicyRule::DustFee, &dusty);
}

/// limit: MAX_REPLACEMENT_CANDIDATES at
/// limit: MAX_REPLACEMENT_CANDIDATES above
#[test]
fn clusters_at_their_limits() {
    let world = World::new();
    let Some(mut pair) = Pair::new("clusters_at_their_limits", &world, &[], Settings::default()) else { return };
    let coins = outpoints(&world.funds(&open_lock()));
    for coin in &coins[..101] {
        let tx = pair.payment(2, &[*coin], 1, FEE);
        pair.submit("one of many", tx);
    }
    let tx = pair.payment(2, &coins[..101], 1, 1000 * FEE);
    pair.refuse(PolicyRule::ReplacementClusters, &tx);
    let tx = pair.payment(2, &coins[..100], 1, 1000 * FEE);
    pair.submit("replaces one hundred", tx);
    // A chain of 64, and one more.
    let mut last = vec![coins[110]];
    for _ in 0..64 {
        let tx = pair.payment(2, &last, 1, FEE);
        last = pair.submit("a link", tx);
    }
    let tx = pair.payment(2, &last, 1, FEE);
    pair.refuse(PolicyRule::ClusterLimit, &tx);
}

/// limit: TRUC_ANCESTOR_LIMIT at
/// limit: TRUC_ANCESTOR_LIMIT above
/// limit: TRUC_DESCENDANT_LIMIT at
/// limit: TRUC_DESCENDANT_LIMIT above
/// limit: TRUC_CHILD_MAX_VSIZE at
/// limit: TRUC_CHILD_MAX_VSIZE above
#[test]
fn truc_children_and_siblings() {
    let world = World::new();
    let Some(mut pair) = Pair::new("truc_children_and_siblings", &world, &[], Settings::default()) else { return };
    let coins = outpoints(&world.funds(&open_lock()));
    let tx = pair.payment(2, &coins[..1], 2, FEE);
    let plain = pair.submit("version 2", tx);
    let tx = pair.payment(3, &coins[1..2], 3, FEE);
    let truc = pair.submit("version 3", tx);
    let tx = pair.payment(3, &plain[..1], 1, FEE);
    pair.refuse(PolicyRule::TrucParent, &tx);
    let tx = pair.payment(2, &truc[..1], 1, FEE);
    pair.refuse(PolicyRule::TrucParent, &tx);
    let tx = pair.payment(3, &coins[3..4], 1, FEE);
    let other = pair.submit("another of version 3", tx);
    let tx = pair.payment(3, &[truc[0], other[0]], 1, FEE);
    pair.refuse(PolicyRule::TrucAncestors, &tx);
    // A child of 1,000 virtual bytes, and of 1,001.
    let sized = |pair: &Pair<'_>, weight: usize| {
        let mut tx = pay(pair, 3, &truc[..1], 1, FEE);
        let bare = tx.to_transaction().unwrap().view().weight();
        // Value, length of three bytes, OP_RETURN.
        let zeros = (weight - bare) / 4 - 8 - 3 - 1;
        tx.outputs.push(output(0, [vec![0x6a], vec![0; zeros]].concat()));
        let tx = tx.to_transaction().unwrap();
        assert_eq!(tx.view().weight().div_ceil(4), weight / 4);
        tx
    };
    let tx = sized(&pair, 4004);
    pair.refuse(PolicyRule::TrucChildSize, &tx);
    let tx = sized(&pair, 4000);
    let child = pair.submit("a child of 1,000 virtual bytes", tx);
    let tx = pair.payment(3, &child[..1], 1, FEE);
    pair.refuse(PolicyRule::TrucAncestors, &tx);
    // A second child may evict the first, by the rules of replacement.
    let tx = pair.payment(3, &truc[1..2], 1, FEE - 1);
    let ours = pair.ask("a poor sibling", &tx).unwrap_err();
    assert!(ours.is_sibling_eviction && ours.rule == BrokenRule::Policy(PolicyRule::ReplacementFee));
    let tx = pair.payment(3, &truc[1..2], 1, 10 * FEE);
    pair.submit("a rich sibling", tx);
    let tx = pair.payment(3, &[truc[1], truc[2]], 1, 30 * FEE);
    pair.submit("replaces a sibling by conflict", tx);
}

#[test]
fn dust_must_be_spent_by_children() {
    let world = World::new();
    let mut settings = Settings::default();
    settings.set_relay_fees(Some(FeeRate::per_kvb(0)), None);
    let test = "dust_must_be_spent_by_children";
    let Some(mut pair) = Pair::new(test, &world, &["-minrelaytxfee=0"], settings) else { return };
    let coins = outpoints(&world.funds(&open_lock()));
    let mut parent = pay(&pair, 2, &coins[..1], 2, 0);
    parent.outputs.push(output(0, Lock::Anchor.script_pubkey()));
    let made = pair.submit("a parent with dust", parent.to_transaction().unwrap());
    let child = pair.payment(2, &made[..1], 1, FEE);
    pair.refuse(PolicyRule::MissingEphemeralSpends, &child);
    let mut child = pay(&pair, 2, &[made[0], made[2]], 1, FEE);
    child.inputs[1].witness.clear();
    pair.submit("a child that spends the dust", child.to_transaction().unwrap());
}

/// Large transactions fill a mempool of 5 MB; then the minimum fee is above that of relay.
#[test]
fn the_minimum_fee_of_a_full_mempool() {
    let world = World::new();
    let options = ["-maxmempool=5"];
    let test = "the_minimum_fee_of_a_full_mempool";
    let Some(mut pair) = Pair::new(test, &world, &options, Settings::default()) else { return };
    let mut random = Random::new(1, "full");
    let (coins, mut refused) = (world.funds(&open_lock()), 0);
    for (index, fund) in (0..).zip(&coins[..60]) {
        let mut draft = Draft::plain(&mut random, &world);
        draft.inputs.clear();
        draft.outputs.truncate(1);
        draft.spend(fund.clone());
        draft.weight = Some(380_000);
        draft.fee = Fee::Above(1000 + 500 * index);
        let tx = draft.build(&world, &pair.model.settings).to_transaction().unwrap();
        // When it is full, Core evicts the worst, or refuses; the model, which has no limit, is not asked.
        let sent = pair.core.call("sendrawtransaction", &json!([to_hex(tx.as_bytes()), 0, 21_000_000]));
        refused += usize::from(sent.is_err());
    }
    let info = pair.core.call("getmempoolinfo", &json!([])).unwrap();
    #[allow(clippy::cast_possible_truncation, reason = "a fee rate of a test")]
    let min_fee = (info["mempoolminfee"].as_f64().unwrap() * 1e8).round() as i64;
    assert!(min_fee > 100 && refused < 60, "{info}");
    pair.model.min_fee = FeeRate::per_kvb(min_fee);
    let required = |pair: &Pair<'_>| {
        let tx = pair.payment(2, &[coins[70].outpoint], 1, 0);
        pair.model.min_fee.fee(i64::try_from(tx.view().weight().div_ceil(4)).unwrap())
    };
    let tx = pair.payment(2, &[coins[70].outpoint], 1, required(&pair) - 1);
    pair.refuse(PolicyRule::MempoolMinFee, &tx);
    let tx = pair.payment(2, &[coins[70].outpoint], 1, required(&pair));
    pair.ask("pays the minimum fee", &tx).unwrap();
}

/// Steps of each random walk.
const STEPS: usize = 250;

/// Random transactions of versions 2 and 3 that spend coins, outputs of the mempool, and what others spend.
#[test]
fn random_families_have_cores_verdict() {
    let world = World::new();
    let seed = std::env::var("LYDIAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed, "families");
    let test = "random_families_have_cores_verdict";
    let (mut counts, mut accepted) = (Counts::new(), 0);
    for _ in 0..2 {
        let Some(mut pair) = Pair::new(test, &world, &[], Settings::default()) else { return };
        let mut outputs = outpoints(&world.funds(&open_lock()))[..12].to_vec();
        for step in 0..STEPS {
            let mut from: Vec<OutPoint> =
                (0..1 + random.below(2)).map(|_| outputs[random.below(outputs.len())]).collect();
            from.dedup();
            let version = if random.chance(70) { 3 } else { 2 };
            let fee = i64::try_from(random.below(20_000)).unwrap();
            let number = 1 + i64::try_from(random.below(3)).unwrap();
            let tx = pair.payment(version, &from, number, fee);
            let ours = pair.model.check(tx.view());
            let core = ask(&mut pair.core, &[&tx]);
            // The model has no diagram, which Core compares before it looks whether the replaced are ancestors.
            if core[0]["reject-reason"] == "replacement-failed" {
                let is_replacement = match &ours {
                    Ok(accepted) => !accepted.removed.is_empty(),
                    Err(rejection) => rejection.rule == BrokenRule::Policy(PolicyRule::SpendsConflicting),
                };
                assert!(is_replacement, "{core}");
                continue;
            }
            compare(&format!("step {step}"), &ours, &core[0]);
            count(&mut counts, &ours);
            if ours.is_ok() {
                outputs.extend(pair.submit("a step", tx));
                accepted += 1;
            }
        }
    }
    super::locate::report(&format!("policy: families, {accepted} accepted, by rule: {counts:?}"));
    use PolicyRule::*;
    for rule in [TrucParent, TrucAncestors, ReplacementFee, MissingInputs] {
        assert!(counts.contains_key(&BrokenRule::Policy(rule)), "{rule:?} never provoked");
    }
    assert!(accepted > 20, "{accepted}");
}
