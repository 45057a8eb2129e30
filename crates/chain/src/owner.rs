//! Determines the owner of a directory, in this one place. Input: paths. Output: an [`Owner`]. Writes only the owner
//! file, and only after the directory was found to be ours or new.
//!
//! A directory is ours if it contains an owner file, an index log, a `reindex` marker or a coin manifest of ours, or if
//! the data directory around it contains the `version` file of Lydian before 0.1.0. A directory with LevelDB files is
//! Bitcoin Core's. One with files of a node and without a mark of ours is foreign too: its writer cannot be determined,
//! so it is left unchanged. Cost: listing four directories.

use lydian_consensus::Chain;
use lydian_disk::format::{Format, NumberPlace, OTHER_DATADIR};
use lydian_disk::{Disk, DiskError, DiskErrorKind, OwnDir, OwnFile, PathKind, Proof, read_whole};
use std::fmt;
use std::path::{Path, PathBuf};

/// The file that marks a directory as ours: `blocks/owner`, `chainstate/owner`.
pub const OWNER_FILE: &str = "owner";

/// Version of the data directory as a whole; the stores in it have versions of their own.
pub const OWNER_VERSION: u32 = OWNER_FORMAT.number;

/// The format of the owner file.
pub const OWNER_FORMAT: Format =
    Format { number: 1, oldest: 1, place: NumberPlace::Line("lydian"), otherwise: OTHER_DATADIR };

/// The mark of Lydian before 0.1.0, in the data directory itself.
pub const VERSION_FILE: &str = "version";

/// Maximum size of an owner file.
const OWNER_SIZE_MAX: u64 = 1 << 10;

/// The files that this module writes.
pub const OWNER_FILES: &[OwnFile] = &[OwnFile { name: OWNER_FILE, proof: Proof::Directory }];

/// Files that a node writes directly into its data directory. Without a mark of ours they belong to another program.
const NODE_FILES: &[&str] = &[
    "debug.log",
    "peers.dat",
    "banlist.dat",
    "banlist.json",
    "anchors.dat",
    "mempool.dat",
    "fee_estimates.dat",
    "wallet.dat",
];

/// Directories of a node that are empty or missing while the data directory is new.
const NODE_DIRECTORIES: &[&str] = &["wallets", "indexes"];

/// The owner of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No node has written into the directory.
    New,
    Ours,
    /// The directory belongs to another program, as this file shows.
    Foreign {
        found: PathBuf,
    },
    /// The directory contains files of ours and of Bitcoin Core.
    Mixed {
        ours: PathBuf,
        theirs: PathBuf,
    },
}

impl Owner {
    /// Returns an error unless we may write into the directory.
    pub fn check(self, directory: &Path) -> Result<Owner, OwnerError> {
        let directory = directory.to_owned();
        match self {
            Owner::New | Owner::Ours => Ok(self),
            Owner::Foreign { found } => Err(OwnerError::Foreign { directory, found }),
            Owner::Mixed { ours, theirs } => Err(OwnerError::Mixed { directory, ours, theirs }),
        }
    }

    /// Combines the owners of two directories that belong together. Evidence against our ownership takes precedence.
    fn and(self, other: Owner) -> Owner {
        match (self, other) {
            (Owner::Mixed { ours, theirs }, _) | (_, Owner::Mixed { ours, theirs }) => Owner::Mixed { ours, theirs },
            (Owner::Foreign { found }, _) | (_, Owner::Foreign { found }) => Owner::Foreign { found },
            (Owner::Ours, _) | (_, Owner::Ours) => Owner::Ours,
            (Owner::New, Owner::New) => Owner::New,
        }
    }
}

/// A directory that we must not write into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerError {
    Foreign { directory: PathBuf, found: PathBuf },
    Mixed { directory: PathBuf, ours: PathBuf, theirs: PathBuf },
}

impl fmt::Display for OwnerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OwnerError::Foreign { directory, found } => write!(
                f,
                "Directory {} was not written by Lydian (it holds {}) and is left as it is: choose another -datadir or -blocksdir; `lydian import` \
                 and -loadblock read the blocks of Bitcoin Core where they are.",
                directory.display(),
                found.display()
            ),
            OwnerError::Mixed { directory, ours, theirs } => write!(
                f,
                "Directory {} holds files of Bitcoin Core ({}) and of Lydian ({}) and is left as it is: choose another -datadir or -blocksdir, or move \
                 the files of one of them away.",
                directory.display(),
                theirs.display(),
                ours.display()
            ),
        }
    }
}

impl std::error::Error for OwnerError {}

/// The owner of a blocks directory and its index.
pub fn blocks_owner(disk: &dyn Disk, blocks: &Path, index: &Path) -> Result<Owner, DiskError> {
    let ours = first([blocks.join(OWNER_FILE), around(blocks)], |path| is_owner_file(disk, path))?;
    let ours = match ours {
        Some(found) => Some(found),
        None => first([index.join("index.log"), index.join("reindex")], |path| is_there(disk, path))?,
    };
    let theirs = leveldb_file(disk, index)?;
    Ok(match (ours, theirs) {
        (Some(ours), Some(theirs)) => Owner::Mixed { ours, theirs },
        (Some(_), None) => Owner::Ours,
        (None, Some(found)) => Owner::Foreign { found },
        (None, None) => found_or_new(files(disk, blocks)?.into_iter().find(|path| is_block_store_file(path))),
    })
}

/// The owner of a coins directory.
pub fn coins_owner(disk: &dyn Disk, coins: &Path) -> Result<Owner, DiskError> {
    let ours = first([coins.join(OWNER_FILE), around(coins)], |path| is_owner_file(disk, path))?;
    let ours = match ours {
        Some(found) => Some(found),
        None => first(["manifest", "wipe"].map(|name| coins.join(name)), |path| is_there(disk, path))?,
    };
    Ok(match (ours, leveldb_file(disk, coins)?) {
        (Some(ours), Some(theirs)) => Owner::Mixed { ours, theirs },
        (Some(_), None) => Owner::Ours,
        (None, Some(found)) => Owner::Foreign { found },
        (None, None) => Owner::New,
    })
}

/// The owner of a data directory, determined by its coins, its blocks and the files of a node in it.
pub fn data_owner(disk: &dyn Disk, datadir: &Path) -> Result<Owner, DiskError> {
    let blocks = datadir.join("blocks");
    let blocks = blocks_owner(disk, &blocks, &blocks.join("index"))?;
    let owner = coins_owner(disk, &datadir.join("chainstate"))?.and(blocks);
    if owner != Owner::New {
        return Ok(owner);
    }
    let is_node_file = |path: &PathBuf| NODE_FILES.iter().any(|name| path.ends_with(name));
    let mut found = files(disk, datadir)?.into_iter().find(is_node_file);
    for name in NODE_DIRECTORIES {
        let inside = list(disk, &datadir.join(name))?;
        found = found.or_else(|| inside.into_iter().map(|(path, _)| path).next());
    }
    Ok(found_or_new(found))
}

fn found_or_new(found: Option<PathBuf>) -> Owner {
    found.map_or(Owner::New, |found| Owner::Foreign { found })
}

/// The content of an owner file or `version` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub version: u32,
    pub chain: String,
}

/// The content found at the path of an owner file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkFound {
    Nothing,
    Mark(Mark),
    /// A file that is not an owner file.
    Other,
}

/// Reads an owner file.
pub fn read_mark(disk: &dyn Disk, path: &Path) -> Result<MarkFound, DiskError> {
    let bytes = match read_whole(disk, path, OWNER_SIZE_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(MarkFound::Nothing),
        Err(error) if matches!(error.kind, DiskErrorKind::TooLarge { .. } | DiskErrorKind::IsADirectory) => {
            return Ok(MarkFound::Other);
        }
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let version = lines.next().and_then(|line| line.strip_prefix("lydian ")?.parse().ok());
    let chain = lines.next().and_then(|line| line.strip_prefix("chain "));
    // The chains of a later version are unknown here.
    let is_known = |version: u32, chain: &str| version > OWNER_VERSION || chain.parse::<Chain>().is_ok();
    Ok(match version.zip(chain).filter(|(version, chain)| is_known(*version, chain)) {
        Some((version, chain)) => MarkFound::Mark(Mark { version, chain: chain.to_owned() }),
        None => MarkFound::Other,
    })
}

/// Marks a directory as ours, durably, unless it is already marked. The caller has determined that it is ours or new.
pub fn mark(disk: &dyn Disk, directory: &Path, chain: &str) -> Result<(), DiskError> {
    let path = directory.join(OWNER_FILE);
    if is_there(disk, &path)? {
        return Ok(());
    }
    let text = format!("lydian {OWNER_VERSION}\nchain {chain}\n");
    OwnDir::new(directory, OWNER_FILES).replace(disk, &path, text.as_bytes())
}

/// The `version` file next to a directory.
fn around(directory: &Path) -> PathBuf {
    directory.parent().unwrap_or(Path::new("")).join(VERSION_FILE)
}

fn is_owner_file(disk: &dyn Disk, path: &Path) -> Result<bool, DiskError> {
    Ok(matches!(read_mark(disk, path)?, MarkFound::Mark(_)))
}

fn is_there(disk: &dyn Disk, path: &Path) -> Result<bool, DiskError> {
    match disk.kind(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind, DiskErrorKind::NotFound | DiskErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(error),
    }
}

fn first(
    paths: impl IntoIterator<Item = PathBuf>,
    mut is_it: impl FnMut(&Path) -> Result<bool, DiskError>,
) -> Result<Option<PathBuf>, DiskError> {
    for path in paths {
        if is_it(&path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// The entries of a directory; empty if the directory does not exist.
fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<(PathBuf, PathKind)>, DiskError> {
    match disk.list(directory) {
        Err(error) if matches!(error.kind, DiskErrorKind::NotFound | DiskErrorKind::NotADirectory) => Ok(Vec::new()),
        entries => entries,
    }
}

fn files(disk: &dyn Disk, directory: &Path) -> Result<Vec<PathBuf>, DiskError> {
    let entries = list(disk, directory)?.into_iter();
    Ok(entries.filter(|(_, kind)| *kind == PathKind::File).map(|(path, _)| path).collect())
}

fn leveldb_file(disk: &dyn Disk, directory: &Path) -> Result<Option<PathBuf>, DiskError> {
    Ok(files(disk, directory)?.into_iter().find(|path| is_leveldb_file(path)))
}

/// Matches LevelDB's file names (db/filename.cc). Bitcoin Core stores its index and its coins in LevelDB.
fn is_leveldb_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if matches!(name.as_ref(), "CURRENT" | "LOCK" | "LOG" | "LOG.old") {
        return true;
    }
    match name.split_once('.') {
        None => name.strip_prefix("MANIFEST-").is_some_and(is_number),
        Some((number, ending)) => is_number(number) && matches!(ending, "ldb" | "sst" | "log" | "dbtmp"),
    }
}

/// Matches block files, undo files and the key, which have the same names in Bitcoin Core.
fn is_block_store_file(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_numbered = |start: &str| {
        let digits = name.strip_prefix(start).and_then(|rest| rest.strip_suffix(".dat"));
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    name == "xor.dat" || is_numbered("blk") || is_numbered("rev")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::SimDisk;

    const MARK: &str = "lydian 1\nchain regtest\n";

    fn disk_with(files: &[(&str, &str)]) -> SimDisk {
        let disk = SimDisk::new(1);
        for directory in ["d/blocks/index", "d/chainstate", "d/wallets", "d/indexes"] {
            disk.create_dir(Path::new(directory)).unwrap();
        }
        for (path, text) in files {
            disk.write_whole(Path::new(path), text.as_bytes()).unwrap();
        }
        disk
    }

    /// Regression test: only `chainstate/CURRENT` in the data directory identified Bitcoin Core's directories. With
    /// `-blocksdir`, or without that file, Core's undo files were deleted and overwritten and its last block file was
    /// appended to.
    #[test]
    fn whose_a_directory_is() {
        let foreign = |path: &str| Owner::Foreign { found: path.into() };
        let mixed = |ours: &str, theirs: &str| Owner::Mixed { ours: ours.into(), theirs: theirs.into() };
        let cases: &[(&[(&str, &str)], Owner)] = &[
            (&[], Owner::New),
            (&[("d/bitcoin.conf", ""), ("d/settings.json", "{}"), ("d/.lock", "")], Owner::New),
            (&[("d/blocks/owner", MARK)], Owner::Ours),
            (&[("d/chainstate/owner", MARK)], Owner::Ours),
            (&[("d/version", MARK), ("d/blocks/blk00000.dat", "x")], Owner::Ours),
            (&[("d/blocks/index/index.log", "x"), ("d/blocks/rev00000.dat", "x")], Owner::Ours),
            (&[("d/blocks/index/reindex", "wiping\n"), ("d/blocks/blk00000.dat", "x")], Owner::Ours),
            (&[("d/chainstate/manifest", "x"), ("d/peers.dat", "x")], Owner::Ours),
            (&[("d/blocks/blk00000.dat", "x")], foreign("d/blocks/blk00000.dat")),
            (&[("d/blocks/rev00000.dat", "x")], foreign("d/blocks/rev00000.dat")),
            (&[("d/blocks/xor.dat", "x"), ("d/version", "1.2")], foreign("d/blocks/xor.dat")),
            (&[("d/blocks/owner", "lydian 1\nchain regtest*"), ("d/blocks/xor.dat", "x")], foreign("d/blocks/xor.dat")),
            (&[("d/blocks/owner", "John"), ("d/blocks/blk00000.dat", "x")], foreign("d/blocks/blk00000.dat")),
            (&[("d/blocks/index/000005.ldb", "x")], foreign("d/blocks/index/000005.ldb")),
            (&[("d/chainstate/MANIFEST-000002", "x")], foreign("d/chainstate/MANIFEST-000002")),
            (&[("d/chainstate/LOCK", "")], foreign("d/chainstate/LOCK")),
            (&[("d/debug.log", "x")], foreign("d/debug.log")),
            (&[("d/wallets/wallet.dat", "x")], foreign("d/wallets/wallet.dat")),
            (
                &[("d/blocks/index/index.log", "x"), ("d/blocks/index/CURRENT", "x")],
                mixed("d/blocks/index/index.log", "d/blocks/index/CURRENT"),
            ),
            (&[("d/chainstate/owner", MARK), ("d/blocks/index/LOG", "x")], foreign("d/blocks/index/LOG")),
            (&[("d/version", MARK), ("d/chainstate/CURRENT", "x")], mixed("d/version", "d/chainstate/CURRENT")),
        ];
        for (files, expected) in cases {
            let disk = disk_with(files);
            assert_eq!(data_owner(&disk, Path::new("d")).unwrap(), *expected, "{files:?}");
            assert_eq!(data_owner(&disk, Path::new("nowhere")).unwrap(), Owner::New);
        }
    }

    #[test]
    fn a_mark_is_written_once() {
        let disk = disk_with(&[]);
        let (blocks, index) = (Path::new("d/blocks"), Path::new("d/blocks/index"));
        mark(&disk, blocks, "regtest").unwrap();
        let path = blocks.join(OWNER_FILE);
        assert_eq!(read_whole(&disk, &path, 99).unwrap(), MARK.as_bytes());
        assert_eq!(blocks_owner(&disk.power_loss(1), blocks, index).unwrap(), Owner::Ours);
        let count = disk.operation_count();
        mark(&disk, blocks, "main").unwrap();
        assert_eq!(disk.operation_count(), count);
        let mark = Mark { version: 1, chain: "regtest".into() };
        assert_eq!(read_mark(&disk, &path).unwrap(), MarkFound::Mark(mark));
        disk.write_whole(&path, &vec![b'x'; usize::try_from(OWNER_SIZE_MAX).unwrap() + 1]).unwrap();
        assert_eq!(read_mark(&disk, &path).unwrap(), MarkFound::Other);
        assert_eq!(read_mark(&disk, Path::new("d/none")).unwrap(), MarkFound::Nothing);
    }

    #[test]
    fn the_sentence_says_what_to_do() {
        let (directory, found) = (PathBuf::from("b"), PathBuf::from("b/blk00000.dat"));
        let error = Owner::Foreign { found }.check(&directory).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Directory b was not written by Lydian (it holds b/blk00000.dat) and is left as it is: choose another -datadir or -blocksdir; \
             `lydian import` and -loadblock read the blocks of Bitcoin Core where they are."
        );
        let error = Owner::Mixed { ours: "b/owner".into(), theirs: "b/LOCK".into() }.check(&directory).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Directory b holds files of Bitcoin Core (b/LOCK) and of Lydian (b/owner) and is left as it is: choose another -datadir or -blocksdir, \
             or move the files of one of them away."
        );
    }
}
