//! Every limit of policy at its value and one beyond, without Core: the oddities that the duel gives to Core as well.

use super::draft::Draft;
use super::model::Model;
use super::oddities::{ODDITIES, Scene};
use super::world::{VALUE, World, open_lock, output};
use lydian_mempool::policy::limits::{MAX_PACKAGE_COUNT, MAX_REPLACEMENT_CANDIDATES};
use lydian_mempool::policy::{
    BrokenRule, PackageReplacementFacts, PolicyRule, Rejection, Settings, ValidationResult, check_package,
    check_package_replacement, check_replacement_clusters, check_submitted_package,
};
use lydian_oracle::generate::Random;
use lydian_primitives::build::{MutInput, MutTx};
use lydian_primitives::{OutPoint, Transaction, Tx, Txid};

/// A rule, an oddity that keeps it at its limit, and one that breaks it.
const LIMITS: &[(PolicyRule, &str, &str)] = &[
    (PolicyRule::Version, "version 1", "version 0"),
    (PolicyRule::Version, "version 3", "version 4"),
    (PolicyRule::TxSize, "weight 400000", "weight 400001"),
    (PolicyRule::TxSizeSmall, "65 bytes without witness", "64 bytes without witness"),
    (PolicyRule::ScriptsigSize, "scriptSig of 1650 bytes", "scriptSig of 1651 bytes"),
    (PolicyRule::MultisigKeys, "bare multisig, 3 of 3", "bare multisig, 1 of 4"),
    (PolicyRule::DustFee, "outputs at the dust threshold", "dust that pays a fee"),
    (PolicyRule::NonFinal, "lock time at the next block", "lock time after the next block"),
    (PolicyRule::NonFinal, "lock time at the tip's time", "lock time after the tip's time"),
    (PolicyRule::NonBip68Final, "relative lock at the next block", "relative lock after the next block"),
    (PolicyRule::NonBip68Final, "relative time at the tip's time", "relative time after the tip's time"),
    (PolicyRule::InputRedeemScriptSigops, "P2SH with 15 sigops", "P2SH with 16 sigops"),
    (PolicyRule::InputLegacySigops, "2500 legacy sigops", "2501 legacy sigops"),
    (PolicyRule::TooManySigops, "sigops cost of 16000", "sigops cost of 16001"),
    (PolicyRule::WitnessScriptSize, "witness script of 3600 bytes", "witness script of 3601 bytes"),
    (PolicyRule::WitnessItems, "100 witness elements", "101 witness elements"),
    (PolicyRule::WitnessItemSize, "witness element of 80 bytes", "witness element of 81 bytes"),
    (PolicyRule::WitnessTapscriptItemSize, "tapscript element of 80 bytes", "tapscript element of 81 bytes"),
    (PolicyRule::MinRelayFee, "the minimum relay fee", "below the minimum relay fee"),
    (PolicyRule::TrucSize, "weight of 10000 vB, version 3", "weight of 10001 vB, version 3"),
];

/// limit: TX_MIN_STANDARD_VERSION at
/// limit: TX_MIN_STANDARD_VERSION below
/// limit: TX_MAX_STANDARD_VERSION at
/// limit: TX_MAX_STANDARD_VERSION above
/// limit: MAX_STANDARD_TX_WEIGHT at
/// limit: MAX_STANDARD_TX_WEIGHT above
/// limit: MIN_STANDARD_TX_NONWITNESS_SIZE at
/// limit: MIN_STANDARD_TX_NONWITNESS_SIZE below
/// limit: MAX_STANDARD_SCRIPTSIG_SIZE at
/// limit: MAX_STANDARD_SCRIPTSIG_SIZE above
/// limit: BARE_MULTISIG_KEYS_MAX at
/// limit: BARE_MULTISIG_KEYS_MAX above
/// limit: MAX_P2SH_SIGOPS at
/// limit: MAX_P2SH_SIGOPS above
/// limit: MAX_TX_LEGACY_SIGOPS at
/// limit: MAX_TX_LEGACY_SIGOPS above
/// limit: MAX_STANDARD_TX_SIGOPS_COST at
/// limit: MAX_STANDARD_TX_SIGOPS_COST above
/// limit: MAX_STANDARD_P2WSH_SCRIPT_SIZE at
/// limit: MAX_STANDARD_P2WSH_SCRIPT_SIZE above
/// limit: MAX_STANDARD_P2WSH_STACK_ITEMS at
/// limit: MAX_STANDARD_P2WSH_STACK_ITEMS above
/// limit: MAX_STANDARD_P2WSH_STACK_ITEM_SIZE at
/// limit: MAX_STANDARD_P2WSH_STACK_ITEM_SIZE above
/// limit: MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE at
/// limit: MAX_STANDARD_TAPSCRIPT_STACK_ITEM_SIZE above
/// limit: TRUC_MAX_VSIZE at
/// limit: TRUC_MAX_VSIZE above
#[test]
fn transactions_at_and_above_each_limit() {
    let world = World::new();
    for (rule, at, above) in LIMITS {
        assert_eq!(broken(&world, at), None, "{rule} at its limit: {at}");
        assert_eq!(broken(&world, above), Some(BrokenRule::Policy(*rule)), "{above}");
    }
}

/// limit: MAX_DUST_OUTPUTS_PER_TX at
/// limit: MAX_DUST_OUTPUTS_PER_TX above
#[test]
fn one_output_of_dust_is_standard_without_a_fee() {
    let world = World::new();
    let one = Some(BrokenRule::Policy(PolicyRule::MinRelayFee));
    assert_eq!(broken(&world, "dust that pays no fee"), one, "only in a package, with a child that pays");
    let two = Some(BrokenRule::Policy(PolicyRule::DustOutputs));
    assert_eq!(broken(&world, "two outputs of dust"), two);
}

#[test]
fn data_at_and_above_its_option() {
    let world = World::new();
    let broken = |name| {
        let settings = Settings { datacarrier_bytes_max: Some(83), ..Settings::default() };
        broken_with(&world, name, settings)
    };
    assert_eq!(broken("OP_RETURN at -datacarriersize"), None);
    assert_eq!(broken("OP_RETURN above -datacarriersize"), Some(BrokenRule::Policy(PolicyRule::Datacarrier)));
    assert_eq!(broken("two OP_RETURN of 84 bytes together"), Some(BrokenRule::Policy(PolicyRule::Datacarrier)));
}

/// Relay may ask for the witness of a transaction that fails without it, and must not remember its txid.
#[test]
fn a_missing_witness_has_its_own_result() {
    let world = World::new();
    let result = |name| rejection(&world, name, Settings::default()).map(|rejection| rejection.result);
    assert_eq!(result("P2WPKH without its witness"), Some(ValidationResult::WitnessStripped));
    assert_eq!(result("STRICTENC"), Some(ValidationResult::NotStandard));
}

/// The rule that a plain payment breaks with one oddity, under the default settings.
fn broken(world: &World, name: &str) -> Option<BrokenRule> {
    broken_with(world, name, Settings::default())
}

fn broken_with(world: &World, name: &str, settings: Settings) -> Option<BrokenRule> {
    rejection(world, name, settings).map(|rejection| rejection.rule)
}

fn rejection(world: &World, name: &str, settings: Settings) -> Option<Rejection> {
    let model = Model::new(world, settings);
    let mut draft = Draft::plain(&mut Random::new(1, name), world);
    let (_, change) = ODDITIES.iter().find(|(known, _)| *known == name).unwrap();
    change(&mut draft, &Scene { world, settings: &model.settings });
    let tx = draft.build(world, &model.settings).to_transaction().unwrap();
    model.check(tx.view()).err()
}

fn tx(prevout: u8) -> Transaction {
    let input = MutInput {
        prevout: OutPoint { txid: Txid([prevout; 32]), vout: 0 },
        script_sig: Vec::new(),
        sequence: 0,
        witness: Vec::new(),
    };
    let outputs = vec![output(VALUE, open_lock().script_pubkey())];
    MutTx { version: 2, inputs: vec![input], outputs, lock_time: 0 }.to_transaction().unwrap()
}

/// limit: MAX_PACKAGE_COUNT at
/// limit: MAX_PACKAGE_COUNT above
#[test]
fn packages_at_and_above_their_count() {
    let txs: Vec<Transaction> = (0..26).map(tx).collect();
    let views: Vec<Tx<'_>> = txs.iter().map(Transaction::view).collect();
    assert_eq!(check_package(&views[..MAX_PACKAGE_COUNT]), Ok(()));
    let rejection = check_package(&views).unwrap_err();
    assert_eq!(rejection.state(), "package-too-many-transactions");
    assert_eq!(check_submitted_package(&views[..1]), Ok(()), "one transaction needs no parent");
    let rejection = check_submitted_package(&views[..2]).unwrap_err();
    assert_eq!(rejection.rule, BrokenRule::Policy(PolicyRule::PackageTopology));
}

#[test]
fn replaced_clusters_at_and_above_their_limit() {
    assert_eq!(check_replacement_clusters(MAX_REPLACEMENT_CANDIDATES, Txid::ZERO, false), Ok(()));
    let rejection = check_replacement_clusters(MAX_REPLACEMENT_CANDIDATES + 1, Txid::ZERO, true).unwrap_err();
    assert_eq!(rejection.reject_reason(), "too many potential replacements (including sibling eviction)");
    let package = |cluster_count| {
        let facts = PackageReplacementFacts { is_parent_and_child: true, has_mempool_parent: false, cluster_count };
        check_package_replacement(&facts, Txid::ZERO)
    };
    assert_eq!(package(MAX_REPLACEMENT_CANDIDATES), Ok(()));
    assert!(package(MAX_REPLACEMENT_CANDIDATES + 1).is_err());
}
