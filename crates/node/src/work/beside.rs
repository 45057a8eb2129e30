//! `lydian utxohash` beside a running node. Input: settings. Output: the hashes of the coins at the last checkpoint of
//! that node.
//!
//! Reads the files of the checkpoint without the lock of the directory and changes none of them. A set above 32 MiB is
//! sorted in files of its own beside them, as by `gettxoutsetinfo` (`lydian_coins::PinnedCoins::export`); their names
//! begin with the number of this process, so that they differ from those of the node.

use super::failure::Failure;
use super::finish;
use crate::daemon;
use crate::datadir;
use crate::display::{Display, Doing, Style};
use crate::exit;
use crate::settings::Settings;
use lydian_coins::{PinnedCoins, Tip};
use lydian_disk::{Disk, RealDisk};
use lydian_engine::{EngineError, UtxoHashes};
use lydian_primitives::Height;
use std::process;
use std::sync::Arc;

/// The exit code, or `None` if no node uses the directory or it has no coins yet.
pub(crate) fn utxohash(settings: &Settings, style: Style) -> Option<u8> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    if !datadir::is_in_use(settings, disk.as_ref()) {
        return None;
    }
    let exports = u64::from(process::id()) << u32::BITS;
    let hashes = match PinnedCoins::of_directory(disk, &settings.coins(), exports) {
        Ok(None) => return None,
        Ok(Some(pinned)) => hash(settings, &pinned, style),
        Err(error) => Err(EngineError::Coins(error).into()),
    };
    Some(match hashes {
        Ok(hashes) => {
            finish::print_hashes(settings.json, &hashes);
            exit::DONE
        }
        Err(failure) => {
            daemon::complain(&failure.to_string());
            failure.code()
        }
    })
}

fn hash(settings: &Settings, pinned: &PinnedCoins, style: Style) -> Result<UtxoHashes, Failure> {
    let display = Display::start(style, settings.threads, Box::new(|_| {}), |_| {})?;
    display.show(Doing::Something("reading all coins of the last checkpoint".to_owned()));
    // Before the first checkpoint there are no coins.
    let tip = pinned.tip().unwrap_or(Tip { height: Height(0), hash: settings.params.genesis_hash });
    Ok(UtxoHashes::of(tip, pinned)?)
}
