//! The v2 transport (BIP-0324): key, garbage, terminator, version packet, then messages as encrypted packets.
//!
//! Input: bytes in chunks of any size. Output: messages; the handshake and packets to send. Invariants, those of Core's
//! `V2Transport`: a responder that receives the beginning of a v1 `version` of its network falls back to v1; garbage is
//! authenticated by the first packet, even a decoy; decoys and packets without a valid name are dropped; a packet that
//! is too large or not authentic ends the connection. Memory: at most twice the bytes received. Cost: one copy, and one
//! pass of ChaCha20 and Poly1305.

use super::cipher::{Cipher, HEADER_SIZE, Handshake, KEY_SIZE, LENGTH_SIZE, TAG_SIZE, TERMINATOR_SIZE, V2Secrets};
use super::v1::{append, growth};
use super::{Inbox, RejectedMessage, TransportError};
use crate::limits::{GARBAGE_SIZE_MAX, PACKET_CONTENTS_SIZE_MAX};
use crate::message::Command;

/// The bytes after the magic at the start of a v1 connection: the name of its first message.
const V1_VERSION: [u8; 12] = *b"version\0\0\0\0\0";
/// Number of bytes that distinguish v1 from v2.
const V1_PREFIX_SIZE: usize = 16;

#[derive(Debug)]
enum State {
    /// A responder that does not know yet which protocol the other side uses.
    MaybeV1,
    Key,
    Garbage(Cipher),
    /// Packets. The first one that is not a decoy carries the version and is not a message.
    Packets {
        cipher: Cipher,
        is_ready: bool,
    },
    /// A placeholder between two states; remains only after an error.
    Failed,
}

/// One side of a v2 connection.
#[derive(Debug)]
pub(super) struct V2 {
    magic: [u8; 4],
    is_initiator: bool,
    /// Present until the other side's key arrives.
    handshake: Option<Handshake>,
    garbage: Vec<u8>,
    state: State,
    /// Received bytes of the prefix, the key, the garbage, or the current packet (its length separately).
    buffer: Vec<u8>,
    /// Size of header, contents and tag of the packet being received.
    packet_size: Option<usize>,
    /// Authenticated by the next packet received: the garbage for the first packet, nothing afterwards.
    aad: Vec<u8>,
    has_received: bool,
}

/// The result of receiving.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// All bytes were processed.
    Done,
    /// The other side uses v1: all bytes so far must be passed to a v1 transport.
    SpeaksV1(Vec<u8>),
}

impl V2 {
    /// An initiator sends its key immediately, a responder when it knows that the other side uses v2.
    pub(super) fn new(magic: [u8; 4], is_initiator: bool, secrets: V2Secrets, out: &mut Vec<u8>) -> V2 {
        let (handshake, garbage) = secrets.into_handshake();
        let state = if is_initiator { State::Key } else { State::MaybeV1 };
        let v2 = V2 {
            magic,
            is_initiator,
            handshake: Some(handshake),
            garbage,
            state,
            buffer: Vec::new(),
            packet_size: None,
            aad: Vec::new(),
            has_received: false,
        };
        if is_initiator {
            v2.send_key(out);
        }
        v2
    }

    pub(super) fn buffered(&self) -> usize {
        self.buffer.capacity() + self.aad.capacity() + self.garbage.capacity()
    }

    /// The maximum of bytes that [`V2::receive`] adds to what is held, for `count` bytes received.
    pub(super) fn growth(&self, count: usize) -> usize {
        match (&self.state, self.packet_size) {
            (State::Packets { .. }, Some(size)) => count + growth(&self.buffer, count, size),
            // The buffer of the handshake grows by doubling.
            _ => count + 2 * (GARBAGE_SIZE_MAX + TERMINATOR_SIZE),
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.state, State::Packets { is_ready: true, .. })
    }

    /// Known once the version packet is authentic, which shows that both sides have the same keys.
    pub(super) fn session_id(&self) -> Option<[u8; 32]> {
        match &self.state {
            State::Packets { cipher, is_ready: true } => Some(cipher.session_id),
            _ => None,
        }
    }

    /// Whether the other side has sent nothing at all.
    pub(super) fn has_received_nothing(&self) -> bool {
        !self.has_received
    }

    fn send_key(&self, out: &mut Vec<u8>) {
        if let Some(handshake) = &self.handshake {
            out.extend_from_slice(&handshake.our_key());
            out.extend_from_slice(&self.garbage);
        }
    }

    /// Whether packets can be sent, because the other side's key has arrived.
    pub(super) fn can_send(&self) -> bool {
        matches!(self.state, State::Garbage(_) | State::Packets { .. })
    }

    /// Appends the packet of a message. Does nothing before [`V2::can_send`].
    pub(super) fn send(&mut self, command: Command, payload: &[u8], out: &mut Vec<u8>) {
        let (State::Garbage(cipher) | State::Packets { cipher, .. }) = &mut self.state else { return };
        match short_id(command) {
            Some(id) => cipher.encrypt(&[&[id], payload], &[], false, out),
            None => cipher.encrypt(&[&[0], &command.to_wire(), payload], &[], false, out),
        }
    }

    /// Appends a packet that the other side drops. Does nothing before [`V2::can_send`].
    pub(super) fn send_decoy(&mut self, contents: &[u8], out: &mut Vec<u8>) {
        if let State::Garbage(cipher) | State::Packets { cipher, .. } = &mut self.state {
            cipher.encrypt(&[contents], &[], true, out);
        }
    }

    pub(super) fn receive(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        inbox: &mut Inbox,
    ) -> Result<Progress, TransportError> {
        self.has_received |= !bytes.is_empty();
        while !bytes.is_empty() {
            let taken = match self.state {
                State::MaybeV1 => match self.receive_maybe_v1(bytes, out) {
                    Some(taken) => taken,
                    None => return Ok(Progress::SpeaksV1([&self.buffer, bytes].concat())),
                },
                State::Key => self.receive_key(bytes, out)?,
                State::Garbage(_) => self.receive_garbage(bytes)?,
                State::Packets { .. } => self.receive_packet(bytes, inbox)?,
                State::Failed => return Err(TransportError::Failed),
            };
            bytes = &bytes[taken..];
        }
        Ok(Progress::Done)
    }

    /// `None` means v1, with none of `bytes` consumed.
    fn receive_maybe_v1(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        let mut prefix = [0; V1_PREFIX_SIZE];
        prefix[..4].copy_from_slice(&self.magic);
        prefix[4..].copy_from_slice(&V1_VERSION);
        let count = bytes.len().min(V1_PREFIX_SIZE - self.buffer.len());
        let expected = &prefix[self.buffer.len()..self.buffer.len() + count];
        if bytes[..count] != *expected {
            self.state = State::Key;
            self.send_key(out);
            return Some(0);
        }
        if self.buffer.len() + count == V1_PREFIX_SIZE {
            return None;
        }
        self.buffer.extend_from_slice(&bytes[..count]);
        Some(count)
    }

    fn receive_key(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, TransportError> {
        let count = bytes.len().min(KEY_SIZE - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..count]);
        // The first v1 message of another network, which Core distinguishes from a key.
        if !self.is_initiator
            && let Some((magic, rest)) = self.buffer.split_first_chunk::<4>()
            && rest.starts_with(&V1_VERSION)
        {
            return Err(TransportError::V1WrongMagic { magic: *magic });
        }
        let Ok(theirs) = <[u8; KEY_SIZE]>::try_from(self.buffer.as_slice()) else { return Ok(count) };
        let Some(handshake) = self.handshake.take() else { return Err(TransportError::Failed) };
        let mut cipher = handshake.finish(theirs, self.is_initiator, self.magic);
        self.buffer = Vec::new();
        out.extend_from_slice(&cipher.send_terminator);
        cipher.encrypt(&[], &std::mem::take(&mut self.garbage), false, out);
        self.state = State::Garbage(cipher);
        Ok(count)
    }

    fn receive_garbage(&mut self, bytes: &[u8]) -> Result<usize, TransportError> {
        const SIZE_MAX: usize = GARBAGE_SIZE_MAX + TERMINATOR_SIZE;
        let State::Garbage(cipher) = &self.state else { return Err(TransportError::Failed) };
        let held = self.buffer.len();
        let count = bytes.len().min(SIZE_MAX - held);
        self.buffer.extend_from_slice(&bytes[..count]);
        let from = held.saturating_sub(TERMINATOR_SIZE - 1);
        let mut windows = self.buffer[from..].windows(TERMINATOR_SIZE);
        match windows.position(|window| *window == cipher.receive_terminator) {
            Some(at) => {
                let garbage_size = from + at;
                self.buffer.truncate(garbage_size);
                self.aad = std::mem::take(&mut self.buffer);
                if let State::Garbage(cipher) = std::mem::replace(&mut self.state, State::Failed) {
                    self.state = State::Packets { cipher, is_ready: false };
                }
                Ok(garbage_size + TERMINATOR_SIZE - held)
            }
            None if self.buffer.len() == SIZE_MAX => Err(TransportError::MissingGarbageTerminator),
            None => Ok(count),
        }
    }

    fn receive_packet(&mut self, bytes: &[u8], inbox: &mut Inbox) -> Result<usize, TransportError> {
        let State::Packets { cipher, is_ready } = &mut self.state else { return Err(TransportError::Failed) };
        let Some(size) = self.packet_size else {
            let count = bytes.len().min(LENGTH_SIZE - self.buffer.len());
            self.buffer.extend_from_slice(&bytes[..count]);
            if let Ok(length) = <[u8; LENGTH_SIZE]>::try_from(self.buffer.as_slice()) {
                let size = cipher.decrypt_length(length);
                if size > PACKET_CONTENTS_SIZE_MAX {
                    return Err(TransportError::PacketTooLarge { size });
                }
                self.buffer = Vec::new();
                self.packet_size = Some(HEADER_SIZE + size + TAG_SIZE);
            }
            return Ok(count);
        };
        let count = bytes.len().min(size - self.buffer.len());
        append(&mut self.buffer, &bytes[..count], size);
        if self.buffer.len() < size {
            return Ok(count);
        }
        let mut packet = std::mem::take(&mut self.buffer);
        self.packet_size = None;
        let aad = std::mem::take(&mut self.aad);
        let Ok(ignore) = cipher.decrypt(&mut packet, &aad) else {
            return Err(TransportError::PacketNotAuthentic { size: size - HEADER_SIZE - TAG_SIZE });
        };
        let raw_size = LENGTH_SIZE + size;
        match (ignore, *is_ready) {
            (true, _) => inbox.drop_packet(raw_size),
            (false, false) => *is_ready = true,
            (false, true) => {
                packet.truncate(size - TAG_SIZE);
                match name(&packet[HEADER_SIZE..]) {
                    Some((command, name_size)) => {
                        packet.drain(..HEADER_SIZE + name_size);
                        inbox.push(command, packet, raw_size);
                    }
                    None => {
                        let size = packet.len().saturating_sub(HEADER_SIZE);
                        inbox.reject(raw_size, RejectedMessage::InvalidContents { size });
                    }
                }
            }
        }
        Ok(count)
    }
}

/// The messages with a short id of one byte, in the order of ids from 1 on; 29 to 36 are unassigned.
const SHORT_IDS: [Option<Command>; 37] = [
    Some(Command::ADDR),
    Some(Command::BLOCK),
    Some(Command::BLOCKTXN),
    Some(Command::CMPCTBLOCK),
    Some(Command::FEEFILTER),
    Some(Command::FILTERADD),
    Some(Command::FILTERCLEAR),
    Some(Command::FILTERLOAD),
    Some(Command::GETBLOCKS),
    Some(Command::GETBLOCKTXN),
    Some(Command::GETDATA),
    Some(Command::GETHEADERS),
    Some(Command::HEADERS),
    Some(Command::INV),
    Some(Command::MEMPOOL),
    Some(Command::MERKLEBLOCK),
    Some(Command::NOTFOUND),
    Some(Command::PING),
    Some(Command::PONG),
    Some(Command::SENDCMPCT),
    Some(Command::TX),
    Some(Command::GETCFILTERS),
    Some(Command::CFILTER),
    Some(Command::GETCFHEADERS),
    Some(Command::CFHEADERS),
    Some(Command::GETCFCHECKPT),
    Some(Command::CFCHECKPT),
    Some(Command::ADDRV2),
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    Some(Command::FEATURE),
];

fn short_id(command: Command) -> Option<u8> {
    (1..).zip(SHORT_IDS).find(|(_, known)| *known == Some(command)).map(|(id, _)| id)
}

/// The name at the start of contents, and its size. Unassigned ids map to the empty name, which is unknown to every
/// node; Core counts them the same way.
fn name(contents: &[u8]) -> Option<(Command, usize)> {
    let (first, rest) = contents.split_first()?;
    if *first == 0 {
        return Command::from_wire_v2(*rest.first_chunk()?).map(|command| (command, 13));
    }
    let known = SHORT_IDS.get(usize::from(*first) - 1)?;
    Some((known.unwrap_or(Command::EMPTY), 1))
}
