//! Handles one request: authentication, parsing and the answer.
//!
//! Input: an HTTP request on a connection. Output: a response. For the order of refusals see [`super`].

use super::connection::{CallGuard, Connection};
use super::guesses::Turn;
use super::places::Group;
use super::reply::{Feeder, json, no_content, status, text, too_large, unauthorized};
use super::server::Shared;
use crate::context::LogLevel;
use crate::exec::{Calls, Execution, Step};
use crate::json::Json;
use crate::limits::{BODIES_SIZE_MAX, BODY_SIZE_MAX, BODY_SIZE_SMALL};
use crate::table;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Core's delay to deter guessing.
const WRONG_PASSWORD_DELAY: Duration = Duration::from_millis(250);

/// Core's error text for a thread pool that is stopping.
const INTERRUPTED: &str = "Interrupted";

/// Bodies are counted in units of this many bytes.
const BODY_UNIT: usize = 1 << 10;

/// Calls above this size are not inspected before they have a thread.
const STOP_SIZE_MAX: usize = 1 << 10;

/// The semaphore for bodies.
pub(super) fn bodies() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(BODIES_SIZE_MAX / BODY_UNIT))
}

/// A call in the queue, until this is dropped.
#[derive(Debug)]
struct Queued(Arc<Shared>);

impl Queued {
    /// Returns `None` if the queue is full.
    fn new(shared: &Arc<Shared>) -> Option<Queued> {
        let count = shared.waiting.fetch_add(1, Ordering::SeqCst);
        let queued = Queued(Arc::clone(shared));
        (count < shared.queue).then_some(queued)
    }
}

impl Drop for Queued {
    fn drop(&mut self) {
        let waiting: &AtomicUsize = &self.0.waiting;
        waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) async fn respond(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let Some(connection) = request.extensions().get::<Arc<Connection>>().map(Arc::clone) else {
        return status(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let (address, id) = (connection.address, connection.id);
    shared.debug(|| {
        let method = if is_known(request.method()) { request.method().as_str() } else { "unknown" };
        format!("Received a {method} request for {} from {address} (id={id})", request.uri())
    });
    let response = answer(&shared, &connection, request).await;
    shared.debug(|| {
        let (code, size) = (response.status().as_u16(), hyper::body::Body::size_hint(response.body()).lower());
        format!("HTTPResponse (status code: {code} size: {size}) added to send buffer for client {address} (id={id})")
    });
    response
}

/// Returns whether Core knows the method.
fn is_known(method: &Method) -> bool {
    [Method::GET, Method::POST, Method::HEAD, Method::PUT].contains(method)
}

async fn answer(shared: &Arc<Shared>, connection: &Arc<Connection>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    if !connection.is_allowed {
        let address = connection.address;
        shared.debug(|| format!("HTTP request from {address} rejected: Client network is not allowed RPC access"));
        return status(StatusCode::FORBIDDEN);
    }
    if is_too_large(&parts.headers) {
        return refuse_large(shared, connection, "Max body size exceeded");
    }
    if !is_known(&parts.method) {
        let address = connection.address;
        shared.debug(|| format!("HTTP request from {address} rejected: Unknown HTTP request method"));
        return status(StatusCode::METHOD_NOT_ALLOWED);
    }
    if !is_root(&parts.uri) {
        return status(StatusCode::NOT_FOUND);
    }
    if parts.method != Method::POST {
        return text(StatusCode::METHOD_NOT_ALLOWED, "JSONRPC server handles only POST requests");
    }
    let user = match authorize(shared, connection, &parts.headers).await {
        Ok(user) => user,
        Err(refusal) => return refusal,
    };
    let (body, room) = match read(shared, connection, &parts.headers, body).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    if *shared.stopped.borrow() {
        let words = format!("HTTP request rejected during server shutdown: '{INTERRUPTED}'");
        shared.context.host.log(LogLevel::Warning, &words);
        return text(StatusCode::SERVICE_UNAVAILABLE, "Request rejected during server shutdown");
    }
    let pool = if is_stop(&body) { ThreadPool::Stop } else { ThreadPool::Threads };
    let queued = match Queued::new(shared) {
        Some(queued) => Some(queued),
        None if pool == ThreadPool::Stop => None,
        None => return overloaded(shared),
    };
    let (response, answered) = oneshot::channel();
    let call = Call {
        execution: Execution::new(&shared.context, user, Some(connection.address), body),
        feeder: Feeder::new(Arc::clone(connection), response, Handle::current()),
        guard: connection.begin_call(),
        _body: room,
    };
    tokio::spawn(drive(Arc::clone(shared), pool, queued, call));
    // An error means a panic, which is in the log. If the client disconnects, this future is dropped, which ends the
    // call's waits.
    answered.await.unwrap_or_else(|_| {
        let words = format!("Unknown error while processing request for '{}'", parts.uri);
        shared.context.host.log(LogLevel::Warning, &words);
        text(StatusCode::INTERNAL_SERVER_ERROR, "unknown error")
    })
}

/// The response to a body above the limit.
fn refuse_large(shared: &Shared, connection: &Connection, why: &str) -> Response {
    let (address, id) = (connection.address, connection.id);
    shared.debug(|| format!("HTTP request body too large from client {address} (id={id}): {why}"));
    too_large()
}

fn overloaded(shared: &Shared) -> Response {
    let words =
        "Request rejected because http work queue depth exceeded, it can be increased with the -rpcworkqueue= setting";
    shared.context.host.log(LogLevel::Warning, words);
    text(StatusCode::SERVICE_UNAVAILABLE, "Work queue depth exceeded")
}

/// The threads that answer a call. `stop` has its own thread, so that it works when all others are busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadPool {
    Threads,
    Stop,
}

/// A request with everything that is kept until its answer is ready.
#[derive(Debug)]
struct Call {
    execution: Execution,
    feeder: Feeder,
    guard: CallGuard,
    _body: Option<OwnedSemaphorePermit>,
}

/// Runs the call on a thread that may block, and waits without a thread whenever the call waits. Ends early if the
/// client disconnects while the call waits.
async fn drive(shared: Arc<Shared>, pool: ThreadPool, mut queued: Option<Queued>, mut call: Call) {
    loop {
        let threads = if pool == ThreadPool::Stop { &shared.stop_thread } else { &shared.threads };
        let thread = tokio::select! {
            thread = Arc::clone(threads).acquire_owned() => thread,
            () = call.feeder.closed() => return,
        };
        queued.take();
        let blocking = Arc::clone(&shared);
        let running = spawn_blocking(move || {
            let calls = Calls { context: &blocking.context, find: table::find, whitelist: &blocking.whitelist };
            let step = call.execution.run(&calls, &mut call.feeder);
            drop(thread);
            (call, step)
        });
        // An error means a panic. What the call held is already dropped.
        let Ok((returned, step)) = running.await else { return };
        call = returned;
        match step {
            Step::Wait(wait) => tokio::select! {
                () = wait.over(&shared.context) => {}
                () = call.feeder.closed() => return,
            },
            Step::Done { status, has_body } => return finish(call, status, has_body),
            Step::Sent => return,
        }
    }
}

fn finish(mut call: Call, code: u16, has_body: bool) {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let response = if has_body {
        let (body, room) = call.execution.take_body();
        json(code, body, room, call.feeder.connection())
    } else if code == StatusCode::NO_CONTENT {
        no_content()
    } else {
        status(code)
    };
    drop(call.guard);
    // False: the client has disconnected.
    call.feeder.finish(response);
}

/// Returns the user of a request.
async fn authorize(shared: &Shared, connection: &Arc<Connection>, headers: &HeaderMap) -> Result<String, Response> {
    let header = headers.get(AUTHORIZATION).ok_or_else(unauthorized)?.as_bytes();
    let users = &shared.users;
    // The cookie cannot be guessed, and a password that was accepted on this connection is not a guess.
    let known = connection.known_user(header);
    let known = known.or_else(|| users.is_unguessable(header).then(|| connection.authorize(users, header)).flatten());
    if let Some(user) = known {
        return Ok(user);
    }
    let Some(turn) = shared.guesses.turn(Group::of(connection.address.ip())).await else {
        return Err(overloaded(shared));
    };
    if let Some(user) = connection.authorize(users, header) {
        return Ok(user);
    }
    let words = format!("ThreadRPCServer incorrect password attempt from {}", connection.address);
    shared.context.host.log(LogLevel::Warning, &words);
    let _ = tokio::spawn(hold(turn)).await;
    Err(unauthorized())
}

/// Keeps a turn for its full time, even if the client disconnects.
async fn hold(turn: Turn) {
    sleep(WRONG_PASSWORD_DELAY).await;
    drop(turn);
}

/// Reads the body. Also returns its share of the budget for bodies.
async fn read(
    shared: &Shared,
    connection: &Connection,
    headers: &HeaderMap,
    body: Body,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Response> {
    // Without a length, the body is chunked or empty.
    let expected = content_length(headers).and_then(|length| usize::try_from(length).ok()).unwrap_or(BODY_SIZE_MAX);
    let mut room = None;
    if expected > BODY_SIZE_SMALL && !body_is_empty(&body) {
        let units = u32::try_from(expected.min(BODY_SIZE_MAX).div_ceil(BODY_UNIT)).unwrap_or(u32::MAX);
        room = Arc::clone(&shared.bodies).acquire_many_owned(units).await.ok();
    }
    let body = match Limited::new(body, BODY_SIZE_MAX).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return Err(refuse_large(shared, connection, "Chunk will exceed max body size"));
        }
        Err(_) => return Err(status(StatusCode::BAD_REQUEST)),
    };
    if let Some(room) = &mut room {
        let excess = room.num_permits().saturating_sub(body.len().div_ceil(BODY_UNIT));
        drop(room.split(excess));
    }
    Ok((body, room))
}

fn body_is_empty(body: &Body) -> bool {
    hyper::body::Body::is_end_stream(body)
}

/// Returns whether the body is a call of `stop`.
fn is_stop(body: &[u8]) -> bool {
    let call = if body.len() <= STOP_SIZE_MAX { Json::read(body) } else { None };
    call.as_ref().and_then(|call| call.get("method")) == Some(&Json::Text("stop".to_owned()))
}

/// Exactly `/`, as written in the request line.
fn is_root(uri: &Uri) -> bool {
    uri.authority().is_none() && uri.path_and_query().is_some_and(|path| path.as_str() == "/")
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_too_large(headers: &HeaderMap) -> bool {
    content_length(headers).is_some_and(|length| length > BODY_SIZE_MAX as u64)
}
