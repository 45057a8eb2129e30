//! Bytes that went over connections, counted where they go and read where somebody asks. Input: sizes, the time. Output: sums, of one connection by
//! message and of all.
//!
//! What Core keeps in `CNode` and `CConnman`: a message counts once all of it went out, framing included; what belongs to no message (the handshake of v2) is in the
//! sums only; messages that Core does not know, and those that cannot be taken, count as `*other*`. Invariant: no lock is held while bytes are counted.
//! Cost: 600 bytes a connection, a few nanoseconds a message. It must never decide anything.

use crate::time::UnixTime;
use lydian_wire::{Command, TransportKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What messages are called that Core does not know.
const OTHER: &str = "*other*";

/// Of all connections since the node began.
#[derive(Debug, Default)]
pub struct TrafficTotals {
    sent: AtomicU64,
    received: AtomicU64,
}

impl TrafficTotals {
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

/// Of one connection; whoever owns the socket counts.
#[derive(Debug)]
pub struct Traffic {
    totals: Arc<TrafficTotals>,
    sent: AtomicU64,
    received: AtomicU64,
    last_send: AtomicU64,
    last_receive: AtomicU64,
    /// By place in [`Command::ALL`]; the last one is for all others.
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
    /// A connection that stands; what goes over it counts for `totals` too.
    pub fn new(totals: Arc<TrafficTotals>) -> Traffic {
        let none = || (0..=Command::ALL.len()).map(|_| AtomicU64::new(0)).collect();
        Traffic {
            totals,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            last_send: AtomicU64::new(0),
            last_receive: AtomicU64::new(0),
            sent_of: none(),
            received_of: none(),
            transport: Mutex::new((TransportKind::Detecting, None)),
        }
    }

    /// The socket took bytes.
    pub fn note_sent(&self, bytes: usize, now: UnixTime) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        self.totals.sent.fetch_add(bytes as u64, Ordering::Relaxed);
        self.last_send.store(now.0, Ordering::Relaxed);
    }

    /// The socket gave bytes.
    pub fn note_received(&self, bytes: usize, now: UnixTime) {
        self.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.totals.received.fetch_add(bytes as u64, Ordering::Relaxed);
        self.last_receive.store(now.0, Ordering::Relaxed);
    }

    /// All of a message went out, with its framing.
    pub fn note_sent_message(&self, command: Command, bytes: usize) {
        add(&self.sent_of, Some(command), bytes as u64);
    }

    /// A message came; `None`: one that could not be taken.
    pub fn note_received_message(&self, command: Option<Command>, bytes: u64) {
        add(&self.received_of, command, bytes);
    }

    pub fn note_transport(&self, kind: TransportKind, session_id: Option<[u8; 32]>) {
        *self.transport.lock().unwrap_or_else(PoisonError::into_inner) = (kind, session_id);
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

    /// Bytes by message, those that were sent at all, by name.
    pub fn sent_by_message(&self) -> Vec<(String, u64)> {
        by_name(&self.sent_of)
    }

    /// Bytes by message, those that came at all, by name.
    pub fn received_by_message(&self) -> Vec<(String, u64)> {
        by_name(&self.received_of)
    }

    /// What is spoken, and the id of a v2 session.
    pub fn transport(&self) -> (TransportKind, Option<[u8; 32]>) {
        *self.transport.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn add(counts: &[AtomicU64], command: Option<Command>, bytes: u64) {
    let known = command.and_then(|command| Command::ALL.iter().position(|known| *known == command));
    if let Some(count) = counts.get(known.unwrap_or(Command::ALL.len())) {
        count.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn by_name(counts: &[AtomicU64]) -> Vec<(String, u64)> {
    let names = Command::ALL.iter().map(Command::as_str).chain([OTHER]);
    let counts = counts.iter().map(|count| count.load(Ordering::Relaxed));
    let mut all: Vec<_> = names.zip(counts).filter(|(_, bytes)| *bytes > 0).collect();
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
    }
}
