//! Preset `deep`: a chain of the preset `mainnet-mix` or `reuse` with empty blocks above, so that what depends on the
//! depth of blocks, such as the segments of an index, is reached by all of them.
//!
//! Input: the settings of the chain below, and the height of the last block. Output: block files and `stats.json`.
//! Cost: that of the chain below, and about two hashes per empty block.

use super::mainnet_mix;
use super::maker::Maker;
use super::reuse::{self, ReuseSettings};
use crate::error::ChainsError;
use crate::files::{BlockWriter, write_text};
use crate::limits::CHAIN_BLOCKS_MAX;
use crate::plan::MixSettings;
use crate::stats::Stats;
use lydian_hash::sha256d;
use lydian_primitives::BlockHash;
use std::path::Path;

/// The chain below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    Mix(MixSettings),
    Reuse(ReuseSettings),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeepSettings {
    pub base: Base,
    /// The height of the last empty block.
    pub height: u32,
}

impl DeepSettings {
    fn check(&self) -> Result<(), ChainsError> {
        let last = match &self.base {
            Base::Mix(mix) => mix.blocks,
            Base::Reuse(reuse) => reuse.blocks(),
        };
        if (last..=CHAIN_BLOCKS_MAX).contains(&self.height) {
            return Ok(());
        }
        Err(ChainsError::Usage(format!(
            "--height must lie between {last}, that of the last full block, and {CHAIN_BLOCKS_MAX}"
        )))
    }
}

/// Writes the chain into a directory.
pub fn write(settings: DeepSettings, threads: usize, folder: &Path) -> Result<Stats, ChainsError> {
    settings.check()?;
    let mut writer = BlockWriter::new(folder, "blk")?;
    let mut tip = BlockHash::ZERO;
    let mut sink = |block: &[u8]| {
        tip = BlockHash(sha256d(block.get(..80).unwrap_or_default()));
        writer.write(block).map(|_| ())
    };
    let mut stats = match settings.base {
        Base::Mix(mix) => mainnet_mix::generate(mix, threads, &mut sink)?,
        Base::Reuse(reuse) => reuse::generate(reuse, threads, &mut sink)?.0,
    };
    let mut maker = Maker::on(tip, stats.height);
    maker.grow(settings.height.saturating_sub(stats.height), |_, block| {
        let bytes = block.encode();
        stats.blocks += 1;
        stats.transactions += 1;
        stats.outputs += block.txs.iter().map(|tx| tx.outputs.len() as u64).sum::<u64>();
        stats.coins += 1;
        stats.block_bytes += bytes.len() as u64;
        writer.write(&bytes).map(|_| ())
    })?;
    (stats.tip, stats.height) = (maker.tip.to_string(), maker.height);
    stats.file_bytes = writer.bytes();
    write_text(&folder.join("stats.json"), &stats.to_json())?;
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain_files::ChainFiles;
    use crate::walk::walk;

    #[test]
    fn empty_blocks_extend_the_chain_below() {
        let folder = std::env::temp_dir().join(format!("lydian-chains-deep-{}", std::process::id()));
        let mix = MixSettings { blocks: 434, full: 1, seed: 1, reuse_per_mille: 0 };
        let low = DeepSettings { base: Base::Mix(mix), height: 433 };
        assert!(write(low, 2, &folder).is_err(), "below the chain");
        let stats = write(DeepSettings { height: 460, ..low }, 2, &folder).unwrap();
        let (mut blocks, mut transactions, mut last) = (0, 0, String::new());
        walk(&ChainFiles::open(&folder, None).unwrap(), &mut |block| {
            blocks += 1;
            transactions += block.block.tx_count() as u64;
            last = block.block.hash().to_string();
            assert!(block.height <= 434 || block.block.tx_count() == 1);
            Ok(())
        })
        .unwrap();
        assert_eq!((blocks, transactions), (461, stats.transactions + 1));
        assert_eq!((last, 460), (stats.tip, stats.height));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
