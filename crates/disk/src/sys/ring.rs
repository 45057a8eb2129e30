//! Reads through io_uring.
//!
//! Input: a file and requests. Output: filled buffers, or the index of a request that failed and the reason. Cost: one
//! system call for as many reads as fit into the ring. Invariant: `fill_many` returns only after the kernel has
//! completed every request and no longer uses any buffer, whatever fails; between the first request and the last
//! completion nothing may panic or return early.

use crate::ReadRequest;
use crate::limits::RING_DEPTH;
use crate::many::Failure;
use io_uring::{IoUring, Probe, opcode, types};
use lydian_stdx::saturating_usize;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::thread;

/// Maximum size in bytes of one request; a longer one is read in pieces, like a short read of the system. Small in
/// tests, so that they cover pieces.
const PIECE_SIZE_MAX: usize = if cfg!(test) { 1000 } else { 1 << 30 };

/// A ring for exclusive use by one caller.
pub(crate) struct Ring(IoUring);

/// The kernel accepts no more requests; the ring is unusable, the content of the buffers is unspecified.
pub(crate) struct Broken;

/// The state of a batch in progress.
struct Batch<'a, 'b> {
    reads: &'a mut [ReadRequest<'b>],
    /// Number of bytes read so far, for each request.
    filled: Vec<usize>,
    /// The first request that was never issued.
    next: usize,
    /// Requests to be issued again for their missing bytes.
    again: Vec<usize>,
    failure: Option<(usize, Failure)>,
}

impl Ring {
    /// Creates a ring, and sends one no-op request through it.
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

    /// Fills every buffer, or returns the index of one that could not be filled and the reason.
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
            // If more requests follow, half of the ring is kept busy while completions are processed.
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

    /// Puts requests into the ring and returns their number.
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
            // SAFETY: the pointer is valid for writes of `size` bytes: it and `size` come from a slice borrowed by the
            // batch. The slice is not accessed until its completion arrives, and `fill_many` and `take_back` do not let
            // the borrow of the batch, nor that of the file with this descriptor, end before the completions of all
            // requests that the kernel accepted.
            if unsafe { queue.push(&entry) }.is_err() {
                batch.again.push(index);
                break;
            }
            count += 1;
        }
        count
    }

    /// Processes the available completions and returns their number.
    fn reap(&mut self, batch: &mut Batch<'_, '_>) -> usize {
        let mut count = 0;
        for entry in self.0.completion() {
            batch.answer(saturating_usize(entry.user_data()), entry.result());
            count += 1;
        }
        count
    }

    /// Waits for the completions of all requests that the kernel has accepted, without submitting more.
    fn take_back(&mut self, batch: &mut Batch<'_, '_>, lent: usize) {
        // The kernel cannot accept the remaining requests any more: it reads the ring only in calls that are not made
        // again.
        let mut lent = lent.saturating_sub(self.0.submission().len());
        while lent > 0 {
            // The kernel posts completions on the return from any system call.
            thread::yield_now();
            lent = lent.saturating_sub(self.reap(batch));
        }
    }
}

impl Batch<'_, '_> {
    /// Returns the next request to be issued; `None` once one has failed.
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

    /// Processes a result of the kernel: a number of bytes, or a negative error code.
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
    #[allow(clippy::disallowed_methods, reason = "the one large file a unit test can rely on is its own executable")]
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
