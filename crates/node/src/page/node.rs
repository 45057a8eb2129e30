//! What the page shows of the node: its parts, as they come into being.

use super::explorer::Explorer;
use super::machine::Machine;
use super::pool::PoolWatch;
use super::topics::{Connect, Peers};
use crate::answers::{self, Answers};
use crate::blocks::Blocks;
use crate::blocks::fill::Filler;
use crate::blocks::saved::Saved;
use crate::clock::{mockable_now, now_nanos};
use crate::display::Sight;
use crate::metrics::{EventCounts, Metrics};
use crate::run::Session;
use crate::serve::Serving;
use lydian_consensus::Chain;
use lydian_engine::{Engine, InitialDownload, Leaves};
use lydian_mempool::Mempool;
use lydian_rpc::{Context, Warnings, Whitelist};
use lydian_second_opinion::Monitor;
use lydian_stdx::lock;
use serde_json::Value;
use std::io;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

/// The name under which calls of RPC methods are logged.
const USER: &str = "page";

/// The parts of the node. Those that do not exist yet are missing, and so are those that have ended.
#[derive(Debug)]
pub(crate) struct PageNode {
    /// The state of the RPC methods; it has the indexes and the peers too.
    pub(super) context: Arc<Context>,
    pub(super) chain: Chain,
    pub(super) warnings: Arc<Warnings>,
    pub(super) sight: Sight,
    /// The last blocks.
    pub(crate) blocks: Arc<Blocks>,
    pub(super) initial_download: Arc<InitialDownload>,
    /// The ends of the branches that the topic `chain` has seen.
    pub(super) leaves: Mutex<Leaves>,
    pub(super) peers: Peers,
    pub(super) connect: Connect,
    /// Also for `GET /metrics`.
    pub(crate) metrics: Metrics,
    pub(super) machine: Machine,
    began_nanos: u64,
    // Weak, since the parts end before the page does.
    engine: OnceLock<Weak<Engine>>,
    mempool: OnceLock<Weak<Mempool>>,
    serving: Mutex<Option<Arc<PageServing>>>,
}

/// What works for the page while the node is with its peers.
#[derive(Debug)]
pub(super) struct PageServing {
    pub(super) explorer: Explorer,
    pub(super) pool: PoolWatch,
}

impl PageNode {
    pub(super) fn new(session: &Session<'_>, serving: &Serving, sight: Sight, events: &Arc<EventCounts>) -> PageNode {
        PageNode {
            context: serving.context(),
            chain: session.settings.params.chain,
            warnings: Arc::clone(&session.warnings),
            sight,
            blocks: Arc::default(),
            initial_download: Arc::clone(&session.initial_download),
            leaves: Mutex::default(),
            peers: Peers::default(),
            connect: Connect::new(session.settings, Arc::clone(&session.listening)),
            metrics: Metrics::new(session, serving.context(), serving.counts(), Arc::clone(events)),
            machine: Machine::new(session),
            began_nanos: now_nanos(),
            engine: OnceLock::new(),
            mempool: OnceLock::new(),
            serving: Mutex::default(),
        }
    }

    /// The node serves: the explorer answers, and the mempool is watched, until [`PageNode::ends`].
    pub(crate) fn serves(&self, answers: &Answers, mempool: &Arc<Mempool>, engine: &Arc<Engine>) -> io::Result<()> {
        let explorer = Explorer::new(answers, Arc::clone(&self.context), self.chain);
        let pool = PoolWatch::start(mempool, engine)?;
        *lock(&self.serving) = Some(Arc::new(PageServing { explorer, pool }));
        Ok(())
    }

    /// The node ends.
    pub(crate) fn ends(&self) {
        let serving = lock(&self.serving).take();
        // Its thread is waited for outside the lock, also if a call still uses it.
        if let Some(serving) = serving {
            serving.pool.end();
        }
    }

    pub(super) fn serving(&self) -> Option<Arc<PageServing>> {
        lock(&self.serving).clone()
    }

    /// The engine is open.
    pub(crate) fn has_engine(&self, engine: &Arc<Engine>) {
        // A node has one.
        let _ = self.engine.set(Arc::downgrade(engine));
        self.metrics.has_engine(engine);
    }

    /// Reads the last blocks from before this start, and saves reorganisations, until the result is dropped.
    pub(crate) fn fill_blocks(&self, engine: &Arc<Engine>) -> io::Result<Filler> {
        let (disk, log) = (Arc::clone(&self.machine.disk), Arc::clone(&self.machine.log));
        let saved = Saved::new(disk, self.machine.datadir.join(super::PAGE_DIR), log);
        Filler::start(&self.blocks, engine, &self.initial_download, saved)
    }

    /// The mempool accepts transactions.
    pub(crate) fn has_mempool(&self, mempool: &Arc<Mempool>) {
        // A node has one.
        let _ = self.mempool.set(Arc::downgrade(mempool));
        self.metrics.has_mempool(mempool);
    }

    /// The second opinion, whose counts are shown.
    pub(crate) fn has_second_opinion(&self, monitor: Monitor) {
        // A node has one.
        let _ = self.machine.second_opinion.set(monitor);
    }

    pub(super) fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get()?.upgrade()
    }

    pub(super) fn mempool(&self) -> Option<Arc<Mempool>> {
        self.mempool.get()?.upgrade()
    }

    pub(super) fn uptime_seconds(&self) -> u64 {
        now_nanos().saturating_sub(self.began_nanos) / 1_000_000_000
    }

    /// Time since an arbitrary start, which never goes backwards.
    pub(super) fn steady(&self) -> Duration {
        Duration::from_nanos(now_nanos())
    }

    /// The result of an RPC method without parameters. The error is its sentence.
    pub(super) fn ask(&self, method: &str) -> Result<Value, String> {
        let result = answers::call(&self.context, &Whitelist::default(), USER, method, "[]");
        let result = result.map_err(|error| error.message)?;
        serde_json::from_str(&result).map_err(|error| error.to_string())
    }

    /// Seconds since 1970 by Core's `NodeClock`.
    pub(super) fn now(&self) -> u64 {
        mockable_now()
    }
}
