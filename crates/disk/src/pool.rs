//! Reader threads, for systems without io_uring.
//!
//! Input: a file and requests. Output: as in `many`. A batch is split into as many parts as there are threads; a part
//! is read into a separate allocation and copied, since a thread that outlives the call cannot borrow its buffers.
//! Cost: that copy, and two messages per part. The threads are started at first use, at most [`READER_THREADS_MAX`] of
//! them, and wait for work until the process exits.

use crate::ReadRequest;
use crate::limits::READER_THREADS_MAX;
use crate::many::{Failure, fill};
use lydian_stdx::lock;
use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

/// Maximum number of parts that wait for a thread; if there are more, callers block.
const JOBS_MAX: usize = 64;

struct Pool {
    jobs: SyncSender<Job>,
    thread_count: usize,
}

/// Consecutive requests of a batch; the first one has index `start`.
struct Job {
    file: Arc<File>,
    start: usize,
    spans: Vec<(u64, usize)>,
    answer: SyncSender<Answer>,
}

/// The concatenated bytes of a job's requests, or the index of the request that failed.
struct Answer {
    start: usize,
    result: Result<Vec<u8>, (usize, Failure)>,
}

/// `None` if there are no threads.
pub(crate) fn fill_many(file: &Arc<File>, reads: &mut [ReadRequest<'_>]) -> Option<Result<(), (usize, Failure)>> {
    static POOL: OnceLock<Option<Pool>> = OnceLock::new();
    let pool = POOL.get_or_init(start).as_ref()?;
    let part_size = reads.len().div_ceil(pool.thread_count).max(1);
    let (answer, answers) = sync_channel(READER_THREADS_MAX);
    let mut job_count = 0;
    for (part, start) in reads.chunks(part_size).zip((0..).step_by(part_size)) {
        let spans = part.iter().map(|read| (read.offset, read.buffer.len())).collect();
        pool.jobs.send(Job { file: Arc::clone(file), start, spans, answer: answer.clone() }).ok()?;
        job_count += 1;
    }
    for _ in 0..job_count {
        let Answer { start, result } = answers.recv().ok()?;
        match result {
            Err(failed) => return Some(Err(failed)),
            Ok(bytes) => copy_out(&bytes, reads.get_mut(start..)?),
        }
    }
    Some(Ok(()))
}

fn copy_out(mut bytes: &[u8], reads: &mut [ReadRequest<'_>]) {
    for read in reads {
        let Some((own, rest)) = bytes.split_at_checked(read.buffer.len()) else { return };
        read.buffer.copy_from_slice(own);
        bytes = rest;
    }
}

fn start() -> Option<Pool> {
    let (jobs, queue) = sync_channel::<Job>(JOBS_MAX);
    let queue = Arc::new(Mutex::new(queue));
    let spawn = |number: usize| {
        let queue = Arc::clone(&queue);
        thread::Builder::new().name(format!("read-{number}")).spawn(move || work(&queue))
    };
    let thread_count = (0..READER_THREADS_MAX).map_while(|number| spawn(number).ok()).count();
    (thread_count > 0).then_some(Pool { jobs, thread_count })
}

fn work(queue: &Mutex<Receiver<Job>>) {
    loop {
        let job = lock(queue).recv();
        let Ok(job) = job else { return };
        let result = read(&job);
        // The caller may have returned after the failure of another part.
        let _ = job.answer.send(Answer { start: job.start, result });
    }
}

fn read(job: &Job) -> Result<Vec<u8>, (usize, Failure)> {
    let mut bytes = vec![0; job.spans.iter().map(|span| span.1).sum()];
    let mut rest = &mut bytes[..];
    for ((offset, size), index) in job.spans.iter().zip(job.start..) {
        let Some((own, next)) = rest.split_at_mut_checked(*size) else { break };
        fill(&job.file, *offset, own).map_err(|failure| (index, failure))?;
        rest = next;
    }
    Ok(bytes)
}
