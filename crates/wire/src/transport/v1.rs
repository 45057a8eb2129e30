//! The v1 transport: 24 bytes of header (magic, command, size, checksum), then the payload.
//!
//! Input: bytes in chunks of any size. Output: messages; frames. Invariants: a wrong magic or a size above the limit
//! ends the connection, a wrong checksum or an unprintable command drops only that message, as in Core's `V1Transport`.
//! Memory: at most twice the bytes received, and never more than the declared size. Cost: one copy and one double
//! SHA-256 of the payload.

use super::{Inbox, RejectedMessage, TransportError};
use crate::limits::MESSAGE_SIZE_MAX;
use crate::message::Command;
use lydian_hash::sha256d;

pub(super) const HEADER_SIZE: usize = 24;

/// The receiving side of v1; sending needs no state.
#[derive(Debug)]
pub(super) struct V1 {
    magic: [u8; 4],
    header: [u8; HEADER_SIZE],
    header_filled: usize,
    payload: Vec<u8>,
}

impl V1 {
    pub(super) fn new(magic: [u8; 4]) -> V1 {
        V1 { magic, header: [0; HEADER_SIZE], header_filled: 0, payload: Vec::new() }
    }

    pub(super) fn buffered(&self) -> usize {
        self.header_filled + self.payload.capacity()
    }

    /// The maximum of bytes that [`V1::receive`] adds to what is held, for `count` bytes received.
    pub(super) fn growth(&self, count: usize) -> usize {
        let is_started = self.header_filled == HEADER_SIZE;
        count + if is_started { growth(&self.payload, count, self.payload_size()) } else { 0 }
    }

    pub(super) fn receive(&mut self, mut bytes: &[u8], inbox: &mut Inbox) -> Result<(), TransportError> {
        while !bytes.is_empty() {
            if self.header_filled < HEADER_SIZE {
                let count = bytes.len().min(HEADER_SIZE - self.header_filled);
                self.header[self.header_filled..self.header_filled + count].copy_from_slice(&bytes[..count]);
                self.header_filled += count;
                bytes = &bytes[count..];
                if self.header_filled < HEADER_SIZE {
                    break;
                }
                self.check_header()?;
            }
            let size = self.payload_size();
            let count = bytes.len().min(size - self.payload.len());
            append(&mut self.payload, &bytes[..count], size);
            bytes = &bytes[count..];
            if self.payload.len() == size {
                self.finish(inbox);
            }
        }
        Ok(())
    }

    fn payload_size(&self) -> usize {
        let [.., a, b, c, d, _, _, _, _] = self.header;
        usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX)
    }

    fn check_header(&self) -> Result<(), TransportError> {
        let [a, b, c, d, ..] = self.header;
        if [a, b, c, d] != self.magic {
            return Err(TransportError::WrongMagic { magic: [a, b, c, d] });
        }
        match self.payload_size() {
            size if size > MESSAGE_SIZE_MAX => {
                let [_, _, _, _, name @ .., _, _, _, _, _, _, _, _] = self.header;
                Err(TransportError::MessageTooLarge { size, command: Command::from_wire(name) })
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, inbox: &mut Inbox) {
        let payload = std::mem::take(&mut self.payload);
        self.header_filled = 0;
        let raw_size = HEADER_SIZE + payload.len();
        let [_, _, _, _, name @ .., _, _, _, _, a, b, c, d] = self.header;
        match Command::from_wire(name) {
            Some(command) if checksum(&payload) == [a, b, c, d] => inbox.push(command, payload, raw_size),
            Some(command) => {
                let (size, expected, found) = (payload.len(), checksum(&payload), [a, b, c, d]);
                inbox.reject(raw_size, RejectedMessage::WrongChecksum { command, size, expected, found });
            }
            None => inbox.reject(raw_size, RejectedMessage::InvalidType { size: payload.len() }),
        }
    }
}

/// Appends to a buffer with a final size of `size` bytes. The buffer grows by doubling, but not beyond `size`.
pub(super) fn append(buffer: &mut Vec<u8>, bytes: &[u8], size: usize) {
    let growth = growth(buffer, bytes.len(), size);
    if growth > 0 {
        buffer.reserve_exact(buffer.capacity() + growth - buffer.len());
    }
    buffer.extend_from_slice(bytes);
}

/// How much [`append`] enlarges the buffer for `count` bytes, of which only those up to `size` are appended.
pub(super) fn growth(buffer: &Vec<u8>, count: usize, size: usize) -> usize {
    let (needed, capacity) = (size.min(buffer.len() + count), buffer.capacity());
    if needed > capacity { needed.max(capacity.saturating_mul(2)).min(size) - capacity } else { 0 }
}

/// The first bytes of the payload's double SHA-256.
pub fn checksum(payload: &[u8]) -> [u8; 4] {
    let [a, b, c, d, ..] = sha256d(payload);
    [a, b, c, d]
}

/// Appends the frame of a message. A payload above the limit is a bug of the caller: every peer would disconnect.
pub(super) fn frame(magic: [u8; 4], command: Command, payload: &[u8], checksum: [u8; 4], out: &mut Vec<u8>) {
    let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.reserve(HEADER_SIZE + payload.len());
    out.extend_from_slice(&magic);
    out.extend_from_slice(&command.to_wire());
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(&checksum);
    out.extend_from_slice(payload);
}
