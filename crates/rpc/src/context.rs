//! [`Context`]: the state that the methods work on. [`Host`]: what only the program can provide: clock, log, shutdown.
//!
//! Invariants: until the engine is ready, every call fails with Core's warm-up error; the clock is only read through
//! the host, and a mock time replaces it. Waits end when the node stops.

use crate::electrum::ElectrumServer;
use crate::error::{RpcError, code};
use crate::limits::{ANSWERS_SIZE_MAX, PARSED_SIZE_MAX};
use crate::scan_state::ScanState;
use crate::sources::{SpenderIndex, TransactionIndex};
use crate::templates::Templates;
use crate::tip_watch::TipWatch;
use crate::warnings::Warnings;
use lydian_consensus::{Params, U256};
use lydian_disk::Disk;
pub use lydian_engine::LogLevel;
use lydian_engine::{Engine, Event, INITIAL_DOWNLOAD_OVER, InitialDownload, LogLine, LogSwitches, Observer, TipUpdate};
use lydian_index::{CoinStatsReader, FilterReader, TxIndexReader};
use lydian_mempool::Mempool;
use lydian_mempool::pool::BlockOptions;
use lydian_p2p::manager::{Question, Reply};
use lydian_primitives::{Transaction, Txid};
use lydian_serve::Budget;
use lydian_stdx::lock;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Services of the program.
pub trait Host: fmt::Debug + Send + Sync {
    /// Microseconds since 1970.
    fn unix_micros(&self) -> u64;

    /// Microseconds since an arbitrary start; never goes backwards.
    fn steady_micros(&self) -> u64;

    /// Sets the time that the rest of the program uses, in seconds since 1970. 0 selects the system clock.
    fn set_mock_time(&self, seconds: i64);

    /// Requests shutdown of the node.
    fn request_stop(&self);

    /// Fills `bytes` with random bytes that are good enough for keys.
    fn fill_random(&self, bytes: &mut [u8]);

    /// Path of the log file; empty without a log file.
    fn log_path(&self) -> String;

    /// The logging categories, and whether each is on.
    fn log_categories(&self) -> Vec<(&'static str, bool)>;

    /// Switches a category on or off. Returns false if the name is unknown.
    fn set_log_category(&self, name: &str, is_on: bool) -> bool;

    fn log_line(&self, line: &LogLine);

    /// The debug categories that are logged now. By default all.
    fn log_switches(&self) -> LogSwitches {
        LogSwitches::default()
    }

    /// Estimated share of the chain's transactions that are validated: Core's `GuessVerificationProgress`.
    fn verification_progress(&self, tip: &ProgressOf, now: i64) -> f64;
}

impl dyn Host + '_ {
    /// Logs a line with the source location of the caller.
    #[track_caller]
    pub fn log(&self, level: LogLevel, message: &str) {
        self.log_line(&LogLine::new(level, message.to_owned()));
    }

    /// Logs a debug line. The text is only built if the category is logged.
    #[track_caller]
    pub(crate) fn debug(&self, category: &'static str, message: impl FnOnce() -> String) {
        if self.log_switches().is_on(category) {
            self.log(LogLevel::Debug(category), &message());
        }
    }
}

/// Access to the peer manager.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Queues the question. Returns false if the network has ended.
    fn ask(&self, question: Question) -> bool;
}

/// The position of a block, for estimating the progress.
#[derive(Clone, Copy, Debug)]
pub struct ProgressOf {
    pub height: u32,
    pub time: u32,
    /// Transactions in the chain up to the block; zero if unknown.
    pub transactions: u64,
    pub headers_height: u32,
}

/// Settings of the node that answers depend on.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    pub params: Params,
    pub minimum_chain_work: U256,
    /// Shared by the whole node.
    pub initial_download: Arc<InitialDownload>,
    /// Shared by the whole node.
    pub warnings: Arc<Warnings>,
    pub prune: PruneMode,
    /// `-fastprune`: pruning on regtest may start earlier.
    pub is_fast_prune: bool,
    pub cache_bytes: u64,
    /// `-checkblocks` and `-checklevel`.
    pub check_blocks: i32,
    pub check_level: i32,
    /// `-deprecatedrpc`.
    pub deprecated: Vec<String>,
    /// `-rpcdoccheck`: it is an error if an answer differs from the result section of the method's help.
    pub checks_help: bool,
    /// The notifiers of `-zmqpub...`, in Core's order.
    pub notifiers: Vec<Notifier>,
    /// `-blockversion`, for blocks that methods create.
    pub block_version: Option<i32>,
    /// `-blockmaxweight`, `-blockreservedweight` and `-blockmintxfee`, for blocks that methods create.
    pub block: BlockOptions,
}

impl NodeSettings {
    /// Core's `IsDeprecatedRPCEnabled`.
    pub(crate) fn is_deprecated_enabled(&self, name: &str) -> bool {
        self.deprecated.iter().any(|enabled| enabled == name)
    }
}

/// A notifier of ZeroMQ.
#[derive(Clone, Debug)]
pub struct Notifier {
    /// Such as `pubhashblock`.
    pub kind: &'static str,
    pub address: String,
    /// Messages that may wait for one subscriber.
    pub high_water_mark: i32,
}

/// `-prune`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneMode {
    Never,
    OnRequest,
    Target { bytes: u64 },
}

/// A call that is being answered.
#[derive(Clone, Debug)]
pub struct Active {
    id: u64,
    pub method: &'static str,
    pub since_micros: u64,
}

/// The state that the methods work on.
#[derive(Debug)]
pub struct Context {
    pub host: Arc<dyn Host>,
    pub settings: NodeSettings,
    /// Notified when the tip changes.
    pub tips: TipWatch,
    /// The last block template.
    pub(crate) templates: Templates,
    /// State of a running `scantxoutset`.
    pub(crate) scan: ScanState,
    /// State of a running `scanblocks`.
    pub(crate) block_scan: ScanState,
    /// Weak, since the engine holds this context to report what its own threads do.
    engine: OnceLock<Weak<Engine>>,
    /// Set before the engine.
    indexes: OnceLock<Indexes>,
    /// Set once the network has started.
    peers: OnceLock<Arc<dyn Peers>>,
    /// Set once it has started, with `-electrum`.
    electrum: OnceLock<Arc<dyn ElectrumServer>>,
    /// Set once the mempool has started.
    mempool: OnceLock<Arc<Mempool>>,
    /// Set with the mempool.
    mempool_file: OnceLock<MempoolFile>,
    /// Weight and number of transactions of the last block that a method assembled.
    assembled: Mutex<Option<(usize, usize)>>,
    /// The warm-up status, until calls are answered.
    warmup: Mutex<Option<String>>,
    /// Seconds since 1970; 0: the system clock is used.
    mock_time: AtomicI64,
    started_micros: u64,
    active: Arc<Mutex<Vec<Active>>>,
    next_active: AtomicU64,
    is_stopping: AtomicBool,
    /// Memory for requests that are parsed, and for answers that have not been read yet.
    pub(crate) parsed: Arc<Budget>,
    pub(crate) answers: Arc<Budget>,
    /// Also receives the engine's events.
    observer: Arc<dyn SharedObserver>,
}

/// The indexes of the node.
#[derive(Debug, Default)]
pub struct Indexes {
    pub coinstats: Option<CoinStatsReader>,
    /// `-blockfilterindex`.
    pub filters: Option<FilterReader>,
    /// `-txindex`.
    pub transactions: Option<Arc<dyn TransactionIndex>>,
    /// `-txospenderindex`.
    pub spenders: Option<Arc<dyn SpenderIndex>>,
    /// The tables behind them and behind the address index.
    pub tables: Option<TxIndexReader>,
    /// The follower whose state is that of several indexes, and their names.
    pub shared: Option<(&'static str, Vec<&'static str>)>,
    /// The names of those that could not be opened, each with the reason.
    pub unopened: Vec<(&'static str, String)>,
}

impl Indexes {
    /// Why an index that the settings ask for is missing: one sentence. `None` if it was opened, or is off.
    pub fn unopened(&self, name: &str) -> Option<String> {
        let (name, reason) = self.unopened.iter().find(|(other, _)| *other == name)?;
        Some(format!("the index {name} cannot be opened: {reason}"))
    }
}

/// Where the mempool is kept across restarts.
pub struct MempoolFile {
    /// Also reads the files of `importmempool`.
    pub disk: Arc<dyn Disk>,
    pub path: PathBuf,
    /// Returns a random key for a file.
    pub new_key: fn() -> [u8; 8],
}

impl fmt::Debug for MempoolFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MempoolFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// An observer that can be shared.
pub trait SharedObserver: Observer + fmt::Debug + Send {}

impl<T: Observer + fmt::Debug + Send> SharedObserver for T {}

impl Context {
    /// A context in warm-up. `observer` receives the events of all changes that calls make.
    pub fn new(host: Arc<dyn Host>, settings: NodeSettings, observer: Arc<dyn SharedObserver>) -> Context {
        let started_micros = host.steady_micros();
        Context {
            host,
            settings,
            tips: TipWatch::default(),
            templates: Templates::default(),
            scan: ScanState::default(),
            block_scan: ScanState::default(),
            engine: OnceLock::new(),
            indexes: OnceLock::new(),
            peers: OnceLock::new(),
            electrum: OnceLock::new(),
            mempool: OnceLock::new(),
            mempool_file: OnceLock::new(),
            assembled: Mutex::default(),
            warmup: Mutex::new(Some("RPC server started".to_owned())),
            mock_time: AtomicI64::new(0),
            started_micros,
            active: Arc::default(),
            next_active: AtomicU64::new(0),
            is_stopping: AtomicBool::new(false),
            parsed: Budget::new(PARSED_SIZE_MAX),
            answers: Budget::new(ANSWERS_SIZE_MAX),
            observer,
        }
    }

    /// Sets the warm-up status.
    pub fn set_warmup(&self, words: &str) {
        if let Some(status) = lock(&self.warmup).as_mut() {
            words.clone_into(status);
        }
    }

    /// Ends the warm-up: calls are answered from now on.
    pub fn set_ready(&self, engine: &Arc<Engine>) {
        self.note_tip(&engine.tip_update());
        // It can only be set already if this is called twice, for the same engine.
        let _ = self.engine.set(Arc::downgrade(engine));
        *lock(&self.warmup) = None;
    }

    /// Makes the indexes available.
    pub fn set_indexes(&self, indexes: Indexes) {
        // A node opens them once.
        let _ = self.indexes.set(indexes);
    }

    /// The indexes; none during warm-up.
    pub fn indexes(&self) -> &Indexes {
        const NONE: &Indexes = &Indexes {
            coinstats: None,
            filters: None,
            transactions: None,
            spenders: None,
            tables: None,
            shared: None,
            unopened: Vec::new(),
        };
        self.indexes.get().unwrap_or(NONE)
    }

    /// Makes the peer manager available.
    pub fn set_peers(&self, peers: Arc<dyn Peers>) {
        // A node has only one network.
        let _ = self.peers.set(peers);
    }

    /// Makes the Electrum server available.
    pub fn set_electrum(&self, server: Arc<dyn ElectrumServer>) {
        // A node has only one.
        let _ = self.electrum.set(server);
    }

    pub(crate) fn electrum(&self) -> Option<&Arc<dyn ElectrumServer>> {
        self.electrum.get()
    }

    /// Makes the mempool available, which has the engine's follower and was started.
    pub fn set_mempool(&self, mempool: Arc<Mempool>) {
        // A node has only one mempool.
        let _ = self.mempool.set(mempool);
    }

    /// Makes `mempool.dat` available.
    pub fn set_mempool_file(&self, file: MempoolFile) {
        // A node has only one.
        let _ = self.mempool_file.set(file);
    }

    pub(crate) fn mempool_file(&self) -> Option<&MempoolFile> {
        self.mempool_file.get()
    }

    /// The mempool, or Core's error if the node has none.
    pub(crate) fn mempool(&self) -> Result<&Arc<Mempool>, RpcError> {
        let none = || RpcError::new(code::CLIENT_MEMPOOL_DISABLED, "Mempool disabled or instance not found");
        self.mempool.get().ok_or_else(none)
    }

    /// Waits until the mempool has everything of a reorganisation that a call caused.
    pub(crate) fn settle_mempool(&self) {
        if let Some(mempool) = self.mempool.get() {
            mempool.settle();
        }
    }

    pub(crate) fn set_last_assembled(&self, weight: usize, transactions: usize) {
        *lock(&self.assembled) = Some((weight, transactions));
    }

    /// Core's `m_last_block_weight` and `m_last_block_num_txs`.
    pub(crate) fn last_assembled(&self) -> Option<(usize, usize)> {
        *lock(&self.assembled)
    }

    /// The transaction, if the mempool contains it.
    pub(crate) fn mempool_transaction(&self, txid: &Txid) -> Option<Arc<Transaction>> {
        Some(Arc::clone(self.mempool.get()?.snapshot().get(txid)?.entry().tx()))
    }

    /// Returns the peer manager's answer; `None` if there is no network.
    pub fn ask_peers<T>(&self, question: impl FnOnce(Reply<T>) -> Question) -> Option<T> {
        let (reply, answer) = Reply::pair();
        let is_asked = self.peers.get()?.ask(question(reply));
        // An error means that the network ended before the question was processed.
        if is_asked { answer.recv().ok() } else { None }
    }

    /// Returns Core's `RPC_IN_WARMUP` during warm-up.
    pub fn check_ready(&self) -> Result<(), RpcError> {
        match lock(&self.warmup).as_ref() {
            Some(status) => Err(RpcError::new(code::IN_WARMUP, status.clone())),
            None => Ok(()),
        }
    }

    pub fn engine(&self) -> Result<Arc<Engine>, RpcError> {
        match self.engine.get().and_then(Weak::upgrade) {
            Some(engine) => Ok(engine),
            None => Err(RpcError::new(code::IN_WARMUP, "RPC server started")),
        }
    }

    /// Starts shutdown: waits end, and no call starts a new one.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.tips.wake();
        self.templates.wake();
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Seconds since 1970, from the mock time if it is set.
    pub fn now(&self) -> i64 {
        match self.mock_time.load(Ordering::Relaxed) {
            0 => i64::try_from(self.host.unix_micros() / 1_000_000).unwrap_or(i64::MAX),
            mocked => mocked,
        }
    }

    /// Sets the mock time for the whole node; 0 selects the system clock.
    pub fn set_mock_time(&self, seconds: i64) {
        self.host.set_mock_time(seconds);
        self.mock_time.store(seconds, Ordering::Relaxed);
    }

    pub fn uptime_seconds(&self) -> u64 {
        self.host.steady_micros().saturating_sub(self.started_micros) / 1_000_000
    }

    /// Core's `IsInitialBlockDownload`.
    pub fn is_initial_block_download(&self) -> bool {
        self.settings.initial_download.is_on()
    }

    /// Registers a call as active until the guard is dropped.
    pub fn begin(&self, method: &'static str) -> ActiveGuard {
        let id = self.next_active.fetch_add(1, Ordering::Relaxed);
        lock(&self.active).push(Active { id, method, since_micros: self.host.steady_micros() });
        ActiveGuard { active: Arc::clone(&self.active), id }
    }

    pub fn active(&self) -> Vec<Active> {
        lock(&self.active).clone()
    }

    fn note_tip(&self, tip: &TipUpdate) {
        if self.settings.initial_download.note_tip(tip.header.time, tip.chain_work, self.now()) {
            self.host.log(LogLevel::Info, INITIAL_DOWNLOAD_OVER);
        }
    }
}

/// Receives the engine's events, whatever the source of a block.
impl Observer for Context {
    fn event(&self, event: &Event<'_>) {
        if let Event::UpdateTip(tip) = event {
            self.note_tip(tip);
        }
        self.observer.event(event);
        if let Event::Settled { .. } = event {
            self.tips.wake();
            self.templates.wake();
        }
    }
}

/// Keeps a call registered as active until it is dropped.
#[derive(Debug)]
pub struct ActiveGuard {
    active: Arc<Mutex<Vec<Active>>>,
    id: u64,
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        lock(&self.active).retain(|active| active.id != self.id);
    }
}
