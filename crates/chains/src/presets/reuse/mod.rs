//! Preset `reuse`: a chain in which some thousand scripts are paid and spent repeatedly, for servers that answer
//! queries about scripts.
//!
//! Input: [`ReuseSettings`] and a directory. Output: block files, `stats.json`, and `targets.json` with the scripts and
//! their numbers of transactions and coins. Invariants: as for every preset, the bytes depend only on the settings;
//! each script is touched by exactly the number of transactions drawn for it, and ends with exactly the drawn number of
//! coins. Cost: about 100 us of CPU per input, on all cores; 40 bytes of memory per coin and 32 per transaction.

mod planner;
mod story;

pub use planner::Planner;
pub use story::{Step, Story};

use crate::assemble::{Assembler, regtest_genesis};
use crate::error::ChainsError;
use crate::files::{BlockWriter, write_text};
use crate::limits::{REUSE_FAT_MAX, REUSE_FAT_MIN, REUSE_SCRIPTS_MAX};
use crate::regtest::{BLOCK_WEIGHT_MAX, VOTED_ACTIVATION_HEIGHT};
use crate::stats::Stats;
use crate::targets::{TARGETS_FILE, Target, Targets};
use crate::wallet::Wallet;
use lydian_hash::sha256d;
use lydian_primitives::BlockHash;
use std::path::Path;

/// The parameters of a chain of the preset `reuse`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReuseSettings {
    pub seed: u64,
    /// Number of scripts with 10 to 999 transactions each.
    pub scripts: u32,
    /// Transactions of a further script that keeps a single coin; 0 leaves it out.
    pub fat_spent: u32,
    /// Transactions of a further script that ends with slightly more coins than transactions; 0 leaves it out.
    pub fat_kept: u32,
}

/// Active blocks per thousand scripts: 3,000 scripts end at height 2,190.
const ACTIVE_BLOCKS_PER_MILLE: u32 = 586;
const ACTIVE_BLOCKS_MIN: u32 = 20;

impl Default for ReuseSettings {
    fn default() -> ReuseSettings {
        ReuseSettings { seed: 1, scripts: 3_000, fat_spent: 20_000, fat_kept: 47_000 }
    }
}

impl ReuseSettings {
    /// Refuses settings that are impossible for a chain.
    pub fn check(&self) -> Result<(), ChainsError> {
        if self.scripts == 0 || self.scripts > REUSE_SCRIPTS_MAX {
            return Err(ChainsError::Usage(format!("--scripts must lie between 1 and {REUSE_SCRIPTS_MAX}")));
        }
        let is_good = |fat: u32| fat == 0 || (REUSE_FAT_MIN..=REUSE_FAT_MAX).contains(&fat);
        if is_good(self.fat_spent) && is_good(self.fat_kept) {
            return Ok(());
        }
        let text = format!("--fat takes two numbers, each 0 or between {REUSE_FAT_MIN} and {REUSE_FAT_MAX}");
        Err(ChainsError::Usage(text))
    }

    /// The height of the last block, unless full blocks defer transactions beyond it.
    pub fn blocks(&self) -> u32 {
        VOTED_ACTIVATION_HEIGHT + (self.scripts * ACTIVE_BLOCKS_PER_MILLE / 1000).max(ACTIVE_BLOCKS_MIN)
    }
}

/// Passes each block of the chain to `sink`, starting with the genesis block, and returns the counts and the scripts.
pub fn generate(
    settings: ReuseSettings,
    threads: usize,
    mut sink: impl FnMut(&[u8]) -> Result<(), ChainsError>,
) -> Result<(Stats, Targets), ChainsError> {
    let mut planner = Planner::new(settings)?;
    let genesis = regtest_genesis();
    let genesis_hash = BlockHash(sha256d(&genesis[..80]));
    let wallet = Wallet::new(settings.seed);
    let mut assembler = Assembler::new(wallet, threads, genesis_hash);
    assembler.remember(planner.stories().iter().map(|story| story.lock));
    let mut stats = Stats { preset: "reuse".into(), seed: settings.seed, ..Stats::default() };
    sink(&genesis)?;
    while let Some(planned) = planner.next_block()? {
        let made = assembler.make(&planned);
        if made.weight > BLOCK_WEIGHT_MAX {
            return Err(ChainsError::Usage(format!("block {} is too heavy; try another --seed", planned.height)));
        }
        stats.add(&planned, &made);
        sink(&made.bytes)?;
    }
    stats.coins = planner.coin_count() as u64;
    let target = |story: &Story| {
        let script = wallet.script_pubkey(story.lock);
        Target { kind: Some(story.lock.kind), ..Target::new(script, story.transactions(), story.coin_count()) }
    };
    let targets = Targets { scripts: planner.stories().iter().map(target).collect() };
    Ok((stats, targets))
}

/// Writes the chain into a directory.
pub fn write(settings: ReuseSettings, threads: usize, folder: &Path) -> Result<Stats, ChainsError> {
    // Refused settings leave no directory behind.
    settings.check()?;
    let mut writer = BlockWriter::new(folder, "blk")?;
    let (mut stats, targets) = generate(settings, threads, |block| writer.write(block).map(|_| ()))?;
    stats.file_bytes = writer.bytes();
    write_text(&folder.join(TARGETS_FILE), &targets.to_json())?;
    write_text(&folder.join("stats.json"), &stats.to_json())?;
    Ok(stats)
}
