//! Transports: how messages become bytes and bytes messages, v1 and v2 (BIP-0324).
//!
//! Input: bytes received, in any cuts, and messages to send. Output: messages received, in their order, and bytes to send. Invariants: what is received
//! depends on the bytes alone and not on their cuts; after an error nothing more is received; memory is at most a small multiple of the bytes received
//! (and of the messages to send that wait for the handshake). No socket, no clock, no randomness of its own. Which message may come when is not decided
//! here, nor how many wait: who feeds it stops reading when enough do.

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

/// A message as received: its payload is not read yet ([`Message::decode_owned`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    pub command: Command,
    pub payload: Vec<u8>,
    /// Bytes it took on the wire, framing included.
    pub raw_size: usize,
}

/// A message that stands in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed {
    pub command: Command,
    /// Bytes it takes on the wire, framing included.
    pub size: usize,
    /// It has gone out when so many bytes of the output have, from the first of the connection.
    pub end: u64,
}

/// What the two sides speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportKind {
    /// Not known yet.
    Detecting,
    V1,
    V2,
}

impl fmt::Display for TransportKind {
    /// As `getpeerinfo` names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TransportKind::Detecting => "detecting",
            TransportKind::V1 => "v1",
            TransportKind::V2 => "v2",
        })
    }
}

/// Messages dropped that are kept for the log until they are taken.
const REJECTED_KEPT_MAX: usize = 16;

/// Why a connection must be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// v1: the magic is another network's, or these are no messages.
    WrongMagic { magic: [u8; 4] },
    /// v1: a payload that no message has.
    MessageTooLarge { size: usize, command: Option<Command> },
    /// A v1 peer of another network connected to a v2 responder.
    V1WrongMagic { magic: [u8; 4] },
    /// v2: all the garbage that may come has come.
    MissingGarbageTerminator,
    /// v2: contents that no message has.
    PacketTooLarge { size: usize },
    /// v2: the packet was changed on the way, or the keys differ.
    PacketNotAuthentic { size: usize },
    /// It had failed before.
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
            TransportError::Failed => f.write_str("the transport had failed before"),
        }
    }
}

impl std::error::Error for TransportError {}

/// Messages received and not yet taken.
#[derive(Debug, Default)]
struct Inbox {
    messages: VecDeque<Received>,
    /// Bytes on the wire of those messages.
    bytes: usize,
    rejected_bytes: u64,
    /// Since the owner took them last.
    rejected: Vec<RejectedMessage>,
}

/// A message that was dropped alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectedMessage {
    /// v1: the payload is not what the header says.
    WrongChecksum { command: Command, size: usize, expected: [u8; 4], found: [u8; 4] },
    /// v1: the name of the message cannot be one.
    InvalidType { size: usize },
    /// v2: the same.
    InvalidContents { size: usize },
}

impl Inbox {
    fn push(&mut self, command: Command, payload: Vec<u8>, raw_size: usize) {
        self.bytes += raw_size;
        self.messages.push_back(Received { command, payload, raw_size });
    }

    fn reject(&mut self, raw_size: usize, what: RejectedMessage) {
        self.rejected_bytes += raw_size as u64;
        if self.rejected.len() < REJECTED_KEPT_MAX {
            self.rejected.push(what);
        }
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
    /// Bytes taken to be sent.
    taken_bytes: u64,
    /// Messages to send that wait for the other side's key.
    waiting: Vec<(Command, Vec<u8>)>,
    /// Messages in the output.
    framed: Vec<Framed>,
    failed: bool,
}

impl Transport {
    /// Speaks v1 and expects v1.
    pub fn v1(magic: [u8; 4]) -> Transport {
        Transport::new(magic, false, |_| Protocol::V1(V1::new(magic)))
    }

    /// Speaks v2 to whom it connected to.
    pub fn v2_initiator(magic: [u8; 4], secrets: V2Secrets) -> Transport {
        Transport::new(magic, true, |out| Protocol::V2(Box::new(V2::new(magic, true, secrets, out))))
    }

    /// Speaks what the other side, which connected, begins with.
    pub fn v2_responder(magic: [u8; 4], secrets: V2Secrets) -> Transport {
        Transport::new(magic, false, |out| Protocol::V2(Box::new(V2::new(magic, false, secrets, out))))
    }

    fn new(magic: [u8; 4], is_initiator: bool, protocol: impl FnOnce(&mut Vec<u8>) -> Protocol) -> Transport {
        let mut output = Vec::new();
        let protocol = protocol(&mut output);
        let (inbox, waiting, framed) = (Inbox::default(), Vec::new(), Vec::new());
        Transport { magic, is_initiator, protocol, inbox, output, taken_bytes: 0, waiting, framed, failed: false }
    }

    /// Takes bytes. An error ends the connection; messages that were complete before it can still be taken.
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

    /// The next message received.
    pub fn next_message(&mut self) -> Option<Received> {
        let message = self.inbox.messages.pop_front()?;
        self.inbox.bytes -= message.raw_size;
        Some(message)
    }

    /// Messages received and not yet taken.
    pub fn message_count(&self) -> usize {
        self.inbox.messages.len()
    }

    /// Their bytes on the wire. Core stops reading from a peer above `-maxreceivebuffer` of them.
    pub fn message_bytes(&self) -> usize {
        self.inbox.bytes
    }

    /// Bytes of messages that were dropped for their checksum or their name.
    pub fn rejected_bytes(&self) -> u64 {
        self.inbox.rejected_bytes
    }

    /// The messages that were dropped since the last call, for the log; the first of them if there are many.
    pub fn take_rejected(&mut self) -> Vec<RejectedMessage> {
        std::mem::take(&mut self.inbox.rejected)
    }

    /// Frames a message. Before the other side's key is here, and while it is not known whether it speaks v1, the message waits.
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

    /// The messages that stand in the output which is taken next, for who counts what goes out.
    pub fn take_framed(&mut self) -> Vec<Framed> {
        std::mem::take(&mut self.framed)
    }

    /// As [`Transport::send`] of a payload whose v1 checksum is known, such as a stored block.
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

    /// As [`Transport::send`] of a typed message.
    pub fn send_message(&mut self, message: &Message) {
        self.send(message.command(), &message.payload());
    }

    /// v2: sends a packet that the other side drops, so that sizes tell less; nothing while packets cannot be sent, and nothing in v1.
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

    /// The bytes to send since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.taken_bytes += self.output.len() as u64;
        self.framed.clear();
        std::mem::take(&mut self.output)
    }

    /// Bytes that wait to be taken.
    pub fn output_size(&self) -> usize {
        self.output.len()
    }

    /// Bytes of memory that the message on its way takes (not those that are complete, nor the output).
    pub fn buffered_size(&self) -> usize {
        match &self.protocol {
            Protocol::V1(v1) => v1.buffered(),
            Protocol::V2(v2) => v2.buffered(),
        }
    }

    pub fn kind(&self) -> TransportKind {
        match &self.protocol {
            Protocol::V1(_) => TransportKind::V1,
            Protocol::V2(v2) if v2.is_ready() => TransportKind::V2,
            Protocol::V2(_) => TransportKind::Detecting,
        }
    }

    /// The id of a v2 session, equal on both sides and for nobody between them.
    pub fn session_id(&self) -> Option<[u8; 32]> {
        match &self.protocol {
            Protocol::V1(_) => None,
            Protocol::V2(v2) => v2.session_id(),
        }
    }

    /// After the connection was closed: whether to try again with v1, since the other side closed it without a byte after having been sent as many as a v1
    /// header has (Core's `ShouldReconnectV1`).
    pub fn should_reconnect_v1(&self) -> bool {
        let sent_header = self.taken_bytes >= v1::HEADER_SIZE as u64;
        matches!(&self.protocol, Protocol::V2(v2) if self.is_initiator && sent_header && v2.has_received_nothing())
    }
}

#[cfg(test)]
mod tests;
