//! Bytes that wait for the socket of one peer, in pieces.
//!
//! Input: framed messages. Output: the next bytes to write. The memory of a piece is freed when the socket has taken
//! all of it: small messages share a piece of at most [`PIECE_BYTES`], and a large message, such as a block, is a piece
//! of its own. So the memory exceeds the waiting bytes by at most one piece, plus the part of the first one that is
//! already written.

use std::collections::VecDeque;

/// Maximum bytes of a piece with several messages.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

#[derive(Debug, Default)]
pub(crate) struct Output {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes of the first piece that the socket has taken.
    taken: usize,
    /// Bytes that wait.
    len: usize,
    capacity: usize,
}

impl Output {
    /// The number of bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Memory that is held, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.capacity
    }

    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        self.len += bytes.len();
        if bytes.len() >= PIECE_BYTES {
            self.capacity += bytes.capacity();
            return self.pieces.push_back(bytes);
        }
        let has_room = self.pieces.back().is_some_and(|last| last.len() + bytes.len() <= PIECE_BYTES);
        if !has_room {
            self.pieces.push_back(Vec::new());
        }
        if let Some(last) = self.pieces.back_mut() {
            self.capacity -= last.capacity();
            last.extend_from_slice(&bytes);
            self.capacity += last.capacity();
        }
    }

    /// The next bytes to write; empty if none wait.
    pub(crate) fn next(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |first| &first[self.taken..])
    }

    /// Removes bytes that the socket has taken from the front of [`Output::next`]. Returns whether memory was freed.
    pub(crate) fn advance(&mut self, count: usize) -> bool {
        self.taken += count;
        self.len -= count;
        let is_done = self.pieces.front().is_some_and(|first| self.taken >= first.len());
        if is_done && let Some(first) = self.pieces.pop_front() {
            self.taken = 0;
            self.capacity -= first.capacity();
        }
        is_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes come out in order, whatever their pieces, and memory is freed piece by piece.
    #[test]
    fn bytes_leave_in_order_and_memory_with_them() {
        let mut output = Output::default();
        let (mut expected, mut written, mut number) = (Vec::new(), Vec::new(), 0_u8);
        for size in [0, 1, 30, PIECE_BYTES - 31, 1, PIECE_BYTES - 1, PIECE_BYTES, 10, 3 * PIECE_BYTES, 5] {
            number += 1;
            expected.extend(vec![number; size]);
            output.push(vec![number; size]);
            assert_eq!(output.len(), expected.len());
            assert!(output.memory_bytes() <= output.len() + PIECE_BYTES);
        }
        while !output.is_empty() {
            let count = output.next().len().min(10_000);
            assert!(count > 0);
            written.extend_from_slice(&output.next()[..count]);
            let is_end = count == output.next().len();
            assert_eq!(output.advance(count), is_end);
            let piece = output.pieces.front().map_or(0, Vec::len);
            assert!(output.memory_bytes() <= output.len() + PIECE_BYTES + piece);
        }
        assert!(written == expected && output.memory_bytes() == 0 && output.next().is_empty());
    }

    /// Regression test: written bytes were kept until there was a megabyte of them, and the buffer grew by doubling, so
    /// that a peer that read nothing more held twice the send buffer.
    #[test]
    fn what_is_written_is_not_kept() {
        let mut output = Output::default();
        for _ in 0..1_000 {
            output.push(vec![1; 2_000]);
            if output.len() > 1_000_000 {
                let count = output.next().len();
                output.advance(count);
            }
            assert!(output.memory_bytes() <= output.len() + PIECE_BYTES, "{}", output.memory_bytes());
        }
    }
}
