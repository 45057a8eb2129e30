//! A client for Electrum servers: JSON-RPC over TCP on loopback, one message per line.
//!
//! Input: an address, methods and parameters. Output: the line of the answer, with the time from the first byte sent to
//! the last byte received, or an error that names server and method. Invariants: the handshake comes first; lines are
//! bounded; no call waits longer than the timeout, however slowly bytes arrive; after an error other than
//! [`Fault::Refused`] the connection is no longer usable. Cost: the line in memory. Must never: panic on anything a
//! server sends.

use crate::error::LabError;
use crate::limits::ELECTRUM_LINE_BYTES_MAX;
use crate::runs::system;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

/// The oldest protocol version that the client requests.
pub const PROTOCOL_MIN: &str = "1.4";
/// The newest: from this version on, queries name scripts directly instead of by their hash.
pub const PROTOCOL_MAX: &str = "1.7";
const NAME: &str = "lydian-lab";
const READ_BYTES: usize = 1 << 16;
/// Characters of a server's error text that are kept for a message.
const SAID_CHARS_MAX: usize = 300;

/// What went wrong with one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientError {
    pub server: String,
    pub method: String,
    pub fault: Fault,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing listens on the port, or the connection broke.
    Connection(String),
    /// The server closed the connection.
    Disconnected,
    TimedOut {
        seconds: u64,
    },
    LineTooLong {
        limit: usize,
    },
    NotJson(String),
    /// Valid JSON, but not an answer to the query.
    Unexpected(String),
    /// The server's own error; the connection stays usable.
    Refused {
        code: i64,
        message: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Connection(reason) => write!(f, "the connection failed: {reason}"),
            Fault::Disconnected => f.write_str("the server ended the connection"),
            Fault::TimedOut { seconds } => write!(f, "no whole answer within {seconds} s"),
            Fault::LineTooLong { limit } => write!(f, "a line of more than {limit} bytes"),
            Fault::NotJson(reason) => write!(f, "the answer is not JSON: {reason}"),
            Fault::Unexpected(text) => write!(f, "not an answer to the question: {text}"),
            Fault::Refused { code, message } => write!(f, "error {code}: {message}"),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.server, self.method, self.fault)
    }
}

impl std::error::Error for ClientError {}

impl From<ClientError> for LabError {
    fn from(ClientError { server, method, fault }: ClientError) -> LabError {
        LabError::Program { program: server, reason: format!("{method}: {fault}") }
    }
}

/// Which server to connect to, and how.
#[derive(Clone, Debug)]
pub struct Place {
    /// The server's name, for messages.
    pub name: String,
    pub port: u16,
    /// For a complete answer.
    pub timeout: Duration,
    /// [`PROTOCOL_MAX`] or an older one.
    pub protocol_max: String,
}

/// An answer as received: one line without its line end.
#[derive(Debug)]
pub struct Answer<'a> {
    pub line: &'a [u8],
    pub milliseconds: f64,
}

/// A connection with a completed handshake.
#[derive(Debug)]
pub struct Client {
    place: Place,
    stream: TcpStream,
    /// The last line and any bytes received after it.
    buffer: Vec<u8>,
    /// Start of the unread part of `buffer`.
    consumed: usize,
    /// The server's name for itself.
    pub software: String,
    /// The negotiated protocol version.
    pub protocol: String,
}

impl Client {
    pub fn connect(place: &Place) -> Result<Client, ClientError> {
        let failed = |error: std::io::Error| place.error("connect", Fault::Connection(error.to_string()));
        let stream = place.dial().map_err(failed)?;
        let (software, protocol) = (String::new(), String::new());
        let mut client = Client { place: place.clone(), stream, buffer: Vec::new(), consumed: 0, software, protocol };
        let versions = json!([NAME, [PROTOCOL_MIN, place.protocol_max]]);
        let agreed = client.call("server.version", &versions)?;
        match (agreed[0].as_str(), agreed[1].as_str()) {
            (Some(software), Some(protocol)) => {
                client.software = software.to_owned();
                client.protocol = protocol.to_owned();
                Ok(client)
            }
            _ => Err(place.error("server.version", Fault::Unexpected(shortened(&agreed.to_string())))),
        }
    }

    /// Sends a query and returns its result.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, ClientError> {
        let request = request(method, params);
        let line = self.ask(method, &request)?.line.to_vec();
        result_of(&line).map_err(|fault| self.place.error(method, fault))
    }

    /// Sends a request made by [`request`] and waits for the line that answers it; notifications before it are skipped.
    /// The answer may be an error of the server: see [`result_of`].
    pub fn ask(&mut self, method: &str, request: &[u8]) -> Result<Answer<'_>, ClientError> {
        let start = system::now();
        self.send(request).and_then(|()| self.receive(start)).map_err(|fault| self.place.error(method, fault))?;
        let milliseconds = start.elapsed().as_secs_f64() * 1e3;
        Ok(Answer { line: self.line(), milliseconds })
    }

    /// Calls the same method with many parameters in one message. The answers are returned in the order of the queries,
    /// whatever order the server uses.
    pub fn batch(&mut self, method: &str, params: &[Value]) -> Result<Vec<Result<Value, Fault>>, ClientError> {
        let calls = params.iter().enumerate();
        let calls: Vec<Value> =
            calls.map(|(id, params)| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).collect();
        let mut message = Value::Array(calls).to_string().into_bytes();
        message.push(b'\n');
        self.exchange(&message, params.len()).map_err(|fault| self.place.error(method, fault))
    }

    fn exchange(&mut self, message: &[u8], count: usize) -> Result<Vec<Result<Value, Fault>>, Fault> {
        let start = system::now();
        self.send(message)?;
        let mut answers: HashMap<usize, Result<Value, Fault>> = HashMap::new();
        while answers.len() < count {
            self.receive(start)?;
            let line = parse(self.line())?;
            let messages = match line {
                Value::Array(messages) => messages,
                message => vec![message],
            };
            for mut message in messages {
                let id = message["id"].as_u64().and_then(|id| usize::try_from(id).ok()).filter(|&id| id < count);
                match (id, outcome(&mut message)) {
                    (Some(id), outcome) => drop(answers.insert(id, outcome)),
                    (None, Err(fault)) => return Err(fault),
                    (None, Ok(_)) => return Err(Fault::Unexpected("an answer to no question of the batch".into())),
                }
            }
        }
        Ok((0..count).filter_map(|id| answers.remove(&id)).collect())
    }

    fn send(&mut self, message: &[u8]) -> Result<(), Fault> {
        self.stream.write_all(message).map_err(|error| self.place.broken(&error))
    }

    /// Waits for a complete line that is not a notification; the timeout counts from `start`.
    fn receive(&mut self, start: Instant) -> Result<(), Fault> {
        loop {
            self.next_line(start)?;
            if !is_notification(self.line()) {
                return Ok(());
            }
        }
    }

    fn next_line(&mut self, start: Instant) -> Result<(), Fault> {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        let mut searched = 0;
        loop {
            if let Some(end) = self.buffer[searched..].iter().position(|&byte| byte == b'\n') {
                self.consumed = searched + end + 1;
                return match self.consumed - 1 > ELECTRUM_LINE_BYTES_MAX {
                    true => Err(Fault::LineTooLong { limit: ELECTRUM_LINE_BYTES_MAX }),
                    false => Ok(()),
                };
            }
            searched = self.buffer.len();
            if searched > ELECTRUM_LINE_BYTES_MAX {
                return Err(Fault::LineTooLong { limit: ELECTRUM_LINE_BYTES_MAX });
            }
            self.place.read_more(&mut self.stream, &mut self.buffer, start)?;
        }
    }

    fn line(&self) -> &[u8] {
        self.buffer.get(..self.consumed.saturating_sub(1)).unwrap_or_default()
    }
}

impl Place {
    pub fn error(&self, method: &str, fault: Fault) -> ClientError {
        ClientError { server: self.name.clone(), method: method.to_owned(), fault }
    }

    /// A connection without a handshake.
    pub(super) fn dial(&self) -> std::io::Result<TcpStream> {
        let address = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port));
        let stream = TcpStream::connect_timeout(&address, self.timeout)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(self.timeout))?;
        Ok(stream)
    }

    /// Appends what the server sent; the timeout counts from `start`.
    pub(super) fn read_more(&self, stream: &mut TcpStream, buffer: &mut Vec<u8>, start: Instant) -> Result<(), Fault> {
        let left = self.timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero());
        let left = left.ok_or_else(|| self.late())?;
        stream.set_read_timeout(Some(left)).map_err(|error| self.broken(&error))?;
        let filled = buffer.len();
        buffer.resize(filled + READ_BYTES, 0);
        let read = stream.read(&mut buffer[filled..]);
        buffer.truncate(filled + read.as_ref().map_or(0, |&size| size));
        match read {
            Ok(0) => Err(Fault::Disconnected),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(self.broken(&error)),
        }
    }

    fn late(&self) -> Fault {
        Fault::TimedOut { seconds: self.timeout.as_secs() }
    }

    pub(super) fn broken(&self, error: &std::io::Error) -> Fault {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => self.late(),
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Fault::Disconnected,
            _ => Fault::Connection(error.to_string()),
        }
    }
}

/// A query in the form in which it is sent. All queries have the same id: a connection has only one open at a time, and
/// this way equal queries get equal answers.
pub fn request(method: &str, params: &Value) -> Vec<u8> {
    let mut line = json!({"jsonrpc": "2.0", "id": 0, "method": method, "params": params}).to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Parses a line returned by [`Client::ask`].
pub fn result_of(line: &[u8]) -> Result<Value, Fault> {
    outcome(&mut parse(line)?)
}

fn outcome(message: &mut Value) -> Result<Value, Fault> {
    match message.get("error") {
        Some(Value::Null) | None => {}
        Some(error) => {
            // An object in JSON-RPC 2.0; some servers send plain text.
            let message = error["message"].as_str().map_or_else(|| error.to_string(), str::to_owned);
            return Err(Fault::Refused { code: error["code"].as_i64().unwrap_or(0), message: shortened(&message) });
        }
    }
    match message.get_mut("result") {
        Some(result) => Ok(result.take()),
        None => Err(Fault::Unexpected(shortened(&message.to_string()))),
    }
}

fn parse(line: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(line).map_err(|error| Fault::NotJson(error.to_string()))
}

/// A message with a method is a notification. To avoid parsing every answer, a line is parsed only if the word occurs
/// in its first 4,096 bytes; a long answer about scripts contains only hashes and numbers.
fn is_notification(line: &[u8]) -> bool {
    const WORD: &[u8] = b"\"method\"";
    const LOOK_BYTES: usize = 4_096;
    let head = line.get(..LOOK_BYTES).unwrap_or(line);
    head.windows(WORD.len()).any(|window| window == WORD)
        && parse(line).is_ok_and(|message| message.get("method").is_some() && message.get("result").is_none())
}

pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SAID_CHARS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
