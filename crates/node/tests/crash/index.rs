//! Kills while an index is built from the block files, in the background of a running node. See the parent.

use crate::process::{Killed, disturb, lydian, setting, words};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_chains::rng::Random;
use lydian_oracle::Scratch;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The part of the kills of `make crash`: a hundred of a thousand.
const SHARE: u64 = 10;

/// Default number of kills.
const KILLS: u64 = 4;

/// Kills of one piece of work at most, so that it ends now and then.
const KILLS_AT_ONCE: u64 = 6;

const STARTS_MAX: u32 = 100;

/// The node's options: an error of the index would end it.
fn options() -> Vec<String> {
    words(&["-coinstatsindex", "-indexrequired"])
}

/// The log of the index, if it is finished: its tip file names a record for every block.
#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
fn finished(folder: &Path, blocks: u32) -> Option<Vec<u8>> {
    let index = folder.join("regtest/indexes/coinstats");
    let tip = fs::read(index.join("stats.tip")).ok()?;
    // Record head, text, version, genesis hash; then the height.
    let at = 12 + 16 + 4 + 32;
    let height = u32::from_le_bytes(tip[at..at + 4].try_into().unwrap());
    (height == blocks).then(|| fs::read(index.join("stats.log")).unwrap())
}

/// checklist: 86, 97
#[test]
#[allow(clippy::disallowed_methods, reason = "a test measures its own time and makes its own folders")]
fn killed_while_an_index_is_built() {
    let scratch = Scratch::new("crash-index");
    let chain = scratch.path().join("chain");
    let blocks = 440;
    mainnet_mix::write(MixSettings { blocks, full: 2, seed: 7, reuse_per_mille: 0 }, 2, &chain).unwrap();
    let folder = scratch.path().join("node");
    fs::create_dir_all(&folder).unwrap();
    let output = lydian(&folder, &words(&["import", &chain.display().to_string()])).output().unwrap();
    assert!(output.status.success(), "{output:?}");

    // Undisturbed, to compare with. The node has the index when a start is told to stop and the tip file is there.
    let mut random = Random::new(setting("LYDIAN_CRASH_SEED").unwrap_or(1), "crash-index");
    let start = Instant::now();
    let mut child = lydian(&folder, &options()).spawn().unwrap();
    let expected = loop {
        assert_eq!(child.try_wait().unwrap(), None, "the node ended");
        assert!(start.elapsed() < Duration::from_secs(120), "the index is built");
        if let Some(log) = finished(&folder, blocks) {
            break log;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let duration = start.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();

    let kills = setting("LYDIAN_CRASH_RUNS").map_or(KILLS, |runs| runs * SHARE / 100);
    let (mut killed, mut pieces) = (0, 0);
    while killed < kills {
        fs::remove_dir_all(folder.join("regtest/indexes")).unwrap();
        pieces += 1;
        let at_once = (kills - killed).min(1 + random.below(KILLS_AT_ONCE));
        let mut left = at_once;
        for start in 0.. {
            assert!(start < STARTS_MAX, "piece {pieces}: not done after {start} starts");
            let child = lydian(&folder, &options()).spawn().unwrap();
            let longest = if left > 0 { duration } else { duration * 4 };
            let Killed { output, was_killed } = disturb(child, longest, &mut random);
            assert!(was_killed || output.status.success(), "start {start}: {output:?}");
            left = left.saturating_sub(1);
            killed += 1;
            if let Some(log) = finished(&folder, blocks) {
                assert_eq!(log.len(), expected.len(), "piece {pieces}, start {start}");
                assert!(log == expected, "piece {pieces}, start {start}: other records");
                break;
            }
        }
    }
    eprintln!("crash-index: {killed} kills in {pieces} pieces of work");
}
