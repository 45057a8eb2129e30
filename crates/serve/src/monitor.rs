//! [`Monitor`]: an HTTP server of a few short texts, such as `/health` and `/metrics`.
//!
//! Input: addresses, and [`Texts`] that answer a path. Output: the texts, to `GET` and `HEAD`; 404 for another path,
//! 405 for another method. Invariants: a text is made on a thread that may block; texts that are not read yet share
//! [`MONITOR_SIZE_MAX`] bytes.

use crate::allow::Subnet;
use crate::budget::Budget;
use crate::connection::Connection;
use crate::event::Log;
use crate::http::{Http, answer, status};
use crate::limits::MONITOR_SIZE_MAX;
use crate::server::{ListenSettings, Listener, Server, StartError};
use axum::Extension;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// A text as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Whether the status is 200; else it is 503.
    pub is_good: bool,
    /// The `Content-Type`.
    pub kind: &'static str,
    pub text: String,
}

/// What is served.
pub trait Texts: Debug + Send + Sync + 'static {
    /// The text of a path; `None` if there is none.
    fn text(&self, path: &str) -> Option<Text>;
}

/// A running server. It answers until it is dropped.
#[derive(Debug)]
pub struct Monitor(Option<Server>);

/// Threads that make texts.
const THREADS: usize = 4;

/// A connection without a request for this long ends.
const IDLE: Duration = Duration::from_secs(60);

/// Time for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
struct Shared {
    texts: Arc<dyn Texts>,
    answers: Arc<Budget>,
}

impl Monitor {
    /// `allowed`: addresses that may use it, in addition to this machine.
    pub fn start(
        addresses: Vec<SocketAddr>,
        allowed: Vec<Subnet>,
        texts: Arc<dyn Texts>,
        log: Arc<dyn Log>,
    ) -> Result<Monitor, StartError> {
        let answers = Budget::new(MONITOR_SIZE_MAX);
        let settings = ListenSettings {
            name: "monitor",
            addresses,
            tls: None,
            allowed,
            proxies: Vec::new(),
            blocking_threads: THREADS,
            idle: Some(IDLE),
            answers: Arc::clone(&answers),
        };
        let listener = Listener::bind(settings, log)?;
        let router = Router::new().fallback(respond).with_state(Shared { texts, answers });
        Ok(Monitor(Some(listener.serve(Http::new(router, Some(HEAD_TIMEOUT))))))
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.0.as_ref().map_or(&[], Server::addresses)
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        if let Some(server) = self.0.take() {
            // Connections that are still open end with the threads.
            let _ = server.close();
            server.end();
        }
    }
}

async fn respond(
    State(shared): State<Shared>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
) -> Response {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return status(StatusCode::METHOD_NOT_ALLOWED);
    }
    let busy = connection.begin_call();
    let path = request.uri().path().to_owned();
    let making = tokio::task::spawn_blocking(move || {
        let _busy = busy;
        let Some(Text { is_good, kind, text }) = shared.texts.text(&path) else {
            return status(StatusCode::NOT_FOUND);
        };
        let code = if is_good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        match shared.answers.room_for(text.len()) {
            Some(room) => answer(code, kind, text.into_bytes(), room, &connection),
            None => status(StatusCode::SERVICE_UNAVAILABLE),
        }
    });
    // An error means a panic, which was printed.
    making.await.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::FREE_BYTES;
    use crate::event::Silent;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    #[derive(Debug)]
    struct Two;

    impl Texts for Two {
        fn text(&self, path: &str) -> Option<Text> {
            let of = |is_good, text: &str| Some(Text { is_good, kind: "text/plain", text: text.to_owned() });
            match path {
                "/good" => of(true, "all is well\n"),
                "/bad" => of(false, "nothing is well\n"),
                _ => None,
            }
        }
    }

    #[test]
    fn paths_have_their_texts() {
        let addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
        let monitor = Monitor::start(addresses, Vec::new(), Arc::new(Two), Arc::new(Silent)).unwrap();
        let ask = |head: &str| {
            let mut stream = TcpStream::connect(monitor.addresses()[0]).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            write!(stream, "{head} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let good = ask("GET /good");
        assert!(good.starts_with("HTTP/1.1 200 OK\r\n") && good.ends_with("\r\n\r\nall is well\n"), "{good}");
        let bad = ask("GET /bad?x=1");
        assert!(bad.starts_with("HTTP/1.1 503 ") && bad.ends_with("\r\n\r\nnothing is well\n"), "{bad}");
        let head = ask("HEAD /good");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask("GET /other").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST /good").starts_with("HTTP/1.1 405 "));
    }

    /// limit: MONITOR_SIZE_MAX at
    /// limit: MONITOR_SIZE_MAX above
    #[test]
    fn texts_that_are_not_read_share_memory() {
        let answers = Budget::new(MONITOR_SIZE_MAX);
        let unread = answers.room_for(MONITOR_SIZE_MAX).unwrap();
        let mut other = answers.room();
        assert!(!other.try_grow(FREE_BYTES + 1), "it waits until the others are read");
        drop(unread);
        assert!(other.try_grow(FREE_BYTES + 1));
        drop(other);
        assert!(answers.room_for(MONITOR_SIZE_MAX + 1).is_some(), "a longer one is sent alone");
    }
}
