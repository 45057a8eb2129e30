//! The stores of a data directory, with the numbers of their formats. Input: the constants of the stores. Output:
//! [`check`], which refuses a data directory of a newer release before anything is written, and the page
//! docs/formats/README.md ([`document`](document::document)).
//!
//! A new format raises the constant in its store and adds a release to [`RELEASES`]; a new store adds an entry to
//! [`STORES`]. Must never change anything. Cost: at most the first MiB of nine files.

pub(crate) mod document;

use crate::blocks::saved::{self, REORGS_FORMAT};
use crate::electrum::bans::{self, ELECTRUM_BANS_FORMAT};
use crate::electrum::files::TLS_DIR;
use crate::limits::STATUS_SIZE_MAX;
use crate::page::PAGE_DIR;
use crate::settings::Settings;
use crate::status::{self, STATUS_FORMAT};
use lydian_dashboard::history::HISTORY_FORMAT;
use lydian_disk::{Disk, DiskError, Format, NewerFormat, NumberPlace};
use lydian_stdx::saturating_usize;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The versions of Lydian whose formats are listed, the oldest first.
pub(crate) const RELEASES: &[&str] = &["0.1.0"];

/// A directory that contains stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Data,
    Blocks,
    BlockIndex,
    Coins,
    /// A directory below the data directory.
    Below(&'static str),
}

impl Place {
    fn path(self, settings: &Settings) -> PathBuf {
        match self {
            Place::Data => settings.datadir.clone(),
            Place::Blocks => settings.blocks.clone(),
            Place::BlockIndex => settings.index(),
            Place::Coins => settings.coins(),
            Place::Below(name) => settings.datadir.join(name),
        }
    }

    /// The directory in the document, with a slash.
    fn shown(self) -> String {
        match self {
            Place::Data => String::new(),
            Place::Blocks => "blocks/".to_owned(),
            Place::BlockIndex => "blocks/index/".to_owned(),
            Place::Coins => "chainstate/".to_owned(),
            Place::Below(name) => format!("{name}/"),
        }
    }
}

/// What a node does with a file of a newer format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Newer {
    /// It does not start.
    Refused,
    /// It starts without the index, whose files stay as they are; with `-indexrequired` it does not start.
    IndexRefused,
    /// What this text says.
    AsInCore(&'static str),
    /// The file has no number.
    NoNumber,
}

/// The number of a format: a constant of its store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// A format of ours, or one whose number is checked in the same way.
    Ours(&'static Format),
    /// A format of Core, which its store checks.
    Cores {
        number: u32,
        oldest: u32,
    },
    None,
}

/// A kind of file that outlives the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    /// The file that has the number.
    pub(crate) file: &'static str,
    /// The page of docs/formats.
    pub(crate) page: &'static str,
    pub(crate) number: Number,
    /// The first release that wrote this number.
    pub(crate) since: &'static str,
    pub(crate) newer: Newer,
    /// What a node does with an older format. `None`: there was none.
    pub(crate) older: Option<&'static str>,
    pub(crate) damaged: &'static str,
}

const INDEX_DAMAGED: &str = "as one of a newer format; the error says which directory to delete; the index is then built anew in the background";
const BEGUN_ANEW: &str = "logged; begun anew";

/// Every store, in the order of the document.
pub(crate) const STORES: &[Store] = &[
    Store {
        name: "owner of a directory",
        place: Place::Blocks,
        file: lydian_chain::OWNER_FILE,
        page: "files.md",
        number: Number::Ours(&lydian_chain::OWNER_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: None,
        damaged: "refused; the error says what to delete",
    },
    Store {
        name: "owner of a directory",
        place: Place::Coins,
        file: lydian_chain::OWNER_FILE,
        page: "files.md",
        number: Number::Ours(&lydian_chain::OWNER_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: None,
        damaged: "refused; the error says what to delete",
    },
    Store {
        name: "blocks",
        place: Place::Blocks,
        file: "blk#.dat",
        page: "blk.md",
        number: Number::None,
        since: "0.1.0",
        newer: Newer::NoNumber,
        older: None,
        damaged: "the block is downloaded or imported again; the error names it",
    },
    Store {
        name: "undo data",
        place: Place::Blocks,
        file: "rev#.dat",
        page: "index.md",
        number: Number::None,
        since: "0.1.0",
        newer: Newer::NoNumber,
        older: None,
        damaged: "refused when it is needed; `-reindex` writes it anew",
    },
    Store {
        name: "block index",
        place: Place::BlockIndex,
        file: "index.log",
        page: "index.md",
        number: Number::Ours(&lydian_chain::INDEX_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: Some("read; its head gets the new number at the first start"),
        damaged: "a torn end is cut off; other damage is refused, and `-reindex` rebuilds the index",
    },
    Store {
        name: "coins",
        place: Place::Coins,
        file: "manifest",
        page: "coins.md",
        number: Number::Ours(&lydian_coins::COINS_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: None,
        damaged: "refused; `-reindex-chainstate` rebuilds them",
    },
    Store {
        name: "status for `lydian info`",
        place: Place::Coins,
        file: status::FILE,
        page: "info-json.md",
        number: Number::Ours(&STATUS_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: None,
        damaged: "replaced by a running node",
    },
    Store {
        name: "transactions, spenders, addresses",
        place: Place::Below(lydian_index::TABLES_DIR),
        file: "commit",
        page: "tables.md",
        number: Number::Ours(&lydian_index::TABLES_FORMAT),
        since: "0.1.0",
        newer: Newer::IndexRefused,
        older: Some("refused: delete the directory, and the index is built anew in the background"),
        damaged: INDEX_DAMAGED,
    },
    Store {
        name: "pages of these tables",
        place: Place::Below(lydian_index::TABLES_DIR),
        file: "*.numbers",
        page: "tables.md",
        number: Number::Ours(&lydian_index::PAGES_FORMAT),
        since: "0.1.0",
        newer: Newer::IndexRefused,
        older: None,
        damaged: INDEX_DAMAGED,
    },
    Store {
        name: "block filters",
        place: Place::Below(lydian_index::FILTERS_DIR),
        file: "filters.tip",
        page: "filters.md",
        number: Number::Ours(&lydian_index::FILTERS_FORMAT),
        since: "0.1.0",
        newer: Newer::IndexRefused,
        older: None,
        damaged: INDEX_DAMAGED,
    },
    Store {
        name: "coin statistics",
        place: Place::Below(lydian_index::COINSTATS_DIR),
        file: "stats.tip",
        page: "coinstats.md",
        number: Number::Ours(&lydian_index::COINSTATS_FORMAT),
        since: "0.1.0",
        newer: Newer::IndexRefused,
        older: None,
        damaged: INDEX_DAMAGED,
    },
    Store {
        name: "mempool",
        place: Place::Data,
        file: lydian_mempool::files::MEMPOOL_FILE,
        page: "mempool.md",
        number: Number::Ours(&lydian_mempool::files::MEMPOOL_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: Some("read; `-persistmempoolv1` writes it"),
        damaged: "logged; what is before the damage is loaded",
    },
    Store {
        name: "fee estimates",
        place: Place::Data,
        file: lydian_fees::FEE_ESTIMATES_FILE,
        page: "fees.md",
        number: Number::Cores {
            number: lydian_fees::FILE_VERSION.unsigned_abs(),
            oldest: lydian_fees::FILE_VERSION.unsigned_abs(),
        },
        since: "0.1.0",
        newer: Newer::AsInCore("logged and kept as `fee_estimates.dat.bak`; begun anew"),
        older: Some("as a newer one"),
        damaged: "as a newer one",
    },
    Store {
        name: "addresses of peers",
        place: Place::Data,
        file: lydian_p2p::files::PEERS_FILE,
        page: "files.md",
        number: Number::Cores { number: lydian_p2p::addrman::PEERS_FORMAT as u32, oldest: 0 },
        since: "0.1.0",
        newer: Newer::AsInCore("logged and kept as `peers.dat.bak`; begun anew"),
        older: Some("read"),
        damaged: "refused; the error says to move the file away",
    },
    Store {
        name: "anchors",
        place: Place::Data,
        file: lydian_p2p::files::ANCHORS_FILE,
        page: "files.md",
        number: Number::None,
        since: "0.1.0",
        newer: Newer::NoNumber,
        older: None,
        damaged: "ignored",
    },
    Store {
        name: "bans of peers",
        place: Place::Data,
        file: lydian_p2p::files::BANLIST_FILE,
        page: "files.md",
        number: Number::Cores {
            number: lydian_p2p::bans::ENTRY_VERSION.unsigned_abs(),
            oldest: lydian_p2p::bans::ENTRY_VERSION.unsigned_abs(),
        },
        since: "0.1.0",
        newer: Newer::AsInCore("each entry has a number; one with another number is logged and left out"),
        older: None,
        damaged: BEGUN_ANEW,
    },
    Store {
        name: "bans of the Electrum server",
        place: Place::Below(TLS_DIR),
        file: bans::FILE,
        page: "electrum-bans.md",
        number: Number::Ours(&ELECTRUM_BANS_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: None,
        damaged: BEGUN_ANEW,
    },
    Store {
        name: "history of the page",
        place: Place::Data,
        file: lydian_dashboard::history::FILE,
        page: "history.md",
        number: Number::Ours(&HISTORY_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: None,
        damaged: "damaged intervals are removed; without a whole head it is begun anew",
    },
    Store {
        name: "sessions of the page",
        place: Place::Below(PAGE_DIR),
        file: lydian_dashboard::SESSIONS_FILE,
        page: "page.md",
        number: Number::Ours(&lydian_dashboard::SESSIONS_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: None,
        damaged: BEGUN_ANEW,
    },
    Store {
        name: "reorganisations of the page",
        place: Place::Below(PAGE_DIR),
        file: saved::FILE,
        page: "page.md",
        number: Number::Ours(&REORGS_FORMAT),
        since: "0.1.0",
        newer: Newer::Refused,
        older: None,
        damaged: BEGUN_ANEW,
    },
    Store {
        name: "settings",
        place: Place::Data,
        file: "settings.json",
        page: "files.md",
        number: Number::None,
        since: "0.1.0",
        newer: Newer::NoNumber,
        older: None,
        damaged: "refused; the error names the file",
    },
];

/// Why the formats of a directory are not accepted.
#[derive(Debug)]
pub(crate) enum FormatError {
    Newer(NewerFormat),
    Disk(DiskError),
}

impl From<DiskError> for FormatError {
    fn from(error: DiskError) -> FormatError {
        FormatError::Disk(error)
    }
}

/// Refuses a file of a newer format, without changing anything. Files that are missing, or name no number, are left to
/// their stores.
pub(crate) fn check(settings: &Settings, disk: &dyn Disk) -> Result<(), FormatError> {
    for Store { place, file, number, newer, .. } in STORES {
        let (Number::Ours(format), Newer::Refused) = (number, newer) else { continue };
        let path = place.path(settings).join(file);
        let found = number_in(disk, &path, format)?;
        if let Some(error) = found.and_then(|found| format.newer(path, found)) {
            return Err(FormatError::Newer(error));
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Numbered {
    format: u64,
}

/// The number that a file names. `None` if it is missing, cannot be opened, or names none.
fn number_in(disk: &dyn Disk, path: &Path, format: &Format) -> Result<Option<u64>, DiskError> {
    // Its store reports a file that cannot be opened in its own words.
    let Ok(file) = disk.open(path) else { return Ok(None) };
    // No JSON file that is read is larger.
    let mut bytes = vec![0; saturating_usize(file.size().min(STATUS_SIZE_MAX))];
    file.read_at(0, &mut bytes)?;
    Ok(match format.place {
        NumberPlace::Json => serde_json::from_slice(&bytes).ok().map(|Numbered { format }| format),
        _ => format.number_in(&bytes),
    })
}
