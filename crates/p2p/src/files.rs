//! The three network files in the data directory: `peers.dat`, `banlist.json`, `anchors.dat`.
//!
//! Input: a disk and the directory. Output: the contents, or new empty contents and the reason.
//!
//! The decisions are Core's. A `peers.dat` of a later format is saved as `peers.dat.bak` and a new one is created; a
//! damaged one stops the startup with Core's error text. A damaged ban list is replaced by an empty one. Anchors are
//! used once: the file is removed after reading, and damage in it is ignored. Invariants: a file is replaced
//! atomically; a disk error is never treated as damage. Cost: each file is read into memory once.

use crate::addrman::{AddrMan, PeersError};
use crate::anchors;
use crate::bans::{BanlistError, Bans};
use crate::datafile::Magic;
use crate::limits::{ANCHORS_FILE_SIZE_MAX, BANLIST_FILE_SIZE_MAX, PEERS_FILE_SIZE_MAX};
use crate::time::UnixTime;
use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, Proof, read_whole};
use lydian_stdx::saturating_usize;
use lydian_wire::TimedAddress;
use rand_chacha::ChaCha20Rng;
use std::fmt;
use std::path::{Path, PathBuf};

pub const PEERS_FILE: &str = "peers.dat";
pub const PEERS_BACKUP_FILE: &str = "peers.dat.bak";
pub const BANLIST_FILE: &str = "banlist.json";
pub const ANCHORS_FILE: &str = "anchors.dat";

/// All network files.
pub const NETWORK_FILES: &[OwnFile] = &[
    OwnFile { name: PEERS_FILE, proof: Proof::Directory },
    OwnFile { name: PEERS_BACKUP_FILE, proof: Proof::Directory },
    OwnFile { name: BANLIST_FILE, proof: Proof::Directory },
    OwnFile { name: ANCHORS_FILE, proof: Proof::Directory },
];

/// The files of one data directory.
#[derive(Debug)]
pub struct Files<'a> {
    disk: &'a dyn Disk,
    folder: PathBuf,
    magic: Magic,
}

/// Where loaded data comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From the file. For bans, `dropped` has the reason for each dropped entry.
    File { dropped: Vec<String> },
    /// The file did not exist.
    Created,
    /// A `peers.dat` with an unsupported format was saved as the backup file.
    SetAside { backup: PathBuf },
    /// A damaged ban list was replaced by an empty one.
    Recreated { error: BanlistError },
}

/// The reason why the node cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesError {
    Disk(DiskError),
    /// A damaged `peers.dat`: the operator must decide.
    Peers {
        path: PathBuf,
        error: PeersError,
    },
}

impl fmt::Display for FilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilesError::Disk(error) => error.fmt(f),
            FilesError::Peers { path, error } => write!(
                f,
                "Invalid or corrupt peers.dat ({error}). If you believe this is a bug, please report it to the developers of \
                 Lydian. As a workaround, you can move the file (\"{}\") out of the way (rename, move, or delete) to have a new one \
                 created on the next start.",
                path.display()
            ),
        }
    }
}

impl std::error::Error for FilesError {}

impl From<DiskError> for FilesError {
    fn from(error: DiskError) -> Self {
        FilesError::Disk(error)
    }
}

impl<'a> Files<'a> {
    pub fn new(disk: &'a dyn Disk, folder: &Path, magic: Magic) -> Self {
        Files { disk, folder: folder.to_owned(), magic }
    }

    /// Loads `peers.dat`. A new one is created with `empty` and written immediately.
    pub fn load_addrman(
        &self,
        random: &mut ChaCha20Rng,
        empty: impl FnOnce(&mut ChaCha20Rng) -> AddrMan,
    ) -> Result<(AddrMan, Origin), FilesError> {
        let path = self.folder.join(PEERS_FILE);
        let origin = match self.read(&path, PEERS_FILE_SIZE_MAX) {
            Ok(Some(bytes)) => match AddrMan::decode(&bytes, self.magic, random) {
                Ok(addrman) => return Ok((addrman, Origin::File { dropped: Vec::new() })),
                Err(PeersError::UnsupportedFormat { .. }) => {
                    let backup = self.folder.join(PEERS_BACKUP_FILE);
                    self.own().replace(self.disk, &backup, &bytes)?;
                    Origin::SetAside { backup }
                }
                Err(error) => return Err(FilesError::Peers { path, error }),
            },
            Ok(None) => Origin::Created,
            Err(Unread::TooLarge { size }) => {
                return Err(FilesError::Peers { path, error: PeersError::TooLarge { size } });
            }
            Err(Unread::Disk(error)) => return Err(error.into()),
        };
        let addrman = empty(random);
        self.save_addrman(&addrman)?;
        Ok((addrman, origin))
    }

    pub fn save_addrman(&self, addrman: &AddrMan) -> Result<(), DiskError> {
        self.own().replace(self.disk, &self.folder.join(PEERS_FILE), &addrman.encode(self.magic))
    }

    /// Loads `banlist.json` into `bans` without the expired bans. A new file is written immediately.
    pub fn load_bans(&self, bans: &mut Bans, now: UnixTime) -> Result<Origin, FilesError> {
        let origin = match self.read(&self.folder.join(BANLIST_FILE), BANLIST_FILE_SIZE_MAX) {
            Ok(Some(bytes)) => match bans.decode(&bytes, now) {
                Ok(dropped) => return Ok(Origin::File { dropped }),
                Err(error) => Origin::Recreated { error },
            },
            Ok(None) => Origin::Created,
            Err(Unread::TooLarge { size }) => Origin::Recreated { error: BanlistError::TooLarge { size } },
            Err(Unread::Disk(error)) => return Err(error.into()),
        };
        self.save_bans(bans)?;
        Ok(origin)
    }

    pub fn save_bans(&self, bans: &Bans) -> Result<(), DiskError> {
        self.own().replace(self.disk, &self.folder.join(BANLIST_FILE), &bans.encode())
    }

    /// Returns the anchors of the previous run and removes the file.
    pub fn take_anchors(&self) -> Result<Vec<TimedAddress>, DiskError> {
        let path = self.folder.join(ANCHORS_FILE);
        let anchors = match self.read(&path, ANCHORS_FILE_SIZE_MAX) {
            Ok(Some(bytes)) => anchors::decode(&bytes, self.magic).unwrap_or_default(),
            Ok(None) => return Ok(Vec::new()),
            Err(Unread::TooLarge { .. }) => Vec::new(),
            Err(Unread::Disk(error)) => return Err(error),
        };
        self.own().remove(self.disk, &path)?;
        self.disk.sync_dir(&self.folder)?;
        Ok(anchors)
    }

    pub fn save_anchors(&self, addresses: &[TimedAddress]) -> Result<(), DiskError> {
        self.own().replace(self.disk, &self.folder.join(ANCHORS_FILE), &anchors::encode(addresses, self.magic))
    }

    fn own(&self) -> OwnDir {
        OwnDir::new(&self.folder, NETWORK_FILES)
    }

    fn read(&self, path: &Path, size_max: usize) -> Result<Option<Vec<u8>>, Unread> {
        match read_whole(self.disk, path, size_max as u64) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => match error.kind {
                DiskErrorKind::NotFound => Ok(None),
                DiskErrorKind::TooLarge { .. } => {
                    let size = self.disk.open(path).map_err(Unread::Disk)?.size();
                    Err(Unread::TooLarge { size: saturating_usize(size) })
                }
                _ => Err(Unread::Disk(error)),
            },
        }
    }
}

/// The reason why a file could not be read.
enum Unread {
    Disk(DiskError),
    TooLarge { size: usize },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bans::DEFAULT_BAN_TIME_S;
    use lydian_disk::SimDisk;
    use lydian_wire::{Endpoint, NetAddr, Services};
    use rand_chacha::rand_core::SeedableRng;

    const MAGIC: Magic = [0xfa, 0xbf, 0xb5, 0xda];
    const NOW: UnixTime = UnixTime(1_750_000_000);

    fn random() -> ChaCha20Rng {
        ChaCha20Rng::seed_from_u64(1)
    }

    fn address(last: u8) -> TimedAddress {
        let addr = NetAddr::Ipv4([8, 8, 4, last].into());
        TimedAddress { time: NOW.to_u32(), services: Services::NETWORK, endpoint: Endpoint { addr, port: 8333 } }
    }

    fn put(disk: &SimDisk, name: &str, bytes: &[u8]) {
        disk.write_whole(&Path::new("/data").join(name), bytes).unwrap();
    }

    fn content(disk: &SimDisk, name: &str) -> Option<Vec<u8>> {
        read_whole(disk, &Path::new("/data").join(name), u64::MAX).ok()
    }

    fn disk() -> SimDisk {
        let disk = SimDisk::new(1);
        disk.create_dir(Path::new("/data")).unwrap();
        disk
    }

    #[test]
    fn addresses_last_from_run_to_run() {
        let disk = disk();
        let files = Files::new(&disk, Path::new("/data"), MAGIC);
        let (mut addrman, origin) = files.load_addrman(&mut random(), AddrMan::new).unwrap();
        assert_eq!(origin, Origin::Created);
        assert!(content(&disk, PEERS_FILE).is_some());
        addrman.add(&[address(1)], &NetAddr::UNSPECIFIED, 0, NOW);
        files.save_addrman(&addrman).unwrap();
        for seed in 0..20 {
            let lost = disk.power_loss(seed);
            let (read, origin) =
                Files::new(&lost, Path::new("/data"), MAGIC).load_addrman(&mut random(), AddrMan::new).unwrap();
            assert_eq!((read.size(None, None), origin), (1, Origin::File { dropped: vec![] }));
        }
    }

    #[test]
    fn a_later_format_is_set_aside_and_damage_stops_the_start() {
        let disk = disk();
        let files = Files::new(&disk, Path::new("/data"), MAGIC);
        let (addrman, _) = files.load_addrman(&mut random(), AddrMan::new).unwrap();
        let mut later = addrman.encode(MAGIC);
        later[5] = 32 + 5;
        put(&disk, PEERS_FILE, &later);
        let (read, origin) = files.load_addrman(&mut random(), AddrMan::new).unwrap();
        assert_eq!(origin, Origin::SetAside { backup: Path::new("/data").join(PEERS_BACKUP_FILE) });
        assert!(read.is_empty());
        assert_eq!(content(&disk, PEERS_BACKUP_FILE), Some(later));

        let mut damaged = addrman.encode(MAGIC);
        damaged[20] ^= 1;
        put(&disk, PEERS_FILE, &damaged);
        let error = files.load_addrman(&mut random(), AddrMan::new).unwrap_err();
        assert!(
            error.to_string().starts_with("Invalid or corrupt peers.dat (Checksum mismatch, data corrupted)"),
            "{error}"
        );
        assert_eq!(content(&disk, PEERS_FILE), Some(damaged), "it is left to the operator");
        put(&disk, PEERS_FILE, &vec![0; PEERS_FILE_SIZE_MAX + 1]);
        let expected = PeersError::TooLarge { size: PEERS_FILE_SIZE_MAX + 1 };
        assert!(
            matches!(files.load_addrman(&mut random(), AddrMan::new), Err(FilesError::Peers { error, .. }) if error == expected)
        );
    }

    #[test]
    fn a_damaged_ban_list_is_begun_anew() {
        let disk = disk();
        let files = Files::new(&disk, Path::new("/data"), MAGIC);
        let new = || Bans::new(DEFAULT_BAN_TIME_S, &mut random());
        let mut bans = new();
        assert_eq!(files.load_bans(&mut bans, NOW), Ok(Origin::Created));
        bans.ban("1.2.3.0/24".parse().unwrap(), 10, false, NOW);
        files.save_bans(&bans).unwrap();
        let mut read = new();
        assert_eq!(files.load_bans(&mut read, NOW), Ok(Origin::File { dropped: vec![] }));
        assert_eq!(read.list(NOW), bans.list(NOW));
        put(&disk, BANLIST_FILE, b"{\"banned_nets\": 5}");
        let mut read = new();
        assert_eq!(files.load_bans(&mut read, NOW), Ok(Origin::Recreated { error: BanlistError::NoList }));
        assert!(read.list(NOW).is_empty());
        assert_eq!(files.load_bans(&mut read, NOW), Ok(Origin::File { dropped: vec![] }), "the new one was written");
    }

    #[test]
    fn anchors_are_used_once() {
        let disk = disk();
        let files = Files::new(&disk, Path::new("/data"), MAGIC);
        assert_eq!(files.take_anchors(), Ok(vec![]));
        files.save_anchors(&[address(1), address(2)]).unwrap();
        assert_eq!(files.take_anchors(), Ok(vec![address(1), address(2)]));
        assert_eq!(files.take_anchors(), Ok(vec![]));
        put(&disk, ANCHORS_FILE, b"damage");
        assert_eq!(files.take_anchors(), Ok(vec![]));
        assert_eq!(content(&disk, ANCHORS_FILE), None);
    }
}
