//! [`Upload`]: a generation on its way into the store; and [`Removal`]: one on its way out.
//!
//! Input: the pages of the generation. Output: the values of all its buckets, in batches of a bounded size. Part 0 of a
//! bucket is written last, since it says where the others begin. Memory: a batch, and a part of a list.

use crate::commit::Leftover;
use crate::filter::{self, FILTER_PAGES};
use crate::parts::{self, Parts};
use crate::seal::Sealed;
use crate::store::{BlockHeight, Bucket, DeltaHeight, Key, PageKey, Partition, Store, StoreError};
use lydian_index::{Export, Facts, IndexError, MergedPages, RemoteSegment, Table};
use std::collections::VecDeque;
use std::ops::Range;

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

/// A generation that is being written.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) segment: RemoteSegment,
    pages: MergedPages,
    /// The table, counted in the facts of the segment, and the next page of it.
    table: usize,
    page: u32,
    /// The lists of that page.
    lists: Parts,
    /// Those of the pages since the last filter.
    keys: Vec<u64>,
    pending: VecDeque<(Key, Vec<u8>)>,
}

impl Upload {
    pub(crate) fn new(segment: RemoteSegment, pages: MergedPages) -> Upload {
        Upload { segment, pages, table: 0, page: 0, lists: Parts::new(0), keys: Vec::new(), pending: VecDeque::new() }
    }

    /// Whether everything was acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.table == self.segment.facts.tables.len() && self.pending.is_empty()
    }

    /// Takes pages until a batch is full, or none are left.
    pub(crate) fn fill(&mut self, budget: Budget) -> Result<(), IndexError> {
        let mut bytes: usize = self.pending.iter().map(|(_, value)| value.len()).sum();
        while self.pending.len() < budget.writes && bytes < budget.bytes {
            let Some((table, facts)) = self.segment.facts.tables.get(self.table).copied() else { break };
            if table == Table::Lists || self.page >= facts.pages {
                (self.table, self.page) = (self.table + 1, 0);
                continue;
            }
            let before = self.pending.len();
            match self.pages.next_page()? {
                (Table::Lists, page) if table == Table::Events => {
                    if let Some((part, content)) = self.lists.push(&page) {
                        self.push(table, part, &content);
                    }
                }
                (found, page) if found == table => {
                    if table == Table::Events {
                        self.push_keys(&page, &facts)?;
                    }
                    self.push_page(table, &page);
                }
                (found, _) => {
                    let reason = format!("a page of the table {found:?} comes where one of {table:?} should be");
                    return Err(IndexError::Store { reason });
                }
            }
            bytes += self.pending.iter().skip(before).map(|(_, value)| value.len()).sum::<usize>();
        }
        Ok(())
    }

    /// The keys of a page, and the filter that ends with it.
    fn push_keys(&mut self, page: &[u8], facts: &Facts) -> Result<(), IndexError> {
        self.keys.extend(Export::script_keys(self.page, page, facts)?);
        let next = self.page + 1;
        if next == facts.pages || next.is_multiple_of(FILTER_PAGES) {
            let key = filter::filter_key(self.segment.generation, self.page / FILTER_PAGES * FILTER_PAGES);
            self.pending.push_back((key, Sealed::Value(key).seal(&filter::encode(&self.keys))));
            self.keys.clear();
        }
        Ok(())
    }

    /// A page whose lists came before it.
    fn push_page(&mut self, table: Table, page: &[u8]) {
        let (last, directory) = self.lists.finish();
        if let Some((part, content)) = last {
            self.push(table, part, &content);
        }
        self.push(table, 0, &parts::encode(table, page, &directory));
        self.page += 1;
    }

    fn push(&mut self, table: Table, part: u32, content: &[u8]) {
        let bucket = Bucket { generation: self.segment.generation, table, page: self.page };
        let key = Key::Page(PageKey { bucket, part });
        self.pending.push_back((key, Sealed::Value(key).seal(content)));
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
    let height_of = |heights: &Range<u32>, at: u64| {
        let height = heights.start.checked_add(u32::try_from(at).ok()?)?;
        heights.contains(&height).then_some(height)
    };
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
            height_of(heights, at).map(|height| Partition::Deltas(DeltaHeight { series: *series, height }))
        }
        Leftover::Blocks { series, heights } => {
            height_of(heights, at).map(|height| Partition::Blocks(BlockHeight { series: *series, height }))
        }
    }
}
