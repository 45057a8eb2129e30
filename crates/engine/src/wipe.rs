//! Throwing away what can be made again: `-reindex` and `-reindex-chainstate`.
//!
//! A marker is written first and removed last, so that a wipe that was interrupted is taken up again at the next start and
//! half a coin store is never opened (checklist 91). Block files are never touched.

use crate::error::EngineError;
use crate::settings::Layout;
use lydian_disk::{Disk, DiskErrorKind, PathKind};
use std::path::{Path, PathBuf};

/// What to throw away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wipe {
    /// The coins; blocks and their index stay: `-reindex-chainstate`.
    Coins,
    /// The index and undo data too: `-reindex`. The next start finds the blocks in their files.
    Index,
}

/// Throws away. No engine may be open on the layout.
pub fn wipe(disk: &dyn Disk, layout: &Layout, what: Wipe) -> Result<(), EngineError> {
    if what == Wipe::Index {
        lydian_chain::wipe_for_reindex(disk, &layout.chain([0; 8]))?;
    }
    wipe_coins(disk, &layout.coins)
}

/// Takes up what was interrupted.
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
    disk.write_whole(&marker, b"the coins are being thrown away\n")?;
    for (path, kind) in disk.list(coins)? {
        if kind == PathKind::File && path != marker {
            disk.remove(&path)?;
        }
    }
    disk.sync_dir(coins)?;
    disk.remove(&marker)?;
    Ok(disk.sync_dir(coins)?)
}

fn marker(coins: &Path) -> PathBuf {
    coins.join("wipe")
}
