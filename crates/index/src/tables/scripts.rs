//! The outputs of a script, from all segments and from the blocks that are not sealed; and the numbers of the outputs
//! that inputs spend.
//!
//! Input: rows of blocks, and segments below them. Output: a segment's entries; or the outputs of a key in the order of
//! the chain, each with its spender, or its value if it has none. An input is known by the height and the hash of the
//! transaction that it spends from: [`super::positions`] gives the number.
//!
//! Cost of sealing: a sort of the rows, and a page for each block that these blocks spend from. Cost of an answer: a
//! page of each segment, and a search in each group and in each block that is not settled.

use super::events::{self, Create, Entry, External, Fate};
use super::pages::{PAGES_AT_ONCE, PageSource, page_of_each};
use super::places::Heights;
use super::positions;
use super::rows::{CreateRow, OVERWRITTEN, SpendRow, creates_of, spends_of};
use super::segment::{GROUP_BLOCKS, Rows, Segment};
use crate::error::IndexError;
use std::borrow::Cow;

/// An output of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScriptOutput {
    /// The number of its transaction in the chain.
    pub number: u32,
    pub vout: u32,
    pub fate: OutputFate,
}

/// What became of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputFate {
    /// A coin, with its value in satoshis.
    Unspent(u64),
    /// The number of the transaction that spends it.
    Spent(u32),
    /// Replaced by the coin of a repeated coinbase (BIP-0030).
    Overwritten,
}

/// The tables of positions of blocks: those that are not sealed, and the segments below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Positions<'a> {
    pub(super) segments: &'a [Segment],
    /// The height of the first block that is not sealed.
    pub(super) from: u32,
    /// The rows of that block and of those above, each a full group but the last.
    pub(super) groups: &'a [&'a Rows],
}

const NO_POSITIONS: &str = "no table has the positions of a block that an input spends from";
const NO_OUTPUT: &str = "an input spends an output that the tables do not have";

/// A block that inputs spend from.
#[derive(Debug)]
struct Block<'a> {
    height: u32,
    first: u64,
    count: u32,
    table: Cow<'a, [u8]>,
}

impl Block<'_> {
    /// The number of a transaction that is in the block.
    fn number(&self, hash: u64) -> Result<u32, IndexError> {
        let position = positions::find(&self.table, self.count, hash);
        let number = position.and_then(|position| u32::try_from(self.first + u64::from(position)).ok());
        number.ok_or_else(|| no_positions(self.height))
    }
}

fn no_positions(height: u32) -> IndexError {
    IndexError::Chain { reason: format!("block {height}: {NO_POSITIONS}") }
}

fn numbers_of(heights: &Heights, height: u32) -> (u64, u32) {
    let first = heights.first(height);
    (first, u32::try_from(heights.first(height + 1) - first).unwrap_or(0))
}

impl Positions<'_> {
    fn block(&self, height: u32, heights: &Heights) -> Result<Block<'_>, IndexError> {
        let (first, count) = numbers_of(heights, height);
        let at = height.checked_sub(self.from);
        let group = at.and_then(|at| Some((self.groups.get((at / GROUP_BLOCKS) as usize)?, at % GROUP_BLOCKS)));
        let table = match group.and_then(|(rows, at)| rows.positions(at as usize)) {
            Some(table) => Cow::Borrowed(table),
            None => Cow::Owned(table_of(self.segments, height)?),
        };
        Ok(Block { height, first, count, table })
    }
}

/// The table of positions of a block that is sealed.
fn table_of(segments: &[Segment], height: u32) -> Result<Vec<u8>, IndexError> {
    let (positions, page) = positions_of(segments, height)?;
    positions.page(page)
}

/// The same of several blocks, which are read at the same time.
fn tables_of(segments: &[Segment], heights: impl Iterator<Item = u32>) -> Result<Vec<Vec<u8>>, IndexError> {
    let wanted: Vec<_> = heights.map(|height| positions_of(segments, height)).collect::<Result<_, _>>()?;
    page_of_each(&wanted)
}

/// Where the table of positions of a block is: a table of a segment, and the page in it.
fn positions_of(segments: &[Segment], height: u32) -> Result<(&dyn PageSource, u32), IndexError> {
    let segment = segments.iter().find(|segment| segment.heights.contains(&height));
    let tables = segment.and_then(|segment| Some((segment, segment.scripts.as_ref()?)));
    let (segment, tables) = tables.ok_or_else(|| no_positions(height))?;
    Ok((tables.positions.as_ref(), height - segment.heights.start))
}

/// Visits the entries of blocks that follow each other from a height on, in the order of their keys.
pub(super) fn entries(
    from: u32,
    rows: &Rows,
    segments: &[Segment],
    heights: &Heights,
    visit: &mut dyn FnMut(u64, Entry) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let positions = Positions { segments, from, groups: &[rows] };
    let (creates, spends) = (creates(from, rows, heights), spends(from, rows, &positions, heights)?);
    let first = number_at(heights, from, 0);
    let mut creates = creates.chunk_by(|one, other| one.0 == other.0).peekable();
    let mut spends = spends.chunk_by(|one, other| one.0 == other.0).peekable();
    loop {
        let next = [creates.peek().map(|rows| rows[0].0), spends.peek().map(|rows| rows[0].0)];
        let Some(key) = next.into_iter().flatten().min() else { return Ok(()) };
        let (mut entry, mut above) = (Entry::default(), Entry::default());
        if let Some(rows) = creates.next_if(|rows| rows[0].0 == key) {
            entry.creates.extend(rows.iter().map(|(_, create)| *create));
        }
        if let Some(rows) = spends.next_if(|rows| rows[0].0 == key) {
            above.externals.extend(rows.iter().map(|(_, spent)| *spent));
        }
        if !entry.append(above, first) {
            return Err(IndexError::Chain { reason: NO_OUTPUT.to_owned() });
        }
        visit(key, entry)?;
    }
}

/// The outputs of blocks, sorted by key.
fn creates(from: u32, rows: &Rows, heights: &Heights) -> Vec<(u64, Create)> {
    let rows = rows.parts().flat_map(|part| part.creates.iter().map(move |row| (from + part.blocks.0, row)));
    let mut creates: Vec<(u64, Create)> =
        rows.map(|(height, row)| (row.key, create_of(number_at(heights, height, row.position), row))).collect();
    creates.sort_unstable();
    creates
}

/// The inputs of blocks, sorted by key, with the numbers of the outputs. These are looked up in the order of heights,
/// so that a page is read once.
fn spends(
    from: u32,
    rows: &Rows,
    positions: &Positions<'_>,
    heights: &Heights,
) -> Result<Vec<(u64, External)>, IndexError> {
    let rows = rows.parts().flat_map(|part| part.spends.iter().map(move |row| (from + part.blocks.0, row)));
    let mut rows: Vec<(u32, &SpendRow)> = rows.collect();
    rows.sort_unstable_by_key(|(_, row)| row.height);
    let mut spends = Vec::with_capacity(rows.len());
    for rows in rows.chunk_by(|(_, one), (_, other)| one.height == other.height) {
        let Some((_, SpendRow { height, .. })) = rows.first() else { continue };
        let block = positions.block(*height, heights)?;
        for (above, row) in rows {
            let spender = number_at(heights, *above, row.position);
            spends.push((row.key, External { number: block.number(row.hash)?, vout: row.vout, spender }));
        }
    }
    spends.sort_unstable();
    Ok(spends)
}

fn create_of(number: u32, row: &CreateRow) -> Create {
    let fate = if row.value == OVERWRITTEN { Fate::Spent(number) } else { Fate::Unspent(row.value) };
    Create { number, vout: row.vout, fate }
}

fn number_at(heights: &Heights, height: u32, position: u32) -> u32 {
    u32::try_from(heights.first(height) + u64::from(position)).unwrap_or(u32::MAX)
}

/// What the blocks that are not sealed have of a script, each with its height.
#[derive(Debug, Default)]
pub(super) struct Unsealed {
    pub(super) creates: Vec<Create>,
    /// The spends of outputs whose number is known.
    pub(super) spends: Vec<External>,
    /// Those of outputs in segments.
    pub(super) open: Vec<OpenSpend>,
}

/// An input whose output is in a segment: its row, its own number, and the numbers of the block that it spends from.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenSpend {
    hash: u64,
    height: u32,
    vout: u32,
    spender: u32,
    first: u64,
    count: u32,
}

impl Unsealed {
    /// Collects the rows of a key. Reads no file.
    pub(super) fn find(key: u64, from: u32, groups: &[&Rows], heights: &Heights) -> Result<Unsealed, IndexError> {
        let (mut found, positions) = (Unsealed::default(), Positions { segments: &[], from, groups });
        let first = (from..).step_by(GROUP_BLOCKS as usize).zip(groups);
        let parts = first.flat_map(|(from, rows)| rows.parts().map(move |part| (from + part.blocks.0, part)));
        for (height, part) in parts {
            let creates = creates_of(part.creates, key).iter();
            found.creates.extend(creates.map(|row| create_of(number_at(heights, height, row.position), row)));
            for row in spends_of(part.spends, key) {
                let spender = number_at(heights, height, row.position);
                if row.height >= from {
                    let number = positions.block(row.height, heights)?.number(row.hash)?;
                    found.spends.push(External { number, vout: row.vout, spender });
                } else {
                    let (first, count) = numbers_of(heights, row.height);
                    let SpendRow { hash, height, vout, .. } = *row;
                    found.open.push(OpenSpend { hash, height, vout, spender, first, count });
                }
            }
        }
        Ok(found)
    }

    /// The outputs of the key, in the order of the chain; only those that are wanted (sorted numbers and indexes).
    pub(super) fn join(
        mut self,
        key: u64,
        segments: &[Segment],
        wanted: Option<&[(u32, u32)]>,
    ) -> Result<Vec<ScriptOutput>, IndexError> {
        self.open.sort_unstable_by_key(|open| open.height);
        let blocks: Vec<&[OpenSpend]> = self.open.chunk_by(|one, other| one.height == other.height).collect();
        for blocks in blocks.chunks(PAGES_AT_ONCE as usize) {
            let heights = blocks.iter().filter_map(|opens| opens.first()).map(|open| open.height);
            let tables = tables_of(segments, heights)?;
            for (opens, table) in blocks.iter().zip(&tables) {
                for OpenSpend { hash, height, vout, spender, first, count } in opens.iter().copied() {
                    let block = Block { height, first, count, table: Cow::Borrowed(table.as_slice()) };
                    self.spends.push(External { number: block.number(hash)?, vout, spender });
                }
            }
        }
        let mut all = Entry::default();
        let tables: Vec<events::Table<'_>> =
            segments.iter().filter_map(|segment| Some(segment.scripts.as_ref()?.events())).collect();
        for (table, stored) in tables.iter().zip(events::find_in_all(&tables, key)?) {
            let Some(stored) = stored else { continue };
            let entry = match wanted {
                None => table.load(stored)?,
                Some(wanted) => table.load_some(stored, wanted)?,
            };
            join(&mut all, entry)?;
        }
        if let Some(wanted) = wanted {
            let is_wanted = |number: u32, vout: u32| wanted.binary_search(&(number, vout)).is_ok();
            self.creates.retain(|create| is_wanted(create.number, create.vout));
            self.spends.retain(|spend| is_wanted(spend.number, spend.vout));
        }
        self.spends.sort_unstable();
        all.creates.extend(self.creates);
        join(&mut all, Entry { creates: Vec::new(), externals: self.spends })?;
        Ok(all.creates.into_iter().map(output_of).collect())
    }
}

/// Adds the events of blocks above; every spend has its output.
fn join(all: &mut Entry, above: Entry) -> Result<(), IndexError> {
    if all.append(above, 0) { Ok(()) } else { Err(IndexError::Chain { reason: NO_OUTPUT.to_owned() }) }
}

fn output_of(create: Create) -> ScriptOutput {
    let fate = match create.fate {
        Fate::Unspent(value) => OutputFate::Unspent(value),
        Fate::Spent(spender) if spender == create.number => OutputFate::Overwritten,
        Fate::Spent(spender) => OutputFate::Spent(spender),
    };
    ScriptOutput { number: create.number, vout: create.vout, fate }
}
