//! [`Listener`] and [`Server`]: bind addresses, accept connections, pass each to the [`Protocol`], close them.
//!
//! Input: settings, a log and a protocol. Output: served connections. A connection of a proxy begins with a header that
//! names its client, which is the client from then on. Every connection has a place, and a client whose
//! address is not allowed has one too, so that the protocol can answer it. The stream of a connection fails when it was
//! idle for too long, and the connection ends when its place is given to another one. Each server has threads of its
//! own. Cost: two tasks for a connection.

use crate::allow::Subnet;
use crate::bind::{BindFailure, listen};
use crate::budget::Budget;
use crate::connection::{Client, Connection};
use crate::control::Control;
use crate::event::{ClientEvent, Event, Log};
use crate::limits::PROXY_HEADERS_WAITING_MAX;
use crate::places::{Place, Places};
use crate::proxy;
use crate::stream::WatchedStream;
use crate::tls::{HANDSHAKE_MAX, TlsIdentity};
use lydian_stdx::Current;
use std::fmt;
use std::future::pending;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use tokio::time::sleep;

/// What a server does with the bytes of a connection.
pub trait Protocol: Send + Sync + 'static {
    /// Serves a connection until the client leaves. After `stopped`, finishes the answers in progress and returns.
    fn serve<S>(&self, stream: S, connection: &Arc<Connection>, stopped: Stopped) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Send + Unpin;

    /// The time after which a connection is closed whose client takes nothing of what is sent to it. `None`: such a
    /// client is disconnected only when others need the memory of its answers.
    fn stall_max(&self) -> Option<Duration> {
        None
    }
}

/// Settings of a listener.
#[derive(Debug)]
pub struct ListenSettings {
    /// The name of the threads.
    pub name: &'static str,
    pub addresses: Vec<SocketAddr>,
    /// Further addresses, with TLS, and the identity that new clients see.
    pub tls: Option<(Vec<SocketAddr>, Current<TlsIdentity>)>,
    /// Addresses that may use the server, in addition to this machine.
    pub allowed: Vec<Subnet>,
    /// The addresses of reverse proxies, which begin each connection with a PROXY header. Their clients are allowed.
    pub proxies: Vec<Subnet>,
    /// Threads for calls that block.
    pub blocking_threads: usize,
    /// `None`: no timeout.
    pub idle: Option<Duration>,
    /// Memory for answers. While a thread waits for it, clients that do not read their answers are disconnected.
    pub answers: Arc<Budget>,
}

/// Why a server could not be started.
#[derive(Debug)]
pub enum StartError {
    Threads(io::Error),
    /// None of the addresses could be bound.
    NoEndpoint(Vec<BindFailure>),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Threads(error) => write!(f, "cannot start threads: {error}"),
            StartError::NoEndpoint(failures) => {
                let failures: Vec<String> = failures.iter().map(BindFailure::to_string).collect();
                write!(f, "no address can be bound: {}", failures.join("; "))
            }
        }
    }
}

impl std::error::Error for StartError {}

/// Whether the server is stopping, or a connection of it is to end.
#[derive(Clone, Debug)]
pub struct Stopped {
    server: watch::Receiver<bool>,
    /// `None`: that of the server.
    connection: Option<Arc<Connection>>,
}

impl Stopped {
    pub(crate) fn new(server: watch::Receiver<bool>) -> Stopped {
        Stopped { server, connection: None }
    }

    fn of(&self, connection: &Arc<Connection>) -> Stopped {
        Stopped { server: self.server.clone(), connection: Some(Arc::clone(connection)) }
    }

    /// Returns whether the server is stopping: long answers may be cut short.
    pub fn is_now(&self) -> bool {
        *self.server.borrow()
    }

    /// Resolves when that is so.
    pub async fn wait_for_server(&mut self) {
        is_true(&mut self.server).await;
    }

    /// Resolves when the server is stopping, or when the connection is to end once it has answered.
    pub async fn wait(&mut self) {
        let connection = self.connection.clone();
        let left = async {
            match &connection {
                Some(connection) => connection.left().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = self.wait_for_server() => {}
            () = left => {}
        }
    }
}

/// Time that connections may take to close: Core waits 30 seconds.
const STOP_WAIT_MAX: Duration = Duration::from_secs(30);

/// Time that calls on threads may take after that.
const THREADS_WAIT_MAX: Duration = Duration::from_secs(1);

/// Time to the next attempt to accept a connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Threads that serve sockets; calls that block run on other threads.
const SOCKET_THREADS: usize = 2;

/// Bound addresses. Connections are accepted once they are served.
#[derive(Debug)]
pub struct Listener {
    runtime: Runtime,
    /// Each with the identity that it shows to clients, if it speaks TLS.
    listeners: Vec<(TcpListener, Option<Current<TlsIdentity>>)>,
    addresses: Vec<SocketAddr>,
    /// For each address of the settings.
    bound: Vec<Option<SocketAddr>>,
    stop: watch::Sender<bool>,
    close: watch::Sender<bool>,
    connections: Connections,
}

/// How connections are accepted.
#[derive(Clone, Debug)]
struct Connections {
    allowed: Arc<[Subnet]>,
    proxies: Arc<[Subnet]>,
    /// One for each header that is waited for.
    headers: Arc<Semaphore>,
    idle: Option<Duration>,
    places: Arc<Places>,
    log: Arc<dyn Log>,
    stopped: Stopped,
    /// Whether no more connections are accepted.
    closed: watch::Receiver<bool>,
}

impl Listener {
    /// Starts the threads, and binds as many of the addresses as possible.
    pub fn bind(settings: ListenSettings, log: Arc<dyn Log>) -> Result<Listener, StartError> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(SOCKET_THREADS)
            .max_blocking_threads(settings.blocking_threads)
            .thread_name(settings.name)
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let (mut failures, mut bound, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
        let plain = settings.addresses.into_iter().map(|address| (address, None));
        let (of_tls, identity) = settings.tls.map_or((Vec::new(), None), |(of_tls, identity)| (of_tls, Some(identity)));
        let of_tls = of_tls.into_iter().map(|address| (address, identity.clone()));
        for (address, identity) in plain.chain(of_tls) {
            log.event(&Event::Binding(address));
            let listening = listen(address).and_then(|listener| {
                let _entered = runtime.enter();
                TcpListener::from_std(listener)
            });
            match listening.and_then(|listener| Ok((listener.local_addr()?, listener))) {
                Ok((address, listener)) => {
                    bound.push(Some(address));
                    listeners.push((listener, identity));
                }
                Err(error) => {
                    let failure = BindFailure { address, error };
                    log.event(&Event::BindFailed(&failure));
                    failures.push(failure);
                    bound.push(None);
                }
            }
        }
        if listeners.is_empty() {
            return Err(StartError::NoEndpoint(failures));
        }
        let places = Arc::new(Places::new(Arc::clone(&log)));
        let relief = Arc::downgrade(&places);
        settings.answers.set_relief(move |bytes, waited| {
            if let Some(places) = relief.upgrade() {
                places.close_unread(bytes, waited);
            }
        });
        let ((stop, stopped), (close, closed)) = (watch::channel(false), watch::channel(false));
        let allowed = Subnet::loopback().into_iter().chain(settings.allowed).collect();
        let connections = Connections {
            allowed,
            proxies: settings.proxies.into(),
            headers: Arc::new(Semaphore::new(PROXY_HEADERS_WAITING_MAX)),
            idle: settings.idle,
            places,
            log,
            stopped: Stopped::new(stopped),
            closed,
        };
        let addresses = bound.iter().copied().flatten().collect();
        Ok(Listener { runtime, listeners, addresses, bound, stop, close, connections })
    }

    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What an operator may do, also before connections are accepted.
    pub fn control(&self) -> Control {
        Control(Arc::clone(&self.connections.places))
    }

    /// Whether the server is stopping. [`Server::close`] waits until all copies are dropped.
    pub fn stopped(&self) -> Stopped {
        self.connections.stopped.clone()
    }

    /// Accepts connections from now on.
    pub fn serve(self, protocol: impl Protocol) -> Server {
        let protocol = Arc::new(protocol);
        let places = Arc::clone(&self.connections.places);
        let Listener { runtime, listeners, addresses, bound, stop, close, connections } = self;
        for (listener, identity) in listeners {
            runtime.spawn(connections.clone().accept(listener, identity, Arc::clone(&protocol)));
        }
        Server { runtime, stop, close, addresses, bound, places }
    }
}

impl Connections {
    fn is_allowed(&self, address: IpAddr) -> bool {
        self.allowed.iter().any(|subnet| subnet.contains(address))
    }

    async fn accept<P: Protocol>(mut self, listener: TcpListener, tls: Option<Current<TlsIdentity>>, protocol: Arc<P>) {
        loop {
            let accepted = tokio::select! {
                () = self.stopped.wait() => return,
                () = is_true(&mut self.closed) => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, address)) => {
                    let tls = tls.as_ref().map(Current::get);
                    if self.proxies.iter().any(|subnet| subnet.contains(address.ip())) {
                        self.accept_of_proxy(stream, address, tls, &protocol);
                    } else {
                        let client = Client::direct(address, self.is_allowed(address.ip()));
                        self.begin(stream, client, tls, Arc::clone(&protocol));
                    }
                }
                Err(error) => {
                    self.log.event(&Event::AcceptFailed(&error));
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    }
}

impl Connections {
    /// Reads the header of a proxy, then serves the client that it names.
    fn accept_of_proxy<P: Protocol>(
        &self,
        mut stream: TcpStream,
        address: SocketAddr,
        tls: Option<Arc<TlsIdentity>>,
        protocol: &Arc<P>,
    ) {
        let Ok(waiting) = Arc::clone(&self.headers).try_acquire_owned() else {
            self.log.event(&Event::NoPlace(address));
            return;
        };
        let (mut connections, protocol) = (self.clone(), Arc::clone(protocol));
        tokio::spawn(async move {
            let sender = tokio::select! {
                sender = proxy::read(&mut stream, proxy::HEADER_WAIT_MAX) => sender,
                () = connections.stopped.wait() => return,
                () = is_true(&mut connections.closed) => return,
            };
            drop(waiting);
            match sender {
                Ok(sender) => connections.begin(stream, Client::of_proxy(address, sender), tls, protocol),
                Err(error) => connections.log.event(&Event::BadProxyHeader { address, error: &error }),
            }
        });
    }

    /// Serves a client if there is a place for it.
    fn begin<P: Protocol>(&self, stream: TcpStream, client: Client, tls: Option<Arc<TlsIdentity>>, protocol: Arc<P>) {
        match self.places.take(client) {
            Some(place) => drop(tokio::spawn(serve(protocol, stream, tls, place, self.idle, self.stopped.clone()))),
            None => self.log.event(&Event::NoPlace(client.address)),
        }
    }
}

/// Resolves when it is true, or when the server is gone.
async fn is_true(value: &mut watch::Receiver<bool>) {
    let _ = value.wait_for(|is_true| *is_true).await;
}

/// Serves a connection until it ends.
async fn serve<P: Protocol>(
    protocol: Arc<P>,
    stream: TcpStream,
    tls: Option<Arc<TlsIdentity>>,
    place: Place,
    idle: Option<Duration>,
    stopped: Stopped,
) {
    let connection = Arc::clone(&place.connection);
    let stopped = stopped.of(&connection);
    if let Err(error) = stream.set_nodelay(true) {
        connection.report(ClientEvent::NoDelayFailed(&error));
    }
    connection.report(ClientEvent::Accepted);
    let stream = WatchedStream::new(stream, idle, Arc::clone(&connection)).with_stall_max(protocol.stall_max());
    let served = async {
        match tls {
            None => protocol.serve(stream, &connection, stopped.clone()).await,
            Some(identity) => match identity.accept(stream, HANDSHAKE_MAX).await {
                Ok(stream) => protocol.serve(stream, &connection, stopped.clone()).await,
                Err(error) => connection.report(ClientEvent::TlsFailed(&error)),
            },
        }
    };
    tokio::select! {
        () = served => {}
        () = connection.closed() => {}
    }
    connection.report(ClientEvent::Disconnected);
    // The place is free before `Server::close` returns, which waits for this copy.
    drop(place);
    drop(stopped);
}

/// A running server. It answers until it is closed.
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    stop: watch::Sender<bool>,
    close: watch::Sender<bool>,
    addresses: Vec<SocketAddr>,
    bound: Vec<Option<SocketAddr>>,
    places: Arc<Places>,
}

impl Server {
    /// The addresses it listens on.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// For each address of the settings, those with TLS last, the one it listens on, which has the port that the
    /// system chose; `None` if it could not be bound.
    pub fn bound(&self) -> &[Option<SocketAddr>] {
        &self.bound
    }

    /// What an operator does with its clients.
    pub fn control(&self) -> Control {
        Control(Arc::clone(&self.places))
    }

    /// Closes the addresses, so that no more connections are accepted; those that are open are served on.
    pub fn close_addresses(&self) {
        // There is no receiver if they are closed already.
        let _ = self.close.send(true);
        // The tasks that accept end at once, and with them their sockets.
        self.runtime.block_on(self.close.closed());
    }

    /// Accepts no more connections, lets answers in progress finish, and closes the connections. Returns `None` if all
    /// have ended in time, otherwise the number of those that are still open.
    pub fn close(&self) -> Option<usize> {
        // There is no receiver if all connections have ended.
        let _ = self.stop.send(true);
        self.runtime.block_on(async {
            tokio::select! {
                () = self.stop.closed() => None,
                () = sleep(STOP_WAIT_MAX) => Some(self.places.count()),
            }
        })
    }

    /// Ends the threads, and with them the connections that are still open.
    pub fn end(self) {
        self.runtime.shutdown_timeout(THREADS_WAIT_MAX);
    }
}

#[cfg(test)]
mod tests;
