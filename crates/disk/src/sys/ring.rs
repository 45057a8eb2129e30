//! Reads through io_uring. Input: a file and requests; output: filled buffers, or the number of a request that failed and why.
//!
//! Cost: one system call for as many reads as fit into the ring. Invariant: `fill_many` returns only when the kernel has given back every
//! buffer it was lent, whatever fails; between the first request and the last answer nothing may panic or return early.

use crate::ReadRequest;
use crate::limits::RING_DEPTH;
use crate::many::Failure;
use io_uring::{IoUring, Probe, opcode, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;

/// Most bytes of one request; a longer one is answered in pieces, as one that the system cuts short. Small in tests, which so see pieces.
const PIECE_SIZE_MAX: usize = if cfg!(test) { 1000 } else { 1 << 30 };

/// A ring that nobody else uses.
pub(crate) struct Ring(IoUring);

/// The kernel takes no more requests; the ring is of no use, the buffers hold anything.
pub(crate) struct Broken;

/// What is known of a batch while it is under way.
struct Batch<'a, 'b> {
    reads: &'a mut [ReadRequest<'b>],
    /// Bytes that each request has already.
    filled: Vec<usize>,
    /// The first request that was never issued.
    next: usize,
    /// Requests to be issued again for what is missing.
    again: Vec<usize>,
    failure: Option<(usize, Failure)>,
}

impl Ring {
    /// Makes a ring, and sends one request through it that does nothing.
    pub(crate) fn new() -> io::Result<Ring> {
        let mut ring = IoUring::new(u32::try_from(RING_DEPTH).unwrap_or(u32::MAX))?;
        let mut probe = Probe::new();
        ring.submitter().register_probe(&mut probe)?;
        if !probe.is_supported(opcode::Read::CODE) {
            return Err(io::Error::from(io::ErrorKind::Unsupported));
        }
        // SAFETY: the request has no buffer.
        let pushed = unsafe { ring.submission().push(&opcode::Nop::new().build()) };
        pushed.map_err(io::Error::other)?;
        ring.submit_and_wait(1)?;
        let answer = ring.completion().next().map(|entry| entry.result());
        if answer == Some(0) { Ok(Ring(ring)) } else { Err(io::Error::from(io::ErrorKind::Unsupported)) }
    }

    /// Fills every buffer, or tells of one that could not be filled.
    pub(crate) fn fill_many(
        &mut self,
        file: &File,
        reads: &mut [ReadRequest<'_>],
    ) -> Result<Result<(), (usize, Failure)>, Broken> {
        let count = reads.len();
        let mut batch =
            Batch { reads, filled: vec![0; count], next: 0, again: Vec::with_capacity(RING_DEPTH), failure: None };
        let mut lent = 0;
        loop {
            lent += self.issue(file, &mut batch, RING_DEPTH.saturating_sub(lent));
            if lent == 0 {
                return Ok(batch.failure.map_or(Ok(()), Err));
            }
            // With more to come, half of the ring is kept busy while the answers are looked at.
            let wanted = if batch.next < count { lent.div_ceil(2) } else { lent };
            let submitted = self.0.submit_and_wait(wanted);
            lent = lent.saturating_sub(self.reap(&mut batch));
            if let Err(error) = submitted
                && error.kind() != io::ErrorKind::Interrupted
            {
                self.take_back(&mut batch, lent);
                return Err(Broken);
            }
        }
    }

    /// Puts requests into the ring; gives their number.
    fn issue(&mut self, file: &File, batch: &mut Batch<'_, '_>, room: usize) -> usize {
        let mut queue = self.0.submission();
        let mut count = 0;
        while count < room
            && let Some(index) = batch.take()
            && let (Some(read), Some(&filled)) = (batch.reads.get_mut(index), batch.filled.get(index))
            && let Some(rest) = read.buffer.get_mut(filled..)
        {
            let size = u32::try_from(rest.len().min(PIECE_SIZE_MAX)).unwrap_or(0);
            let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), rest.as_mut_ptr(), size)
                .offset(read.offset.saturating_add(filled as u64))
                .build()
                .user_data(index as u64);
            // SAFETY: the pointer is valid for writes of `size` bytes: it and `size` come from a slice borrowed by the batch. The slice is not
            // touched until its answer came, and `fill_many` and `take_back` do not let the borrow of the batch, nor that of the file whose
            // descriptor this is, end before the answers to all requests that the kernel took.
            if unsafe { queue.push(&entry) }.is_err() {
                batch.again.push(index);
                break;
            }
            count += 1;
        }
        count
    }

    /// Looks at the answers that are there; gives their number.
    fn reap(&mut self, batch: &mut Batch<'_, '_>) -> usize {
        let mut count = 0;
        for entry in self.0.completion() {
            batch.answer(usize::try_from(entry.user_data()).unwrap_or(usize::MAX), entry.result());
            count += 1;
        }
        count
    }

    /// Waits for the answers to all requests that the kernel has, without giving it more.
    fn take_back(&mut self, batch: &mut Batch<'_, '_>, lent: usize) {
        // What the kernel has not taken it cannot take any more: it looks into the ring only in calls that are not made again.
        let mut lent = lent.saturating_sub(self.0.submission().len());
        while lent > 0 {
            // The answers come with the return from any system call.
            thread::yield_now();
            lent = lent.saturating_sub(self.reap(batch));
        }
    }
}

impl Batch<'_, '_> {
    /// The next request to be issued; none once one has failed.
    fn take(&mut self) -> Option<usize> {
        if self.failure.is_some() {
            return None;
        }
        if let Some(index) = self.again.pop() {
            return Some(index);
        }
        while self.reads.get(self.next).is_some_and(|read| read.buffer.is_empty()) {
            self.next += 1;
        }
        let index = self.next;
        (index < self.reads.len()).then(|| self.next += 1).map(|()| index)
    }

    /// Takes an answer of the kernel: a number of bytes, or an error below zero.
    fn answer(&mut self, index: usize, result: i32) {
        let (Some(read), Some(filled)) = (self.reads.get(index), self.filled.get_mut(index)) else { return };
        let missing = read.buffer.len().saturating_sub(*filled);
        match usize::try_from(result) {
            Ok(0) => self.failure = Some((index, Failure::Ended { missing: missing as u64 })),
            Ok(count) => {
                *filled = filled.saturating_add(count);
                if count < missing {
                    self.again.push(index);
                }
            }
            Err(_) if matches!(result.saturating_neg(), libc::EINTR | libc::EAGAIN) => self.again.push(index),
            Err(_) => {
                let error = io::Error::from_raw_os_error(result.saturating_neg());
                self.failure = Some((index, Failure::System(error)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::many::fill;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the one large file that a unit test surely has is its own program")]
    fn short_answers_are_asked_for_the_rest() {
        let Ok(mut ring) = Ring::new() else {
            assert!(!crate::ReadWay::available().contains(&crate::ReadWay::Ring));
            return;
        };
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let sizes = [0, 1, PIECE_SIZE_MAX, PIECE_SIZE_MAX + 1, 0, 50 * PIECE_SIZE_MAX + 7];
        let spans: Vec<(u64, usize)> =
            (0..3 * RING_DEPTH).map(|index| (index as u64 * 501, sizes[index % sizes.len()])).collect();
        let mut buffers: Vec<Vec<u8>> = spans.iter().map(|span| vec![0xee; span.1]).collect();
        let requests = spans.iter().zip(&mut buffers);
        let mut reads: Vec<ReadRequest<'_>> =
            requests.map(|(span, buffer)| ReadRequest { offset: span.0, buffer }).collect();
        assert!(matches!(ring.fill_many(&file, &mut reads), Ok(Ok(()))));
        for ((offset, size), buffer) in spans.iter().zip(&buffers) {
            let mut expected = vec![0; *size];
            fill(&file, *offset, &mut expected).unwrap();
            assert!(*buffer == expected, "{size} bytes at {offset}");
        }
    }
}
