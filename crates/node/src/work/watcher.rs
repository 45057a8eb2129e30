//! Reports what the engine does: lines in the log, `-blocknotify`, the status file. Input: events, from any worker.
//! Output: text and files. Must be quick and must never call the engine.

use crate::blocks::Blocks;
use crate::clock::mockable_now;
use crate::display::{Figures, Sync};
use crate::log::{Category, Log, TipLine, iso8601, log2, progress, update_tip};
use crate::metrics::EventCounts;
use crate::notify::Notifier;
use crate::run::Session;
use crate::status::{IndexStatus, MempoolStatus, Run, SignatureEngine, Status};
use lydian_consensus::Chain;
use lydian_curve::Refereed;
use lydian_disk::Disk;
use lydian_engine::{
    Arrival, BlockSource, BlockTimes, BranchTip, Engine, Event, INITIAL_DOWNLOAD_OVER, InitialDownload, Observer,
    Reviews, TipUpdate,
};
use lydian_mempool::Mempool;
use lydian_net::Network;
use lydian_p2p::manager::SyncFigures;
use lydian_primitives::{BlockHash, Height};
use lydian_rpc::Indexes;
use lydian_second_opinion::Monitor;
use lydian_stdx::lock;
use lydian_zmq::Feed;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

#[derive(Debug)]
pub(super) struct Watcher {
    log: Arc<Log>,
    notifier: Notifier,
    disk: Arc<dyn Disk>,
    datadir: PathBuf,
    chain: Chain,
    blocknotify: Vec<String>,
    initial_download: Arc<InitialDownload>,
    headers: AtomicU32,
    is_invalid_found: AtomicBool,
    /// The notifications over ZeroMQ. They get every event.
    feed: OnceLock<Feed>,
    /// The last blocks, if the page shows them. They get every event.
    blocks: OnceLock<Arc<Blocks>>,
    events: Arc<EventCounts>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Appended to `UpdateTip` lines.
    warning: String,
    tip: Option<TipUpdate>,
    durable: Option<Height>,
    run: Option<Run>,
    signatures: Option<(Arc<Refereed>, Arc<Reviews>)>,
    engine: Weak<Engine>,
    /// Indexes that could not be opened.
    unopened: Vec<IndexStatus>,
    /// The follower whose state is that of several indexes, and their names.
    shared: Option<(&'static str, Vec<&'static str>)>,
    second_opinion: Option<Monitor>,
    /// Weak, since the mempool keeps the engine and the engine this.
    mempool: Weak<Mempool>,
    /// Blocks for which `-blocknotify` has not run yet, in their order.
    unannounced: VecDeque<(Height, BlockHash)>,
}

impl State {
    fn mempool(&self) -> Option<MempoolStatus> {
        self.mempool.upgrade().map(|mempool| MempoolStatus::of(&mempool))
    }
}

impl Watcher {
    pub(super) fn new(session: &Session<'_>) -> Watcher {
        Watcher {
            log: Arc::clone(&session.log),
            notifier: session.notifier.clone(),
            disk: Arc::clone(&session.disk),
            datadir: session.settings.datadir.clone(),
            chain: session.settings.params.chain,
            blocknotify: session.settings.blocknotify.clone(),
            initial_download: Arc::clone(&session.initial_download),
            headers: AtomicU32::new(0),
            is_invalid_found: AtomicBool::new(true),
            feed: OnceLock::new(),
            blocks: OnceLock::new(),
            events: Arc::default(),
            state: Mutex::default(),
        }
    }

    pub(super) fn begins(&self, engine: &Arc<Engine>) {
        self.note_recent(&engine.tip_update(), now());
        {
            let mut state = lock(&self.state);
            state.tip = Some(engine.tip_update());
            state.signatures = Some((Arc::clone(engine.signatures()), engine.shared_reviews()));
            state.engine = Arc::downgrade(engine);
            state.durable = engine.durable_tip().map(|tip| tip.height);
            // The figures of the last run are shown until another run validates something.
            state.run = Status::read(self.disk.as_ref(), &self.datadir).ok().and_then(|status| status.run);
        }
        self.aims_at(engine.best_header_height());
        self.keep_status();
    }

    /// The notifications over ZeroMQ, if there are any. To be called before the engine is opened.
    pub(super) fn feeds(&self, feed: Option<Feed>) {
        if let Some(feed) = feed {
            // A node starts them once.
            let _ = self.feed.set(feed);
        }
    }

    /// The record of the last blocks, if there is one. To be called before the engine is opened.
    pub(super) fn records(&self, blocks: Option<&Arc<Blocks>>) {
        if let Some(blocks) = blocks {
            // A node starts one page.
            let _ = self.blocks.set(Arc::clone(blocks));
        }
    }

    /// The network, which knows who sent the last blocks.
    pub(super) fn has_senders(&self, network: &Network) {
        if let Some(blocks) = self.blocks.get() {
            blocks.has_senders(network.sent_blocks());
        }
    }

    /// What is counted for the figures of the node.
    pub(super) fn events(&self) -> &Arc<EventCounts> {
        &self.events
    }

    /// The indexes, with those that could not be opened.
    pub(super) fn has_indexes(&self, indexes: &Indexes) {
        let status = |(name, reason): &(&'static str, String)| IndexStatus::unopened(name, reason);
        let mut state = lock(&self.state);
        state.unopened = indexes.unopened.iter().map(status).collect();
        state.shared.clone_from(&indexes.shared);
    }

    /// The second opinion, whose counts the status shows.
    pub(super) fn has_second_opinion(&self, monitor: Monitor) {
        lock(&self.state).second_opinion = Some(monitor);
    }

    /// The mempool, whose figures are shown.
    pub(super) fn has_mempool(&self, mempool: &Arc<Mempool>) {
        lock(&self.state).mempool = Arc::downgrade(mempool);
    }

    /// Whether a block was found to be invalid since the last call. True the first time, because an earlier run may
    /// have found one.
    pub(super) fn take_invalid_found(&self) -> bool {
        self.is_invalid_found.swap(false, Ordering::Relaxed)
    }

    pub(super) fn aims_at(&self, headers: Height) {
        self.headers.store(headers.0, Ordering::Relaxed);
    }

    pub(super) fn ends(&self, engine: &Engine, figures: &Figures) {
        {
            let mut state = lock(&self.state);
            state.tip = Some(engine.tip_update());
            if figures.blocks > 0 {
                state.run = Some(Run::new(figures));
            }
        }
        self.keep_status();
    }

    /// Sets the warning in lines of new tips; empty for none.
    pub(super) fn warns_of(&self, words: String) {
        lock(&self.state).warning = words;
    }

    /// Writes the status file. A failure is only a warning: work that needs the disk fails by itself.
    pub(super) fn keep_status(&self) {
        let status = {
            let state = lock(&self.state);
            let Some(tip) = &state.tip else { return };
            let headers = self.headers.load(Ordering::Relaxed);
            let share = progress(&self.line(tip), self.chain, now());
            let mut status = Status::new(self.chain.name(), tip, headers, share);
            status.durable_height = state.durable.map(|height| height.0);
            status.run.clone_from(&state.run);
            status.second_opinion = state.second_opinion.as_ref().map(|monitor| monitor.counts().into());
            status.mempool = state.mempool();
            let signatures = state.signatures.as_ref();
            status.signature_engine =
                signatures.map(|(referee, reviews)| SignatureEngine::new(referee, reviews.counts()));
            (status, state.engine.upgrade())
        };
        let (mut status, engine) = status;
        status.indexes = self.index_statuses(engine.as_deref());
        if let Err(error) = status.write(self.disk.as_ref(), &self.datadir) {
            self.log.warning(format!("the status for lydian info could not be written: {error}"));
        }
    }

    /// The indexes by the names of `getindexinfo`, with those that could not be opened.
    pub(super) fn index_statuses(&self, engine: Option<&Engine>) -> Vec<IndexStatus> {
        let followers = engine.map_or_else(Vec::new, Engine::followers);
        let indexes = followers.into_iter().filter(|one| one.has_files).map(IndexStatus::from);
        let state = lock(&self.state);
        let open = indexes.flat_map(|index| index.by_names(state.shared.as_ref()));
        open.chain(state.unopened.iter().cloned()).collect()
    }

    /// Core's `UpdateIBDStatus`: to be called when the blocks on disk are loaded.
    pub(super) fn update_ibd_status(&self, tip: &TipUpdate) {
        self.note_recent(tip, now());
    }

    fn note_recent(&self, tip: &TipUpdate, now: i64) {
        if self.initial_download.note_tip(tip.header.time, tip.chain_work, now) {
            self.log.info(INITIAL_DOWNLOAD_OVER);
        }
    }

    /// The current state of the sync with peers.
    pub(super) fn look(&self, net: SyncFigures) -> Sync {
        let state = lock(&self.state);
        let now = u32::try_from(mockable_now()).unwrap_or(u32::MAX);
        let Some(tip) = &state.tip else { return Sync { net, now, ..Sync::default() } };
        let share = || progress(&self.line(tip), self.chain, i64::from(now));
        Sync {
            net,
            height: tip.height.0,
            tip_time: tip.header.time,
            now,
            durable_height: state.durable.map(|height| height.0),
            transactions: Some(tip.transactions),
            share: (self.chain != Chain::Regtest).then(share),
            mempool: state.mempool(),
        }
    }

    fn line(&self, tip: &TipUpdate) -> TipLine {
        TipLine::of(tip, Height(self.headers.load(Ordering::Relaxed).max(tip.height.0)))
    }

    fn tip(&self, tip: &TipUpdate) {
        let now = now();
        let line = update_tip(&self.line(tip), self.chain, now);
        let warning = lock(&self.state).warning.clone();
        match warning.is_empty() {
            true => self.log.info_unlimited(line),
            false => self.log.info_unlimited(format!("{line} warning='{warning}'")),
        }
        self.note_recent(tip, now);
        let mut state = lock(&self.state);
        // Core runs no command during initial block download.
        if tip.is_disconnect {
            state.unannounced.retain(|(height, _)| *height <= tip.height);
        } else if !self.initial_download.is_on() && !self.blocknotify.is_empty() {
            state.unannounced.push_back((tip.height, tip.hash));
        }
        state.tip = Some(tip.clone());
    }

    /// Runs `-blocknotify` for the blocks up to a height, which all followers have: the command may ask about them.
    fn announce(&self, to: Height) {
        loop {
            let next = {
                let mut state = lock(&self.state);
                let is_settled = state.unannounced.front().is_some_and(|(height, _)| *height <= to);
                if is_settled { state.unannounced.pop_front() } else { None }
            };
            let Some((_, hash)) = next else { return };
            self.notifier.start(&self.blocknotify, &hash.to_string());
        }
    }
}

/// Where a block came from, and how long each step took after the one before.
fn block_line(times: &BlockTimes) -> String {
    let (hash, height) = (times.hash, times.height.0);
    let ms = |from: u64, to: u64| format!("{:.1} ms", to.saturating_sub(from) as f64 / 1e6);
    let (from, total) = match times.arrival {
        None => (":".to_owned(), String::new()),
        Some(Arrival { source, received, stored, .. }) => {
            let source = match source {
                BlockSource::Peer(id) => format!("peer={id}"),
                BlockSource::Call => "RPC".to_owned(),
            };
            let (kept, funded) = (ms(received, stored), ms(stored, times.funded));
            (
                format!(" from {source}: stored {kept}, funded {funded},"),
                format!(", total {}", ms(received, times.settled)),
            )
        }
    };
    let (verified, committed) = (ms(times.funded, times.verified), ms(times.verified, times.committed));
    let settled = ms(times.committed, times.settled);
    format!(
        "Block {hash} at height {height}{from} verified {verified}, committed {committed}, settled {settled}{total}"
    )
}

/// Seconds since 1970 by Core's `NodeClock`.
fn now() -> i64 {
    i64::try_from(mockable_now()).unwrap_or(i64::MAX)
}

impl Observer for Watcher {
    fn event(&self, event: &Event<'_>) {
        if let Some(feed) = self.feed.get() {
            feed.event(event);
        }
        if let Some(blocks) = self.blocks.get() {
            blocks.event(event);
        }
        self.events.note(event);
        match event {
            Event::UpdateTip(tip) => self.tip(tip),
            Event::Settled { tip, .. } => {
                self.announce(tip.height);
                let mempool = lock(&self.state).mempool.upgrade();
                // Readers get no pool of the new chain until the reorganisation is over for the pool.
                mempool.inspect(|mempool| mempool.settle_soon());
            }
            Event::BlockSettled(block) if block.is_at_tip => {
                self.log.debug(Category::BENCH, || block_line(&block.times));
            }
            Event::BlockSettled(_) => {}
            Event::InvalidBlock { hash, state, .. } => {
                self.is_invalid_found.store(true, Ordering::Relaxed);
                self.log.error(format!("ConnectTip: ConnectBlock {hash} failed, {state}"));
            }
            Event::InvalidChain { invalid, best } => {
                let work = |tip: &BranchTip| (log2(tip.chain_work), iso8601(i64::from(tip.time)));
                let ((invalid_work, invalid_date), (best_work, best_date)) = (work(invalid), work(best));
                self.log.info(format!(
                    "InvalidChainFound: invalid block={} height={} log2_work={invalid_work:.6} date={invalid_date}",
                    invalid.hash, invalid.height.0
                ));
                self.log.info(format!(
                    "InvalidChainFound: current best={} height={} log2_work={best_work:.6} date={best_date}",
                    best.hash, best.height.0
                ));
            }
            Event::Log { level, text, place } => self.log.take(*level, place, text),
            Event::UnreadableBlock { hash, height, reason } => {
                self.log.error(format!("block {hash} at height {} cannot be read: {reason}", height.0));
            }
            Event::Reorganisation { fork_height, disconnected, .. } => {
                self.log.info(format!(
                    "Reorganisation: {disconnected} blocks above height {} are disconnected",
                    fork_height.0
                ));
            }
            Event::NotTakenOff { hash, height, error } => {
                let height = height.0;
                self.log.error(format!(
                    "block {hash} at height {height} is invalid and could not be taken off the chain: {error}"
                ));
            }
            Event::Checkpoint { height, coins, bytes_written } => {
                lock(&self.state).durable = Some(*height);
                self.log.debug(Category::COINDB, || {
                    format!("Checkpoint at height {}: {coins} coins, {bytes_written} bytes written", height.0)
                });
            }
        }
    }
}
