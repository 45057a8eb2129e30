//! Many reads of one file at once. Input: a file and requests; output: filled buffers, or the number of a request that failed and why.
//!
//! Three ways with the same answer: io_uring (`sys::ring`), a few threads that read (`pool`), and one read after another, which is the plain
//! twin and the way of a single request. What the system offers is found once, by using it. Invariant: a buffer is filled wholly or the batch
//! fails, however short the reads are that the system gives. It must never leave a read under way when it returns.

use crate::sys::{Broken, Ring};
use crate::{DiskError, DiskErrorKind, ReadRequest, pool};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How the reads of a batch are issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadWay {
    /// All at once through io_uring.
    Ring,
    /// By a few threads, made at first use.
    Pool,
    /// One after another.
    Plain,
}

/// Why a buffer could not be filled.
#[derive(Debug)]
pub(crate) enum Failure {
    Ended { missing: u64 },
    System(io::Error),
}

/// Rings that no call uses now. A caller takes one for the time of its batch, so there are never more than there were callers at once.
static RINGS: Mutex<Vec<Ring>> = Mutex::new(Vec::new());

impl ReadWay {
    /// The ways this system has, best first. The last one is always there.
    pub fn available() -> &'static [ReadWay] {
        // A sandbox may refuse the system calls at any step, hence a whole turn through the ring.
        static HAS_RING: OnceLock<bool> = OnceLock::new();
        let ways = &[ReadWay::Ring, ReadWay::Pool, ReadWay::Plain];
        if *HAS_RING.get_or_init(|| Ring::new().is_ok()) { ways } else { &ways[1..] }
    }

    /// What `read_many` of a file takes.
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

/// Fills every buffer, or tells of one that could not be filled.
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

/// None if the kernel does not give a ring, or not any more.
fn fill_by_ring(file: &File, reads: &mut [ReadRequest<'_>]) -> Option<Result<(), (usize, Failure)>> {
    let idle = RINGS.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let mut ring = idle.or_else(|| Ring::new().ok())?;
    let result = match ring.fill_many(file, reads) {
        Ok(result) => result,
        Err(Broken) => return None,
    };
    RINGS.lock().unwrap_or_else(PoisonError::into_inner).push(ring);
    Some(result)
}
