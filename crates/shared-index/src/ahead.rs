//! [`Course`]: whether the commit row is ahead of the index that is to be written.
//!
//! Input: the row, and what the index has. Output: why nothing may be written now, if so. After a crash, an index is as
//! the last checkpoint left it, and an index that is built anew begins at the genesis block, while the row is where the
//! last process brought it. A writer that followed the index down would take blocks from wallets that they have had
//! already. So it waits until the index was as far as the row once, or on another branch; from then on the row follows
//! the index, also down. A loader, whose index stays as it is, takes another branch only if it is longer.
//!
//! Cost: nothing, unless the last block of the index is in a generation of the row: then the tables of blocks are read.

use crate::commit::Commit;
use crate::fetch::Fetcher;
use crate::plan::Plan;
use crate::store::{Store, StoreError};
use crate::writer::WriterError;
use lydian_engine::Tip;
use lydian_index::{IndexError, RemoteContent, RemotePage, RemotePages, RemoteSegment, RemoteTables};
use lydian_primitives::BlockHash;
use lydian_stdx::lock;
use std::sync::{Arc, Mutex};

/// Why nothing is written: what the row has, the index lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ahead {
    /// The row is further on the chain of the index.
    Further,
    /// The row is on another branch, which is not shorter.
    OtherBranch,
}

/// How far a writer is with finding out.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// The row was not ahead once.
    has_met: bool,
    /// The index stays as it is.
    pub(crate) is_fixed: bool,
    /// The blocks of the generations of the row with this sequence.
    blocks: Option<(u64, RemoteTables)>,
}

impl Course {
    /// Whether the row is ahead of the index.
    pub(crate) fn ahead(
        &mut self,
        commit: &Commit,
        plan: &Plan,
        store: &Arc<dyn Store>,
    ) -> Result<Option<Ahead>, WriterError> {
        if self.has_met {
            return Ok(None);
        }
        let ahead = self.look(commit, plan, store)?;
        if ahead.is_none() {
            (self.has_met, self.blocks) = (true, None);
        }
        Ok(ahead)
    }

    fn look(&mut self, commit: &Commit, plan: &Plan, store: &Arc<dyn Store>) -> Result<Option<Ahead>, WriterError> {
        let Some((height, hash)) = commit.tip() else { return Ok(None) };
        let Some(own) = plan.export.tip() else { return Ok(Some(Ahead::Further)) };
        if plan.export.hash(height)? == Some(hash) {
            return Ok(None);
        }
        if own.height.0 < height && self.has(commit, own, store)? {
            return Ok(Some(Ahead::Further));
        }
        Ok((self.is_fixed && own.height.0 <= height).then_some(Ahead::OtherBranch))
    }

    /// Whether a block is one of the row's.
    fn has(&mut self, commit: &Commit, block: Tip, store: &Arc<dyn Store>) -> Result<bool, WriterError> {
        let height = block.height.0;
        if height >= commit.written() {
            return Ok(commit.delta_hash(height) == Some(block.hash));
        }
        let known = self.blocks.take().filter(|(sequence, _)| *sequence == commit.sequence);
        let (_, blocks) = self.blocks.insert(match known {
            Some(known) => known,
            None => (commit.sequence, read_blocks(commit, store)?),
        });
        Ok(blocks.hash(height) == Some(block.hash))
    }
}

/// The hash of a block that a commit row has; `None` above its tip. Reads the store only if the block is in a
/// generation, and not its last one.
pub fn block_hash(store: &Arc<dyn Store>, commit: &Commit, height: u32) -> Result<Option<BlockHash>, WriterError> {
    Ok(block_hashes(store, commit, &[height])?.pop().flatten())
}

/// The same for several blocks. The generations are read once.
pub(crate) fn block_hashes(
    store: &Arc<dyn Store>,
    commit: &Commit,
    heights: &[u32],
) -> Result<Vec<Option<BlockHash>>, WriterError> {
    let mut blocks = None;
    let mut hashes = Vec::with_capacity(heights.len());
    for height in heights.iter().copied() {
        let is_last = |segment: &&RemoteSegment| segment.facts.heights.end.checked_sub(1) == Some(height);
        hashes.push(match commit.content.segments.iter().find(is_last) {
            _ if height >= commit.written() => commit.delta_hash(height),
            Some(segment) => Some(segment.facts.hash),
            None => {
                let known = match blocks.take() {
                    Some(known) => known,
                    None => read_blocks(commit, store)?,
                };
                blocks.insert(known).hash(height)
            }
        });
    }
    Ok(hashes)
}

/// The blocks of the row's generations.
fn read_blocks(commit: &Commit, store: &Arc<dyn Store>) -> Result<RemoteTables, WriterError> {
    let pages = Arc::new(Pages { fetcher: Fetcher::new(Arc::clone(store)), failed: Mutex::default() });
    let content = RemoteContent { hashes: Vec::new(), ..commit.content.clone() };
    let empty = RemoteTables::empty(commit.identity, Arc::clone(&pages) as Arc<_>);
    let blocks = empty.next(&content, &mut |_| Ok(Vec::new()));
    // A time-out must be known as one.
    blocks.map_err(|error| lock(&pages.failed).take().map_or(WriterError::Index(error), WriterError::Store))
}

/// Pages of the store, with the failure of the last read.
#[derive(Debug)]
struct Pages {
    fetcher: Fetcher,
    failed: Mutex<Option<StoreError>>,
}

impl Pages {
    fn noted<T>(&self, read: Result<T, StoreError>) -> Result<T, IndexError> {
        read.map_err(|error| {
            let reason = error.to_string();
            *lock(&self.failed) = Some(error);
            IndexError::Store { reason }
        })
    }
}

impl RemotePages for Pages {
    fn read(&self, wanted: &[RemotePage]) -> Result<Vec<Vec<u8>>, IndexError> {
        self.noted(self.fetcher.read_pages(wanted))
    }

    fn read_lists(&self, generation: u64, page: u32, numbers: &[u32]) -> Result<Vec<Vec<u8>>, IndexError> {
        self.noted(self.fetcher.read_list_pages(generation, page, numbers))
    }
}
