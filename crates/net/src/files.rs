//! The files of the network: read at the start, written by a thread of their own, so that nobody who talks to peers waits for the disk. Input: a folder, and
//! what is to be written. Output: addresses, bans and anchors of the last run. What is wrong with a file is [`lydian_p2p::files`]'s to say.

use crate::Host;
use lydian_disk::{Disk, OwnDir};
use lydian_p2p::files::{Files, FilesError, NETWORK_FILES, Origin};
use lydian_p2p::manager::{ManagerSettings, SavedFile};
use lydian_p2p::{AddrMan, Bans};
use rand_chacha::ChaCha20Rng;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

/// Where the files lie.
#[derive(Clone, Debug)]
pub struct DataFolder {
    pub disk: Arc<dyn Disk>,
    pub folder: PathBuf,
}

/// A file to be replaced, and by what.
pub(crate) type Save = (SavedFile, Vec<u8>);

/// What the last run left, anchors in the settings. Without a folder everything begins anew.
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
    let (mut addrman, origin) = files.load_addrman(random, empty)?;
    addrman.set_check_every(settings.connect.check_addrman);
    host.log(
        false,
        &match origin {
            Origin::SetAside { backup } => {
                format!(
                    "Creating new peers.dat because the file version was not compatible. Original backed up to {}",
                    backup.display()
                )
            }
            Origin::Created => "Creating peers.dat because the file was not found".to_owned(),
            _ => format!("Loaded {} addresses from peers.dat", addrman.size(None, None)),
        },
    );
    match files.load_bans(&mut bans, host.now().unix)? {
        Origin::Recreated { error } => host.log(false, &format!("Recreating the banlist database: {error}")),
        Origin::File { dropped } => dropped.iter().for_each(|line| host.log(false, line)),
        Origin::Created | Origin::SetAside { .. } => {}
    }
    if settings.connect.chooses_peers {
        settings.connect.anchors = files.take_anchors()?;
    }
    Ok((addrman, bans))
}

/// Writes until nobody has anything to be written. A failure is the log's: what is lost is known again after the next time.
pub(crate) fn write(data: Option<&DataFolder>, saves: &Receiver<Save>, host: &dyn Host) {
    for (file, bytes) in saves {
        let Some(DataFolder { disk, folder }) = data else { continue };
        match OwnDir::new(folder, NETWORK_FILES).replace(disk.as_ref(), &folder.join(file.name()), &bytes) {
            Ok(()) => host.log(true, &format!("{} bytes were written to {}", bytes.len(), file.name())),
            Err(error) => host.log(false, &format!("Error: {} was not written: {error}", file.name())),
        }
    }
}
