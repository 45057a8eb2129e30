//! Segments: the tables of a range of heights, sealed for good, and which of them there are.
//!
//! Input: the rows of [`GROUP_BLOCKS`] blocks, or segments that follow each other. Output: a segment with its tables.
//! The ranges follow from the height up to which blocks are sealed, and the rows from the chain: however an index was
//! built, its files are the same. Eight segments of one size make one of the next; a lookup asks each segment, at most
//! 29 on mainnet in the next ten years. Memory: the directories of the tables.

use super::commit::Profile;
use super::events;
use super::numbers::{self, KEY_BITS, Numbers, Row};
use super::pages::{Facts, FileSink, FileSource, PageSink, PageSource};
use super::places::{self, BlockAt, BlockRow, Heights, Place};
use super::remote::Table;
use super::rows::{CreateRow, ScriptRows, SpendRow};
use super::scripts;
use super::settled::Settled;
use super::txids;
use crate::error::IndexError;
use lydian_disk::{Disk, OwnDir};
use lydian_primitives::Txid;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Blocks that are sealed together.
pub const GROUP_BLOCKS: u32 = 256;

/// Segments that make one of the next size.
const FAN: u32 = 8;

/// Sizes of segments in blocks: 256, 2,048, 16,384, 131,072 and 1,048,576.
const SIZES: u32 = 5;

/// The ends of the names of a segment's files.
pub(super) const NUMBERS: &str = "numbers";
pub(super) const SIZES_NAME: &str = "sizes";
pub(super) const BLOCKS: &str = "blocks";
const EVENTS: &str = "events";
const LISTS: &str = "lists";
const POSITIONS: &str = "positions";
const TXIDS: &str = "txids";

/// The tables of a range of heights.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) heights: Range<u32>,
    pub(super) numbers: Arc<dyn PageSource>,
    pub(super) sizes: Arc<dyn PageSource>,
    pub(super) blocks: Arc<dyn PageSource>,
    /// `None` if the index has no table of txids.
    pub(super) txids: Option<Arc<dyn PageSource>>,
    /// `None` if the index has no tables of scripts.
    pub(super) scripts: Option<ScriptTables>,
}

/// The tables of scripts of a segment.
#[derive(Clone, Debug)]
pub(super) struct ScriptTables {
    pub(super) keys: Arc<dyn PageSource>,
    pub(super) lists: Arc<dyn PageSource>,
    /// A page for each block.
    pub(super) positions: Arc<dyn PageSource>,
}

impl ScriptTables {
    pub(super) fn events(&self) -> events::Table<'_> {
        events::Table { keys: self.keys.as_ref(), lists: self.lists.as_ref() }
    }
}

/// The end of the name of a table's file.
fn name_of(table: Table) -> &'static str {
    match table {
        Table::Numbers => NUMBERS,
        Table::Sizes => SIZES_NAME,
        Table::Blocks => BLOCKS,
        Table::Txids => TXIDS,
        Table::Events => EVENTS,
        Table::Lists => LISTS,
        Table::Positions => POSITIONS,
    }
}

/// The files of a segment.
pub(super) fn files(dir: &Path, heights: &Range<u32>, profile: Profile) -> Vec<PathBuf> {
    Table::of(profile).map(|table| path(dir, heights, name_of(table))).collect()
}

/// The ranges of the segments that cover the blocks below this height, a multiple of [`GROUP_BLOCKS`].
pub(super) fn ranges(sealed: u32) -> Vec<Range<u32>> {
    let (mut all, mut from) = (Vec::new(), 0);
    for power in (0..SIZES).rev() {
        let size = GROUP_BLOCKS * FAN.pow(power);
        while sealed - from >= size {
            all.push(from..from + size);
            from += size;
        }
    }
    all
}

/// The file of a table of a segment.
pub(super) fn path(dir: &Path, heights: &Range<u32>, table: &str) -> PathBuf {
    dir.join(format!("{:07}-{:07}.{table}", heights.start, heights.end))
}

/// The rows of blocks that are not sealed.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    pub(super) blocks: Vec<BlockRow>,
    pub(super) transactions: Vec<TxRow>,
    /// Empty if the index has no table of txids.
    pub(super) txids: Vec<Txid>,
    /// Those of the first blocks, if the index has tables of scripts.
    pub(super) settled: Option<Arc<Settled>>,
    /// Those of each block behind them.
    pub(super) scripts: Vec<Arc<ScriptRows>>,
}

/// The rows of scripts of a range of blocks, as they are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// The blocks, counted from the first of the rows.
    pub(super) blocks: (u32, u32),
    pub(super) creates: &'a [CreateRow],
    pub(super) spends: &'a [SpendRow],
}

impl Rows {
    /// Bytes in memory, without what allocations add.
    pub(super) fn memory_bytes(&self) -> usize {
        let scripts = |positions: usize, creates: &Vec<CreateRow>, spends: &Vec<SpendRow>| {
            positions + size_of_val(creates.as_slice()) + size_of_val(spends.as_slice())
        };
        let settled = self.settled.as_ref().map_or(0, |settled| {
            let positions = settled.positions.iter().map(Vec::len).sum();
            scripts(positions, &settled.creates, &settled.spends)
        });
        let others = self.scripts.iter().map(|rows| scripts(rows.positions.len(), &rows.creates, &rows.spends));
        size_of_val(self.blocks.as_slice())
            + size_of_val(self.transactions.as_slice())
            + size_of_val(self.txids.as_slice())
            + settled
            + others.sum::<usize>()
    }

    /// The transactions of each block.
    pub(super) fn counts(&self) -> Vec<u32> {
        self.blocks.iter().map(|block| block.transactions).collect()
    }

    /// The number of blocks whose rows are settled.
    pub(super) fn settled_blocks(&self) -> usize {
        self.settled.as_ref().map_or(0, |settled| settled.positions.len())
    }

    /// The parts: one for what is settled, and one for each block behind. Positions count from the first block of a
    /// part.
    pub(super) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let settled_blocks = u32::try_from(self.settled_blocks()).unwrap_or(u32::MAX);
        let whole = self.settled.as_ref().map(|settled| Part {
            blocks: (0, settled_blocks),
            creates: &settled.creates,
            spends: &settled.spends,
        });
        let each = (settled_blocks..).zip(&self.scripts).map(|(at, rows)| Part {
            blocks: (at, at + 1),
            creates: &rows.creates,
            spends: &rows.spends,
        });
        whole.into_iter().chain(each)
    }

    /// The table of positions of a block.
    pub(super) fn positions(&self, at: usize) -> Option<&[u8]> {
        match at.checked_sub(self.settled_blocks()) {
            Some(at) => self.scripts.get(at).map(|rows| rows.positions.as_slice()),
            None => self.settled.as_ref()?.positions.get(at).map(Vec::as_slice),
        }
    }

    fn events(&self) -> usize {
        self.parts().map(|part| part.creates.len() + part.spends.len()).sum()
    }
}

/// Key and size in bytes of a transaction, in 40 and 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TxRow(u64);

impl TxRow {
    /// # Panics
    ///
    /// If the size does not fit: a block has at most 4 MB.
    pub(super) fn new(key: u64, size: u32) -> TxRow {
        assert!(size < 1 << SIZE_BITS && key < 1 << KEY_BITS, "a transaction of {size} bytes");
        TxRow(key << SIZE_BITS | u64::from(size))
    }

    pub(super) fn key(self) -> u64 {
        self.0 >> SIZE_BITS
    }

    pub(super) fn size(self) -> u32 {
        u32::try_from(self.0 & u64::from(SIZE_MASK)).unwrap_or(0)
    }
}

const SIZE_BITS: u32 = 64 - KEY_BITS;
const SIZE_MASK: u32 = (1 << SIZE_BITS) - 1;

/// A directory of segments.
#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) own: OwnDir,
    pub(super) profile: Profile,
    /// The index is being closed: what is being written is left as it is.
    pub(super) is_ended: Arc<AtomicBool>,
}

impl Store {
    fn sink(&self, heights: &Range<u32>, table: &str) -> Result<FileSink, IndexError> {
        let path = path(self.own.path(), heights, table);
        FileSink::create(self.disk.as_ref(), &self.own, &path, Arc::clone(&self.is_ended))
    }

    pub(super) fn open(&self, heights: Range<u32>) -> Result<Segment, IndexError> {
        let table = |name| -> Result<Arc<dyn PageSource>, IndexError> {
            Ok(Arc::new(FileSource::open(self.disk.as_ref(), &path(self.own.path(), &heights, name))?))
        };
        let (numbers, sizes, blocks) = (table(NUMBERS)?, table(SIZES_NAME)?, table(BLOCKS)?);
        let scripts = match self.profile.has_scripts {
            true => Some(ScriptTables { keys: table(EVENTS)?, lists: table(LISTS)?, positions: table(POSITIONS)? }),
            false => None,
        };
        let txids = if self.profile.has_txids { Some(table(TXIDS)?) } else { None };
        Ok(Segment { heights, numbers, sizes, blocks, txids, scripts })
    }

    /// Writes a segment from rows. `below` are the segments below; `all` has the heights of the chain up to its end.
    pub(super) fn seal(
        &self,
        heights: Range<u32>,
        rows: &Rows,
        below: &[Segment],
        all: &Heights,
    ) -> Result<Segment, IndexError> {
        let range = all.numbers(&heights);
        let keyed = rows.transactions.iter().zip(range.clone());
        let mut sorted: Vec<Row> = keyed.map(|(tx, number)| Row { key: tx.key(), number }).collect();
        sorted.sort_unstable();
        let mut sink = self.sink(&heights, NUMBERS)?;
        let mut numbers = Numbers::new(&mut sink, range.start, range.end - range.start);
        sorted.into_iter().try_for_each(|row| numbers.push(row))?;
        numbers.finish()?;
        let sizes = rows.transactions.iter().map(|tx| Ok(tx.size()));
        places::write_sizes(&range, all, sizes, &mut self.sink(&heights, SIZES_NAME)?)?;
        places::write_blocks(heights.start, rows.blocks.iter().copied().map(Ok), &mut self.sink(&heights, BLOCKS)?)?;
        if self.profile.has_txids {
            let all = rows.txids.iter().map(|txid| Ok(*txid));
            txids::write(range.start, all, &mut self.sink(&heights, TXIDS)?)?;
        }
        if self.profile.has_scripts {
            self.seal_scripts(&heights, rows, below, all)?;
        }
        self.open(heights)
    }

    fn seal_scripts(
        &self,
        heights: &Range<u32>,
        rows: &Rows,
        below: &[Segment],
        all: &Heights,
    ) -> Result<(), IndexError> {
        let pages = (0..rows.blocks.len()).map(|at| Ok(rows.positions(at).unwrap_or_default().to_vec()));
        write_positions(heights, pages, &mut self.sink(heights, POSITIONS)?)?;
        let first = u32::try_from(all.first(heights.start)).unwrap_or(u32::MAX);
        let events = rows.events() as u64;
        let (mut keys, mut lists) = (self.sink(heights, EVENTS)?, self.sink(heights, LISTS)?);
        let mut writer = events::Writer::new(&mut keys, &mut lists, first, events);
        scripts::entries(heights.start, rows, below, all, &mut |key, entry| writer.push(key, entry))?;
        writer.finish()
    }

    /// Writes a segment with the rows of segments that follow each other and are its parts.
    fn merge(&self, parts: &[Segment], heights: Range<u32>, all: &Heights) -> Result<Segment, IndexError> {
        merge_tables(parts, &heights, all, &mut |table| Ok(Box::new(self.sink(&heights, name_of(table))?)))?;
        self.open(heights)
    }

    /// The segments up to `sealed`, made of `old` ones that cover these heights. Those that stay are shared.
    pub(super) fn arrange(&self, old: &[Segment], sealed: u32, all: &Heights) -> Result<Vec<Segment>, IndexError> {
        ranges(sealed)
            .into_iter()
            .map(|range| match old.iter().find(|segment| segment.heights == range) {
                Some(segment) => Ok(segment.clone()),
                None => {
                    let is_part = |part: &&Segment| range.start <= part.heights.start && part.heights.end <= range.end;
                    let parts: Vec<Segment> = old.iter().filter(is_part).cloned().collect();
                    self.merge(&parts, range, all)
                }
            })
            .collect()
    }
}

/// Writes the tables of segments that follow each other as those of one, each to its own sink: in the order of
/// [`Table::of`], but a page of [`Table::Lists`] before the page that has its key.
pub(super) fn merge_tables(
    parts: &[Segment],
    heights: &Range<u32>,
    all: &Heights,
    sink: &mut dyn FnMut(Table) -> Result<Box<dyn PageSink>, IndexError>,
) -> Result<(), IndexError> {
    let range = all.numbers(heights);
    let sources: Vec<&dyn PageSource> = parts.iter().map(|part| part.numbers.as_ref()).collect();
    numbers::merge(&sources, &range, sink(Table::Numbers)?.as_mut())?;
    let sizes = parts.iter().flat_map(|part| places::read_sizes(part.sizes.as_ref()));
    places::write_sizes(&range, all, sizes, sink(Table::Sizes)?.as_mut())?;
    let blocks = parts.iter().flat_map(|part| places::read_blocks(part.blocks.as_ref()));
    places::write_blocks(heights.start, blocks, sink(Table::Blocks)?.as_mut())?;
    let tables: Vec<&dyn PageSource> = parts.iter().filter_map(|part| part.txids.as_deref()).collect();
    if !tables.is_empty() {
        let all = tables.into_iter().flat_map(txids::read);
        txids::write(range.start, all, sink(Table::Txids)?.as_mut())?;
    }
    let scripts: Vec<&ScriptTables> = parts.iter().filter_map(|part| part.scripts.as_ref()).collect();
    if scripts.is_empty() {
        return Ok(());
    }
    let tables: Vec<events::Table<'_>> = scripts.iter().map(|tables| tables.events()).collect();
    events::merge(&tables, sink(Table::Events)?.as_mut(), sink(Table::Lists)?.as_mut())?;
    let pages = scripts
        .iter()
        .flat_map(|tables| (0..tables.positions.facts().pages).map(|number| tables.positions.page(number)));
    write_positions(heights, pages, sink(Table::Positions)?.as_mut())
}

/// The facts of a table of a merged segment, from those of its parts. Of [`Table::Lists`], rows and pages are known
/// once they are written only, and are 0; no reader needs them.
pub(super) fn merged_facts(table: Table, parts: &[Facts]) -> Facts {
    let first = parts.first().map_or(0, |facts| facts.first);
    let rows = parts.iter().map(|facts| facts.rows).sum();
    let pages = match table {
        Table::Numbers => numbers::pages_of(rows),
        Table::Sizes => places::size_pages(rows),
        Table::Blocks => places::block_pages(rows),
        Table::Txids => txids::pages_of(rows),
        Table::Events => events::pages_of(rows),
        Table::Lists => return Facts { first, rows: 0, pages: 0 },
        Table::Positions => u32::try_from(rows).unwrap_or(u32::MAX),
    };
    Facts { first, rows, pages }
}

/// Writes the table of positions: a page for each block.
fn write_positions(
    heights: &Range<u32>,
    pages: impl Iterator<Item = Result<Vec<u8>, IndexError>>,
    sink: &mut dyn PageSink,
) -> Result<(), IndexError> {
    pages.into_iter().try_for_each(|page| sink.push(&page?))?;
    let pages = heights.end - heights.start;
    sink.finish(&Facts { first: u64::from(heights.start), rows: u64::from(pages), pages })
}

impl Segment {
    /// A table; `None` if the segment does not have it.
    pub(super) fn table(&self, table: Table) -> Option<&dyn PageSource> {
        let scripts = self.scripts.as_ref();
        Some(match table {
            Table::Numbers => self.numbers.as_ref(),
            Table::Sizes => self.sizes.as_ref(),
            Table::Blocks => self.blocks.as_ref(),
            Table::Txids => self.txids.as_deref()?,
            Table::Events => scripts?.keys.as_ref(),
            Table::Lists => scripts?.lists.as_ref(),
            Table::Positions => scripts?.positions.as_ref(),
        })
    }

    pub(super) fn place(&self, block: &BlockAt, number: u64) -> Result<Option<Place>, IndexError> {
        places::find_place(self.sizes.as_ref(), block, number)
    }
}

/// The numbers of the transactions that have this key, in their order.
pub(super) fn numbers_of(segments: &[Segment], key: u64) -> Result<Vec<u64>, IndexError> {
    let sources: Vec<&dyn PageSource> = segments.iter().map(|segment| segment.numbers.as_ref()).collect();
    numbers::find_in_all(&sources, key)
}
