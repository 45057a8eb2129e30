//! The plain validator on the generated chains.
//!
//! It finds the tip, the coins and the counts of the statistics, and refuses every planted violation under the rule and
//! with the reason recorded for it; every rule is covered.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

use lydian_chains::plan::MixSettings;
use lydian_chains::presets::invalid::{self, UNREACHABLE};
use lydian_chains::presets::ledger::{ACCEPT, Expectation, INCONCLUSIVE, read_cases};
use lydian_chains::presets::{mainnet_mix, reorg, worst};
use lydian_consensus::{Chain, Params, PlainValidator, RULES, Rejected};
use lydian_oracle::Scratch;
use lydian_primitives::RawBlock;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Validates every block of a folder; returns the differences from the expectations.
fn differences(folder: &Path, params: Params) -> Vec<String> {
    let mut validator = PlainValidator::new(params);
    let mut differences = Vec::new();
    for (line, bytes) in read_cases(folder).unwrap() {
        let block = RawBlock::new(bytes).parse().unwrap();
        let (answer, rule) = match validator.accept_block(block, line.now) {
            Ok(accepted) if accepted.is_active => (ACCEPT.to_owned(), None),
            Ok(_) => (INCONCLUSIVE.to_owned(), None),
            Err(Rejected::Violation(violation)) => (violation.reject_reason(), Some(violation.rule.info().name)),
            Err(other) => (other.reason(), None),
        };
        if answer != line.expect || rule.is_some_and(|rule| rule != line.rule) {
            let expected = (&line.expect, &line.rule);
            differences.push(format!("{} at {}: {answer:?} {rule:?}, expected {expected:?}", line.name, line.height));
        }
    }
    let stats: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("stats.json")).unwrap()).unwrap();
    let (height, tip) = validator.tip();
    let end = (u64::from(height.0), tip.to_string(), validator.coin_count() as u64);
    let expected = (&stats["height"], &stats["tip"], &stats["coins"]);
    if (end.0, end.1.as_str(), end.2)
        != (expected.0.as_u64().unwrap(), expected.1.as_str().unwrap(), expected.2.as_u64().unwrap())
    {
        differences.push(format!("ends with {end:?}, expected {expected:?}"));
    }
    differences
}

#[test]
fn the_worst_blocks_are_valid() {
    let folder = Scratch::new("plain-worst");
    worst::write(1, 2, folder.path()).unwrap();
    let found = differences(folder.path(), Params::new(Chain::Regtest));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn branches_end_on_the_expected_tip() {
    let folder = Scratch::new("plain-reorg");
    reorg::write(folder.path()).unwrap();
    let found = differences(folder.path(), Params::new(Chain::Regtest));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_violation_is_refused_under_its_rule() {
    let folder = Scratch::new("plain-invalid");
    let lines = invalid::write(1, folder.path()).unwrap();
    let found = differences(folder.path(), Params::new(Chain::Regtest));
    assert!(found.is_empty(), "{}", found.join("\n"));
    let option = invalid::BIP30_OPTION.trim_start_matches("-testactivationheight=");
    let params = Params::new(Chain::Regtest).with_activation_height(option).unwrap();
    let found = differences(&folder.path().join(invalid::BIP30_FOLDER), params);
    assert!(found.is_empty(), "{}", found.join("\n"));

    let is_refusal = |line: &&Expectation| ![ACCEPT, INCONCLUSIVE].contains(&line.expect.as_str());
    let broken: BTreeSet<&str> = lines.iter().filter(is_refusal).map(|line| line.rule.as_str()).collect();
    for rule in RULES {
        let reason = UNREACHABLE.iter().find(|(name, _)| *name == rule.name);
        assert_eq!(reason.is_none(), broken.contains(rule.name), "{}: planted or unreachable, and not both", rule.name);
    }
    let known: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.name != "chain") {
        assert!(line.rule.is_empty() || known.contains(line.rule.as_str()), "no such rule: {}", line.rule);
        *names.entry(&line.name).or_default() += 1;
    }
    assert!(names.values().all(|&count| count == 1), "a name twice: {names:?}");
}

#[test]
fn the_mainnet_mix_is_valid_and_counted_rightly() {
    let settings = MixSettings { blocks: 434, full: 2, seed: 12, reuse_per_mille: 50 };
    let mut validator = PlainValidator::new(Params::new(Chain::Regtest));
    let mut first = true;
    let stats = mainnet_mix::generate(settings, 2, |bytes| {
        if !std::mem::take(&mut first) {
            let block = RawBlock::new(bytes).parse().unwrap();
            let accepted = validator.accept_block(block, invalid::CASES_NOW).unwrap();
            assert!(accepted.is_active, "{:?}", accepted.invalid);
        }
        Ok(())
    })
    .unwrap();
    let (height, hash) = validator.tip();
    assert_eq!((height.0, hash.to_string()), (stats.height, stats.tip.clone()));
    assert_eq!(validator.coin_count() as u64, stats.coins);
}
