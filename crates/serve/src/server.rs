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
mod tests {
    use super::*;
    use crate::control::DRAIN_TIME;
    use crate::event::Silent;
    use crate::limits::CONNECTIONS_MAX;
    use crate::websocket::{Lined, Websocket, first_byte};
    use std::io::{Read, Write};
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio_rustls::TlsConnector;
    use tokio_rustls::client::TlsStream;
    use tokio_rustls::rustls::crypto::ring::default_provider;
    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;
    use tokio_rustls::rustls::{ClientConfig, RootCertStore};

    /// Returns each line to its client.
    struct Echo;

    impl Protocol for Echo {
        async fn serve<S>(&self, stream: S, _: &Arc<Connection>, mut stopped: Stopped)
        where
            S: AsyncRead + AsyncWrite + Send + Unpin,
        {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            loop {
                let size = tokio::select! {
                    size = stream.read_line(&mut line) => size.unwrap_or(0),
                    () = stopped.wait() => 0,
                };
                if size == 0 || stream.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
                line.clear();
            }
        }
    }

    fn settings() -> ListenSettings {
        ListenSettings {
            name: "test",
            addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
            tls: None,
            allowed: Vec::new(),
            proxies: Vec::new(),
            blocking_threads: 1,
            idle: Some(Duration::from_millis(300)),
            answers: Budget::new(1 << 20),
        }
    }

    fn connect(server: &Server) -> std::net::TcpStream {
        let stream = std::net::TcpStream::connect(server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The listener, the places and the deadline serve any protocol.
    #[test]
    fn a_protocol_of_lines_is_served() {
        let server = Listener::bind(settings(), Arc::new(Silent)).unwrap().serve(Echo);
        let mut stream = connect(&server);
        for line in [&b"one\n"[..], b"two\n"] {
            stream.write_all(line).unwrap();
            let mut answer = [0; 4];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(answer, line);
        }
        assert_eq!(server.places.count(), 1);
        // An idle connection is closed, and its place is free.
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
        let mut open = connect(&server);
        open.write_all(b"half a line").unwrap();
        assert_eq!(server.close(), None, "connections end when the server stops");
        assert_eq!(server.places.count(), 0);
        server.end();
        assert_eq!(open.read(&mut [0]).unwrap_or(0), 0);
    }

    /// Answers each connection with what is known of its client, and the first line.
    struct Who;

    impl Protocol for Who {
        async fn serve<S>(&self, stream: S, connection: &Arc<Connection>, _: Stopped)
        where
            S: AsyncRead + AsyncWrite + Send + Unpin,
        {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            let words = match stream.read_line(&mut line).await {
                Ok(_) => {
                    format!("{} {} {} {line}", connection.address.ip(), connection.is_allowed, connection.is_local)
                }
                Err(error) => error.to_string(),
            };
            // The client may be gone.
            let _ = stream.write_all(words.as_bytes()).await;
        }
    }

    /// What a client of a server gets that sends these bytes.
    fn answer_to(server: &Server, bytes: &[u8]) -> String {
        let mut stream = connect(server);
        stream.write_all(bytes).unwrap();
        let mut answer = String::new();
        // An error means that the connection was closed before everything was read.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    /// A client of TLS that trusts one certificate only.
    struct TlsClient(TlsConnector);

    impl TlsClient {
        fn trusting(certificate: &str) -> TlsClient {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()).unwrap();
            let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
            let builder = builder.with_safe_default_protocol_versions().unwrap();
            TlsClient(TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())))
        }

        async fn connect(&self, server: &Server) -> io::Result<TlsStream<TcpStream>> {
            let stream = TcpStream::connect(server.addresses()[0]).await?;
            self.0.connect("localhost".try_into().unwrap(), stream).await
        }
    }

    async fn echo(stream: &mut TlsStream<TcpStream>) -> String {
        stream.write_all(b"hello\n").await.unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).await.unwrap();
        line
    }

    #[test]
    fn new_connections_get_the_new_certificate() {
        let made = [(); 2].map(|()| TlsIdentity::self_made().unwrap());
        let identity = |index: usize| {
            TlsIdentity::from_pem(made[index].certificate.as_bytes(), made[index].key.as_bytes()).unwrap()
        };
        let current = Current::new(identity(0));
        let addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
        let tls = Some((addresses, current.clone()));
        let settings = ListenSettings { addresses: Vec::new(), tls, idle: None, ..settings() };
        let server = Listener::bind(settings, Arc::new(Silent)).unwrap().serve(Echo);
        let [first, second] = [0, 1].map(|index| TlsClient::trusting(&made[index].certificate));
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut open = first.connect(&server).await.unwrap();
            assert_eq!(echo(&mut open).await, "hello\n");
            assert!(second.connect(&server).await.is_err());
            current.set(identity(1));
            assert!(first.connect(&server).await.is_err());
            assert_eq!(echo(&mut second.connect(&server).await.unwrap()).await, "hello\n");
            assert_eq!(echo(&mut open).await, "hello\n", "it goes on");
        });
        assert_eq!(server.close(), None);
        server.end();
    }

    /// Sends without end to each client, as lines, over a websocket if the client begins with a request for one.
    struct Endless(Websocket);

    /// The longest time for which a client may take nothing.
    const STALL_MAX: Duration = Duration::from_secs(2);

    impl Lined for Endless {
        async fn run<S>(&self, mut stream: S, _: &Arc<Connection>, _: Stopped)
        where
            S: AsyncRead + AsyncWrite + Send + Unpin,
        {
            let mut line = vec![b'x'; 100_000];
            line.push(b'\n');
            while stream.write_all(&line).await.is_ok() {}
        }
    }

    impl Protocol for Endless {
        fn stall_max(&self) -> Option<Duration> {
            Some(STALL_MAX)
        }

        async fn serve<S>(&self, stream: S, connection: &Arc<Connection>, stopped: Stopped)
        where
            S: AsyncRead + AsyncWrite + Send + Unpin,
        {
            match first_byte(stream).await {
                Some((b'G', stream)) => self.0.serve(self, stream, connection, stopped).await,
                Some((_, stream)) => self.run(stream, connection, stopped).await,
                None => {}
            }
        }
    }

    /// A client that reads nothing of an answer kept it for 10 minutes, also over TLS and websockets, unless others
    /// needed the memory. Now it is closed; a client that reads slowly is served on.
    #[test]
    fn clients_that_do_not_read_are_closed() {
        let made = TlsIdentity::self_made().unwrap();
        let identity = TlsIdentity::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
        let address = || vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
        let tls = Some((address(), Current::new(identity)));
        let settings = ListenSettings { addresses: address(), tls, idle: None, ..settings() };
        let websocket = Websocket { message_max: 1_000, lines: Budget::new(1 << 20), origin: None };
        let server = Listener::bind(settings, Arc::new(Silent)).unwrap().serve(Endless(websocket));
        let [plain, of_tls] = [server.addresses()[0], server.addresses()[1]];
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut silent = TcpStream::connect(plain).await.unwrap();
            silent.write_all(b"x").await.unwrap();
            let connector = TlsClient::trusting(&made.certificate).0;
            let stream = TcpStream::connect(of_tls).await.unwrap();
            let mut silent_tls = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
            silent_tls.write_all(b"x").await.unwrap();
            let stream = TcpStream::connect(plain).await.unwrap();
            let silent_websocket = tokio_tungstenite::client_async("ws://localhost/", stream).await.unwrap();
            let mut reader = TcpStream::connect(plain).await.unwrap();
            reader.write_all(b"x").await.unwrap();
            let mut bytes = 0;
            let mut buffer = vec![0; 1 << 20];
            let limit = tokio::time::Instant::now() + Duration::from_secs(60);
            while server.places.count() > 1 {
                assert!(tokio::time::Instant::now() < limit, "{} connections are open", server.places.count());
                bytes += reader.read(&mut buffer).await.unwrap();
                sleep(Duration::from_millis(5)).await;
            }
            // The one that reads goes on, for longer than the others were open.
            let until = tokio::time::Instant::now() + STALL_MAX * 3 / 2;
            while tokio::time::Instant::now() < until {
                let read = reader.read(&mut buffer).await.unwrap();
                assert!(read > 0, "after {bytes} bytes");
                bytes += read;
                sleep(Duration::from_millis(5)).await;
            }
            assert_eq!(server.places.count(), 1);
            drop((silent, silent_tls, silent_websocket));
        });
        server.end();
    }

    /// As many handshakes as there are places keep no client out, if they are never finished: a new one takes the place
    /// of the oldest. Their time is limited too: see the tests of [`TlsIdentity`].
    #[test]
    fn half_open_handshakes_keep_no_client_out() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
        let made = TlsIdentity::self_made().unwrap();
        let identity = TlsIdentity::from_pem(made.certificate.as_bytes(), made.key.as_bytes()).unwrap();
        let tls = Some((vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))], Current::new(identity)));
        let settings = ListenSettings { addresses: Vec::new(), tls, idle: None, ..settings() };
        let server = Listener::bind(settings, Arc::new(Silent)).unwrap().serve(Echo);
        // The head of a message of 512 bytes, and its beginning.
        let half = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        let open = |count: usize| -> Vec<std::net::TcpStream> {
            let connect = |_| {
                let mut stream = connect(&server);
                stream.write_all(&half).unwrap();
                stream
            };
            (0..count).map(connect).collect()
        };
        let client = TlsClient::trusting(&made.certificate);
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let half_open = open(CONNECTIONS_MAX);
        let mut served = runtime.block_on(client.connect(&server)).unwrap();
        assert_eq!(runtime.block_on(echo(&mut served)), "hello\n");
        let above = open(10);
        assert!(server.places.count() <= CONNECTIONS_MAX);
        let mut served = runtime.block_on(client.connect(&server)).unwrap();
        assert_eq!(runtime.block_on(echo(&mut served)), "hello\n");
        assert!(server.places.count() <= CONNECTIONS_MAX);
        drop(served);
        drop((half_open, above));
        assert_eq!(server.close(), None);
        server.end();
    }

    /// Returns each line to its client when the gate opens.
    struct Late {
        gate: watch::Receiver<bool>,
        busy: Arc<AtomicUsize>,
    }

    impl Protocol for Late {
        async fn serve<S>(&self, stream: S, _: &Arc<Connection>, mut stopped: Stopped)
        where
            S: AsyncRead + AsyncWrite + Send + Unpin,
        {
            let mut stream = BufReader::new(stream);
            let mut line = String::new();
            loop {
                let size = tokio::select! {
                    size = stream.read_line(&mut line) => size.unwrap_or(0),
                    () = stopped.wait() => 0,
                };
                if size == 0 {
                    return;
                }
                self.busy.fetch_add(1, Ordering::SeqCst);
                is_true(&mut self.gate.clone()).await;
                if stream.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
                line.clear();
            }
        }
    }

    /// Until so many connections are open.
    fn wait_for_count(server: &Server, count: usize) {
        let begin = tokio::time::Instant::now();
        while server.places.count() != count {
            assert!(begin.elapsed() < Duration::from_secs(60), "{} connections are open", server.places.count());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn connections_leave_one_after_the_other_once_they_have_answered() {
        let ((open, gate), busy) = (watch::channel(false), Arc::new(AtomicUsize::new(0)));
        let settings = ListenSettings { idle: None, ..settings() };
        let late = Late { gate, busy: Arc::clone(&busy) };
        let server = Listener::bind(settings, Arc::new(Silent)).unwrap().serve(late);
        let mut asking = connect(&server);
        asking.write_all(b"late\n").unwrap();
        wait_for_count(&server, 1);
        let mut idle: Vec<_> = (0..40).map(|_| connect(&server)).collect();
        wait_for_count(&server, 41);
        while busy.load(Ordering::SeqCst) == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let address = server.addresses()[0];
        server.close_addresses();
        server.close_addresses();
        let refused = std::net::TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let mut drain = server.control().drain();
        assert_eq!(drain.step(Duration::ZERO), 41);
        // The oldest two: the one that answers stays until it has.
        drain.step(Duration::from_secs(1));
        wait_for_count(&server, 40);
        assert_eq!(idle.remove(0).read(&mut [0]).unwrap(), 0);
        drain.step(Duration::from_millis(1_100));
        assert_eq!(server.places.count(), 40, "5 % each second");
        drain.step(DRAIN_TIME);
        wait_for_count(&server, 1);
        open.send(true).unwrap();
        let mut answer = String::new();
        asking.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "late\n", "the answer in progress is finished, and the connection ends");
        wait_for_count(&server, 0);
        assert_eq!(drain.step(DRAIN_TIME), 0);
        assert_eq!(server.close(), None);
        server.end();
    }

    const OF_CLIENT: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\x7f\0\0\x01\0\x01\0\x02hello\n";
    const OF_LOOPBACK: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x7f\0\0\x01\0\x01\0\x02hello\n";
    const OF_PROXY: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0hello\n";

    #[test]
    fn a_proxy_names_its_clients_and_no_other_address_does() {
        let proxies = vec![Subnet::parse("127.0.0.1", false).unwrap()];
        let idle = Some(Duration::from_secs(20));
        let settings = || ListenSettings { idle, ..settings() };
        let of_proxy = Listener::bind(ListenSettings { proxies, ..settings() }, Arc::new(Silent)).unwrap().serve(Who);
        assert_eq!(answer_to(&of_proxy, OF_CLIENT), "203.0.113.7 true false hello\n");
        assert_eq!(answer_to(&of_proxy, OF_LOOPBACK), "127.0.0.1 true false hello\n");
        assert_eq!(answer_to(&of_proxy, OF_PROXY), "127.0.0.1 true true hello\n");
        assert_eq!(answer_to(&of_proxy, b"hello\n"), "", "a header is required");
        let twice = [&OF_CLIENT[..28], OF_CLIENT].concat();
        assert_eq!(answer_to(&of_proxy, &twice), "a PROXY header of an address that is no proxy");
        let direct = Listener::bind(settings(), Arc::new(Silent)).unwrap().serve(Who);
        assert_eq!(answer_to(&direct, b"hello\n"), "127.0.0.1 true true hello\n");
        assert_eq!(answer_to(&direct, &OF_CLIENT[..12]), "a PROXY header of an address that is no proxy");
        assert_eq!(answer_to(&direct, OF_CLIENT), "a PROXY header of an address that is no proxy");
        for server in [of_proxy, direct] {
            assert_eq!(server.close(), None);
            server.end();
        }
    }

    /// limit: PROXY_HEADERS_WAITING_MAX at
    /// limit: PROXY_HEADERS_WAITING_MAX above
    #[test]
    fn few_connections_wait_for_their_header() {
        let proxies = vec![Subnet::parse("127.0.0.0/8", false).unwrap()];
        let server = Listener::bind(ListenSettings { proxies, ..settings() }, Arc::new(Silent)).unwrap().serve(Who);
        let mut silent: Vec<_> = (0..PROXY_HEADERS_WAITING_MAX).map(|_| connect(&server)).collect();
        assert_eq!(answer_to(&server, OF_CLIENT), "", "it is closed at once");
        assert_eq!(server.places.count(), 0, "they have no places");
        // One of them sends its header.
        let mut last = silent.pop().unwrap();
        last.write_all(OF_CLIENT).unwrap();
        let mut answer = String::new();
        last.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "203.0.113.7 true false hello\n");
        assert_eq!(answer_to(&server, OF_CLIENT), "203.0.113.7 true false hello\n");
        assert_eq!(server.close(), None);
        server.end();
    }

    #[test]
    fn a_port_in_use_is_reported_with_its_address() {
        let server = Listener::bind(settings(), Arc::new(Silent)).unwrap().serve(Echo);
        let address = server.addresses()[0];
        let again = Listener::bind(ListenSettings { addresses: vec![address], ..settings() }, Arc::new(Silent));
        let Err(StartError::NoEndpoint(failures)) = again else { panic!("bound twice") };
        let words = "on this computer. Lydian is probably already running.";
        assert_eq!(failures[0].to_string(), format!("Unable to bind to {address} {words}"));
        // One of two addresses is enough.
        let addresses = vec![address, SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
        let other = Listener::bind(ListenSettings { addresses, ..settings() }, Arc::new(Silent)).unwrap().serve(Echo);
        assert_eq!(other.addresses().len(), 1);
        assert_eq!(other.bound(), [None, Some(other.addresses()[0])]);
        for server in [server, other] {
            assert_eq!(server.close(), None);
            server.end();
        }
    }
}
