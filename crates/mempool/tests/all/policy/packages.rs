//! Packages: their shape, TRUC, dust and replacement. `testmempoolaccept` of several transactions, and `submitpackage`
//! where only that has the rule.

use super::duel::{ask, compare, count};
use super::locks::Lock;
use super::model::{Accepted, Model, scripts};
use super::pool::{Pair, pay};
use super::world::{World, open_lock, output};
use lydian_mempool::policy::{
    BrokenRule, FeeRate, Mode, PackageReplacementFacts, PolicyRule, PreChecked, Rejection, ReplacementFees, Settings,
    check_max_feerate, check_package, check_package_replacement, check_package_replacement_fees, check_package_truc,
    package_hash,
};
use lydian_oracle::generate::Random;
use lydian_primitives::{Amount, BlockHash, OutPoint, Transaction, Tx, to_hex};
use serde_json::{Value, json};

/// The verdict on a package: that on each transaction as far as Core gives it, or one on the package.
#[derive(Default)]
struct Verdict {
    package: Option<Rejection>,
    txs: Vec<Option<Result<Accepted, Rejection>>>,
}

/// Core's `AcceptMultipleTransactionsInternal` for `testmempoolaccept`.
fn check(model: &mut Model<'_>, package: &[Transaction]) -> Verdict {
    let verdict = decide(model, package);
    model.package.clear();
    verdict
}

fn decide(model: &mut Model<'_>, package: &[Transaction]) -> Verdict {
    let views: Vec<Tx<'_>> = package.iter().map(Transaction::view).collect();
    let unfinished = || (0..package.len()).map(|_| None).collect::<Vec<_>>();
    if let Err(rejection) = check_package(&views) {
        return Verdict { package: Some(rejection), txs: unfinished() };
    }
    let failed = |index: usize, rejection: Rejection| {
        let mut txs = unfinished();
        txs[index] = Some(Err(rejection));
        Verdict { package: None, txs }
    };
    let mut sizes = Vec::new();
    for (index, tx) in package.iter().enumerate() {
        match model.pre_checks(tx.view(), Mode::TEST_PACKAGE) {
            Err(rejection) => return failed(index, rejection),
            Ok(checked) => sizes.push(checked.spending.vsize),
        }
        model.package.push(tx.clone());
    }
    for (index, vsize) in sizes.into_iter().enumerate() {
        let parents = lydian_mempool::policy::steps::parents(views[index], model);
        if let Err(rejection) = check_package_truc(&views, index, vsize, &parents) {
            return Verdict { package: Some(rejection), txs: unfinished() };
        }
    }
    if let Err((index, rejection)) = model.ephemeral_spends(&views) {
        return failed(index, rejection);
    }
    let mut txs = unfinished();
    for (index, view) in views.iter().enumerate() {
        // It passed before, with fewer transactions of the package known.
        let PreChecked { spending, coins, modified_fee, .. } = model.pre_checks(*view, Mode::TEST_PACKAGE).unwrap();
        if let Err(rejection) = scripts(*view, &coins) {
            txs[index] = Some(Err(rejection));
            break;
        }
        let (base_fee, vsize, adjusted_weight) = (spending.base_fee, spending.vsize, spending.adjusted_weight);
        let removed = Default::default();
        txs[index] = Some(Ok(Accepted { base_fee, modified_fee, vsize, adjusted_weight, removed }));
    }
    Verdict { package: None, txs }
}

/// Compares the verdicts on a package. Returns the rule that decided, if one did.
fn duel(pair: &mut Pair<'_>, what: &str, package: &[Transaction]) -> Option<BrokenRule> {
    let ours = check(&mut pair.model, package);
    let core = ask(&mut pair.core, &package.iter().collect::<Vec<_>>());
    let expected = ours.package.as_ref().map_or(Value::Null, |rejection| json!(rejection.state()));
    let mut rule = ours.package.as_ref().map(|rejection| rejection.rule);
    if let Some(rejection) = ours.package {
        count(&mut pair.counts, &Err(rejection));
    }
    for (index, tx) in ours.txs.iter().enumerate() {
        let answer = &core[index];
        assert_eq!(answer["package-error"], expected, "{what}: {core}");
        match tx {
            None => assert_eq!(answer["allowed"], Value::Null, "{what}, {index}: {core}"),
            Some(verdict) => {
                compare(&format!("{what}, {index}"), verdict, answer);
                count(&mut pair.counts, verdict);
                rule = rule.or(verdict.as_ref().err().map(|rejection| rejection.rule));
            }
        }
    }
    rule
}

fn expect(pair: &mut Pair<'_>, rule: PolicyRule, package: &[Transaction]) {
    assert_eq!(duel(pair, rule.info().name, package), Some(BrokenRule::Policy(rule)));
}

const FEE: i64 = 500;

fn outputs_of(tx: &Transaction) -> Vec<OutPoint> {
    let txid = tx.view().txid();
    (0..).zip(tx.view().outputs()).map(|(vout, _)| OutPoint { txid, vout }).collect()
}

/// A child of a transaction that is not in the pool.
fn child(pair: &mut Pair<'_>, version: u32, parents: &[(&Transaction, usize)], outputs: i64, fee: i64) -> Transaction {
    pair.model.package = parents.iter().map(|(parent, _)| (*parent).clone()).collect();
    let from: Vec<OutPoint> = parents.iter().map(|(parent, vout)| outputs_of(parent)[*vout]).collect();
    let tx = pair.payment(version, &from, outputs, fee);
    pair.model.package.clear();
    tx
}

/// limit: MAX_PACKAGE_WEIGHT at
/// limit: MAX_PACKAGE_WEIGHT above
#[test]
fn shapes_of_packages() {
    let world = World::new();
    let Some(mut pair) = Pair::new("shapes_of_packages", &world, &[], Settings::default()) else { return };
    let coins: Vec<OutPoint> = world.funds(&open_lock()).iter().map(|fund| fund.outpoint).collect();
    let parent = pair.payment(2, &coins[..1], 2, FEE);
    let young = child(&mut pair, 2, &[(&parent, 0)], 1, FEE);
    assert_eq!(duel(&mut pair, "a child with its parent", &[parent.clone(), young.clone()]), None);
    expect(&mut pair, PolicyRule::PackageNotSorted, &[young.clone(), parent.clone()]);
    expect(&mut pair, PolicyRule::PackageDuplicates, &[parent.clone(), parent.clone()]);
    let other = pair.payment(2, &coins[..1], 1, FEE);
    expect(&mut pair, PolicyRule::PackageConflict, &[parent.clone(), other]);
    let many: Vec<Transaction> = coins[..25].iter().map(|coin| pair.payment(2, &[*coin], 1, FEE)).collect();
    assert_eq!(duel(&mut pair, "25 transactions", &many), None);
    // Two of 202,000 units of weight, and one unit more.
    let heavy = |pair: &Pair<'_>, coin: usize, weight: usize| {
        let mut tx = pay(pair, 2, &coins[coin..=coin], 1, 100 * FEE);
        let bare = tx.to_transaction().unwrap().view().weight();
        let (zeros, rest) = ((weight - bare) / 4 - 8 - 3 - 1, (weight - bare) % 4);
        tx.outputs.push(output(0, [vec![0x6a], vec![0; zeros]].concat()));
        // The changed witness script fails, after the shape of the package is checked.
        tx.inputs[0].witness[0].extend(vec![0x61; rest]);
        let tx = tx.to_transaction().unwrap();
        assert_eq!(tx.view().weight(), weight);
        tx
    };
    let pack = [heavy(&pair, 30, 202_000), heavy(&pair, 31, 202_000)];
    expect(&mut pair, PolicyRule::ScriptVerify, &pack);
    let pack = [heavy(&pair, 30, 202_000), heavy(&pair, 31, 202_001)];
    expect(&mut pair, PolicyRule::PackageWeight, &pack);
    // The rules of one transaction hold in a package, each with its own fee.
    let poor = child(&mut pair, 2, &[(&parent, 0)], 1, 1);
    expect(&mut pair, PolicyRule::MinRelayFee, &[parent.clone(), poor]);
    pair.submit("the parent", parent.clone());
    expect(&mut pair, PolicyRule::AlreadyInMempool, &[parent.clone(), young]);
    let other = pair.payment(2, &coins[..1], 1, 10 * FEE);
    let more = pair.payment(2, &coins[5..6], 1, FEE);
    expect(&mut pair, PolicyRule::ReplacementDisallowed, &[more, other]);
}

#[test]
fn dust_in_packages() {
    let world = World::new();
    let mut settings = Settings::default();
    settings.set_relay_fees(Some(FeeRate::per_kvb(0)), None);
    let Some(mut pair) = Pair::new("dust_in_packages", &world, &["-minrelaytxfee=0"], settings) else { return };
    let coins: Vec<OutPoint> = world.funds(&open_lock()).iter().map(|fund| fund.outpoint).collect();
    let mut parent = pay(&pair, 3, &coins[..1], 1, 0);
    parent.outputs.push(output(0, Lock::Anchor.script_pubkey()));
    let parent = parent.to_transaction().unwrap();
    let poor = child(&mut pair, 3, &[(&parent, 0)], 1, FEE);
    expect(&mut pair, PolicyRule::MissingEphemeralSpends, &[parent.clone(), poor]);
    pair.model.package = vec![parent.clone()];
    let mut good = pay(&pair, 3, &outputs_of(&parent), 1, FEE);
    pair.model.package.clear();
    good.inputs[1].witness.clear();
    let good = good.to_transaction().unwrap();
    assert_eq!(duel(&mut pair, "dust spent", &[parent, good]), None);
}

/// Packages of each set of options.
const PACKAGES: usize = 250;

/// Random families in packages, with some of their relatives in the mempool.
#[test]
fn random_packages_have_cores_verdict() {
    let world = World::new();
    let seed = std::env::var("LYDIAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed, "packages");
    let test = "random_packages_have_cores_verdict";
    let Some(mut pair) = Pair::new(test, &world, &[], Settings::default()) else { return };
    let coins: Vec<OutPoint> = world.funds(&open_lock()).iter().map(|fund| fund.outpoint).collect();
    let mut known: Vec<OutPoint> = Vec::new();
    for (index, version) in [2, 3, 3, 3].into_iter().enumerate() {
        let tx = pair.payment(version, &coins[index..=index], 2, FEE);
        known.extend(pair.submit("a relative", tx));
    }
    let tx = pair.payment(3, &known[2..3], 1, FEE);
    known.extend(pair.submit("a child in the mempool", tx));
    let mut fine = 0;
    for index in 0..PACKAGES {
        let mut outputs: Vec<OutPoint> = coins[10..16].to_vec();
        if random.chance(60) {
            outputs.extend(&known);
        }
        let mut package: Vec<Transaction> = Vec::new();
        for _ in 0..2 + random.below(3) {
            let mut from: Vec<OutPoint> =
                (0..1 + random.below(2)).map(|_| outputs.swap_remove(random.below(outputs.len()))).collect();
            from.dedup();
            let (version, number) = (if random.chance(75) { 3 } else { 2 }, 1 + random.below(2));
            pair.model.package = package.clone();
            let tx = pair.payment(version, &from, i64::try_from(number).unwrap(), FEE);
            outputs.extend(outputs_of(&tx));
            package.push(tx);
        }
        pair.model.package.clear();
        fine += usize::from(duel(&mut pair, &format!("package {index}"), &package).is_none());
    }
    super::locate::report(&format!("policy: {PACKAGES} packages, {fine} fine, by rule: {:?}", pair.counts));
    use PolicyRule::*;
    for rule in [TrucParent, TrucAncestors, TrucDescendants, ReplacementDisallowed] {
        assert!(pair.counts.contains_key(&BrokenRule::Policy(rule)), "{rule:?} never provoked");
    }
    assert!(fine > 10, "{fine}");
}

/// Packages that replace: the arithmetic of `PackageRBFChecks`, as `submitpackage` reports it for the package.
#[test]
fn replacement_by_packages() {
    let world = World::new();
    let options = ["-debug=txpackages"];
    let Some(mut pair) = Pair::new("replacement_by_packages", &world, &options, Settings::default()) else { return };
    let coins: Vec<OutPoint> = world.funds(&open_lock()).iter().map(|fund| fund.outpoint).collect();
    let replaced = pair.payment(2, &coins[..1], 2, 20 * FEE);
    pair.submit("to be replaced", replaced);
    let tx = pair.payment(2, &coins[5..6], 1, FEE);
    let unconfirmed = pair.submit("in the mempool", tx)[0];
    let message = |pair: &mut Pair<'_>, package: &[&Transaction]| {
        let txs: Vec<String> = package.iter().map(|tx| to_hex(tx.as_bytes())).collect();
        pair.core.call("submitpackage", &json!([txs, 0])).unwrap()["package_msg"].clone()
    };
    let vsize = |tx: &Transaction| i64::try_from(tx.view().weight().div_ceil(4)).unwrap();
    // Fees: of the parent and of the child.
    let fees = |pair: &mut Pair<'_>, parent_fee: i64, child_fee: i64| {
        let parent = pair.payment(2, &coins[..1], 1, parent_fee);
        let young = child(pair, 2, &[(&parent, 0)], 1, child_fee);
        let fees = ReplacementFees {
            original_fees: Amount(20 * FEE),
            replacement_fees: Amount(parent_fee + child_fee),
            vsize: vsize(&parent) + vsize(&young),
            incremental_relay_fee: FeeRate::per_kvb(100),
        };
        let txid = young.view().txid();
        let ours = check_package_replacement_fees(&fees, txid, Amount(parent_fee), vsize(&parent)).unwrap_err();
        assert_eq!(message(pair, &[&parent, &young]), ours.state());
        ours.rule
    };
    let rule = fees(&mut pair, 10 * FEE, FEE);
    assert_eq!(rule, BrokenRule::Policy(PolicyRule::PackageReplacementFees));
    let rule = fees(&mut pair, 20 * FEE, 10);
    assert_eq!(rule, BrokenRule::Policy(PolicyRule::PackageReplacementFees));
    let rule = fees(&mut pair, 20 * FEE - 1, 20 * FEE - 1);
    assert_eq!(rule, BrokenRule::Policy(PolicyRule::PackageReplacementFeerate));
    // Shapes.
    let facts = |is_parent_and_child, has_mempool_parent, cluster_count| PackageReplacementFacts {
        is_parent_and_child,
        has_mempool_parent,
        cluster_count,
    };
    let poor = pair.payment(2, &coins[..1], 1, 1);
    let second = pair.payment(2, &coins[1..2], 1, 1);
    let young = child(&mut pair, 2, &[(&poor, 0), (&second, 0)], 1, 100 * FEE);
    let ours = check_package_replacement(&facts(false, false, 1), young.view().txid()).unwrap_err();
    assert_eq!(message(&mut pair, &[&poor, &second, &young]), ours.state());
    pair.model.package = vec![poor.clone()];
    let young = pair.payment(2, &[outputs_of(&poor)[0], unconfirmed], 1, 100 * FEE);
    pair.model.package.clear();
    let ours = check_package_replacement(&facts(true, true, 1), young.view().txid()).unwrap_err();
    assert_eq!(message(&mut pair, &[&poor, &young]), ours.state());
    // The sender's maximum fee rate: 1,000 satoshi per kvB.
    let rich = pair.payment(2, &coins[7..8], 1, 100 * FEE);
    let (wtxid, max) = (rich.view().wtxid().to_string(), Some(FeeRate::per_kvb(1000)));
    let ours = check_max_feerate(Amount(100 * FEE), vsize(&rich), max).unwrap_err();
    let answer = pair.core.call("submitpackage", &json!([[to_hex(rich.as_bytes())], "0.00001"])).unwrap();
    assert_eq!(answer["tx-results"][wtxid]["error"], ours.state());
    assert_eq!(check_max_feerate(Amount(1), 1, Some(FeeRate::per_kvb(1000))), Ok(()), "at the maximum");
    // A package that replaces; Core logs its hash.
    let tx = pair.payment(2, &coins[8..9], 2, 20 * FEE);
    pair.submit("to be replaced by a package", tx);
    let (poor, young) = {
        let poor = pair.payment(2, &coins[8..9], 1, 1);
        let young = child(&mut pair, 2, &[(&poor, 0)], 1, 100 * FEE);
        (poor, young)
    };
    assert_eq!(message(&mut pair, &[&poor, &young]), "success");
    let hash = BlockHash(package_hash(&[young.view().wtxid(), poor.view().wtxid()])).to_string();
    let log = pair.core.log_tail(1 << 20).unwrap();
    assert!(log.contains(&format!("package hash ({hash})")), "{hash}");
    // One hundred and one clusters.
    for coin in &coins[20..120] {
        let tx = pair.payment(2, &[*coin], 1, FEE);
        pair.submit("one of many", tx);
    }
    let wide = pair.payment(2, &[&coins[..1], &coins[20..120]].concat(), 1, 1);
    let young = child(&mut pair, 2, &[(&wide, 0)], 1, 1000 * FEE);
    let ours = check_package_replacement(&facts(true, false, 101), young.view().txid()).unwrap_err();
    assert_eq!(message(&mut pair, &[&wide, &young]), ours.state());
}
