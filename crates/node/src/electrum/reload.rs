//! Reads the changeable settings of the Electrum server again when the process gets SIGHUP: certificate and key,
//! banner, donation address, limits of costs.
//!
//! Input: signals; the command line, the configuration files, the files that they name. Output: new values for the next
//! connections and requests. If any value is wrong, all stay as they were, and the reason is logged. Other options are
//! checked but not changed. A thread of its own does it, so that a slow disk delays no other signal.

use super::{ElectrumError, files};
use crate::answers::Parts;
use crate::host::Host;
use crate::log::Log;
use crate::settings::{self, SettingsError};
use crate::signals::Hangups;
use lydian_disk::Disk;
use lydian_electrum::Live;
use lydian_serve::TlsIdentity;
use lydian_stdx::Current;
use std::env;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

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

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Reloader {
    hangups: Hangups,
    thread: Option<JoinHandle<()>>,
}

impl Reloader {
    pub(super) fn start(parts: &Parts<'_>, changeable: Changeable) -> io::Result<Reloader> {
        let hangups = parts.hangups.clone();
        let requests = hangups.listen();
        let (disk, log) = (Arc::clone(parts.disk), Arc::clone(parts.log));
        let thread = Builder::new().name("electrum-reload".to_owned()).spawn(move || {
            for () in requests {
                reload(&changeable, disk.as_ref(), &log);
            }
        })?;
        Ok(Reloader { hangups, thread: Some(thread) })
    }
}

impl Drop for Reloader {
    fn drop(&mut self) {
        self.hangups.forget();
        if let Some(thread) = self.thread.take() {
            // A panic was printed by then.
            let _ = thread.join();
        }
    }
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
    // The limit on open files belongs to the start.
    let host = Host { descriptors: |wanted| wanted, ..Host::this() };
    let words = settings::split(env::args_os().skip(1)).map_err(ReloadError::Settings)?;
    let settings = settings::load(&words, &host, disk, &mut Vec::new()).map_err(ReloadError::Settings)?;
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
