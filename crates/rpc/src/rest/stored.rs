//! Bytes of stored blocks, sent while they are read: 1.5 MB in one piece would take three times the time
//! ([`lydian_serve::http::Pieces`]).
//!
//! Input: a part of a block. Output: its bytes, or their digits and the line's end of Core. Cost: two pieces in memory,
//! and for digits half of one more. The first piece is read before the answer begins, so that a file that is missing or
//! damaged is answered with Core's error.

use super::request::Format;
use lydian_engine::StoredBytes;
use lydian_primitives::push_hex;
use lydian_serve::http::{Filled, Pieces, Source};

/// Bytes of a piece. More do not stay in the caches of the processor beside the kernel's copy of them.
pub(super) const PIECE_SIZE: u32 = 64 << 10;

/// Memory that an answer takes while it is sent: two pieces, and the bytes of one in hexadecimal.
pub(super) const MEMORY: usize = PIECE_SIZE as usize * 5 / 2;

/// What follows the digits.
const END: &[u8] = b"\n";

/// A part of a block that is being sent.
#[derive(Debug)]
struct Stored {
    bytes: StoredBytes,
    /// Bytes that were read.
    read: u32,
    is_hex: bool,
    /// The bytes of the last digits.
    buffer: Vec<u8>,
}

/// The answer with these bytes, in binary or hexadecimal; `None` if they cannot be read.
pub(super) fn pieces(bytes: StoredBytes, format: Format) -> Option<Pieces> {
    let (is_hex, size) = (format == Format::Hex, u64::from(bytes.size()));
    let size = if is_hex { 2 * size + END.len() as u64 } else { size };
    let mut stored = Stored { bytes, read: 0, is_hex, buffer: Vec::new() };
    let mut first = Vec::new();
    let mut filled = stored.next(&mut first, false);
    if filled == Filled::WouldWait {
        stored.bytes.prefetch();
        filled = stored.next(&mut first, true);
    }
    (filled == Filled::Yes).then(|| Pieces { size, first, source: Box::new(stored) })
}

impl Source for Stored {
    fn next(&mut self, piece: &mut Vec<u8>, may_wait: bool) -> Filled {
        let left = self.bytes.size() - self.read;
        let size = left.min(if self.is_hex { PIECE_SIZE / 2 } else { PIECE_SIZE });
        let buffer = if self.is_hex { &mut self.buffer } else { &mut *piece };
        buffer.resize(size as usize, 0);
        if !self.bytes.read_cached(self.read, buffer) {
            if !may_wait {
                return Filled::WouldWait;
            }
            if self.bytes.read(self.read, buffer).is_err() {
                return Filled::Failed;
            }
        }
        self.read += size;
        if self.is_hex {
            piece.clear();
            piece.reserve(2 * self.buffer.len() + END.len());
            push_hex(piece, &self.buffer);
            if size == left {
                piece.extend_from_slice(END);
            }
        }
        Filled::Yes
    }
}
