//! [`Server`]: starts, answers, stops.
//!
//! Input: settings and a context. Output: answers on connections. See [`super`].

use super::log::HttpLog;
use super::queue::Queue;
use super::respond::{Shared, respond};
use crate::context::{Context, LogLevel};
use crate::rest::{ROUTES, Route};
use crate::table::counted;
use crate::whitelist::Whitelist;
use axum::Router;
use lydian_serve::figures::Requests;
use lydian_serve::http::{Bodies, Http};
use lydian_serve::{BindFailure, Control, ListenSettings, Listener, Login, StartError, Subnet, Users};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Settings of the server.
#[derive(Debug)]
pub struct ServerSettings {
    pub addresses: Vec<SocketAddr>,
    /// `-rpcallowip`, in addition to this machine.
    pub allowed: Vec<Subnet>,
    pub users: Users,
    pub whitelist: Whitelist,
    /// `-rest`.
    pub has_rest: bool,
    /// `-rpcthreads`.
    pub threads: usize,
    /// `-rpcworkqueue`.
    pub queue: usize,
    /// `-rpcservertimeout`; `None`: no timeout.
    pub idle: Option<Duration>,
}

/// Why the server could not be started.
#[derive(Debug)]
pub struct ServerError(StartError);

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            StartError::Threads(error) => write!(f, "cannot start the threads of the RPC server: {error}"),
            StartError::NoEndpoint(failures) => {
                let failures: Vec<String> = failures.iter().map(BindFailure::to_string).collect();
                write!(f, "Unable to bind any endpoint for RPC server: {}", failures.join("; "))
            }
        }
    }
}

impl std::error::Error for ServerError {}

/// A running server. It answers until it is stopped.
#[derive(Debug)]
pub struct Server {
    /// `None` once it was stopped.
    server: Option<lydian_serve::Server>,
    context: Arc<Context>,
    addresses: Vec<SocketAddr>,
    /// The paths of REST that are served.
    routes: &'static [Route],
    counts: Counts,
}

/// What the server has done so far. It outlives the server.
#[derive(Clone, Debug)]
pub struct Counts {
    pub(crate) requests: Arc<Requests>,
    pub(crate) rest_requests: Arc<Requests>,
    pub(crate) refused: Arc<AtomicU64>,
    pub(crate) control: Control,
}

/// The path of JSON-RPC, and Core's flags for a path that must match exactly and for one that starts others.
const PATH: &str = "/";
const IS_EXACT: u8 = 1;
const IS_PREFIX: u8 = 0;

impl Server {
    /// Starts listening. Calls are answered from now on, with the warm-up error until the context is ready.
    pub fn start(context: Arc<Context>, settings: ServerSettings) -> Result<Server, ServerError> {
        let host = context.host.as_ref();
        host.debug("http", || {
            let allowed = Subnet::loopback()
                .into_iter()
                .chain(settings.allowed.iter().copied())
                .map(|subnet| format!("{subnet} "));
            format!("Allowing HTTP connections from: {}", allowed.collect::<String>())
        });
        let (threads, depth) = (settings.threads.max(1), settings.queue.max(1));
        let listen = ListenSettings {
            name: "rpc",
            addresses: settings.addresses,
            tls: None,
            allowed: settings.allowed,
            proxies: Vec::new(),
            // One more thread answers `stop`.
            blocking_threads: threads + 1,
            idle: settings.idle,
            answers: Arc::clone(&context.answers),
        };
        let listener = Listener::bind(listen, Arc::new(HttpLog(Arc::clone(&context)))).map_err(|error| {
            if matches!(error, StartError::NoEndpoint(_)) {
                host.log(LogLevel::Error, "Unable to bind any endpoint for RPC server");
            }
            ServerError(error)
        })?;
        host.debug("http", || "Initialized HTTP server".to_owned());
        host.debug("http", || format!("set work queue of depth {depth}"));
        host.debug("rpc", || "Starting RPC".to_owned());
        host.debug("rpc", || "Starting HTTP RPC server".to_owned());
        host.debug("http", || format!("Registering HTTP handler for {PATH} (exactmatch {IS_EXACT})"));
        let routes = if settings.has_rest { ROUTES } else { &[] };
        for Route { prefix, .. } in routes {
            host.debug("http", || format!("Registering HTTP handler for {prefix} (exactmatch {IS_PREFIX})"));
        }
        host.log(LogLevel::Info, &format!("Starting HTTP server with {threads} worker threads"));
        let requests = Arc::new(Requests::new(counted()));
        let rest_requests = Arc::new(Requests::new(ROUTES.iter().map(|route| route.prefix)));
        let refused = Arc::<AtomicU64>::default();
        let shared = Arc::new(Shared {
            context: Arc::clone(&context),
            login: Login::new(settings.users),
            whitelist: settings.whitelist,
            has_rest: settings.has_rest,
            queue: Arc::new(Queue::new(threads, depth)),
            bodies: Bodies::default(),
            stopped: listener.stopped(),
            requests: Arc::clone(&requests),
            rest_requests: Arc::clone(&rest_requests),
            refused: Arc::clone(&refused),
        });
        let router = Router::new().fallback(respond).with_state(shared);
        let server = listener.serve(Http::new(router, settings.idle));
        let addresses = server.addresses().to_vec();
        let counts = Counts { requests, rest_requests, refused, control: server.control() };
        Ok(Server { server: Some(server), context, addresses, routes, counts })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it has done so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Ends waits, lets answers in progress finish, and closes everything.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(server) = self.server.take() else { return };
        let host = self.context.host.as_ref();
        host.debug("http", || "Interrupting HTTP server".to_owned());
        host.debug("rpc", || "Interrupting HTTP RPC server".to_owned());
        host.debug("rpc", || "Interrupting RPC".to_owned());
        self.context.stop();
        host.debug("rpc", || "Stopping HTTP RPC server".to_owned());
        host.debug("http", || format!("Unregistering HTTP handler for {PATH} (exactmatch {IS_EXACT})"));
        for Route { prefix, .. } in self.routes {
            host.debug("http", || format!("Unregistering HTTP handler for {prefix} (exactmatch {IS_PREFIX})"));
        }
        host.debug("rpc", || "Stopping RPC".to_owned());
        host.debug("rpc", || "RPC stopped.".to_owned());
        host.debug("http", || "Stopping HTTP server".to_owned());
        host.debug("http", || "Waiting for HTTP clients to disconnect gracefully".to_owned());
        if let Some(left) = server.close() {
            let words = "Timeout waiting for HTTP clients to disconnect gracefully, continuing shutdown";
            host.log(LogLevel::Warning, words);
            if left > 0 {
                let words = format!("Force-disconnecting {left} HTTP client(s) that did not disconnect gracefully");
                host.log(LogLevel::Warning, &words);
            }
        }
        host.debug("http", || "Waiting for HTTP worker threads to exit".to_owned());
        server.end();
        host.debug("http", || "Stopped HTTP server".to_owned());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
