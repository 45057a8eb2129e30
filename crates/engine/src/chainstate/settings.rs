//! The settings of the engine, given when it is opened. Data only.

use super::assumed::AssumeValid;
use crate::event::{Observer, Unobserved};
use crate::limits::{BATCH_INPUTS, CHECKED_BYTES, CHECKPOINT_SECONDS, WINDOW_BYTES_BASE, WINDOW_BYTES_WORKER};
use crate::meter::{NoClock, StageClock};
use lydian_chain::limits::BLOCK_FILE_SIZE_MAX;
use lydian_consensus::KnownScripts;
use lydian_curve::Refereed;
use lydian_primitives::Height;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The directories of the engine.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Block and undo files.
    pub blocks: PathBuf,
    /// The block index.
    pub index: PathBuf,
    /// The coin store.
    pub coins: PathBuf,
}

impl Layout {
    /// The layout of the block store. `new_key` is for a new directory.
    pub(crate) fn chain(&self, new_key: [u8; 8]) -> lydian_chain::Layout {
        lydian_chain::Layout { blocks: self.blocks.clone(), index: self.index.clone(), new_key }
    }
}

/// Settings of the engine. No setting changes a verdict.
pub struct Settings {
    /// Threads of a run: `-par`.
    pub workers: usize,
    /// The processor's cores: at most so many batches of signatures are verified at the same time.
    pub cores: usize,
    /// Bytes for coins in memory: `-dbcache`.
    pub cache_bytes: u64,
    /// The most bytes of coins that are not durable yet: a part of the cache, and so few that a stop takes seconds.
    pub pending_bytes_max: u64,
    /// Whether the coins on disk have no index in memory: `-lowmem`. Either kind of store opens the files of the other.
    pub is_low_memory: bool,
    /// Seconds between two checkpoints while blocks arrive, so that a kill loses little. Measured by `clock`.
    pub checkpoint_seconds: u64,
    /// The most bytes of blocks between reading and retirement.
    pub window_bytes: usize,
    /// The most bytes of checked blocks that are kept for their run; 0: each is read from disk and checked again.
    pub checked_bytes: usize,
    /// The most blocks between reading and retirement; with one block the pipeline is a plain loop.
    pub window_blocks: usize,
    /// The most inputs verified in one batch.
    pub batch_inputs: usize,
    /// The last height to connect: `-stopatheight`.
    pub stop_at: Option<Height>,
    /// Whose scripts are assumed valid: `-assumevalid`. `None` by default: everything is verified.
    pub assume_valid: Option<AssumeValid>,
    /// Old block files may be deleted: `-prune`, also on request only.
    pub may_prune: bool,
    /// The most bytes of block and undo files to keep: `-prune`.
    pub prune_bytes: Option<u64>,
    /// The size at which a block file is full, at most Core's 128 MiB: less with `-fastprune`.
    pub block_file_size_max: u64,
    /// Makes the files of a new coin store differ between nodes.
    pub seed: [u8; 16],
    /// The XOR key of a new directory of block files (`xor.dat`); zeros for none.
    pub block_key: [u8; 8],
    /// `-checkblockindex`: the header tree is checked once in this number of changes; 0: never.
    pub check_tree_every: u32,
    /// `-indexrequired`: an error of a follower ends the engine.
    pub followers_required: bool,
    /// The most blocks between two moments at which the catch-up of followers looks at the active chain again, and at
    /// how many threads it may use.
    pub catch_up_blocks: usize,
    /// Tells which transactions were verified before, for instance by a mempool: a run skips their scripts. The review
    /// of blocks at the tip does not.
    pub known_scripts: Option<Arc<dyn KnownScripts>>,
    /// The verifier of signatures, with its referee. Blocks at the tip are reviewed unless this is the reference.
    pub signatures: Arc<Refereed>,
    /// Receives events that no caller's call caused, such as those of a review. Other events go to the observer of the
    /// call.
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
    /// The settings of a node with `workers` threads, and a core for each.
    pub fn new(workers: usize) -> Settings {
        Settings::on_cores(workers, workers)
    }

    /// The settings of a node with `workers` threads on so many cores.
    pub fn on_cores(workers: usize, cores: usize) -> Settings {
        let coins = lydian_coins::Settings::new(1 << 30);
        Settings {
            workers,
            cores,
            cache_bytes: coins.cache_bytes,
            pending_bytes_max: coins.pending_bytes_max,
            is_low_memory: coins.is_low_memory,
            checkpoint_seconds: CHECKPOINT_SECONDS,
            window_bytes: WINDOW_BYTES_BASE + workers.min(cores) * WINDOW_BYTES_WORKER,
            checked_bytes: CHECKED_BYTES,
            window_blocks: usize::MAX,
            batch_inputs: BATCH_INPUTS,
            stop_at: None,
            check_tree_every: 0,
            followers_required: false,
            catch_up_blocks: 256,
            known_scripts: None,
            assume_valid: None,
            may_prune: false,
            prune_bytes: None,
            block_file_size_max: BLOCK_FILE_SIZE_MAX,
            seed: [0; 16],
            block_key: [0; 8],
            signatures: Arc::new(Refereed::reference()),
            background: Arc::new(Unobserved),
            clock: Box::new(NoClock),
        }
    }

    /// The most batches of signatures that are verified at the same time.
    pub(crate) fn verifiers(&self) -> usize {
        self.workers.min(self.cores).max(1)
    }
}

/// Stops a run from outside, for instance from a signal handler's thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Ends the run after the tasks in progress.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
