//! Byte counters of connections, updated where the bytes are sent and received.
//!
//! Input: sizes, the time. Output: sums per connection and message type, and the totals of all connections.
//!
//! The same counters as in Core's `CNode` and `CConnman`. A message is counted when all of it was sent, including the
//! framing. Bytes that belong to no message (the v2 handshake) count only in the totals. Messages that Core does not
//! know, and invalid ones, count as `*other*`. Invariant: no lock is held while bytes are counted. Cost: 600 bytes per
//! connection, a few nanoseconds per message. The counters must never decide anything.

use crate::time::UnixTime;
use lydian_stdx::lock;
use lydian_wire::{Command, TransportKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The name for messages that Core does not know.
const OTHER: &str = "*other*";

/// The totals of all connections since the node started.
#[derive(Debug)]
pub struct TrafficTotals {
    sent: AtomicU64,
    received: AtomicU64,
    /// By index in [`Command::ALL`]; the last one counts all others.
    sent_of: Vec<AtomicU64>,
    received_of: Vec<AtomicU64>,
}

impl Default for TrafficTotals {
    fn default() -> TrafficTotals {
        TrafficTotals { sent: AtomicU64::new(0), received: AtomicU64::new(0), sent_of: zeros(), received_of: zeros() }
    }
}

impl TrafficTotals {
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// The bytes sent and received of each name in [`message_names`], in their order.
    pub fn by_message(&self) -> impl Iterator<Item = (&'static str, u64, u64)> {
        let of = |counts: &[AtomicU64]| counts.iter().map(|count| count.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let counts = of(&self.sent_of).into_iter().zip(of(&self.received_of));
        message_names().zip(counts).map(|(name, (sent, received))| (name, sent, received))
    }
}

/// The names by which bytes are counted: those of Core's messages, and one for all others.
pub fn message_names() -> impl Iterator<Item = &'static str> {
    Command::ALL.iter().map(Command::as_str).chain([OTHER])
}

/// The counters of one connection; the owner of the socket updates them.
#[derive(Debug)]
pub struct Traffic {
    totals: Arc<TrafficTotals>,
    sent: AtomicU64,
    received: AtomicU64,
    last_send: AtomicU64,
    last_receive: AtomicU64,
    /// By index in [`Command::ALL`]; the last one counts all others.
    sent_of: Vec<AtomicU64>,
    received_of: Vec<AtomicU64>,
    transport: Mutex<(TransportKind, Option<[u8; 32]>)>,
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic::new(Arc::default())
    }
}

impl Traffic {
    /// Counters of an established connection; its bytes are added to `totals` too.
    pub fn new(totals: Arc<TrafficTotals>) -> Traffic {
        Traffic {
            totals,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            last_send: AtomicU64::new(0),
            last_receive: AtomicU64::new(0),
            sent_of: zeros(),
            received_of: zeros(),
            transport: Mutex::new((TransportKind::Detecting, None)),
        }
    }

    /// Bytes were written to the socket.
    pub fn note_sent(&self, bytes: usize, now: UnixTime) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        self.totals.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        self.last_send.store(now.0, Ordering::Relaxed);
    }

    /// Bytes were read from the socket.
    pub fn note_received(&self, bytes: usize, now: UnixTime) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.totals.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.last_receive.store(now.0, Ordering::Relaxed);
    }

    /// A whole message was sent; `bytes` includes its framing.
    pub fn note_sent_message(&self, command: Command, bytes: usize) {
        add(&self.sent_of, Some(command), bytes as u64);
        add(&self.totals.sent_of, Some(command), bytes as u64);
    }

    /// A message was received; `None` if it was invalid.
    pub fn note_received_message(&self, command: Option<Command>, bytes: u64) {
        add(&self.received_of, command, bytes);
        add(&self.totals.received_of, command, bytes);
    }

    pub fn note_transport(&self, kind: TransportKind, session_id: Option<[u8; 32]>) {
        *lock(&self.transport) = (kind, session_id);
    }

    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    pub fn last_send(&self) -> UnixTime {
        UnixTime(self.last_send.load(Ordering::Relaxed))
    }

    pub fn last_receive(&self) -> UnixTime {
        UnixTime(self.last_receive.load(Ordering::Relaxed))
    }

    /// Bytes sent by message name, sorted by name, without zeros.
    pub fn sent_by_message(&self) -> Vec<(String, u64)> {
        by_name(&self.sent_of)
    }

    /// Bytes received by message name, sorted by name, without zeros.
    pub fn received_by_message(&self) -> Vec<(String, u64)> {
        by_name(&self.received_of)
    }

    /// The transport protocol, and the session id of a v2 connection.
    pub fn transport(&self) -> (TransportKind, Option<[u8; 32]>) {
        *lock(&self.transport)
    }
}

fn zeros() -> Vec<AtomicU64> {
    (0..=Command::ALL.len()).map(|_| AtomicU64::new(0)).collect()
}

fn add(counts: &[AtomicU64], command: Option<Command>, bytes: u64) {
    let known = command.and_then(|command| Command::ALL.iter().position(|known| *known == command));
    if let Some(count) = counts.get(known.unwrap_or(Command::ALL.len())) {
        count.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn by_name(counts: &[AtomicU64]) -> Vec<(String, u64)> {
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    let mut all: Vec<_> = message_names().zip(counts).filter(|(_, bytes)| *bytes > 0).collect();
    all.sort_unstable();
    all.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_message_and_in_sum() {
        let totals = Arc::new(TrafficTotals::default());
        let (one, other) = (Traffic::new(Arc::clone(&totals)), Traffic::new(Arc::clone(&totals)));
        one.note_sent(100, UnixTime(7));
        other.note_sent(1, UnixTime(8));
        one.note_received(50, UnixTime(9));
        one.note_sent_message(Command::VERSION, 80);
        one.note_sent_message(Command::PING, 20);
        one.note_received_message(Some(Command::new("sendnonsense").unwrap()), 30);
        one.note_received_message(Some(Command::PONG), 10);
        one.note_received_message(None, 5);
        assert_eq!((totals.sent(), totals.received()), (101, 50));
        assert_eq!(
            (one.sent(), one.received(), one.last_send(), one.last_receive()),
            (100, 50, UnixTime(7), UnixTime(9))
        );
        assert_eq!(one.sent_by_message(), [("ping".to_owned(), 20), ("version".to_owned(), 80)]);
        assert_eq!(one.received_by_message(), [("*other*".to_owned(), 35), ("pong".to_owned(), 10)]);
        assert_eq!(other.sent_by_message(), []);
        other.note_sent_message(Command::PING, 2);
        let all: Vec<_> = totals.by_message().filter(|(_, sent, received)| sent + received > 0).collect();
        assert_eq!(all, [("version", 80, 0), ("ping", 22, 0), ("pong", 0, 10), ("*other*", 0, 35)]);
    }
}
