//! `lydian index status cassandra://...`: what a store has, and how far it is behind the index of the data directory.
//!
//! Input: settings and an address. Output: text or JSON, and an exit code. Reads the commit row and files, so that it
//! works beside a running node, and without a data directory; blocks of the store's generations only if the data
//! directory is that far behind, or for the size of blocks in the store, which the head of the last one has. Two chains
//! are compared by the hashes of their blocks.

use super::{code_of, open_store};
use crate::clock::now;
use crate::daemon::complain;
use crate::display::megabytes;
use crate::exit;
use crate::index::print_json;
use crate::info::is_running;
use crate::screen::{Screen, Tone, commas, count};
use crate::settings::Settings;
use crate::status::Status as NodeStatus;
use lydian_disk::Disk;
use lydian_index::{ADDRESSINDEX_NAME, IndexKind, TXINDEX_NAME, TXOSPENDERINDEX_NAME, Table, hash_at, inspect};
use lydian_index_cassandra::Address;
use lydian_primitives::BlockHash;
use lydian_shared_index::{Commit, CommitRead, Retired, Store, WriterError, block_hash, stored_bytes};
use serde::Serialize;
use std::sync::Arc;

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
    /// Blocks whose bytes are in the store, their size, and the height of the first one.
    blocks: u32,
    block_bytes: u64,
    first_block: Option<u32>,
    /// What no row names any more; it is removed an hour after.
    retired: usize,
    oldest_retired_s: Option<u64>,
    /// The height of the index in the data directory, and the blocks that the store lacks.
    own_height: Option<u32>,
    /// Whether the two have different blocks at a height; `None` if that is not known.
    is_other_branch: Option<bool>,
    lag_blocks: Option<u32>,
}

/// The index in the data directory.
#[derive(Debug, Default)]
struct Own {
    height: Option<u32>,
    /// Its last block, and the one at the height of the store's last one, as far as they are known.
    blocks: Vec<(u32, BlockHash)>,
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
            code_of(&error)
        }
    }
}

fn look(settings: &Settings, disk: &dyn Disk, address: &Address) -> Result<Document, WriterError> {
    let store = open_store(address)?;
    let replication = store.keyspace()?.replication;
    let row = store.commit(CommitRead::Quorum)?.map(|stored| Commit::read(&stored)).transpose()?;
    let own = Own::read(settings, disk, row.as_ref().and_then(Commit::tip).map(|(height, _)| height));
    let is_other = row.as_ref().map_or(Ok(None), |row| is_other_branch(&store, row, &own))?;
    let document = Document::new(address.to_string(), replication, row.as_ref(), own.height, is_other);
    let block_bytes = row.as_ref().map_or(Ok(0), |row| stored_bytes(&store, row))?;
    Ok(Document { block_bytes, ..document })
}

impl Own {
    /// Of the running node, or at its last checkpoint. `at`: a height whose block is wanted too.
    fn read(settings: &Settings, disk: &dyn Disk, at: Option<u32>) -> Own {
        let names = [TXINDEX_NAME, TXOSPENDERINDEX_NAME, ADDRESSINDEX_NAME];
        let datadir = &settings.datadir;
        let node = is_running(disk, datadir).then(|| NodeStatus::read(disk, datadir).ok()).flatten();
        let running = node.and_then(|node| node.indexes.into_iter().find(|index| names.contains(&index.name.as_str())));
        if let Some(running) = running {
            // Its files may have another branch.
            let last = running.height.zip(running.hash.and_then(|hash| hash.parse().ok()));
            return Own { height: running.height, blocks: last.into_iter().collect() };
        }
        let report = inspect(disk, datadir, IndexKind::Tables, &settings.params).ok().flatten();
        let last = report.and_then(|report| report.tip).map(|tip| (tip.height.0, tip.hash));
        let wanted = at.and_then(|at| Some((at, hash_at(disk, datadir, &settings.params, at).ok()??)));
        Own { height: last.map(|(height, _)| height), blocks: last.into_iter().chain(wanted).collect() }
    }
}

/// Whether the row has another block than the index at the lower one of the two last heights; `None` if one of the two
/// is not known.
fn is_other_branch(store: &Arc<dyn Store>, row: &Commit, own: &Own) -> Result<Option<bool>, WriterError> {
    let Some((tip, _)) = row.tip() else { return Ok(None) };
    let Some((at, hash)) = own.blocks.iter().find(|(at, _)| Some(*at) == own.height.map(|own| own.min(tip))) else {
        return Ok(None);
    };
    Ok(Some(block_hash(store, row, *at)? != Some(*hash)))
}

impl Document {
    fn new(
        store: String,
        replication: u32,
        row: Option<&Commit>,
        own_height: Option<u32>,
        is_other_branch: Option<bool>,
    ) -> Document {
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
            blocks: row.map_or(0, Commit::stored_blocks),
            block_bytes: 0,
            first_block: row
                .and_then(|row| row.blocks.iter().find(|run| !run.heights.is_empty()))
                .map(|run| run.heights.start),
            retired: retired.len(),
            oldest_retired_s: since.map(|since| u64::from(now()).saturating_sub(since)),
            own_height,
            is_other_branch,
            lag_blocks: own_height
                .filter(|_| is_other_branch != Some(true))
                .map(|height| height.saturating_add(1).saturating_sub(next)),
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
    row("blocks", &document.blocks());
    if document.writing > 0 {
        row("writing", &count(document.writing as u64, "generation"));
    }
    if document.retired > 0 {
        row("to remove", &format!("{} an hour after no commit row names them", document.retired));
    }
    let (text, is_good) = document.lag();
    row("lag", &if is_good { text } else { screen.tone(Tone::Warn, &text) });
}

impl Document {
    /// The blocks whose bytes are in the store.
    fn blocks(&self) -> String {
        let Some(first) = self.first_block else {
            return "none: front ends have them from nodes".to_owned();
        };
        let tip = self.height.map_or(0, |height| height.saturating_add(1));
        let mut text = format!("{}, {} MB", count(self.blocks.into(), "block"), megabytes(self.block_bytes));
        if first > 0 {
            text = format!("{text}, from height {} on", commas(first.into()));
        }
        match tip.saturating_sub(self.blocks) {
            0 => text,
            missing => format!("{text}; {} not", commas(missing.into())),
        }
    }

    /// How far the store is behind, and whether that is good.
    fn lag(&self) -> (String, bool) {
        let Some(own) = self.own_height else {
            return ("unknown: the data directory has no index to compare with".to_owned(), true);
        };
        let own_height = commas(own.into());
        if self.is_other_branch == Some(true) {
            let text =
                format!("unknown: it is on another branch than the data directory, which is at height {own_height}");
            return (text, false);
        }
        let more = u64::from(self.height.unwrap_or(0).saturating_sub(own));
        match self.lag_blocks {
            Some(lag @ 1..) => (format!("{} behind height {own_height}", count(lag.into(), "block")), false),
            _ if self.is_other_branch.is_none() => {
                ("none by heights; whether its blocks are those of the data directory is not known".to_owned(), true)
            }
            _ if more > 0 => {
                let more = count(more, "block");
                (format!("none: it has {more} more than the index of the data directory, at height {own_height}"), true)
            }
            _ => ("none: it has every block of the index of the data directory".to_owned(), true),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_index::documented::assert_fields;
    use lydian_index::{Facts, Identity, Profile, RemoteContent, RemoteSegment, Salt, SegmentFacts};
    use lydian_shared_index::{
        BlockRun, Key, Keyspace, Leftover, Partition, Replicas, StoreError, StoredCommit, Swap, WriterId,
    };

    /// A store that must not be asked.
    #[derive(Debug)]
    struct Unasked;

    impl Store for Unasked {
        fn keyspace(&self) -> Result<Keyspace, StoreError> {
            unreachable!()
        }

        fn read(&self, _: &[Key], _: Replicas) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
            Err(StoreError::TimedOut { reason: "a page is wanted".to_owned() })
        }

        fn write(&self, _: &[(Key, Vec<u8>)]) -> Result<(), StoreError> {
            unreachable!()
        }

        fn remove(&self, _: &[Partition]) -> Result<(), StoreError> {
            unreachable!()
        }

        fn commit(&self, _: CommitRead) -> Result<Option<StoredCommit>, StoreError> {
            unreachable!()
        }

        fn swap(&self, _: Option<u64>, _: &StoredCommit) -> Result<Swap, StoreError> {
            unreachable!()
        }
    }

    fn hash(height: u32, branch: u8) -> BlockHash {
        let mut hash = [branch; 32];
        hash[..4].copy_from_slice(&height.to_le_bytes());
        BlockHash(hash)
    }

    /// A generation of 256 blocks, and blocks up to height 300.
    fn row() -> Commit {
        let profile = Profile { has_scripts: false, has_txids: false };
        let tables = Table::of(profile).map(|table| (table, Facts { first: 0, rows: 256, pages: 1 })).collect();
        let facts = SegmentFacts { heights: 0..256, hash: hash(255, 1), tables };
        let content = RemoteContent {
            segments: vec![RemoteSegment { generation: 3, facts }],
            hashes: (256..301).map(|height| hash(height, 1)).collect(),
            epoch: 1,
        };
        Commit {
            sequence: 9,
            identity: Identity { genesis: BlockHash([1; 32]), salt: Salt::from_bytes([2; 16]), profile },
            writer: WriterId([3; 16]),
            next: 4,
            content,
            writing: Vec::new(),
            series: 0,
            delta_heights: 256..301,
            retired: vec![Retired { since: 1, what: Leftover::Deltas { series: 0, heights: 0..256 } }],
            blocks: vec![BlockRun { series: 2, heights: 100..300 }],
        }
    }

    #[test]
    fn the_document_has_the_fields_that_are_documented() {
        let document = Document::new("cassandra://h:9042/k".to_owned(), 3, Some(&row()), Some(305), Some(false));
        assert_fields("status", &document);
        let document = Document { block_bytes: 4_200_000, ..document };
        assert_eq!(document.blocks(), "200 blocks, 4.2 MB, from height 100 on; 101 not");
        let document = Document { first_block: None, ..document };
        assert_eq!(document.blocks(), "none: front ends have them from nodes");
    }

    #[test]
    fn the_lag_is_that_of_one_branch() {
        let store: Arc<dyn Store> = Arc::new(Unasked);
        let lag = |height: u32, blocks: &[(u32, u8)]| {
            let blocks = blocks.iter().map(|(height, branch)| (*height, hash(*height, *branch))).collect();
            let own = Own { height: Some(height), blocks };
            let is_other = is_other_branch(&store, &row(), &own).unwrap();
            let document = Document::new("s".to_owned(), 3, Some(&row()), own.height, is_other);
            (is_other, document.lag_blocks, document.lag().0)
        };
        let text = |text: &str| text.to_owned();
        let same = "none: it has every block of the index of the data directory";
        assert_eq!(lag(300, &[(300, 1)]), (Some(false), Some(0), text(same)));
        let branch = "unknown: it is on another branch than the data directory, which is at height ";
        assert_eq!(lag(300, &[(300, 2)]), (Some(true), None, format!("{branch}300")));
        // Further on the other branch, and below on it.
        assert_eq!(lag(305, &[(305, 2), (300, 2)]), (Some(true), None, format!("{branch}305")));
        assert_eq!(lag(280, &[(280, 2)]), (Some(true), None, format!("{branch}280")));
        assert_eq!(lag(305, &[(305, 1), (300, 1)]), (Some(false), Some(5), text("5 blocks behind height 305")));
        let more = "none: it has 20 blocks more than the index of the data directory, at height 280";
        assert_eq!(lag(280, &[(280, 1)]), (Some(false), Some(0), text(more)));
        assert_eq!(lag(255, &[(255, 2)]).0, Some(true), "the last block of a generation");
        // Of a node that runs, only the last block is known.
        assert_eq!(lag(305, &[(305, 2)]), (None, Some(5), text("5 blocks behind height 305")));
        let unknown = "none by heights; whether its blocks are those of the data directory is not known";
        assert_eq!(lag(300, &[]), (None, Some(0), text(unknown)));
        let own = Own { height: Some(100), blocks: vec![(100, hash(100, 1))] };
        let error = is_other_branch(&store, &row(), &own).unwrap_err();
        assert!(error.to_string().contains("a page is wanted"), "{error}");
    }
}
