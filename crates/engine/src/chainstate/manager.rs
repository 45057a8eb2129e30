//! The state shared by all parts of the engine: the stores, the header tree, the followers.
//!
//! Invariants: nothing else writes to the stores; a lock on the tree is held for a single query, so that a worker never
//! waits for the work of another.

use super::arrivals::Arrivals;
use super::checked::CheckedBlocks;
use super::coins::Chainstate;
use super::followers::{Followers, Standing};
use super::reviews::Reviews;
use super::settings::Settings;
use super::turns::Turns;
use crate::error::EngineError;
use crate::event::{Event, Observer, log};
use crate::log::LogLevel;
use crate::meter::{Meter, Stage};
use lydian_chain::{BlockPosition, BlockStore, HeaderId, HeaderTree};
use lydian_coins::{CheckpointReport, Tip};
use lydian_consensus::{Ancestor, HeaderView, KnownScripts, Params, U256, Violation};
use lydian_disk::Disk;
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::{IgnorePoison, lock};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The number of blocks for which the reason of invalidity is remembered: more than callers can wait for at once.
const INVALID_REMEMBERED: usize = 64;

/// Core's `MIN_BLOCKS_TO_KEEP`.
const BLOCKS_TO_KEEP_MIN: u32 = 288;

#[derive(Debug)]
pub(crate) struct ChainstateManager {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) params: Params,
    pub(crate) settings: Settings,
    pub(crate) store: BlockStore,
    pub(crate) tree: RwLock<HeaderTree>,
    /// The coins of the active chain.
    pub(crate) active: Chainstate,
    pub(crate) followers: Followers,
    /// The turns of the writer, for callers that need a checkpoint.
    pub(crate) turns: Turns,
    /// Where blocks that arrived near the tip came from, and when.
    pub(crate) arrivals: Arrivals,
    pub(crate) meter: Arc<Meter>,
    pub(crate) reviews: Arc<Reviews>,
    /// Blocks that were checked when they were stored.
    pub(crate) checked: CheckedBlocks,
    /// Further stored copies of a block, in the order found. The bytes at the first position may turn out to be
    /// unusable, and a twin with the same header says nothing about the honest block.
    pub(crate) other_places: Mutex<HashMap<HeaderId, VecDeque<BlockPosition>>>,
    /// Invalid blocks, the latest last, for callers whose block was validated in another caller's run.
    pub(crate) found_invalid: Mutex<VecDeque<(BlockHash, Violation)>>,
    /// The number of transactions of each block counted so far.
    pub(crate) transaction_counts: Mutex<HashMap<HeaderId, u32>>,
    /// The most work of any chain found to be invalid.
    pub(crate) best_invalid: Mutex<U256>,
    /// Whether a transaction that was said to be verified was not valid: `Settings::known_scripts` is not asked again.
    pub(crate) is_known_distrusted: AtomicBool,
    /// Why scripts are verified, as logged last; the outer `None` means that no block was reported yet.
    pub(crate) script_reason: Mutex<Option<Option<&'static str>>>,
}

impl ChainstateManager {
    pub(crate) fn tree(&self) -> RwLockReadGuard<'_, HeaderTree> {
        self.tree.read().ignore_poison()
    }

    pub(crate) fn tree_mut(&self) -> RwLockWriteGuard<'_, HeaderTree> {
        self.tree.write().ignore_poison()
    }

    /// The chain that ends with a block.
    pub(crate) fn headers_to(&self, tip: HeaderId) -> Headers<'_> {
        Headers { chainstate: self, tip, height: self.tree().height(tip) }
    }

    /// Why a block is invalid, if that was found recently.
    pub(crate) fn violation_of(&self, hash: &BlockHash) -> Option<Violation> {
        let lately = lock(&self.found_invalid);
        lately.iter().find(|(bad, _)| bad == hash).map(|(_, violation)| *violation)
    }

    /// Remembers why a block is invalid, until newer entries replace it.
    pub(crate) fn note_invalid(&self, hash: BlockHash, violation: &Violation) {
        let mut lately = lock(&self.found_invalid);
        lately.push_back((hash, *violation));
        if lately.len() > INVALID_REMEMBERED {
            lately.pop_front();
        }
    }

    /// The chain below a block, for queries about its ancestors.
    pub(crate) fn headers_below(&self, id: HeaderId) -> Headers<'_> {
        let tree = self.tree();
        match tree.parent(id) {
            Some(parent) => Headers { chainstate: self, tip: parent, height: tree.height(parent) },
            None => panic!("the genesis block is never connected"),
        }
    }

    /// Height and hash of the last block of the active chain.
    pub(crate) fn tip(&self) -> Tip {
        let tree = self.tree();
        let tip = tree.tip();
        Tip { height: tree.height(tip), hash: *tree.hash(tip) }
    }

    /// Who tells which scripts were verified before, as long as it was right.
    pub(crate) fn known_scripts(&self) -> Option<&dyn KnownScripts> {
        let known = self.settings.known_scripts.as_deref()?;
        (!self.is_known_distrusted.load(Ordering::Relaxed)).then_some(known)
    }

    /// Whether a checkpoint is due, by the amount of data not yet on disk or by time.
    pub(crate) fn needs_checkpoint(&self) -> bool {
        self.active.coins.needs_checkpoint()
            || self.meter.is_past(&self.active.checkpointed, self.settings.checkpoint_seconds)
    }

    /// The height from which on a follower needs blocks, which pruning must not delete: Core's prune locks.
    pub(crate) fn needed_by_followers(&self) -> Height {
        self.followers.needed_from(|height| {
            let tree = self.tree();
            tree.active(height).is_some_and(|id| tree.block(id).is_some())
        })
    }

    /// Makes everything up to the tip durable. No block may be in the pipeline: the coins are exactly those of the tip.
    ///
    /// Order: the data that the coins' manifest relies on, the manifest, then the followers, which may lag behind the
    /// coins but must never be ahead of them. What has not changed since the last checkpoint is not written again.
    pub(crate) fn checkpoint(&self, observer: &dyn Observer) -> Result<(), EngineError> {
        let tip = self.tip();
        let report = self.meter.time(Stage::Checkpoint, || -> Result<_, EngineError> {
            self.store.sync()?;
            if self.active.coins.is_durable(tip) {
                return Ok(CheckpointReport::default());
            }
            Ok(self.active.coins.checkpoint(tip, self.settings.workers)?)
        })?;
        self.turns.checkpoint_made();
        // Those behind record their tips themselves.
        for index in self.followers.with(Standing::InStep) {
            self.meter.time(Stage::Follow, || self.followers.checkpoint(index, tip, &*self.settings.background))?;
        }
        if let Some(target_bytes) = self.settings.prune_bytes {
            let keep_from = self.needed_by_followers();
            let pruned = self.store.prune(&mut self.tree_mut(), keep_from, target_bytes, tip.height)?;
            let mib = |bytes: u64| i64::try_from(bytes >> 20).unwrap_or(i64::MAX);
            let (target, actual) = (mib(target_bytes), mib(pruned.bytes_left));
            let last = tip.height.0.saturating_sub(BLOCKS_TO_KEEP_MIN).min(keep_from.0);
            let text = format_args!(
                "[{}] target={target}MiB actual={actual}MiB diff={}MiB min_height={} max_prune_height={last} removed {} blk/rev pairs",
                "normal",
                target - actual,
                0,
                pruned.files
            );
            log(observer, LogLevel::Debug("prune"), text);
        }
        self.meter.mark(&self.active.checkpointed);
        observer.event(&Event::Checkpoint {
            height: tip.height,
            coins: self.active.coins.len(),
            bytes_written: report.bytes_written,
        });
        Ok(())
    }
}

/// The chain that ends with a block, as the consensus rules query it. Each query takes the lock of the tree on its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers<'a> {
    chainstate: &'a ChainstateManager,
    tip: HeaderId,
    height: Height,
}

impl Headers<'_> {
    /// Height of the last block.
    pub(crate) fn height(&self) -> Height {
        self.height
    }
}

impl HeaderView for Headers<'_> {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        self.chainstate.tree().branch(self.tip).ancestor(height)
    }

    fn median_time_past(&self, height: Height) -> Option<i64> {
        self.chainstate.tree().branch(self.tip).median_time_past(height)
    }
}
