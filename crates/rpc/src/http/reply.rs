//! HTTP responses.
//!
//! Input: a status, a text or the bytes of an answer. Output: responses with Core's headers.
//!
//! The bytes of an answer keep their room in the budget until the client has read them. A body that grows while it is
//! sent is a [`Parts`], filled by [`Feeder`].

use super::connection::{Connection, UnreadGuard};
use crate::exec::Sink;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use axum::http::{Response as HttpResponse, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Frame;
use lydian_serve::Room;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Core's default (libevent's).
const CORES_DEFAULT_TYPE: &str = "text/html; charset=ISO-8859-1";

const JSON_TYPE: &str = "application/json";

/// Time that a client may take for one part of an answer that is produced while it reads.
const PART_WAIT_MAX: Duration = Duration::from_secs(30);

pub(super) fn status(code: StatusCode) -> Response {
    reply(code, Some(CORES_DEFAULT_TYPE), Body::empty())
}

pub(super) fn text(code: StatusCode, words: &'static str) -> Response {
    reply(code, Some(CORES_DEFAULT_TYPE), Body::from(words))
}

pub(super) fn no_content() -> Response {
    reply(StatusCode::NO_CONTENT, None, Body::empty())
}

/// With Core's reason phrase.
pub(super) fn too_large() -> Response {
    let mut response = status(StatusCode::PAYLOAD_TOO_LARGE);
    response.extensions_mut().insert(hyper::ext::ReasonPhrase::from_static(b"Content too large"));
    response
}

pub(super) fn unauthorized() -> Response {
    let mut response = status(StatusCode::UNAUTHORIZED);
    let value = HeaderValue::from_static("Basic realm=\"jsonrpc\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, value);
    response
}

pub(super) fn json(code: StatusCode, body: Vec<u8>, room: Room, connection: &Arc<Connection>) -> Response {
    reply(code, Some(JSON_TYPE), Body::from(Answer::bytes(body, room, connection)))
}

fn reply(code: StatusCode, kind: Option<&'static str>, body: Body) -> Response {
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

/// Receives the answer to one request: as a whole at the end, or in parts once it is large.
#[derive(Debug)]
pub(super) struct Feeder {
    connection: Arc<Connection>,
    /// `None` once the response was started.
    response: Option<oneshot::Sender<Response>>,
    parts: Option<mpsc::Sender<Bytes>>,
    runtime: Handle,
}

impl Feeder {
    pub(super) fn new(connection: Arc<Connection>, response: oneshot::Sender<Response>, runtime: Handle) -> Feeder {
        Feeder { connection, response: Some(response), parts: None, runtime }
    }

    /// Resolves when the client has disconnected or the connection is closed.
    pub(super) async fn closed(&mut self) {
        match (&mut self.response, &self.parts) {
            (Some(response), _) => response.closed().await,
            (None, Some(parts)) => parts.closed().await,
            (None, None) => {}
        }
    }

    /// Sends the whole answer. Returns false if the receiver is gone.
    pub(super) fn finish(mut self, response: Response) -> bool {
        self.response.take().is_some_and(|sender| sender.send(response).is_ok())
    }

    pub(super) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }
}

impl Sink for Feeder {
    fn send(&mut self, part: Vec<u8>, room: Room) -> bool {
        if let Some(response) = self.response.take() {
            let (sender, receiver) = mpsc::channel(1);
            let body = Body::new(Parts(receiver));
            self.parts = Some(sender);
            if response.send(reply(StatusCode::OK, Some(JSON_TYPE), body)).is_err() {
                return false;
            }
        }
        let Some(parts) = &self.parts else { return false };
        let part = Answer::bytes(part, room, &self.connection);
        self.runtime.block_on(parts.send_timeout(part, PART_WAIT_MAX)).is_ok()
    }
}
