//! The data directory: made, locked and recognised. Input: settings. Output: [`DataDir`], held until it is dropped; or one sentence why not.
//!
//! `version` in the directory of a chain says which program, format and chain it belongs to; it is written once. Invariants: one process
//! holds a directory; a directory of another chain, of a newer format or of Bitcoin Core is not touched; only its owner may look inside.

use crate::settings::Settings;
use lydian_disk::{Disk, DiskError, DiskErrorKind, Lock, read_whole};
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Of the directory as a whole; the stores inside have versions of their own.
const FORMAT: u32 = 1;

const VERSION_SIZE_MAX: u64 = 1 << 10;

/// A directory that this process may write.
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
    Newer { path: PathBuf, found: u32 },
    BitcoinCore { path: PathBuf },
    Unrecognized { path: PathBuf },
    Disk(DiskError),
}

impl fmt::Display for DataDirError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make { path, error } => write!(f, "Cannot make the directory {}: {error}", path.display()),
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
            Self::Newer { path, found } => write!(
                f,
                "{} was written by a newer Lydian (format {found}, this one knows {FORMAT}): use that one, or another -datadir",
                path.display()
            ),
            Self::BitcoinCore { path } => write!(
                f,
                "{} is a data directory of Bitcoin Core and is left as it is: choose another -datadir, and read its blocks with `lydian import \
                 {}/blocks`",
                path.display(),
                path.display()
            ),
            Self::Unrecognized { path } => {
                write!(f, "{}: this is not the version file of a data directory of Lydian", path.display())
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

impl DataDir {
    /// Makes what is missing, takes the locks, and looks whose directory it is.
    pub(crate) fn open(settings: &Settings, disk: &dyn Disk) -> Result<DataDir, DataDirError> {
        make_private(&settings.datadir)?;
        recognize(settings, disk)?;
        let lock = lock(disk, &settings.datadir)?;
        make_private(&settings.blocks)?;
        let blocks_lock = match settings.blocks.starts_with(&settings.datadir) {
            // A lock file inside is needed only where two data directories may share the blocks.
            true => Box::new(Inside),
            false => self::lock(disk, &settings.blocks)?,
        };
        if disk.kind(&version_path(&settings.datadir)).is_err() {
            let text = format!("lydian {FORMAT}\nchain {}\n", settings.params.chain);
            disk.write_whole(&version_path(&settings.datadir), text.as_bytes())?;
        }
        Ok(DataDir { _lock: lock, _blocks_lock: blocks_lock })
    }
}

/// In place of a lock that another one holds already.
#[derive(Debug)]
struct Inside;

impl Lock for Inside {}

/// Whether the directory is there and ours, without touching it.
pub(crate) fn recognize(settings: &Settings, disk: &dyn Disk) -> Result<(), DataDirError> {
    let path = version_path(&settings.datadir);
    let bytes = match read_whole(disk, &path, VERSION_SIZE_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == DiskErrorKind::NotFound => {
            let is_cores = disk.kind(&settings.datadir.join("chainstate/CURRENT")).is_ok();
            return match is_cores {
                true => Err(DataDirError::BitcoinCore { path: settings.datadir.clone() }),
                false => Ok(()),
            };
        }
        Err(error) => return Err(error.into()),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let format = lines.next().and_then(|line| line.strip_prefix("lydian ")?.parse::<u32>().ok());
    let chain = lines.next().and_then(|line| line.strip_prefix("chain "));
    let wanted = settings.params.chain.name();
    match (format, chain) {
        (Some(found), _) if found > FORMAT => Err(DataDirError::Newer { path: settings.datadir.clone(), found }),
        (Some(_), Some(found)) if found == wanted => Ok(()),
        (Some(_), Some(found)) => {
            Err(DataDirError::OtherChain { path: settings.datadir.clone(), found: found.to_owned(), wanted })
        }
        _ => Err(DataDirError::Unrecognized { path }),
    }
}

fn version_path(directory: &Path) -> PathBuf {
    directory.join("version")
}

/// Makes a directory and its parents that only its owner may enter.
fn make_private(path: &Path) -> Result<(), DataDirError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| DataDirError::Make { path: path.to_owned(), error })
}

fn lock(disk: &dyn Disk, directory: &Path) -> Result<Box<dyn Lock>, DataDirError> {
    let path = || directory.to_owned();
    disk.lock(&directory.join(".lock")).map_err(|error| match error.kind {
        DiskErrorKind::Locked => DataDirError::Locked { path: path() },
        DiskErrorKind::PermissionDenied => DataDirError::CannotWrite { path: path() },
        _ => DataDirError::Disk(error),
    })
}
