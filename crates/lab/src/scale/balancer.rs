//! A small TCP balancer, for tests and for the comparison of front ends with whole copies.
//!
//! Input: servers on loopback, and how to ask whether each answers. Output: an address that passes each connection on
//! to one of the servers, in turn, with a header of the PROXY protocol (version 2) that names the client. Invariants:
//! every connection to a server begins at the balancer's own address, so that a server can tell it from clients; a
//! server that fails its checks, or refuses a connection, gets no further ones until it answers again, and those that
//! it has are closed, so that clients connect again. Cost: two threads for each connection. It is no balancer for
//! operation: it has no time limits for clients and no TLS.

use crate::electrum::client::request;
use crate::error::LabError;
use crate::limits::{BALANCED_CONNECTIONS_MAX, CHECK_BYTES_MAX};
use crate::runs::system;
use lydian_stdx::lock;
use serde::Serialize;
use serde_json::json;
use socket2::{Domain, Socket, Type};
use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The address from which the balancer connects to servers: they are given it as that of their proxy, and clients that
/// connect to them from 127.0.0.1 need no header.
pub const OWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// The beginning of a header of the PROXY protocol.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2 with the commands LOCAL and PROXY.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
/// No address, and TCP over IPv4.
const UNSPECIFIED: u8 = 0x00;
const TCP_OVER_IPV4: u8 = 0x11;
/// Two addresses and two ports.
const IPV4_SIZE: u16 = 12;

/// A thread only copies, so its stack is small.
const STACK_BYTES: usize = 256 << 10;
/// Steps in which a thread notices the end.
const STEP: Duration = Duration::from_millis(20);

/// How to ask a server whether it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// The handshake of the Electrum protocol at the server's own address, and the balance of a script: a node that has
    /// just started accepts connections before its index has every block.
    Electrum,
    /// `GET /health` at another port of 127.0.0.1.
    Http(u16),
}

/// A server.
#[derive(Clone, Copy, Debug)]
pub struct Backend {
    pub port: u16,
    pub check: Check,
}

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Between two checks of a server.
    pub period: Duration,
    /// For the answer to a check, and for a connection to a server.
    pub timeout: Duration,
    /// Failed checks in a row after which a server gets no connections.
    pub falls: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { period: Duration::from_millis(500), timeout: Duration::from_secs(2), falls: 2 }
    }
}

/// What became of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BackendFigures {
    pub port: u16,
    pub is_up: bool,
    /// Connections that are open, and all so far.
    pub open: usize,
    pub passed: u64,
    /// How often it was found not to answer.
    pub falls: u64,
}

/// Dropping it closes all connections.
#[derive(Debug)]
pub struct Balancer {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    settings: Settings,
    servers: Vec<Server>,
    next: AtomicUsize,
    is_over: AtomicBool,
    open: Mutex<HashMap<u64, Pair>>,
    number: AtomicU64,
}

#[derive(Debug)]
struct Server {
    backend: Backend,
    is_up: AtomicBool,
    passed: AtomicU64,
    falls: AtomicU64,
}

/// The two ends of a connection that is passed on.
#[derive(Debug)]
struct Pair {
    server: usize,
    client: Arc<TcpStream>,
    backend: Arc<TcpStream>,
}

impl Pair {
    fn close(&self) {
        // One that is closed already stays closed.
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.backend.shutdown(Shutdown::Both);
    }
}

impl Balancer {
    /// Listens on a free port of 127.0.0.1. Servers count as answering until a check fails.
    pub fn start(backends: &[Backend], settings: Settings) -> Result<Balancer, LabError> {
        let failed = |error: std::io::Error| LabError::program("balancer", error);
        if backends.is_empty() {
            return Err(LabError::Usage("a balancer needs a server".to_owned()));
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let server = |backend: &Backend| Server {
            backend: *backend,
            is_up: AtomicBool::new(true),
            passed: AtomicU64::new(0),
            falls: AtomicU64::new(0),
        };
        let shared = Arc::new(Shared {
            settings,
            servers: backends.iter().map(server).collect(),
            next: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            open: Mutex::new(HashMap::new()),
            number: AtomicU64::new(0),
        });
        let mut balancer = Balancer { shared, address, threads: Vec::new() };
        for number in 0..backends.len() {
            let shared = Arc::clone(&balancer.shared);
            balancer.threads.push(spawn(move || shared.watch(number)).map_err(failed)?);
        }
        let shared = Arc::clone(&balancer.shared);
        balancer.threads.push(spawn(move || Shared::accept(&shared, &listener)).map_err(failed)?);
        Ok(balancer)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn figures(&self) -> Vec<BackendFigures> {
        let open = lock(&self.shared.open);
        let figures = |(number, server): (usize, &Server)| BackendFigures {
            port: server.backend.port,
            is_up: server.is_up.load(Ordering::Relaxed),
            open: open.values().filter(|pair| pair.server == number).count(),
            passed: server.passed.load(Ordering::Relaxed),
            falls: server.falls.load(Ordering::Relaxed),
        };
        self.shared.servers.iter().enumerate().map(figures).collect()
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A thread that panicked has nothing left to end.
            let _ = thread.join();
        }
        lock(&self.shared.open).values().for_each(Pair::close);
    }
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
        while !shared.is_over() {
            match listener.accept() {
                Ok((client, from)) => {
                    let shared = Arc::clone(shared);
                    // Without a thread, the client is closed.
                    let _ = spawn(move || Shared::pass(&shared, client, from));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(1)),
                Err(_) => thread::sleep(STEP),
            }
        }
    }

    /// Passes on one connection until both sides have ended it.
    fn pass(shared: &Arc<Shared>, client: TcpStream, from: SocketAddr) {
        let SocketAddr::V4(from) = from else { return };
        if lock(&shared.open).len() >= BALANCED_CONNECTIONS_MAX {
            return;
        }
        // Accepted sockets are blocking on Linux; elsewhere they may inherit the listener's mode.
        if client.set_nonblocking(false).is_err() || client.set_nodelay(true).is_err() {
            return;
        }
        let Some((server, backend)) = shared.dial(from, &client) else { return };
        let (client, backend) = (Arc::new(client), Arc::new(backend));
        let number = shared.number.fetch_add(1, Ordering::Relaxed);
        lock(&shared.open).insert(number, Pair { server, client: Arc::clone(&client), backend: Arc::clone(&backend) });
        // The server may have been found not to answer since it was chosen, and the balancer may have ended.
        if shared.is_over() || !shared.servers.get(server).is_some_and(|server| server.is_up.load(Ordering::Relaxed)) {
            lock(&shared.open).values().filter(|pair| pair.server == server).for_each(Pair::close);
        }
        let up = {
            let (client, backend) = (Arc::clone(&client), Arc::clone(&backend));
            spawn(move || copy(&client, &backend))
        };
        copy(&backend, &client);
        if let Some(pair) = lock(&shared.open).remove(&number) {
            pair.close();
        }
        if let Ok(up) = up {
            // See `Drop`.
            let _ = up.join();
        }
    }

    /// A connection to the next server that accepts one, with the header sent.
    fn dial(&self, from: SocketAddrV4, client: &TcpStream) -> Option<(usize, TcpStream)> {
        let to = match client.local_addr().ok()? {
            SocketAddr::V4(to) => to,
            SocketAddr::V6(_) => return None,
        };
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for at in 0..self.servers.len() {
            let number = first.wrapping_add(at) % self.servers.len();
            let server = self.servers.get(number)?;
            if !server.is_up.load(Ordering::Relaxed) {
                continue;
            }
            let dialled = dial(server.backend.port, self.settings.timeout).and_then(|mut stream| {
                stream.write_all(&header(from, to))?;
                Ok(stream)
            });
            match dialled {
                Ok(stream) => {
                    server.passed.fetch_add(1, Ordering::Relaxed);
                    return Some((number, stream));
                }
                Err(_) => self.fall(number),
            }
        }
        None
    }

    /// A server does not answer: it gets no connections, and those that it has end.
    fn fall(&self, number: usize) {
        let Some(server) = self.servers.get(number) else { return };
        if server.is_up.swap(false, Ordering::Relaxed) {
            server.falls.fetch_add(1, Ordering::Relaxed);
        }
        lock(&self.open).values().filter(|pair| pair.server == number).for_each(Pair::close);
    }

    /// Asks one server again and again.
    fn watch(&self, number: usize) {
        let Some(server) = self.servers.get(number) else { return };
        let mut failures = 0;
        while !self.is_over() {
            if answers(server.backend, self.settings.timeout) {
                failures = 0;
                server.is_up.store(true, Ordering::Relaxed);
            } else {
                failures += 1;
                if failures >= self.settings.falls {
                    self.fall(number);
                }
            }
            let start = system::now();
            while !self.is_over() && start.elapsed() < self.settings.period {
                thread::sleep(STEP.min(self.settings.period));
            }
        }
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("balancer".to_owned()).stack_size(STACK_BYTES).spawn(work)
}

/// Copies until the end of `from`, and says so to `to`.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let how = match std::io::copy(&mut from, &mut to) {
        Ok(_) => Shutdown::Write,
        // One side is gone: the other one must see it.
        Err(_) => Shutdown::Both,
    };
    // It may be closed already.
    let _ = to.shutdown(how);
    if how == Shutdown::Both {
        let _ = from.shutdown(Shutdown::Both);
    }
}

/// A connection from the balancer's own address.
fn dial(port: u16, timeout: Duration) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((OWN_ADDRESS, 0)).into())?;
    socket.connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into(), timeout)?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true)?;
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// The header for a client.
fn header(from: SocketAddrV4, to: SocketAddrV4) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([PROXY, TCP_OVER_IPV4]);
    bytes.extend(IPV4_SIZE.to_be_bytes());
    bytes.extend(from.ip().octets());
    bytes.extend(to.ip().octets());
    bytes.extend(from.port().to_be_bytes());
    bytes.extend(to.port().to_be_bytes());
    bytes
}

/// Whether the server answers now.
fn answers(backend: Backend, timeout: Duration) -> bool {
    let asked = match backend.check {
        Check::Electrum => {
            let mut question = SIGNATURE.to_vec();
            question.extend([LOCAL, UNSPECIFIED, 0, 0]);
            question.extend(request("server.version", &json!(["balancer", ["1.4", "1.6"]])));
            question.extend(request("blockchain.scripthash.get_balance", &json!(["00".repeat(32)])));
            dial(backend.port, timeout).and_then(|stream| ask(stream, &question, 2, timeout))
        }
        Check::Http(port) => {
            let question = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            TcpStream::connect_timeout(&address, timeout).and_then(|stream| ask(stream, question, 1, timeout))
        }
    };
    asked.is_ok_and(|line| match backend.check {
        Check::Electrum => line.windows(8).filter(|part| part == b"\"result\"").count() >= 2,
        Check::Http(_) => line.starts_with(b"HTTP/1.1 200") || line.starts_with(b"HTTP/1.0 200"),
    })
}

/// Sends a question and returns the first lines of the answer.
fn ask(mut stream: TcpStream, question: &[u8], lines: usize, timeout: Duration) -> std::io::Result<Vec<u8>> {
    let start = system::now();
    stream.write_all(question)?;
    let mut line = Vec::new();
    let mut chunk = [0; 512];
    while line.iter().filter(|byte| **byte == b'\n').count() < lines {
        let left = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero());
        stream.set_read_timeout(Some(left.ok_or(ErrorKind::TimedOut)?))?;
        let size = stream.read(&mut chunk)?;
        if size == 0 || line.len() + size > CHECK_BYTES_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        line.extend(chunk.iter().take(size));
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A server that answers checks, and each line of a client with its own number and the client's port.
    struct Echo {
        port: u16,
        is_silent: Arc<AtomicBool>,
    }

    impl Echo {
        fn new(name: char) -> Echo {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let is_silent = Arc::new(AtomicBool::new(false));
            let silent = Arc::clone(&is_silent);
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let (mut stream, silent) = (stream.unwrap(), Arc::clone(&silent));
                    assert_eq!(stream.peer_addr().unwrap().ip(), OWN_ADDRESS);
                    thread::spawn(move || serve(&mut stream, name, &silent));
                }
            });
            Echo { port, is_silent }
        }

        fn backend(&self) -> Backend {
            Backend { port: self.port, check: Check::Electrum }
        }
    }

    fn serve(stream: &mut TcpStream, name: char, silent: &AtomicBool) {
        let mut head = [0; 16];
        if stream.read_exact(&mut head).is_err() {
            return;
        }
        assert_eq!(head[..12], SIGNATURE);
        let mut rest = vec![0; usize::from(head[15])];
        stream.read_exact(&mut rest).unwrap();
        let client = match (head[12], head[13], head[14]) {
            (LOCAL, UNSPECIFIED, 0) => "balancer".to_owned(),
            (PROXY, TCP_OVER_IPV4, 0) => {
                assert_eq!((&rest[..4], rest.len()), (&[127, 0, 0, 1][..], 12));
                u16::from_be_bytes([rest[8], rest[9]]).to_string()
            }
            _ => panic!("{head:?}"),
        };
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        while let Some(Ok(line)) = lines.next() {
            if silent.load(Ordering::Relaxed) {
                continue;
            }
            // A client that is gone reads nothing.
            let _ = writeln!(stream, "\"result\" {name} {client} {line}");
        }
    }

    fn settings() -> Settings {
        Settings { period: Duration::from_millis(20), timeout: Duration::from_secs(2), falls: 2 }
    }

    /// For servers that always answer, however busy the machine is.
    fn patient() -> Settings {
        Settings { timeout: PATIENCE, ..settings() }
    }

    /// Which server answers, after a check of the rest of the answer.
    fn ask_through(balancer: &Balancer) -> Option<(char, TcpStream)> {
        let mut stream = TcpStream::connect(balancer.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let port = stream.local_addr().unwrap().port();
        stream.write_all(b"hello\n").ok()?;
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).ok()?;
        let name = line.split(' ').nth(1)?.chars().next()?;
        assert_eq!(line, format!("\"result\" {name} {port} hello\n"));
        Some((name, stream))
    }

    fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
        let start = system::now();
        while !is_so() {
            assert!(start.elapsed() < PATIENCE, "{what}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn connections_go_round_and_leave_a_server_that_is_silent_or_gone() {
        let servers = ['a', 'b', 'c'].map(Echo::new);
        let gone = rpc_port();
        let mut backends: Vec<Backend> = servers.iter().map(Echo::backend).collect();
        backends.push(Backend { port: gone, check: Check::Electrum });
        let balancer = Balancer::start(&backends, settings()).unwrap();
        let mut held = Vec::new();
        let names: String = (0..6)
            .map(|_| {
                let (name, stream) = ask_through(&balancer).unwrap();
                held.push((name, stream));
                name
            })
            .collect();
        assert!("abcabcabc".contains(&names) || names.len() == 6, "{names}");
        for name in ['a', 'b', 'c'] {
            assert!(names.contains(name), "{names}");
        }
        wait_until("the missing server is found", || !balancer.figures()[3].is_up);
        // One becomes silent: its connections end, and further ones go to the others.
        servers[1].is_silent.store(true, Ordering::Relaxed);
        wait_until("the silent server is found", || !balancer.figures()[1].is_up);
        for (name, stream) in &mut held {
            let mut byte = [0];
            stream.set_read_timeout(Some(if *name == 'b' { PATIENCE } else { Duration::from_millis(20) })).unwrap();
            let read = stream.read(&mut byte);
            let has_ended = !read.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            assert_eq!(has_ended, *name == 'b', "{name} {read:?}");
        }
        for _ in 0..6 {
            assert_ne!(ask_through(&balancer).unwrap().0, 'b');
        }
        // It answers again.
        servers[1].is_silent.store(false, Ordering::Relaxed);
        wait_until("the server is used again", || ask_through(&balancer).is_some_and(|(name, _)| name == 'b'));
        let figures = balancer.figures();
        assert!(figures[1].falls == 1 && figures[3].passed == 0, "{figures:?}");
        drop(held);
        wait_until("closed connections are forgotten", || balancer.figures().iter().all(|one| one.open == 0));
    }

    #[test]
    fn without_a_server_that_answers_connections_end() {
        let balancer =
            Balancer::start(&[Backend { port: rpc_port(), check: Check::Http(rpc_port()) }], settings()).unwrap();
        assert!(ask_through(&balancer).is_none());
        assert!(Balancer::start(&[], settings()).unwrap_err().to_string().contains("needs a server"));
    }

    fn rpc_port() -> u16 {
        crate::runs::rpc::free_port().unwrap()
    }

    /// limit: CHECK_BYTES_MAX at
    /// limit: CHECK_BYTES_MAX above
    #[test]
    fn an_answer_to_a_check_has_a_limit() {
        let answer = |length: usize| {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = thread::spawn(move || {
                let mut stream = listener.accept().unwrap().0;
                let mut line = vec![b'x'; length - 1];
                line.push(b'\n');
                // The client closes the connection once it has read enough.
                let _ = stream.write_all(&line);
            });
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            let line = ask(stream, b"", 1, PATIENCE);
            server.join().unwrap();
            line
        };
        assert_eq!(answer(CHECK_BYTES_MAX).unwrap().len(), CHECK_BYTES_MAX);
        assert!(answer(CHECK_BYTES_MAX + 1).is_err());
    }

    /// limit: BALANCED_CONNECTIONS_MAX at
    /// limit: BALANCED_CONNECTIONS_MAX above
    #[test]
    fn connections_have_a_limit() {
        let server = Echo::new('a');
        // So many connections at once overflow the server's queue: the system sends their first packets again after a
        // second.
        let balancer = Balancer::start(&[server.backend()], patient()).unwrap();
        let mut held: Vec<TcpStream> =
            (0..BALANCED_CONNECTIONS_MAX - 1).map(|_| TcpStream::connect(balancer.address()).unwrap()).collect();
        wait_until("all are passed on", || balancer.figures()[0].open == held.len());
        held.push(ask_through(&balancer).unwrap().1);
        assert!(ask_through(&balancer).is_none());
        held.pop();
        wait_until("there is room again", || ask_through(&balancer).is_some());
    }
}
