//! [`Commit`]: the row that names everything a reader needs.
//!
//! Input: its content. Output: bytes, or the content again. Accepts any bytes: a row whose parts do not fit together
//! is an error. Size: about 230 bytes for each generation and 32 for each delta, 20 kB on mainnet.

use crate::runs::{BlockRun, are_in_order};
use crate::seal::{BLOCKS_FORMAT, SHARED_FORMAT, Sealed};
use crate::store::{StoreError, StoredCommit};
use lydian_index::{Facts, GROUP_BLOCKS, Identity, Profile, RemoteContent, RemoteSegment, Salt, SegmentFacts, Table};
use lydian_primitives::{BlockHash, ParseError, Reader};
use std::ops::Range;

/// Names a process that writes: random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriterId(pub [u8; 16]);

/// What is no longer named, and goes an hour later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retired {
    /// Seconds since 1970, by the clock of the writer.
    pub since: u64,
    pub what: Leftover,
}

/// What a retired entry removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leftover {
    Generation(RemoteSegment),
    /// The deltas of these heights.
    Deltas {
        series: u64,
        heights: Range<u32>,
    },
    /// The blocks of these heights.
    Blocks {
        series: u64,
        heights: Range<u32>,
    },
}

/// The commit row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub sequence: u64,
    pub identity: Identity,
    /// The process that wrote it.
    pub writer: WriterId,
    /// The next number of a generation or of a series. None is given twice.
    pub next: u64,
    /// Generations, the hashes of the blocks behind them, and a number that changes whenever blocks leave.
    pub content: RemoteContent,
    /// Generations that are being written. No reader uses them.
    pub writing: Vec<RemoteSegment>,
    /// The series of the deltas.
    pub series: u64,
    /// The heights of the series whose deltas may be in the store: those below were retired, none above was named.
    pub delta_heights: Range<u32>,
    pub retired: Vec<Retired>,
    /// The blocks of the chain whose bytes are in the store, in the order of their heights.
    pub blocks: Vec<BlockRun>,
}

const DAMAGED: &str = "it cannot be decoded";
const INCONSISTENT: &str = "its parts do not fit together";

impl Commit {
    /// The height behind the generations, where deltas begin.
    pub fn written(&self) -> u32 {
        self.content.segments.last().map_or(0, |segment| segment.facts.heights.end)
    }

    /// Height and hash of the last block.
    pub fn tip(&self) -> Option<(u32, BlockHash)> {
        let count = u32::try_from(self.content.hashes.len()).unwrap_or(u32::MAX);
        let height = self.written().checked_add(count)?.checked_sub(1)?;
        let last = self.content.segments.last().map(|segment| segment.facts.hash);
        Some((height, self.content.hashes.last().copied().or(last)?))
    }

    /// How many blocks are in the store.
    pub fn stored_blocks(&self) -> u32 {
        let counts = self.blocks.iter().map(|run| run.heights.end - run.heights.start);
        counts.fold(0, u32::saturating_add)
    }

    /// The hash of a block that has a delta.
    pub(crate) fn delta_hash(&self, height: u32) -> Option<BlockHash> {
        self.content.hashes.get(height.checked_sub(self.written())? as usize).copied()
    }

    /// Whether this row may come after another one of the same keyspace: numbers only grow, and each is given once.
    pub(crate) fn may_follow(&self, older: &Commit) -> bool {
        let all = |commit: &Commit| -> Vec<RemoteSegment> {
            let retired = commit.retired.iter().filter_map(|retired| match &retired.what {
                Leftover::Generation(segment) => Some(segment.clone()),
                Leftover::Deltas { .. } | Leftover::Blocks { .. } => None,
            });
            commit.content.segments.iter().chain(&commit.writing).cloned().chain(retired).collect()
        };
        let (own, others) = (all(self), all(older));
        let is_new = |one: &RemoteSegment| one.generation >= older.next || others.contains(one);
        let is_run =
            |run: &BlockRun| run.series >= older.next || older.blocks.iter().any(|other| other.series == run.series);
        self.blocks.iter().all(is_run)
            && self.next >= older.next
            && self.series >= older.series
            && self.content.epoch >= older.content.epoch
            && own.iter().all(is_new)
    }

    pub(crate) fn store(&self) -> StoredCommit {
        let value = Sealed::Commit(self.sequence).seal_as(self.format(), &self.encode());
        StoredCommit { sequence: self.sequence, value }
    }

    /// A row that names no block is one that every release reads.
    fn format(&self) -> u16 {
        let is_of_blocks = |retired: &Retired| matches!(retired.what, Leftover::Blocks { .. });
        let has_blocks = !self.blocks.is_empty() || self.retired.iter().any(is_of_blocks);
        if has_blocks { BLOCKS_FORMAT } else { SHARED_FORMAT }
    }

    /// The row again. Its sequence must be that of the column.
    pub fn read(stored: &StoredCommit) -> Result<Commit, StoreError> {
        let sealed = Sealed::Commit(stored.sequence);
        let (version, content) = sealed.open_as(BLOCKS_FORMAT, &stored.value)?;
        let mut reader = Reader::new(content);
        let commit = decode(stored.sequence, version, &mut reader).map_err(|_| sealed.damaged(DAMAGED))?;
        let commit = commit.filter(|_| reader.remaining() == 0).ok_or_else(|| sealed.damaged(DAMAGED))?;
        if commit.is_consistent() { Ok(commit) } else { Err(sealed.damaged(INCONSISTENT)) }
    }

    /// Whether the generations follow each other, and every number was given by the row.
    fn is_consistent(&self) -> bool {
        let mut end = 0;
        for RemoteSegment { facts, .. } in &self.content.segments {
            let Range { start, end: next } = facts.heights;
            if start != end || next <= start || !next.is_multiple_of(GROUP_BLOCKS) {
                return false;
            }
            end = next;
        }
        let numbers = self.content.segments.iter().chain(&self.writing).map(|segment| segment.generation);
        let runs = self.blocks.iter().map(|run| run.series);
        let are_given = numbers.chain([self.series]).chain(runs).all(|number| number < self.next);
        let is_named = |height: u32| self.delta_heights.contains(&height);
        let deltas = self.tip().map_or(0..0, |(tip, _)| end..tip.saturating_add(1));
        are_given
            && self.sequence > 0
            && are_in_order(&self.blocks)
            && (deltas.is_empty() || (is_named(deltas.start) && is_named(deltas.end - 1)))
    }

    fn encode(&self) -> Vec<u8> {
        let Identity { genesis, salt, profile } = &self.identity;
        let mut out = Vec::new();
        out.extend_from_slice(&genesis.0);
        out.extend_from_slice(&salt.to_bytes());
        out.push(profile.bits());
        out.extend_from_slice(&self.writer.0);
        for number in [self.next, self.content.epoch, self.series] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        put_range(&self.delta_heights, &mut out);
        for segments in [&self.content.segments, &self.writing] {
            put_count(segments.len(), &mut out);
            segments.iter().for_each(|segment| put_segment(segment, &mut out));
        }
        put_count(self.content.hashes.len(), &mut out);
        self.content.hashes.iter().for_each(|hash| out.extend_from_slice(&hash.0));
        put_count(self.retired.len(), &mut out);
        for Retired { since, what } in &self.retired {
            out.extend_from_slice(&since.to_le_bytes());
            match what {
                Leftover::Generation(segment) => {
                    out.push(GENERATION);
                    put_segment(segment, &mut out);
                }
                Leftover::Deltas { series, heights } => {
                    out.push(DELTAS);
                    out.extend_from_slice(&series.to_le_bytes());
                    put_range(heights, &mut out);
                }
                Leftover::Blocks { series, heights } => {
                    out.push(BLOCKS);
                    out.extend_from_slice(&series.to_le_bytes());
                    put_range(heights, &mut out);
                }
            }
        }
        if self.format() == BLOCKS_FORMAT {
            put_count(self.blocks.len(), &mut out);
            for BlockRun { series, heights } in &self.blocks {
                out.extend_from_slice(&series.to_le_bytes());
                put_range(heights, &mut out);
            }
        }
        out
    }
}

const GENERATION: u8 = 0;
const DELTAS: u8 = 1;
const BLOCKS: u8 = 2;

fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}

fn put_range(range: &Range<u32>, out: &mut Vec<u8>) {
    out.extend_from_slice(&range.start.to_le_bytes());
    out.extend_from_slice(&range.end.to_le_bytes());
}

/// Its number, heights and last block, and for each table its facts.
fn put_segment(segment: &RemoteSegment, out: &mut Vec<u8>) {
    let RemoteSegment { generation, facts } = segment;
    out.extend_from_slice(&generation.to_le_bytes());
    put_range(&facts.heights, out);
    out.extend_from_slice(&facts.hash.0);
    for (_, Facts { first, rows, pages }) in &facts.tables {
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&rows.to_le_bytes());
        out.extend_from_slice(&pages.to_le_bytes());
    }
}

fn read_u64(reader: &mut Reader<'_>) -> Result<u64, ParseError> {
    Ok(u64::from_le_bytes(reader.array()?))
}

fn read_range(reader: &mut Reader<'_>) -> Result<Range<u32>, ParseError> {
    Ok(reader.u32()?..reader.u32()?)
}

fn read_segment(profile: Profile, reader: &mut Reader<'_>) -> Result<RemoteSegment, ParseError> {
    let generation = read_u64(reader)?;
    let (heights, hash) = (read_range(reader)?, BlockHash(reader.array()?));
    let facts = |table: Table| -> Result<(Table, Facts), ParseError> {
        Ok((table, Facts { first: read_u64(reader)?, rows: read_u64(reader)?, pages: reader.u32()? }))
    };
    let tables = Table::of(profile).map(facts).collect::<Result<_, _>>()?;
    Ok(RemoteSegment { generation, facts: SegmentFacts { heights, hash, tables } })
}

/// A counted list. Nothing is allocated for entries that the bytes do not have.
fn read_list<T>(
    reader: &mut Reader<'_>,
    mut one: impl FnMut(&mut Reader<'_>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    let mut all = Vec::new();
    for _ in 0..reader.u32()? {
        all.push(one(reader)?);
    }
    Ok(all)
}

/// `None` if a number is none that a row has.
fn decode(sequence: u64, version: u16, reader: &mut Reader<'_>) -> Result<Option<Commit>, ParseError> {
    let (genesis, salt) = (BlockHash(reader.array()?), Salt::from_bytes(reader.array()?));
    let [bits] = reader.array()?;
    let Some(profile) = Profile::of_bits(bits) else { return Ok(None) };
    let writer = WriterId(reader.array()?);
    let (next, epoch, series) = (read_u64(reader)?, read_u64(reader)?, read_u64(reader)?);
    let delta_heights = read_range(reader)?;
    let segments = read_list(reader, |reader| read_segment(profile, reader))?;
    let writing = read_list(reader, |reader| read_segment(profile, reader))?;
    let hashes = read_list(reader, |reader| Ok(BlockHash(reader.array()?)))?;
    let retired = read_list(reader, |reader| {
        let since = read_u64(reader)?;
        let [kind] = reader.array()?;
        let what = match kind {
            GENERATION => Leftover::Generation(read_segment(profile, reader)?),
            DELTAS => Leftover::Deltas { series: read_u64(reader)?, heights: read_range(reader)? },
            BLOCKS => Leftover::Blocks { series: read_u64(reader)?, heights: read_range(reader)? },
            _ => return Ok(None),
        };
        Ok(Some(Retired { since, what }))
    })?;
    let Some(retired) = retired.into_iter().collect() else { return Ok(None) };
    let run = |reader: &mut Reader<'_>| Ok(BlockRun { series: read_u64(reader)?, heights: read_range(reader)? });
    let blocks = if version == BLOCKS_FORMAT { read_list(reader, run)? } else { Vec::new() };
    let identity = Identity { genesis, salt, profile };
    let content = RemoteContent { segments, hashes, epoch };
    Ok(Some(Commit { sequence, identity, writer, next, content, writing, series, delta_heights, retired, blocks }))
}
