//! [`compare`]: whether the store has what the embedded index has, value by value.
//!
//! Input: a store and the embedded index. Output: what was compared, and the first value that differs. What a commit
//! row names follows from the chain and the salt alone: so every page of every table, which together have the rows of
//! every script, and every delta must be the same bytes. Reads all of them from a quorum, in batches of the size of an
//! upload's. Writes nothing. Blocks are compared as far as this node has them.

use crate::block_upload::BlockSource;
use crate::blocks::{self, BlockHead};
use crate::commit::Commit;
use crate::limits::{WRITE_BYTES_MAX, WRITES_MAX};
use crate::plan::Plan;
use crate::seal::Sealed;
use crate::store::{BlockHeight, CommitRead, DeltaHeight, DeltaKey, Key, Replicas, Store, StoreError};
use crate::upload::{Budget, Upload};
use crate::writer::{Source, WriterError, check_identity};
use lydian_primitives::BlockHash;

/// What was compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// The sequence of the commit row.
    pub sequence: u64,
    /// The height of its last block.
    pub height: Option<u32>,
    /// Values that are equal, and their bytes.
    pub values: u64,
    pub bytes: u64,
    /// Blocks that are equal, and those that the store has and this node does not.
    pub blocks: u64,
    pub other_blocks: u64,
    /// The first difference; `None` if there is none.
    pub difference: Option<String>,
}

const BUDGET: Budget = Budget { writes: WRITES_MAX, bytes: WRITE_BYTES_MAX };

const OTHER_SEGMENTS: &str = "the store does not have the segments of this node's index yet";

/// Compares all values that the commit row names, blocks with those of a source. `told`: gets the number of values
/// after each batch, and returns whether to go on. `None` if it did not.
pub fn compare(
    store: &dyn Store,
    index: &dyn Source,
    blocks: &dyn BlockSource,
    told: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Compared>, WriterError> {
    let keyspace = store.keyspace()?.name;
    let Some(stored) = store.commit(CommitRead::Quorum)? else {
        return Err(StoreError::Refused { reason: format!("{keyspace} has no index yet") }.into());
    };
    let commit = Commit::read(&stored)?;
    check_identity(&commit.identity, &index.identity(), &keyspace)?;
    let plan = Plan::new(index.export().ok_or(WriterError::NoIndex)?, None)?;
    let height = commit.tip().map(|(height, _)| height);
    let mut comparison = Comparison {
        store,
        told,
        found: Compared { sequence: commit.sequence, height, ..Compared::default() },
        is_stopped: false,
    };
    comparison.found.difference = other_blocks(&commit, &plan);
    comparison.segments(&commit, &plan)?;
    comparison.deltas(&commit, &plan)?;
    comparison.blocks(&commit, &plan, blocks)?;
    Ok((!comparison.is_stopped).then_some(comparison.found))
}

/// Why the values cannot be compared: the row and the index are not at the same block, or have other segments.
fn other_blocks(commit: &Commit, plan: &Plan) -> Option<String> {
    let own = plan.export.tip().map(|tip| (tip.height.0, tip.hash));
    let text = |tip: Option<(u32, _)>| match tip {
        Some((height, hash)) => format!("block {hash} at height {height}"),
        None => "no block".to_owned(),
    };
    if commit.tip() != own {
        return Some(format!("the store is at {}, the index of this node at {}", text(commit.tip()), text(own)));
    }
    let is_same = commit.content.hashes.iter().copied().eq(plan.export.hashes());
    (!is_same).then(|| OTHER_SEGMENTS.to_owned())
}

struct Comparison<'a> {
    store: &'a dyn Store,
    told: &'a mut dyn FnMut(u64) -> bool,
    found: Compared,
    is_stopped: bool,
}

impl Comparison<'_> {
    fn is_over(&self) -> bool {
        self.is_stopped || self.found.difference.is_some()
    }

    fn segments(&mut self, commit: &Commit, plan: &Plan) -> Result<(), WriterError> {
        for segment in &commit.content.segments {
            if self.is_over() {
                return Ok(());
            }
            let Some(parts) = plan.parts_of(&segment.facts)? else {
                self.found.difference = Some(OTHER_SEGMENTS.to_owned());
                return Ok(());
            };
            let mut expected = Upload::new(segment.clone(), plan.export.pages(parts)?);
            while !self.is_over() && !expected.is_done() {
                expected.fill(BUDGET)?;
                let batch = expected.take(BUDGET);
                self.batch(&batch)?;
            }
        }
        Ok(())
    }

    fn deltas(&mut self, commit: &Commit, plan: &Plan) -> Result<(), WriterError> {
        let mut batch: Vec<(Key, Vec<u8>)> = Vec::new();
        for (height, hash) in (commit.written()..).zip(commit.content.hashes.iter().copied()) {
            if self.is_over() {
                return Ok(());
            }
            let key = Key::Delta(DeltaKey { at: DeltaHeight { series: commit.series, height }, hash });
            let Some(delta) = plan.export.delta(height) else {
                self.found.difference = Some(format!("{key}: the index of this node does not have it"));
                return Ok(());
            };
            batch.push((key, Sealed::Value(key).seal(&delta)));
            if BUDGET.take(batch.iter()) < batch.len() || batch.len() == BUDGET.writes {
                self.batch(&std::mem::take(&mut batch))?;
            }
        }
        if self.is_over() { Ok(()) } else { self.batch(&batch) }
    }

    fn blocks(&mut self, commit: &Commit, plan: &Plan, source: &dyn BlockSource) -> Result<(), WriterError> {
        let mut batch: Vec<(Key, Vec<u8>)> = Vec::new();
        for run in &commit.blocks {
            let mut total = Some(0);
            for height in run.heights.clone() {
                if self.is_over() {
                    return Ok(());
                }
                let at = BlockHeight { series: run.series, height };
                let Some(hash) = plan.export.hash(height)? else { return Ok(()) };
                let bytes = match source.block(height, &hash) {
                    Ok(bytes) => bytes,
                    Err(reason) => {
                        self.found.difference = Some(reason);
                        return Ok(());
                    }
                };
                let Some(bytes) = bytes else {
                    (total, self.found.other_blocks) = (None, self.found.other_blocks + 1);
                    continue;
                };
                // The head counts the bytes of the run, of which this node may not have all blocks.
                let below = match total {
                    Some(total) => total,
                    None => self.total(at, hash)?.saturating_sub(bytes.len() as u64),
                };
                total = Some(below.saturating_add(bytes.len() as u64));
                let Some(values) = blocks::values(at, hash, below, &bytes) else {
                    let key = blocks::key(at, hash, 0);
                    self.found.difference = Some(format!("{key}: what this node has there is another block"));
                    return Ok(());
                };
                batch.extend(values);
                self.found.blocks += 1;
                while batch.len() >= BUDGET.writes {
                    let rest = batch.split_off(BUDGET.take(batch.iter()));
                    self.batch(&std::mem::replace(&mut batch, rest))?;
                }
            }
        }
        while !self.is_over() && !batch.is_empty() {
            let rest = batch.split_off(BUDGET.take(batch.iter()));
            self.batch(&std::mem::replace(&mut batch, rest))?;
        }
        Ok(())
    }

    /// The bytes of a run up to a block, as its head has them; 0 if it cannot be read, which is a difference.
    fn total(&self, at: BlockHeight, hash: BlockHash) -> Result<u64, StoreError> {
        let key = blocks::key(at, hash, 0);
        let found = self.store.read(&[key], Replicas::Quorum)?.pop().flatten();
        let content = found.as_deref().and_then(|value| Sealed::Value(key).open(value).ok());
        Ok(content.and_then(|content| BlockHead::decode(content, &hash)).map_or(0, |head| head.total))
    }

    fn batch(&mut self, expected: &[(Key, Vec<u8>)]) -> Result<(), WriterError> {
        let keys: Vec<Key> = expected.iter().map(|(key, _)| *key).collect();
        let found = self.store.read(&keys, Replicas::Quorum)?;
        for ((key, expected), found) in expected.iter().zip(found.into_iter().chain(std::iter::repeat(None))) {
            let difference = match found {
                Some(found) if found == *expected => None,
                Some(_) => Some("differs from the index of this node"),
                None => Some("is missing on a quorum of replicas"),
            };
            if let Some(difference) = difference {
                self.found.difference = Some(format!("{key} {difference}"));
                return Ok(());
            }
            self.found.values += 1;
            self.found.bytes += expected.len() as u64;
        }
        self.is_stopped = !(self.told)(self.found.values);
        Ok(())
    }
}
