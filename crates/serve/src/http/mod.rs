//! HTTP/1.1 on a connection: Core's httpserver.cpp without its queue, based on axum and hyper.
//!
//! Input: the bytes of a connection, and a router. Output: answers. The router's handlers find the [`Connection`] in
//! the extensions of a request.
//!
//! Refusals before the router, in this order: an address that is not allowed (403), a body that is too large by its
//! `Content-Length` (413), an unknown HTTP method (405). Invariants: a head that takes longer than the timeout ends the
//! connection, however slowly its bytes arrive; bodies share a byte budget ([`Bodies`]), and a body is only read if a
//! handler asks for it; buffers that have held a request are overwritten when they are freed or used again. Cost: a
//! buffer of 8 KiB for an idle connection.

mod body;
mod pieces;
mod reply;
mod wiped;

pub use body::{Bodies, BodyRoom, read_short, read_small};
pub use pieces::{Filled, Pieces, Source, in_pieces};
pub use reply::{Feeder, answer, no_content, status, stream, text, unauthorized};

use crate::connection::Connection;
use crate::event::ClientEvent;
use crate::limits::{HEADER_LINES_MAX, HEADERS_SIZE_MAX};
use crate::server::{Protocol, Stopped};
use axum::Router;
use axum::http::header::HeaderMap;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use wiped::{Cleared, Wiped};

/// The methods that Core knows.
const METHODS: [Method; 4] = [Method::GET, Method::POST, Method::HEAD, Method::PUT];

/// HTTP with a router.
#[derive(Debug)]
pub struct Http {
    router: Router,
    head_timeout: Option<Duration>,
    has_options: bool,
}

impl Http {
    /// `head_timeout`: for the request line and the headers of a request; `None`: no timeout.
    pub fn new(router: Router, head_timeout: Option<Duration>) -> Http {
        Http { router, head_timeout, has_options: false }
    }

    /// The router answers `OPTIONS` too, with which browsers ask whether a page may send a request.
    pub fn with_options(self) -> Http {
        Http { has_options: true, ..self }
    }
}

impl Protocol for Http {
    async fn serve<S>(&self, stream: S, connection: &Arc<Connection>, mut stopped: Stopped)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let service = service_fn(|request: Request<Incoming>| {
            let (router, connection) = (self.router.clone(), Arc::clone(connection));
            let has_options = self.has_options && request.method() == Method::OPTIONS;
            async move { Ok::<_, Infallible>(respond(router, connection, request, has_options).await) }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(self.head_timeout)
            .max_buf_size(HEADERS_SIZE_MAX)
            .max_headers(HEADER_LINES_MAX);
        let mut serving = Wiped::new(builder.serve_connection(TokioIo::new(Cleared(stream)), service));
        let result = tokio::select! {
            result = &mut serving => result,
            () = stopped.wait() => {
                if let Some(serving) = serving.inner() {
                    serving.graceful_shutdown();
                }
                serving.await
            }
        };
        if let Err(error) = result {
            connection.report(ClientEvent::HttpFailed(&error));
        }
    }
}

/// Returns whether servers know the method. Others are refused with 405.
pub fn is_known(method: &Method) -> bool {
    METHODS.contains(method)
}

/// `has_options`: the method is `OPTIONS`, and the router answers it.
async fn respond(
    router: Router,
    connection: Arc<Connection>,
    mut request: Request<Incoming>,
    has_options: bool,
) -> Response {
    connection.report(ClientEvent::Request { method: request.method(), uri: request.uri() });
    let response = match refusal(&connection, request.method(), request.headers(), has_options) {
        Some(refusal) => refusal,
        None => {
            request.extensions_mut().insert(Arc::clone(&connection));
            let Ok(response) = TowerToHyperService::new(router).call(request).await;
            response
        }
    };
    let (code, size) = (response.status().as_u16(), hyper::body::Body::size_hint(response.body()).lower());
    connection.report(ClientEvent::Response { code, size });
    response
}

/// The response to a request that no handler gets.
fn refusal(connection: &Connection, method: &Method, headers: &HeaderMap, has_options: bool) -> Option<Response> {
    if !connection.is_allowed {
        connection.report(ClientEvent::Forbidden);
        return Some(status(StatusCode::FORBIDDEN));
    }
    if body::is_too_large(headers) {
        return Some(body::refuse_large(connection, true));
    }
    if !is_known(method) && !has_options {
        connection.report(ClientEvent::UnknownMethod);
        return Some(status(StatusCode::METHOD_NOT_ALLOWED));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Client;
    use crate::event::Silent;
    use crate::limits::BODY_SIZE_MAX;
    use crate::places::Places;
    use axum::Extension;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::sync::watch;

    /// Sends a request over a stream that is no socket, and returns the answer.
    async fn ask(is_allowed: bool, head: &str) -> String {
        let handler = |Extension(connection): Extension<Arc<Connection>>| async move { connection.address.to_string() };
        let http = Http::new(Router::new().fallback(handler), None);
        let places = Arc::new(Places::new(Arc::new(Silent)));
        let place = places.take(Client::direct(SocketAddr::from(([192, 0, 2, 1], 5)), is_allowed)).unwrap();
        let (mut client, stream) = duplex(1 << 10);
        let (_stop, stopped) = watch::channel(false);
        let request = format!("{head}\r\nConnection: close\r\n\r\n");
        let asking = async {
            client.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.unwrap();
            answer
        };
        tokio::join!(asking, http.serve(stream, &place.connection, Stopped::new(stopped))).0
    }

    #[tokio::test]
    async fn refusals_have_an_order() {
        let large = format!("Content-Length: {}", BODY_SIZE_MAX + 1);
        for (is_allowed, head, expected) in [
            (false, format!("NONSENSE / HTTP/1.1\r\n{large}"), "HTTP/1.1 403 Forbidden"),
            (true, format!("NONSENSE / HTTP/1.1\r\n{large}"), "HTTP/1.1 413 Content too large"),
            (true, "NONSENSE / HTTP/1.1".to_owned(), "HTTP/1.1 405 Method Not Allowed"),
            (true, "GET /x HTTP/1.1".to_owned(), "HTTP/1.1 200 OK"),
        ] {
            let answer = ask(is_allowed, &head).await;
            assert_eq!(answer.lines().next(), Some(expected), "{head}");
        }
    }

    #[tokio::test]
    async fn a_handler_finds_the_connection() {
        let answer = ask(true, "GET / HTTP/1.1").await;
        assert!(answer.ends_with("\r\n\r\n192.0.2.1:5"), "{answer}");
    }
}
