//! Free space on the disk, checked when the node starts: Core's step 11 (`AppInitMain`). Input: a session, the height
//! of the chain, and the indexes that begin with it. Output: nothing, or a failure; a line with the size that new
//! indexes will have; a warning if these, or the blocks of the chain, will not fit.

use super::failure::Failure;
use crate::clock::mockable_now;
use crate::display::gigabytes;
use crate::log::expected_transactions;
use crate::run::Session;
use crate::settings::{AddressIndex, Prune, Settings};
use lydian_consensus::Chain;
use lydian_disk::Disk;
use lydian_index::Profile;
use lydian_primitives::Height;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// Core's `min_disk_space`.
pub(crate) const FREE_BYTES_MIN: u64 = 50 << 20;

/// Core's `CheckDiskSpace`. A file system that does not report its free space passes.
pub(super) fn has_space(disk: &dyn Disk, path: &Path, bytes: u64) -> bool {
    disk.free_bytes(path).map_or(true, |free| free >= FREE_BYTES_MIN.saturating_add(bytes))
}

/// Core's `m_assumed_blockchain_size`: GB of block files for the whole chain.
fn chain_gb(settings: &Settings) -> u64 {
    match settings.params.chain {
        Chain::Main => 856,
        Chain::Test => 245,
        Chain::Testnet4 => 31,
        Chain::Signet if settings.is_signet_of_others => 0,
        Chain::Signet => 24,
        Chain::Regtest => 0,
    }
}

/// Bytes of block files that the whole chain needs, or that remain with `-prune`.
fn blocks_bytes(settings: &Settings) -> u64 {
    let whole = chain_gb(settings) << 30;
    match settings.prune {
        Prune::Target { bytes } => bytes.min(whole),
        Prune::Never | Prune::OnRequest => whole,
    }
}

/// Disk space that the whole chain needs, as far as it is known today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    blocks: u64,
    indexes: u64,
}

impl Needs {
    pub(crate) fn new(settings: &Settings) -> Needs {
        let chain = settings.params.chain;
        let is_public = chain != Chain::Regtest && !settings.is_signet_of_others;
        let transactions = match is_public {
            true => expected_transactions(chain, i64::try_from(mockable_now()).unwrap_or(i64::MAX)),
            false => 0,
        };
        let tables = match settings.address_index() {
            AddressIndex::Off if settings.txindex || settings.txospenderindex => Some(IndexSize::Transactions),
            AddressIndex::Off => None,
            AddressIndex::Compact => Some(IndexSize::Compact),
            AddressIndex::Full => Some(IndexSize::Full),
        };
        let filters = settings.blockfilterindex.then_some(IndexSize::Filters);
        let statistics = settings.coinstatsindex.then_some(IndexSize::CoinStats);
        let sizes = [tables, filters, statistics].into_iter().flatten();
        let new: Vec<NewIndex> = sizes.map(|size| NewIndex { name: "", size }).collect();
        Needs { blocks: blocks_bytes(settings), indexes: index_bytes(&new, transactions) }
    }

    /// What is missing of it, where these folders have so many bytes.
    pub(crate) fn missing(&self, folders: &BTreeMap<String, u64>) -> u64 {
        let sum = |name: &str| -> u64 {
            let of = folders.iter().filter(|(folder, _)| folder.split('/').next() == Some(name));
            of.map(|(_, bytes)| bytes).sum()
        };
        self.blocks.saturating_sub(sum("blocks")) + self.indexes.saturating_sub(sum("indexes"))
    }
}

/// Checks whether the free space permits a start.
pub(super) fn check(session: &Session<'_>, height: Height) -> Result<(), Failure> {
    let settings = session.settings;
    let disk = session.disk.as_ref();
    for path in [&settings.datadir, &settings.blocks] {
        if !has_space(disk, path, 0) {
            return Err(Failure::Space { path: path.clone() });
        }
    }
    let gb = chain_gb(settings);
    let needed = blocks_bytes(settings);
    let is_first = height.0 <= 1 && !settings.reindex && !settings.reindex_chainstate;
    if is_first && !has_space(disk, &settings.blocks, needed) {
        let warning = format!(
            "Disk space for \"{}\" may not accommodate the block files. Approximately {gb} GB of data will be stored in this directory.",
            settings.blocks.display()
        );
        warn(session, &warning);
    }
    Ok(())
}

fn warn(session: &Session<'_>, warning: &str) {
    session.log.warning(warning);
    // If stderr is closed, the log has it.
    let _ = writeln!(io::stderr().lock(), "Warning: {warning}");
}

/// What an index keeps, as far as its size depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexSize {
    Transactions,
    Compact,
    Full,
    Filters,
    CoinStats,
}

/// An index that begins at the genesis block.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewIndex {
    pub(super) name: &'static str,
    pub(super) size: IndexSize,
}

impl IndexSize {
    pub(super) fn of(profile: Profile) -> IndexSize {
        match profile {
            Profile { has_scripts: false, .. } => IndexSize::Transactions,
            Profile { has_txids: false, .. } => IndexSize::Compact,
            Profile { .. } => IndexSize::Full,
        }
    }

    /// Hundredths of a byte for each transaction of mainnet: the upper bounds that `lydian-lab index-size` measured
    /// (docs/index.md), by 1,283 million transactions.
    fn centibytes(self) -> u64 {
        match self {
            IndexSize::Transactions => 740,
            IndexSize::Compact => 3_874,
            IndexSize::Full => 7_085,
            IndexSize::Filters => 1_122,
            IndexSize::CoinStats => 18,
        }
    }
}

/// The size of indexes for a whole chain, as far as it is known today.
fn index_bytes(new: &[NewIndex], transactions: u64) -> u64 {
    new.iter().map(|index| transactions.saturating_mul(index.size.centibytes()) / 100).sum()
}

/// Logs the size that new indexes will have on a public chain, and warns if the disk has less.
pub(super) fn check_indexes(session: &Session<'_>, new: &[NewIndex]) {
    let settings = session.settings;
    let transactions = match settings.params.chain {
        Chain::Regtest => return,
        Chain::Signet if settings.is_signet_of_others => return,
        chain => expected_transactions(chain, i64::try_from(mockable_now()).unwrap_or(i64::MAX)),
    };
    let free = session.disk.free_bytes(&settings.datadir).ok();
    let Some(words) = IndexWords::new(new, transactions, free, &settings.datadir) else { return };
    session.log.info(words.line);
    words.warning.iter().for_each(|warning| warn(session, warning));
}

/// What is said about the size of new indexes.
#[derive(Debug, PartialEq, Eq)]
struct IndexWords {
    line: String,
    warning: Option<String>,
}

impl IndexWords {
    fn new(new: &[NewIndex], transactions: u64, free: Option<u64>, datadir: &Path) -> Option<IndexWords> {
        let needed = index_bytes(new, transactions);
        let names: Vec<&str> = new.iter().map(|index| index.name).collect();
        if names.is_empty() {
            return None;
        }
        let (names, needed_gb, dir) = (names.join(", "), gigabytes(needed), datadir.join("indexes"));
        let has = free.map(|free| format!("; {} GB are free", gigabytes(free))).unwrap_or_default();
        let line =
            format!("Building {names}: the whole chain needs about {needed_gb} GB in \"{}\"{has}", dir.display());
        let is_short = free.is_some_and(|free| free < FREE_BYTES_MIN.saturating_add(needed));
        let warning = is_short.then(|| {
            format!(
                "Disk space for \"{}\" may not accommodate the indexes ({names}). Approximately {needed_gb} GB of data will be stored in this directory.",
                dir.display()
            )
        });
        Some(IndexWords { line, warning })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [IndexSize; 5] =
        [IndexSize::Transactions, IndexSize::Compact, IndexSize::Full, IndexSize::Filters, IndexSize::CoinStats];

    #[test]
    fn the_size_of_new_indexes_is_compared_with_the_disk() {
        let new = [
            NewIndex { name: "addressindex", size: IndexSize::Full },
            NewIndex { name: "x", size: IndexSize::CoinStats },
        ];
        let words = |free| IndexWords::new(&new, 1_000_000_000, free, Path::new("/d")).unwrap();
        let needed = index_bytes(&new, 1_000_000_000);
        assert_eq!(needed, 10_000_000 * (IndexSize::Full.centibytes() + IndexSize::CoinStats.centibytes()));
        let enough = FREE_BYTES_MIN + needed;
        let gb = gigabytes(needed);
        let line = format!("Building addressindex, x: the whole chain needs about {gb} GB in \"/d/indexes\"");
        assert_eq!(words(None), IndexWords { line: line.clone(), warning: None }, "a file system that does not say");
        let found = words(Some(enough));
        assert_eq!(found, IndexWords { line: format!("{line}; {} GB are free", gigabytes(enough)), warning: None });
        let warning = words(Some(enough - 1)).warning.unwrap();
        assert!(
            warning.starts_with("Disk space for \"/d/indexes\" may not accommodate the indexes (addressindex, x).")
        );
        assert!(warning.contains(&format!("Approximately {gb} GB")), "{warning}");
        assert_eq!(IndexWords::new(&[], 1_000_000_000, Some(0), Path::new("/d")), None);
    }

    /// The table of `docs/index.md` for height 928,000 has the same sizes.
    #[test]
    fn sizes_are_those_of_the_documentation() {
        let page = include_str!("../../../../docs/index.md");
        let names = ["-txindex", "compact", "full", "-blockfilterindex", "-coinstatsindex"];
        for (size, name) in ALL.into_iter().zip(names) {
            let row = page.lines().find(|line| line.starts_with(&format!("| {name} |")));
            let cell = row.and_then(|row| row.split('|').nth(2)).unwrap_or_else(|| panic!("no row {name}"));
            let high: f64 = cell.split("to").last().unwrap().trim().parse().unwrap();
            #[allow(clippy::cast_precision_loss, reason = "below 2^53")]
            let ours = index_bytes(&[NewIndex { name, size }], 1_283_000_000) as f64 / 1e9;
            assert!((ours - high).abs() < 0.06, "{name}: {ours} and {high}");
        }
    }

    #[test]
    fn chains_have_the_transactions_that_core_counts() {
        let at = |chain, days: i64| expected_transactions(chain, 1_772_055_173 + days * 86_400);
        assert_eq!((at(Chain::Main, 0), at(Chain::Main, -9)), (1_315_805_869, 1_315_805_869));
        assert_eq!(at(Chain::Main, 1), 1_315_805_869 + 466_655);
    }
}
