//! Generates each chain once and keeps it in the cache folder, so that a comparison is a single command.
//!
//! Input: a preset with its settings. Output: the chain, generated if it is not cached yet. The folder name contains
//! everything that the bytes depend on: the preset, its settings and the version of the generator. Invariant: a folder
//! with its final name is complete.

use super::system::{create_dir, remove_dir};
use crate::error::LabError;
use lydian_chains::ChainsError;
use lydian_chains::chain_files::{Answer, ChainFiles};
use lydian_chains::limits::CHAIN_FILE_SIZE_MAX;
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::deep::{self, Base, DeepSettings};
use lydian_chains::presets::mempool_mix::{self, MempoolSettings};
use lydian_chains::presets::reuse::{self, ReuseSettings};
use lydian_chains::presets::scale::{self, ScaleSettings};
use lydian_chains::presets::{empty, mainnet_mix, worst};
use lydian_disk::{Disk, RealDisk, read_whole};
use std::path::{Path, PathBuf};

/// The version of the bytes that the presets generate; a test notices when the bytes change.
pub const GENERATOR_VERSION: u32 = 1;
const ANSWER_FILE: &str = "answer.json";

/// The presets that can be measured: chains without branches and without refused blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    MainnetMix(MixSettings),
    /// With at least this many coins below the full blocks.
    Prepared {
        mix: MixSettings,
        coins: u64,
    },
    Worst {
        seed: u64,
    },
    Empty {
        blocks: u32,
    },
    Reuse(ReuseSettings),
    /// With the transactions of a mempool above its tip.
    Mempool(MempoolSettings),
    /// Another one, with empty blocks above.
    Deep(DeepSettings),
    /// With a script of very many transactions.
    Scale(ScaleSettings),
}

impl Preset {
    /// The name of the chain's folder.
    pub fn key(&self) -> String {
        let version = GENERATOR_VERSION;
        match self {
            Preset::MainnetMix(MixSettings { blocks, full, seed, reuse_per_mille }) => {
                format!("mainnet-mix-{blocks}-{full}-seed{seed}-reuse{reuse_per_mille}-v{version}")
            }
            Preset::Prepared { mix, coins } => format!("{}-coins{coins}", Preset::MainnetMix(*mix).key()),
            Preset::Worst { seed } => format!("worst-seed{seed}-v{version}"),
            Preset::Empty { blocks } => format!("empty-{blocks}-v{version}"),
            Preset::Reuse(ReuseSettings { seed, scripts, fat_spent, fat_kept }) => {
                format!("reuse-{scripts}-fat{fat_spent}-{fat_kept}-seed{seed}-v{version}")
            }
            Preset::Mempool(MempoolSettings { transactions, full, seed, per_block }) => {
                format!("mempool-mix-{transactions}-by{per_block}-full{full}-seed{seed}-v{version}")
            }
            Preset::Deep(DeepSettings { base, height }) => {
                let below = match *base {
                    Base::Mix(mix) => Preset::MainnetMix(mix),
                    Base::Reuse(reuse) => Preset::Reuse(reuse),
                };
                format!("{}-to{height}", below.key())
            }
            Preset::Scale(ScaleSettings { transactions, per_block, scripts, height }) => {
                format!("scale-{transactions}-by{per_block}-scripts{scripts}-to{height}-v{version}")
            }
        }
    }

    fn write(&self, threads: usize, folder: &Path) -> Result<(), ChainsError> {
        match *self {
            Preset::MainnetMix(settings) => mainnet_mix::write(settings, threads, folder).map(|_| ()),
            Preset::Prepared { mix, coins } => mainnet_mix::write_prepared(mix, coins, threads, folder).map(|_| ()),
            Preset::Worst { seed } => worst::write(seed, threads, folder).map(|_| ()),
            Preset::Empty { blocks } => empty::write(blocks, folder).map(|_| ()),
            Preset::Reuse(settings) => reuse::write(settings, threads, folder).map(|_| ()),
            Preset::Mempool(settings) => mempool_mix::write(settings, threads, folder).map(|_| ()),
            Preset::Deep(settings) => deep::write(settings, threads, folder).map(|_| ()),
            Preset::Scale(settings) => scale::write(settings, folder).map(|_| ()),
        }
    }
}

/// Returns the folder of the chain below `cache`, and the chain.
pub fn ensure(
    preset: Preset,
    cache: &Path,
    threads: usize,
    print_progress: &mut dyn FnMut(&str),
) -> Result<(PathBuf, ChainFiles), LabError> {
    let folder = cache.join(preset.key());
    if RealDisk.kind(&folder).is_err() {
        let unfinished = cache.join(format!("{}.new", preset.key()));
        remove_dir(&unfinished)?;
        create_dir(cache)?;
        print_progress(&format!("making the chain {}", preset.key()));
        preset.write(threads, &unfinished)?;
        let chain = ChainFiles::open(&unfinished, None)?;
        if let Some(answer) = &chain.answer {
            let text = serde_json::to_string_pretty(answer).unwrap_or_default() + "\n";
            RealDisk.write_whole(&unfinished.join(ANSWER_FILE), text.as_bytes())?;
        }
        std::fs::rename(&unfinished, &folder).map_err(|error| LabError::io("rename", &unfinished, error))?;
    }
    let chain = ChainFiles::open(&folder, answer_in(&folder)?)?;
    Ok((folder, chain))
}

fn answer_in(folder: &Path) -> Result<Option<Answer>, LabError> {
    let path = folder.join(ANSWER_FILE);
    if RealDisk.kind(&path).is_err() {
        return Ok(None);
    }
    let bytes = read_whole(&RealDisk, &path, CHAIN_FILE_SIZE_MAX)?;
    let parsed = serde_json::from_slice(&bytes);
    parsed.map(Some).map_err(|error| LabError::Usage(format!("{}: {error}", path.display())))
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests read and write their own files")]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lydian-lab-cache-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    const MIX_SHA256: &str = "3f2b76878bb77932870c6e04e2297537cb49a070f126aad9286b0fdbb5ee39b8";
    const EMPTY_SHA256: &str = "4f9f12cbdc3947fb45fccabd45736e5640b0d5eef9c3a4ef469f784acf390833";
    const REUSE_SHA256: &str = "40f6a4e557bebe14ec648af91479dcc055eaf2a2556322498e63d2a33c45e411";

    /// If this fails, the presets generate different bytes than before: raise GENERATOR_VERSION and update the hashes.
    #[test]
    fn the_version_stands_for_these_bytes() {
        let cache = scratch("version");
        let sha256 = |preset| ensure(preset, &cache, 2, &mut |_| ()).unwrap().1.facts.sha256;
        let mix = MixSettings { blocks: 434, full: 1, seed: 1, reuse_per_mille: 200 };
        let reuse = ReuseSettings { seed: 1, scripts: 20, fat_spent: 100, fat_kept: 100 };
        let presets = [Preset::MainnetMix(mix), Preset::Empty { blocks: 20 }, Preset::Reuse(reuse)];
        let found = (GENERATOR_VERSION, presets.map(sha256));
        assert_eq!(found, (1, [MIX_SHA256, EMPTY_SHA256, REUSE_SHA256].map(str::to_owned)));
        std::fs::remove_dir_all(&cache).unwrap();
    }

    #[test]
    fn a_chain_is_made_once() {
        let cache = scratch("once");
        let mut said = Vec::new();
        let preset = Preset::Empty { blocks: 5 };
        // The leftovers of an interrupted lab are ignored.
        std::fs::create_dir_all(cache.join(format!("{}.new", preset.key()))).unwrap();
        let (folder, first) = ensure(preset, &cache, 1, &mut |text| said.push(text.to_owned())).unwrap();
        let (_, again) = ensure(preset, &cache, 1, &mut |text| said.push(text.to_owned())).unwrap();
        assert_eq!(said.len(), 1, "{said:?}");
        assert_eq!((first.answer.clone(), first.facts), (again.answer, again.facts));
        assert_eq!(first.answer.unwrap().coins, Some(5));
        std::fs::write(folder.join(ANSWER_FILE), "{").unwrap();
        assert!(ensure(preset, &cache, 1, &mut |_| ()).is_err());
        std::fs::remove_dir_all(&cache).unwrap();
    }

    #[test]
    fn whatever_changes_the_bytes_is_in_the_name() {
        let mix = MixSettings { blocks: 550, full: 100, seed: 1, reuse_per_mille: 0 };
        let reuse = ReuseSettings::default();
        let mempool = MempoolSettings { transactions: 300, full: 0, seed: 1, per_block: 100 };
        let scale = ScaleSettings { transactions: 300, per_block: 100, scripts: 10, height: 500 };
        let others = [
            Preset::MainnetMix(MixSettings { blocks: 551, ..mix }),
            Preset::MainnetMix(MixSettings { full: 99, ..mix }),
            Preset::MainnetMix(MixSettings { seed: 2, ..mix }),
            Preset::MainnetMix(MixSettings { reuse_per_mille: 1, ..mix }),
            Preset::Worst { seed: 1 },
            Preset::Worst { seed: 2 },
            Preset::Empty { blocks: 550 },
            Preset::Empty { blocks: 551 },
            Preset::Reuse(reuse),
            Preset::Reuse(ReuseSettings { seed: 2, ..reuse }),
            Preset::Reuse(ReuseSettings { scripts: 2, ..reuse }),
            Preset::Reuse(ReuseSettings { fat_spent: 0, ..reuse }),
            Preset::Reuse(ReuseSettings { fat_kept: 0, ..reuse }),
            Preset::MainnetMix(mix),
            Preset::Mempool(mempool),
            Preset::Mempool(MempoolSettings { transactions: 301, ..mempool }),
            Preset::Mempool(MempoolSettings { full: 1, ..mempool }),
            Preset::Mempool(MempoolSettings { seed: 2, ..mempool }),
            Preset::Mempool(MempoolSettings { per_block: 101, ..mempool }),
            Preset::Deep(DeepSettings { base: Base::Mix(mix), height: 3_200 }),
            Preset::Deep(DeepSettings { base: Base::Mix(mix), height: 3_201 }),
            Preset::Deep(DeepSettings { base: Base::Reuse(reuse), height: 3_200 }),
            Preset::Scale(scale),
            Preset::Scale(ScaleSettings { transactions: 301, ..scale }),
            Preset::Scale(ScaleSettings { per_block: 101, ..scale }),
            Preset::Scale(ScaleSettings { scripts: 11, ..scale }),
            Preset::Scale(ScaleSettings { height: 501, ..scale }),
        ];
        let names: std::collections::BTreeSet<String> = others.iter().map(Preset::key).collect();
        assert_eq!(names.len(), others.len());
    }
}
