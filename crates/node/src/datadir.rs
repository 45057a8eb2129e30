//! The data directory: creates, recognizes and locks it. Input: settings. Output: [`DataDir`], which holds the locks
//! until it is dropped, or one sentence that says why not.
//!
//! [`lydian_chain::owner`](lydian_chain::Owner) decides to which program the directories belong, before anything is
//! written, the log included. The files `owner` in `blocks/` and `chainstate/` name the program, the format and the
//! chain. Invariants: one process holds a directory, be it Lydian or Bitcoin Core; a directory of another chain, of a
//! newer format or of another program is not touched; only the directory's owner has access to it; a new data directory
//! contains no names but those of Core.

use crate::disagreement;
use crate::formats::{self, FormatError};
use crate::settings::Settings;
use crate::status;
use crate::work::imported;
use lydian_chain::{
    Mark, MarkFound, OWNER_FILE, OWNER_FORMAT, OwnerError, VERSION_FILE, blocks_owner, data_owner, mark, read_mark,
};
use lydian_consensus::Chain;
use lydian_disk::{Disk, DiskError, DiskErrorKind, Lock, NewerFormat, OwnDir, OwnFile, Proof, read_whole};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Files that Lydian before 0.1.0 wrote directly into the data directory; they are moved to their current place, or
/// removed.
pub(crate) const MOVED_FILES: &[OwnFile] = &[
    OwnFile { name: VERSION_FILE, proof: Proof::Directory },
    OwnFile { name: status::FILE, proof: Proof::Directory },
    OwnFile { name: imported::FILE, proof: Proof::Directory },
    OwnFile { name: disagreement::FILES, proof: Proof::Directory },
    OwnFile { name: OLD_PID_FILE, proof: Proof::Directory },
];

const OLD_PID_FILE: &str = "lydian.pid";

/// Largest file that is moved.
const MOVED_SIZE_MAX: u64 = 64 << 20;

/// A data directory that this process has locked and may write.
#[derive(Debug)]
pub(crate) struct DataDir {
    _lock: Box<dyn Lock>,
    _blocks_lock: Box<dyn Lock>,
}

/// Why a directory cannot be used.
#[derive(Debug)]
pub(crate) enum DataDirError {
    Make { path: PathBuf, error: io::Error },
    CannotWrite { path: PathBuf },
    Locked { path: PathBuf },
    OtherChain { path: PathBuf, found: String, wanted: &'static str },
    Newer(NewerFormat),
    NotOurs(OwnerError),
    Unrecognized { path: PathBuf },
    Disk(DiskError),
}

impl fmt::Display for DataDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make { path, error } => write!(f, "Cannot create the directory {}: {error}", path.display()),
            Self::CannotWrite { path } => {
                write!(f, "Cannot write to directory '{}'; check permissions.", path.display())
            }
            Self::Locked { path } => {
                write!(f, "Cannot obtain a lock on directory {}. Lydian is probably already running.", path.display())
            }
            Self::OtherChain { path, found, wanted } => write!(
                f,
                "{} belongs to the chain {found}, not to {wanted}: choose another -datadir, or -chain={found}",
                path.display()
            ),
            Self::Newer(error) => write!(f, "{error}"),
            Self::NotOurs(error) => write!(f, "{error}"),
            Self::Unrecognized { path } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                write!(
                    f,
                    "{}: this is not the {name} file of a directory of Lydian; if the directory is Lydian's, delete the file and start again",
                    path.display()
                )
            }
            Self::Disk(error) if error.kind == DiskErrorKind::NoSpace => {
                write!(f, "{error}; free some space and start again: nothing is lost")
            }
            Self::Disk(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for DataDirError {}

impl From<DiskError> for DataDirError {
    fn from(error: DiskError) -> DataDirError {
        DataDirError::Disk(error)
    }
}

impl From<FormatError> for DataDirError {
    fn from(error: FormatError) -> DataDirError {
        match error {
            FormatError::Newer(error) => DataDirError::Newer(error),
            FormatError::Disk(error) => DataDirError::Disk(error),
        }
    }
}

impl From<OwnerError> for DataDirError {
    fn from(error: OwnerError) -> DataDirError {
        DataDirError::NotOurs(error)
    }
}

impl DataDir {
    /// Checks to which program the directories belong, creates what is missing and takes the locks.
    pub(crate) fn open(settings: &Settings, disk: &dyn Disk) -> Result<DataDir, DataDirError> {
        recognize(settings, disk)?;
        make_with_wallets(settings)?;
        let datadir_lock = lock(disk, &settings.datadir)?;
        make_private(&settings.blocks)?;
        let blocks_lock = lock(disk, &settings.blocks)?;
        // Another program may have written here before the locks were taken.
        recognize(settings, disk)?;
        make_private(&settings.coins())?;
        for directory in [&settings.blocks, &settings.coins()] {
            mark(disk, directory, settings.params.chain.name())?;
        }
        move_old_files(settings, disk)?;
        Ok(DataDir { _lock: datadir_lock, _blocks_lock: blocks_lock })
    }
}

/// Whether another process of Lydian has the data directory open.
pub(crate) fn is_in_use(settings: &Settings, disk: &dyn Disk) -> bool {
    settings.datadir.is_dir()
        && recognize(settings, disk).is_ok()
        && matches!(lock(disk, &settings.datadir), Err(DataDirError::Locked { .. }))
}

/// Checks that the directories are ours or new, without touching them.
pub(crate) fn recognize(settings: &Settings, disk: &dyn Disk) -> Result<(), DataDirError> {
    let marked = [(&settings.datadir, VERSION_FILE), (&settings.coins(), OWNER_FILE), (&settings.blocks, OWNER_FILE)];
    for (directory, name) in marked {
        let path = directory.join(name);
        match read_mark(disk, &path)? {
            MarkFound::Nothing => {}
            MarkFound::Other => return Err(DataDirError::Unrecognized { path }),
            MarkFound::Mark(mark) => check_mark(settings, directory, &path, mark)?,
        }
    }
    data_owner(disk, &settings.datadir)?.check(&settings.datadir)?;
    blocks_owner(disk, &settings.blocks, &settings.index())?.check(&settings.blocks)?;
    Ok(formats::check(settings, disk)?)
}

fn check_mark(settings: &Settings, directory: &Path, file: &Path, mark: Mark) -> Result<(), DataDirError> {
    let Mark { version, chain } = mark;
    if let Some(error) = OWNER_FORMAT.newer(file, version) {
        return Err(DataDirError::Newer(error));
    }
    let (path, wanted) = (directory.to_owned(), settings.params.chain.name());
    match () {
        () if chain == wanted => Ok(()),
        () => Err(DataDirError::OtherChain { path, found: chain, wanted }),
    }
}

/// Moves the files that Lydian before 0.1.0 wrote into the data directory itself. Its `version` is removed last, so
/// that an interrupted move is resumed.
fn move_old_files(settings: &Settings, disk: &dyn Disk) -> Result<(), DataDirError> {
    let version = settings.datadir.join(VERSION_FILE);
    if read_mark(disk, &version)? == MarkFound::Nothing {
        return Ok(());
    }
    let old = OwnDir::new(&settings.datadir, MOVED_FILES);
    let index = settings.index();
    make_private(&index)?;
    let mut moves = vec![
        (status::FILE.to_owned(), OwnDir::new(&settings.coins(), status::STATUS_FILES)),
        (imported::FILE.to_owned(), OwnDir::new(&settings.blocks, imported::IMPORTED_FILES)),
    ];
    for name in disagreement::files(disk, &settings.datadir) {
        moves.push((name, OwnDir::new(&index, disagreement::DISAGREEMENT_FILES)));
    }
    for (name, new) in moves {
        let from = settings.datadir.join(&name);
        match read_whole(disk, &from, MOVED_SIZE_MAX) {
            Ok(bytes) => new.replace(disk, &new.path().join(&name), &bytes)?,
            Err(error) if error.kind == DiskErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        }
        old.remove(disk, &from)?;
    }
    old.remove(disk, &settings.datadir.join(OLD_PID_FILE))?;
    old.remove(disk, &version)?;
    Ok(disk.sync_dir(&settings.datadir)?)
}

/// As in Core, a new data directory gets an empty `wallets`, and so does the directory of its chain.
fn make_with_wallets(settings: &Settings) -> Result<(), DataDirError> {
    let datadir = &settings.datadir;
    let base = match settings.params.chain {
        Chain::Main => None,
        _ => datadir.parent().filter(|base| !base.as_os_str().is_empty()),
    };
    for directory in base.into_iter().chain([datadir.as_path()]) {
        if !directory.exists() {
            make_private(&directory.join("wallets"))?;
        }
    }
    Ok(())
}

/// Creates a directory and its parents, accessible only to their owner.
fn make_private(path: &Path) -> Result<(), DataDirError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| DataDirError::Make { path: path.to_owned(), error })
}

fn lock(disk: &dyn Disk, directory: &Path) -> Result<Box<dyn Lock>, DataDirError> {
    let path = || directory.to_owned();
    disk.lock(&directory.join(".lock")).map_err(|error| match error.kind {
        DiskErrorKind::Locked => DataDirError::Locked { path: path() },
        DiskErrorKind::PermissionDenied => DataDirError::CannotWrite { path: path() },
        // As in Core, it is the same sentence if the file system is mounted read-only.
        _ if access(directory, Access::WRITE_OK) == Err(Errno::ROFS) => DataDirError::CannotWrite { path: path() },
        _ => DataDirError::Disk(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// docs/formats/files.md lists exactly the files that are changed.
    #[test]
    fn the_files_that_are_changed_are_documented() {
        let tables: &[(&str, &[OwnFile])] = &[
            ("blocks", lydian_chain::BLOCKS_FILES),
            ("blocks", lydian_chain::OWNER_FILES),
            ("blocks", imported::IMPORTED_FILES),
            ("blocks/index", lydian_chain::INDEX_FILES),
            ("blocks/index", disagreement::DISAGREEMENT_FILES),
            ("chainstate", lydian_chain::OWNER_FILES),
            ("chainstate", lydian_coins::COINS_FILES),
            ("chainstate", lydian_engine::WIPE_FILES),
            ("chainstate", status::STATUS_FILES),
            (".", lydian_p2p::files::NETWORK_FILES),
            (".", lydian_mempool::files::MEMPOOL_FILES),
            (".", lydian_fees::FEE_ESTIMATES_FILES),
            (".", MOVED_FILES),
            (".", lydian_dashboard::history::HISTORY_FILES),
            (lydian_index::COINSTATS_DIR, lydian_index::COINSTATS_FILES),
            (lydian_index::FILTERS_DIR, lydian_index::FILTERS_FILES),
            (lydian_index::TABLES_DIR, lydian_index::TABLES_FILES),
            (crate::electrum::files::TLS_DIR, crate::electrum::files::TLS_FILES),
            (crate::electrum::files::TLS_DIR, crate::electrum::bans::ELECTRUM_BANS_FILES),
            (crate::page::PAGE_DIR, crate::electrum::files::TLS_FILES),
            (crate::page::PAGE_DIR, lydian_dashboard::SESSION_FILES),
            (crate::page::PAGE_DIR, crate::blocks::saved::REORGS_FILES),
            ("message_capture/*", lydian_net::CAPTURE_FILES),
            ("-bundle", crate::doctor::bundle::BUNDLE_FILES),
            ("-debuglogfile", crate::log::LOG_FILES),
            ("-pid", crate::run::PID_FILES),
            ("-settings", lydian_options::SETTINGS_FILES),
            ("-rpccookiefile", lydian_serve::COOKIE_FILES),
            ("-zmqpub...", lydian_zmq::SOCKET_FILES),
        ];
        let rows = tables.iter().flat_map(|(directory, files)| files.iter().map(move |file| (directory, file)));
        let known: BTreeSet<_> = rows.map(|(directory, file)| [directory, file.name, file.proof.name()]).collect();
        let page = include_str!("../../../docs/formats/files.md");
        let table = page.split("| directory | name | changes | proof |").nth(1).unwrap();
        let mut documented = BTreeSet::new();
        for line in table.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            documented.insert([cells[1], cells[2], cells[4]]);
        }
        assert_eq!(documented, known);
    }
}
