//! [`FeedServer`]: the feed of a node, over HTTP.
//!
//! Input: the engine and the mempool of this process, and what its servers for wallets answer from. Output: a stream of
//! the mempool and the tip for any number of readers (`GET /feed/1/stream`), answers to questions about chain and
//! mempool (`POST /feed/1/ask`), and the RPC methods that servers for wallets call (`POST /feed/1/call`).
//! docs/formats/feed.md has the bytes.
//!
//! One thread follows the mempool ([`follow`]) and shares what it finds, already encoded ([`hub`]); each stream is a
//! task that reads from there ([`stream`]). Invariants: the node never waits for a reader; what lies between two
//! [`crate::message::State`]s turns a snapshot of the mempool into a later one; without a token, only addresses that
//! are allowed get an answer, and with one, only requests that have it. Memory: about 100 bytes for a transaction of
//! the mempool and 40 for each of its inputs, a list of all for each stream while it reads its snapshot, and
//! [`crate::limits::STREAM_WAITING_MAX`] for changes that streams have not read.

mod answers;
pub mod figures;
mod follow;
mod hub;
mod stream;

use crate::limits::{ANSWERS_SIZE_MAX, QUESTION_SIZE_MAX, STREAMS_MAX};
use crate::message::{FEED_VERSION, Hello, Question};
use answers::Answering;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Extension, Router};
use figures::{ASK, CALL, Counts, STREAM};
use follow::Follower;
use hub::Hub;
use lydian_engine::Engine;
use lydian_hash::sha256;
use lydian_mempool::Mempool;
use lydian_primitives::BlockHash;
use lydian_query::{CallError, Calls, Chain, Pool};
use lydian_serve::figures::OTHER;
use lydian_serve::http::{Bodies, Http, answer, read_small, status, unauthorized};
use lydian_serve::{
    Budget, Connection, Control, CookieError, ListenSettings, Listener, Log, Room, StartError, Subnet, TlsIdentity,
    random,
};
use lydian_stdx::Current;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::fmt;
use std::hint::black_box;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stream::Streaming;

/// What a feed is made from.
#[derive(Clone, Debug)]
pub struct FeedSource {
    pub engine: Arc<Engine>,
    pub mempool: Arc<Mempool>,
    pub chain: Arc<dyn Chain>,
    pub pool: Arc<dyn Pool>,
    pub calls: Arc<dyn Calls>,
    /// Names the chain.
    pub genesis: BlockHash,
}

/// Settings of the server.
#[derive(Clone)]
pub struct FeedSettings {
    pub addresses: Vec<SocketAddr>,
    /// Addresses that may use the server, in addition to this machine.
    pub allowed: Vec<Subnet>,
    /// With it, all addresses speak TLS.
    pub tls: Option<Current<TlsIdentity>>,
    /// What a request must have in `Authorization: Bearer`.
    pub token: Option<String>,
}

/// Shows no token.
impl fmt::Debug for FeedSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedSettings")
            .field("addresses", &self.addresses)
            .field("has_tls", &self.tls.is_some())
            .field("has_token", &self.token.is_some())
            .finish_non_exhaustive()
    }
}

/// Why the server cannot be started.
#[derive(Debug)]
pub enum FeedError {
    Start(StartError),
    /// The system has no random bytes for the epoch.
    Random(CookieError),
}

impl fmt::Display for FeedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FeedError::Start(error) => error.fmt(f),
            FeedError::Random(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FeedError {}

/// The methods of RPC that servers for wallets call.
pub const METHODS: [&str; 7] = [
    "decoderawtransaction",
    "getblocktemplate",
    "getrawtransaction",
    "gettxoutproof",
    "sendrawtransaction",
    "submitpackage",
    "testmempoolaccept",
];

/// A connection on which nothing moves for this long ends. A stream has a message twice a second.
const IDLE: Duration = Duration::from_secs(60);

/// Time for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads that answer questions and calls.
const THREADS: usize = 32;

const BYTES: &str = "application/octet-stream";
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// What all requests share.
#[derive(Debug)]
struct Shared {
    hub: Arc<Hub>,
    answering: Answering,
    calls: Arc<dyn Calls>,
    /// The SHA-256 of the token.
    token: Option<[u8; 32]>,
    answers: Arc<Budget>,
    bodies: Bodies,
    counts: Counts,
    control: Arc<OnceLock<Control>>,
}

/// A running feed. It answers until it is dropped.
#[derive(Debug)]
pub struct FeedServer {
    // Declared, and so dropped, before the server: its thread adds to what streams read.
    follower: Option<Follower>,
    server: Option<lydian_serve::Server>,
    hub: Arc<Hub>,
    counts: Counts,
}

impl FeedServer {
    pub fn start(source: FeedSource, settings: FeedSettings, log: Arc<dyn Log>) -> Result<FeedServer, FeedError> {
        let FeedSource { engine, mempool, chain, pool, calls, genesis } = source;
        let FeedSettings { addresses, allowed, tls, token } = settings;
        let answers = Budget::new(ANSWERS_SIZE_MAX);
        let (addresses, tls) = match tls {
            None => (addresses, None),
            Some(identity) => (Vec::new(), Some((addresses, identity))),
        };
        let listen = ListenSettings {
            name: "feed",
            addresses,
            tls,
            allowed,
            proxies: Vec::new(),
            blocking_threads: THREADS,
            idle: Some(IDLE),
            answers: Arc::clone(&answers),
        };
        let listener = Listener::bind(listen, log).map_err(FeedError::Start)?;
        let epoch = u64::from_le_bytes(random().map_err(FeedError::Random)?);
        let counts = Counts::default();
        let hub = Arc::new(Hub::new(Hello { version: FEED_VERSION, genesis, epoch }));
        let follower = Follower::start(&engine, mempool, Arc::clone(&chain), Arc::clone(&pool), &hub);
        let follower = follower.map_err(|error| FeedError::Start(StartError::Threads(error)))?;
        let control = Arc::new(OnceLock::new());
        let shared = Shared {
            hub: Arc::clone(&hub),
            answering: Answering { chain, pool },
            calls,
            token: token.map(|token| sha256(token.as_bytes())),
            answers,
            bodies: Bodies::default(),
            counts: counts.clone(),
            control: Arc::clone(&control),
        };
        let server = listener.serve(Http::new(router(Arc::new(shared)), Some(HEAD_TIMEOUT)));
        // It is set once.
        let _ = control.set(server.control());
        Ok(FeedServer { follower: Some(follower), server: Some(server), hub, counts })
    }

    /// What it has done so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.as_ref().map_or(&[], lydian_serve::Server::addresses)
    }
}

impl Drop for FeedServer {
    fn drop(&mut self) {
        drop(self.follower.take());
        // The streams end.
        self.hub.end();
        if let Some(server) = self.server.take() {
            // Connections that are still open end with the threads.
            let _ = server.close();
            server.end();
        }
    }
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route(STREAM, get(stream_of))
        .route(ASK, post(ask))
        .route(CALL, post(call))
        .fallback(no_route)
        .method_not_allowed_fallback(no_route)
        .with_state(shared)
}

type OfConnection = Extension<Arc<Connection>>;

async fn no_route(
    State(shared): State<Arc<Shared>>,
    Extension(connection): OfConnection,
    request: Request,
) -> Response {
    drop(shared.counts.requests.begin(OTHER));
    if let Some(refusal) = shared.refuse_token(request.headers(), &connection) {
        return refusal;
    }
    let words = format!("the feed does not answer {} {}", request.method(), request.uri().path());
    shared.sentence(StatusCode::NOT_FOUND, words, &connection)
}

async fn stream_of(
    State(shared): State<Arc<Shared>>,
    Extension(connection): OfConnection,
    request: Request,
) -> Response {
    let mut timer = shared.counts.requests.begin(STREAM);
    if let Some(refusal) = shared.refuse_token(request.headers(), &connection) {
        return refusal;
    }
    let Some(joined) = shared.hub.join() else {
        let words = match shared.hub.is_ended() {
            true => "the node is stopping".to_owned(),
            false => format!("the feed has {STREAMS_MAX} streams, which is the most"),
        };
        return shared.sentence(StatusCode::SERVICE_UNAVAILABLE, words, &connection);
    };
    timer.answered();
    let (sender, response) = lydian_serve::http::stream(BYTES, stream::PIECES_AHEAD);
    let (control, counts) = (Arc::clone(&shared.control), shared.counts.clone());
    tokio::spawn(async move {
        if !Streaming::new(joined, sender, counts).run().await
            && let Some(control) = control.get()
        {
            control.disconnect(connection.id());
        }
    });
    response
}

async fn ask(State(shared): State<Arc<Shared>>, Extension(connection): OfConnection, request: Request) -> Response {
    let mut timer = shared.counts.requests.begin(ASK);
    let (parts, body) = request.into_parts();
    if let Some(refusal) = shared.refuse_token(&parts.headers, &connection) {
        return refusal;
    }
    let body = match read_small(&connection, body, QUESTION_SIZE_MAX).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let question = match Question::decode(&body) {
        Ok(question) => question,
        Err(error) => return shared.sentence(StatusCode::BAD_REQUEST, error.to_string(), &connection),
    };
    in_thread(move || {
        let answer = shared.answering.answer(question);
        timer.answered();
        shared.reply(BYTES, answer.encode(), &connection)
    })
    .await
}

/// The body of a call.
#[derive(Deserialize)]
struct CallBody {
    method: String,
    #[serde(default)]
    params: Option<Box<RawValue>>,
}

async fn call(State(shared): State<Arc<Shared>>, Extension(connection): OfConnection, request: Request) -> Response {
    let mut timer = shared.counts.requests.begin(CALL);
    let (parts, body) = request.into_parts();
    if let Some(refusal) = shared.refuse_token(&parts.headers, &connection) {
        return refusal;
    }
    let (body, room) = match shared.bodies.read(&connection, &parts.headers, body).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    let CallBody { method, params } = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(error) => {
            let words = format!("the body of a call must be an object with method and params: {error}");
            return shared.sentence(StatusCode::BAD_REQUEST, words, &connection);
        }
    };
    if !METHODS.contains(&method.as_str()) {
        let words = format!("the feed does not call the method {method:?}");
        return shared.sentence(StatusCode::FORBIDDEN, words, &connection);
    }
    in_thread(move || {
        let result = shared.calls.call(&method, params.as_ref().map_or("[]", |params| params.get()));
        drop((body, room));
        let reply = match result {
            Ok(result) => format!("{{\"result\":{result}}}"),
            Err(CallError { code, message }) => json!({"error": {"code": code, "message": message}}).to_string(),
        };
        timer.answered();
        shared.reply(JSON, reply.into_bytes(), &connection)
    })
    .await
}

/// Runs what may block on a thread that may.
async fn in_thread(work: impl FnOnce() -> Response + Send + 'static) -> Response {
    // An error means a panic, which is in the log.
    let working = tokio::task::spawn_blocking(work);
    working.await.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
}

impl Shared {
    /// The response to a request without the token.
    fn refuse_token(&self, headers: &HeaderMap, connection: &Connection) -> Option<Response> {
        let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let given = sha256(given.unwrap_or_default());
        if self.token.as_ref().is_none_or(|token| is_equal(&given, token)) {
            connection.has_spoken();
            return None;
        }
        let mut refusal = unauthorized("Bearer");
        *refusal.body_mut() = Body::from("the feed needs its token (-feedtoken) in the header Authorization: Bearer");
        Some(refusal)
    }

    /// A whole answer. May block until other answers were read, if this one is large.
    fn reply(&self, kind: &'static str, body: Vec<u8>, connection: &Arc<Connection>) -> Response {
        let Some(room) = self.answers.room_for(body.len()) else { return status(StatusCode::SERVICE_UNAVAILABLE) };
        self.sent(StatusCode::OK, kind, body, room, connection)
    }

    /// An error, which is short, so that it needs no room.
    fn sentence(&self, code: StatusCode, words: String, connection: &Arc<Connection>) -> Response {
        self.sent(code, TEXT, words.into_bytes(), self.answers.room(), connection)
    }

    fn sent(
        &self,
        code: StatusCode,
        kind: &'static str,
        body: Vec<u8>,
        room: Room,
        connection: &Arc<Connection>,
    ) -> Response {
        self.counts.sent(body.len());
        answer(code, kind, body, room, connection)
    }
}

/// Compares digests in constant time.
fn is_equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (one, other)| difference | (one ^ other));
    black_box(difference) == 0
}

#[cfg(test)]
mod tests;
