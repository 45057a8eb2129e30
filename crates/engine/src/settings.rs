//! What the engine is told when it is opened. Data only.

use crate::assumed::AssumeValid;
use crate::event::{Observer, Unobserved};
use crate::limits::{BATCH_INPUTS, CHECKPOINT_SECONDS, WINDOW_BYTES_BASE, WINDOW_BYTES_WORKER};
use crate::meter::{NoClock, StageClock};
use lydian_chain::limits::BLOCK_FILE_SIZE_MAX;
use lydian_curve::Refereed;
use lydian_primitives::Height;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where everything lies.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Block and undo files.
    pub blocks: PathBuf,
    /// Their index.
    pub index: PathBuf,
    /// The coin store.
    pub coins: PathBuf,
}

impl Layout {
    /// The part of the block store. `new_key` is for a new directory.
    pub(crate) fn chain(&self, new_key: [u8; 8]) -> lydian_chain::Layout {
        lydian_chain::Layout { blocks: self.blocks.clone(), index: self.index.clone(), new_key }
    }

    /// The file of [`crate::totals`].
    pub(crate) fn totals(&self) -> PathBuf {
        self.index.join(crate::totals::FILE)
    }
}

/// How the engine works. No setting changes a verdict.
pub struct Settings {
    /// Threads of a run: `-par`.
    pub workers: usize,
    /// Bytes for coins in memory: `-dbcache`.
    pub cache_bytes: u64,
    /// Bytes of coins that are not durable yet, at most: so that a stop takes seconds.
    pub pending_bytes_max: u64,
    /// Seconds between two checkpoints while blocks come: so that a kill loses little. Counted by `clock`.
    pub checkpoint_seconds: u64,
    /// Bytes of blocks between reading and retirement.
    pub window_bytes: usize,
    /// The same in blocks; one makes the pipeline a plain loop.
    pub window_blocks: usize,
    /// Inputs verified in one batch, where there are that many.
    pub batch_inputs: usize,
    /// The last height to connect: `-stopatheight`.
    pub stop_at: Option<Height>,
    /// Scripts that are taken to be valid: `-assumevalid`. None by default: everything is verified.
    pub assume_valid: Option<AssumeValid>,
    /// Bytes of block and undo files to keep at most: `-prune`.
    pub prune_bytes: Option<u64>,
    /// Where block files are full, at most Core's 128 MiB: less with `-fastprune`.
    pub block_file_size_max: u64,
    /// Makes the files of a new coin store differ between nodes.
    pub seed: [u8; 16],
    /// The key of a new directory of block files (`xor.dat`); zeros for none.
    pub block_key: [u8; 8],
    /// `-checkblockindex`: the header tree is checked after every so many changes; 0: never.
    pub check_tree_every: u32,
    /// Who verifies signatures, and how it is watched. Blocks at the tip are reviewed where this is not the reference.
    pub signatures: Arc<Refereed>,
    /// Told of what no call brought about: what follows from a review. The others are told by their caller's observer.
    pub background: Arc<dyn Observer + Send>,
    pub clock: Box<dyn StageClock>,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Settings");
        shown.field("workers", &self.workers).field("cache_bytes", &self.cache_bytes);
        shown.field("window_bytes", &self.window_bytes).field("signatures", &self.signatures).finish_non_exhaustive()
    }
}

impl Settings {
    /// The settings of a node with so many threads.
    pub fn new(workers: usize) -> Settings {
        Settings {
            workers,
            cache_bytes: 1 << 30,
            pending_bytes_max: 1 << 30,
            checkpoint_seconds: CHECKPOINT_SECONDS,
            window_bytes: WINDOW_BYTES_BASE + workers * WINDOW_BYTES_WORKER,
            window_blocks: usize::MAX,
            batch_inputs: BATCH_INPUTS,
            stop_at: None,
            check_tree_every: 0,
            assume_valid: None,
            prune_bytes: None,
            block_file_size_max: BLOCK_FILE_SIZE_MAX,
            seed: [0; 16],
            block_key: [0; 8],
            signatures: Arc::new(Refereed::reference()),
            background: Arc::new(Unobserved),
            clock: Box::new(NoClock),
        }
    }
}

/// Stops a run from outside, for instance from a signal's thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// The run ends after the tasks that are going on.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
