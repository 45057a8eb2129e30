//! Runs the lab's presets through both validators: same verdict and reason for each block, same tip after each, same
//! coins at the end.

use super::duel::Duel;
use lydian_chains::presets::ledger::read_cases;
use lydian_chains::presets::{invalid, reorg, worst};
use lydian_consensus::{Chain, Params};
use lydian_oracle::{Daemon, Scratch, or_skip};
use std::path::Path;

fn fight(name: &str, folder: &Path, settings: &[&str]) {
    let options: Vec<String> = settings.iter().map(|text| format!("-testactivationheight={text}")).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let Some(daemon) = or_skip(&format!("blocks: preset {name}"), Daemon::start(&options)) else { return };
    let with = |params: Params, text: &&str| params.with_activation_height(text).unwrap();
    let params = settings.iter().fold(Params::new(Chain::Regtest), with);
    let cases = read_cases(folder).unwrap();
    let mut duel = Duel::new(&params, daemon, cases[0].0.now, format!("preset {name}"));
    for (line, bytes) in &cases {
        if line.now != duel.now {
            duel.set_now(line.now);
        }
        duel.submit_bytes(bytes, None, &line.name);
    }
    duel.compare_coins("hash_serialized_3");
    duel.compare_coins("muhash");
    eprintln!("preset {name}: {} blocks, {} answers", duel.tally.blocks, duel.tally.reasons.len());
    assert_eq!(duel.tally.blocks, cases.len() as u64);
}

#[test]
fn preset_invalid() {
    let folder = Scratch::new("presets-invalid");
    invalid::write(1, folder.path()).unwrap();
    fight("invalid", folder.path(), &[]);
    let setting = invalid::BIP30_OPTION.strip_prefix("-testactivationheight=").unwrap();
    fight("invalid, BIP-0030", &folder.path().join(invalid::BIP30_FOLDER), &[setting]);
}

#[test]
fn preset_reorg() {
    let folder = Scratch::new("presets-reorg");
    reorg::write(folder.path()).unwrap();
    fight("reorg", folder.path(), &[]);
}

#[test]
fn preset_worst() {
    let folder = Scratch::new("presets-worst");
    worst::write(1, 2, folder.path()).unwrap();
    fight("worst", folder.path(), &[]);
}
