//! Deletion of data that can be rebuilt: `-reindex` and `-reindex-chainstate`.
//!
//! A marker is written first and removed last, so that an interrupted wipe is resumed at the next start and a partly
//! deleted coin store is never opened (checklist 91). Block files are never touched, nor is any file that is not ours.

use super::settings::Layout;
use crate::error::EngineError;
use lydian_chain::{ChainError, blocks_owner, coins_owner};
use lydian_coins::COINS_FILES;
use lydian_disk::{Disk, DiskErrorKind, OwnDir, OwnFile, PathKind, Proof};
use std::path::{Path, PathBuf};

/// The marker file, in the directory of the coins.
pub const WIPE_FILES: &[OwnFile] = &[OwnFile { name: MARKER, proof: Proof::Directory }];

const MARKER: &str = "wipe";

/// The data to delete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wipe {
    /// The coins; blocks and their index stay: `-reindex-chainstate`.
    Coins,
    /// Also the index and undo data: `-reindex`. The next start finds the blocks in their files.
    Index,
}

/// Deletes the data. No engine may be open on the layout.
pub fn wipe(disk: &dyn Disk, layout: &Layout, what: Wipe) -> Result<(), EngineError> {
    check_owner(disk, layout)?;
    if what == Wipe::Index {
        lydian_chain::wipe_for_reindex(disk, &layout.chain([0; 8]))?;
    }
    wipe_coins(disk, &layout.coins)
}

/// Fails if another program wrote the directories, so that nothing is written into them.
pub(crate) fn check_owner(disk: &dyn Disk, layout: &Layout) -> Result<(), EngineError> {
    let blocks = blocks_owner(disk, &layout.blocks, &layout.index)?.check(&layout.blocks);
    blocks.map_err(ChainError::from)?;
    let coins = coins_owner(disk, &layout.coins)?.check(&layout.coins);
    coins.map_err(ChainError::from)?;
    Ok(())
}

/// Resumes an interrupted wipe.
pub(crate) fn resume(disk: &dyn Disk, layout: &Layout) -> Result<(), EngineError> {
    match disk.kind(&marker(&layout.coins)) {
        Ok(_) => wipe_coins(disk, &layout.coins),
        Err(error) if error.kind == DiskErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn wipe_coins(disk: &dyn Disk, coins: &Path) -> Result<(), EngineError> {
    let marker = marker(coins);
    disk.create_dir(coins)?;
    let (own, own_coins) = (OwnDir::new(coins, WIPE_FILES), OwnDir::new(coins, COINS_FILES));
    let is_ours = |(path, kind): &(PathBuf, PathKind)| *kind == PathKind::File && own_coins.has(path);
    let is_marker = |(path, _): &(PathBuf, PathKind)| *path == marker;
    let found = disk.list(coins)?;
    if !found.iter().any(|one| is_ours(one) || is_marker(one)) {
        // No coins, and no wipe whose removals may not be durable.
        return Ok(());
    }
    own.replace(disk, &marker, b"the coins are being thrown away\n")?;
    for (path, _) in found.iter().filter(|one| is_ours(one)) {
        own_coins.remove(disk, path)?;
    }
    disk.sync_dir(coins)?;
    own.remove(disk, &marker)?;
    Ok(disk.sync_dir(coins)?)
}

fn marker(coins: &Path) -> PathBuf {
    coins.join(MARKER)
}
