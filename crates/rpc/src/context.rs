//! [`Context`]: what the methods work on. [`Host`]: what only the program knows, as questions that it answers: clock, log, the wish to stop.
//!
//! Invariants: until the engine is there every call is answered with Core's warm-up error; the clock is read through the host alone, and a
//! mocked time counts in its place. Waits end with the node.

use crate::budget::Budget;
use crate::error::{RpcError, code};
use crate::limits::{ANSWERS_SIZE_MAX, PARSED_SIZE_MAX};
use crate::methods::scan::ScanState;
use crate::wait::TipWatch;
use crate::warnings::Warnings;
use lydian_consensus::{Params, U256};
pub use lydian_engine::LogLevel;
use lydian_engine::{Engine, Event, INITIAL_DOWNLOAD_OVER, InitialDownload, LogLine, LogSwitches, Observer, TipUpdate};
use lydian_p2p::Moment;
use lydian_p2p::manager::{PeerManager, Question};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// What the program answers.
pub trait Host: fmt::Debug + Send + Sync {
    /// Microseconds since 1970.
    fn unix_micros(&self) -> u64;

    /// Microseconds since some moment; never goes back.
    fn steady_micros(&self) -> u64;

    /// The time that everything else in the program shall go by, in seconds since 1970; 0: the clock's.
    fn set_mock_time(&self, seconds: i64);

    /// Stops the node, soon.
    fn request_stop(&self);

    /// Where the log is written; empty if nowhere.
    fn log_path(&self) -> String;

    /// Categories of the log by name, and whether they are on.
    fn log_categories(&self) -> Vec<(&'static str, bool)>;

    /// Switches a category; false if there is none of this name.
    fn set_log_category(&self, name: &str, is_on: bool) -> bool;

    fn log_line(&self, line: &LogLine);

    /// Debug categories that are logged now. By default all of them.
    fn log_switches(&self) -> LogSwitches {
        LogSwitches::default()
    }

    /// Share of the chain's transactions that are validated, by guess: Core's `GuessVerificationProgress`.
    fn verification_progress(&self, tip: &ProgressOf, now: i64) -> f64;
}

impl dyn Host + '_ {
    /// Logs a line; its place is the caller's.
    #[track_caller]
    pub fn log(&self, level: LogLevel, message: &str) {
        self.log_line(&LogLine::new(level, message.to_owned()));
    }

    /// Logs a debug line; the text is only made if the category is logged.
    #[track_caller]
    pub(crate) fn debug(&self, category: &'static str, message: impl FnOnce() -> String) {
        if self.log_switches().is_on(category) {
            self.log(LogLevel::Debug(category), &message());
        }
    }
}

/// Where the manager of peers is asked.
pub trait Peers: fmt::Debug + Send + Sync {
    /// Has the question put, soon; false if there is nobody to answer any more.
    fn ask(&self, question: Question) -> bool;
}

/// A block, as its place on the way is guessed.
#[derive(Clone, Copy, Debug)]
pub struct ProgressOf {
    pub height: u32,
    pub time: u32,
    /// Of its chain; zero if unknown.
    pub transactions: u64,
    pub headers_height: u32,
}

/// What the node was told that answers depend on.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    pub params: Params,
    pub minimum_chain_work: U256,
    /// The node's only one.
    pub initial_download: Arc<InitialDownload>,
    /// The node's only one.
    pub warnings: Arc<Warnings>,
    pub prune: PruneMode,
    /// `-fastprune`: regtest may be pruned earlier.
    pub is_fast_prune: bool,
    pub cache_bytes: u64,
    /// `-checkblocks` and `-checklevel`.
    pub check_blocks: i32,
    pub check_level: i32,
    /// `-deprecatedrpc`.
    pub deprecated: Vec<String>,
    /// `-rpcdoccheck`: an answer with a field that the method's help lacks is an error.
    pub checks_help: bool,
    /// `-blockversion`, of blocks that methods make.
    pub block_version: Option<i32>,
}

impl NodeSettings {
    /// Core's `IsDeprecatedRPCEnabled`.
    pub(crate) fn is_deprecated_enabled(&self, name: &str) -> bool {
        self.deprecated.iter().any(|enabled| enabled == name)
    }
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

/// What the methods work on.
#[derive(Debug)]
pub struct Context {
    pub host: Arc<dyn Host>,
    pub settings: NodeSettings,
    /// Told when the tip moves.
    pub tips: TipWatch,
    /// The search for coins that goes on.
    pub(crate) scan: ScanState,
    /// The engine holds this context, to tell it what its own threads do.
    engine: OnceLock<Weak<Engine>>,
    /// There once the network has begun.
    peers: OnceLock<Arc<dyn Peers>>,
    /// Why calls are not answered yet.
    warmup: Mutex<Option<String>>,
    /// Seconds since 1970; 0: the clock counts.
    mock_time: AtomicI64,
    started_micros: u64,
    active: Arc<Mutex<Vec<Active>>>,
    next_active: AtomicU64,
    is_stopping: AtomicBool,
    /// Memory for requests that are parsed, and for answers that are not read yet.
    pub(crate) parsed: Arc<Budget>,
    pub(crate) answers: Arc<Budget>,
    /// Who else is told of what the engine does.
    observer: Arc<dyn Witness>,
}

/// An observer that can be shared.
pub trait Witness: Observer + fmt::Debug + Send {}

impl<T: Observer + fmt::Debug + Send> Witness for T {}

impl Context {
    /// A context in warm-up. `observer` is told of everything that calls change.
    pub fn new(host: Arc<dyn Host>, settings: NodeSettings, observer: Arc<dyn Witness>) -> Context {
        let started_micros = host.steady_micros();
        Context {
            host,
            settings,
            tips: TipWatch::default(),
            scan: ScanState::default(),
            engine: OnceLock::new(),
            peers: OnceLock::new(),
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

    /// Says what the node is at before it can answer.
    pub fn set_warmup(&self, words: &str) {
        if let Some(status) = lock(&self.warmup).as_mut() {
            words.clone_into(status);
        }
    }

    /// From here on calls are answered.
    pub fn set_ready(&self, engine: &Arc<Engine>) {
        self.note_tip(&engine.tip_update());
        // It was set before only if this is called twice, for the same engine.
        let _ = self.engine.set(Arc::downgrade(engine));
        *lock(&self.warmup) = None;
    }

    /// From here on there are peers to ask.
    pub fn set_peers(&self, peers: Arc<dyn Peers>) {
        // There is one network in the life of a node.
        let _ = self.peers.set(peers);
    }

    /// The answer of the manager of peers; `None` if there is no network.
    pub fn ask_peers<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut PeerManager, Moment) -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, answer) = sync_channel(1);
        let is_asked = self.peers.get()?.ask(Box::new(move |manager, now| {
            // Whoever asked is waiting.
            let _ = sender.send(question(manager, now));
        }));
        // An error: the network ended before it came to this question.
        if is_asked { answer.recv().ok() } else { None }
    }

    /// Core's `RPC_IN_WARMUP`, as long as that is so.
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

    /// The node stops: waits end, and no call begins one.
    pub fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.tips.wake();
    }

    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::SeqCst)
    }

    /// Seconds since 1970, mocked or not.
    pub fn now(&self) -> i64 {
        match self.mock_time.load(Ordering::Relaxed) {
            0 => i64::try_from(self.host.unix_micros() / 1_000_000).unwrap_or(i64::MAX),
            mocked => mocked,
        }
    }

    /// 0 lets the clock count again, for the whole node.
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

    /// Notes that a call is being answered, until the guard is dropped.
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

/// Told by the engine, whoever brought the block.
impl Observer for Context {
    fn event(&self, event: &Event<'_>) {
        if let Event::UpdateTip(tip) = event {
            self.note_tip(tip);
        }
        self.observer.event(event);
        if let Event::UpdateTip(_) = event {
            self.tips.wake();
        }
    }
}

/// A call that is being answered, for as long as this lives.
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

/// What is guarded here is whole at every moment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
