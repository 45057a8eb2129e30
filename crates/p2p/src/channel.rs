//! [`Channel`]: one connection without its socket: when received bytes may be processed and a message may be handed to
//! the manager, what memory the connection is charged for, and which progress is reported.
//!
//! Input: received bytes, the sizes of what waits to be sent, the time. Output: messages for the manager, each with the
//! charge for its bytes and with memory for its answer.
//!
//! Messages of a peer that sends more than [`crate::pace`] allows wait; meanwhile none of its bytes are processed.
//! After [`FLOOD_TIME_MAX`] the connection should end.
//! Received bytes are processed only when there is room for what the transport makes of them; if there is room for only
//! a few of them, those are processed. Invariant: everything that is held for the peer is charged to its account
//! ([`crate::memory`]). Cost: a few additions per call, and that of the transport. It waits for nothing.

use crate::limits::{FLOOD_TIME_MAX, GETDATA_COUNT_MAX};
use crate::memory::{Charge, PeerMemory, Waiting};
use crate::pace::MessagePace;
use lydian_wire::transport::{Dropped, FRAME_SIZE_MIN, Received, Transport, TransportError};
use lydian_wire::{Command, InvType};
use std::time::Duration;

/// Time allowed to send the remaining output to a peer that is being disconnected.
pub const FAREWELL_TIME: Duration = Duration::from_secs(5);

/// Memory that a waiting message takes in addition to its payload.
const MESSAGE_BYTES: usize = 128;

/// Bytes that are processed at a time while memory is short.
const SHORT_READ_BYTES: usize = 4 << 10;

/// Progress of an incomplete message is reported for at least this many new bytes, and at most once per interval.
const PROGRESS_BYTES: usize = 4 << 10;
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// One connection without its socket.
#[derive(Debug)]
pub struct Channel {
    transport: Transport,
    memory: PeerMemory,
    /// Maximum bytes of complete messages that wait; above it, no more bytes are processed.
    receive_buffer: usize,
    /// Charge for bytes received and not handed over, and charge for bytes that wait to be sent.
    receiving: Charge,
    sending: Charge,
    /// Reservation for a block that is being read.
    block: Option<Charge>,
    /// Set while a block is next in the send queue and there is no memory for it.
    waiting: Option<Waiting>,
    /// How fast messages are handed over; `None` for a peer that is not limited.
    pace: Option<MessagePace>,
    /// How long the next message must wait for its pace.
    paced: Option<Duration>,
    /// Requests for headers that were sent and not answered.
    headers_asked: u32,
    /// Transactions that were requested and did not come; at most [`GETDATA_COUNT_MAX`] are counted, since a peer may
    /// not have them.
    txs_asked: usize,
    /// Time since which the peer sends more than its pace.
    flood_since: Option<Duration>,
    /// Bytes for which there was no memory when they were about to be processed.
    refused_bytes: usize,
    /// Bytes of the incomplete message that were reported to the manager, and the time of the report.
    progress_bytes: usize,
    progress_reported: Duration,
}

/// A message for the manager.
#[derive(Debug)]
pub struct Handover {
    pub received: Received,
    /// The bytes of the message.
    pub charge: Charge,
    /// Memory for its answer, until the answer is queued.
    pub answer: Charge,
}

impl Channel {
    pub fn new(transport: Transport, memory: PeerMemory, receive_buffer: usize) -> Channel {
        Channel {
            transport,
            receive_buffer: receive_buffer.max(1),
            receiving: memory.charge_received(0),
            sending: memory.charge_to_send(0),
            memory,
            block: None,
            waiting: None,
            pace: Some(MessagePace::default()),
            paced: None,
            headers_asked: 0,
            txs_asked: 0,
            flood_since: None,
            refused_bytes: 0,
            progress_bytes: 0,
            progress_reported: Duration::ZERO,
        }
    }

    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// Returns the transport to send with. Received bytes go through [`Channel::receive`].
    pub fn transport_mut(&mut self) -> &mut Transport {
        &mut self.transport
    }

    /// Ends the limit to the number of messages: for peers with `noban`.
    pub fn lift_pace(&mut self) {
        self.pace = None;
    }

    /// How long the next message must wait because the peer has sent too many.
    pub fn paced(&self) -> Option<Duration> {
        self.paced
    }

    /// Whether the peer has sent more than its pace for too long.
    pub fn is_flooding(&self, now: Duration) -> bool {
        self.flood_since.is_some_and(|since| now.saturating_sub(since) > FLOOD_TIME_MAX)
    }

    fn note_flood(&mut self, now: Duration) {
        if self.paced.is_some() {
            self.flood_since.get_or_insert(now);
        } else if self.pace.as_ref().is_none_or(|pace| pace.is_rested(now)) {
            self.flood_since = None;
        }
    }

    /// Called when a message is sent to the peer. Some allow it more messages: a block or a part of one, a request for
    /// headers, whose answer is large, and a request for transactions.
    pub fn note_sent(&mut self, command: Command, payload: &[u8]) {
        if command == Command::GETDATA {
            self.txs_asked = (self.txs_asked + requested_txs(payload)).min(GETDATA_COUNT_MAX);
        }
        self.headers_asked = self.headers_asked.saturating_add(u32::from(command == Command::GETHEADERS));
        if let Some(pace) = self.pace.as_mut().filter(|_| is_block(command)) {
            pace.sent_block();
        }
    }

    /// Whether the complete messages that wait leave room for more, and the peer has not sent too many.
    pub fn may_receive(&self) -> bool {
        self.paced.is_none() && self.transport.message_bytes() < self.receive_buffer
    }

    /// Passes received bytes to the transport, all at once or a short part of them. Returns the number of bytes that it
    /// took, which is 0 if there is no memory or no room for them or the peer has sent too many messages, and the error
    /// of the transport.
    pub fn receive(&mut self, bytes: &[u8], now: Duration) -> (usize, Result<(), TransportError>) {
        self.refused_bytes = 0;
        if bytes.is_empty() || !self.may_receive() {
            return (0, Ok(()));
        }
        for count in [bytes.len(), bytes.len().min(SHORT_READ_BYTES)] {
            let growth = self.transport.growth(count) + count / FRAME_SIZE_MIN * MESSAGE_BYTES;
            if self.receiving.try_receive(growth) {
                self.refused_bytes = 0;
                let before = self.transport.dropped();
                let received = self.transport.receive(&bytes[..count]);
                self.count_dropped(before, now);
                return (count, received);
            }
            self.refused_bytes = growth;
        }
        (0, Ok(()))
    }

    /// Messages that the transport dropped have cost time too.
    fn count_dropped(&mut self, before: Dropped, now: Duration) {
        let (after, Some(pace)) = (self.transport.dropped(), &mut self.pace) else { return };
        if after.count > before.count {
            pace.take(after.count - before.count, after.bytes - before.bytes, now);
            self.paced = pace.may_take(now).err();
        }
    }

    /// Whether there was no memory for the bytes of the last call of [`Channel::receive`].
    pub fn is_short(&self) -> bool {
        self.refused_bytes > 0
    }

    /// Returns the bytes that the connection holds for the peer's messages or needs to go on reading.
    pub fn needed_bytes(&self) -> usize {
        self.receiving.bytes() + self.refused_bytes
    }

    /// Returns the next message for the manager, if there is one, its time has come, and there is memory for its
    /// answer. `queued_bytes` is the memory of queued items that the last [`Channel::count_memory`] did not include.
    pub fn next_message(&mut self, queued_bytes: usize, now: Duration) -> Option<Handover> {
        let command = self.transport.next_command();
        let allowed = self.memory.take_allowed();
        if let Some(pace) = self.pace.as_mut().filter(|_| allowed > 0) {
            pace.give_back(allowed);
            self.flood_since = None;
        }
        let is_requested_tx = command == Some(Command::TX) && self.txs_asked > 0;
        let is_limited = !is_requested_tx && command.is_some_and(|command| !is_block(command));
        let wait = self.pace.as_ref().and_then(|pace| pace.may_take(now).err());
        // A block is handed over meanwhile, but no more is read from a peer whose messages had to be dropped.
        self.paced = wait.filter(|_| is_limited || self.paced.is_some());
        self.note_flood(now);
        if is_limited && self.paced.is_some() {
            return None;
        }
        let command = command?;
        let answer = self.memory.reserve_answer(self.sending.bytes() + queued_bytes)?;
        let received = self.transport.next_message()?;
        self.txs_asked -= usize::from(is_requested_tx);
        if let Some(pace) = self.pace.as_mut().filter(|_| is_limited) {
            let is_answer = command == Command::HEADERS && self.headers_asked > 0;
            self.headers_asked -= u32::from(is_answer);
            let bytes = if is_answer { 0 } else { received.raw_size };
            pace.take(1, bytes as u64, now);
        }
        let charge = self.memory.charge_received(received.payload.capacity() + MESSAGE_BYTES);
        self.count_received();
        Some(Handover { received, charge, answer })
    }

    /// Charges what is held now. `to_send` is the number of bytes that wait to be sent.
    pub fn count_memory(&mut self, to_send: usize) {
        self.block = None;
        self.count_received();
        self.sending.set(to_send);
    }

    fn count_received(&mut self) {
        let messages = self.transport.message_bytes() + self.transport.message_count() * MESSAGE_BYTES;
        self.receiving.set(self.transport.buffered_size() + messages);
    }

    /// Returns whether the next item may be sent. One that is made of a block of `block_bytes` needs memory, which is
    /// reserved until the next [`Channel::count_memory`].
    pub fn may_send(&mut self, block_bytes: Option<usize>) -> bool {
        let Some(bytes) = block_bytes else {
            self.waiting = None;
            return true;
        };
        self.block = self.memory.charge_block(bytes);
        if self.block.is_some() {
            self.waiting = None;
        } else if self.waiting.is_none() {
            self.waiting = Some(self.memory.wait_to_send());
        }
        self.block.is_some()
    }

    /// Whether the next item waits for memory.
    pub fn is_waiting_to_send(&self) -> bool {
        self.waiting.is_some()
    }

    /// Calls `report` with the number of new bytes of a long incomplete message, if that is due. `report` returns
    /// whether the manager will get the number; otherwise the next report covers it.
    pub fn report_progress(&mut self, now: Duration, report: impl FnOnce(u64) -> bool) {
        let buffered = self.transport.buffered_size();
        if buffered < self.progress_bytes {
            self.progress_bytes = 0;
        }
        let fresh = buffered - self.progress_bytes;
        if fresh < PROGRESS_BYTES || now.saturating_sub(self.progress_reported) < PROGRESS_INTERVAL {
            return;
        }
        if report(fresh as u64) {
            (self.progress_bytes, self.progress_reported) = (buffered, now);
        }
    }
}

/// The size of an item of a `getdata`.
const INV_SIZE: usize = 36;

/// Returns the number of transactions that a `getdata` requests.
fn requested_txs(payload: &[u8]) -> usize {
    // The number of items is in front of them.
    let items = payload.get(payload.len() % INV_SIZE..).unwrap_or_default();
    let kind = |item: &[u8]| item.first_chunk().map(|kind| InvType(u32::from_le_bytes(*kind)));
    items.chunks_exact(INV_SIZE).filter_map(kind).filter(|kind| kind.is_gen_tx()).count()
}

/// Messages with a block or a part of one, which a peer sends when asked.
fn is_block(command: Command) -> bool {
    matches!(command, Command::BLOCK | Command::CMPCTBLOCK | Command::BLOCKTXN)
}

#[cfg(test)]
mod tests;
