//! `lydian index status cassandra://...`: what a store has, and how far it is behind the index of the data directory.
//!
//! Input: settings and an address. Output: text or JSON, and an exit code. Reads the commit row and files only, so that
//! it works beside a running node, and without a data directory.

use super::{code_of, open_store};
use crate::clock::now;
use crate::daemon::complain;
use crate::exit;
use crate::index::print_json;
use crate::info::is_running;
use crate::screen::{Screen, Tone, commas, count};
use crate::settings::Settings;
use crate::status::Status as NodeStatus;
use lydian_disk::Disk;
use lydian_index::{ADDRESSINDEX_NAME, IndexKind, TXINDEX_NAME, TXOSPENDERINDEX_NAME, Table, inspect};
use lydian_index_cassandra::Address;
use lydian_shared_index::{Commit, CommitRead, Retired, StoreError, WriterError};
use serde::Serialize;

/// The document of the command.
#[derive(Debug, Serialize)]
struct Document {
    store: String,
    replication: u32,
    /// The version of the commit row; `None` if no node has written yet.
    sequence: Option<u64>,
    genesis: Option<String>,
    height: Option<u32>,
    hash: Option<String>,
    generations: Vec<Generation>,
    /// Generations that are being written, which no reader uses.
    writing: usize,
    /// Blocks behind the generations.
    deltas: usize,
    /// What no row names any more; it is removed an hour after.
    retired: usize,
    oldest_retired_s: Option<u64>,
    /// The height of the index in the data directory, and the blocks that the store lacks.
    own_height: Option<u32>,
    lag_blocks: Option<u32>,
}

/// A segment of the index.
#[derive(Debug, Serialize)]
struct Generation {
    number: u64,
    first_height: u32,
    last_height: u32,
    tables: Vec<TableSize>,
}

#[derive(Debug, Serialize)]
struct TableSize {
    table: String,
    rows: u64,
    pages: u32,
}

pub(crate) fn status(settings: &Settings, disk: &dyn Disk, address: &Address) -> u8 {
    match look(settings, disk, address) {
        Ok(document) => {
            let screen = Screen::new();
            match settings.json {
                true => print_json(&screen, &document),
                false => print(&screen, &document),
            }
            exit::DONE
        }
        Err(error) => {
            complain(&error.to_string());
            code_of(&WriterError::Store(error))
        }
    }
}

fn look(settings: &Settings, disk: &dyn Disk, address: &Address) -> Result<Document, StoreError> {
    let store = open_store(address)?;
    let replication = store.keyspace()?.replication;
    let row = store.commit(CommitRead::Quorum)?.map(|stored| Commit::read(&stored)).transpose()?;
    Ok(Document::new(address.to_string(), replication, row.as_ref(), own_height(settings, disk)))
}

/// The height of the index in the data directory: of the running node, or at its last checkpoint.
fn own_height(settings: &Settings, disk: &dyn Disk) -> Option<u32> {
    let names = [TXINDEX_NAME, TXOSPENDERINDEX_NAME, ADDRESSINDEX_NAME];
    let node = is_running(disk, &settings.datadir).then(|| NodeStatus::read(disk, &settings.datadir).ok()).flatten();
    let running = node.and_then(|node| node.indexes.into_iter().find(|index| names.contains(&index.name.as_str())));
    if let Some(running) = running {
        return running.height;
    }
    let report = inspect(disk, &settings.datadir, IndexKind::Tables, &settings.params).ok()??;
    report.tip.map(|tip| tip.height.0)
}

impl Document {
    fn new(store: String, replication: u32, row: Option<&Commit>, own_height: Option<u32>) -> Document {
        let tip = row.and_then(Commit::tip);
        let next = tip.map_or(0, |(height, _)| height.saturating_add(1));
        let retired: &[Retired] = row.map(|row| row.retired.as_slice()).unwrap_or_default();
        let since = retired.iter().map(|retired| retired.since).min();
        Document {
            store,
            replication,
            sequence: row.map(|row| row.sequence),
            genesis: row.map(|row| row.identity.genesis.to_string()),
            height: tip.map(|(height, _)| height),
            hash: tip.map(|(_, hash)| hash.to_string()),
            generations: row.map(generations).unwrap_or_default(),
            writing: row.map_or(0, |row| row.writing.len()),
            deltas: row.map_or(0, |row| row.content.hashes.len()),
            retired: retired.len(),
            oldest_retired_s: since.map(|since| u64::from(now()).saturating_sub(since)),
            own_height,
            lag_blocks: own_height.map(|height| height.saturating_add(1).saturating_sub(next)),
        }
    }

    fn pages(&self) -> u64 {
        self.generations.iter().flat_map(|generation| &generation.tables).map(|table| u64::from(table.pages)).sum()
    }
}

fn generations(row: &Commit) -> Vec<Generation> {
    let size = |(table, facts): &(Table, lydian_index::Facts)| TableSize {
        table: format!("{table:?}").to_lowercase(),
        rows: facts.rows,
        pages: facts.pages,
    };
    let segments = row.content.segments.iter().map(|segment| Generation {
        number: segment.generation,
        first_height: segment.facts.heights.start,
        last_height: segment.facts.heights.end.saturating_sub(1),
        tables: segment.facts.tables.iter().map(size).collect(),
    });
    segments.collect()
}

fn print(screen: &Screen, document: &Document) {
    let row = |label: &str, text: &str| {
        screen.line(&format!("{}  {text}", screen.tone(Tone::Strong, &format!("{label:12}"))));
    };
    row("store", &format!("{}, {} copies of each value", document.store, document.replication));
    let Some(sequence) = document.sequence else {
        row("index", "none: no node has written yet");
        return;
    };
    let tip = match (document.height, &document.hash) {
        (Some(height), Some(hash)) => format!("height {}, block {hash}", commas(height.into())),
        _ => "no block".to_owned(),
    };
    row("index", &format!("{tip}, commit row {sequence}"));
    let (generations, pages) = (document.generations.len() as u64, document.pages());
    row("pages", &format!("{} in {}", commas(pages), count(generations, "generation")));
    row("deltas", &count(document.deltas as u64, "block"));
    if document.writing > 0 {
        row("writing", &count(document.writing as u64, "generation"));
    }
    if document.retired > 0 {
        row("to remove", &format!("{} an hour after no commit row names them", document.retired));
    }
    match (document.own_height, document.lag_blocks) {
        (Some(_), Some(0)) => row("lag", "none: it has every block of the index of the data directory"),
        (Some(height), Some(lag)) => {
            let text = format!("{} behind height {}", count(lag.into(), "block"), commas(height.into()));
            row("lag", &screen.tone(Tone::Warn, &text));
        }
        _ => row("lag", "unknown: the data directory has no index to compare with"),
    }
}
