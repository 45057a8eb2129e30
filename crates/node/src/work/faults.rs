//! Warnings about disks and files: a disk that is nearly full, an index that failed or could not be opened, a signature
//! engine that was wrong. Input: the free space of the folders, the state of the indexes, the files of disagreements.
//! Output: warnings, which end when their cause is gone; lines in the log. Cost: two calls of `statvfs`, a list of the
//! directory of the block index and the state of each index, every few seconds.

use super::alerts::Alarm;
use super::watcher::Watcher;
use crate::clock::now_nanos;
use crate::disagreement;
use crate::display::gigabytes;
use crate::log::Log;
use crate::run::Session;
use crate::settings::{Prune, Settings};
use crate::status::IndexStatus;
use lydian_consensus::Chain;
use lydian_disk::Disk;
use lydian_engine::Engine;
use lydian_rpc::Warning;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Nanoseconds between two checks.
const INTERVAL_NANOS: u64 = 2_000_000_000;

/// A disk with less free space is nearly full: about a month of blocks of mainnet.
const FREE_BYTES_LOW: u64 = 10_000_000_000;

/// The same where the files of blocks do not grow, or hardly: with `-prune=N`, on regtest and on signets of others.
const FREE_BYTES_LOW_SMALL: u64 = 1_000_000_000;

/// Looks for faults.
#[derive(Debug)]
pub(super) struct Faults {
    log: Arc<Log>,
    disk: Arc<dyn Disk>,
    /// The data directory, and the directory of the block files.
    folders: [PathBuf; 2],
    /// Where disagreements are recorded.
    index: PathBuf,
    space: Space,
    /// When the last check was.
    looked_at: Option<u64>,
}

impl Faults {
    pub(super) fn new(session: &Session<'_>) -> Faults {
        let settings = session.settings;
        Faults {
            log: Arc::clone(&session.log),
            disk: Arc::clone(&session.disk),
            folders: [settings.datadir.clone(), settings.blocks.clone()],
            index: settings.index(),
            space: Space::new(settings),
            looked_at: None,
        }
    }

    /// Checks whether a warning begins or ends, unless the last check was a moment ago.
    pub(super) fn look(&mut self, alarm: &Alarm, engine: &Engine, watcher: &Watcher) {
        let now = now_nanos();
        if self.looked_at.is_some_and(|before| now.saturating_sub(before) < INTERVAL_NANOS) {
            return;
        }
        self.looked_at = Some(now);
        let has = alarm.has(Warning::DiskNearlyFull);
        let folders = self.folders.iter().map(|path| (path.as_path(), self.disk.free_bytes(path).ok()));
        let full = self.space.words(folders, has);
        self.keep(alarm, Warning::DiskNearlyFull, full.as_deref());
        let failed = failed(&watcher.index_statuses(Some(engine)));
        self.keep(alarm, Warning::IndexFailed, failed.as_deref());
        // The warning begins when the engine is found to be wrong, or at the start.
        if engine.signatures().is_trusted() && disagreement::files(self.disk.as_ref(), &self.index).is_empty() {
            alarm.unwarn(Warning::SignatureEngine);
        }
    }

    fn keep(&self, alarm: &Alarm, id: Warning, message: Option<&str>) {
        let had = alarm.has(id);
        if alarm.keep(id, message) {
            self.log.warning(message.unwrap_or_default());
        }
        if had && message.is_none() {
            self.log.info(match id {
                Warning::DiskNearlyFull => "The disk has free space again",
                _ => "All indexes work again",
            });
        }
    }
}

/// How much free space is little.
#[derive(Clone, Copy, Debug)]
struct Space {
    low_bytes: u64,
    can_prune: bool,
}

impl Space {
    fn new(settings: &Settings) -> Space {
        let is_public = settings.params.chain != Chain::Regtest && !settings.is_signet_of_others;
        let grows = is_public && !matches!(settings.prune, Prune::Target { .. });
        Space {
            low_bytes: if grows { FREE_BYTES_LOW } else { FREE_BYTES_LOW_SMALL },
            can_prune: settings.prune == Prune::Never,
        }
    }

    /// The warning about the first folder with little free space. A warning that `is_set` ends a tenth later than it
    /// began, so that it does not come and go. A file system that does not report its free space causes none.
    fn words<'a>(&self, folders: impl Iterator<Item = (&'a Path, Option<u64>)>, is_set: bool) -> Option<String> {
        let low = if is_set { self.low_bytes + self.low_bytes / 10 } else { self.low_bytes };
        let mut found = folders.filter(|(_, free)| free.is_some_and(|free| free < low));
        let (path, _) = found.next()?;
        let prune = if self.can_prune { ", or keep fewer blocks with -prune" } else { "" };
        Some(format!(
            "The disk with \"{}\" is nearly full: it has less than {} GB of free space. Delete other files{prune}. The \
             node stops when it cannot write.",
            path.display(),
            gigabytes(self.low_bytes)
        ))
    }
}

/// The warning about indexes that do not work; those with the same error are named together.
fn failed(indexes: &[IndexStatus]) -> Option<String> {
    let mut errors: Vec<(&str, Vec<&str>)> = Vec::new();
    for index in indexes {
        let Some(error) = &index.error else { continue };
        match errors.iter_mut().find(|(known, _)| known == error) {
            Some((_, names)) => names.push(&index.name),
            None => errors.push((error, vec![&index.name])),
        }
    }
    let each: String = errors
        .iter()
        .map(|(error, names)| format!("The node runs without {}: {}. ", names.join(", "), error.trim_end_matches('.')))
        .collect();
    (!each.is_empty()).then(|| {
        each + "Remove the cause and start the node again. If the error comes back, delete the index with \"lydian index \
                drop\"; the next start builds it anew."
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_nearly_full_until_it_has_clearly_more() {
        let space = Space { low_bytes: FREE_BYTES_LOW, can_prune: true };
        let [a, b] = [Path::new("/a"), Path::new("/b")];
        let words = |first, second, is_set| space.words([(a, first), (b, second)].into_iter(), is_set);
        let expected = "The disk with \"/a\" is nearly full: it has less than 10.0 GB of free space. Delete other files, \
                        or keep fewer blocks with -prune. The node stops when it cannot write.";
        assert_eq!(words(Some(FREE_BYTES_LOW - 1), Some(u64::MAX), false).as_deref(), Some(expected));
        assert_eq!(words(Some(FREE_BYTES_LOW), Some(FREE_BYTES_LOW), false), None);
        assert_eq!(words(None, None, false), None, "a file system that does not say");
        assert!(words(None, Some(0), false).is_some_and(|words| words.contains("\"/b\"")));
        let clearly_more = FREE_BYTES_LOW / 10 * 11;
        assert_eq!(words(Some(clearly_more - 1), None, true).as_deref(), Some(expected));
        assert_eq!(words(Some(clearly_more), None, true), None);
        let pruned = Space { low_bytes: FREE_BYTES_LOW_SMALL, can_prune: false };
        let words = pruned.words([(a, Some(0))].into_iter(), false).unwrap();
        assert!(words.contains("less than 1.0 GB of free space. Delete other files. The node"), "{words}");
    }

    #[test]
    fn indexes_with_one_error_are_named_together() {
        let index = |name: &str, error: Option<&str>| IndexStatus {
            name: name.to_owned(),
            height: Some(7),
            hash: None,
            is_synced: error.is_none(),
            error: error.map(str::to_owned),
        };
        assert_eq!(failed(&[]), None);
        assert_eq!(failed(&[index("a", None)]), None);
        let all = [index("a", Some("x")), index("b", None), index("c", Some("y.")), index("d", Some("x"))];
        let words = failed(&all).unwrap();
        let expected = "The node runs without a, d: x. The node runs without c: y. Remove the cause and start the node";
        assert!(words.starts_with(expected), "{words}");
    }
}
