//! `lydian index`: `status` prints what the indexes of the data directory have on disk, `drop` removes one, `verify`
//! compares them with a rebuild (`work::verify_indexes`). With the address of a store: `load` writes the index there,
//! `verify` compares both (`work::shared_tasks`), and `status` prints what the store has (`shared_index`).
//!
//! Input: settings, the words after the command. Output: text or JSON, and an exit code. `status` reads files only, so
//! that it works beside a running node, whose status file has the progress of its indexes;
//! `drop` needs the lock of the data directory.

use crate::clock::now;
use crate::daemon::complain;
use crate::datadir::DataDir;
use crate::display::megabytes;
use crate::exit;
use crate::info::{check_directory, is_running};
use crate::screen::{Screen, Tone, commas, count};
use crate::settings::Settings;
use crate::shared_index;
use crate::status::{self, Status as NodeStatus};
use crate::work::SharedTask;
use lydian_disk::Disk;
use lydian_index::{
    ADDRESSINDEX_NAME, COINSTATS_NAME, FILTERS_NAME, IndexError, IndexKind, Report, SCRATCH_DIR, TXINDEX_NAME,
    TXOSPENDERINDEX_NAME, inspect, remove,
};
use lydian_index_cassandra::{Address, SCHEME};
use serde::Serialize;
use std::fs;
use std::path::Path;

/// The name of the command.
pub(crate) const COMMAND: &str = "index";

/// What remains to be done.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Exit(u8),
    /// Compares these indexes with a rebuild.
    Verify(Vec<IndexKind>),
    /// Writes the index to a store, or compares both.
    Store(SharedTask, Address),
}

/// What the words ask for.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    Status,
    Verify(Option<IndexKind>),
    Drop(IndexKind),
    StatusOf(Address),
    Store(SharedTask, Address),
}

fn wanted(words: &[String]) -> Result<Wanted, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["status"] => Ok(Wanted::Status),
        ["verify"] => Ok(Wanted::Verify(None)),
        ["status", text] if text.starts_with(SCHEME) => address(text).map(Wanted::StatusOf),
        ["verify", text] if text.starts_with(SCHEME) => {
            address(text).map(|address| Wanted::Store(SharedTask::Verify, address))
        }
        ["load", text] => address(text).map(|address| Wanted::Store(SharedTask::Load, address)),
        ["load"] => Err(format!("lydian index load needs the address of a store: {SCHEME}HOST[:PORT],HOST/KEYSPACE")),
        ["verify", name] => named(name).map(|kind| Wanted::Verify(Some(kind))),
        ["drop", name] => named(name).map(Wanted::Drop),
        ["drop"] => Err(format!("lydian index drop needs the name of an index: {}", names())),
        ["status", word] => Err(format!("lydian index status takes the address of a store, not '{word}'")),
        [word, ..] => Err(format!(
            "lydian index has no command '{word}': it has status, verify [NAME], drop NAME and load ADDRESS"
        )),
        [] => Err("lydian index needs status, verify [NAME], drop NAME or load ADDRESS".to_owned()),
    }
}

fn address(text: &str) -> Result<Address, String> {
    text.parse().map_err(|error| format!("'{text}': {error}"))
}

fn named(name: &str) -> Result<IndexKind, String> {
    IndexKind::of_name(name).ok_or_else(|| format!("there is no index '{name}': the indexes are {}", names()))
}

/// The names of all indexes, with the options that use them.
fn names() -> String {
    let each = IndexKind::ALL.map(|kind| format!("{} ({})", kind.name(), kind.options()));
    each.join(", ")
}

pub(crate) fn run(settings: &Settings, disk: &dyn Disk, words: &[String]) -> Next {
    let wanted = match wanted(words) {
        Ok(wanted) => wanted,
        Err(sentence) => {
            complain(&sentence);
            return Next::Exit(exit::SETTINGS);
        }
    };
    if let Wanted::StatusOf(address) = &wanted {
        return Next::Exit(shared_index::status(settings, disk, address));
    }
    // Loading locks the directory, and makes one that is missing: the keyspace is created before there is an index.
    let is_made = matches!(wanted, Wanted::Store(SharedTask::Load, _));
    if !is_made && let Err(code) = check_directory(settings, disk) {
        return Next::Exit(code);
    }
    match wanted {
        Wanted::Status => Next::Exit(status(settings, disk)),
        Wanted::Drop(kind) => Next::Exit(drop_index(settings, disk, kind)),
        Wanted::Verify(Some(kind)) => match has_files(settings, disk, kind) {
            Ok(()) => Next::Verify(vec![kind]),
            Err(code) => Next::Exit(code),
        },
        Wanted::Verify(None) => Next::Verify(IndexKind::ALL.into()),
        Wanted::Store(task, address) => Next::Store(task, address),
        Wanted::StatusOf(_) => unreachable!("it needs no data directory"),
    }
}

/// Prints that there is no such index in the data directory, if it has no file.
fn has_files(settings: &Settings, disk: &dyn Disk, kind: IndexKind) -> Result<(), u8> {
    match inspect(disk, &settings.datadir, kind, &settings.params) {
        Ok(None) => {
            complain(&format!("{} has no index {}", settings.datadir.display(), kind.name()));
            Err(exit::DIRECTORY)
        }
        // An index that cannot be read has files.
        Ok(Some(_)) | Err(_) => Ok(()),
    }
}

/// The document of `lydian index status`.
#[derive(Debug, Serialize)]
struct Status {
    datadir: String,
    is_running: bool,
    /// The age of what the node wrote about its indexes, in seconds.
    node_age_s: Option<u32>,
    indexes: Vec<IndexStatus>,
}

#[derive(Debug, Serialize)]
struct IndexStatus {
    name: &'static str,
    options: &'static str,
    directory: String,
    /// Why the files cannot be read.
    error: Option<String>,
    /// What the running node has, which is written to the files at its checkpoints.
    node: Option<InNode>,
    profile: Option<&'static str>,
    height: Option<u32>,
    hash: Option<String>,
    sealed_blocks: Option<u32>,
    sealed_transactions: Option<u64>,
    transactions: Option<u64>,
    bytes: u64,
    bytes_per_transaction: Option<f64>,
    bytes_per_block: Option<f64>,
    files: Vec<Files>,
}

/// An index in the running node.
#[derive(Debug, Serialize)]
struct InNode {
    height: Option<u32>,
    is_synced: bool,
    /// Why it is stopped.
    error: Option<String>,
    /// The same as a sentence.
    #[serde(skip)]
    state: String,
}

impl InNode {
    /// `None` if the node does not use the index.
    fn of(status: &NodeStatus, kind: IndexKind) -> Option<InNode> {
        let names: &[&str] = match kind {
            IndexKind::Tables => &[TXINDEX_NAME, TXOSPENDERINDEX_NAME, ADDRESSINDEX_NAME],
            IndexKind::Filters => &[FILTERS_NAME],
            IndexKind::CoinStats => &[COINSTATS_NAME],
        };
        let found: &status::IndexStatus = status.indexes.iter().find(|index| names.contains(&index.name.as_str()))?;
        let (height, is_synced, error) = (found.height, found.is_synced, found.error.clone());
        Some(InNode { height, is_synced, error, state: found.state() })
    }
}

/// The files of a kind.
#[derive(Debug, Serialize)]
struct Files {
    kind: &'static str,
    count: u32,
    bytes: u64,
}

impl IndexStatus {
    fn new(datadir: &Path, kind: IndexKind, found: Result<Report, IndexError>, node: Option<InNode>) -> IndexStatus {
        let (report, error) = match found {
            Ok(report) => (report, None),
            Err(error) => (Report::default(), Some(error.to_string())),
        };
        let bytes = report.bytes();
        let height = report.tip.map(|tip| tip.height.0);
        let blocks = height.map(|height| u64::from(height) + 1);
        let files =
            |sizes: &lydian_index::FileSizes| Files { kind: sizes.kind, count: sizes.files, bytes: sizes.bytes };
        IndexStatus {
            name: kind.name(),
            options: kind.options(),
            directory: kind.dir(datadir).display().to_string(),
            error,
            node,
            profile: report.profile,
            height,
            hash: report.tip.map(|tip| tip.hash.to_string()),
            sealed_blocks: report.sealed,
            sealed_transactions: report.sealed_transactions,
            transactions: report.transactions,
            bytes,
            bytes_per_transaction: report.transactions.and_then(|count| per(bytes, count)),
            bytes_per_block: blocks.and_then(|count| per(bytes, count)),
            files: report.sizes.iter().map(files).collect(),
        }
    }
}

/// The quotient, with two digits behind the point.
fn per(bytes: u64, count: u64) -> Option<f64> {
    #[allow(clippy::cast_precision_loss, reason = "shown with two digits")]
    let quotient = bytes as f64 / count as f64;
    (count > 0).then(|| (quotient * 100.0).round() / 100.0)
}

fn status(settings: &Settings, disk: &dyn Disk) -> u8 {
    let datadir = &settings.datadir;
    let is_running = is_running(disk, datadir);
    // A node that is starting may not have written it yet.
    let node = is_running.then(|| NodeStatus::read(disk, datadir).ok()).flatten();
    let look = |kind: IndexKind| {
        let found = inspect(disk, datadir, kind, &settings.params).transpose()?;
        Some(IndexStatus::new(datadir, kind, found, node.as_ref().and_then(|node| InNode::of(node, kind))))
    };
    let status = Status {
        datadir: datadir.display().to_string(),
        is_running,
        node_age_s: node.as_ref().map(|node| now().saturating_sub(node.updated)),
        indexes: IndexKind::ALL.into_iter().filter_map(look).collect(),
    };
    let screen = Screen::new();
    match settings.json {
        true => print_json(&screen, &status),
        false => print(&screen, &status),
    }
    if status.indexes.iter().any(|index| index.error.is_some()) { exit::DISK } else { exit::DONE }
}

pub(crate) fn print_json(screen: &Screen, document: &impl Serialize) {
    match serde_json::to_string_pretty(document) {
        Ok(json) => screen.line(&json),
        Err(error) => unreachable!("structures of numbers and texts are JSON: {error}"),
    }
}

fn print(screen: &Screen, status: &Status) {
    let row = |label: &str, text: &str| {
        screen.line(&format!("{}  {text}", screen.tone(Tone::Strong, &format!("{label:12}"))));
    };
    let state = match (status.is_running, status.node_age_s) {
        (true, Some(age)) => format!("a node runs; its indexes as of {} ago", count(age.into(), "second")),
        (true, None) => "a node runs; `lydian-cli getindexinfo` returns the progress of its indexes".to_owned(),
        (false, _) => "no node runs".to_owned(),
    };
    row("directory", &format!("{} ({state})", status.datadir));
    if status.indexes.is_empty() {
        row("indexes", "none");
    }
    for index in &status.indexes {
        let profile = index.profile.map(|profile| format!(", profile {profile}")).unwrap_or_default();
        row(index.name, &format!("{}{profile}", index.options));
        if let Some(node) = &index.node {
            let tone = if node.error.is_some() { Tone::Bad } else { Tone::Strong };
            row("", &screen.tone(tone, &node.state));
        }
        if let Some(error) = &index.error {
            row("", &screen.tone(Tone::Bad, error));
            continue;
        }
        row("", &height_of(index));
        for files in &index.files {
            let number = count(u64::from(files.count), "file");
            row("", &format!("{:12} {:>12} MB in {number}", files.kind, megabytes(files.bytes)));
        }
        let each = match (index.bytes_per_transaction, index.bytes_per_block) {
            (Some(each), _) => format!(", {each:.2} bytes per transaction"),
            (None, Some(each)) => format!(", {each:.0} bytes per block"),
            (None, None) => String::new(),
        };
        row("", &format!("{:12} {:>12} MB{each}", "sum", megabytes(index.bytes)));
    }
}

/// How far an index is.
fn height_of(index: &IndexStatus) -> String {
    let mut text = match index.height {
        Some(height) => format!("height {} at the last checkpoint", commas(height.into())),
        None => "no block".to_owned(),
    };
    if let Some(blocks) = index.sealed_blocks {
        text += &format!(", {} sealed", count(u64::from(blocks), "block"));
    }
    if let Some(transactions) = index.transactions {
        text += &format!(", {}", count(transactions, "transaction"));
    }
    text
}

/// The document of `lydian index drop`.
#[derive(Debug, Serialize)]
struct Dropped {
    name: &'static str,
    freed_bytes: u64,
}

fn drop_index(settings: &Settings, disk: &dyn Disk, kind: IndexKind) -> u8 {
    // Held until the files are removed.
    let lock = match DataDir::open(settings, disk) {
        Ok(lock) => lock,
        Err(error) => {
            complain(&error.to_string());
            return exit::DIRECTORY;
        }
    };
    if let Err(code) = has_files(settings, disk, kind) {
        return code;
    }
    let removed = remove(disk, &settings.datadir, kind);
    drop(lock);
    match removed {
        Ok(freed_bytes) => {
            // It may have files of the user.
            let _ = fs::remove_dir(kind.dir(&settings.datadir));
            let screen = Screen::new();
            match settings.json {
                true => print_json(&screen, &Dropped { name: kind.name(), freed_bytes }),
                false => {
                    let (name, size) = (kind.name(), megabytes(freed_bytes));
                    screen.line(&format!(
                        "{name} removed: {size} MB freed. A start with {} builds it anew.",
                        kind.options()
                    ));
                }
            }
            exit::DONE
        }
        Err(error) => {
            complain(&error.to_string());
            exit::DISK
        }
    }
}

/// Removes the files of a rebuild, and its directories if they are empty then.
pub(crate) fn remove_scratch(disk: &dyn Disk, datadir: &Path) -> Result<(), IndexError> {
    lydian_index::remove_scratch(disk, datadir)?;
    let dirs = IndexKind::ALL.map(|kind| kind.scratch_dir(datadir));
    for dir in dirs.iter().chain([&datadir.join(SCRATCH_DIR)]) {
        // There may be none, or files of others in it.
        let _ = fs::remove_dir(dir);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_a_command_and_an_index() {
        let of = |words: &[&str]| wanted(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["status"]), Ok(Wanted::Status));
        assert_eq!(of(&["verify"]), Ok(Wanted::Verify(None)));
        assert_eq!(of(&["verify", "coinstats"]), Ok(Wanted::Verify(Some(IndexKind::CoinStats))));
        let store: Address = "cassandra://a/b".parse().unwrap();
        assert_eq!(of(&["status", "cassandra://a/b"]), Ok(Wanted::StatusOf(store.clone())));
        assert_eq!(of(&["load", "cassandra://a/b"]), Ok(Wanted::Store(SharedTask::Load, store.clone())));
        assert_eq!(of(&["verify", "cassandra://a/b"]), Ok(Wanted::Store(SharedTask::Verify, store)));
        assert_eq!(of(&["drop", "tables"]), Ok(Wanted::Drop(IndexKind::Tables)));
        for (words, expected) in [
            (
                &["drop", "txindex"][..],
                "there is no index 'txindex': the indexes are tables (-txindex, -txospenderindex",
            ),
            (&["verify", "x"], "there is no index 'x': the indexes are tables"),
            (&["drop"], "lydian index drop needs the name of an index: tables"),
            (&["status", "tables"], "lydian index status takes the address of a store, not 'tables'"),
            (&["list"], "lydian index has no command 'list': it has status"),
            (&[], "lydian index needs status, verify [NAME], drop NAME or load ADDRESS"),
            (&["load"], "lydian index load needs the address of a store: cassandra://"),
            (&["load", "tables"], "'tables': the address of a store must start with cassandra://"),
            (
                &["verify", "cassandra://a"],
                "'cassandra://a': the address of a store must end with the name of a keyspace",
            ),
        ] {
            let error = of(words).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn a_quotient_has_two_digits() {
        assert_eq!((per(1_000, 3), per(0, 5), per(5, 0)), (Some(333.33), Some(0.0), None));
    }
}
