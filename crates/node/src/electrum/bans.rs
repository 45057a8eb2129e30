//! [`SavedBans`]: the file of the bans of the Electrum server, `electrum/banlist.json`.
//!
//! Input: the bans after each change. Output: the file, replaced atomically; the bans of earlier processes that have
//! not expired, at the next start. A file that cannot be used is named in the log, stays as it is until the next
//! change, and never stops the node.

use crate::clock::now;
use crate::limits::ELECTRUM_BANS_FILE_SIZE_MAX;
use crate::log::Log;
use lydian_disk::format::{Format, MOVE_AWAY, NumberPlace};
use lydian_disk::{Disk, OwnDir, OwnFile, Proof, read_whole};
use lydian_serve::{Ban, Subnet};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The file, in the directory of the Electrum server.
pub(crate) const ELECTRUM_BANS_FILES: &[OwnFile] = &[OwnFile { name: FILE, proof: Proof::Directory }];

pub(crate) const FILE: &str = "banlist.json";

/// The format of the file.
pub(crate) const ELECTRUM_BANS_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::Json, otherwise: MOVE_AWAY };

const FORMAT: u32 = ELECTRUM_BANS_FORMAT.number;

/// The file of one data directory.
#[derive(Debug)]
pub(super) struct SavedBans {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    log: Arc<Log>,
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    format: u32,
    bans: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    subnet: String,
    /// Seconds since 1970: the first second that is not banned.
    banned_until: u64,
}

impl SavedBans {
    pub(super) fn new(disk: Arc<dyn Disk>, directory: PathBuf, log: Arc<Log>) -> SavedBans {
        SavedBans { disk, directory, log }
    }

    /// The bans that have not expired. If the file cannot be used, the log says why.
    pub(super) fn read(&self) -> Vec<Ban> {
        self.try_read(now().into()).unwrap_or_else(|reason| {
            self.log.warning(format!("Electrum server: it starts without the bans of earlier processes: {reason}"));
            Vec::new()
        })
    }

    fn try_read(&self, now: u64) -> Result<Vec<Ban>, String> {
        let path = self.directory.join(FILE);
        if self.disk.kind(&path).is_err() {
            return Ok(Vec::new());
        }
        let bytes = read_whole(self.disk.as_ref(), &path, ELECTRUM_BANS_FILE_SIZE_MAX);
        let bytes = bytes.map_err(|error| error.to_string())?;
        let path = path.display();
        let file: File = serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))?;
        if let Some(error) = ELECTRUM_BANS_FORMAT.newer(self.directory.join(FILE), file.format) {
            return Err(error.to_string());
        }
        if file.format != FORMAT {
            return Err(format!("{path} has format {}; this program supports format {FORMAT}", file.format));
        }
        let ban = |Entry { subnet, banned_until }: &Entry| {
            let subnet = Subnet::parse(subnet, false).map_err(|error| format!("{path}: {error}"))?;
            Ok(Ban { subnet, left: Duration::from_secs(banned_until.saturating_sub(now)) })
        };
        let bans: Result<Vec<Ban>, String> = file.bans.iter().map(ban).collect();
        Ok(bans?.into_iter().filter(|ban| !ban.left.is_zero()).collect())
    }

    /// A ban of the file cannot be made.
    pub(super) fn leaves_out(&self, ban: &Ban, reason: &dyn std::error::Error) {
        self.log.warning(format!("Electrum server: the ban of {} is left out: {reason}", ban.subnet));
    }

    /// Replaces the file. If that fails, the log says so, and the next change is written with all before it.
    pub(super) fn write(&self, bans: &[Ban]) {
        if let Err(error) = self.try_write(bans, now().into()) {
            self.log.warning(format!("Electrum server: the bans are not saved: {error}"));
        }
    }

    fn try_write(&self, bans: &[Ban], now: u64) -> Result<(), lydian_disk::DiskError> {
        let entry = |ban: &Ban| Entry {
            subnet: ban.subnet.to_string(),
            // A part of a second is still banned.
            banned_until: now.saturating_add(ban.left.as_secs()).saturating_add(1),
        };
        let file = File { format: FORMAT, bans: bans.iter().map(entry).collect() };
        let mut text =
            serde_json::to_string_pretty(&file).unwrap_or_else(|error| unreachable!("text is JSON: {error}"));
        text.push('\n');
        let (disk, own) = (self.disk.as_ref(), OwnDir::new(&self.directory, ELECTRUM_BANS_FILES));
        disk.create_dir(&self.directory)?;
        own.replace(disk, &self.directory.join(FILE), text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::LogSettings;
    use lydian_disk::SimDisk;
    use std::path::Path;

    fn new(disk: &Arc<SimDisk>) -> SavedBans {
        let log = Arc::new(Log::new(Arc::<SimDisk>::clone(disk), &LogSettings::default(), false));
        SavedBans::new(Arc::<SimDisk>::clone(disk), PathBuf::from("/electrum"), log)
    }

    fn ban(subnet: &str, seconds: u64) -> Ban {
        Ban { subnet: Subnet::parse(subnet, false).unwrap(), left: Duration::from_secs(seconds) }
    }

    #[test]
    fn bans_are_kept_until_they_expire() {
        let saved = new(&Arc::new(SimDisk::new(0)));
        assert_eq!(saved.try_read(7), Ok(Vec::new()), "there is no file");
        let bans = [ban("203.0.113.0/24", 9), ban("2001:db8::/32", 99), ban("198.51.100.7", u64::MAX)];
        saved.try_write(&bans, 1_000).unwrap();
        let [short, long, endless] = saved.try_read(1_000).unwrap().try_into().unwrap();
        assert_eq!((short, long), (ban("203.0.113.0/24", 10), ban("2001:db8::/32", 100)));
        assert_eq!((endless.subnet, endless.left > Duration::from_secs(1 << 60)), (bans[2].subnet, true));
        assert_eq!(saved.try_read(1_010).unwrap().len(), 2, "the first is over");
        saved.try_write(&[], 1_010).unwrap();
        assert_eq!(saved.try_read(1_010), Ok(Vec::new()));
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let disk = Arc::new(SimDisk::new(0));
        let saved = new(&disk);
        saved.try_write(&[ban("203.0.113.0/24", 9)], 1_000).unwrap();
        let path = Path::new("/electrum/banlist.json");
        let newer = ELECTRUM_BANS_FORMAT.newer(path, 2_u32).unwrap().to_string();
        for (text, expected) in [
            ("", "/electrum/banlist.json: EOF while parsing a value at line 1 column 0"),
            ("{\"format\":2,\"bans\":[]}", newer.as_str()),
            (
                "{\"format\":1,\"bans\":[{\"subnet\":\"x\",\"banned_until\":9}]}",
                "/electrum/banlist.json: not an address, or an address with a netmask or a prefix length: x",
            ),
        ] {
            disk.write_whole(path, text.as_bytes()).unwrap();
            assert_eq!(saved.try_read(0), Err(expected.to_owned()));
            assert_eq!(saved.read(), Vec::new());
        }
    }

    /// limit: ELECTRUM_BANS_FILE_SIZE_MAX at
    /// limit: ELECTRUM_BANS_FILE_SIZE_MAX above
    #[test]
    fn a_file_has_a_greatest_size() {
        let disk = Arc::new(SimDisk::new(0));
        let saved = new(&disk);
        saved.try_write(&[ban("203.0.113.0/24", 9)], 1_000).unwrap();
        let path = Path::new("/electrum/banlist.json");
        let mut text = read_whole(disk.as_ref(), path, ELECTRUM_BANS_FILE_SIZE_MAX).unwrap();
        text.resize(usize::try_from(ELECTRUM_BANS_FILE_SIZE_MAX).unwrap(), b' ');
        disk.write_whole(path, &text).unwrap();
        assert_eq!(saved.try_read(1_000).unwrap().len(), 1);
        text.push(b' ');
        disk.write_whole(path, &text).unwrap();
        assert!(saved.try_read(1_000).unwrap_err().contains("/electrum/banlist.json"));
    }
}
