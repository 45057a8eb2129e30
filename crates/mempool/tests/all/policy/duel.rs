//! Our verdict against Core's, transaction by transaction, under each set of options.

use super::draft::Draft;
use super::model::{Accepted, Model};
use super::oddities::{ODDITIES, Oddity, Scene};
use super::world::World;
use lydian_consensus::format_money;
use lydian_mempool::policy::{BrokenRule, FeeRate, POLICY_RULES, PolicyRule, Rejection, Settings, ValidationResult};
use lydian_oracle::Daemon;
use lydian_oracle::generate::Random;
use lydian_primitives::{Transaction, to_hex};
use lydian_script::{Flags, ScriptError};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Options of Core with the settings that they give.
type Options = (&'static [&'static str], fn(&mut Settings));

const OPTIONS: &[Options] = &[
    (&[], |_| {}),
    (&["-datacarriersize=83", "-permitbaremultisig=0"], |settings| {
        settings.datacarrier_bytes_max = Some(83);
        settings.permit_bare_multisig = false;
    }),
    (&["-bytespersigop=100", "-minrelaytxfee=0.00005", "-dustrelayfee=0.0001"], |settings| {
        settings.bytes_per_sigop = 100;
        settings.set_relay_fees(Some(FeeRate::per_kvb(5000)), None);
        settings.dust_relay_fee = FeeRate::per_kvb(10_000);
    }),
    (&["-acceptnonstdtxn=1", "-incrementalrelayfee=0.00001"], |settings| {
        settings.require_standard = false;
        settings.set_relay_fees(None, Some(FeeRate::per_kvb(1000)));
    }),
    (&["-datacarrier=0", "-minrelaytxfee=0", "-dustrelayfee=0", "-bytespersigop=0"], |settings| {
        settings.datacarrier_bytes_max = None;
        settings.set_relay_fees(Some(FeeRate::per_kvb(0)), None);
        settings.dust_relay_fee = FeeRate::per_kvb(0);
        settings.bytes_per_sigop = 0;
    }),
];

/// Pairs of oddities under each set of options.
const PAIRS: usize = 350;

/// How often each rule decided.
pub type Counts = BTreeMap<BrokenRule, usize>;

/// Core's answer for one transaction must be ours, word for word.
pub fn compare(what: &str, ours: &Result<Accepted, Rejection>, core: &Value) {
    match ours {
        Ok(accepted) => {
            assert_eq!(core["allowed"], true, "{what}: we accept, {core}");
            assert_eq!(core["vsize"], accepted.vsize, "{what}");
            let fee = |name: &str| core["fees"][name].as_f64().map(|fee| (fee * 1e8).round());
            #[allow(clippy::cast_precision_loss, reason = "far below 2^53")]
            let expected = |fee: i64| Some(fee as f64);
            assert_eq!(fee("base"), expected(accepted.base_fee.0), "{what}");
            let rate = FeeRate::new(accepted.modified_fee.0, accepted.vsize).fee_per_kvb();
            assert_eq!(fee("effective-feerate"), expected(rate), "{what}");
        }
        Err(rejection) if rejection.result == ValidationResult::MissingInputs => {
            assert_eq!((&core["allowed"], &core["reject-reason"]), (&json!(false), &json!("missing-inputs")), "{what}");
        }
        Err(rejection) => {
            assert_eq!(core["allowed"], false, "{what}: we say {rejection}");
            assert_eq!(core["reject-reason"], rejection.reject_reason(), "{what}: {core}");
            assert_eq!(core["reject-details"], rejection.state(), "{what}");
        }
    }
}

pub fn ask(daemon: &mut Daemon, txs: &[&Transaction]) -> Value {
    let txs: Vec<String> = txs.iter().map(|tx| to_hex(tx.as_bytes())).collect();
    daemon.call("testmempoolaccept", &json!([txs, 0])).unwrap()
}

pub fn count(counts: &mut Counts, ours: &Result<Accepted, Rejection>) {
    if let Err(rejection) = ours {
        *counts.entry(rejection.rule).or_default() += 1;
    }
}

pub fn settings_of(change: fn(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

/// The rules that one transaction and an empty pool cannot break, with the test that provokes them, or the reason why
/// none does.
const ELSEWHERE: &[(PolicyRule, &str)] = &[
    (PolicyRule::AlreadyInMempool, "pool::known_transactions_and_replacement"),
    (PolicyRule::SameNonwitnessData, "pool::known_transactions_and_replacement"),
    (PolicyRule::ReplacementDisallowed, "packages::shapes_of_packages"),
    (PolicyRule::MempoolMinFee, "pool::the_minimum_fee_of_a_full_mempool"),
    (PolicyRule::TrucParent, "pool::truc_children_and_siblings"),
    (PolicyRule::TrucAncestors, "pool::truc_children_and_siblings"),
    (PolicyRule::TrucChildSize, "pool::truc_children_and_siblings"),
    (PolicyRule::TrucDescendants, "packages::random_packages_have_cores_verdict"),
    (PolicyRule::ReplacementClusters, "pool::clusters_at_their_limits"),
    (PolicyRule::ReplacementFee, "pool::known_transactions_and_replacement"),
    (PolicyRule::ReplacementRelayFee, "pool::known_transactions_and_replacement"),
    (PolicyRule::ReplacementDiagram, "not here: the cluster graph compares diagrams"),
    (PolicyRule::SpendsConflicting, "pool::known_transactions_and_replacement"),
    (PolicyRule::MaxFeerate, "packages::replacement_by_packages"),
    (PolicyRule::MissingEphemeralSpends, "pool::dust_must_be_spent_by_children"),
    (PolicyRule::MempoolFull, "not here: the pool evicts"),
    (PolicyRule::PackageCount, "limits::packages_at_and_above_their_count; Core's RPC refuses such a call before"),
    (PolicyRule::PackageWeight, "packages::shapes_of_packages"),
    (PolicyRule::PackageDuplicates, "packages::shapes_of_packages"),
    (PolicyRule::PackageNotSorted, "packages::shapes_of_packages"),
    (PolicyRule::PackageConflict, "packages::shapes_of_packages"),
    (PolicyRule::PackageTopology, "limits::packages_at_and_above_their_count; Core's RPC refuses such a call before"),
    (PolicyRule::PackageReplacementShape, "packages::replacement_by_packages"),
    (PolicyRule::PackageReplacementAncestors, "packages::replacement_by_packages"),
    (PolicyRule::PackageReplacementClusters, "packages::replacement_by_packages"),
    (PolicyRule::PackageReplacementFees, "packages::replacement_by_packages"),
    (PolicyRule::PackageReplacementFeerate, "packages::replacement_by_packages"),
    (PolicyRule::PackageReplacementDiagram, "not here: the cluster graph compares diagrams"),
    (PolicyRule::PackageUnspentDust, "not here: the pool reports it for a package"),
    (PolicyRule::PackageTransaction, "not here: the pool reports it for a package"),
];

/// Each oddity alone, and pairs of them, under each set of options.
///
/// checklist: 10
#[test]
fn oddities_have_cores_verdict() {
    let world = World::new();
    let seed = std::env::var("LYDIAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut random = Random::new(seed, "policy");
    let (mut counts, mut accepted, mut total) = (Counts::new(), 0, 0);
    let mut errors = BTreeSet::new();
    for (options, change) in OPTIONS {
        let Some(mut daemon) = world.daemon("oddities_have_cores_verdict", options) else { return };
        let settings = settings_of(*change);
        let model = Model::new(&world, settings.clone());
        let scene = Scene { world: &world, settings: &settings };
        let alone = ODDITIES.iter().map(|oddity| vec![oddity]);
        let mut pairs = Random::new(random.next_u64(), "pairs");
        let pairs = (0..PAIRS).map(|_| vec![pairs.pick(&REFS[..]), pairs.pick(&REFS[..])]);
        for oddities in std::iter::once(Vec::new()).chain(alone).chain(pairs) {
            let mut draft = Draft::plain(&mut random, &world);
            let names: Vec<&str> = oddities.iter().map(|(name, _)| *name).collect();
            oddities.iter().for_each(|(_, change)| change(&mut draft, &scene));
            let Some(tx) = draft.build(&world, &settings).to_transaction() else { continue };
            let ours = model.check(tx.view());
            let core = ask(&mut daemon, &[&tx]);
            compare(&format!("{names:?} with {options:?}, {}", describe(&tx)), &ours, &core[0]);
            count(&mut counts, &ours);
            errors.extend(ours.as_ref().err().and_then(|rejection| rejection.script_error).map(ScriptError::name));
            accepted += usize::from(ours.is_ok());
            total += 1;
        }
        let split = world.splits[0].to_transaction().unwrap();
        let ours = model.check(split.view());
        compare("the transaction that made the coins", &ours, &ask(&mut daemon, &[&split])[0]);
        count(&mut counts, &ours);
    }
    super::locate::report(&format!("policy: {total} transactions, {accepted} accepted, by rule: {counts:?}"));
    assert!(total >= 2000 && accepted * 10 > total, "{total}, {accepted}");
    let missing: Vec<_> = POLICY_RULES
        .iter()
        .map(|info| info.rule)
        .filter(|rule| !ELSEWHERE.iter().any(|(elsewhere, _)| elsewhere == rule))
        .filter(|rule| !counts.contains_key(&BrokenRule::Policy(*rule)))
        .collect();
    assert!(missing.is_empty(), "never provoked: {missing:?}");
    let here: Vec<_> = ELSEWHERE.iter().filter(|(rule, _)| counts.contains_key(&BrokenRule::Policy(*rule))).collect();
    assert!(here.is_empty(), "provoked here: {here:?}");
    let missing: Vec<_> = STANDARD_ERRORS.iter().filter(|error| !errors.contains(error.name())).collect();
    assert!(missing.is_empty(), "never provoked: {missing:?}");
}

/// The error of each standard flag that is not mandatory, in the order of the flags.
const STANDARD_ERRORS: &[ScriptError] = &[
    ScriptError::PubkeyType,
    ScriptError::SigHighS,
    ScriptError::MinimalData,
    ScriptError::DiscourageUpgradableNops,
    ScriptError::CleanStack,
    ScriptError::DiscourageUpgradableWitnessProgram,
    ScriptError::MinimalIf,
    ScriptError::SigNullFail,
    ScriptError::WitnessPubkeyType,
    ScriptError::OpCodeSeparator,
    ScriptError::DiscourageUpgradableTaprootVersion,
    ScriptError::DiscourageOpSuccess,
    ScriptError::DiscourageUpgradablePubkeyType,
];

#[test]
fn every_standard_flag_has_its_error() {
    let flags = Flags::STANDARD.without(Flags::MANDATORY);
    assert_eq!(flags.names().len(), STANDARD_ERRORS.len());
}

fn describe(tx: &Transaction) -> String {
    let view = tx.view();
    let paid = view.outputs().map(|output| format_money(output.value)).collect::<Vec<_>>();
    let shown = paid.iter().take(4).cloned().collect::<Vec<_>>().join(" ");
    format!("{} in, {} out ({shown}), weight {}", view.input_count(), paid.len(), view.weight())
}

/// References to the oddities, which can be picked.
static REFS: std::sync::LazyLock<Vec<&'static Oddity>> = std::sync::LazyLock::new(|| ODDITIES.iter().collect());
