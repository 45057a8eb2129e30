//! Handles one request: the queue, authentication and the answer.
//!
//! Input: an HTTP request on a connection. Output: a response. For the order of refusals see [`super`].

use super::queue::{Queue, Queued, ThreadPool};
use crate::context::{Context, LogLevel};
use crate::exec::{Calls, Execution, Sink, Step};
use crate::json::Json;
use crate::limits::REST_BODY_SIZE_MAX;
use crate::rest::{Content, Refused, Reply, Route};
use crate::table::METHODS;
use crate::whitelist::Whitelist;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, HeaderMap, HeaderValue};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use lydian_serve::figures::Requests;
use lydian_serve::http::{self, Bodies, BodyRoom, Feeder, no_content, status, text};
use lydian_serve::{CallGuard, Connection, Denied, Login, Room, Stopped};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Core's error text for a thread pool that is stopping.
const INTERRUPTED: &str = "Interrupted";

/// Core's answer to a request that ends with an exception of its own.
const UNKNOWN: &str = "unknown error";

/// Calls above this size are not inspected before they have a thread.
const STOP_SIZE_MAX: usize = 1 << 10;

const JSON_TYPE: &str = "application/json";

/// Core's `WWW_AUTH_HEADER_DATA`.
const CHALLENGE: &str = "Basic realm=\"jsonrpc\"";

/// State shared by all requests.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) context: Arc<Context>,
    pub(super) login: Login,
    pub(super) whitelist: Whitelist,
    /// `-rest`.
    pub(super) has_rest: bool,
    pub(super) queue: Arc<Queue>,
    pub(super) bodies: Bodies,
    pub(super) stopped: Stopped,
    pub(super) requests: Arc<Requests>,
    /// Those of REST, by the beginning of the path.
    pub(super) rest_requests: Arc<Requests>,
    /// Requests that were refused because the queue was full.
    pub(super) refused: Arc<AtomicU64>,
}

pub(super) async fn respond(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if !is_root(&parts.uri) {
        return rest(&shared, connection, parts, body).await;
    }
    // Core checks the queue first too. Nothing but `stop` is answered while it is full.
    let body = if shared.queue.is_full() {
        let stop = http::read_short(body, STOP_SIZE_MAX).await.filter(|body| is_stop(body));
        let Some(stop) = stop else { return overloaded(&shared) };
        Body::from(stop)
    } else {
        body
    };
    if parts.method != Method::POST {
        return text(StatusCode::METHOD_NOT_ALLOWED, "JSONRPC server handles only POST requests");
    }
    let user = match authorize(&shared, &connection, &parts.headers).await {
        Ok(user) => user,
        Err(refusal) => return refusal,
    };
    let (body, room) = match shared.bodies.read(&connection, &parts.headers, body).await {
        Ok(read) => read,
        Err(refusal) => return refusal,
    };
    if shared.stopped.is_now() {
        return interrupted(&shared);
    }
    let pool = if is_stop(&body) { ThreadPool::Stop } else { ThreadPool::Threads };
    let queued = match shared.queue.enter() {
        Some(queued) => Some(queued),
        None if pool == ThreadPool::Stop => None,
        None => return overloaded(&shared),
    };
    let (response, answered) = oneshot::channel();
    let call = Call {
        execution: Execution::new(&shared.context, user, Some(connection.address), body),
        guard: connection.begin_call(),
        feeder: Feeder::new(connection, JSON_TYPE, response),
        _body: room,
    };
    tokio::spawn(drive(Arc::clone(&shared), pool, queued, call));
    // An error means a panic, which is in the log. If the client disconnects, this future is dropped, which ends the
    // call's waits.
    answered.await.unwrap_or_else(|_| unknown(&shared, &parts.uri))
}

/// Answers a request for REST, which takes the place of a call.
async fn rest(shared: &Arc<Shared>, connection: Arc<Connection>, parts: Parts, body: Body) -> Response {
    let uri = parts.uri.path_and_query().filter(|_| shared.has_rest && parts.uri.authority().is_none());
    let Some((uri, route)) = uri.and_then(|uri| Some((uri.as_str().to_owned(), Route::find(uri.as_str())?))) else {
        return status(StatusCode::NOT_FOUND);
    };
    let mut timer = shared.rest_requests.begin(route.prefix);
    if shared.queue.is_full() {
        return overloaded(shared);
    }
    let body = if route.reads_body { body } else { Body::empty() };
    let body = match http::read_small(&connection, body, REST_BODY_SIZE_MAX).await {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    if shared.stopped.is_now() {
        return interrupted(shared);
    }
    let Some(queued) = shared.queue.enter() else { return overloaded(shared) };
    let thread = shared.queue.thread(ThreadPool::Threads).await;
    drop(queued);
    let guard = connection.begin_call();
    let context = Arc::clone(&shared.context);
    let made = spawn_blocking(move || {
        let made = route.answer(&context, &uri, &body);
        drop(thread);
        made
    });
    let made = made.await;
    drop(guard);
    match made {
        Ok(Ok(Reply { status, kind, content, room })) => {
            let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            if code.is_success() {
                timer.answered();
            }
            match content {
                Content::Whole(body) => http::answer(code, kind, body, room, &connection),
                Content::Pieces(pieces) => http::in_pieces(code, kind, pieces, room, &connection),
            }
        }
        Ok(Err(Refused::NoRoom)) => overloaded(shared),
        Ok(Err(Refused::Failed(words))) => {
            let words = format!("Unexpected error while processing request for '{}'. Error msg: '{words}'", parts.uri);
            shared.context.host.log(LogLevel::Warning, &words);
            closing(text(StatusCode::INTERNAL_SERVER_ERROR, UNKNOWN))
        }
        // The sentence was made an answer before; or a panic, which is in the log.
        Ok(Err(Refused::Words(..))) | Err(_) => closing(unknown(shared, &parts.uri)),
    }
}

fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The answer to a request that failed for a reason that Core does not tell.
fn unknown(shared: &Shared, uri: &Uri) -> Response {
    let words = format!("Unknown error while processing request for '{uri}'");
    shared.context.host.log(LogLevel::Warning, &words);
    text(StatusCode::INTERNAL_SERVER_ERROR, UNKNOWN)
}

fn interrupted(shared: &Shared) -> Response {
    let words = format!("HTTP request rejected during server shutdown: '{INTERRUPTED}'");
    shared.context.host.log(LogLevel::Warning, &words);
    text(StatusCode::SERVICE_UNAVAILABLE, "Request rejected during server shutdown")
}

fn overloaded(shared: &Shared) -> Response {
    shared.refused.fetch_add(1, Ordering::Relaxed);
    let words =
        "Request rejected because http work queue depth exceeded, it can be increased with the -rpcworkqueue= setting";
    shared.context.host.log(LogLevel::Warning, words);
    text(StatusCode::SERVICE_UNAVAILABLE, "Work queue depth exceeded")
}

/// A request with everything that is kept until its answer is ready.
#[derive(Debug)]
struct Call {
    execution: Execution,
    feeder: Feeder,
    guard: CallGuard,
    _body: BodyRoom,
}

impl Sink for Feeder {
    fn send(&mut self, part: Vec<u8>, room: Room) -> bool {
        Feeder::send(self, part, room)
    }
}

/// Runs the call on a thread that may block, and waits without a thread whenever the call waits. Ends early if the
/// client disconnects while the call waits.
async fn drive(shared: Arc<Shared>, pool: ThreadPool, mut queued: Option<Queued>, mut call: Call) {
    loop {
        let thread = tokio::select! {
            thread = shared.queue.thread(pool) => thread,
            () = call.feeder.closed() => return,
        };
        queued.take();
        let blocking = Arc::clone(&shared);
        let running = spawn_blocking(move || {
            let Shared { context, whitelist, requests, .. } = blocking.as_ref();
            let calls = Calls { context, methods: METHODS, whitelist, requests: Some(requests) };
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
        http::answer(code, JSON_TYPE, body, room, call.feeder.connection())
    } else if code == StatusCode::NO_CONTENT {
        no_content()
    } else {
        status(code)
    };
    // The request is overwritten before the client has the answer.
    drop(call.execution);
    drop(call.guard);
    // False: the client has disconnected.
    call.feeder.finish(response);
}

/// Returns the user of a request.
async fn authorize(shared: &Shared, connection: &Connection, headers: &HeaderMap) -> Result<String, Response> {
    let unauthorized = || http::unauthorized(CHALLENGE);
    let header = headers.get(AUTHORIZATION).ok_or_else(unauthorized)?.as_bytes();
    shared.login.authorize(connection, header).await.map_err(|denied| match denied {
        Denied::Wrong => unauthorized(),
        Denied::Busy => overloaded(shared),
    })
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
