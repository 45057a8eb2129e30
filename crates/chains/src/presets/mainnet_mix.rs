//! Preset `mainnet-mix`: a regtest chain whose last blocks are as full and as mixed as those of mainnet.
//!
//! Input: settings and a directory. Output: block files and `stats.json`. Cost: `docs/benchmarks/generator.md`.

use crate::assemble::{Assembler, regtest_genesis};
use crate::error::ChainsError;
use crate::files::{BlockWriter, write_text};
use crate::plan::{MixSettings, Planner};
use crate::stats::Stats;
use crate::wallet::Wallet;
use lydian_hash::sha256d;
use lydian_primitives::BlockHash;
use std::path::Path;
use std::sync::mpsc::sync_channel;

/// Blocks that wait between two of the three threads.
const WAITING_BLOCKS: usize = 4;

/// Passes each block of the chain to `sink`, starting with the genesis block, and returns the counts. Blocks are
/// planned and made ahead, each on a thread of its own, while `sink` takes them here.
pub fn generate(
    settings: MixSettings,
    threads: usize,
    sink: impl FnMut(&[u8]) -> Result<(), ChainsError>,
) -> Result<Stats, ChainsError> {
    generate_from(Planner::new(settings)?, settings, threads, sink)
}

fn generate_from(
    mut planner: Planner,
    settings: MixSettings,
    threads: usize,
    mut sink: impl FnMut(&[u8]) -> Result<(), ChainsError>,
) -> Result<Stats, ChainsError> {
    let genesis = regtest_genesis();
    let genesis_hash = BlockHash(sha256d(&genesis[..80]));
    let mut assembler = Assembler::new(Wallet::new(settings.seed), threads, genesis_hash);
    let reuse = f64::from(u32::try_from(settings.reuse_per_mille).unwrap_or_default()) / 1000.0;
    let mut stats = Stats { preset: "mainnet-mix".into(), seed: settings.seed, reuse, ..Stats::default() };
    sink(&genesis)?;
    let (to_maker, planned) = sync_channel(WAITING_BLOCKS);
    let (to_sink, made) = sync_channel(WAITING_BLOCKS);
    // An ended receiver ends its sender, so that every thread ends if `sink` fails.
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while let Some(block) = planner.next_block() {
                if to_maker.send((block, planner.coin_count())).is_err() {
                    break;
                }
            }
        });
        scope.spawn(move || {
            for (block, coins) in planned {
                let made = assembler.make(&block);
                if to_sink.send((block, made, coins)).is_err() {
                    break;
                }
            }
        });
        for (block, block_made, coins) in made {
            stats.add(&block, &block_made);
            stats.coins = coins as u64;
            sink(&block_made.bytes)?;
        }
        Ok(stats)
    })
}

/// Writes the chain into a directory.
pub fn write(settings: MixSettings, threads: usize, folder: &Path) -> Result<Stats, ChainsError> {
    write_from(Planner::new(settings)?, settings, threads, folder)
}

/// The same with at least this many coins below the full blocks.
pub fn write_prepared(settings: MixSettings, coins: u64, threads: usize, folder: &Path) -> Result<Stats, ChainsError> {
    let mut planner = Planner::new(settings)?;
    planner.prepare_coins(coins)?;
    write_from(planner, settings, threads, folder)
}

/// Refused settings leave no directory behind, since there is a planner.
fn write_from(planner: Planner, settings: MixSettings, threads: usize, folder: &Path) -> Result<Stats, ChainsError> {
    let mut writer = BlockWriter::new(folder, "blk")?;
    let mut stats = generate_from(planner, settings, threads, |block| writer.write(block).map(|_| ()))?;
    stats.file_bytes = writer.bytes();
    write_text(&folder.join("stats.json"), &stats.to_json())?;
    Ok(stats)
}
