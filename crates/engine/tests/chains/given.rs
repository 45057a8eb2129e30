//! Chains from other sources: the lab's presets, btcd's full-block tests, the real chains from genesis. The engine
//! agrees with the plain validator under every number of workers.

#[allow(dead_code, reason = "each test file uses its part")]
#[path = "../../../../testdata/locate.rs"]
mod locate;

use crate::accept::assert_fed;
use crate::expected::{Expected, parse};
use crate::lydian::{How, Lydian, Place};
use crate::stored::{assert_reasons, store};
use locate::{blocks_of, read, report, testdata};
use lydian_chains::presets::ledger::read_cases;
use lydian_chains::presets::{invalid, reorg, worst};
use lydian_chains::rng::Random;
use lydian_consensus::{Chain, Params, PlainValidator};
use lydian_oracle::Scratch;
use lydian_primitives::{RawBlock, hex};
use std::path::{Path, PathBuf};

fn how(workers: usize, seed: u64) -> How {
    let mut random = Random::new(seed, "given");
    How { workers, is_real: workers == 2, followers: 1, ..How::random(&mut random) }
}

/// Submits blocks one at a time.
fn one_at_a_time(name: &str, params: &Params, expected: &Expected, workers: usize) {
    for seed in 0..2 {
        let how = how(workers, seed);
        let place = Place::new(&how, &format!("given-{name}-{workers}"));
        let lydian = Lydian::open(&place, params, &how).unwrap();
        for (index, fed) in expected.fed.iter().enumerate() {
            assert_fed(fed, &lydian, &format!("{name} {index} under {how:?}"));
        }
        lydian.assert_state(&expected.end, &format!("{name} under {how:?}"));
    }
}

/// Stores all blocks, then validates them in one run; afterwards a new process.
fn all_at_once(name: &str, params: &Params, expected: &Expected, workers: usize) {
    for seed in 2..4 {
        let how = how(workers, seed);
        let when = format!("{name} under {how:?}");
        let place = Place::new(&how, &format!("stored-{name}-{workers}"));
        let lydian = Lydian::open(&place, params, &how).unwrap();
        store(&lydian, expected, 0..expected.fed.len(), &when);
        assert_reasons(&lydian.advance().unwrap(), expected, &when);
        lydian.assert_state(&expected.end, &when);
        assert_eq!(lydian.engine.utxo_hashes().unwrap().muhash, expected.muhash);
        drop(lydian);
        let lydian = Lydian::open(&place, params, &how).unwrap();
        assert_reasons(&lydian.advance().unwrap(), expected, &when);
        lydian.assert_state(&expected.end, &format!("a new process on {when}"));
    }
}

fn compare(name: &str, params: &Params, blocks: Vec<(Vec<u8>, String, u32)>) {
    let expected = Expected::of(params, blocks);
    for workers in [1, 2, 8] {
        one_at_a_time(name, params, &expected, workers);
        all_at_once(name, params, &expected, workers);
    }
}

fn cases(folder: &Path) -> Vec<(Vec<u8>, String, u32)> {
    read_cases(folder).unwrap().into_iter().map(|(line, bytes)| (bytes, line.name, line.now)).collect()
}

fn with_settings(settings: &[&str]) -> Params {
    let with = |params: Params, text: &&str| params.with_activation_height(text).unwrap();
    settings.iter().fold(Params::new(Chain::Regtest), with)
}

/// Every rule that regtest can break, and its twin at the limit.
/// checklist: 92
#[test]
fn preset_invalid() {
    let folder = Scratch::new("engine-invalid");
    invalid::write(1, folder.path()).unwrap();
    compare("invalid", &with_settings(&[]), cases(folder.path()));
    let setting = invalid::BIP30_OPTION.strip_prefix("-testactivationheight=").unwrap();
    compare("bip30", &with_settings(&[setting]), cases(&folder.path().join(invalid::BIP30_FOLDER)));
}

/// checklist: 33, 34, 35
#[test]
fn preset_reorg() {
    let folder = Scratch::new("engine-reorg");
    reorg::write(folder.path()).unwrap();
    compare("reorg", &with_settings(&[]), cases(folder.path()));
}

/// Blocks of the largest kinds, through a window that is smaller than one of them. The plain validator's answers to
/// them are tested in the lab; the expected tip is in the statistics.
/// checklist: 92
#[test]
#[allow(clippy::disallowed_methods, reason = "tests read their data themselves")]
fn preset_worst() {
    let folder = Scratch::new("engine-worst");
    worst::write(1, 2, folder.path()).unwrap();
    let params = with_settings(&[]);
    let how = How { window_bytes: 1_000_000, ..how(2, 1) };
    let place = Place::new(&how, "worst");
    let lydian = Lydian::open(&place, &params, &how).unwrap();
    for (bytes, name, now) in cases(folder.path()) {
        let stored = lydian.engine.store_block(parse(&bytes), i64::from(now)).unwrap();
        assert!(stored.is_ok(), "{name}: {stored:?}");
    }
    lydian.advance().unwrap();
    let stats: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("stats.json")).unwrap()).unwrap();
    let tip = lydian.engine.tip();
    let end = (u64::from(tip.height.0), tip.hash.to_string(), lydian.engine.coins().len());
    let expected = (&stats["height"], &stats["tip"], &stats["coins"]);
    let expected =
        (expected.0.as_u64().unwrap(), expected.1.as_str().unwrap().to_owned(), expected.2.as_u64().unwrap());
    assert_eq!(end, expected);
}

/// btcd's full-block tests, in the order of their dump.
#[test]
fn btcds_full_blocks() {
    let Some(lines) = dump() else { return };
    let Some((parameters, lines)) = lines.split_first() else { panic!("an empty dump") };
    let now = u32::try_from(parameters["generated_at"].as_u64().unwrap()).unwrap();
    let settings = ["dersig@1251", "cltv@1351", "bip34@100000000", "csv@100000000", "segwit@100000000"];
    let blocks = lines.iter().filter_map(|line| {
        let bytes = hex(line["block"].as_str()?).ok()?;
        let name = line["name"].as_str().unwrap_or_default().to_owned();
        RawBlock::new(bytes.clone()).parse().ok().map(|_| (bytes, name, now))
    });
    let blocks: Vec<_> = blocks.collect();
    assert!(blocks.len() > 180, "{}", blocks.len());
    // In the dump some children come before their parents: all blocks are submitted a second time.
    let again = blocks.clone();
    compare("btcd", &with_settings(&settings), blocks.into_iter().chain(again).collect());
}

/// The dump written by `make fullblocktests`.
#[allow(clippy::disallowed_methods, reason = "tests read their data themselves")]
fn dump() -> Option<Vec<serde_json::Value>> {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    let path = cache.unwrap_or_else(home).join("lydian/fullblocktests-0.25.0.jsonl");
    let Ok(text) = std::fs::read_to_string(&path) else {
        report(&format!("not run: btcd's full-block tests on the engine: {} is missing", path.display()));
        return None;
    };
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The real chains, up to 4,312 blocks, stored and then validated in one run.
#[test]
fn real_chains_from_genesis() {
    for (file, chain) in [
        ("blocks/runs/main_000000_004312.blk.zst", Chain::Main),
        ("blocks/runs/test3_000000_004000.blk.zst", Chain::Test),
        ("blocks/runs/signet_000000_000120.blk.zst", Chain::Signet),
    ] {
        let params = Params::new(chain);
        let bytes = read(&testdata(file));
        let blocks = blocks_of(&bytes, params.magic);
        let now = 1_800_000_000;
        let mut plain = PlainValidator::new(params.clone());
        for block in &blocks[1..] {
            plain.accept_block(RawBlock::new(block.to_vec()).parse().unwrap(), now).unwrap();
        }
        for workers in [1, 2, 8] {
            let how = how(workers, 5);
            let place = Place::new(&how, &format!("real-{chain}-{workers}"));
            let lydian = Lydian::open(&place, &params, &how).unwrap();
            for block in &blocks[1..] {
                let block = RawBlock::new(block.to_vec()).parse().unwrap();
                lydian.engine.store_block(block, i64::from(now)).unwrap().unwrap();
            }
            let advance = lydian.advance().unwrap();
            assert_eq!(advance.connected, blocks.len() as u64 - 1);
            lydian.assert_state(&crate::expected::state_of(&plain), &format!("{chain} under {how:?}"));
        }
    }
}
