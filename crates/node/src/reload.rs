//! [`Reloader`]: a thread that does something again whenever the process gets SIGHUP; and the settings as they are
//! then.
//!
//! Input: signals; the command line, the configuration files. Output: calls, settings. Each server that changes while
//! it runs has a thread of its own, so that a slow disk delays no signal and no other server.

use crate::host::Host;
use crate::settings::{self, Settings, SettingsError};
use crate::signals::{Hangups, ListenerId};
use lydian_disk::Disk;
use std::env;
use std::io;
use std::thread::{Builder, JoinHandle};

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Reloader {
    hangups: Hangups,
    listener: ListenerId,
    thread: Option<JoinHandle<()>>,
}

impl Reloader {
    /// `name`: that of the thread.
    pub(crate) fn start(hangups: &Hangups, name: &str, reload: impl Fn() + Send + 'static) -> io::Result<Reloader> {
        let (listener, requests) = hangups.listen();
        let thread = Builder::new().name(name.to_owned()).spawn(move || {
            for () in requests {
                reload();
            }
        })?;
        Ok(Reloader { hangups: hangups.clone(), listener, thread: Some(thread) })
    }
}

impl Drop for Reloader {
    fn drop(&mut self) {
        self.hangups.forget(&self.listener);
        if let Some(thread) = self.thread.take() {
            // A panic was printed by then.
            let _ = thread.join();
        }
    }
}

/// The settings of this process, read again.
pub(crate) fn settings_again(disk: &dyn Disk) -> Result<Settings, SettingsError> {
    // The limit on open files belongs to the start.
    let host = Host { descriptors: |wanted| wanted, ..Host::this() };
    let words = settings::split(env::args_os().skip(1))?;
    settings::load(&words, &host, disk, &mut Vec::new())
}
