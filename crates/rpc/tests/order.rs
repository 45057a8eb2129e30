//! The work queue is checked before the password, as in Core, and guesses take no place in it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::context;
use lydian_consensus::{Chain, Params};
use lydian_disk::SimDisk;
use lydian_engine::{Engine, Layout, LogLine, Settings, Unobserved};
use lydian_rpc::{Context, Host, ProgressOf, Server, ServerSettings, Whitelist};
use lydian_serve::Users;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Longer than any answer takes here.
const PATIENCE: Duration = Duration::from_secs(60);

/// `user:password` and `user:guess`.
const RIGHT: &str = "Authorization: Basic dXNlcjpwYXNzd29yZA==\r\n";
const WRONG: &str = "Authorization: Basic dXNlcjpndWVzcw==\r\n";

const CALL: &str = "{\"method\":\"getblockcount\"}";
const STOP: &str = "{\"method\":\"stop\",\"id\":1}";

/// Asks for the path of the log, and so for [`Gate::log_path`].
const GATED: &str = "{\"method\":\"getrpcinfo\"}";

/// A program whose calls of `getrpcinfo` wait while the gate is closed.
#[derive(Debug, Default)]
struct Gate {
    is_closed: Mutex<bool>,
    opened: Condvar,
    log: Mutex<Vec<String>>,
}

impl Gate {
    fn set(&self, is_closed: bool) {
        *self.is_closed.lock().unwrap() = is_closed;
        self.opened.notify_all();
    }

    /// The number of wrong passwords that were checked.
    fn guesses(&self) -> usize {
        self.log.lock().unwrap().iter().filter(|line| line.contains("incorrect password attempt")).count()
    }
}

impl Host for Gate {
    fn unix_micros(&self) -> u64 {
        1_700_000_000_000_000
    }

    fn steady_micros(&self) -> u64 {
        0
    }

    fn set_mock_time(&self, _: i64) {}

    fn request_stop(&self) {}

    fn fill_random(&self, _: &mut [u8]) {}

    fn log_path(&self) -> String {
        let is_closed = self.is_closed.lock().unwrap();
        drop(self.opened.wait_while(is_closed, |is_closed| *is_closed).unwrap());
        String::new()
    }

    fn log_categories(&self) -> Vec<(&'static str, bool)> {
        Vec::new()
    }

    fn set_log_category(&self, _: &str, _: bool) -> bool {
        false
    }

    fn log_line(&self, line: &LogLine) {
        self.log.lock().unwrap().push(line.text.clone());
    }

    fn verification_progress(&self, _: &ProgressOf, _: i64) -> f64 {
        1.0
    }
}

/// A server with one thread.
struct World {
    gate: Arc<Gate>,
    context: Arc<Context>,
    server: Server,
    _engine: Arc<Engine>,
}

impl World {
    fn start(queue: usize) -> World {
        let layout = Layout { blocks: "/blocks".into(), index: "/index".into(), coins: "/coins".into() };
        let disk = Arc::new(SimDisk::new(1));
        let opened = Engine::open(disk, &layout, Params::new(Chain::Regtest), Settings::new(1), Vec::new()).unwrap();
        let (gate, engine) = (Arc::new(Gate::default()), Arc::new(opened.engine));
        let host: Arc<dyn Host> = Arc::<Gate>::clone(&gate);
        let context = Arc::new(Context::new(host, context().settings, Arc::new(Unobserved)));
        context.set_ready(&engine);
        let mut users = Users::default();
        users.add("user", "password").unwrap();
        let settings = ServerSettings {
            has_rest: false,
            addresses: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, 0))],
            allowed: Vec::new(),
            users,
            whitelist: Whitelist::default(),
            threads: 1,
            queue,
            idle: None,
        };
        let server = Server::start(Arc::clone(&context), settings).unwrap();
        World { gate, context, server, _engine: engine }
    }

    /// Sends a request and does not read the answer.
    fn begin(&self, line: &str, credentials: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.server.addresses()[0]).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let length = body.len();
        let head = format!("{line} HTTP/1.1\r\nConnection: close\r\n{credentials}Content-Length: {length}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream
    }

    /// Returns the status of the answer, and its body.
    fn ask(&self, line: &str, credentials: &str, body: &str) -> (u16, String) {
        read(self.begin(line, credentials, body))
    }

    /// Occupies the thread and the queue of one with two calls, until the gate opens.
    fn fill_queue(&self) -> [TcpStream; 2] {
        self.gate.set(true);
        let running = self.begin("POST /", RIGHT, GATED);
        until("the thread is occupied", || self.context.active().len() == 1);
        let waiting = self.begin("POST /", RIGHT, GATED);
        until("the queue is full", || self.ask("POST /", "", CALL).0 == 503);
        [running, waiting]
    }
}

fn read(mut stream: TcpStream) -> (u16, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 10 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

/// Core refuses with "Work queue depth exceeded" before it looks at the credentials, after the path and the methods
/// that it does not know. Lydian used to check the password first.
#[test]
fn a_full_queue_refuses_before_the_password_is_checked() {
    let world = World::start(1);
    let filled = world.fill_queue();
    let full = (503, "Work queue depth exceeded".to_owned());
    for (line, credentials, body) in [
        ("POST /", "", CALL),
        ("POST /", WRONG, CALL),
        ("POST /", RIGHT, CALL),
        ("POST /", WRONG, ""),
        ("GET /", "", ""),
        ("HEAD /", RIGHT, ""),
    ] {
        let answer = world.ask(line, credentials, body);
        assert_eq!(answer.0, full.0, "{line} {credentials}");
        assert!(answer.1 == full.1 || line.starts_with("HEAD"), "{line} {credentials}: {}", answer.1);
    }
    // The body of a call that is too long to be `stop` is not read.
    let long = format!("{STOP}{}", " ".repeat(1 << 10));
    assert_eq!(world.ask("POST /", RIGHT, &long).0, 503);
    assert_eq!(world.gate.guesses(), 0, "no password was checked");
    for (line, expected) in [("DELETE /", 405), ("POST /x", 404), ("GET /x", 404)] {
        assert_eq!(world.ask(line, "", "").0, expected, "{line}");
    }
    // `stop` is answered although the queue is full, and needs the password.
    assert_eq!(world.ask("POST /", "", STOP).0, 401);
    assert_eq!(world.ask("POST /", WRONG, STOP).0, 401);
    assert_eq!(world.gate.guesses(), 1);
    assert_eq!(
        world.ask("POST /", RIGHT, STOP),
        (200, "{\"result\":\"Lydian stopping\",\"error\":null,\"id\":1}\n".to_owned())
    );
    world.gate.set(false);
    for stream in filled {
        assert_eq!(read(stream).0, 200);
    }
    for (line, credentials, expected) in
        [("POST /", "", 401), ("POST /", WRONG, 401), ("GET /", "", 405), ("POST /", RIGHT, 200)]
    {
        assert_eq!(world.ask(line, credentials, CALL).0, expected, "{line} {credentials}");
    }
}

/// In Core, each wrong password takes a thread for 250 ms, so guesses fill the queue. Here a request takes a place in
/// the queue when its password is right.
#[test]
fn guesses_do_not_fill_the_queue() {
    // Two places, because the call with the right password takes one for a moment. A guess that arrives
    // meanwhile would be refused if there were no other.
    let world = World::start(2);
    let guesses: Vec<TcpStream> = (0..8).map(|_| world.begin("POST /", WRONG, CALL)).collect();
    until("a password was checked", || world.gate.guesses() > 0);
    assert_eq!(world.ask("POST /", RIGHT, CALL).0, 200);
    for guess in guesses {
        assert_eq!(read(guess).0, 401);
    }
    assert_eq!(world.gate.guesses(), 8);
}
