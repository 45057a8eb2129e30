//! [`Session`]: one client, from its first line to its last. [`Lines`] splits what it sends.
//!
//! Input: lines. Output: their answers in the order of the lines, and notifications between them. The answers are
//! computed on threads that may block.

use crate::batch::{self, Answer};
use crate::cost::Meter;
use crate::fault::Fault;
use crate::limits::{CLIENT_NAME_MAX, LINE_SIZE_MAX};
use crate::methods::notices;
use crate::notify::look_up;
use crate::server::Shared;
use crate::subscriptions::{Outbox, Own};
use crate::version::{MIN, Version};
use crate::watched::{Found, Watch};
use lydian_primitives::BlockHash;
use lydian_serve::{Budget, Connection, Lined, Protocol, Room, SessionInfo, Stopped, Websocket, first_byte};
use lydian_stdx::lock;
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

/// A client.
#[derive(Debug)]
pub(crate) struct Session {
    id: u64,
    connection: Arc<Connection>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) meter: Meter,
    state: Mutex<State>,
    is_closing: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// `None` until it was agreed on.
    version: Option<Version>,
    /// The name of the client.
    name: String,
    /// The last header that a subscriber was sent.
    header: Option<BlockHash>,
    /// The numbers of what it watches.
    watched: BTreeSet<u64>,
}

impl Session {
    fn own(&self) -> Own {
        Own { count: self.subscriptions(), is_local: self.connection.is_local }
    }

    /// The version of the protocol: the lowest until one is agreed on.
    pub(crate) fn version(&self) -> Version {
        lock(&self.state).version.unwrap_or(MIN)
    }

    /// Sets the version and the name of the client. False if they were set before.
    pub(crate) fn agree(&self, version: Version, name: &str) -> bool {
        let mut state = lock(&self.state);
        let is_first = state.version.is_none();
        if is_first {
            (state.version, state.name) = (Some(version), shown(name));
        }
        self.connection.has_spoken();
        is_first
    }

    /// The row of this session in `listelectrumsessions`.
    pub(crate) fn info(&self) -> SessionInfo {
        let connection = &self.connection;
        let [requests, bytes_received, bytes_sent, cost] = self.meter.totals();
        let subnet_cost = self.meter.subnet_units();
        let state = lock(&self.state);
        SessionInfo {
            id: connection.id(),
            address: connection.address,
            is_local: connection.is_local,
            version: state.version.map(|version| version.to_string()),
            client: state.name.clone(),
            age: connection.age(),
            idle: connection.still_for(),
            subscriptions: state.watched.len(),
            requests,
            bytes_received,
            bytes_sent,
            cost,
            subnet_cost,
        }
    }

    /// Ends the connection once the answer is sent.
    pub(crate) fn close_after_answer(&self) {
        self.is_closing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Waits until a line that was received may be answered: clients that cost much wait. False: the server is ending.
    async fn may_answer(&self, shared: &Shared, bytes: usize, stopped: &mut Stopped) -> bool {
        let costs = shared.live.get().costs;
        let delay = self.meter.received(bytes, costs);
        // What is refused anyway need not wait.
        if delay.is_zero() || self.meter.check(costs).is_err() {
            return true;
        }
        shared.counts.throttled.fetch_add(1, Ordering::Relaxed);
        tokio::select! {
            () = sleep(delay) => true,
            () = stopped.wait_for_server() => false,
        }
    }

    /// An error if the client costs too much: its session ends.
    pub(crate) fn check_cost(&self, shared: &Shared) -> Result<(), Fault> {
        self.meter.check(shared.live.get().costs).inspect_err(|_| {
            if !self.is_closing.swap(true, Ordering::Relaxed) {
                shared.counts.ended.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// The number of its subscriptions.
    pub(crate) fn subscriptions(&self) -> usize {
        lock(&self.state).watched.len()
    }

    pub(crate) fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    pub(crate) fn subscribe_to_headers(&self, shared: &Shared) {
        shared.subscriptions.wants_headers(self.id);
    }

    /// Whether there was a subscription.
    pub(crate) fn unsubscribe_from_headers(&self, shared: &Shared) -> bool {
        shared.subscriptions.wants_no_headers(self.id)
    }

    /// Notes the header that is sent to a subscriber. False if it was the last one, too.
    pub(crate) fn is_new_header(&self, hash: &BlockHash) -> bool {
        lock(&self.state).header.replace(*hash) != Some(*hash)
    }

    /// What is known of what the session watches from now on: computed now, as every other answer. What the notifier
    /// found last may be older than a history that the session has.
    pub(crate) fn subscribe(&self, shared: &Shared, watch: Watch) -> Result<Found, Fault> {
        let own = self.own();
        let number = shared.subscriptions.number(&watch);
        // At once, since a batch may have the same script several times.
        let is_new = lock(&self.state).watched.insert(number);
        if is_new {
            shared.subscriptions.join(self.id, &own, number, &watch).inspect_err(|_| {
                lock(&self.state).watched.remove(&number);
            })?;
        }
        match look_up(&shared.query, &watch) {
            Ok(found) => {
                shared.subscriptions.answered(&watch, &found);
                Ok(found)
            }
            Err(error) => {
                if is_new {
                    self.unsubscribe(shared, &watch);
                }
                Err(error.into())
            }
        }
    }

    /// Whether there was a subscription.
    pub(crate) fn unsubscribe(&self, shared: &Shared, watch: &Watch) -> bool {
        let number = shared.subscriptions.number(watch);
        let was_there = lock(&self.state).watched.remove(&number);
        if was_there {
            shared.subscriptions.leave(self.id, number);
        }
        was_there
    }
}

/// A name as an operator sees it: its beginning, without control characters.
fn shown(name: &str) -> String {
    name.chars().filter(|character| !character.is_control()).take(CLIENT_NAME_MAX).collect()
}

/// A session whose end removes its subscriptions.
struct Open {
    shared: Arc<Shared>,
    session: Arc<Session>,
}

impl Open {
    fn new(shared: &Arc<Shared>, connection: &Arc<Connection>) -> Open {
        let (id, outbox) = shared.subscriptions.open();
        let (connection, state, is_closing) = (Arc::clone(connection), Mutex::default(), AtomicBool::new(false));
        let meter = shared.accounts.meter(connection.address.ip(), connection.is_local);
        let session = Arc::new(Session { id, connection, outbox, meter, state, is_closing });
        shared.registry.add(&session);
        Open { shared: Arc::clone(shared), session }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.shared.registry.remove(&self.session);
        let state = lock(&self.session.state);
        self.shared.subscriptions.close(self.session.id, &state.watched);
    }
}

/// Serves the protocol on connections, over websockets for clients that begin with an HTTP request.
#[derive(Debug)]
pub(crate) struct Electrum {
    pub(crate) shared: Arc<Shared>,
    pub(crate) websocket: Websocket,
}

/// A client that takes nothing of an answer for this long is disconnected.
const STALL_MAX: Duration = Duration::from_secs(30);

/// The first byte of an HTTP request for a websocket. No line of JSON begins with it.
const GET: u8 = b'G';

impl Protocol for Electrum {
    fn stall_max(&self) -> Option<Duration> {
        Some(STALL_MAX)
    }

    async fn serve<S>(&self, stream: S, connection: &Arc<Connection>, mut stopped: Stopped)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        if !connection.is_allowed {
            return;
        }
        let first = tokio::select! {
            first = first_byte(stream) => first,
            () = stopped.wait() => return,
        };
        let plain = Plain(&self.shared);
        match first {
            Some((GET, stream)) => self.websocket.serve(&plain, stream, connection, stopped).await,
            Some((_, stream)) => plain.run(stream, connection, stopped).await,
            None => {}
        }
    }
}

/// The protocol as lines.
#[derive(Debug)]
struct Plain<'a>(&'a Arc<Shared>);

impl Plain<'_> {
    /// Sends an answer, each part once the one before was taken. False if the connection or the server has ended.
    async fn send(
        &self,
        session: &Arc<Session>,
        mut answer: Answer,
        writer: &mut (impl AsyncWrite + Unpin),
        stopped: &mut Stopped,
    ) -> bool {
        loop {
            let rest = answer.rest.take();
            session.meter.sent(answer.bytes.len());
            if !answer.bytes.is_empty() && writer.write_all(&answer.bytes).await.is_err() {
                return false;
            }
            // What comes next may need its room.
            drop(answer);
            let Some(rest) = rest else { return true };
            if rest.is_due() && (stopped.is_now() || !session.may_answer(self.0, 0, stopped).await) {
                return false;
            }
            let Some(next) = batch::next_part(self.0, session, rest).await else { return true };
            answer = next;
        }
    }
}

impl Lined for Plain<'_> {
    async fn run<S>(&self, stream: S, connection: &Arc<Connection>, mut stopped: Stopped)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let open = Open::new(self.0, connection);
        let session = &open.session;
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut lines = Lines::new(&self.0.lines);
        loop {
            let line = tokio::select! {
                line = lines.next(&mut reader) => Some(line),
                () = session.outbox.wait() => None,
                () = stopped.wait() => return,
            };
            let answer = match line {
                Some(Ok(Some(line))) => {
                    let _busy = connection.begin_call();
                    if !session.may_answer(self.0, line.bytes.len(), &mut stopped).await {
                        return;
                    }
                    batch::answer(self.0, session, line).await
                }
                Some(Ok(None)) => return,
                Some(Err(TooLong { words })) => {
                    // The rest of the line is not read, so nothing more can be answered.
                    let _ = writer.write_all(&batch::too_long(&words)).await;
                    return;
                }
                None => batch::on_thread(self.0, session, |shared, session| (notices(shared, session), None)).await,
            };
            let Some(answer) = answer else { return };
            if !self.send(session, answer, &mut writer, &mut stopped).await {
                return;
            }
            if session.is_closing() {
                let _ = writer.shutdown().await;
                return;
            }
        }
    }
}

/// The lines of a client.
#[derive(Debug)]
pub(crate) struct Lines {
    buffer: Vec<u8>,
    /// There is no line end before this place.
    searched: usize,
    budget: Arc<Budget>,
    room: Room,
}

/// A line without its end, with its room until all its requests are answered.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) bytes: Vec<u8>,
    pub(crate) room: Room,
}

/// A line that is not received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong {
    pub(crate) words: String,
}

/// Bytes that are received at once.
const STEP: usize = 8 << 10;

impl Lines {
    pub(crate) fn new(budget: &Arc<Budget>) -> Lines {
        Lines { buffer: Vec::new(), searched: 0, budget: Arc::clone(budget), room: budget.room() }
    }

    /// The next line; `None` at the end of the stream. What was received stays if this is dropped.
    pub(crate) async fn next(&mut self, reader: &mut (impl AsyncRead + Unpin)) -> Result<Option<Line>, TooLong> {
        loop {
            let end = self.buffer.iter().skip(self.searched).position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|end| self.searched + end) {
                let rest = self.buffer.split_off(end + 1);
                let mut bytes = std::mem::replace(&mut self.buffer, rest);
                bytes.pop();
                self.searched = 0;
                let mut room = std::mem::replace(&mut self.room, self.budget.room());
                room.shrink(bytes.len());
                // If others take it first, the next read says so.
                let _ = self.room.try_grow(self.buffer.len());
                return Ok(Some(Line { bytes, room }));
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > LINE_SIZE_MAX {
                return Err(TooLong { words: format!("a line has more than {LINE_SIZE_MAX} bytes") });
            }
            self.buffer.reserve(STEP);
            if !self.room.try_grow(self.buffer.capacity()) {
                return Err(TooLong { words: "the server receives too many long lines at once".to_owned() });
            }
            let read: io::Result<usize> = reader.read_buf(&mut self.buffer).await;
            if read.unwrap_or(0) == 0 {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    fn lines_of(bytes: &[u8], budget: &Arc<Budget>) -> Result<Vec<Vec<u8>>, TooLong> {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut lines, mut reader, mut all) = (Lines::new(budget), bytes, Vec::new());
            while let Some(line) = lines.next(&mut reader).await? {
                all.push(line.bytes);
            }
            Ok(all)
        })
    }

    /// limit: CLIENT_NAME_MAX at
    /// limit: CLIENT_NAME_MAX above
    #[test]
    fn names_of_clients_are_shown_in_part() {
        assert_eq!(shown("electrum/4.5.8\u{1b}[2J\n"), "electrum/4.5.8[2J");
        assert_eq!(shown(&"ä".repeat(CLIENT_NAME_MAX)).chars().count(), CLIENT_NAME_MAX);
        assert_eq!(shown(&"ä".repeat(CLIENT_NAME_MAX + 1)).chars().count(), CLIENT_NAME_MAX);
    }

    /// limit: LINE_SIZE_MAX at
    /// limit: LINE_SIZE_MAX above
    #[test]
    fn lines_are_split() {
        let budget = Budget::new(64 << 20);
        let lines = lines_of(b"one\n\ntwo\nrest", &budget).unwrap();
        assert_eq!(lines, [&b"one"[..], b"", b"two"]);
        let mut long = vec![b' '; LINE_SIZE_MAX];
        long.push(b'\n');
        assert_eq!(lines_of(&long, &budget).unwrap()[0].len(), LINE_SIZE_MAX);
        let endless = vec![b' '; LINE_SIZE_MAX + 1];
        assert_eq!(lines_of(&endless, &budget).unwrap_err().words, "a line has more than 2097152 bytes");
    }

    /// limit: LINES_SIZE_MAX at
    /// limit: LINES_SIZE_MAX above
    #[test]
    fn long_lines_share_memory() {
        let budget = Budget::new(crate::limits::LINES_SIZE_MAX);
        let mut others = budget.room();
        // A buffer is at most twice as large as what it holds.
        assert!(others.try_grow(crate::limits::LINES_SIZE_MAX - 300_000));
        let mut line = vec![b' '; 150_000 - 2 * STEP];
        line.push(b'\n');
        assert!(lines_of(&line, &budget).is_ok());
        let mut longer = vec![b' '; 300_000];
        longer.push(b'\n');
        assert!(lines_of(&longer, &budget).unwrap_err().words.contains("too many long lines"));
        // One that waits to be answered still counts.
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut lines, mut reader) = (Lines::new(&budget), &line[..]);
            let waiting = lines.next(&mut reader).await.unwrap().unwrap();
            assert!(!others.try_grow(crate::limits::LINES_SIZE_MAX - 100_000));
            drop(waiting);
            assert!(others.try_grow(crate::limits::LINES_SIZE_MAX - 100_000));
        });
    }
}
