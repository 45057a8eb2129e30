//! Preset `mainnet-mix`: a regtest chain whose last blocks are as full and as mixed as those of mainnet.
//!
//! Input: settings and a directory. Output: block files and `stats.json`. Cost: about 100 us of CPU per input
//! (including its two outputs), on all cores.

use crate::assemble::{Assembler, regtest_genesis};
use crate::error::ChainsError;
use crate::files::{BlockWriter, write_text};
use crate::plan::{MixSettings, Planner};
use crate::stats::Stats;
use crate::wallet::Wallet;
use lydian_hash::sha256d;
use lydian_primitives::BlockHash;
use std::path::Path;

/// Passes each block of the chain to `sink`, starting with the genesis block, and returns the counts.
pub fn generate(
    settings: MixSettings,
    threads: usize,
    mut sink: impl FnMut(&[u8]) -> Result<(), ChainsError>,
) -> Result<Stats, ChainsError> {
    let mut planner = Planner::new(settings)?;
    let genesis = regtest_genesis();
    let genesis_hash = BlockHash(sha256d(&genesis[..80]));
    let mut assembler = Assembler::new(Wallet::new(settings.seed), threads, genesis_hash);
    let reuse = f64::from(u32::try_from(settings.reuse_per_mille).unwrap_or_default()) / 1000.0;
    let mut stats = Stats { preset: "mainnet-mix".into(), seed: settings.seed, reuse, ..Stats::default() };
    sink(&genesis)?;
    while let Some(planned) = planner.next_block() {
        let made = assembler.make(&planned);
        stats.add(&planned, &made);
        sink(&made.bytes)?;
    }
    stats.coins = planner.coin_count() as u64;
    Ok(stats)
}

/// Writes the chain into a directory.
pub fn write(settings: MixSettings, threads: usize, folder: &Path) -> Result<Stats, ChainsError> {
    // Fail before the directory is created if the settings are refused.
    Planner::new(settings)?;
    let mut writer = BlockWriter::new(folder, "blk")?;
    let mut stats = generate(settings, threads, |block| writer.write(block).map(|_| ()))?;
    stats.file_bytes = writer.bytes();
    write_text(&folder.join("stats.json"), &stats.to_json())?;
    Ok(stats)
}
