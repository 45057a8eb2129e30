//! Transports, which convert messages to bytes and back: v1 and v2 (BIP-0324).
//!
//! Input: received bytes in chunks of any size, and messages to send. Output: received messages in order, and bytes to
//! send. Invariants: the result depends on the bytes alone and not on the chunks; after an error nothing more is
//! received; memory is at most a small multiple of the bytes received (and of the messages to send that wait for the
//! handshake). No socket, no clock, no randomness of its own. Which message is allowed when is not decided here, nor
//! how many may wait: the caller stops reading when enough do.

mod cipher;
mod v1;
mod v2;

pub use cipher::V2Secrets;
pub use v1::checksum;

use crate::message::{Command, Message};
use std::collections::VecDeque;
use std::fmt;
use v1::V1;
use v2::{Progress, V2};

/// The minimum size of a message on the wire in bytes: a v2 packet with a short id and no payload.
pub const FRAME_SIZE_MIN: usize = 21;

/// A received message with its payload still encoded ([`Message::decode_owned`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub command: Command,
    pub payload: Vec<u8>,
    /// Bytes on the wire, including framing.
    pub raw_size: usize,
}

/// A message in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed {
    pub command: Command,
    /// Bytes on the wire, including framing.
    pub size: usize,
    /// The message is sent when this number of output bytes has been sent, counted from the start of the connection.
    pub end: u64,
}

/// The transport protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// Not known yet.
    Detecting,
    V1,
    V2,
}

impl fmt::Display for TransportKind {
    /// The name used by `getpeerinfo`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransportKind::Detecting => "detecting",
            TransportKind::V1 => "v1",
            TransportKind::V2 => "v2",
        })
    }
}

/// Number of dropped messages kept for the log until they are taken.
const REJECTED_KEPT_MAX: usize = 16;

/// Why a connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// v1: the magic is that of another network, or the bytes are not messages.
    WrongMagic { magic: [u8; 4] },
    /// v1: the payload is larger than any message's.
    MessageTooLarge { size: usize, command: Option<Command> },
    /// A v1 peer of another network connected to a v2 responder.
    V1WrongMagic { magic: [u8; 4] },
    /// v2: the maximum of garbage was received without a terminator.
    MissingGarbageTerminator,
    /// v2: the contents are larger than any message's.
    PacketTooLarge { size: usize },
    /// v2: the packet was modified in transit, or the keys differ.
    PacketNotAuthentic { size: usize },
    /// The transport failed earlier.
    Failed,
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = lydian_primitives::to_hex;
        match self {
            TransportError::WrongMagic { magic } => {
                write!(f, "Header error: Wrong MessageStart {} received", hex(magic))
            }
            TransportError::MessageTooLarge { size, command } => {
                let name = command.as_ref().map_or("", Command::as_str);
                write!(f, "Header error: Size too large ({name}, {size} bytes)")
            }
            TransportError::V1WrongMagic { magic } => {
                write!(f, "V2 transport error: V1 peer with wrong MessageStart {}", hex(magic))
            }
            TransportError::MissingGarbageTerminator => f.write_str("V2 transport error: missing garbage terminator"),
            TransportError::PacketTooLarge { size } => write!(f, "V2 transport error: packet too large ({size} bytes)"),
            TransportError::PacketNotAuthentic { size } => {
                write!(f, "V2 transport error: packet decryption failure ({size} bytes)")
            }
            TransportError::Failed => f.write_str("the transport has already failed"),
        }
    }
}

impl std::error::Error for TransportError {}

/// Received messages that are not yet taken.
#[derive(Debug, Default)]
struct Inbox {
    messages: VecDeque<Received>,
    /// Bytes of these messages on the wire.
    bytes: usize,
    rejected_bytes: u64,
    dropped: Dropped,
    /// Messages rejected since the owner last took them.
    rejected: Vec<RejectedMessage>,
}

/// Messages and packets that were dropped so far: those rejected, and decoys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    pub count: u64,
    pub bytes: u64,
}

/// A message that was dropped without ending the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectedMessage {
    /// v1: the payload does not match the checksum in the header.
    WrongChecksum { command: Command, size: usize, expected: [u8; 4], found: [u8; 4] },
    /// v1: the message name is invalid.
    InvalidType { size: usize },
    /// v2: the message name is invalid or missing.
    InvalidContents { size: usize },
}

impl Inbox {
    fn push(&mut self, command: Command, payload: Vec<u8>, raw_size: usize) {
        self.bytes += raw_size;
        self.messages.push_back(Received { command, payload, raw_size });
    }

    fn reject(&mut self, raw_size: usize, what: RejectedMessage) {
        self.rejected_bytes += raw_size as u64;
        self.drop_packet(raw_size);
        if self.rejected.len() < REJECTED_KEPT_MAX {
            self.rejected.push(what);
        }
    }

    fn drop_packet(&mut self, raw_size: usize) {
        self.dropped.count += 1;
        self.dropped.bytes += raw_size as u64;
    }
}

#[derive(Debug)]
enum Protocol {
    V1(V1),
    V2(Box<V2>),
}

/// One side of a connection.
#[derive(Debug)]
pub struct Transport {
    magic: [u8; 4],
    is_initiator: bool,
    protocol: Protocol,
    inbox: Inbox,
    output: Vec<u8>,
    /// Bytes of output already taken.
    taken_bytes: u64,
    /// Messages to send that wait for the other side's key.
    waiting: Vec<(Command, Vec<u8>)>,
    /// Messages in the output.
    framed: Vec<Framed>,
    failed: bool,
}

impl Transport {
    /// Uses v1 and expects v1.
    pub fn v1(magic: [u8; 4]) -> Transport {
        Transport::new(magic, false, |_| Protocol::V1(V1::new(magic)))
    }

    /// Uses v2, for an outgoing connection.
    pub fn v2_initiator(magic: [u8; 4], secrets: V2Secrets) -> Transport {
        Transport::new(magic, true, |out| Protocol::V2(Box::new(V2::new(magic, true, secrets, out))))
    }

    /// Uses the protocol that the other side starts with, for an incoming connection.
    pub fn v2_responder(magic: [u8; 4], secrets: V2Secrets) -> Transport {
        Transport::new(magic, false, |out| Protocol::V2(Box::new(V2::new(magic, false, secrets, out))))
    }

    fn new(magic: [u8; 4], is_initiator: bool, protocol: impl FnOnce(&mut Vec<u8>) -> Protocol) -> Transport {
        let mut output = Vec::new();
        let protocol = protocol(&mut output);
        let (inbox, waiting, framed) = (Inbox::default(), Vec::new(), Vec::new());
        Transport { magic, is_initiator, protocol, inbox, output, taken_bytes: 0, waiting, framed, failed: false }
    }

    /// Processes received bytes. An error ends the connection; messages completed before it can still be taken.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        if self.failed {
            return Err(TransportError::Failed);
        }
        let result = self.receive_inner(bytes);
        self.failed = result.is_err();
        result
    }

    fn receive_inner(&mut self, bytes: &[u8]) -> Result<(), TransportError> {
        let progress = match &mut self.protocol {
            Protocol::V1(v1) => return v1.receive(bytes, &mut self.inbox),
            Protocol::V2(v2) => v2.receive(bytes, &mut self.output, &mut self.inbox)?,
        };
        if let Progress::SpeaksV1(all) = progress {
            let mut v1 = V1::new(self.magic);
            let result = v1.receive(&all, &mut self.inbox);
            self.protocol = Protocol::V1(v1);
            self.send_waiting();
            return result;
        }
        self.send_waiting();
        Ok(())
    }

    /// The command of the next received message.
    pub fn next_command(&self) -> Option<Command> {
        self.inbox.messages.front().map(|message| message.command)
    }

    /// Takes the next received message.
    pub fn next_message(&mut self) -> Option<Received> {
        let message = self.inbox.messages.pop_front()?;
        self.inbox.bytes -= message.raw_size;
        Some(message)
    }

    /// The number of received messages not yet taken.
    pub fn message_count(&self) -> usize {
        self.inbox.messages.len()
    }

    /// Bytes of these messages on the wire. Core stops reading from a peer when they exceed `-maxreceivebuffer`.
    pub fn message_bytes(&self) -> usize {
        self.inbox.bytes
    }

    /// Bytes of messages dropped because of their checksum or their name.
    pub fn rejected_bytes(&self) -> u64 {
        self.inbox.rejected_bytes
    }

    /// Everything that cost time to receive and was dropped.
    pub fn dropped(&self) -> Dropped {
        self.inbox.dropped
    }

    /// Takes the messages dropped since the last call, for the log. If there are many, only the first ones.
    pub fn take_rejected(&mut self) -> Vec<RejectedMessage> {
        std::mem::take(&mut self.inbox.rejected)
    }

    /// Frames a message. Until the other side's key arrives, or it is known to use v1, the message waits.
    pub fn send(&mut self, command: Command, payload: &[u8]) {
        let before = self.output.len();
        match &mut self.protocol {
            Protocol::V1(_) => v1::frame(self.magic, command, payload, checksum(payload), &mut self.output),
            Protocol::V2(v2) if v2.can_send() => v2.send(command, payload, &mut self.output),
            Protocol::V2(_) => return self.waiting.push((command, payload.to_vec())),
        }
        self.note_framed(command, before);
    }

    fn note_framed(&mut self, command: Command, before: usize) {
        let end = self.taken_bytes + self.output.len() as u64;
        self.framed.push(Framed { command, size: self.output.len() - before, end });
    }

    /// Takes the list of messages in the output that is taken next, for counting sent messages.
    pub fn take_framed(&mut self) -> Vec<Framed> {
        std::mem::take(&mut self.framed)
    }

    /// Like [`Transport::send`], for a payload whose v1 checksum is known, such as a stored block.
    pub fn send_with_checksum(&mut self, command: Command, payload: &[u8], checksum: [u8; 4]) {
        match &self.protocol {
            Protocol::V1(_) => {
                let before = self.output.len();
                v1::frame(self.magic, command, payload, checksum, &mut self.output);
                self.note_framed(command, before);
            }
            Protocol::V2(_) => self.send(command, payload),
        }
    }

    /// Like [`Transport::send`], for a typed message.
    pub fn send_message(&mut self, message: &Message) {
        self.send(message.command(), &message.payload());
    }

    /// v2: sends a packet that the other side drops, to hide the sizes of messages. Does nothing until packets can be
    /// sent, and nothing in v1.
    pub fn send_decoy(&mut self, contents: &[u8]) {
        if let Protocol::V2(v2) = &mut self.protocol {
            v2.send_decoy(contents, &mut self.output);
        }
    }

    fn send_waiting(&mut self) {
        let can_send = match &self.protocol {
            Protocol::V1(_) => true,
            Protocol::V2(v2) => v2.can_send(),
        };
        if can_send {
            for (command, payload) in std::mem::take(&mut self.waiting) {
                self.send(command, &payload);
            }
        }
    }

    /// Takes the bytes to send since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.taken_bytes += self.output.len() as u64;
        self.framed.clear();
        std::mem::take(&mut self.output)
    }

    /// Number of bytes that wait to be taken.
    pub fn output_size(&self) -> usize {
        self.output.len()
    }

    /// Bytes of memory used by the incomplete message (without complete messages and the output).
    pub fn buffered_size(&self) -> usize {
        match &self.protocol {
            Protocol::V1(v1) => v1.buffered(),
            Protocol::V2(v2) => v2.buffered(),
        }
    }

    /// The maximum of bytes by which [`Transport::receive`] of `count` bytes increases what is held for received
    /// messages, [`Transport::buffered_size`] and [`Transport::message_bytes`] together.
    pub fn growth(&self, count: usize) -> usize {
        match &self.protocol {
            Protocol::V1(v1) => v1.growth(count),
            Protocol::V2(v2) => v2.growth(count),
        }
    }

    pub fn kind(&self) -> TransportKind {
        match &self.protocol {
            Protocol::V1(_) => TransportKind::V1,
            Protocol::V2(v2) if v2.is_ready() => TransportKind::V2,
            Protocol::V2(_) => TransportKind::Detecting,
        }
    }

    /// The id of a v2 session: equal on both sides unless a man in the middle terminates the encryption.
    pub fn session_id(&self) -> Option<[u8; 32]> {
        match &self.protocol {
            Protocol::V1(_) => None,
            Protocol::V2(v2) => v2.session_id(),
        }
    }

    /// After the connection was closed: whether to retry with v1, because the other side closed it without sending a
    /// byte after at least the size of a v1 header was sent to it (Core's `ShouldReconnectV1`).
    pub fn should_reconnect_v1(&self) -> bool {
        let sent_header = self.taken_bytes >= v1::HEADER_SIZE as u64;
        matches!(&self.protocol, Protocol::V2(v2) if self.is_initiator && sent_header && v2.has_received_nothing())
    }
}

#[cfg(test)]
mod tests;
