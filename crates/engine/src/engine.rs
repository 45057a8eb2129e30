//! [`Engine`]: the entry point for blocks. Every change goes through its methods; those of the
//! active chain one at a time.

use crate::best_chain::accept::{accept_header, store_block};
use crate::best_chain::activate::{Advance, activate_best_chain};
use crate::best_chain::import::{Import, ImportFiles, import};
use crate::best_chain::reindex::{Reindex, reindex};
use crate::best_chain::{manual, refusal};
use crate::chainstate::arrivals::Origin;
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::reviews::{ReviewCounts, Reviews};
use crate::chainstate::settings::{Cancel, Layout, Settings};
use crate::chainstate::shared::EngineShared;
use crate::chainstate::start;
use crate::error::EngineError;
use crate::event::{BlockSource, Observer, TipUpdate};
use crate::follower::Follower;
use crate::limits::HEADERS_AT_ONCE;
use crate::meter::{Meter, Snapshot, Stage};
use crate::{catch_up, review};
use lydian_chain::{HeaderId, Pruned, RefusedAt, StoreRemark, accept_headers};
use lydian_coins::{Coins, CoinsStats, Tip};
use lydian_consensus::{Accepted, Params, Rejected, Violation};
use lydian_curve::Refereed;
use lydian_disk::Disk;
use lydian_primitives::{Block, BlockHash, HashedHeader, Header, Height};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// The validating part of a node.
///
/// If a kernel verifies signatures, a separate thread reviews the blocks at the tip again with the reference. It
/// disconnects a block that turns out to break a rule, as a caller would, and ends when the engine is dropped. Another
/// one brings followers to the tip, if they are below it when the engine is opened.
#[derive(Debug)]
pub struct Engine {
    pub(crate) shared: Arc<EngineShared>,
    reviewer: Option<JoinHandle<()>>,
    catch_up: Option<JoinHandle<()>>,
}

/// An engine, with the problems found and repaired while opening the files.
#[derive(Debug)]
pub struct Opened {
    pub engine: Engine,
    pub remarks: Vec<StoreRemark>,
}

/// How many headers of a message were accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedHeaders {
    /// The number of headers, from the first, that are in the tree now.
    pub count: usize,
    /// The number of those that are new.
    pub new: usize,
    /// The header after them, if it broke a rule.
    pub refused: Option<(BlockHash, Rejected)>,
}

/// The verdict on a submitted block.
pub type Submission = Result<Accepted, Rejected>;

impl Engine {
    /// Opens the existing files or creates new ones; brings every follower to the tip of the coins. Completes a reindex
    /// that is in progress.
    pub fn open(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        params: Params,
        settings: Settings,
        followers: Vec<Box<dyn Follower>>,
    ) -> Result<Opened, EngineError> {
        let mut opened = Engine::open_with(disk, layout, params, settings, followers, &mut |_, _| {})?;
        let reindex = opened.engine.reindex_until(&Cancel::new(), &mut |_, _| {})?;
        opened.remarks.extend(reindex.remarks);
        Ok(opened)
    }

    /// Like [`Engine::open`], with progress, and without a reindex: if one is in progress, the engine knows only the
    /// genesis block until [`Engine::reindex_until`]. `progress` is called with each block file that is about to be
    /// scanned for blocks that a crash may have damaged, and with the number of blocks found so far.
    pub fn open_with(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        params: Params,
        settings: Settings,
        followers: Vec<Box<dyn Follower>>,
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<Opened, EngineError> {
        let signatures = Arc::clone(&settings.signatures);
        Engine::open_with_signatures(disk, layout, params, settings, followers, progress, || Ok(signatures))
    }

    /// Like [`Engine::open_with`], with the verifier of signatures that `signatures` returns once the stores are open,
    /// instead of that of the settings. So a caller can make its tables while the stores are opened, which verify
    /// nothing.
    pub fn open_with_signatures<E: From<EngineError>>(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        params: Params,
        settings: Settings,
        followers: Vec<Box<dyn Follower>>,
        progress: &mut dyn FnMut(&Path, usize),
        signatures: impl FnOnce() -> Result<Arc<Refereed>, E>,
    ) -> Result<Opened, E> {
        let (mut chainstate, remarks) = start::open(disk, layout, params, settings, followers, progress)?;
        chainstate.settings.signatures = signatures()?;
        let shared = Arc::new(EngineShared::new(chainstate));
        let reviewer =
            if shared.chainstate.settings.signatures.is_watched() { Some(review::start(&shared)?) } else { None };
        let catch_up = catch_up::start(&shared)?;
        Ok(Opened { engine: Engine { shared, reviewer, catch_up }, remarks })
    }

    pub(crate) fn write<T>(
        &self,
        change: impl FnOnce(&ChainstateManager) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        self.shared.write(change)
    }

    pub(crate) fn chainstate(&self) -> &ChainstateManager {
        &self.shared.chainstate
    }

    /// Accepts a block, as Core's `ProcessNewBlock` does. `now` is the clock's time, in seconds since 1970.
    ///
    /// Two callers wait for each other (checklist 90); a block is stored once. If another caller's [`Engine::advance`]
    /// is running, it validates the block too, and this call still returns the verdict.
    pub fn accept_block(&self, block: Block, now: i64, observer: &dyn Observer) -> Result<Submission, EngineError> {
        let origin = Origin::at_once(BlockSource::Call, self.now_ns());
        let block = Arc::new(block);
        let id = match self.shared.store(|chainstate| store_block(chainstate, block, now, Some(origin)))? {
            Ok(id) => id,
            Err(rejected) => return Ok(Err(rejected)),
        };
        self.write(|chainstate| {
            let mut advance = activate_best_chain(chainstate, &Cancel::new(), observer)?;
            let (hash, height, is_active) = {
                let tree = chainstate.tree();
                (*tree.hash(id), tree.height(id), tree.is_active(id))
            };
            if let Some(index) = advance.invalid.iter().position(|(bad, _)| *bad == hash) {
                return Ok(Err(advance.invalid.swap_remove(index).1.into()));
            }
            if let Some(violation) = chainstate.violation_of(&hash) {
                return Ok(Err(violation.into()));
            }
            let disconnected = usize::try_from(advance.disconnected).unwrap_or(usize::MAX);
            Ok(Ok(Accepted { hash, height, is_active, disconnected, invalid: advance.invalid }))
        })
    }

    /// Stores a block without searching for the best chain. [`Engine::advance`] does that for many blocks at once, and
    /// includes blocks stored while it is running. Does not wait for it.
    pub fn store_block(
        &self,
        block: impl Into<Arc<Block>>,
        now: i64,
    ) -> Result<Result<BlockHash, Rejected>, EngineError> {
        self.store(block.into(), now, None)
    }

    /// Like [`Engine::store_block`], for a block whose origin [`crate::Event::BlockSettled`] is to name.
    pub fn store_block_from(
        &self,
        block: impl Into<Arc<Block>>,
        now: i64,
        origin: Origin,
    ) -> Result<Result<BlockHash, Rejected>, EngineError> {
        self.store(block.into(), now, Some(origin))
    }

    fn store(
        &self,
        block: Arc<Block>,
        now: i64,
        origin: Option<Origin>,
    ) -> Result<Result<BlockHash, Rejected>, EngineError> {
        let hash = block.hash();
        Ok(self.shared.store(|chainstate| store_block(chainstate, block, now, origin))?.map(|_| hash))
    }

    /// Why a block is invalid, if that was found recently.
    pub fn violation_of(&self, hash: &BlockHash) -> Option<Violation> {
        self.chainstate().violation_of(hash)
    }

    /// Accepts a header: Core's `AcceptBlockHeader`.
    pub fn accept_header(&self, header: &Header, now: i64) -> Result<Result<(), Rejected>, EngineError> {
        self.write(|chainstate| {
            let accepted = accept_header(chainstate, header, now).map(|_| ());
            if let Err(rejected) = &accepted {
                refusal::log_refused_header(chainstate, header, &header.hash(), rejected);
            }
            Ok(accepted)
        })
    }

    /// Accepts headers, parents before children: Core's `ProcessNewBlockHeaders`.
    ///
    /// Does not wait for a validation: a header changes nothing that a run relies on, since a run depends on stored
    /// blocks. Only the tree's lock is taken, for at most 512 headers at a time. They are recorded under it, so that
    /// the log has them in the order of their ids, and before any entry that refers to them.
    pub fn accept_headers(&self, headers: &[Header], now: i64) -> Result<AcceptedHeaders, EngineError> {
        self.accept_hashed_headers(&HashedHeader::many(headers), now)
    }

    /// Like [`Engine::accept_headers`], for headers that are already hashed.
    pub fn accept_hashed_headers(&self, headers: &[HashedHeader], now: i64) -> Result<AcceptedHeaders, EngineError> {
        let chainstate = self.chainstate();
        let mut answer = AcceptedHeaders { count: 0, new: 0, refused: None };
        for part in headers.chunks(HEADERS_AT_ONCE) {
            chainstate.store.check()?;
            let (new, taken) =
                accept_headers(&mut chainstate.tree_mut(), &chainstate.store, part, now, &chainstate.params);
            answer.new += new;
            match taken {
                Ok(()) => answer.count += part.len(),
                Err(RefusedAt { index, reason }) => {
                    answer.count += index;
                    refusal::log_refused_header(chainstate, part[index].header(), &part[index].hash(), &reason);
                    answer.refused = Some((part[index].hash(), reason));
                    break;
                }
            }
        }
        Ok(answer)
    }

    /// Enters the blocks of files, which [`Engine::advance`] then validates. `progress` is called with the file that is
    /// about to be scanned and the number of blocks found so far. `now` is the clock's time, in seconds since 1970.
    pub fn import(
        &self,
        files: ImportFiles,
        now: i64,
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<Import, EngineError> {
        self.import_until(files, now, &Cancel::new(), progress)
    }

    /// Like [`Engine::import`], until `cancel` stops it between two files or two blocks. Blocks entered by then stay.
    pub fn import_until(
        &self,
        files: ImportFiles,
        now: i64,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<Import, EngineError> {
        self.shared.write_and_store(|chainstate| import(chainstate, files, now, cancel, progress))
    }

    /// Whether a reindex was started but not finished, so that stored blocks may be unknown.
    pub fn is_reindexing(&self) -> bool {
        self.chainstate().store.is_reindexing()
    }

    /// Enters the blocks of our own files, if a reindex is in progress, which [`Engine::advance`] then validates.
    /// `progress` is called with the file that is about to be scanned and the number of blocks found so far. `cancel`
    /// stops it between two files or two blocks; then the reindex remains in progress, and the next start begins it
    /// again.
    pub fn reindex_until(
        &self,
        cancel: &Cancel,
        progress: &mut dyn FnMut(&Path, usize),
    ) -> Result<Reindex, EngineError> {
        // The active chain may change meanwhile, so that only callers that store blocks wait.
        self.shared.store(|chainstate| reindex(chainstate, cancel, progress))
    }

    /// Validates up to the end of the best chain whose blocks are stored.
    pub fn advance(&self, cancel: &Cancel, observer: &dyn Observer) -> Result<Advance, EngineError> {
        self.write(|chainstate| activate_best_chain(chainstate, cancel, observer))
    }

    /// Marks a block and its descendants as invalid, and disconnects them. The genesis block cannot be invalidated.
    pub fn invalidate_block(&self, id: HeaderId, observer: &dyn Observer) -> Result<Advance, EngineError> {
        self.write(|chainstate| manual::invalidate_block(chainstate, id, observer))
    }

    /// Removes the mark from a block, its ancestors and its descendants, and searches for the best chain again.
    pub fn reconsider_block(&self, id: HeaderId, observer: &dyn Observer) -> Result<Advance, EngineError> {
        self.write(|chainstate| manual::reconsider_block(chainstate, id, observer))
    }

    /// Treats a block as if it had arrived before others with the same work. Does nothing if it has less work than the
    /// tip.
    pub fn precious_block(&self, id: HeaderId, observer: &dyn Observer) -> Result<Advance, EngineError> {
        self.write(|chainstate| manual::precious_block(chainstate, id, observer))
    }

    /// Removes block files whose blocks are all at or below a height and 288 blocks below what is durable. Makes
    /// everything durable first.
    pub fn prune_to(&self, height: Height, observer: &dyn Observer) -> Result<Pruned, EngineError> {
        self.write(|chainstate| manual::prune_to(chainstate, height, observer))
    }

    /// Runs `wait`, the wait for blocks of a caller that will then advance. The time counts as [`crate::Stage::Blocks`]
    /// of all workers if the best header is above the tip.
    pub fn await_blocks<T>(&self, wait: impl FnOnce() -> T) -> T {
        let chainstate = self.chainstate();
        let is_starved = {
            let tree = chainstate.tree();
            tree.height(tree.tip()) < tree.height(tree.best_header())
        };
        if is_starved { chainstate.meter.time_all(Stage::Blocks, chainstate.settings.workers, wait) } else { wait() }
    }

    /// Waits until every queued review is done, with all its consequences.
    pub fn finish_reviews(&self) -> Result<(), EngineError> {
        self.chainstate().reviews.wait();
        self.write(|_| Ok(()))
    }

    /// The error of a follower that the node cannot go on with, whichever thread met it: every further change fails.
    pub fn follower_failure(&self) -> Option<EngineError> {
        self.chainstate().followers.check_fatal().err()
    }

    /// Waits until no follower is behind the tip: each is in step, or has failed.
    pub fn finish_catch_up(&self) {
        self.chainstate().followers.wait_until_in_step();
    }

    /// The counts of reviews so far.
    pub fn reviews(&self) -> ReviewCounts {
        self.chainstate().reviews.counts()
    }

    /// The reviews, to read while the engine works.
    pub fn shared_reviews(&self) -> Arc<Reviews> {
        Arc::clone(&self.chainstate().reviews)
    }

    /// The verifier of signatures, with the counts of its referee.
    pub fn signatures(&self) -> &Arc<Refereed> {
        &self.chainstate().settings.signatures
    }

    /// Makes everything durable.
    pub fn checkpoint(&self, observer: &dyn Observer) -> Result<(), EngineError> {
        self.write(|chainstate| chainstate.checkpoint(observer))
    }

    /// Height and hash of the last block of the active chain.
    pub fn tip(&self) -> Tip {
        self.chainstate().tip()
    }

    /// The tip, in the form of the event that reported it.
    pub fn tip_update(&self) -> TipUpdate {
        let (node, totals) = {
            let tree = self.chainstate().tree();
            (tree.node(tree.tip()), tree.totals())
        };
        TipUpdate {
            hash: node.hash,
            height: node.height,
            header: node.header,
            chain_work: node.chain_work,
            transactions: totals.transactions,
            cache_bytes: self.chainstate().active.coins.memory_bytes(),
            coins: self.chainstate().active.coins.len(),
            is_disconnect: false,
        }
    }

    /// Height and hash of the block up to which everything is durable.
    pub fn durable_tip(&self) -> Option<Tip> {
        self.chainstate().active.coins.tip()
    }

    /// Height of the header with most work.
    pub fn best_header_height(&self) -> Height {
        let tree = self.chainstate().tree();
        tree.height(tree.best_header())
    }

    pub fn params(&self) -> &Params {
        &self.chainstate().params
    }

    pub fn coins(&self) -> &Coins {
        &self.chainstate().active.coins
    }

    pub fn coins_stats(&self) -> CoinsStats {
        self.chainstate().active.coins.stats()
    }

    /// The time by the engine's clock, in nanoseconds ([`crate::StageClock::wall_ns`]).
    pub fn now_ns(&self) -> u64 {
        self.chainstate().meter.now_ns()
    }

    pub fn meter(&self) -> &Meter {
        &self.chainstate().meter
    }

    /// The meter, to read while the engine works.
    pub fn shared_meter(&self) -> Arc<Meter> {
        Arc::clone(&self.chainstate().meter)
    }

    pub fn progress(&self) -> Snapshot {
        self.chainstate().meter.snapshot()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.chainstate().reviews.end();
        self.chainstate().followers.end_catch_up();
        for thread in [self.reviewer.take(), self.catch_up.take()].into_iter().flatten() {
            // If the thread panicked, it has already reported it.
            let _ = thread.join();
        }
    }
}
