//! The indexes of a data directory, for `lydian index`: their state, a check of their files, a rebuild to compare them
//! with, and their removal.
//!
//! Input: the data directory of a chain. Output: reports, comparisons, freed bytes. The forms of the files stay inside
//! the modules of each index; this is the list of them. Only [`remove`], [`remove_scratch`] and [`rebuild`], in the
//! scratch directory, change files; they need the lock of the data directory.

use crate::coinstats::{self, COINSTATS_DIR, COINSTATS_FILES, CoinStatsIndex};
use crate::error::IndexError;
use crate::files::{self, Advance, Comparison, Report};
use crate::filters::{self, FILTERS_DIR, FILTERS_FILES, FilterIndex};
use crate::rebuild::Rebuild;
use crate::tables::{self, TABLES_DIR, TABLES_FILES};
use lydian_consensus::Params;
use lydian_disk::{Disk, OwnDir, OwnFile};
use lydian_primitives::BlockHash;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of a rebuild, relative to the data directory of the chain; each index has one in it.
pub const SCRATCH_DIR: &str = "indexes/verify";

/// An index of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// Transactions, and the events of scripts.
    Tables,
    Filters,
    CoinStats,
}

/// What the kinds differ in.
struct Info {
    kind: IndexKind,
    name: &'static str,
    options: &'static str,
    dir: &'static str,
    files: &'static [OwnFile],
    /// The file without which the others mean nothing.
    tip_file: &'static str,
}

const INDEXES: [Info; 3] = [
    Info {
        kind: IndexKind::Tables,
        name: "tables",
        options: "-txindex, -txospenderindex, -addressindex",
        dir: TABLES_DIR,
        files: TABLES_FILES,
        tip_file: "commit",
    },
    Info {
        kind: IndexKind::Filters,
        name: "blockfilter",
        options: "-blockfilterindex",
        dir: FILTERS_DIR,
        files: FILTERS_FILES,
        tip_file: "filters.tip",
    },
    Info {
        kind: IndexKind::CoinStats,
        name: "coinstats",
        options: "-coinstatsindex",
        dir: COINSTATS_DIR,
        files: COINSTATS_FILES,
        tip_file: "stats.tip",
    },
];

impl IndexKind {
    pub const ALL: [IndexKind; 3] = [IndexKind::Tables, IndexKind::Filters, IndexKind::CoinStats];

    fn info(self) -> &'static Info {
        let [tables, filters, coinstats] = &INDEXES;
        match self {
            IndexKind::Tables => tables,
            IndexKind::Filters => filters,
            IndexKind::CoinStats => coinstats,
        }
    }

    /// The kind of a name.
    pub fn of_name(name: &str) -> Option<IndexKind> {
        INDEXES.iter().find(|info| info.name == name).map(|info| info.kind)
    }

    /// The name in `lydian index`.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The options of the node that use the index.
    pub fn options(self) -> &'static str {
        self.info().options
    }

    /// The directory of the index in a data directory.
    pub fn dir(self, datadir: &Path) -> PathBuf {
        datadir.join(self.info().dir)
    }

    /// The directory of its rebuild.
    pub fn scratch_dir(self, datadir: &Path) -> PathBuf {
        datadir.join(SCRATCH_DIR).join(self.info().name)
    }
}

/// The state of an index; `None` if the data directory has none of its files. A missing file is an error. May be called
/// while a node uses it.
pub fn inspect(
    disk: &dyn Disk,
    datadir: &Path,
    kind: IndexKind,
    params: &Params,
) -> Result<Option<Report>, IndexError> {
    let dir = kind.dir(datadir);
    let look = || match kind {
        IndexKind::Tables => tables::inspect::report(disk, &dir, &params.genesis_hash),
        IndexKind::Filters => filters::inspect::report(disk, &dir, &params.genesis_hash),
        IndexKind::CoinStats => coinstats::inspect::report(disk, &dir, params),
    };
    // A node may have replaced files between two looks.
    look().or_else(|_| look())
}

/// The hash of a block that the tables had at their last checkpoint; `None` if they did not have the height. May be
/// called while a node uses them.
pub fn hash_at(disk: &dyn Disk, datadir: &Path, params: &Params, height: u32) -> Result<Option<BlockHash>, IndexError> {
    let dir = IndexKind::Tables.dir(datadir);
    let look = || tables::inspect::hash_at(disk, &dir, &params.genesis_hash, height);
    // A node may have replaced files between two looks.
    look().or_else(|_| look())
}

/// Reads everything that the index uses with its checksums; the error names file and offset.
pub fn check(
    disk: &dyn Disk,
    datadir: &Path,
    kind: IndexKind,
    params: &Params,
    told: Advance<'_>,
) -> Result<(), IndexError> {
    let dir = kind.dir(datadir);
    match kind {
        IndexKind::Tables => tables::inspect::check(disk, &dir, &params.genesis_hash, told),
        IndexKind::Filters => filters::inspect::check(disk, &dir, &params.genesis_hash, told),
        IndexKind::CoinStats => coinstats::inspect::check(disk, &dir, params, told),
    }
}

/// Reads up to `count` random pages of the tables with their checksums, also while a node uses them; returns the number
/// that was read, 0 if there are none. `random` returns a number below its argument, which is not 0.
pub fn sample(
    disk: &dyn Disk,
    datadir: &Path,
    params: &Params,
    count: usize,
    random: &mut dyn FnMut(u64) -> u64,
) -> Result<usize, IndexError> {
    let dir = IndexKind::Tables.dir(datadir);
    let mut look = || tables::inspect::sample(disk, &dir, &params.genesis_hash, count, random);
    // A node may have replaced files between two looks.
    look().or_else(|_| look())
}

/// Begins to build the index again in its scratch directory; `None` if it has no blocks.
pub fn rebuild(
    disk: &Arc<dyn Disk>,
    datadir: &Path,
    kind: IndexKind,
    params: &Params,
) -> Result<Option<Rebuild>, IndexError> {
    let (dir, scratch) = (kind.dir(datadir), kind.scratch_dir(datadir));
    if kind == IndexKind::Tables {
        let rebuild = tables::inspect::rebuild(disk, &dir, &scratch, params.genesis_hash)?;
        return Ok(rebuild.map(|(index, until)| Rebuild::new(index, until)));
    }
    let report = inspect(disk.as_ref(), datadir, kind, params)?;
    let Some(until) = report.and_then(|report| report.tip) else { return Ok(None) };
    let disk = Arc::clone(disk);
    Ok(Some(match kind {
        IndexKind::CoinStats => Rebuild::new(CoinStatsIndex::open(disk, &scratch, params)?.0, until),
        IndexKind::Tables | IndexKind::Filters => {
            Rebuild::new(FilterIndex::open(disk, &scratch, params.genesis_hash)?.0, until)
        }
    }))
}

/// Compares the index with the finished rebuild in its scratch directory.
pub fn compare(
    disk: &dyn Disk,
    datadir: &Path,
    kind: IndexKind,
    params: &Params,
    told: Advance<'_>,
) -> Result<Comparison, IndexError> {
    let (dir, scratch) = (kind.dir(datadir), kind.scratch_dir(datadir));
    match kind {
        IndexKind::Tables => tables::inspect::compare(disk, &dir, &scratch, &params.genesis_hash, told),
        IndexKind::Filters => filters::inspect::compare(disk, &dir, &scratch, told),
        IndexKind::CoinStats => coinstats::inspect::compare(disk, &dir, &scratch, params, told),
    }
}

/// Removes the files of an index. Returns their size. If it is interrupted, the index begins anew: the file without
/// which the others mean nothing is removed first.
pub fn remove(disk: &dyn Disk, datadir: &Path, kind: IndexKind) -> Result<u64, IndexError> {
    remove_files(disk, &kind.dir(datadir), kind.info())
}

/// Removes the files of all rebuilds. Returns their size.
pub fn remove_scratch(disk: &dyn Disk, datadir: &Path) -> Result<u64, IndexError> {
    INDEXES.iter().map(|info| remove_files(disk, &info.kind.scratch_dir(datadir), info)).sum()
}

fn remove_files(disk: &dyn Disk, dir: &Path, info: &Info) -> Result<u64, IndexError> {
    let own = OwnDir::new(dir, info.files);
    let Some(mut found) = files::list(disk, dir, info.files)? else { return Ok(0) };
    found.sort_by_key(|(_, path)| !path.ends_with(info.tip_file));
    let mut bytes = 0;
    for (_, path) in &found {
        bytes += files::size_of(disk, path)?.unwrap_or(0);
        own.remove(disk, path)?;
        if path.ends_with(info.tip_file) {
            disk.sync_dir(dir)?;
        }
    }
    if !found.is_empty() {
        disk.sync_dir(dir)?;
    }
    Ok(bytes)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
