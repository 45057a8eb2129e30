//! Many reads of one file at once.
//!
//! Input: a file and requests. Output: filled buffers, or the index of a request that failed and the reason.
//!
//! Three ways with the same result: io_uring (`sys::ring`), a few reader threads (`pool`), and sequential reads, which
//! are the reference in tests and are used for a single request. Whether the system has io_uring is determined once, by
//! using it. Invariant: a buffer is filled completely or the batch fails, even if the system returns short reads. No
//! read may still be in flight on return.

use crate::sys::{Broken, Ring};
use crate::{DiskError, DiskErrorKind, ReadRequest, pool};
use lydian_stdx::lock;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// How the reads of a batch are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadWay {
    /// All at once through io_uring.
    Ring,
    /// By a few threads, started at first use.
    Pool,
    /// Sequentially.
    Plain,
}

/// Why a buffer could not be filled.
#[derive(Debug)]
pub(crate) enum Failure {
    Ended { missing: u64 },
    System(io::Error),
}

/// Idle rings. A caller takes one for the duration of its batch, so there are never more rings than there were
/// concurrent callers.
static RINGS: Mutex<Vec<Ring>> = Mutex::new(Vec::new());

impl ReadWay {
    /// Returns the ways this system supports, best first. The last one is always available.
    pub fn available() -> &'static [ReadWay] {
        // A sandbox may refuse the system calls at any step, so `Ring::new` sends one request through the ring.
        static HAS_RING: OnceLock<bool> = OnceLock::new();
        let ways = &[ReadWay::Ring, ReadWay::Pool, ReadWay::Plain];
        if *HAS_RING.get_or_init(|| Ring::new().is_ok()) { ways } else { &ways[1..] }
    }

    /// Returns the way that `read_many` of a file uses.
    pub fn best() -> ReadWay {
        ReadWay::available().first().copied().unwrap_or(ReadWay::Plain)
    }
}

impl Failure {
    pub(crate) fn at(self, path: &Path, offset: u64) -> DiskError {
        match self {
            Failure::Ended { missing } => DiskError::new(path, Some(offset), DiskErrorKind::UnexpectedEnd { missing }),
            Failure::System(error) => DiskError::from_io(path, Some(offset), &error),
        }
    }
}

/// Fills one buffer.
pub(crate) fn fill(file: &File, offset: u64, buffer: &mut [u8]) -> Result<(), Failure> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => return Err(Failure::Ended { missing: (buffer.len() - filled) as u64 }),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::System(error)),
        }
    }
    Ok(())
}

/// Fills every buffer, or returns the index of one that could not be filled and the reason.
pub(crate) fn fill_many(file: &Arc<File>, reads: &mut [ReadRequest<'_>], way: ReadWay) -> Result<(), (usize, Failure)> {
    let done = match way {
        _ if reads.len() < 2 => None,
        ReadWay::Ring => fill_by_ring(file, reads),
        ReadWay::Pool => pool::fill_many(file, reads),
        ReadWay::Plain => None,
    };
    done.unwrap_or_else(|| fill_in_turn(file, reads))
}

fn fill_in_turn(file: &File, reads: &mut [ReadRequest<'_>]) -> Result<(), (usize, Failure)> {
    for (index, read) in reads.iter_mut().enumerate() {
        fill(file, read.offset, read.buffer).map_err(|failure| (index, failure))?;
    }
    Ok(())
}

/// `None` if the kernel provides no ring, or the ring broke.
fn fill_by_ring(file: &File, reads: &mut [ReadRequest<'_>]) -> Option<Result<(), (usize, Failure)>> {
    let idle = lock(&RINGS).pop();
    let mut ring = idle.or_else(|| Ring::new().ok())?;
    let result = match ring.fill_many(file, reads) {
        Ok(result) => result,
        Err(Broken) => return None,
    };
    lock(&RINGS).push(ring);
    Some(result)
}
