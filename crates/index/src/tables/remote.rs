//! [`RemoteTables`]: a copy of the tables in another store, at one moment.
//!
//! Input: the facts of its segments, whose pages [`RemotePages`] reads by name, and the rows of the blocks behind them
//! ([`super::export`] makes both). Output: what [`super::reader`] asks. Nothing here changes: the next moment is
//! another value, which shares what stays the same.
//!
//! Memory: 12 bytes for each block and 40 more for its row; for the blocks behind the segments what an index of this
//! node needs. Cost of a next moment: the rows of new blocks, and the pages of [`Table::Blocks`] of new segments.

use super::commit::Profile;
use super::moment::Moment;
use super::numbers::Salt;
use super::pages::{Facts, PageSource};
use super::places::{BlockRow, Heights, read_blocks};
use super::rows;
use super::segment::{GROUP_BLOCKS, ScriptTables, Segment};
use super::tail::Group;
use crate::error::IndexError;
use lydian_engine::Tip;
use lydian_primitives::{BlockHash, Height};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// A table of a segment. The numbers are part of the keys of other stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Table {
    /// From a txid to numbers of transactions.
    Numbers = 0,
    /// From the number of a transaction to its place in a block.
    Sizes = 1,
    /// Hashes of blocks, and how many transactions they have.
    Blocks = 2,
    /// From the number of a transaction to its txid.
    Txids = 3,
    /// From a script to its outputs.
    Events = 4,
    /// The outputs of scripts that have many. A page belongs to the page of [`Table::Events`] that has the script.
    Lists = 5,
    /// From a spent output to its transaction: a page for each block.
    Positions = 6,
}

impl Table {
    /// The tables of an index, in the order of their numbers.
    pub fn of(profile: Profile) -> impl Iterator<Item = Table> {
        let transactions = [Table::Numbers, Table::Sizes, Table::Blocks].into_iter();
        let txids = [Table::Txids].into_iter().filter(move |_| profile.has_txids);
        let scripts = [Table::Events, Table::Lists, Table::Positions].into_iter().filter(move |_| profile.has_scripts);
        transactions.chain(txids).chain(scripts)
    }
}

/// Which index it is: pages of two indexes are alike only if this is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub genesis: BlockHash,
    pub salt: Salt,
    pub profile: Profile,
}

/// What a reader must know of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    pub heights: Range<u32>,
    /// The hash of its last block: it says which blocks all of them are.
    pub hash: BlockHash,
    /// Those of [`Table::of`].
    pub tables: Vec<(Table, Facts)>,
}

/// A segment in a store: its number there, and its facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSegment {
    pub generation: u64,
    pub facts: SegmentFacts,
}

/// The name of a page in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RemotePage {
    pub generation: u64,
    pub table: Table,
    pub page: u32,
}

/// Pages of another store, checked.
pub trait RemotePages: Debug + Send + Sync {
    /// Pages in the order of their names, read at the same time. None of them is one of [`Table::Lists`].
    fn read(&self, wanted: &[RemotePage]) -> Result<Vec<Vec<u8>>, IndexError>;

    /// Whether a page of [`Table::Events`] may have a script's key, as far as that is known without reading it. False
    /// only if it does not.
    fn may_have(&self, _page: &RemotePage, _key: u64) -> bool {
        true
    }

    /// Pages of [`Table::Lists`] that belong to a page of [`Table::Events`].
    fn read_lists(&self, generation: u64, page: u32, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError>;
}

/// What the copy has at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteContent {
    /// They follow each other from height 0 on.
    pub segments: Vec<RemoteSegment>,
    /// The hashes of the blocks behind them.
    pub hashes: Vec<BlockHash>,
    /// See [`super::TxIndexReader::epoch`].
    pub epoch: u64,
}

/// Reads the rows of blocks, by height and hash.
pub(super) type ReadDeltas<'a> = dyn FnMut(&[(u32, BlockHash)]) -> Result<Vec<Vec<u8>>, IndexError> + 'a;

/// Blocks whose rows are read at the same time: about 5 MB on mainnet.
const DELTAS_AT_ONCE: usize = 16;

/// The copy at one moment.
#[derive(Debug)]
pub struct RemoteTables {
    identity: Identity,
    pages: Arc<dyn RemotePages>,
    segments: Arc<Vec<Segment>>,
    known: Vec<KnownSegment>,
    groups: VecDeque<Group>,
    heights: Heights,
    /// Those of all blocks behind the segments.
    hashes: Vec<BlockHash>,
    epoch: u64,
}

/// A segment whose table of blocks was read.
#[derive(Clone, Debug)]
struct KnownSegment {
    segment: RemoteSegment,
    blocks: Arc<Vec<BlockRow>>,
}

impl RemoteTables {
    /// A copy without blocks.
    pub fn empty(identity: Identity, pages: Arc<dyn RemotePages>) -> RemoteTables {
        RemoteTables {
            identity,
            pages,
            segments: Arc::default(),
            known: Vec::new(),
            groups: VecDeque::new(),
            heights: Heights::new(),
            hashes: Vec::new(),
            epoch: 0,
        }
    }

    /// The copy with other content. Only what is new is read.
    pub fn next(&self, content: &RemoteContent, deltas: &mut ReadDeltas<'_>) -> Result<RemoteTables, IndexError> {
        let mut next = RemoteTables { epoch: content.epoch, ..RemoteTables::empty(self.identity, self.pages.clone()) };
        let mut segments = Vec::with_capacity(content.segments.len());
        for segment in &content.segments {
            let old = self.known.iter().find(|known| known.segment == *segment);
            let tables = open(segment, self.identity.profile, &self.pages)?;
            let blocks = match old {
                Some(known) => Arc::clone(&known.blocks),
                None => Arc::new(read_blocks(tables.blocks.as_ref()).collect::<Result<Vec<BlockRow>, _>>()?),
            };
            next.add_segment(segment, blocks)?;
            segments.push(tables);
        }
        next.segments = Arc::new(segments);
        self.keep_groups(&mut next, content);
        next.add_deltas(&content.hashes, deltas)?;
        Ok(next)
    }

    fn add_segment(&mut self, segment: &RemoteSegment, blocks: Arc<Vec<BlockRow>>) -> Result<(), IndexError> {
        let facts = &segment.facts;
        let wrong = |what: &str| {
            let reason = format!("generation {} of the store's index is damaged: {what}", segment.generation);
            Err(IndexError::Store { reason })
        };
        let (first, range) = (self.heights.len(), &facts.heights);
        let first_number = self.heights.first(first);
        if range.start != first || blocks.len() as u64 != u64::from(range.end.saturating_sub(first)) {
            return wrong("it has other heights than those behind the one before");
        }
        if blocks.last().is_none_or(|block| block.hash != facts.hash) {
            return wrong("its last block is another one");
        }
        if blocks.iter().any(|block| self.heights.push(block.transactions, block.outputs).is_none()) {
            return wrong("its blocks have more transactions than there are numbers");
        }
        let count = self.heights.first(range.end) - first_number;
        let is_other = |(table, facts): &(Table, Facts)| match table {
            Table::Numbers | Table::Sizes | Table::Txids => (facts.first, facts.rows) != (first_number, count),
            Table::Events | Table::Lists => facts.first != first_number,
            Table::Blocks | Table::Positions => facts.first != u64::from(first),
        };
        if facts.tables.iter().any(is_other) {
            return wrong("its tables are those of other transactions");
        }
        self.known.push(KnownSegment { segment: segment.clone(), blocks });
        Ok(())
    }

    /// Takes over the blocks behind the segments that stay.
    fn keep_groups(&self, next: &mut RemoteTables, content: &RemoteContent) {
        let (from, own) = (next.heights.len(), self.written());
        let below = from.checked_sub(own).and_then(|below| self.hashes.get(below as usize..));
        let Some(old) = below else { return };
        let same = old.iter().zip(&content.hashes).take_while(|(old, new)| old == new).count();
        let mut groups: VecDeque<Group> = self.groups.iter().filter(|group| group.from >= from).cloned().collect();
        for _ in same..old.len() {
            while groups.pop_back_if(|group| group.blocks() == 0).is_some() {}
            if let Some(group) = groups.back_mut() {
                group.pop();
            }
        }
        while groups.pop_back_if(|group| group.blocks() == 0).is_some() {}
        for group in &groups {
            for row in &group.rows.blocks {
                // They had numbers before.
                let _ = next.heights.push(row.transactions, row.outputs);
            }
        }
        next.hashes = old.get(..same).unwrap_or_default().to_vec();
        next.groups = groups;
    }

    /// Adds the blocks that are missing behind those that are here.
    fn add_deltas(&mut self, hashes: &[BlockHash], deltas: &mut ReadDeltas<'_>) -> Result<(), IndexError> {
        let new: Vec<(u32, BlockHash)> =
            (self.heights.len()..).zip(hashes.iter().skip(self.hashes.len()).copied()).collect();
        for some in new.chunks(DELTAS_AT_ONCE) {
            for ((height, hash), delta) in some.iter().zip(deltas(some)?) {
                let wrong = |what: &str| {
                    let reason = format!("the store's index is damaged: the delta of block {hash}: {what}");
                    IndexError::Store { reason }
                };
                let rows = rows::decode(&delta, self.identity.profile).ok_or_else(|| wrong("it cannot be decoded"))?;
                if rows.block.hash != *hash {
                    return Err(wrong("it is that of another block"));
                }
                let pushed = self.heights.push(rows.block.transactions, rows.block.outputs);
                pushed.ok_or_else(|| wrong("its transactions have no numbers"))?;
                if self.groups.back().is_none_or(Group::is_full) {
                    self.groups.push_back(Group::new(*height, 0));
                }
                if let Some(group) = self.groups.back_mut() {
                    group.push(rows);
                    group.settle_all();
                }
                self.hashes.push(*hash);
            }
        }
        let is_whole = self.hashes == hashes;
        let reason = "the store's index gave other deltas than were asked for".to_owned();
        if is_whole { Ok(()) } else { Err(IndexError::Store { reason }) }
    }

    pub(super) fn moment(&self) -> Moment<'_> {
        let RemoteTables { segments, groups, heights, epoch, .. } = self;
        Moment { segments, groups, heights, tip: self.tip(), epoch: *epoch }
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    fn written(&self) -> u32 {
        self.segments.last().map_or(0, |segment| segment.heights.end)
    }

    /// The block up to which the copy has the chain.
    pub fn tip(&self) -> Option<Tip> {
        let height = self.heights.len().checked_sub(1)?;
        Some(Tip { height: Height(height), hash: self.hash(height)? })
    }

    /// The hash of the block at a height; `None` above the tip.
    pub fn hash(&self, height: u32) -> Option<BlockHash> {
        if let Some(above) = height.checked_sub(self.written()) {
            return self.hashes.get(above as usize).copied();
        }
        let known = self.known.get(self.known.partition_point(|known| known.segment.facts.heights.end <= height))?;
        let at = height.checked_sub(known.segment.facts.heights.start)?;
        known.blocks.get(at as usize).map(|row| row.hash)
    }

    /// The height of a block. Looks at the hashes of all blocks, those of the last ones first: a few milliseconds on
    /// mainnet.
    pub fn height_of(&self, hash: &BlockHash) -> Option<u32> {
        if let Some(above) = self.hashes.iter().rposition(|other| other == hash) {
            return self.written().checked_add(u32::try_from(above).ok()?);
        }
        self.known.iter().rev().find_map(|known| {
            let at = known.blocks.iter().rposition(|row| row.hash == *hash)?;
            known.segment.facts.heights.start.checked_add(u32::try_from(at).ok()?)
        })
    }
}

/// The tables of a segment.
fn open(segment: &RemoteSegment, profile: Profile, pages: &Arc<dyn RemotePages>) -> Result<Segment, IndexError> {
    let RemoteSegment { generation, facts } = segment;
    let table = |table: Table| -> Result<Arc<dyn PageSource>, IndexError> {
        let found = facts.tables.iter().find(|(other, _)| *other == table);
        let reason = || format!("generation {generation} of the store's index has no table {table:?}");
        let (_, facts) = found.ok_or_else(|| IndexError::Store { reason: reason() })?;
        Ok(Arc::new(RemoteTable { pages: Arc::clone(pages), generation: *generation, table, facts: *facts }))
    };
    let scripts = match profile.has_scripts {
        true => Some(ScriptTables {
            keys: table(Table::Events)?,
            lists: table(Table::Lists)?,
            positions: table(Table::Positions)?,
        }),
        false => None,
    };
    let heights = facts.heights.clone();
    let is_group = heights.start < heights.end
        && heights.start.is_multiple_of(GROUP_BLOCKS)
        && heights.end.is_multiple_of(GROUP_BLOCKS);
    if !is_group {
        let reason = format!("generation {generation} of the store's index has the heights {heights:?}");
        return Err(IndexError::Store { reason });
    }
    Ok(Segment {
        heights,
        numbers: table(Table::Numbers)?,
        sizes: table(Table::Sizes)?,
        blocks: table(Table::Blocks)?,
        txids: if profile.has_txids { Some(table(Table::Txids)?) } else { None },
        scripts,
    })
}

/// A table of a segment in the store.
#[derive(Debug)]
struct RemoteTable {
    pages: Arc<dyn RemotePages>,
    generation: u64,
    table: Table,
    facts: Facts,
}

impl RemoteTable {
    fn name(&self, page: u32) -> RemotePage {
        RemotePage { generation: self.generation, table: self.table, page }
    }
}

impl PageSource for RemoteTable {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn page(&self, number: u32) -> Result<Vec<u8>, IndexError> {
        let page = self.pages.read(&[self.name(number)])?.pop();
        page.ok_or_else(|| self.damaged(number, "it was not read"))
    }

    fn pages(&self, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        let names: Vec<RemotePage> = numbers.iter().map(|number| self.name(*number)).collect();
        self.pages.read(&names)
    }

    fn cached_page(&self, _number: u32) -> Result<Option<Vec<u8>>, IndexError> {
        Ok(None)
    }

    fn may_have(&self, number: u32, key: u64) -> bool {
        self.pages.may_have(&self.name(number), key)
    }

    fn remote(&self, number: u32) -> Option<(&dyn RemotePages, RemotePage)> {
        Some((self.pages.as_ref(), self.name(number)))
    }

    fn list_pages(&self, key_page: u32, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        self.pages.read_lists(self.generation, key_page, numbers)
    }

    fn damaged(&self, number: u32, what: &'static str) -> IndexError {
        let RemoteTable { generation, table, .. } = self;
        let reason = format!(
            "the store's index is damaged: page {number} of table {table:?} of generation {generation}: {what}"
        );
        IndexError::Store { reason }
    }
}
