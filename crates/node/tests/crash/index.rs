//! Kills while an index is built from the block files, in the background of a running node. See the parent.

use crate::process::{Killed, disturb, lydian, setting, words};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_chains::rng::Random;
use lydian_disk::record::encode_record;
use lydian_oracle::Scratch;
use std::fs;
use std::path::{Path, PathBuf};
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
    words(&["-coinstatsindex", "-txindex", "-txospenderindex", "-indexrequired"])
}

/// The offset in the record of the tables of the height up to which blocks are in segments: behind the head, text,
/// version, genesis hash, salt, and the height up to which they are sealed.
pub const WRITTEN_AT: usize = 12 + 16 + 4 + 32 + 16 + 4;

/// The height that a record names.
#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
pub fn height_in(file: &Path, at: usize) -> Option<u32> {
    let bytes = fs::read(file).ok()?;
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().unwrap()))
}

/// The files of the indexes, if both are finished: their records name the last block.
#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
fn finished(folder: &Path, blocks: u32) -> Option<Vec<(PathBuf, Vec<u8>)>> {
    let (stats, tables) = (folder.join("regtest/indexes/coinstats"), folder.join("regtest/indexes/tables"));
    // Record head, text, version, genesis hash; of the tables also the salt, two heights, and a byte.
    let heights = [
        (stats.join("stats.tip"), 12 + 16 + 4 + 32, blocks),
        (tables.join("commit"), WRITTEN_AT, blocks / 256 * 256),
        (tables.join("commit"), WRITTEN_AT + 4 + 1, blocks),
    ];
    if !heights.iter().all(|(file, at, height)| height_in(file, *at) == Some(*height)) {
        return None;
    }
    let mut files: Vec<PathBuf> = fs::read_dir(&tables).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.push(stats.join("stats.log"));
    files.sort();
    Some(files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect())
}

/// Removes the indexes, but for the salt of the tables: their record names no block any more.
#[allow(clippy::disallowed_methods, reason = "a test changes its own files")]
fn remove_indexes(folder: &Path) {
    fs::remove_dir_all(folder.join("regtest/indexes/coinstats")).unwrap();
    for entry in fs::read_dir(folder.join("regtest/indexes/tables")).unwrap() {
        let file = entry.unwrap().path();
        if !file.ends_with("commit") {
            fs::remove_file(file).unwrap();
            continue;
        }
        let mut payload = fs::read(&file).unwrap()[12..WRITTEN_AT + 4 + 1].to_vec();
        payload[WRITTEN_AT - 12 - 4..WRITTEN_AT - 12 + 4].fill(0);
        let mut record = Vec::new();
        encode_record(&payload, 0, &mut record);
        fs::write(&file, record).unwrap();
    }
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
        if let Some(files) = finished(&folder, blocks) {
            break files;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let duration = start.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();

    let kills = setting("LYDIAN_CRASH_RUNS").map_or(KILLS, |runs| runs * SHARE / 100);
    let (mut killed, mut pieces) = (0, 0);
    while killed < kills {
        remove_indexes(&folder);
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
            if let Some(files) = finished(&folder, blocks) {
                let names = |files: &[(PathBuf, Vec<u8>)]| -> Vec<PathBuf> {
                    files.iter().map(|(name, _)| name.clone()).collect()
                };
                assert_eq!(names(&files), names(&expected), "piece {pieces}, start {start}");
                assert!(files == expected, "piece {pieces}, start {start}: other records");
                break;
            }
        }
    }
    eprintln!("crash-index: {killed} kills in {pieces} pieces of work");
}
