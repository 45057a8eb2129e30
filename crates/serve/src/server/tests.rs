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
        idle: None,
        answers: Budget::new(1 << 20),
    }
}

fn connect(server: &Server) -> std::net::TcpStream {
    let stream = std::net::TcpStream::connect(server.addresses()[0]).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// The listener, the places and the deadline serve any protocol. The deadline is on a server of its own: on the first
/// one, it would also end a client that is only slow.
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
    stream.write_all(b"half a line").unwrap();
    assert_eq!(server.close(), None, "connections end when the server stops");
    assert_eq!(server.places.count(), 0);
    server.end();
    assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    let settings = ListenSettings { idle: Some(Duration::from_millis(300)), ..settings() };
    let server = Listener::bind(settings, Arc::new(Silent)).unwrap().serve(Echo);
    let mut idle = connect(&server);
    assert_eq!(idle.read(&mut [0]).unwrap(), 0, "an idle connection is closed");
    wait_for_count(&server, 0);
    assert_eq!(server.close(), None);
    server.end();
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
    let identity =
        |index: usize| TlsIdentity::from_pem(made[index].certificate.as_bytes(), made[index].key.as_bytes()).unwrap();
    let current = Current::new(identity(0));
    let addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))];
    let tls = Some((addresses, current.clone()));
    let settings = ListenSettings { addresses: Vec::new(), tls, ..settings() };
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
struct Endless {
    websocket: Websocket,
    /// The longest time for which a client may take nothing.
    stall_max: Duration,
}

impl Endless {
    fn new(stall_max: Duration) -> Endless {
        Endless { websocket: Websocket { message_max: 1_000, lines: Budget::new(1 << 20), origin: None }, stall_max }
    }
}

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
        Some(self.stall_max)
    }

    async fn serve<S>(&self, stream: S, connection: &Arc<Connection>, stopped: Stopped)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        match first_byte(stream).await {
            Some((b'G', stream)) => self.websocket.serve(self, stream, connection, stopped).await,
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
    let settings = || ListenSettings { addresses: address(), ..settings() };
    let stalled = Listener::bind(ListenSettings { tls, ..settings() }, Arc::new(Silent)).unwrap();
    let stalled = stalled.serve(Endless::new(Duration::from_secs(2)));
    let [plain, of_tls] = [stalled.addresses()[0], stalled.addresses()[1]];
    // On a server of its own, with a longer limit: if the computer stops this test for some seconds, its client takes
    // nothing for so long either.
    let stall_max = Duration::from_secs(8);
    let steady = Listener::bind(settings(), Arc::new(Silent)).unwrap().serve(Endless::new(stall_max));
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
        let mut reader = TcpStream::connect(steady.addresses()[0]).await.unwrap();
        reader.write_all(b"x").await.unwrap();
        let mut bytes = 0;
        let mut buffer = vec![0; 1 << 20];
        let begin = tokio::time::Instant::now();
        // The one that reads goes on, for longer than a client may take nothing.
        while stalled.places.count() > 0 || begin.elapsed() < stall_max * 3 / 2 {
            assert!(begin.elapsed() < Duration::from_secs(90), "{} connections are open", stalled.places.count());
            let read = reader.read(&mut buffer).await.unwrap();
            assert!(read > 0, "after {bytes} bytes");
            bytes += read;
            sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(steady.places.count(), 1);
        drop((silent, silent_tls, silent_websocket));
    });
    for server in [stalled, steady] {
        server.end();
    }
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
    let settings = ListenSettings { addresses: Vec::new(), tls, ..settings() };
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
    let late = Late { gate, busy: Arc::clone(&busy) };
    let server = Listener::bind(settings(), Arc::new(Silent)).unwrap().serve(late);
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

/// The system accepts connections as soon as the addresses are bound.
#[test]
fn bans_cover_clients_that_connect_before_the_server_serves() {
    let proxies = vec![Subnet::parse("127.0.0.1", false).unwrap()];
    let listener = Listener::bind(ListenSettings { proxies, ..settings() }, Arc::new(Silent)).unwrap();
    let mut early = std::net::TcpStream::connect(listener.addresses()[0]).unwrap();
    early.write_all(OF_CLIENT).unwrap();
    listener.control().ban(Subnet::parse("203.0.113.0/24", false).unwrap(), Duration::from_secs(1_000)).unwrap();
    let server = listener.serve(Who);
    let mut answer = String::new();
    // See `answer_to`.
    let _ = early.read_to_string(&mut answer);
    assert_eq!(answer, "");
    assert!(answer_to(&server, OF_PROXY).starts_with("127.0.0.1 "));
    assert_eq!(server.close(), None);
    server.end();
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
