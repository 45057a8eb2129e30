//! [`Saved`]: the file of the latest reorganisations, `page/reorganisations.json`.
//!
//! Input: the reorganisations that the page lists. Output: the file, replaced atomically at each change; the list, at
//! the next start. Invariants: at most [`REORGS_MAX`]; a file that cannot be used is named in the log, stays as it is
//! until the next reorganisation, and never stops the node.

use super::reorgs::{Place, Reorg};
use crate::limits::{REORGS_FILE_SIZE_MAX, REORGS_MAX};
use crate::log::Log;
use lydian_disk::format::{Format, MOVE_AWAY, NumberPlace};
use lydian_disk::{Disk, OwnDir, OwnFile, Proof, read_whole};
use lydian_primitives::BlockHash;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// The file, in the folder of the page.
pub(crate) const REORGS_FILES: &[OwnFile] = &[OwnFile { name: FILE, proof: Proof::Directory }];

pub(crate) const FILE: &str = "reorganisations.json";

/// The format of the file.
pub(crate) const REORGS_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::Json, otherwise: MOVE_AWAY };

const FORMAT: u32 = REORGS_FORMAT.number;

/// The file of one data directory.
#[derive(Debug)]
pub(crate) struct Saved {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    log: Arc<Log>,
}

#[derive(Debug, Serialize, Deserialize)]
struct File {
    format: u32,
    reorganisations: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    number: u64,
    time: u64,
    old: Block,
    new: Block,
    fork: Block,
}

#[derive(Debug, Serialize, Deserialize)]
struct Block {
    height: u32,
    hash: String,
}

impl Block {
    fn of(place: Place) -> Block {
        Block { height: place.height, hash: place.hash.to_string() }
    }

    fn place(&self) -> Option<Place> {
        let hash: BlockHash = self.hash.parse().ok()?;
        Some(Place { height: self.height, hash })
    }
}

impl Entry {
    fn of(reorg: &Reorg) -> Entry {
        let [old, new, fork] = [reorg.old, reorg.new, reorg.fork].map(Block::of);
        Entry { number: reorg.number, time: reorg.time, old, new, fork }
    }

    fn reorg(&self) -> Option<Reorg> {
        let places = [self.old.place()?, self.new.place()?, self.fork.place()?];
        Reorg::of_before(self.number, self.time, places)
    }
}

impl Saved {
    pub(crate) fn new(disk: Arc<dyn Disk>, directory: PathBuf, log: Arc<Log>) -> Saved {
        Saved { disk, directory, log }
    }

    /// The reorganisations of earlier processes, the latest last. If the file cannot be used, the log says why.
    pub(crate) fn read(&self) -> Vec<Reorg> {
        self.try_read().unwrap_or_else(|reason| {
            self.log.warning(format!("Page: the list of reorganisations begins anew: {reason}"));
            Vec::new()
        })
    }

    fn try_read(&self) -> Result<Vec<Reorg>, String> {
        let path = self.directory.join(FILE);
        if self.disk.kind(&path).is_err() {
            return Ok(Vec::new());
        }
        let bytes = read_whole(self.disk.as_ref(), &path, REORGS_FILE_SIZE_MAX).map_err(|error| error.to_string())?;
        let path = path.display();
        let file: File = serde_json::from_slice(&bytes).map_err(|error| format!("{path}: {error}"))?;
        if let Some(error) = REORGS_FORMAT.newer(self.directory.join(FILE), file.format) {
            return Err(error.to_string());
        }
        if file.format != FORMAT {
            return Err(format!("{path} has format {}; this program supports format {FORMAT}", file.format));
        }
        let count = file.reorganisations.len();
        let latest = file.reorganisations.iter().skip(count.saturating_sub(REORGS_MAX)).map(Entry::reorg);
        let latest: Option<Vec<Reorg>> = latest.collect();
        let latest = latest.filter(|all| all.is_sorted_by(|one, next| one.number < next.number));
        latest.ok_or_else(|| format!("{path} has a reorganisation that cannot have happened"))
    }

    /// Replaces the file. If that fails, the log says so, and the next change is written with all before it.
    pub(crate) fn write(&self, reorgs: &[Reorg]) {
        let file = File { format: FORMAT, reorganisations: reorgs.iter().map(Entry::of).collect() };
        let text = serde_json::to_string(&file).unwrap_or_else(|error| unreachable!("numbers are JSON: {error}"));
        let (disk, own) = (self.disk.as_ref(), OwnDir::new(&self.directory, REORGS_FILES));
        let path = self.directory.join(FILE);
        let written = disk.create_dir(&self.directory).and_then(|()| own.replace(disk, &path, text.as_bytes()));
        if let Err(error) = written {
            self.log.warning(format!("Page: the list of reorganisations is not saved: {error}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::LogSettings;
    use lydian_disk::SimDisk;
    use std::path::Path;

    fn place(height: u32, branch: u8) -> Place {
        Place { height, hash: BlockHash([branch; 32]) }
    }

    fn reorg(number: u64) -> Reorg {
        Reorg::of_before(number, 1_700_000_000, [place(7, 1), place(8, 2), place(5, 3)]).unwrap()
    }

    fn saved(disk: &Arc<SimDisk>) -> Saved {
        let log = Arc::new(Log::new(Arc::<SimDisk>::clone(disk), &LogSettings::default(), false));
        Saved::new(Arc::<SimDisk>::clone(disk), PathBuf::from("/page"), log)
    }

    #[test]
    fn what_is_written_is_read() {
        let disk = Arc::new(SimDisk::new(0));
        assert_eq!(saved(&disk).read(), []);
        let reorgs: Vec<Reorg> = (1..4).map(reorg).collect();
        saved(&disk).write(&reorgs);
        assert_eq!(saved(&disk).read(), reorgs);
    }

    /// limit: REORGS_FILE_SIZE_MAX at
    /// limit: REORGS_FILE_SIZE_MAX above
    #[test]
    fn a_file_that_cannot_be_used_has_its_reason() {
        let disk = Arc::new(SimDisk::new(0));
        let (saved, path) = (saved(&disk), Path::new("/page").join(FILE));
        let largest: Vec<Reorg> = (0..REORGS_MAX as u64).map(|number| reorg(u64::MAX - 100 + number)).collect();
        saved.write(&largest);
        let own = OwnDir::new(Path::new("/page"), REORGS_FILES);
        let put = |bytes: &[u8]| own.replace(disk.as_ref(), &path, bytes).unwrap();
        let mut bytes = read_whole(disk.as_ref(), &path, REORGS_FILE_SIZE_MAX).unwrap();
        bytes.resize(usize::try_from(REORGS_FILE_SIZE_MAX).unwrap(), b' ');
        put(&bytes);
        assert_eq!(saved.try_read().unwrap(), largest);
        bytes.push(b' ');
        put(&bytes);
        assert!(saved.try_read().is_err());
        let text =
            serde_json::to_string(&File { format: FORMAT, reorganisations: vec![Entry::of(&reorg(1))] }).unwrap();
        for end in 0..text.len() {
            put(&text.as_bytes()[..end]);
            assert!(saved.try_read().unwrap_err().contains("/page/reorganisations.json"), "cut at {end}");
        }
        let faults = [
            ("\"format\":1", "\"format\":2", "has format 2"),
            ("\"height\":5", "\"height\":7", "cannot have happened"),
            ("\"hash\":\"01", "\"hash\":\"x1", "cannot have happened"),
            ("\"time\":", "\"time\":-", "invalid value"),
        ];
        for (from, to, reason) in faults {
            assert!(text.contains(from), "{from}");
            put(text.replacen(from, to, 1).as_bytes());
            let found = saved.try_read().unwrap_err();
            assert!(found.contains(reason), "{found}");
        }
    }
}
