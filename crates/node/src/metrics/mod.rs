//! The figures of the node: for Prometheus (`GET /metrics`), as JSON for the page, and as documents.
//!
//! Input: the parts of the node, as they come into being, and the tables of the servers. Output: families; their text
//! and JSON; `docs/metrics.md` and the files in `contrib/` ([`documents`]). One list, [`abouts`], has every figure.
//!
//! Invariants: reading takes snapshots and short locks only, so that no block waits; what takes longer (files, the last
//! block) is read by a thread of its own ([`slow`]), for which an answer waits [`slow::PATIENCE`] at most. No label
//! names a peer, a wallet or anything else that a client sends. At most [`SERIES_MAX`] series.

pub(crate) mod documents;
mod events;
mod json;
mod now;
mod slow;
mod table;
#[cfg(test)]
mod tests;

pub(crate) use events::EventCounts;

use crate::run::Session;
use crate::settings::Settings;
use crate::work::SharedProgress;
use lydian_electrum::Operator;
use lydian_electrum::figures::FIGURES as ELECTRUM_FIGURES;
use lydian_engine::Engine;
use lydian_esplora::figures::FIGURES as ESPLORA_FIGURES;
use lydian_front::server::figures::FIGURES as FEED_FIGURES;
use lydian_mempool::Mempool;
use lydian_net::Network;
use lydian_p2p::{MemoryBudget, TrafficTotals};
use lydian_rpc::figures::{CORE_FIGURES, NetworkTotals, Reading, SERVER_FIGURES};
use lydian_rpc::{Context, Counts, Warnings};
use lydian_second_opinion::Monitor;
use lydian_serve::figures::{About, Family, Figure, read, text};
use now::Now;
use serde_json::{Map, Value as Json};
use slow::Slow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use table::NODE_FIGURES;

/// The most series that all figures together can have.
#[cfg(test)]
const SERIES_MAX: usize = 3_000;

/// The folders of the node.
#[derive(Clone, Debug)]
struct Folders {
    datadir: PathBuf,
    blocks: PathBuf,
}

impl Folders {
    fn of(settings: &Settings) -> Folders {
        Folders { datadir: settings.datadir.clone(), blocks: settings.blocks.clone() }
    }
}

/// The parts of the network that are read without a question to the peer manager.
#[derive(Debug)]
struct Peers {
    figures: Arc<lydian_net::Figures>,
    traffic: Arc<TrafficTotals>,
    memory: Arc<MemoryBudget>,
}

impl Peers {
    /// What the exporter's figures have of the network.
    fn totals(&self) -> NetworkTotals {
        let figures = self.figures.get();
        NetworkTotals {
            connections_in: figures.connections_in,
            connections_out: figures.connections_out,
            bytes_received: self.traffic.received(),
            bytes_sent: self.traffic.sent(),
            bans: figures.bans,
        }
    }
}

/// What the figures are read from. Parts that do not exist yet are missing, and so are those that have ended.
#[derive(Debug)]
pub(crate) struct Metrics {
    context: Arc<Context>,
    warnings: Arc<Warnings>,
    cache_bytes: u64,
    mempool_bytes: u64,
    /// Scrapes that found a warning.
    warned: AtomicU64,
    slow: Arc<Slow>,
    events: Arc<EventCounts>,
    rpc: Counts,
    // Weak, since the engine ends before the servers do.
    engine: OnceLock<Weak<Engine>>,
    mempool: OnceLock<Weak<Mempool>>,
    peers: OnceLock<Peers>,
    electrum: OnceLock<Operator>,
    esplora: OnceLock<lydian_esplora::figures::Counts>,
    feed: OnceLock<lydian_front::server::figures::Counts>,
    second_opinion: OnceLock<Monitor>,
    shared_index: OnceLock<Arc<SharedProgress>>,
}

impl Metrics {
    /// `events`: what the observer of the engine counts.
    pub(crate) fn new(session: &Session<'_>, context: Arc<Context>, rpc: Counts, events: Arc<EventCounts>) -> Metrics {
        let settings = session.settings;
        let slow = Slow::new(Arc::clone(&context), Arc::clone(&session.disk), Folders::of(settings));
        Metrics {
            slow: Arc::new(slow),
            context,
            warnings: Arc::clone(&session.warnings),
            cache_bytes: settings.dbcache_bytes,
            mempool_bytes: settings.mempool.mempool_bytes_max,
            warned: AtomicU64::new(0),
            events,
            rpc,
            engine: OnceLock::new(),
            mempool: OnceLock::new(),
            peers: OnceLock::new(),
            electrum: OnceLock::new(),
            esplora: OnceLock::new(),
            feed: OnceLock::new(),
            second_opinion: OnceLock::new(),
            shared_index: OnceLock::new(),
        }
    }

    // A node has one of each part, so nothing is set twice.

    pub(crate) fn has_engine(&self, engine: &Arc<Engine>) {
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    pub(crate) fn has_network(&self, network: &Network) {
        let _ = self.peers.set(Peers {
            figures: Arc::clone(network.figures()),
            traffic: Arc::clone(network.traffic()),
            memory: Arc::clone(network.memory()),
        });
    }

    pub(crate) fn has_electrum(&self, server: Operator) {
        let _ = self.electrum.set(server);
    }

    pub(crate) fn has_esplora(&self, counts: &lydian_esplora::figures::Counts) {
        let _ = self.esplora.set(counts.clone());
    }

    pub(crate) fn has_feed(&self, counts: &lydian_front::server::figures::Counts) {
        let _ = self.feed.set(counts.clone());
    }

    pub(crate) fn has_second_opinion(&self, monitor: Monitor) {
        let _ = self.second_opinion.set(monitor);
    }

    pub(crate) fn has_shared_index(&self, progress: &Arc<SharedProgress>) {
        let _ = self.shared_index.set(Arc::clone(progress));
    }

    pub(crate) fn has_mempool(&self, mempool: &Arc<Mempool>) {
        let _ = self.mempool.set(Arc::downgrade(mempool));
    }

    /// The node ends: nothing is read in the background any more.
    pub(crate) fn end(&self) {
        self.slow.end();
    }

    fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get()?.upgrade()
    }

    fn mempool(&self) -> Option<Arc<Mempool>> {
        self.mempool.get()?.upgrade()
    }

    /// Every family, in the order of [`abouts`]. A server that does not run has none.
    fn families(&self) -> Vec<Family> {
        let engine = self.engine();
        let slow = self.slow.get(engine.as_ref().map(|engine| engine.settled_tip().hash));
        let network = self.peers.get().map(Peers::totals);
        let warned = self.warned.load(Ordering::Relaxed);
        let reading = Reading::new(&self.context, warned, network, slow.core.clone());
        let now = Now::new(self, engine.as_deref(), slow);
        let mut all: Vec<Family> = read(CORE_FIGURES, &reading).collect();
        all.extend(read(NODE_FIGURES, &now));
        all.extend(self.servers());
        all
    }

    /// The families of the servers alone, which are cheap to read.
    pub(crate) fn servers(&self) -> Vec<Family> {
        let mut all: Vec<Family> = read(SERVER_FIGURES, &self.rpc).collect();
        all.extend(self.electrum.get().into_iter().flat_map(|server| read(ELECTRUM_FIGURES, server)));
        all.extend(self.esplora.get().into_iter().flat_map(|counts| read(ESPLORA_FIGURES, counts)));
        all.extend(self.feed.get().into_iter().flat_map(|counts| read(FEED_FIGURES, counts)));
        all
    }

    /// The text of a scrape.
    pub(crate) fn text(&self) -> String {
        self.warned.fetch_add(u64::from(!self.warnings.messages().is_empty()), Ordering::Relaxed);
        text(&self.families())
    }

    /// The same as JSON: for each figure its kind, unit and samples.
    pub(crate) fn json(&self) -> Map<String, Json> {
        let known = self.families().into_iter().filter(|family| !family.samples.is_empty());
        known.map(|family| (family.about.name.to_owned(), json::of(&family))).collect()
    }
}

/// Every figure that a node can have, in the order of the text.
pub(crate) fn abouts() -> impl Iterator<Item = &'static About> {
    fn of<S>(table: &'static [Figure<S>]) -> impl Iterator<Item = &'static About> {
        table.iter().map(|figure| &figure.about)
    }
    let wallets = of(ELECTRUM_FIGURES).chain(of(ESPLORA_FIGURES)).chain(of(FEED_FIGURES));
    let servers = of(SERVER_FIGURES).chain(wallets);
    of(CORE_FIGURES).chain(of(NODE_FIGURES)).chain(servers)
}
