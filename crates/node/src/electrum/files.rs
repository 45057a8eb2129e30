//! What the Electrum server shows of files: the certificate and the banner.
//!
//! Input: the settings, the disk. Output: an identity, and the settings that can change while the server runs. A
//! certificate is made if none is given and none was made before.

use super::ElectrumError;
use crate::settings::electrum::ElectrumSettings;
use lydian_disk::{Disk, OwnDir, OwnFile, PathKind, Proof, read_whole};
use lydian_electrum::Live;
use lydian_serve::TlsIdentity;
use std::path::{Path, PathBuf};

/// The files of a self-made certificate, in [`TLS_DIR`].
pub(crate) const TLS_FILES: &[OwnFile] =
    &[OwnFile { name: CERTIFICATE, proof: Proof::Directory }, OwnFile { name: KEY, proof: Proof::Directory }];

/// The directory, relative to the data directory of the chain, to which only its owner has access.
pub(crate) const TLS_DIR: &str = "electrum";

const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";

/// The largest file of a certificate or a key.
pub(crate) const PEM_SIZE_MAX: u64 = 1 << 20;

/// The largest file of a banner.
const BANNER_SIZE_MAX: u64 = 64 << 10;

/// The certificate of the options; otherwise one that is made at the first start.
pub(super) fn identity(
    settings: &ElectrumSettings,
    datadir: &Path,
    disk: &dyn Disk,
) -> Result<TlsIdentity, ElectrumError> {
    let given = settings.certificate.clone().zip(settings.key.clone());
    identity_in(given, &datadir.join(TLS_DIR), disk)
}

/// A given certificate and its key; otherwise one that is made in a directory at the first start.
pub(crate) fn identity_in(
    given: Option<(PathBuf, PathBuf)>,
    directory: &Path,
    disk: &dyn Disk,
) -> Result<TlsIdentity, ElectrumError> {
    let (certificate, key) = match given {
        Some(given) => given,
        None => self_made(directory, disk)?,
    };
    let read = |path: &Path| read_whole(disk, path, PEM_SIZE_MAX).map_err(ElectrumError::File);
    let identity = TlsIdentity::from_pem(&read(&certificate)?, &read(&key)?);
    identity.map_err(|error| ElectrumError::Tls(certificate, error))
}

/// The paths of a certificate and its key, which are made if one of them is missing.
fn self_made(dir: &Path, disk: &dyn Disk) -> Result<(PathBuf, PathBuf), ElectrumError> {
    let (certificate, key) = (dir.join(CERTIFICATE), dir.join(KEY));
    if disk.kind(&certificate) != Ok(PathKind::File) || disk.kind(&key) != Ok(PathKind::File) {
        disk.create_dir(dir).map_err(ElectrumError::File)?;
        let own = OwnDir::new(dir, TLS_FILES);
        let made = TlsIdentity::self_made().map_err(|error| ElectrumError::Tls(dir.to_owned(), error))?;
        for (path, text) in [(&key, &made.key), (&certificate, &made.certificate)] {
            own.replace(disk, path, text.as_bytes()).map_err(ElectrumError::File)?;
        }
    }
    Ok((certificate, key))
}

/// The settings that can change while the server runs.
pub(super) fn live(settings: &ElectrumSettings, disk: &dyn Disk) -> Result<Live, ElectrumError> {
    let banner = match &settings.banner {
        None => format!("Lydian {}: a Bitcoin node that serves wallets itself", env!("CARGO_PKG_VERSION")),
        Some(path) => {
            let bytes = read_whole(disk, path, BANNER_SIZE_MAX).map_err(ElectrumError::File)?;
            String::from_utf8(bytes).map_err(|_| ElectrumError::Banner(path.clone()))?
        }
    };
    Ok(Live {
        banner,
        donation_address: settings.donation.clone(),
        hosts: settings.hosts.clone(),
        peers: settings.peers.clone(),
        costs: settings.costs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::SimDisk;

    #[test]
    fn a_banner_is_text() {
        let disk = SimDisk::new(0);
        disk.create_dir(Path::new("/d")).unwrap();
        let path = PathBuf::from("/d/banner");
        let settings = ElectrumSettings { banner: Some(path.clone()), ..ElectrumSettings::default() };
        let of = |bytes: Option<&[u8]>| {
            if let Some(bytes) = bytes {
                disk.write_whole(&path, bytes).unwrap();
            }
            live(&settings, &disk).map(|live| live.banner).map_err(|error| error.to_string())
        };
        assert!(of(None).unwrap_err().contains("/d/banner"));
        assert_eq!(of(Some("Grüße\n".as_bytes())).unwrap(), "Grüße\n");
        assert_eq!(of(Some(b"\xff")).unwrap_err(), "-electrumbanner: /d/banner is not UTF-8");
        assert!(of(Some(&[b' '; 65_537])).is_err() && of(Some(&[b' '; 65_536])).is_ok());
    }
}
