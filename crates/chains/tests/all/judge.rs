//! Compares the generated chains with Bitcoin Core: tip, coins, and the reject reason of every planted violation.
//!
//! Without the judge the tests say so and count as not run (`LYDIAN_REQUIRE_JUDGE=1` makes that a failure).

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and reads its own files"
)]

use lydian_chains::plan::MixSettings;
use lydian_chains::presets::ledger::read_cases;
use lydian_chains::presets::{invalid, mainnet_mix, reorg, worst};
use lydian_oracle::{Daemon, Scratch, Submission, or_skip};
use std::path::Path;

/// Submits every block of a folder in order; returns the differences from the expectations.
fn differences(daemon: &mut Daemon, folder: &Path) -> Vec<String> {
    let mut now = 0;
    let mut differences = Vec::new();
    for (line, bytes) in read_cases(folder).unwrap() {
        if line.now != now {
            now = line.now;
            daemon.set_mock_time(u64::from(now)).unwrap();
        }
        let answer = match daemon.submit_block(&bytes).unwrap() {
            Submission::Accepted => "accept".to_owned(),
            Submission::Duplicate => "duplicate".to_owned(),
            Submission::Inconclusive => "inconclusive".to_owned(),
            Submission::Rejected(reason) => reason,
            Submission::Undecodable => "undecodable".to_owned(),
        };
        if answer != line.expect {
            differences
                .push(format!("{} at {}: Core says {answer}, we expect {}", line.name, line.height, line.expect));
        }
    }
    let stats: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("stats.json")).unwrap()).unwrap();
    let end = daemon.txoutset("none").unwrap();
    let expected = (stats["tip"].as_str().unwrap(), stats["coins"].as_u64().unwrap());
    if (end.best_block.as_str(), end.txouts) != expected {
        differences.push(format!("ends with {end:?}, expected {expected:?}"));
    }
    differences
}

#[test]
fn core_takes_the_worst_blocks() {
    let folder = Scratch::new("worst");
    worst::write(1, 2, folder.path()).unwrap();
    let Some(mut daemon) = or_skip("worst preset", Daemon::start(&["-par=2"])) else { return };
    let found = differences(&mut daemon, folder.path());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn core_ends_on_the_expected_branch() {
    let folder = Scratch::new("reorg");
    reorg::write(folder.path()).unwrap();
    let Some(mut daemon) = or_skip("reorg preset", Daemon::start(&["-par=2"])) else { return };
    let found = differences(&mut daemon, folder.path());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn core_gives_every_invalid_block_the_expected_reason() {
    let folder = Scratch::new("invalid");
    let lines = invalid::write(1, folder.path()).unwrap();
    let Some(mut daemon) = or_skip("invalid preset", Daemon::start(&["-par=2"])) else { return };
    let found = differences(&mut daemon, folder.path());
    assert!(found.is_empty(), "{}", found.join("\n"));
    let options = [invalid::BIP30_OPTION];
    let Some(mut daemon) = or_skip("invalid preset, BIP-0030", Daemon::start(&options)) else { return };
    let found = differences(&mut daemon, &folder.path().join(invalid::BIP30_FOLDER));
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(lines.len() > 500, "{}", lines.len());
}

#[test]
fn core_takes_the_mainnet_mix_to_its_tip() {
    let folder = Scratch::new("mix");
    let settings = MixSettings { blocks: 436, full: 2, seed: 11, reuse_per_mille: 100 };
    let stats = mainnet_mix::write(settings, 2, folder.path()).unwrap();
    let load = format!("-loadblock={}", folder.path().join("blk00000.dat").display());
    let Some(mut daemon) = or_skip("mainnet-mix", Daemon::start(&["-par=2", &load])) else { return };
    for _ in 0..600 {
        if daemon.height().unwrap() == u64::from(stats.height) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let coins = daemon.txoutset("none").unwrap();
    assert_eq!((coins.best_block, coins.txouts), (stats.tip, stats.coins));
}
