//! HTTP responses.
//!
//! Input: a status, a text or the bytes of an answer. Output: responses with Core's headers.
//!
//! The bytes of an answer keep their room in the budget until the client has read them. A body that grows while it is
//! sent is a [`Parts`], filled by [`Feeder`].

use crate::budget::Room;
use crate::connection::{Connection, UnreadGuard};
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Frame;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Core's default (libevent's).
const CORES_DEFAULT_TYPE: &str = "text/html; charset=ISO-8859-1";

/// Time that a client may take for one part of an answer that is produced while it reads.
const PART_WAIT_MAX: Duration = Duration::from_secs(30);

/// A response without a body.
pub fn status(code: StatusCode) -> Response {
    reply(code, Some(CORES_DEFAULT_TYPE), Body::empty())
}

/// A response with a sentence.
pub fn text(code: StatusCode, words: &'static str) -> Response {
    reply(code, Some(CORES_DEFAULT_TYPE), Body::from(words))
}

pub fn no_content() -> Response {
    reply(StatusCode::NO_CONTENT, None, Body::empty())
}

/// With Core's reason phrase.
pub(super) fn too_large() -> Response {
    let mut response = status(StatusCode::PAYLOAD_TOO_LARGE);
    response.extensions_mut().insert(hyper::ext::ReasonPhrase::from_static(b"Content too large"));
    response
}

/// `challenge`: the value of `WWW-Authenticate`.
pub fn unauthorized(challenge: &'static str) -> Response {
    let mut response = status(StatusCode::UNAUTHORIZED);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    response
}

/// A response with a whole answer. `kind`: its `Content-Type`.
pub fn answer(
    code: StatusCode,
    kind: &'static str,
    body: Vec<u8>,
    room: Room,
    connection: &Arc<Connection>,
) -> Response {
    reply(code, Some(kind), Body::from(Answer::bytes(body, room, connection)))
}

pub(super) fn reply(code: StatusCode, kind: Option<&'static str>, body: Body) -> Response {
    let mut response = HttpResponse::new(body);
    *response.status_mut() = code;
    if let Some(kind) = kind {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    response
}

/// Bytes that release their room once the last of them was sent.
#[derive(Debug)]
struct Answer {
    bytes: Vec<u8>,
    _room: Room,
    _unread: UnreadGuard,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answer {
    fn bytes(bytes: Vec<u8>, room: Room, connection: &Arc<Connection>) -> Bytes {
        let unread = connection.count_unread(bytes.len());
        Bytes::from_owner(Answer { bytes, _room: room, _unread: unread })
    }
}

/// A body that arrives in parts.
#[derive(Debug)]
struct Parts(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

/// A response whose body is sent as it is made, and what sends it. `ahead`: the parts that may wait for the client.
pub fn stream(kind: &'static str, ahead: usize) -> (mpsc::Sender<Bytes>, Response) {
    let (sender, receiver) = mpsc::channel(ahead);
    (sender, reply(StatusCode::OK, Some(kind), Body::new(Parts(receiver))))
}

/// Receives the answer to one request: as a whole at the end, or in parts once it is large.
#[derive(Debug)]
pub struct Feeder {
    connection: Arc<Connection>,
    /// The `Content-Type` of an answer in parts.
    kind: &'static str,
    /// `None` once the response was started.
    response: Option<oneshot::Sender<Response>>,
    parts: Option<mpsc::Sender<Bytes>>,
    runtime: Handle,
}

impl Feeder {
    /// `response` receives the response. `kind`: the `Content-Type` of an answer in parts. Must be called on the
    /// server's runtime.
    pub fn new(connection: Arc<Connection>, kind: &'static str, response: oneshot::Sender<Response>) -> Feeder {
        Feeder { connection, kind, response: Some(response), parts: None, runtime: Handle::current() }
    }

    /// Resolves when the client has disconnected or the connection is closed.
    pub async fn closed(&mut self) {
        match (&mut self.response, &self.parts) {
            (Some(response), _) => response.closed().await,
            (None, Some(parts)) => parts.closed().await,
            (None, None) => {}
        }
    }

    /// Sends the whole answer. Returns false if the receiver is gone.
    pub fn finish(mut self, response: Response) -> bool {
        self.response.take().is_some_and(|sender| sender.send(response).is_ok())
    }

    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Sends a part of an answer of unknown length, and blocks until it is accepted. Returns false if the receiver is
    /// gone. `room` is for its bytes. Must be called on a thread that may block.
    pub fn send(&mut self, part: Vec<u8>, room: Room) -> bool {
        if let Some(response) = self.response.take() {
            let (sender, receiver) = mpsc::channel(1);
            let body = Body::new(Parts(receiver));
            self.parts = Some(sender);
            if response.send(reply(StatusCode::OK, Some(self.kind), body)).is_err() {
                return false;
            }
        }
        let Some(parts) = &self.parts else { return false };
        let part = Answer::bytes(part, room, &self.connection);
        self.runtime.block_on(parts.send_timeout(part, PART_WAIT_MAX)).is_ok()
    }
}
