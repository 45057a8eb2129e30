//! [`Server`]: starts, checks requests, routes them, stops.

use crate::assets;
use crate::guard::{Names, header};
use crate::hub::{Hub, Shown};
use crate::limits::{ANSWERS_SIZE_MAX, BODY_SIZE_MAX, STREAMS_MAX};
use crate::live::{SLOW, Stream};
use crate::ports::{Calls, Host, Metrics, Past, Topics};
use crate::reply::{json, protect, refuse};
use crate::session::Sessions;
use crate::{call, login, metrics, past};
use axum::extract::{Request, State};
use axum::http::header::{COOKIE, HeaderMap, HeaderName, ORIGIN};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::{Extension, Router};
use lydian_disk::Disk;
use lydian_primitives::to_hex;
use lydian_serve::http::{Http, read_short};
use lydian_serve::{
    Budget, Connection, ListenSettings, Listener, Log, Login, StartError, Stopped, Subnet, TlsIdentity, random,
};
use lydian_stdx::Current;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::task::spawn_blocking;

const TOKEN: HeaderName = HeaderName::from_static("x-lydian-token");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What `-rpcwhitelist` calls the figures (`/metrics`, `/api/figures`) and the history.
pub(crate) const FIGURES: &str = "lydian_figures";
const HISTORY: &str = "lydian_history";

/// A connection without a request for this long ends.
const IDLE: Duration = Duration::from_secs(120);

/// Time for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads that answer requests.
const THREADS: usize = 16;

/// Settings of the page.
#[derive(Debug)]
pub struct Settings {
    pub addresses: Vec<SocketAddr>,
    /// The certificate for addresses beyond this machine; `None`: all addresses are on this machine.
    pub tls: Option<(Vec<SocketAddr>, TlsIdentity)>,
    /// Addresses that may use the server, in addition to this machine.
    pub allowed: Vec<Subnet>,
    /// `-pagehost`.
    pub hosts: Vec<String>,
    /// `-pageactions`.
    pub has_actions: bool,
    /// `-pageopen`.
    pub is_open: bool,
    /// The port in the name of the cookie, so that two nodes of one machine do not share it.
    pub port: u16,
    /// The name of the chain.
    pub chain: &'static str,
    /// Where sessions are kept.
    pub directory: PathBuf,
}

/// What the page needs from the node.
#[derive(Debug)]
pub struct Ports {
    pub calls: Arc<dyn Calls>,
    pub topics: Arc<dyn Topics>,
    pub metrics: Arc<dyn Metrics>,
    pub past: Arc<dyn Past>,
    pub host: Arc<dyn Host>,
    pub login: Login,
    pub disk: Arc<dyn Disk>,
    pub log: Arc<dyn Log>,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) calls: Arc<dyn Calls>,
    pub(crate) metrics: Arc<dyn Metrics>,
    past: Arc<dyn Past>,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) login: Login,
    pub(crate) sessions: Sessions,
    pub(crate) hub: Arc<Hub>,
    pub(crate) answers: Arc<Budget>,
    pub(crate) has_actions: bool,
    pub(crate) chain: &'static str,
    /// Time that a browser may take to read an event.
    pub(crate) slow: Duration,
    names: Names,
    is_open: bool,
    cookie: String,
    stopped: Stopped,
}

/// What a request may do.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) user: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) cookie: Option<String>,
    /// Reading is open to all.
    pub(crate) is_open: bool,
}

impl Access {
    pub(crate) fn name(&self) -> &str {
        self.user.as_deref().unwrap_or(call::OPEN_USER)
    }
}

/// The running page. It answers until it is dropped.
#[derive(Debug)]
pub struct Server {
    server: Option<lydian_serve::Server>,
    /// `None` once it ends: the server waits for all copies.
    shared: Option<Arc<Shared>>,
    hub: Arc<Hub>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(settings: Settings, ports: Ports) -> Result<Server, StartError> {
        Server::start_with(settings, ports, SLOW)
    }

    fn start_with(settings: Settings, ports: Ports, slow: Duration) -> Result<Server, StartError> {
        let Ports { calls, topics, metrics, past, host, login, disk, log } = ports;
        let answers = Budget::new(ANSWERS_SIZE_MAX);
        let listen = ListenSettings {
            name: "page",
            addresses: settings.addresses,
            tls: settings.tls.map(|(addresses, identity)| (addresses, Current::new(identity))),
            allowed: settings.allowed,
            proxies: Vec::new(),
            blocking_threads: THREADS,
            idle: Some(IDLE),
            answers: Arc::clone(&answers),
        };
        let listener = Listener::bind(listen, log)?;
        let epoch = random::<8>().map_or_else(|_| host.now().to_string(), |bytes| to_hex(&bytes));
        let hub = Arc::new(Hub::new(topics, Arc::clone(&host), epoch));
        let thread = hub.start().map_err(StartError::Threads)?;
        let sessions = Sessions::open(disk, &settings.directory, Arc::clone(&host), |user| login.knows(user));
        let hosts = settings.hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let shared = Arc::new(Shared {
            calls,
            metrics,
            past,
            host,
            login,
            sessions,
            hub,
            answers,
            has_actions: settings.has_actions,
            chain: settings.chain,
            slow,
            names: Names { hosts, addresses: listener.addresses().to_vec() },
            is_open: settings.is_open,
            cookie: format!("lydian_page_{}", settings.port),
            stopped: listener.stopped(),
        });
        let router = Router::new().fallback(respond).with_state(Arc::clone(&shared));
        let server = listener.serve(Http::new(router, Some(HEAD_TIMEOUT)));
        let hub = Arc::clone(&shared.hub);
        Ok(Server { server: Some(server), shared: Some(shared), hub, thread: Some(thread) })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.as_ref().map_or(&[], lydian_serve::Server::addresses)
    }

    /// The secret of a link that logs in once, whenever that is.
    pub fn first_link(&self, user: &str) -> Option<String> {
        self.shared.as_ref()?.sessions.link(user, None)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.hub.end();
        self.shared = None;
        if let Some(server) = self.server.take() {
            // Connections that are still open end with the threads.
            let _ = server.close();
            server.end();
        }
        if let Some(thread) = self.thread.take() {
            // If it panicked, that is in the log.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The session of a request. `is_local`: its `Host` is a name of this machine.
    fn access(&self, connection: &Connection, headers: &HeaderMap, is_local: bool) -> Access {
        let cookie =
            headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
        let mut ours = cookie.filter_map(|pair| pair.trim().split_once('=')).filter(|(name, _)| *name == self.cookie);
        let found = ours.find_map(|(_, value)| Some((value.to_owned(), self.sessions.find(value)?)));
        let is_open = self.is_open && is_local && connection.is_local;
        match found {
            Some((cookie, found)) => {
                connection.has_spoken();
                Access { user: Some(found.user), token: Some(found.token), cookie: Some(cookie), is_open }
            }
            None => Access { user: None, token: None, cookie: None, is_open },
        }
    }

    /// Whether the session of a request still goes on.
    pub(crate) fn is_current(&self, access: &Access) -> bool {
        access.cookie.as_ref().map_or(access.is_open, |cookie| self.sessions.find(cookie).is_some())
    }

    /// The topics that a request may read.
    pub(crate) fn shown(&self, access: &Access) -> Shown {
        self.hub.shown(access.user.is_some(), |method| self.calls.allows(access.name(), method))
    }

    /// The refusal of what has no method of its own, but a name for `-rpcwhitelist`.
    pub(crate) fn refuses(&self, user: &str, name: &str) -> Option<Response> {
        let words = || format!("-rpcwhitelist does not allow {name} for the user {user}.");
        (!self.calls.allows(user, name)).then(|| refuse(StatusCode::FORBIDDEN, words()))
    }

    /// Whether actions are allowed; otherwise why not.
    pub(crate) fn may_act(&self, access: &Access) -> Result<(), &'static str> {
        match (self.has_actions, &access.user) {
            (false, _) => Err("This node takes no actions from the page. Start it with -pageactions to allow them."),
            (true, None) => Err("Actions need a login. \"lydian page\" prints a link."),
            (true, Some(_)) => Ok(()),
        }
    }

    /// The value of `Set-Cookie`.
    pub(crate) fn cookie_line(&self, headers: &HeaderMap, value: &str, seconds: u64) -> String {
        let is_encrypted = header(headers, &ORIGIN).is_some_and(|origin| origin.starts_with("https:"));
        let secure = if is_encrypted { "; Secure" } else { "" };
        format!("{}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}", self.cookie)
    }
}

async fn respond(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
) -> Response {
    protect(route(&shared, &connection, request).await)
}

async fn route(shared: &Arc<Shared>, connection: &Arc<Connection>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let is_local = match shared.names.check(&parts.method, &parts.uri, &parts.headers) {
        Ok(is_local) => is_local,
        Err(refusal) => {
            shared.host.debug(format!("{} {} from {} was refused", parts.method, parts.uri.path(), connection.address));
            return *refusal;
        }
    };
    let (path, headers) = (parts.uri.path(), &parts.headers);
    if let Some(asset) = assets::find(path) {
        return match parts.method {
            Method::GET | Method::HEAD => asset.answer(headers),
            _ => refuse(StatusCode::METHOD_NOT_ALLOWED, format!("{path} does not answer {}.", parts.method)),
        };
    }
    let Some(api) = API.iter().find(|api| api.path == path) else {
        return refuse(StatusCode::NOT_FOUND, format!("There is nothing at {path}. The page is at /."));
    };
    if api.method != parts.method {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, format!("{path} does not answer {}.", parts.method));
    }
    let access = shared.access(connection, headers, is_local);
    if api.needs_access && access.user.is_none() && !access.is_open {
        return refuse(StatusCode::UNAUTHORIZED, "This needs a login. \"lydian page\" prints a link.");
    }
    if api.needs_token && access.user.is_some() && header(headers, &TOKEN) != access.token.as_deref() {
        return refuse(
            StatusCode::FORBIDDEN,
            "The token of the session is missing or not current. Load the page again.",
        );
    }
    let Some(body) = read_short(body, BODY_SIZE_MAX).await else {
        return refuse(StatusCode::PAYLOAD_TOO_LARGE, format!("A request has at most {BODY_SIZE_MAX} bytes."));
    };
    match api.answer {
        Answer::Session => login::session(shared, &access),
        Answer::Login => login::login(shared, connection, headers, &body).await,
        Answer::Logout => login::logout(shared, headers, &access),
        Answer::Link => login::link(shared, connection, headers).await,
        Answer::Live => live(shared, connection, headers, access),
        Answer::Metrics => metrics::answer(shared, connection, headers, &access).await,
        Answer::Figures => {
            if let Some(refusal) = shared.refuses(access.name(), FIGURES) {
                return refusal;
            }
            let shared = Arc::clone(shared);
            blocking(move || json(&Value::Object(shared.metrics.json()))).await
        }
        Answer::Past => {
            if let Some(refusal) = shared.refuses(access.name(), HISTORY) {
                return refusal;
            }
            let (shared, query) = (Arc::clone(shared), parts.uri.query().unwrap_or_default().to_owned());
            blocking(move || past::answer(shared.past.history(), &query)).await
        }
        Answer::Call => {
            let (shared, connection) = (Arc::clone(shared), Arc::clone(connection));
            let answer = move || {
                let response = call::answer(&shared, &access, &body, &connection);
                // A descriptor may have private keys.
                lydian_disk::wiping(usize::MAX, || drop(body));
                response
            };
            blocking(answer).await
        }
    }
}

/// Runs on a thread that may block.
pub(crate) async fn blocking(answer: impl FnOnce() -> Response + Send + 'static) -> Response {
    let answering = spawn_blocking(answer).await;
    // An error means a panic, which is in the log.
    answering.unwrap_or_else(|_| refuse(StatusCode::INTERNAL_SERVER_ERROR, "An error of the node; its log has it."))
}

fn live(shared: &Arc<Shared>, connection: &Arc<Connection>, headers: &HeaderMap, access: Access) -> Response {
    let Some(reader) = shared.hub.reader(STREAMS_MAX) else {
        let words = format!("{STREAMS_MAX} pages are open already. Close one and try again.");
        return refuse(StatusCode::SERVICE_UNAVAILABLE, words);
    };
    let last = header(headers, &LAST_EVENT_ID).map(str::to_owned);
    let (guard, stopped) = (connection.begin_call(), shared.stopped.clone());
    let shown = shared.shown(&access);
    Stream { shared: Arc::clone(shared), access, shown, last, guard, reader, stopped }.answer()
}

/// A path of the page's own protocol.
struct Api {
    path: &'static str,
    method: Method,
    /// A session, or `-pageopen`.
    needs_access: bool,
    needs_token: bool,
    answer: Answer,
}

enum Answer {
    Session,
    Login,
    Logout,
    Link,
    Live,
    Past,
    Call,
    Metrics,
    Figures,
}

#[rustfmt::skip]
const API: &[Api] = &[
    Api { path: "/api/session", method: Method::GET, needs_access: false, needs_token: false, answer: Answer::Session },
    Api { path: "/api/login", method: Method::POST, needs_access: false, needs_token: false, answer: Answer::Login },
    Api { path: "/api/logout", method: Method::POST, needs_access: true, needs_token: true, answer: Answer::Logout },
    Api { path: "/api/link", method: Method::POST, needs_access: false, needs_token: false, answer: Answer::Link },
    Api { path: "/api/live", method: Method::GET, needs_access: true, needs_token: false, answer: Answer::Live },
    Api { path: "/api/history", method: Method::GET, needs_access: true, needs_token: false, answer: Answer::Past },
    Api { path: "/api/call", method: Method::POST, needs_access: true, needs_token: true, answer: Answer::Call },
    Api { path: "/metrics", method: Method::GET, needs_access: false, needs_token: false, answer: Answer::Metrics },
    Api { path: "/api/figures", method: Method::GET, needs_access: true, needs_token: false, answer: Answer::Figures },
];

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
