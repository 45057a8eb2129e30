//! [`Front`]: a source of answers without data.
//!
//! Input: the store of the index, and addresses of nodes. Output: a [`Source`] for servers, the health of what it
//! answers from, and figures. Three threads: one reads the commit row ([`POLL`]), one applies what the followed node
//! sent, one loads filters of used scripts; the streams and questions are tasks of a runtime.
//!
//! Index and mempool move together. The mempool waits for the index ([`PoolCopy`]). While both are on one block, the
//! index waits for the node that is followed, too: a commit row with another block is held back until the node has
//! announced the block, so that answers go on with the last block that both have, whatever ends or is silent. After
//! [`STALE_MAX`] the row is taken all the same, and at once if it is many blocks further, as during a sync. Without any
//! stream the index stays as it is for the same time. A node that stays on another block than the commit row is left
//! for the next one after [`APART_MAX`], unless the row is only behind it.

use crate::calls::RemoteCalls;
use crate::chain::RemoteChain;
use crate::client::NodeAddress;
use crate::client::connection::{Route, trusted};
use crate::client::nodes::{Node, Nodes};
use crate::follow::{Follower, Streams};
use crate::limits::SILENCE_MAX;
use crate::pool::PoolCopy;
use crate::store::CountedStore;
use crate::timing::{APART_MAX, POLL, POLL_SOON, STALE_MAX, START_WAIT_MAX};
use lydian_engine::Tip;
use lydian_primitives::BlockHash;
use lydian_query::{Chain, Pool, Query, ScriptIndex, Settings, Source};
use lydian_shared_index::{ReaderError, Refreshed, SharedIndex, Store};
use lydian_stdx::{AbortOnPanic, Current, IgnorePoison, lock};
use std::fmt;
use std::fmt::Debug;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_rustls::rustls::ClientConfig;

/// Threads of the runtime.
const WORKERS: usize = 2;

/// How often the index is read soon for one block: for about 5 seconds, by two threads.
const POLLS_SOON_MAX: u32 = 500;

/// Blocks by which a commit row may be further than the index and be held back.
const HELD_BLOCKS_MAX: u32 = 2;

/// How long a wait for work lasts at most.
const TICK: Duration = Duration::from_millis(500);

/// After which time filters are looked at again: if there was nothing to read, and after an error.
const FILTERS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// What a front end reads.
#[derive(Clone)]
pub struct FrontSettings {
    pub store: Arc<dyn Store>,
    pub nodes: Vec<NodeAddress>,
    /// The nodes' `-feedtoken`.
    pub token: Option<String>,
    /// The certificates of nodes with TLS, in PEM. No others are trusted.
    pub roots: Option<Vec<u8>>,
    pub genesis: BlockHash,
    /// Memory for filters of used scripts.
    pub filter_bytes: usize,
    /// The time since any moment; it never goes back.
    pub clock: fn() -> Duration,
}

/// Shows no token.
impl Debug for FrontSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontSettings")
            .field("nodes", &self.nodes)
            .field("genesis", &self.genesis)
            .finish_non_exhaustive()
    }
}

/// Why a front end cannot start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontError {
    /// No node was named.
    NoNodes,
    /// A node with TLS, but no certificates.
    NoRoots {
        node: String,
    },
    /// The certificates cannot be read.
    Roots {
        reason: String,
    },
    /// The token has bytes that a header cannot have.
    Token,
    Index(ReaderError),
    /// Every node, with the reason: another chain, a wrong token.
    Refused {
        reasons: Vec<(String, String)>,
    },
    /// Every node, with the reason.
    NoAnswer {
        reasons: Vec<(String, String)>,
    },
    /// The system gives no thread.
    Threads {
        reason: String,
    },
}

impl fmt::Display for FrontError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |reasons: &[(String, String)]| {
            let all: Vec<String> = reasons.iter().map(|(node, reason)| format!("{node}: {reason}")).collect();
            all.join("; ")
        };
        match self {
            FrontError::NoNodes => f.write_str("no node is named: a front end needs the feed of at least one"),
            FrontError::NoRoots { node } => write!(f, "the node {node} needs a certificate to trust"),
            FrontError::Roots { reason } => write!(f, "the certificates of the nodes cannot be read: {reason}"),
            FrontError::Token => f.write_str("the token of the feed has characters that a header cannot have"),
            FrontError::Index(error) => fmt::Display::fmt(error, f),
            FrontError::Refused { reasons } => write!(f, "no node can be used: {}", list(reasons)),
            FrontError::NoAnswer { reasons } => {
                write!(f, "no node sent its mempool within {} seconds: {}", START_WAIT_MAX.as_secs(), list(reasons))
            }
            FrontError::Threads { reason } => write!(f, "cannot start a thread: {reason}"),
        }
    }
}

impl std::error::Error for FrontError {}

/// What happened, for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEvent {
    /// The mempool of this node answers from now on.
    Following {
        node: String,
        transactions: usize,
    },
    /// The next node is tried.
    Left {
        node: String,
        reason: String,
    },
    StoreFailed {
        reason: String,
    },
    StoreBack,
    FiltersFailed {
        reason: String,
    },
}

impl FrontEvent {
    pub fn is_warning(&self) -> bool {
        !matches!(self, FrontEvent::Following { .. } | FrontEvent::StoreBack)
    }
}

impl fmt::Display for FrontEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrontEvent::Following { node, transactions } => {
                write!(f, "following the mempool of {node}: {transactions} transactions")
            }
            FrontEvent::Left { node, reason } => write!(f, "left the feed of {node}: {reason}"),
            FrontEvent::StoreFailed { reason } => write!(f, "the index is not refreshed: {reason}"),
            FrontEvent::StoreBack => f.write_str("the index is refreshed again"),
            FrontEvent::FiltersFailed { reason } => write!(f, "filters of used scripts are not read: {reason}"),
        }
    }
}

/// Receives events, from threads of the front end.
pub trait FrontLog: Debug + Send + Sync {
    fn event(&self, event: &FrontEvent);
}

/// Whether answers are those of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Fresh {
        height: u32,
    },
    /// Index and mempool are those of this moment of the clock. They still answer.
    Stale {
        since: Duration,
        reason: String,
    },
    /// They are too old to answer.
    Gone {
        reason: String,
    },
}

/// What a front end exports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// Of the index.
    pub height: Option<u32>,
    pub commit_sequence: u64,
    pub mempool_count: usize,
    /// Estimated memory of the copy.
    pub mempool_bytes: usize,
    /// Since index and mempool were those of the followed node; zero if they are.
    pub lag: Duration,
    /// Values that were asked of the store, and calls.
    pub store_reads: u64,
    pub store_calls: u64,
    pub filter_bytes: usize,
    pub nodes: Vec<NodeFigures>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFigures {
    pub address: String,
    pub is_followed: bool,
    /// Questions and calls.
    pub requests: u64,
    pub failures: u64,
    /// Of the stream, or of a question.
    pub last_failure: Option<String>,
}

/// What decides about health.
#[derive(Debug, Default)]
struct Times {
    /// When index and mempool were last those of the followed node.
    fresh_at: Duration,
    /// Since when a node's mempool is on another block than the index, with the number of the node.
    apart_since: Option<(usize, Duration)>,
    /// The block that the index was read often for, and how often.
    awaited: (Option<Tip>, u32),
    /// The block of the commit row, if it is held back.
    held: Option<Tip>,
    store_fault: Option<String>,
}

#[derive(Debug)]
struct Shared {
    index: Arc<SharedIndex>,
    store: Arc<CountedStore>,
    nodes: Arc<Nodes>,
    pool: Arc<PoolCopy>,
    streams: Arc<Streams>,
    times: Mutex<Times>,
    /// Whether the threads are to end, and whether the index is to be read at once.
    wake: Mutex<(bool, bool)>,
    woken: Condvar,
    clock: fn() -> Duration,
    log: Arc<dyn FrontLog>,
}

impl Shared {
    fn is_stopping(&self) -> bool {
        lock(&self.wake).0
    }

    /// Waits for the time, a wake-up or the end. Returns whether threads are to end.
    fn pause(&self, time: Duration, is_hurried: bool) -> bool {
        let waits = |wake: &mut (bool, bool)| !(wake.0 || is_hurried && wake.1);
        let mut wake = self.woken.wait_timeout_while(lock(&self.wake), time, waits).ignore_poison().0;
        if is_hurried {
            wake.1 = false;
        }
        wake.0
    }

    fn has_block(&self, tip: &Tip) -> bool {
        self.index.hashes(tip.height.0, 1).first() == Some(&tip.hash)
    }

    fn apply(&self) {
        let own = self.index.tip();
        let is_together = own.is_some() && self.pool.tip() == own;
        // While both are on the same block, the mempool does not go back to an earlier one: the node is behind, or the
        // index is about to leave its last blocks, too.
        let applied = self.pool.apply(|tip| if is_together { Some(*tip) == own } else { self.has_block(tip) });
        if applied.is_wrong {
            self.streams.leave("the changes of its mempool do not fit the mempool that it sent".to_owned());
        }
        if let Some(number) = applied.snapshot_of {
            self.nodes.followed.store(number, Ordering::Relaxed);
            let node = self.nodes.list.get(number).map(|node| node.name()).unwrap_or_default();
            let transactions = self.pool.totals().count;
            self.log.event(&FrontEvent::Following { node, transactions });
            self.streams.set(|standing| standing.is_applied = true);
        }
    }

    /// Whether index and mempool are on the last block of the node that is followed.
    fn is_together(&self) -> bool {
        self.pool.waits_for().is_none() && self.pool.tip().is_some_and(|tip| self.index.tip() == Some(tip))
    }

    /// Keeps the times, and leaves a node that stays on another block.
    fn judge(&self) {
        let (is_alive, is_complete) = self.streams.look(|standing| (standing.is_alive, standing.is_complete));
        let is_together = self.is_together();
        let now = (self.clock)();
        let mut times = lock(&self.times);
        let is_together = is_together && times.held.is_none();
        if is_alive && is_complete && is_together && times.store_fault.is_none() {
            times.fresh_at = now;
        }
        if !is_complete || is_together {
            times.apart_since = None;
            return;
        }
        let node = self.pool.node();
        let since = times.apart_since.filter(|(of, _)| *of == node).map_or(now, |(_, since)| since);
        times.apart_since = Some((node, since));
        if now.saturating_sub(since) < APART_MAX || self.nodes.list.len() < 2 {
            return;
        }
        times.apart_since = None;
        drop(times);
        if !self.is_index_behind(node) {
            self.streams.leave("the node stays on another block than the index".to_owned());
        }
    }

    /// The last block of the commit row.
    fn row_tip(&self) -> Option<Tip> {
        let held = lock(&self.times).held;
        held.or_else(|| self.index.tip())
    }

    /// Whether the node has the index's last block below its own: then another node would not help.
    fn is_index_behind(&self, node: usize) -> bool {
        let (Some(own), Some(state)) = (self.row_tip(), self.pool.last_state()) else { return true };
        state.pool_tip.height > own.height && self.nodes.has(node, own.height, &own.hash) == Some(true)
    }

    /// Whether the index stays as it is, since no node has a mempool for a later block.
    fn is_frozen(&self) -> bool {
        let (is_complete, is_applied) = self.streams.look(|standing| (standing.is_complete, standing.is_applied));
        !is_complete && is_applied && self.age() < STALE_MAX
    }

    /// How long it is since index and mempool were those of the followed node.
    fn age(&self) -> Duration {
        (self.clock)().saturating_sub(lock(&self.times).fresh_at)
    }

    /// Whether the index may take a commit row with another block: the node that is followed has announced it, or there
    /// is no mempool on the index's block that it would leave behind.
    fn may_take(&self, tip: &Tip) -> bool {
        let Some(own) = self.index.tip().filter(|own| self.pool.tip() == Some(*own)) else { return true };
        self.pool.has_group_of(tip)
            || tip.height.0 > own.height.0.saturating_add(HELD_BLOCKS_MAX)
            || self.age() >= STALE_MAX
    }

    /// How long the index is not read: a short time while the mempool waits for a block, but not for ever.
    fn poll(&self) -> Duration {
        let awaited = self.pool.waits_for();
        let mut times = lock(&self.times);
        if times.awaited.0 != awaited {
            times.awaited = (awaited, 0);
        }
        times.awaited.1 = times.awaited.1.saturating_add(1);
        if awaited.is_some() && times.awaited.1 <= POLLS_SOON_MAX { POLL_SOON } else { POLL }
    }

    fn refresh(&self) {
        let refreshed = self.index.refresh_if(|tip| self.may_take(tip));
        let mut times = lock(&self.times);
        let fault = match refreshed {
            Ok(Refreshed::Held(tip)) => {
                times.held = Some(tip);
                None
            }
            Ok(Refreshed::Same | Refreshed::Taken) => {
                times.held = None;
                None
            }
            Err(error) => Some(error.to_string()),
        };
        let before = std::mem::replace(&mut times.store_fault, fault.clone());
        drop(times);
        match (before, fault) {
            (None, Some(reason)) => self.log.event(&FrontEvent::StoreFailed { reason }),
            (Some(_), None) => self.log.event(&FrontEvent::StoreBack),
            (None, None) | (Some(_), Some(_)) => {}
        }
    }

    fn run_index(&self) {
        let _guard = AbortOnPanic;
        loop {
            if self.pause(self.poll(), true) {
                return;
            }
            if !self.is_frozen() {
                self.refresh();
            }
            self.apply();
            self.judge();
        }
    }

    fn run_pool(&self) {
        let _guard = AbortOnPanic;
        while !self.is_stopping() {
            self.pool.wait_for_group(TICK);
            self.apply();
            if self.pool.waits_for().is_some() {
                // The index is to be read at once; then it is read often.
                lock(&self.wake).1 = true;
                self.woken.notify_all();
                if self.pause(self.poll(), false) {
                    return;
                }
            }
        }
    }

    fn run_filters(&self, bytes_max: usize) {
        let _guard = AbortOnPanic;
        loop {
            let pause = match self.index.load_filters(bytes_max) {
                Ok(true) => Duration::ZERO,
                Ok(false) => FILTERS.0,
                Err(error) => {
                    self.log.event(&FrontEvent::FiltersFailed { reason: error.to_string() });
                    FILTERS.1
                }
            };
            if self.pause(pause, false) {
                return;
            }
        }
    }

    fn reasons(&self) -> Vec<(String, String)> {
        let faults = self.streams.look(|standing| standing.faults.clone());
        let reason = |fault: Option<crate::client::connection::NodeFault>| match fault {
            Some(fault) => fault.reason,
            None => "no answer yet".to_owned(),
        };
        self.nodes.list.iter().zip(faults).map(|(node, fault)| (node.name(), reason(fault))).collect()
    }

    /// Why index and mempool are not those of now.
    fn reason(&self) -> String {
        if let Some(reason) = lock(&self.times).store_fault.clone() {
            return reason;
        }
        if !self.streams.look(|standing| standing.is_alive && standing.is_complete) {
            let reasons: Vec<String> =
                self.reasons().iter().map(|(node, reason)| format!("{node}: {reason}")).collect();
            return format!("no node sends its mempool: {}", reasons.join("; "));
        }
        let height = |tip: Option<Tip>| tip.map_or("no block".to_owned(), |tip| format!("height {}", tip.height.0));
        let of_node = self.pool.last_state().map(|state| state.pool_tip);
        format!("the index has {}, and the node that is followed has {}", height(self.row_tip()), height(of_node))
    }
}

/// A front end.
pub struct Front {
    shared: Arc<Shared>,
    /// `None` without [`FrontSettings::roots`].
    trusted: Option<Current<ClientConfig>>,
    source: Source,
    threads: Vec<JoinHandle<()>>,
    runtime: Option<Runtime>,
}

impl Debug for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Front").field("shared", &self.shared).finish_non_exhaustive()
    }
}

impl Front {
    /// Starts, and waits until a node has sent its mempool: [`START_WAIT_MAX`] at most.
    pub fn start(settings: FrontSettings, log: Arc<dyn FrontLog>) -> Result<Front, FrontError> {
        let FrontSettings { store, nodes, token, roots, genesis, filter_bytes, clock } = settings;
        let threads = |error: std::io::Error| FrontError::Threads { reason: error.to_string() };
        let trusted = roots.as_deref().map(read_roots).transpose()?.map(Current::new);
        let routes = routes(nodes, token.as_deref(), trusted.as_ref())?;
        let store = Arc::new(CountedStore::new(store));
        let index = SharedIndex::open(Arc::clone(&store) as Arc<dyn Store>, &genesis).map_err(FrontError::Index)?;
        let index = Arc::new(index);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("front-net")
            .enable_all()
            .build()
            .map_err(threads)?;
        let list: Vec<Arc<Node>> = routes.into_iter().map(|route| Arc::new(Node::new(route, genesis))).collect();
        let streams = Arc::new(Streams::new(list.len()));
        let nodes = Arc::new(Nodes::new(list, runtime.handle().clone()));
        let pool = Arc::new(PoolCopy::new(Arc::clone(&nodes)));
        let chain: Arc<dyn Chain> = Arc::new(RemoteChain::new(Arc::clone(&index), Arc::clone(&nodes)));
        let scripts: Arc<dyn ScriptIndex> = Arc::new(index.scripts(Arc::clone(&chain)));
        let query = Query::new(Settings { chain, index: Ok(scripts), pool: Arc::clone(&pool) as Arc<dyn Pool> });
        let query = Arc::new(query);
        let calls = Arc::new(RemoteCalls::new(Arc::clone(&nodes), Arc::clone(&pool)));
        // No peer is waited for in either.
        let source = Source { query: Arc::clone(&query), prompt: query, calls, is_remote: true };
        let times = Mutex::new(Times { fresh_at: clock(), ..Times::default() });
        let (wake, woken) = (Mutex::new((false, false)), Condvar::new());
        let shared = Shared { index, store, nodes, pool, streams, times, wake, woken, clock, log };
        let shared = Arc::new(shared);
        let mut front = Front { shared, trusted, source, threads: Vec::new(), runtime: Some(runtime) };
        front.spawn("front-index", Shared::run_index).map_err(threads)?;
        front.spawn("front-pool", Shared::run_pool).map_err(threads)?;
        if filter_bytes > 0 {
            front.spawn("front-filters", move |shared| shared.run_filters(filter_bytes)).map_err(threads)?;
        }
        let Shared { nodes, pool, streams, log, .. } = &*front.shared;
        let (nodes, pool) = (Arc::clone(nodes), Arc::clone(pool));
        let follower = Follower { nodes, pool, streams: Arc::clone(streams), genesis, log: Arc::clone(log) };
        if let Some(runtime) = &front.runtime {
            drop(runtime.spawn(follower.run()));
        }
        front.wait_for_mempool()?;
        Ok(front)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce(&Shared) + Send + 'static) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        self.threads.push(Builder::new().name(name.to_owned()).spawn(move || work(&shared))?);
        Ok(())
    }

    fn wait_for_mempool(&self) -> Result<(), FrontError> {
        let is_refused =
            |fault: &Option<crate::client::connection::NodeFault>| fault.as_ref().is_some_and(|fault| fault.is_final);
        let streams = &self.shared.streams;
        streams.wait_until(START_WAIT_MAX, |standing| standing.is_applied || standing.faults.iter().all(is_refused));
        let (is_there, are_refused) = streams.look(|standing| {
            // A mempool that waits for the index is a matter of health.
            (standing.is_applied || standing.is_complete, standing.faults.iter().all(is_refused))
        });
        let reasons = self.shared.reasons();
        match (is_there, are_refused) {
            (true, _) => Ok(()),
            (false, true) => Err(FrontError::Refused { reasons }),
            (false, false) => Err(FrontError::NoAnswer { reasons }),
        }
    }

    /// Trusts other certificates from now on, in PEM like [`FrontSettings::roots`]; open connections go on. Without
    /// certificates at the start, it does nothing. If they cannot be read, those of before stay.
    pub fn trust(&self, pem: &[u8]) -> Result<(), FrontError> {
        let read = read_roots(pem)?;
        if let Some(trusted) = &self.trusted {
            trusted.set(read);
        }
        Ok(())
    }

    /// What servers answer from.
    pub fn source(&self) -> Source {
        self.source.clone()
    }

    pub fn health(&self) -> Health {
        let age = self.shared.age();
        let height = self.shared.index.tip().map(|tip| tip.height.0);
        if let Some(height) = height.filter(|_| age <= SILENCE_MAX) {
            return Health::Fresh { height };
        }
        let since = lock(&self.shared.times).fresh_at;
        let reason = self.shared.reason();
        if age < STALE_MAX { Health::Stale { since, reason } } else { Health::Gone { reason } }
    }

    pub fn figures(&self) -> Figures {
        let Shared { index, store, nodes, pool, streams, .. } = &*self.shared;
        let followed = nodes.followed.load(Ordering::Relaxed);
        let (is_alive, faults) = streams.look(|standing| (standing.is_alive, standing.faults.clone()));
        let of_node = |(number, node): (usize, &Arc<Node>)| {
            let of_stream = faults.get(number).cloned().flatten().map(|fault| fault.reason);
            let is_followed = number == followed && is_alive;
            NodeFigures {
                address: node.name(),
                is_followed,
                requests: node.requests.load(Ordering::Relaxed),
                failures: node.failures.load(Ordering::Relaxed),
                last_failure: lock(&node.last_failure).clone().or(of_stream),
            }
        };
        let age = self.shared.age();
        Figures {
            height: index.tip().map(|tip| tip.height.0),
            commit_sequence: index.sequence(),
            mempool_count: pool.totals().count,
            mempool_bytes: pool.bytes(),
            lag: if age <= SILENCE_MAX { Duration::ZERO } else { age },
            store_reads: store.reads(),
            store_calls: store.calls(),
            filter_bytes: index.filter_bytes(),
            nodes: nodes.list.iter().enumerate().map(of_node).collect(),
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        lock(&self.shared.wake).0 = true;
        self.shared.woken.notify_all();
        self.shared.pool.end();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended the process.
            drop(thread.join());
        }
    }
}

fn read_roots(pem: &[u8]) -> Result<ClientConfig, FrontError> {
    trusted(pem).map_err(|reason| FrontError::Roots { reason })
}

fn routes(
    nodes: Vec<NodeAddress>,
    token: Option<&str>,
    trusted: Option<&Current<ClientConfig>>,
) -> Result<Vec<Route>, FrontError> {
    if nodes.is_empty() {
        return Err(FrontError::NoNodes);
    }
    let route = |address: NodeAddress| {
        if address.is_tls() && trusted.is_none() {
            return Err(FrontError::NoRoots { node: address.to_string() });
        }
        Route::new(address, trusted, token).ok_or(FrontError::Token)
    };
    nodes.into_iter().map(route).collect()
}
