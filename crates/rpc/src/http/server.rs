//! [`Server`]: listens, accepts, answers, stops.
//!
//! Input: settings and a context. Output: answers on connections. See [`super`].

use super::connection::WatchedStream;
use super::guesses::Guesses;
use super::places::{Place, Places};
use super::respond::{bodies, respond};
use crate::context::{Context, LogLevel};
use crate::limits::{HEADER_LINES_MAX, HEADERS_SIZE_MAX};
use crate::whitelist::Whitelist;
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use lydian_serve::{Subnet, Users, listen};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use std::{fmt, io};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

/// Settings of the server.
#[derive(Debug)]
pub struct ServerSettings {
    pub addresses: Vec<SocketAddr>,
    /// `-rpcallowip`, in addition to this machine.
    pub allowed: Vec<Subnet>,
    pub users: Users,
    pub whitelist: Whitelist,
    /// `-rpcthreads`.
    pub threads: usize,
    /// `-rpcworkqueue`.
    pub queue: usize,
    /// `-rpcservertimeout`; `None`: no timeout.
    pub idle: Option<Duration>,
}

/// Why the server could not be started.
#[derive(Debug)]
pub enum ServerError {
    Runtime(io::Error),
    /// None of the addresses could be bound. Contains the error messages.
    NoEndpoint(Vec<String>),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Runtime(error) => write!(f, "cannot start the threads of the RPC server: {error}"),
            ServerError::NoEndpoint(reasons) => {
                write!(f, "Unable to bind any endpoint for RPC server: {}", reasons.join("; "))
            }
        }
    }
}

impl std::error::Error for ServerError {}

/// A running server. It answers until it is stopped.
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
    context: Arc<Context>,
    stop: watch::Sender<bool>,
    addresses: Vec<SocketAddr>,
    /// Open connections.
    open: Arc<Places>,
}

/// Seconds that connections may take to close: Core waits 30 seconds.
const STOP_SECONDS_MAX: u64 = 30;

/// The only path that is served, and Core's flag for a path that must match exactly.
const PATH: &str = "/";
const IS_EXACT: u8 = 1;

/// Threads that serve sockets; calls run on other threads.
const SOCKET_THREADS: usize = 2;

impl Server {
    /// Starts listening. Calls are answered from now on, with the warm-up error until the context is ready.
    pub fn start(context: Arc<Context>, settings: ServerSettings) -> Result<Server, ServerError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(SOCKET_THREADS)
            // One more thread answers `stop`.
            .max_blocking_threads(settings.threads.max(1) + 1)
            .thread_name("rpc")
            .enable_all()
            .build()
            .map_err(ServerError::Runtime)?;
        let host = context.host.as_ref();
        host.debug("http", || {
            let allowed = Subnet::loopback()
                .into_iter()
                .chain(settings.allowed.iter().copied())
                .map(|subnet| format!("{subnet} "));
            format!("Allowing HTTP connections from: {}", allowed.collect::<String>())
        });
        let (stop, stopped) = watch::channel(false);
        let mut failures = Vec::new();
        let mut addresses = Vec::new();
        let mut listeners = Vec::new();
        for address in &settings.addresses {
            host.log(LogLevel::Info, &format!("Binding RPC on address {} port {}", address.ip(), address.port()));
            if address.ip().is_unspecified() {
                let words = "The RPC server is not safe to expose to untrusted networks such as the public internet";
                host.log(LogLevel::Warning, words);
            }
            let listening = listen(*address).and_then(|listener| {
                let _entered = runtime.enter();
                TcpListener::from_std(listener)
            });
            match listening.and_then(|listener| Ok((listener.local_addr()?, listener))) {
                Ok((address, listener)) => {
                    addresses.push(address);
                    listeners.push(listener);
                }
                Err(error) => {
                    let reason = refusal(*address, &error);
                    host.log(LogLevel::Warning, &format!("Binding RPC on address {address} failed: {reason}"));
                    failures.push(reason);
                }
            }
        }
        if listeners.is_empty() {
            host.log(LogLevel::Error, "Unable to bind any endpoint for RPC server");
            return Err(ServerError::NoEndpoint(failures));
        }
        host.debug("http", || "Initialized HTTP server".to_owned());
        host.debug("http", || format!("set work queue of depth {}", settings.queue.max(1)));
        host.debug("rpc", || "Starting RPC".to_owned());
        host.debug("rpc", || "Starting HTTP RPC server".to_owned());
        host.debug("http", || format!("Registering HTTP handler for {PATH} (exactmatch {IS_EXACT})"));
        host.log(LogLevel::Info, &format!("Starting HTTP server with {} worker threads", settings.threads.max(1)));
        let shared = Arc::new(Shared::new(Arc::clone(&context), settings, stopped));
        for listener in listeners {
            runtime.spawn(accept(listener, Arc::clone(&shared)));
        }
        let open = Arc::clone(&shared.places);
        Ok(Server { runtime: Some(runtime), context, stop, addresses, open })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Ends waits, lets answers in progress finish, and closes everything.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        let host = self.context.host.as_ref();
        host.debug("http", || "Interrupting HTTP server".to_owned());
        host.debug("rpc", || "Interrupting HTTP RPC server".to_owned());
        host.debug("rpc", || "Interrupting RPC".to_owned());
        self.context.stop();
        host.debug("rpc", || "Stopping HTTP RPC server".to_owned());
        host.debug("http", || format!("Unregistering HTTP handler for {PATH} (exactmatch {IS_EXACT})"));
        host.debug("rpc", || "Stopping RPC".to_owned());
        host.debug("rpc", || "RPC stopped.".to_owned());
        host.debug("http", || "Stopping HTTP server".to_owned());
        host.debug("http", || "Waiting for HTTP clients to disconnect gracefully".to_owned());
        // There is no receiver if all connections have ended.
        let _ = self.stop.send(true);
        let is_late = runtime.block_on(async {
            tokio::select! {
                () = self.stop.closed() => false,
                () = sleep(Duration::from_secs(STOP_SECONDS_MAX)) => true,
            }
        });
        if is_late {
            let words = "Timeout waiting for HTTP clients to disconnect gracefully, continuing shutdown";
            host.log(LogLevel::Warning, words);
            let left = self.open.count();
            if left > 0 {
                let words = format!("Force-disconnecting {left} HTTP client(s) that did not disconnect gracefully");
                host.log(LogLevel::Warning, &words);
            }
        }
        host.debug("http", || "Waiting for HTTP worker threads to exit".to_owned());
        runtime.shutdown_timeout(Duration::from_secs(1));
        host.debug("http", || "Stopped HTTP server".to_owned());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Core's message for an address that cannot be bound.
fn refusal(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("Unable to bind to {address} on this computer. Lydian is probably already running.")
        }
        _ => format!("Unable to bind to {address} on this computer (bind returned error {error})"),
    }
}

/// State shared by all connections.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) context: Arc<Context>,
    allowed: Vec<Subnet>,
    pub(super) users: Users,
    pub(super) whitelist: Whitelist,
    idle: Option<Duration>,
    /// Threads that answer calls.
    pub(super) threads: Arc<Semaphore>,
    /// The thread that answers `stop`.
    pub(super) stop_thread: Arc<Semaphore>,
    /// The number of calls that wait for a thread, and its maximum.
    pub(super) waiting: AtomicUsize,
    pub(super) queue: usize,
    pub(super) bodies: Arc<Semaphore>,
    pub(super) guesses: Arc<Guesses>,
    places: Arc<Places>,
    pub(super) stopped: watch::Receiver<bool>,
}

impl Shared {
    fn new(context: Arc<Context>, settings: ServerSettings, stopped: watch::Receiver<bool>) -> Shared {
        let mut allowed = Subnet::loopback().to_vec();
        allowed.extend(settings.allowed);
        let places = Arc::new(Places::default());
        let relief = Arc::downgrade(&places);
        context.answers.set_relief(move |bytes, waited| {
            if let Some(places) = relief.upgrade() {
                places.close_unread(bytes, waited);
            }
        });
        Shared {
            context,
            allowed,
            users: settings.users,
            whitelist: settings.whitelist,
            idle: settings.idle,
            threads: Arc::new(Semaphore::new(settings.threads.max(1))),
            stop_thread: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            queue: settings.queue.max(1),
            bodies: bodies(),
            guesses: Arc::default(),
            places,
            stopped,
        }
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|subnet| subnet.contains(address))
    }

    pub(super) fn debug(&self, words: impl FnOnce() -> String) {
        self.context.host.debug("http", words);
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut stopped = shared.stopped.clone();
    loop {
        let accepted = tokio::select! {
            () = asked_to_stop(&mut stopped) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, address)) => {
                let Some(place) = shared.places.take(address, shared.is_allowed(address.ip())) else {
                    shared.debug(|| format!("HTTP connection from {address} dropped: too many connections"));
                    continue;
                };
                let shared = Arc::clone(&shared);
                tokio::spawn(async move { serve(stream, place, &shared).await });
            }
            Err(error) => {
                // For example, no file descriptor is free until another connection closes.
                shared.debug(|| format!("Cannot accept new connection: {error}"));
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn asked_to_stop(stopped: &mut watch::Receiver<bool>) {
    // If the sender is gone, the server has stopped as well.
    let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
}

async fn serve(stream: TcpStream, place: Place, shared: &Arc<Shared>) {
    let connection = Arc::clone(&place.connection);
    let (address, id) = (connection.address, connection.id);
    if let Err(error) = stream.set_nodelay(true) {
        shared.debug(|| format!("connection from {address}: unable to set TCP_NODELAY, continuing anyway: {error}"));
    }
    shared.debug(|| format!("HTTP Connection accepted from {address} (id={id})"));
    let io =
        TokioIo::new(WatchedStream::new(stream, shared.idle, Arc::clone(&connection), Arc::clone(&shared.context)));
    let router = TowerToHyperService::new(Router::new().fallback(respond).with_state(Arc::clone(shared)));
    let with_connection = Arc::clone(&connection);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&with_connection));
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Applies to the whole header, however slowly its bytes arrive.
        .header_read_timeout(shared.idle)
        .max_buf_size(HEADERS_SIZE_MAX)
        .max_headers(HEADER_LINES_MAX);
    let mut serving = pin!(builder.serve_connection(io, service));
    let mut stopped = shared.stopped.clone();
    let result = tokio::select! {
        result = serving.as_mut() => result,
        () = connection.closed() => Ok(()),
        () = asked_to_stop(&mut stopped) => {
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                result = serving => result,
                () = connection.closed() => Ok(()),
            }
        }
    };
    if let Err(error) = result {
        shared.debug(|| format!("Error reading HTTP request from client {address} (id={id}): {error}"));
    }
    shared.debug(|| format!("Disconnecting HTTP client {address} (id={id})"));
}
