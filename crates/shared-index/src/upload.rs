//! [`Upload`]: a segment of the embedded index on its way into the store; and [`Removal`]: one on its way out.
//!
//! Input: an export that has the segment. Output: the values of all its buckets, in batches of a bounded size. Part 0
//! of a bucket is written last, since it says where the others begin. Memory: a batch and 128 pages.

use crate::commit::Leftover;
use crate::parts::{self, Directory, Parts};
use crate::seal::Sealed;
use crate::store::{Bucket, DeltaHeight, Key, PageKey, Partition, Store, StoreError};
use lydian_index::{Export, IndexError, RemoteSegment, Table};
use std::collections::VecDeque;
use std::ops::Range;

/// Pages that are read from the embedded index at the same time.
const PAGES_AT_ONCE: u32 = 64;

/// How much may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budget {
    pub(crate) writes: usize,
    pub(crate) bytes: usize,
}

impl Budget {
    /// How many of these values may be under way; at least one.
    pub(crate) fn take<'a>(&self, values: impl Iterator<Item = &'a (Key, Vec<u8>)>) -> usize {
        let mut bytes = 0;
        let fits = |(_, value): &&(Key, Vec<u8>)| {
            bytes += value.len();
            bytes <= self.bytes
        };
        values.take(self.writes).take_while(fits).count().max(1)
    }
}

/// The lists of a page that is being written.
#[derive(Debug)]
struct Lists {
    page: Vec<u8>,
    left: Range<u32>,
    parts: Parts,
}

/// A segment that is being written.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) segment: RemoteSegment,
    /// The table, counted in the facts of the segment, and the next page of it.
    table: usize,
    page: u32,
    lists: Option<Lists>,
    pending: VecDeque<(Key, Vec<u8>)>,
}

impl Upload {
    pub(crate) fn new(segment: RemoteSegment) -> Upload {
        Upload { segment, table: 0, page: 0, lists: None, pending: VecDeque::new() }
    }

    /// Whether everything was acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.table == self.segment.facts.tables.len() && self.pending.is_empty()
    }

    /// Reads values until a batch is full, or none are left. `at`: the segment in the export.
    pub(crate) fn fill(&mut self, export: &Export, at: usize, budget: Budget) -> Result<(), IndexError> {
        let bytes = |pending: &VecDeque<(Key, Vec<u8>)>| pending.iter().map(|(_, value)| value.len()).sum::<usize>();
        while self.pending.len() < budget.writes && bytes(&self.pending) < budget.bytes {
            let Some((table, facts)) = self.segment.facts.tables.get(self.table).copied() else { break };
            if self.lists.is_some() {
                self.read_lists(export, at)?;
            } else if self.page >= facts.pages || table == Table::Lists {
                (self.table, self.page) = (self.table + 1, 0);
            } else if table == Table::Events {
                self.read_events(export, at)?;
            } else {
                let end = facts.pages.min(self.page.saturating_add(PAGES_AT_ONCE));
                let numbers: Vec<u32> = (self.page..end).collect();
                for (number, page) in numbers.iter().zip(export.pages(at, table, &numbers)?) {
                    self.push(table, *number, 0, &parts::encode(table, &page, &Directory::default()));
                }
                self.page = end;
            }
        }
        Ok(())
    }

    fn push(&mut self, table: Table, page: u32, part: u32, content: &[u8]) {
        let bucket = Bucket { generation: self.segment.generation, table, page };
        let key = Key::Page(PageKey { bucket, part });
        self.pending.push_back((key, Sealed::Value(key).seal(content)));
    }

    fn read_events(&mut self, export: &Export, at: usize) -> Result<(), IndexError> {
        let Some(page) = export.pages(at, Table::Events, &[self.page])?.pop() else { return Ok(()) };
        let left = export.list_pages_of(at, self.page, &page)?;
        self.lists = Some(Lists { parts: Parts::new(left.start), left, page });
        Ok(())
    }

    fn read_lists(&mut self, export: &Export, at: usize) -> Result<(), IndexError> {
        let Some(mut lists) = self.lists.take() else { return Ok(()) };
        let end = lists.left.end.min(lists.left.start.saturating_add(PAGES_AT_ONCE));
        let numbers: Vec<u32> = (lists.left.start..end).collect();
        let pages = if numbers.is_empty() { Vec::new() } else { export.pages(at, Table::Lists, &numbers)? };
        for page in pages {
            if let Some((part, content)) = lists.parts.push(&page) {
                self.push(Table::Events, self.page, part, &content);
            }
        }
        lists.left.start = end;
        if !lists.left.is_empty() {
            self.lists = Some(lists);
            return Ok(());
        }
        let (last, directory) = lists.parts.finish();
        if let Some((part, content)) = last {
            self.push(Table::Events, self.page, part, &content);
        }
        self.push(Table::Events, self.page, 0, &parts::encode(Table::Events, &lists.page, &directory));
        self.page += 1;
        Ok(())
    }

    /// Takes a batch.
    pub(crate) fn take(&mut self, budget: Budget) -> Vec<(Key, Vec<u8>)> {
        let count = budget.take(self.pending.iter()).min(self.pending.len());
        self.pending.drain(..count).collect()
    }

    /// Writes a batch, which stays if that fails. Returns its bytes.
    pub(crate) fn send(&mut self, store: &dyn Store, budget: Budget) -> Result<usize, StoreError> {
        if self.pending.is_empty() {
            return Ok(0);
        }
        let count = budget.take(self.pending.iter());
        let batch = self.pending.make_contiguous().get(..count).unwrap_or_default();
        store.write(batch)?;
        let sent = self.pending.drain(..count);
        Ok(sent.map(|(_, value)| value.len()).sum())
    }
}

/// What is being removed, partition by partition.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) what: Leftover,
    next: u64,
}

impl Removal {
    pub(crate) fn new(what: Leftover) -> Removal {
        Removal { what, next: 0 }
    }

    /// Removes up to so many partitions. True once nothing is left.
    pub(crate) fn send(&mut self, store: &dyn Store, count: usize) -> Result<bool, StoreError> {
        let batch: Vec<Partition> = (self.next..).map_while(|at| partition(&self.what, at)).take(count).collect();
        if batch.is_empty() {
            return Ok(true);
        }
        store.remove(&batch)?;
        self.next += batch.len() as u64;
        Ok(partition(&self.what, self.next).is_none())
    }
}

/// A partition of what is removed, counted from the first.
fn partition(what: &Leftover, mut at: u64) -> Option<Partition> {
    match what {
        Leftover::Generation(RemoteSegment { generation, facts }) => {
            for (table, facts) in facts.tables.iter().filter(|(table, _)| *table != Table::Lists) {
                if at < u64::from(facts.pages) {
                    let page = u32::try_from(at).ok()?;
                    return Some(Partition::Bucket(Bucket { generation: *generation, table: *table, page }));
                }
                at -= u64::from(facts.pages);
            }
            None
        }
        Leftover::Deltas { series, heights } => {
            let height = heights.start.checked_add(u32::try_from(at).ok()?)?;
            heights.contains(&height).then_some(Partition::Deltas(DeltaHeight { series: *series, height }))
        }
    }
}
