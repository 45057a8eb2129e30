//! The DevTools protocol over a websocket: commands with answers, and events in between.
//!
//! Input: a method with parameters, for the browser or for one of its sessions (a page, a frame, a worker). Output: the
//! result, or an error. Events that arrive meanwhile go into the record of the page that the session belongs to.
//! Invariants: one command at a time; an answer that does not come within [`ANSWER`] is an error.

use crate::error::BrowserError;
use crate::record::Record;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};

/// Longer than anything takes on a busy machine.
pub(crate) const ANSWER: Duration = Duration::from_secs(60);
/// How long the socket is read at most before deadlines are looked at.
const READ: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Connection {
    socket: WebSocket<TcpStream>,
    last: u64,
    /// The records of pages, by session.
    records: BTreeMap<String, Record>,
    /// Sessions of frames and workers, with the session of their page. A shared worker belongs to the first.
    inner: BTreeMap<String, String>,
}

fn io(text: &impl ToString) -> BrowserError {
    BrowserError::Io { what: "the connection to the browser".to_owned(), text: text.to_string() }
}

impl Connection {
    pub(crate) fn open(port: u16, path: &str) -> Result<Connection, BrowserError> {
        let stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| io(&error))?;
        stream.set_nodelay(true).map_err(|error| io(&error))?;
        let url = format!("ws://127.0.0.1:{port}{path}");
        let (socket, _) = client(url, stream).map_err(|error| io(&error))?;
        socket.get_ref().set_read_timeout(Some(READ)).map_err(|error| io(&error))?;
        Ok(Connection { socket, last: 0, records: BTreeMap::new(), inner: BTreeMap::new() })
    }

    /// `session`: empty for the browser itself.
    pub(crate) fn call(&mut self, session: &str, method: &str, params: Value) -> Result<Value, BrowserError> {
        let id = self.send(session, method, params)?;
        let end = Instant::now() + ANSWER;
        while Instant::now() < end {
            let Some(message) = self.read()? else { continue };
            if message.get("id").and_then(Value::as_u64) != Some(id) {
                self.take(&message)?;
                continue;
            }
            if let Some(error) = message.get("error") {
                let text =
                    error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
                return Err(BrowserError::Refused { method: method.to_owned(), text });
            }
            return message.get("result").cloned().ok_or_else(|| unexpected(method, &message));
        }
        Err(BrowserError::Timeout { what: format!("the answer to {method}"), after: ANSWER })
    }

    /// A text in the answer to a call.
    pub(crate) fn ask(
        &mut self,
        session: &str,
        method: &str,
        params: Value,
        field: &str,
    ) -> Result<String, BrowserError> {
        let answer = self.call(session, method, params)?;
        answer.get(field).and_then(Value::as_str).map(str::to_owned).ok_or_else(|| unexpected(method, &answer))
    }

    /// Takes the events that have arrived, for at most this long.
    pub(crate) fn listen(&mut self, time: Duration) -> Result<(), BrowserError> {
        let end = Instant::now() + time;
        loop {
            if let Some(message) = self.read()? {
                self.take(&message)?;
            }
            if Instant::now() >= end {
                return Ok(());
            }
        }
    }

    pub(crate) fn record(&mut self, session: &str) -> &mut Record {
        self.records.entry(session.to_owned()).or_default()
    }

    pub(crate) fn forget(&mut self, session: &str) {
        self.records.remove(session);
        self.inner.retain(|_, page| page != session);
    }

    /// Sends a command without waiting; returns its number. Answers to older numbers are ignored.
    fn send(&mut self, session: &str, method: &str, params: Value) -> Result<u64, BrowserError> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if !session.is_empty() {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).map_err(|error| io(&error))?;
        Ok(self.last)
    }

    /// The next message, or `None` if there is none at present.
    fn read(&mut self) -> Result<Option<Value>, BrowserError> {
        let message = match self.socket.read() {
            Ok(Message::Text(text)) => text,
            Ok(_) => return Ok(None),
            Err(Error::Io(error)) if is_no_message(error.kind()) => return Ok(None),
            Err(error) => return Err(io(&error)),
        };
        serde_json::from_str(&message).map(Some).map_err(|error| io(&error))
    }

    fn take(&mut self, message: &Value) -> Result<(), BrowserError> {
        let method = message.get("method").and_then(Value::as_str).unwrap_or("");
        let session = message.get("sessionId").and_then(Value::as_str).unwrap_or("").to_owned();
        let params = message.get("params").unwrap_or(&Value::Null);
        let page = self.inner.get(&session).unwrap_or(&session).clone();
        if method == "Target.attachedToTarget" {
            return self.attached(&page, params);
        }
        if method == "Page.javascriptDialogOpening" {
            self.send(&session, "Page.handleJavaScriptDialog", json!({"accept": true}))?;
        }
        // Only the page itself is loaded; its frames are not counted.
        let is_load_of_frame = method == "Page.loadEventFired" && page != session;
        if !is_load_of_frame && let Some(record) = self.records.get_mut(&page) {
            record.take(method, params);
        }
        Ok(())
    }

    /// A frame or a worker waits until it is watched.
    fn attached(&mut self, page: &str, params: &Value) -> Result<(), BrowserError> {
        let Some(session) = params.get("sessionId").and_then(Value::as_str).map(str::to_owned) else { return Ok(()) };
        // The browser itself reports shared workers; a page is attached to by its own command.
        let kind = params.pointer("/targetInfo/type").and_then(Value::as_str).unwrap_or("");
        let owner = match page {
            "" if kind.ends_with("worker") => self.records.keys().next().cloned(),
            "" => None,
            page => Some(page.to_owned()),
        };
        if let Some(owner) = owner {
            self.inner.insert(session.clone(), owner);
            self.watch(&session)?;
        }
        if params.get("waitingForDebugger").and_then(Value::as_bool) == Some(true) {
            self.send(&session, "Runtime.runIfWaitingForDebugger", json!({}))?;
        }
        Ok(())
    }

    /// Has a session send what a record needs. Workers refuse some of it, which is ignored.
    pub(crate) fn watch(&mut self, session: &str) -> Result<(), BrowserError> {
        for domain in ["Network", "Page", "Runtime", "Log"] {
            self.send(session, &format!("{domain}.enable"), json!({}))?;
        }
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        self.send(session, "Target.setAutoAttach", attach)?;
        Ok(())
    }
}

pub(crate) fn unexpected(method: &str, answer: &Value) -> BrowserError {
    let text = answer.to_string().chars().take(500).collect();
    BrowserError::Answer { method: method.to_owned(), text }
}

/// Whether no message has come yet. Stopping and continuing this process interrupts its reads.
fn is_no_message(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
