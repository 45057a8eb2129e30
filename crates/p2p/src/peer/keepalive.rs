//! Pings and timeouts.
//!
//! Input: when something was received and sent, the time. Output: a ping to send, or the reason to disconnect.
//!
//! Core's `MaybeSendPing`, `ProcessPong` and `InactivityCheck`. Invariant: one ping at a time, and only its own nonce
//! answers it, so that a peer that answers early or with another nonce does not get a better ping time.

use super::reason::seconds;
use super::{ConnectionKind, Context, DisconnectReason, Event, Note, Peer};
use crate::time::Moment;
use lydian_wire::message::{BIP0031_VERSION, Message};
use rand_chacha::rand_core::Rng;
use std::time::Duration;

/// Core's `PING_INTERVAL`.
pub const PING_INTERVAL: Duration = Duration::from_secs(2 * 60);
/// Core's `TIMEOUT_INTERVAL`: silence after which a connection is closed.
pub const TIMEOUT_INTERVAL: Duration = Duration::from_secs(20 * 60);

/// The time limit for addr-fetch peers: ten times Core's `AVG_ADDRESS_BROADCAST_INTERVAL`.
const ADDR_FETCH_TIME: Duration = Duration::from_secs(10 * 30);

/// The state of pings and of the connection's activity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keepalive {
    last_send: Option<Moment>,
    last_receive: Option<Moment>,
    /// The nonce that is expected in the answer; `None` if no ping is outstanding.
    nonce: Option<u64>,
    started: Option<Duration>,
    is_queued: bool,
    last_ping: Option<Duration>,
    min_ping: Option<Duration>,
}

impl Keepalive {
    pub(super) fn received(&mut self, now: Moment) {
        self.last_receive = Some(now);
    }

    /// Processes a `pong`. Returns the problem with the answer, if any, and the expected nonce.
    pub(super) fn pong(&mut self, nonce: Option<u64>, now: Moment) -> Option<(&'static str, u64)> {
        let expected = self.nonce.unwrap_or(0);
        match nonce {
            Some(_) if self.nonce.is_none() => Some(("Unsolicited pong without ping", 0)),
            Some(nonce) if nonce == expected => {
                let time = now.mockable.saturating_sub(self.started.unwrap_or(now.mockable));
                self.last_ping = Some(time);
                self.min_ping = Some(self.min_ping.map_or(time, |least| least.min(time)));
                self.nonce = None;
                None
            }
            // Another nonce may belong to an overlapping ping, but a peer that sends no nonce or 0 will not answer this
            // ping.
            Some(0) => {
                self.nonce = None;
                Some(("Nonce zero", expected))
            }
            None => {
                self.nonce = None;
                Some(("Short payload", expected))
            }
            Some(_) => Some(("Nonce mismatch", expected)),
        }
    }

    /// Returns the ping to send, if one is due.
    pub(super) fn ping(&mut self, common_version: i32, context: &mut Context<'_>) -> Option<Message> {
        let now = context.now.mockable;
        let is_due = self.nonce.is_none() && self.started.is_none_or(|started| now > started + PING_INTERVAL);
        if !self.is_queued && !is_due {
            return None;
        }
        self.is_queued = false;
        self.started = Some(now);
        self.nonce = (common_version > BIP0031_VERSION).then(|| context.random.next_u64().max(1));
        Some(Message::Ping(self.nonce))
    }
}

impl Peer {
    /// Bytes were sent. (Received messages are recorded by [`Peer::receive`].)
    pub fn note_sent(&mut self, now: Moment) {
        self.keepalive.last_send = Some(now);
    }

    /// Bytes of a message were received.
    pub fn note_received(&mut self, now: Moment) {
        self.keepalive.received(now);
    }

    pub fn last_send(&self) -> Option<Moment> {
        self.keepalive.last_send
    }

    pub fn last_receive(&self) -> Option<Moment> {
        self.keepalive.last_receive
    }

    /// Sends a ping with the next tick, even if none is due: the `ping` RPC.
    pub fn queue_ping(&mut self) {
        self.keepalive.is_queued = true;
    }

    /// Returns the last and the shortest ping time.
    pub fn ping_times(&self) -> Option<(Duration, Duration)> {
        self.keepalive.last_ping.zip(self.keepalive.min_ping)
    }

    /// Returns how long the current ping has been outstanding.
    pub fn ping_wait(&self, now: Moment) -> Option<Duration> {
        self.keepalive.nonce?;
        self.keepalive.started.map(|started| now.mockable.saturating_sub(started))
    }

    pub(super) fn receive_ping(&mut self, nonce: Option<u64>, out: &mut Vec<Event>) {
        if self.common_version > BIP0031_VERSION && nonce.is_some() {
            out.push(Event::Send(Message::Pong(nonce)));
        }
    }

    pub(super) fn receive_pong(&mut self, nonce: Option<u64>, bytes: usize, now: Moment, out: &mut Vec<Event>) {
        if let Some((problem, expected)) = self.keepalive.pong(nonce, now) {
            out.push(Event::Note(Note::Pong { problem, expected, received: nonce.unwrap_or(0), bytes }));
        }
    }

    /// Returns the reason to disconnect now, if there is one.
    pub(super) fn overdue(&self, context: &Context<'_>) -> Option<DisconnectReason> {
        let now = context.now;
        let is_fetch = self.connection.kind == ConnectionKind::AddrFetch;
        if is_fetch && self.is_connected && self.connected_for(now) > ADDR_FETCH_TIME {
            return Some(DisconnectReason::AddrFetchTimeout);
        }
        if self.connected_for(now) <= context.local.peer_timeout {
            return None;
        }
        let age = |then: Moment| now.mockable.saturating_sub(then.mockable);
        let (Some(last_send), Some(last_receive)) = (self.keepalive.last_send, self.keepalive.last_receive) else {
            return Some(DisconnectReason::NoMessage {
                seconds: seconds(context.local.peer_timeout),
                has_received: self.keepalive.last_receive.is_some(),
                has_sent: self.keepalive.last_send.is_some(),
            });
        };
        if age(last_send) > TIMEOUT_INTERVAL {
            Some(DisconnectReason::SendTimeout { seconds: seconds(age(last_send)) })
        } else if age(last_receive) > TIMEOUT_INTERVAL {
            Some(DisconnectReason::ReceiveTimeout { seconds: seconds(age(last_receive)) })
        } else if !self.is_connected {
            Some(DisconnectReason::HandshakeTimeout)
        } else {
            let wait = self.ping_wait(now).filter(|wait| *wait > TIMEOUT_INTERVAL)?;
            Some(DisconnectReason::PingTimeout { wait })
        }
    }
}
