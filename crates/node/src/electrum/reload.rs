//! Reads the changeable settings of the Electrum server again when the process gets SIGHUP: certificate and key,
//! banner, donation address, limits of costs.
//!
//! Input: signals; the command line, the configuration files, the files that they name. Output: new values for the next
//! connections and requests. If any value is wrong, all stay as they were, and the reason is logged. Other options are
//! checked but not changed. A thread of its own does it, so that a slow disk delays no other signal.

use super::{ElectrumError, files};
use crate::answers::Parts;
use crate::log::Log;
use crate::reload::{Reloader, settings_again};
use crate::settings::SettingsError;
use lydian_disk::Disk;
use lydian_electrum::Live;
use lydian_serve::TlsIdentity;
use lydian_stdx::Current;
use std::fmt;
use std::io;
use std::sync::Arc;

/// The values that change.
#[derive(Clone, Debug)]
pub(super) struct Changeable {
    pub(super) live: Current<Live>,
    /// `None` without TLS.
    pub(super) identity: Option<Current<TlsIdentity>>,
}

/// Why the settings stay as they were.
#[derive(Debug)]
enum ReloadError {
    Settings(SettingsError),
    Electrum(ElectrumError),
}

impl fmt::Display for ReloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReloadError::Settings(error) => error.fmt(f),
            ReloadError::Electrum(ElectrumError::File(error)) => error.fmt(f),
            ReloadError::Electrum(error) => error.fmt(f),
        }
    }
}

/// Starts the thread, which ends when the result is dropped.
pub(super) fn start(parts: &Parts<'_>, changeable: Changeable) -> io::Result<Reloader> {
    let (disk, log) = (Arc::clone(parts.disk), Arc::clone(parts.log));
    Reloader::start(parts.hangups, "electrum-reload", move || reload(&changeable, disk.as_ref(), &log))
}

fn reload(changeable: &Changeable, disk: &dyn Disk, log: &Log) {
    match try_reload(changeable, disk) {
        Ok(None) => log.info("Electrum server: read the settings again"),
        Ok(Some(fingerprint)) => {
            let words = "read the settings again; the SHA-256 of the TLS certificate is";
            log.info(format!("Electrum server: {words} {fingerprint}"));
        }
        Err(error) => log.error(format!("Electrum server: the settings stay as they were: {error}")),
    }
}

/// Returns the fingerprint of the certificate.
fn try_reload(changeable: &Changeable, disk: &dyn Disk) -> Result<Option<String>, ReloadError> {
    let settings = settings_again(disk).map_err(ReloadError::Settings)?;
    let live = files::live(&settings.electrum, disk).map_err(ReloadError::Electrum)?;
    let identity = changeable.identity.as_ref().map(|current| {
        let identity = files::identity(&settings.electrum, &settings.datadir, disk);
        identity.map(|identity| (current, identity)).map_err(ReloadError::Electrum)
    });
    let identity = identity.transpose()?;
    changeable.live.set(live);
    Ok(identity.map(|(current, identity)| {
        let fingerprint = identity.fingerprint();
        current.set(identity);
        fingerprint
    }))
}
