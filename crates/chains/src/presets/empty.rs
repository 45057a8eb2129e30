//! Preset `empty`: blocks with only a coinbase.
//!
//! Input: a number of blocks. Output: block files and `stats.json`. Cost: about two hashes per block.

use super::ledger::write_summary;
use super::maker::Maker;
use crate::assemble::regtest_genesis;
use crate::error::ChainsError;
use crate::files::BlockWriter;
use crate::limits::CHAIN_BLOCKS_MAX;
use std::path::Path;

/// Writes the chain into a directory and returns its statistics.
pub fn write(blocks: u32, folder: &Path) -> Result<String, ChainsError> {
    if blocks > CHAIN_BLOCKS_MAX {
        return Err(ChainsError::Usage(format!("--blocks must be at most {CHAIN_BLOCKS_MAX}")));
    }
    let mut writer = BlockWriter::new(folder, "blk")?;
    writer.write(&regtest_genesis())?;
    let mut maker = Maker::new();
    maker.grow(blocks, |_, block| writer.write(&block.encode()).map(|_| ()))?;
    write_summary(folder, "empty", 0, &maker, &[])
}
