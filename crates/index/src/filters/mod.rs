//! The basic filters of all blocks (BIP-0158) with their headers (BIP-0157): Core's `-blockfilterindex`.
//!
//! Input: blocks with the coins they spent. Output: the filter, its hash and the filter header of a block of the chain,
//! one at a time or in ranges. Filters are made by any worker ([`gcs`]); connecting a block hashes 64 bytes and appends
//! a record to each of two logs ([`log`]).
//!
//! Invariants: the logs have the blocks of the active chain only, each once, in its order: after any reorganisation,
//! kill or loss of power, the files of a tip have the same bytes. When blocks leave the chain that the tip file has, it
//! is lowered to the block below them before the logs are cut. Cost per block: a SipHash of each script and a sort (by
//! any worker), and 164 bytes of disk beside the filter. Memory: two megabytes of records that wait.

mod branches;
mod gcs;
pub(crate) mod inspect;
mod log;
mod tip;

pub use gcs::{FilterError, basic_filter, filter_hash, filter_header, match_any};
pub use log::FilterEntry;
pub use tip::FILTERS_FORMAT;

use crate::error::IndexError;
use log::Logs;
use lydian_disk::{Disk, OwnDir, OwnFile, Proof};
use lydian_engine::{BlockWithSpent, ConnectedBlock, Follower, FollowerError, Left, Prepare, Rows, Tip};
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::lock;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// The name in `getindexinfo`, as in Core.
pub const FILTERS_NAME: &str = "basic block filter index";

/// The directory, relative to the data directory of the chain.
pub const FILTERS_DIR: &str = "indexes/blockfilter/basic";

/// The files in it.
pub const FILTERS_FILES: &[OwnFile] = &[
    OwnFile { name: FILTERS_FILE, proof: Proof::Directory },
    OwnFile { name: ENTRIES_FILE, proof: Proof::Directory },
    OwnFile { name: TIP_FILE, proof: Proof::Directory },
];

const FILTERS_FILE: &str = "filters.log";
const ENTRIES_FILE: &str = "headers.log";
const TIP_FILE: &str = "filters.tip";

/// Bytes of filters that are read at once, with the index locked.
const PIECE_BYTES: u64 = 1 << 20;

/// Entries that are read at once, with the index locked.
const PIECE_ENTRIES: u32 = 2_048;

/// The index: a follower of the chain.
#[derive(Debug)]
pub struct FilterIndex {
    shared: Arc<Shared>,
    genesis: BlockHash,
    durable: Option<Tip>,
}

/// Answers queries, from any thread.
#[derive(Clone, Debug)]
pub struct FilterReader(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    own: OwnDir,
    state: Mutex<State>,
    /// The number of blocks, for a look that never waits.
    blocks: AtomicU32,
}

/// The state in memory: that of the last block connected.
#[derive(Debug)]
struct State {
    tip: Option<Tip>,
    /// The filter header of the tip; zeros before the genesis block.
    header: [u8; 32],
    logs: Logs,
}

impl FilterIndex {
    /// Opens the index in a directory, or creates it; at the block of its last checkpoint.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        genesis: BlockHash,
    ) -> Result<(FilterIndex, FilterReader), IndexError> {
        disk.create_dir(dir)?;
        let own = OwnDir::new(dir, FILTERS_FILES);
        let durable = tip::read(disk.as_ref(), &dir.join(TIP_FILE), &genesis)?;
        let blocks = durable.map_or(0, |tip| tip.height.0 + 1);
        let logs = Logs::open(disk.as_ref(), &own, (FILTERS_FILE, ENTRIES_FILE), blocks)?;
        let mut header = [0; 32];
        if let Some(tip) = durable {
            let entry = logs.entries(disk.as_ref(), tip.height, 1)?.pop().map(|entry| entry.filter);
            match entry.filter(|entry| entry.block == tip.hash) {
                Some(entry) => header = entry.header,
                None => {
                    let what = "the tip file names a block that has no record";
                    return Err(IndexError::damaged(&dir.join(TIP_FILE), 0, what));
                }
            }
        }
        let state = Mutex::new(State { tip: durable, header, logs });
        let shared = Arc::new(Shared { disk, own, state, blocks: AtomicU32::new(blocks) });
        let reader = FilterReader(Arc::clone(&shared));
        Ok((FilterIndex { shared, genesis, durable }, reader))
    }

    /// Cuts blocks that left the chain off the files. A tip file that names one of them is lowered before.
    fn cut_files(&mut self, state: &mut State) -> Result<(), IndexError> {
        if !state.logs.must_be_cut() {
            return Ok(());
        }
        if self.durable.is_some_and(|durable| durable.height.0 >= state.logs.blocks()) {
            match state.tip {
                Some(tip) => self.write_tip(tip)?,
                None => self.remove_tip()?,
            }
        }
        state.logs.cut_files(self.shared.disk.as_ref(), &self.shared.own)
    }

    fn write_tip(&mut self, tip: Tip) -> Result<(), IndexError> {
        let Shared { disk, own, .. } = &*self.shared;
        own.replace(disk.as_ref(), &own.path().join(TIP_FILE), &tip::encode(tip, &self.genesis))?;
        self.durable = Some(tip);
        Ok(())
    }

    fn remove_tip(&mut self) -> Result<(), IndexError> {
        let Shared { disk, own, .. } = &*self.shared;
        own.remove(disk.as_ref(), &own.path().join(TIP_FILE))?;
        disk.sync_dir(own.path())?;
        self.durable = None;
        Ok(())
    }
}

impl FilterReader {
    /// The number of blocks of the index. Never waits.
    pub fn blocks(&self) -> u32 {
        self.0.blocks.load(Ordering::Relaxed)
    }

    /// The last block of the index.
    pub fn tip(&self) -> Option<Tip> {
        lock(&self.0.state).tip
    }

    /// The filter's hash and header of the block that the index has at a height.
    pub fn entry(&self, height: Height) -> Result<Option<FilterEntry>, IndexError> {
        Ok(self.entries(height, 1)?.pop())
    }

    /// Those of the blocks from a height on: `count` of them, or fewer at the end of the index.
    pub fn entries(&self, from: Height, count: u32) -> Result<Vec<FilterEntry>, IndexError> {
        let mut found = Vec::new();
        let mut next = from;
        while next.0 - from.0 < count {
            let piece = PIECE_ENTRIES.min(count - (next.0 - from.0));
            let entries = lock(&self.0.state).logs.entries(self.0.disk.as_ref(), next, piece)?;
            let is_end = entries.len() < piece as usize;
            found.extend(entries.into_iter().map(|entry| entry.filter));
            next = Height(next.0.saturating_add(piece));
            if is_end {
                break;
            }
        }
        Ok(found)
    }

    /// The filter of a block; `None` if the index does not have this block at this height.
    pub fn filter(&self, height: Height, block: &BlockHash) -> Result<Option<(Vec<u8>, FilterEntry)>, IndexError> {
        let state = lock(&self.0.state);
        let disk = self.0.disk.as_ref();
        let Some(entry) = state.logs.entries(disk, height, 1)?.pop().filter(|entry| entry.filter.block == *block)
        else {
            return Ok(None);
        };
        let filter = state.logs.filters(disk, height, &[entry])?.pop();
        Ok(filter.map(|(_, filter)| (filter, entry.filter)))
    }

    /// The filters of the blocks from a height on: at least one, if the index has it, and as many more, up to `count`,
    /// as are read at once.
    pub fn filters(&self, from: Height, count: u32) -> Result<Vec<(BlockHash, Vec<u8>)>, IndexError> {
        let state = lock(&self.0.state);
        let mut entries = state.logs.entries(self.0.disk.as_ref(), from, count.min(PIECE_ENTRIES))?;
        let mut bytes = 0_u64;
        let fits = entries.iter().take_while(|entry| {
            bytes = bytes.saturating_add(u64::from(entry.size));
            bytes <= PIECE_BYTES
        });
        let fits = fits.count().max(1);
        entries.truncate(fits);
        state.logs.filters(self.0.disk.as_ref(), from, &entries)
    }
}

/// The rows of a block: its filter, and the filter's hash.
#[derive(Debug)]
struct Prepared {
    filter: Vec<u8>,
    hash: [u8; 32],
}

#[derive(Debug)]
struct Preparer;

fn prepare(block: &BlockWithSpent<'_>) -> Prepared {
    let filter = basic_filter(block);
    let hash = filter_hash(&filter);
    Prepared { filter, hash }
}

impl Prepare for Preparer {
    fn prepare(&self, block: &BlockWithSpent<'_>) -> Rows {
        let prepared = prepare(block);
        let bytes = size_of::<Prepared>() + prepared.filter.len();
        Rows::new(prepared, bytes)
    }
}

impl Follower for FilterIndex {
    fn name(&self) -> &str {
        FILTERS_NAME
    }

    fn durable_tip(&self) -> Option<Tip> {
        self.durable
    }

    fn preparer(&self) -> Option<Arc<dyn Prepare>> {
        Some(Arc::new(Preparer))
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, rows: Option<Rows>) -> Result<(), FollowerError> {
        let Prepared { filter, hash } = match rows {
            Some(rows) => rows.take(),
            None => prepare(&block.with_spent()),
        };
        let shared = Arc::clone(&self.shared);
        let mut state = lock(&shared.state);
        assert_eq!(block.height.0, state.logs.blocks(), "blocks come in the order of the chain");
        self.cut_files(&mut state)?;
        let header = filter_header(&hash, &state.header);
        let block = Tip { height: block.height, hash: block.block.hash() };
        state.logs.push(FilterEntry { block: block.hash, hash, header }, &filter)?;
        (state.tip, state.header) = (Some(block), header);
        shared.blocks.store(state.logs.blocks(), Ordering::Relaxed);
        Ok(())
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        let mut state = lock(&self.shared.state);
        assert_eq!(block.height.0 + 1, state.logs.blocks(), "the last block leaves the chain first");
        // The files are cut when another block is connected, or at the checkpoint.
        let before = state.logs.pop(self.shared.disk.as_ref())?;
        state.header = before.map_or([0; 32], |entry| entry.header);
        let height = block.height.0.checked_sub(1).map(Height);
        state.tip = height.map(|height| Tip { height, hash: block.block.header().prev_block });
        self.shared.blocks.store(state.logs.blocks(), Ordering::Relaxed);
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, tip: Tip) -> Result<(), FollowerError> {
        let shared = Arc::clone(&self.shared);
        let mut state = lock(&shared.state);
        assert_eq!(state.tip, Some(tip), "a checkpoint is at the last block");
        self.cut_files(&mut state)?;
        if self.durable != Some(tip) {
            state.logs.sync()?;
            self.write_tip(tip)?;
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        let shared = Arc::clone(&self.shared);
        let mut state = lock(&shared.state);
        self.remove_tip()?;
        state.logs = Logs::open(shared.disk.as_ref(), &shared.own, (FILTERS_FILE, ENTRIES_FILE), 0)?;
        (state.tip, state.header) = (None, [0; 32]);
        shared.blocks.store(0, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
