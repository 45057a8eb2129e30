//! [`Server`]: listens, accepts, answers, stops. Input: settings and a context. Output: answers on connections. See [`super`].

use super::bind::listen;
use super::idle::{Busy, BusyGuard, IdleStream};
use crate::allow::Subnet;
use crate::auth::{Users, Whitelist};
use crate::context::{Context, LogLevel};
use crate::exec::{Reply, execute};
use crate::limits::{BODY_SIZE_MAX, CONNECTIONS_MAX, HEADER_LINES_MAX, HEADERS_SIZE_MAX};
use crate::table;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, WWW_AUTHENTICATE};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use std::{fmt, io};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// What the server is told.
#[derive(Debug)]
pub struct ServerSettings {
    pub addresses: Vec<SocketAddr>,
    /// `-rpcallowip`, beside this machine.
    pub allowed: Vec<Subnet>,
    pub users: Users,
    pub whitelist: Whitelist,
    /// `-rpcthreads`.
    pub threads: usize,
    /// `-rpcworkqueue`.
    pub queue: usize,
    /// `-rpcservertimeout`; `None` for ever.
    pub idle: Option<Duration>,
}

/// Why there is no server.
#[derive(Debug)]
pub enum ServerError {
    Runtime(io::Error),
    /// None of the addresses could be bound; the sentences say why.
    NoEndpoint(Vec<String>),
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServerError::Runtime(error) => write!(f, "the threads of the RPC server could not be started: {error}"),
            ServerError::NoEndpoint(reasons) => {
                write!(f, "Unable to bind any endpoint for RPC server: {}", reasons.join("; "))
            }
        }
    }
}

impl std::error::Error for ServerError {}

/// A server that answers until it is stopped.
#[derive(Debug)]
pub struct Server {
    runtime: Option<Runtime>,
    context: Arc<Context>,
    stop: watch::Sender<bool>,
    addresses: Vec<SocketAddr>,
}

/// How long connections may take to end: Core waits 30 seconds.
const STOP_SECONDS_MAX: u64 = 30;

/// Threads that serve sockets; calls run elsewhere.
const SOCKET_THREADS: usize = 2;

/// Core's, to deter guessing.
const WRONG_PASSWORD_DELAY: Duration = Duration::from_millis(250);

impl Server {
    /// Listens. From here on calls are answered, with a warm-up error until the context is ready.
    pub fn start(context: Arc<Context>, settings: ServerSettings) -> Result<Server, ServerError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(SOCKET_THREADS)
            .max_blocking_threads(settings.threads.max(1))
            .thread_name("rpc")
            .enable_all()
            .build()
            .map_err(ServerError::Runtime)?;
        let (stop, stopped) = watch::channel(false);
        let mut failures = Vec::new();
        let mut addresses = Vec::new();
        let mut listeners = Vec::new();
        for address in &settings.addresses {
            context
                .host
                .log(LogLevel::Info, &format!("Binding RPC on address {} port {}", address.ip(), address.port()));
            if address.ip().is_unspecified() {
                let words = "The RPC server is not safe to expose to untrusted networks such as the public internet";
                context.host.log(LogLevel::Warning, words);
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
                    context.host.log(LogLevel::Warning, &format!("Binding RPC on address {address} failed: {reason}"));
                    failures.push(reason);
                }
            }
        }
        if listeners.is_empty() {
            return Err(ServerError::NoEndpoint(failures));
        }
        context
            .host
            .log(LogLevel::Info, &format!("Starting HTTP server with {} worker threads", settings.threads.max(1)));
        let shared = Arc::new(Shared::new(Arc::clone(&context), settings, stopped));
        for listener in listeners {
            runtime.spawn(accept(listener, Arc::clone(&shared)));
        }
        Ok(Server { runtime: Some(runtime), context, stop, addresses })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Ends waits, lets answers under way go out, and closes everything.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.context.stop();
        // Nobody listens only if all connections have ended.
        let _ = self.stop.send(true);
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(async {
                let all_gone = self.stop.closed();
                tokio::select! {
                    () = all_gone => {}
                    () = sleep(Duration::from_secs(STOP_SECONDS_MAX)) => {}
                }
            });
            runtime.shutdown_timeout(Duration::from_secs(1));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

/// Core's words for a port that is taken.
fn refusal(address: SocketAddr, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("Unable to bind to {address} on this computer. Lydian is probably already running.")
        }
        _ => format!("Unable to bind to {address} on this computer (bind returned error {error})"),
    }
}

/// What all connections share.
#[derive(Debug)]
struct Shared {
    context: Arc<Context>,
    allowed: Vec<Subnet>,
    users: Users,
    whitelist: Whitelist,
    idle: Option<Duration>,
    threads: Semaphore,
    /// Calls that wait for a thread, and how many may.
    waiting: AtomicUsize,
    queue: usize,
    connections: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
}

impl Shared {
    fn new(context: Arc<Context>, settings: ServerSettings, stopped: watch::Receiver<bool>) -> Shared {
        let mut allowed = Subnet::loopback().to_vec();
        allowed.extend(settings.allowed);
        Shared {
            context,
            allowed,
            users: settings.users,
            whitelist: settings.whitelist,
            idle: settings.idle,
            threads: Semaphore::new(settings.threads.max(1)),
            waiting: AtomicUsize::new(0),
            queue: settings.queue.max(1),
            connections: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
            stopped,
        }
    }

    fn is_allowed(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|subnet| subnet.contains(address))
    }

    fn debug(&self, words: impl FnOnce() -> String) {
        self.context.host.log(LogLevel::Debug("http"), &words());
    }
}

/// A connection's end, as a request knows it.
#[derive(Clone, Debug)]
struct Peer {
    address: SocketAddr,
    busy: Busy,
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
                let Ok(permit) = Arc::clone(&shared.connections).try_acquire_owned() else {
                    shared.debug(|| format!("HTTP connection from {address} dropped: too many connections"));
                    continue;
                };
                let shared = Arc::clone(&shared);
                tokio::spawn(async move {
                    serve(stream, address, &shared).await;
                    drop(permit);
                });
            }
            Err(error) => {
                // Out of file descriptors, say: others will be closed.
                shared.debug(|| format!("Cannot accept new connection: {error}"));
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn asked_to_stop(stopped: &mut watch::Receiver<bool>) {
    // A sender that is gone has stopped as well.
    let _ = stopped.wait_for(|is_stopped| *is_stopped).await;
}

async fn serve(stream: TcpStream, address: SocketAddr, shared: &Arc<Shared>) {
    if let Err(error) = stream.set_nodelay(true) {
        shared.debug(|| format!("connection from {address}: unable to set TCP_NODELAY, continuing anyway: {error}"));
    }
    let peer = Peer { address, busy: Busy::default() };
    let io = TokioIo::new(IdleStream::new(stream, shared.idle, peer.busy.clone()));
    let router = TowerToHyperService::new(Router::new().fallback(respond).with_state(Arc::clone(shared)));
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(peer.clone());
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(HEADERS_SIZE_MAX)
        .max_headers(HEADER_LINES_MAX);
    let mut connection = pin!(builder.serve_connection(io, service));
    let mut stopped = shared.stopped.clone();
    let result = tokio::select! {
        result = connection.as_mut() => result,
        () = asked_to_stop(&mut stopped) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = result {
        shared.debug(|| format!("Error reading HTTP request from client {address}: {error}"));
    }
}

async fn respond(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(peer) = parts.extensions.get::<Peer>() else { return status(StatusCode::INTERNAL_SERVER_ERROR) };
    if !shared.is_allowed(peer.address.ip()) {
        shared
            .debug(|| format!("HTTP request from {} rejected: Client network is not allowed RPC access", peer.address));
        return status(StatusCode::FORBIDDEN);
    }
    if is_too_large(&parts.headers) {
        return too_large();
    }
    if ![Method::GET, Method::POST, Method::HEAD, Method::PUT].contains(&parts.method) {
        return status(StatusCode::METHOD_NOT_ALLOWED);
    }
    if !is_root(&parts.uri) {
        return status(StatusCode::NOT_FOUND);
    }
    if parts.method != Method::POST {
        return text(StatusCode::METHOD_NOT_ALLOWED, "JSONRPC server handles only POST requests");
    }
    let Some(user) = authorize(&shared, peer, &parts.headers).await else { return unauthorized() };
    let body = match Limited::new(body, BODY_SIZE_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return too_large(),
        Err(_) => return status(StatusCode::BAD_REQUEST),
    };
    if *shared.stopped.borrow() {
        return text(StatusCode::SERVICE_UNAVAILABLE, "Request rejected during server shutdown");
    }
    if shared.waiting.fetch_add(1, Ordering::SeqCst) >= shared.queue {
        shared.waiting.fetch_sub(1, Ordering::SeqCst);
        let words = "Request rejected because http work queue depth exceeded, it can be increased with the -rpcworkqueue= setting";
        shared.context.host.log(LogLevel::Warning, words);
        return text(StatusCode::SERVICE_UNAVAILABLE, "Work queue depth exceeded");
    }
    let busy = peer.busy.begin();
    let permit = shared.threads.acquire().await;
    shared.waiting.fetch_sub(1, Ordering::SeqCst);
    let reply = call(Arc::clone(&shared), user, body, busy).await;
    drop(permit);
    reply
}

/// Answers on a thread that may block.
async fn call(shared: Arc<Shared>, user: String, body: bytes::Bytes, busy: BusyGuard) -> Response {
    let answering = spawn_blocking(move || {
        let reply = execute(&shared.context, table::find, &shared.whitelist, &user, &body);
        drop(busy);
        reply
    });
    match answering.await {
        Ok(Reply { status, body }) => {
            let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            match body {
                Some(body) => reply(code, Some("application/json"), Body::from(body)),
                None if code == StatusCode::NO_CONTENT => reply(code, None, Body::empty()),
                None => self::status(code),
            }
        }
        // It panicked, and said so.
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "unknown error"),
    }
}

async fn authorize(shared: &Shared, peer: &Peer, headers: &HeaderMap) -> Option<String> {
    let header = headers.get(AUTHORIZATION)?;
    let user = shared.users.authorize(header.as_bytes());
    if user.is_none() {
        let words = format!("ThreadRPCServer incorrect password attempt from {}", peer.address);
        shared.context.host.log(LogLevel::Warning, &words);
        sleep(WRONG_PASSWORD_DELAY).await;
    }
    user
}

/// Exactly `/`, as it stands in the first line.
fn is_root(uri: &Uri) -> bool {
    uri.authority().is_none() && uri.path_and_query().is_some_and(|path| path.as_str() == "/")
}

fn is_too_large(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()).and_then(|text| text.parse().ok());
    length.is_some_and(|length: u64| length > BODY_SIZE_MAX as u64)
}

/// With Core's words for it.
fn too_large() -> Response {
    let mut response = status(StatusCode::PAYLOAD_TOO_LARGE);
    response.extensions_mut().insert(hyper::ext::ReasonPhrase::from_static(b"Content too large"));
    response
}

fn unauthorized() -> Response {
    let mut response = status(StatusCode::UNAUTHORIZED);
    let value = axum::http::HeaderValue::from_static("Basic realm=\"jsonrpc\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, value);
    response
}

const CORES_DEFAULT_TYPE: &str = "text/html; charset=ISO-8859-1";

fn status(code: StatusCode) -> Response {
    reply(code, Some(CORES_DEFAULT_TYPE), Body::empty())
}

fn text(code: StatusCode, words: &'static str) -> Response {
    reply(code, Some(CORES_DEFAULT_TYPE), Body::from(words))
}

fn reply(code: StatusCode, kind: Option<&'static str>, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    if let Some(kind) = kind {
        response.headers_mut().insert(CONTENT_TYPE, axum::http::HeaderValue::from_static(kind));
    }
    response
}
