//! The files of the network: read at startup, and written by a separate thread, so that the manager does not wait for
//! the disk.
//!
//! Input: a folder, and the data to write. Output: addresses, bans and anchors of the last run. [`lydian_p2p::files`]
//! defines which file contents are errors.

use crate::Host;
use lydian_disk::{Disk, OwnDir};
use lydian_engine::LogLevel;
use lydian_p2p::files::{Files, FilesError, NETWORK_FILES, Origin};
use lydian_p2p::manager::{ManagerSettings, SavedFile};
use lydian_p2p::{AddrMan, Bans};
use rand_chacha::ChaCha20Rng;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Where the files are stored.
#[derive(Clone, Debug)]
pub struct DataFolder {
    pub disk: Arc<dyn Disk>,
    pub folder: PathBuf,
}

/// A file to replace, and its new contents.
pub(crate) type Save = (SavedFile, Vec<u8>);

/// Loads the data of the last run; anchors go into the settings. Without a folder, starts with empty data.
pub(crate) fn load(
    data: Option<&DataFolder>,
    settings: &mut ManagerSettings,
    ban_time: u64,
    host: &dyn Host,
    random: &mut ChaCha20Rng,
) -> Result<(AddrMan, Bans), FilesError> {
    let mut bans = Bans::new(ban_time, random);
    let empty = if settings.connect.deterministic_addrman { AddrMan::deterministic } else { AddrMan::new };
    let Some(DataFolder { disk, folder }) = data else { return Ok((empty(random), bans)) };
    let files = Files::new(disk.as_ref(), folder, settings.params.magic);
    host.log(LogLevel::Info, "init message: Loading P2P addresses…".to_owned());
    let began = host.now().elapsed;
    let (mut addrman, origin) = files.load_addrman(random, empty)?;
    addrman.set_check_every(settings.connect.check_addrman);
    let took = || host.now().elapsed.saturating_sub(began).as_millis();
    let path = quoted(folder.join(SavedFile::Peers.name()).display());
    match origin {
        Origin::SetAside { .. } => {
            let text = format!(
                "Creating new peers.dat because the file version was not compatible ({path}). Original backed up to peers.dat.bak"
            );
            host.log(LogLevel::Warning, text);
        }
        Origin::Created => {
            host.log(LogLevel::Info, format!("Creating peers.dat because the file was not found ({path})"));
        }
        _ => {
            let count = addrman.size(None, None);
            host.log(LogLevel::Info, format!("Loaded {count} addresses from peers.dat {}ms", took()));
        }
    }
    load_bans(&files, &mut bans, host)?;
    if settings.connect.chooses_peers {
        settings.connect.anchors = files.take_anchors()?;
        let count = settings.connect.anchors.len();
        if count > 0 {
            host.log(LogLevel::Info, format!("Loaded {count} addresses from {}", quoted(SavedFile::Anchors.name())));
        }
    }
    Ok((addrman, bans))
}

/// Core's `fs::quoted`.
fn quoted(path: impl std::fmt::Display) -> String {
    format!("\"{path}\"")
}

fn load_bans(files: &Files<'_>, bans: &mut Bans, host: &dyn Host) -> Result<(), FilesError> {
    host.log(LogLevel::Info, "init message: Loading banlist…".to_owned());
    let began = host.now();
    match files.load_bans(bans, began.unix)? {
        Origin::Recreated { error } => {
            host.log(LogLevel::Error, error.to_string());
            host.log(LogLevel::Info, "Recreating the banlist database".to_owned());
        }
        Origin::File { dropped } => {
            dropped.into_iter().for_each(|line| host.log(LogLevel::Info, line));
            let took = host.now().elapsed.saturating_sub(began.elapsed).as_millis();
            host.debug(|| format!("Loaded {} banned node addresses/subnets {took}ms", bans.list(began.unix).len()));
        }
        Origin::Created | Origin::SetAside { .. } => {
            host.log(LogLevel::Info, "Recreating the banlist database".to_owned());
        }
    }
    Ok(())
}

/// Writes files until all senders are gone. A failure is only logged: the next write replaces the file as a whole.
pub(crate) fn write(data: Option<&DataFolder>, saves: &Receiver<Save>, host: &dyn Host) {
    for (file, bytes) in saves {
        let Some(DataFolder { disk, folder }) = data else { continue };
        match OwnDir::new(folder, NETWORK_FILES).replace(disk.as_ref(), &folder.join(file.name()), &bytes) {
            Ok(()) => host.debug(|| format!("Wrote {} bytes to {}", bytes.len(), file.name())),
            Err(error) => host.log(LogLevel::Error, format!("Cannot write {}: {error}", file.name())),
        }
    }
}
