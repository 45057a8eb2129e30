//! The sizes of generated chains, for every command that takes a preset.

use lydian_chains::plan::MixSettings;
use lydian_chains::presets::reuse::ReuseSettings;
use lydian_lab::LabError;

#[derive(Debug, clap::Args)]
pub(crate) struct SizeArgs {
    /// For mainnet-mix and empty: number of blocks above the genesis block.
    #[arg(long, default_value_t = 550)]
    pub(crate) blocks: u32,
    /// For mainnet-mix: number of blocks, at the end, that are near the weight limit; they are above height 432.
    #[arg(long, default_value_t = 100)]
    full: u32,
    /// For mainnet-mix: number of coins that the blocks before the full ones create at least, at most 26,000 each, so
    /// that the full blocks spend from a large set.
    #[arg(long)]
    pub(crate) coins: Option<u64>,
    /// For reuse: number of scripts with 10 to 999 transactions each.
    #[arg(long, default_value_t = 3_000)]
    scripts: u32,
    /// For reuse: number of transactions of a script that keeps a single coin, and of one that keeps its coins; 0
    /// leaves that script out.
    #[arg(long, num_args = 1, value_parser = fat, default_value = "20000,47000")]
    fat: (u32, u32),
}

impl SizeArgs {
    /// The settings of mainnet-mix. `reuse` is the share of the outputs that pay a key used before.
    pub(crate) fn mix(&self, seed: u64, reuse: f64) -> Result<MixSettings, LabError> {
        Ok(MixSettings { blocks: self.blocks, full: self.full, seed, reuse_per_mille: per_mille(reuse)? })
    }

    pub(crate) fn reuse(&self, seed: u64) -> ReuseSettings {
        ReuseSettings { seed, scripts: self.scripts, fat_spent: self.fat.0, fat_kept: self.fat.1 }
    }
}

fn per_mille(share: f64) -> Result<u64, LabError> {
    (0..=1000u32)
        .find(|&step| (f64::from(step) - share * 1000.0).abs() <= 0.5)
        .map(u64::from)
        .ok_or_else(|| LabError::Usage("--reuse is a share between 0 and 1".into()))
}

fn fat(text: &str) -> Result<(u32, u32), String> {
    let pair = text.split_once(',').and_then(|(spent, kept)| Some((spent.parse().ok()?, kept.parse().ok()?)));
    pair.ok_or_else(|| "expected two numbers, as in 20000,47000".into())
}
