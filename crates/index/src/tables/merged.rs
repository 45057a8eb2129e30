//! [`MergedPages`]: segments that follow each other, as the pages of one.
//!
//! Input: the segments. Output: the pages that a segment of all their blocks would have, in the order of the tables;
//! a page of [`Table::Lists`] comes before the page of [`Table::Events`] that has its key. A thread merges the tables
//! and waits whenever [`PAGES_AHEAD`] pages were not taken. The index goes on meanwhile: files that it removes stay
//! readable here.
//!
//! Invariants: the pages follow from the chain and the salt alone; all of them are handed out, or an error. Memory: the
//! pages that were not taken, a page of each segment, the longest entry of a script, and 12 bytes for each block.

use super::pages::{Facts, PageSink};
use super::places::{Heights, read_blocks};
use super::remote::Table;
use super::segment::{Segment, merge_tables, merged_facts};
use crate::error::IndexError;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Pages that wait to be taken: about 2 MB.
const PAGES_AHEAD: usize = 512;

type Sent = Result<(Table, Vec<u8>), IndexError>;

/// The pages of segments as those of one.
#[derive(Debug)]
pub struct MergedPages {
    receiver: Receiver<Sent>,
}

impl MergedPages {
    /// Starts the thread, which ends once the value is dropped. The range counts `segments`.
    pub(super) fn start(segments: Arc<Vec<Segment>>, parts: Range<usize>) -> Result<MergedPages, IndexError> {
        let (sender, receiver) = sync_channel(PAGES_AHEAD);
        let merge = move || {
            if let Err(error) = merge(&segments, parts, &sender) {
                // The receiver may be gone.
                let _ = sender.send(Err(error));
            }
        };
        let thread = thread::Builder::new().name("index-copy".to_owned()).spawn(merge);
        match thread {
            Ok(_) => Ok(MergedPages { receiver }),
            Err(error) => Err(IndexError::Thread { reason: error.to_string() }),
        }
    }

    /// The next page.
    pub fn next_page(&mut self) -> Result<(Table, Vec<u8>), IndexError> {
        self.receiver.recv().unwrap_or(Err(IndexError::Ended))
    }
}

/// Takes the pages of a table to the thread that writes them elsewhere.
#[derive(Debug)]
struct Sender {
    table: Table,
    facts: Facts,
    sender: SyncSender<Sent>,
    pages: u32,
}

impl PageSink for Sender {
    fn push(&mut self, page: &[u8]) -> Result<(), IndexError> {
        self.pages += 1;
        self.sender.send(Ok((self.table, page.to_vec()))).map_err(|_| IndexError::Ended)
    }

    /// The facts must be those that were computed before anything was merged.
    fn finish(&mut self, facts: &Facts) -> Result<(), IndexError> {
        if self.table == Table::Lists || (facts, facts.pages) == (&self.facts, self.pages) {
            return Ok(());
        }
        let reason = format!("the merged table {:?} has {facts:?} instead of {:?}", self.table, self.facts);
        Err(IndexError::Store { reason })
    }
}

fn merge(segments: &[Segment], parts: Range<usize>, sender: &SyncSender<Sent>) -> Result<(), IndexError> {
    let mut all = Heights::new();
    let too_many = || IndexError::Store { reason: "the segments have more transactions than numbers".to_owned() };
    for segment in segments.iter().take(parts.end) {
        for row in read_blocks(segment.blocks.as_ref()) {
            let row = row?;
            all.push(row.transactions, row.outputs).ok_or_else(too_many)?;
        }
    }
    let parts = segments.get(parts).unwrap_or_default();
    let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Ok(()) };
    let heights = first.heights.start..last.heights.end;
    merge_tables(parts, &heights, &all, &mut |table| {
        let facts = merged_facts(table, &facts_of(parts, table));
        Ok(Box::new(Sender { table, facts, sender: sender.clone(), pages: 0 }))
    })
}

/// The facts of a table of each of these segments.
pub(super) fn facts_of(parts: &[Segment], table: Table) -> Vec<Facts> {
    parts.iter().filter_map(|part| Some(*part.table(table)?.facts())).collect()
}
