//! The cookie: a new password for each start, in a file that by default only its owner may read (Core's
//! rpc/request.cpp).
//!
//! Input: a path. Output: the file `__cookie__:<64 digits>`, and the password. The file is deleted when [`Cookie`] is
//! dropped.

use super::users::COOKIE_USER;
use lydian_disk::{Disk, DiskError, OwnDir, OwnFile, Proof};
use lydian_primitives::to_hex;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The cookie file.
pub const COOKIE_FILES: &[OwnFile] = &[OwnFile { name: "*", proof: Proof::Option }];

/// Who may read the file: `-rpccookieperms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CookiePermissions {
    Owner,
    Group,
    All,
}

/// The file, which exists as long as this value.
#[derive(Debug)]
pub struct Cookie {
    disk: Arc<dyn Disk>,
    path: PathBuf,
}

/// Why the cookie could not be created.
#[derive(Debug)]
pub enum CookieError {
    Disk(DiskError),
    Permissions { path: PathBuf, error: Errno },
    Random(Errno),
}

impl fmt::Display for CookieError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CookieError::Disk(error) => write!(f, "Unable to open cookie authentication file for writing: {error}"),
            CookieError::Permissions { path, error } => {
                write!(f, "Unable to set permissions on cookie authentication file {}: {error}", path.display())
            }
            CookieError::Random(error) => write!(f, "the system provides no random numbers: {error}"),
        }
    }
}

impl std::error::Error for CookieError {}

/// The folder of `-rpccookiefile`, by default our data directory.
fn own(path: &Path) -> OwnDir {
    OwnDir::of(path, COOKIE_FILES)
}

impl Cookie {
    /// Writes the file. Also returns its password.
    pub fn write(
        disk: Arc<dyn Disk>,
        path: &Path,
        permissions: Option<CookiePermissions>,
    ) -> Result<(Cookie, String), CookieError> {
        let password = to_hex(&random::<32>()?);
        let text = format!("{COOKIE_USER}:{password}");
        own(path).replace(disk.as_ref(), path, text.as_bytes()).map_err(CookieError::Disk)?;
        let cookie = Cookie { disk, path: path.to_owned() };
        let mode = match permissions {
            None | Some(CookiePermissions::Owner) => Mode::RUSR | Mode::WUSR,
            Some(CookiePermissions::Group) => Mode::RUSR | Mode::WUSR | Mode::RGRP,
            Some(CookiePermissions::All) => Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH,
        };
        rustix::fs::chmod(path, mode).map_err(|error| CookieError::Permissions { path: path.to_owned(), error })?;
        Ok((cookie, password))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Cookie {
    fn drop(&mut self) {
        // It does not matter if the file is already gone; if it stays, its password is no longer valid.
        let _ = own(&self.path).remove(self.disk.as_ref(), &self.path);
    }
}

/// Random bytes from the operating system.
pub fn random<const N: usize>() -> Result<[u8; N], CookieError> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        match getrandom(&mut bytes[filled..], GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(error) => return Err(CookieError::Random(error)),
        }
    }
    Ok(bytes)
}
