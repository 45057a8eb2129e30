//! The settings of the preset `reuse`, for every command that takes a preset.

use lydian_chains::presets::reuse::ReuseSettings;

#[derive(Debug, clap::Args)]
pub(crate) struct ReuseArgs {
    /// For reuse: number of scripts with 10 to 999 transactions each.
    #[arg(long, default_value_t = 3_000)]
    scripts: u32,
    /// For reuse: number of transactions of a script that keeps a single coin, and of one that keeps its coins; 0
    /// leaves that script out.
    #[arg(long, num_args = 1, value_parser = fat, default_value = "20000,47000")]
    fat: (u32, u32),
}

impl ReuseArgs {
    pub(crate) fn settings(&self, seed: u64) -> ReuseSettings {
        ReuseSettings { seed, scripts: self.scripts, fat_spent: self.fat.0, fat_kept: self.fat.1 }
    }
}

fn fat(text: &str) -> Result<(u32, u32), String> {
    let pair = text.split_once(',').and_then(|(spent, kept)| Some((spent.parse().ok()?, kept.parse().ok()?)));
    pair.ok_or_else(|| "expected two numbers, as in 20000,47000".into())
}
