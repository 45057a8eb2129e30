//! [`Server`]: starts, routes requests to their answers, stops.

use crate::call::Call;
use crate::fault::Fault;
use crate::figures::{self, Counts};
use crate::limits::ANSWERS_SIZE_MAX;
use crate::reply::Reply;
use crate::routes::{ROUTES, Route, Verb};
use axum::extract::{Query as Options, RawPathParams, Request, State};
use axum::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HeaderValue,
};
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use axum::{Extension, Router};
use lydian_consensus::Chain;
use lydian_query::{Allowance, Calls, Query, Source};
use lydian_serve::figures::{OTHER, Requests};
use lydian_serve::http::{Bodies, Http, answer, status};
use lydian_serve::{Budget, Connection, Drain, ListenSettings, Listener, Log, Origin, StartError, Subnet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Settings of the server.
#[derive(Clone, Debug)]
pub struct Settings {
    pub addresses: Vec<SocketAddr>,
    /// Addresses that may use the server, in addition to this machine.
    pub allowed: Vec<Subnet>,
    /// The chain of the addresses.
    pub chain: Chain,
    /// `None`: browsers refuse the answers to pages of other sites.
    pub cors: Option<Origin>,
}

/// What answers are made from.
#[derive(Debug)]
pub(crate) struct Sources {
    pub(crate) query: Arc<Query>,
    pub(crate) calls: Arc<dyn Calls>,
    pub(crate) chain: Chain,
}

impl Sources {
    pub(crate) fn new(source: Source, chain: Chain) -> Sources {
        let Source { query, calls, .. } = source;
        Sources { query, calls, chain }
    }
}

/// What all requests share.
#[derive(Debug)]
struct Shared {
    sources: Sources,
    cors: Option<Origin>,
    answers: Arc<Budget>,
    bodies: Bodies,
    requests: Arc<Requests>,
}

/// A running server. It answers until it is dropped.
#[derive(Debug)]
pub struct Server(Option<lydian_serve::Server>, Counts);

/// A connection without a request for this long ends.
const IDLE: Duration = Duration::from_secs(120);

/// Time for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Threads that answer requests.
const THREADS: usize = 32;

impl Server {
    pub fn start(source: Source, settings: Settings, log: Arc<dyn Log>) -> Result<Server, StartError> {
        let Settings { addresses, allowed, chain, cors } = settings;
        let answers = Budget::new(ANSWERS_SIZE_MAX);
        let listen = ListenSettings {
            name: "esplora",
            addresses,
            tls: None,
            allowed,
            proxies: Vec::new(),
            blocking_threads: THREADS,
            idle: Some(IDLE),
            answers: Arc::clone(&answers),
        };
        let listener = Listener::bind(listen, log)?;
        let requests = figures::requests();
        let (sources, bodies) = (Sources::new(source, chain), Bodies::default());
        let shared = Shared { sources, cors, answers, bodies, requests: Arc::clone(&requests) };
        let server = listener.serve(Http::new(router(Arc::new(shared)), Some(HEAD_TIMEOUT)).with_options());
        let counts = Counts { requests, control: server.control() };
        Ok(Server(Some(server), counts))
    }

    /// What it has done so far.
    pub fn counts(&self) -> &Counts {
        &self.1
    }

    /// Closes the addresses, so that no more clients come; those that are there are served on.
    pub fn close_addresses(&self) {
        self.0.iter().for_each(lydian_serve::Server::close_addresses);
    }

    /// Ends the connections at a steady pace, as its caller takes its steps.
    pub fn drain(&self) -> Drain {
        self.1.control.drain()
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.0.as_ref().map_or(&[], lydian_serve::Server::addresses)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(server) = self.0.take() {
            // Connections that are still open end with the threads.
            let _ = server.close();
            server.end();
        }
    }
}

fn router(shared: Arc<Shared>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        let filter = match route.verb {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
        };
        let respond = move |State(shared): State<Arc<Shared>>,
                            Extension(connection): Extension<Arc<Connection>>,
                            values: RawPathParams,
                            Options(options): Options<Vec<(String, String)>>,
                            request: Request| {
            let values = values.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            respond(route, shared, connection, values, options, request)
        };
        router = router.route(route.path, on(filter, respond));
    }
    router.fallback(no_route).method_not_allowed_fallback(wrong_method).with_state(shared)
}

async fn no_route(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Arc<Connection>>,
    uri: Uri,
) -> Response {
    drop(shared.requests.begin(OTHER));
    finish(&shared, &connection, Err(Fault::not_found(format!("endpoint does not exist: {}", uri.path()))))
}

async fn wrong_method(
    State(shared): State<Arc<Shared>>,
    Extension(connection): Extension<Arc<Connection>>,
    request: Request,
) -> Response {
    if request.method() == Method::OPTIONS && shared.cors.is_some() {
        return preflight(&shared);
    }
    let message = format!("{} does not answer {}", request.uri().path(), request.method());
    finish(&shared, &connection, Err(Fault { code: StatusCode::METHOD_NOT_ALLOWED, message }))
}

/// The answer to a browser that asks whether a page may send a request (CORS preflight).
fn preflight(shared: &Shared) -> Response {
    let mut response = status(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("Content-Type"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    with_origin(shared, response)
}

/// Lets pages of the origin that is asked for read the answer.
fn with_origin(shared: &Shared, mut response: Response) -> Response {
    if let Some(origin) = &shared.cors {
        let headers = response.headers_mut();
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.header().clone());
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("X-Total-Results"));
    }
    response
}

/// Answers a request on a thread that may block.
async fn respond(
    route: &'static Route,
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    values: Vec<(String, String)>,
    options: Vec<(String, String)>,
    request: Request,
) -> Response {
    let mut timer = shared.requests.begin(route.path);
    let (parts, body) = request.into_parts();
    let (body, room) = match shared.bodies.read(&connection, &parts.headers, body).await {
        Ok(read) => read,
        Err(refusal) => return with_origin(&shared, refusal),
    };
    let answering = tokio::task::spawn_blocking(move || {
        let call = Call { shared: &shared.sources, values: &values, options: &options, body: &body };
        let reply = Allowance::new(None).during(|| (route.answer)(&call));
        drop(room);
        if reply.is_ok() {
            timer.answered();
        }
        drop(timer);
        finish(&shared, &connection, reply)
    });
    // An error means a panic, which is in the log.
    answering.await.unwrap_or_else(|_| status(StatusCode::INTERNAL_SERVER_ERROR))
}

/// Makes the response. May block until other answers were read, if this one is large.
fn finish(shared: &Shared, connection: &Arc<Connection>, reply: Result<Reply, Fault>) -> Response {
    let response = match reply {
        Ok(reply) => {
            let Some(room) = shared.answers.room_for(reply.body.len()) else {
                return with_origin(shared, status(StatusCode::SERVICE_UNAVAILABLE));
            };
            let (keep, total) = reply.headers();
            let mut response = answer(StatusCode::OK, reply.kind, reply.body, room, connection);
            Reply::put_headers(keep, total, &mut response);
            response
        }
        // Short, so that it needs no room.
        Err(Fault { code, message }) => {
            answer(code, "text/plain", message.into_bytes(), shared.answers.room(), connection)
        }
    };
    with_origin(shared, response)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// limit: ANSWERS_SIZE_MAX at
    /// limit: ANSWERS_SIZE_MAX above
    #[test]
    fn an_answer_waits_until_others_are_read() {
        let answers = Budget::new(ANSWERS_SIZE_MAX);
        let unread = answers.room_for(ANSWERS_SIZE_MAX).unwrap();
        let waiting = Arc::clone(&answers);
        let one_more = std::thread::spawn(move || waiting.room_for(1 << 20).is_some());
        drop(unread);
        assert!(one_more.join().unwrap());
        assert!(answers.room_for(ANSWERS_SIZE_MAX + 1).is_some(), "a larger one is sent alone");
    }

    #[test]
    fn every_route_has_a_place_in_the_router() {
        // Paths that exclude each other are a panic here.
        let mut router: Router<()> = Router::new();
        for route in ROUTES {
            let filter = if route.verb == Verb::Get { MethodFilter::GET } else { MethodFilter::POST };
            router = router.route(route.path, on(filter, || async {}));
        }
        assert!(router.has_routes());
    }
}
