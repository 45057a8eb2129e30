//! The sockets of peers: carries out what [`lydian_p2p::manager`] decides.
//!
//! Input: an engine, addresses to listen on and to connect to. Output: a growing chain, reported by the engine's
//! events.
//!
//! Sockets are tokio's, with one task per connection. Everything else runs on plain threads: one holds the manager and
//! processes events in order, one stores blocks, one validates what is stored and one writes files. They wait for each
//! other only through bounded queues.
//!
//! Invariants: a peer is not read from while the answers to it cannot be sent; the memory of a connection grows with
//! the bytes received and is bounded ([`limits`]); all threads have ended when the [`Network`] is dropped. Contains no
//! consensus rule, and no choice of peers or blocks.

#![forbid(unsafe_code)]

mod capture;
mod connection;
mod dial;
mod ending;
mod event;
mod figures;
mod files;
mod handle;
pub mod limits;
mod listen;
mod manager_thread;
mod outbox;
mod output;
mod proxy;
mod queues;
mod socks;
mod store;
mod validate;

pub use capture::CAPTURE_FILES;
pub use figures::Figures;
pub use files::DataFolder;
pub use handle::Handle;
pub use listen::Listen;
pub use validate::{ValidationEnd, Validator};

use dial::Dialer;
use event::Event;
use lydian_engine::{Engine, LogLevel, LogLine, LogSwitches, Observer};
use lydian_mempool::Mempool;
use lydian_p2p::driver;
use lydian_p2p::files::FilesError;
use lydian_p2p::filters::FilterSource;
use lydian_p2p::manager::{ManagerSettings, PeerManager};
use lydian_p2p::permissions::Whitelist;
use lydian_p2p::{MemoryBudget, Moment, SentBlocks, TrafficTotals};
use lydian_stdx::AbortOnPanic;
use manager_thread::ManagerThread;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::SeedableRng;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;

/// Threads that read and write sockets.
const SOCKET_THREADS: usize = 2;

/// Time allowed for sockets to close at shutdown.
const SHUTDOWN_TIME: Duration = Duration::from_secs(2);

/// The environment of the network: clocks, log, and random bytes for keys.
pub trait Host: Send + Sync + std::fmt::Debug + 'static {
    fn now(&self) -> Moment;
    fn log_line(&self, line: &LogLine);
    /// Microseconds since 1970. By default the seconds of [`Host::now`], converted.
    fn unix_micros(&self) -> u64 {
        self.now().unix.0.saturating_mul(1_000_000)
    }
    /// Returns which categories are logged now. By default all.
    fn log_switches(&self) -> LogSwitches {
        LogSwitches::default()
    }
    /// Fills `bytes` with random bytes that are good enough for keys.
    fn fill_random(&self, bytes: &mut [u8]);
    /// Called when validation has ended by itself: [`Validator::end`] returns why.
    fn validation_ended(&self) {}
}

impl dyn Host + '_ {
    /// Logs a line with the source location of the caller.
    #[track_caller]
    pub(crate) fn log(&self, level: LogLevel, text: String) {
        self.log_line(&LogLine::new(level, text));
    }

    /// Logs a line of the category `net`. The text is only built if it is logged.
    #[track_caller]
    pub(crate) fn debug(&self, text: impl FnOnce() -> String) {
        if self.log_switches().is_on("net") {
            self.log_line(&LogLine::new(LogLevel::Debug("net"), text()));
        }
    }
}

/// Settings of a [`Network`].
#[derive(Clone, Debug)]
pub struct NetworkSettings {
    pub manager: ManagerSettings,
    pub listen: Vec<Listen>,
    /// Extra permissions by address range.
    pub whitelist: Whitelist,
    /// Timeout for opening a connection: `-timeout`.
    pub connect_timeout: Duration,
    pub buffers: Buffers,
    /// Where addresses, bans and anchors are kept between runs. If `None`, they are not kept.
    pub data: Option<DataFolder>,
    /// Default ban time in seconds: `-bantime`.
    pub ban_time: u64,
    /// The block filters that are served, if [`NetworkSettings::manager`] announces the service.
    pub filters: Option<Arc<dyn FilterSource>>,
    /// Whether to write all messages to files in the folder of `data`: `-capturemessages`.
    pub captures_messages: bool,
}

/// Maximum bytes that wait in the buffers of one connection: `-maxreceivebuffer` and `-maxsendbuffer`.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    pub receive: usize,
    pub send: usize,
}

impl Default for Buffers {
    fn default() -> Self {
        Buffers { receive: limits::RECEIVE_BUFFER_BYTES, send: limits::SEND_BUFFER_BYTES }
    }
}

/// Why the network could not be started.
#[derive(Debug)]
pub enum NetworkError {
    Runtime {
        reason: String,
    },
    Bind {
        address: SocketAddr,
        error: BindFault,
    },
    /// A file of the last run is unusable.
    Files(FilesError),
}

/// Why an address could not be bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BindFault {
    InUse,
    /// The system's error text and number, in Core's format.
    Other {
        reason: String,
    },
}

impl std::fmt::Display for NetworkError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NetworkError::Runtime { reason } => write!(f, "Unable to start the network threads: {reason}"),
            NetworkError::Files(error) => error.fmt(f),
            NetworkError::Bind { address, error: BindFault::InUse } => {
                write!(f, "Unable to bind to {address} on this computer. Lydian is probably already running.")
            }
            NetworkError::Bind { address, error: BindFault::Other { reason } } => {
                write!(f, "Unable to bind to {address} on this computer (bind returned error {reason})")
            }
        }
    }
}

impl std::error::Error for NetworkError {}

/// What the manager and the connections count.
#[derive(Debug)]
struct Counts {
    traffic: Arc<TrafficTotals>,
    sent_blocks: Arc<SentBlocks>,
}

/// A running network. It stops when it is dropped.
#[derive(Debug)]
pub struct Network {
    is_ending: Arc<AtomicBool>,
    events: Events,
    validator: Arc<Validator>,
    figures: Arc<Figures>,
    counts: Counts,
    memory: Arc<MemoryBudget>,
    addresses: Vec<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
    runtime: Option<Runtime>,
    host: Arc<dyn Host>,
}

impl Network {
    /// Listens, connects, and validates the blocks that arrive; validation starts once no blocks from disk are being
    /// loaded.
    // tidy: long function: the order in which threads and queues start
    pub fn start(
        engine: &Arc<Engine>,
        mempool: &Arc<Mempool>,
        settings: &NetworkSettings,
        host: Arc<dyn Host>,
        observer: Arc<dyn Observer + Send>,
    ) -> Result<Network, NetworkError> {
        let mut random = ChaCha20Rng::from_seed(settings.manager.seed);
        random.set_stream(1);
        let mut wishes = settings.manager.clone();
        // Addresses are grouped by their first bits; there is no ASMap.
        host.log(LogLevel::Info, "Using /16 prefix for IP bucketing".to_owned());
        let (addrman, bans) =
            files::load(settings.data.as_ref(), &mut wishes, settings.ban_time, host.as_ref(), &mut random)
                .map_err(NetworkError::Files)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(SOCKET_THREADS)
            .thread_name("net")
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| NetworkError::Runtime { reason: error.to_string() })?;
        let (events, incoming) = queues::events();
        let is_ending = Arc::new(AtomicBool::new(false));
        host.log(LogLevel::Info, format!("SetNetworkActive: {}", settings.manager.connect.is_network_active));
        let mut manager = PeerManager::new(Arc::clone(engine), wishes, addrman, bans, Arc::clone(mempool));
        manager.set_log_switches(host.log_switches());
        if let Some(filters) = &settings.filters {
            manager.serve_filters(Arc::clone(filters));
        }
        let counts = Counts { traffic: Arc::clone(manager.traffic()), sent_blocks: Arc::clone(manager.sent_blocks()) };
        let totals = Arc::clone(&counts.traffic);
        let dialer = Arc::new(Dialer::new(settings, Arc::clone(&host), events.clone(), Arc::clone(engine), totals));
        let addresses = bind(&runtime, &settings.listen, &dialer, host.as_ref())?;
        runtime.spawn(dial::tick(events.clone()));
        let initial_download = Arc::clone(&settings.manager.initial_download);
        let validator =
            Arc::new(Validator::new(Arc::clone(engine), observer, events.clone(), initial_download, Arc::clone(&host)));
        let own_events = events.clone();
        let pool = (Arc::clone(mempool), events.clone());
        let (blocks, to_store) = queues::blocks();
        let storer = store::Storer::new(Arc::clone(engine), Arc::clone(&validator), Arc::clone(&host), events);
        let figures = Arc::<Figures>::default();
        let (saves, to_save) = queues::saves();
        let (data, save_host) = (settings.data.clone(), Arc::clone(&host));
        let memory = Arc::clone(dialer.memory());
        let sockets = (dialer, runtime.handle().clone());
        let shared_host = Arc::clone(&host);
        // In the log, all socket threads together are one thread.
        shared_host.log(LogLevel::Info, format!("{} thread start", "net"));
        let manager_thread = ManagerThread::new(
            manager,
            host,
            (blocks, saves),
            sockets,
            pool,
            Arc::clone(&is_ending),
            Arc::clone(&figures),
        );
        let threads = vec![
            spawn("msghand", &shared_host, move || manager_thread.work(incoming))?,
            spawn("save", &shared_host, move || files::write(data.as_ref(), &to_save, save_host.as_ref()))?,
            spawn("store", &shared_host, move || storer.work(&to_store))?,
            spawn("validate", &shared_host, {
                let validator = Arc::clone(&validator);
                move || validator.work()
            })?,
        ];
        let (events, runtime, host) = (own_events, Some(runtime), shared_host);
        Ok(Network { is_ending, events, validator, figures, counts, memory, addresses, threads, runtime, host })
    }

    /// The addresses it listens on. Where the system chose the port, that port is in the address.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns a handle for questions and commands to the peer manager.
    pub fn handle(&self) -> Handle {
        Handle::new(self.events.clone())
    }

    /// The progress of the sync, for a display.
    pub fn figures(&self) -> &Arc<Figures> {
        &self.figures
    }

    /// Who sent the latest blocks, for a display that asks for it.
    pub fn sent_blocks(&self) -> &Arc<SentBlocks> {
        &self.counts.sent_blocks
    }

    /// The memory budget shared by all peers.
    pub fn memory(&self) -> &Arc<MemoryBudget> {
        &self.memory
    }

    /// The bytes of all peers.
    pub fn traffic(&self) -> &Arc<TrafficTotals> {
        &self.counts.traffic
    }

    /// The validator. Code that changes the chain in another way must wake it.
    pub fn validator(&self) -> &Arc<Validator> {
        &self.validator
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Release);
        self.validator.stop();
        // Wakes the manager's thread. If the queue is full, another event wakes it.
        let _ = self.events.try_send(driver::Event::Tick.into());
        // Ends the connections and the ticks, and drops the last senders of events.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(SHUTDOWN_TIME);
            self.host.log(LogLevel::Info, format!("{} thread exit", "net"));
        }
        for thread in self.threads.drain(..) {
            // A panic has already been reported.
            let _ = thread.join();
        }
    }
}

/// Listens on all addresses, and returns those that could be bound.
fn bind(
    runtime: &Runtime,
    places: &[Listen],
    dialer: &Arc<Dialer>,
    host: &dyn Host,
) -> Result<Vec<SocketAddr>, NetworkError> {
    let mut addresses = Vec::new();
    for place in places {
        let bound = runtime.block_on(async { listen::listen(*place, dialer) })?;
        if let Some(address) = bound {
            host.log(LogLevel::Info, format!("Bound to {address}"));
        }
        addresses.extend(bound);
    }
    Ok(addresses)
}

/// Starts a thread and logs its start and end: Core's `TraceThread`.
fn spawn(
    name: &'static str,
    host: &Arc<dyn Host>,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, NetworkError> {
    let host = Arc::clone(host);
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _guard = AbortOnPanic;
            host.log(LogLevel::Info, format!("{name} thread start"));
            work();
            host.log(LogLevel::Info, format!("{name} thread exit"));
        })
        .map_err(|error| NetworkError::Runtime { reason: error.to_string() })
}

type Events = mpsc::Sender<Event>;
