//! Threads that read, for systems without io_uring. Input: a file and requests; output as in `many`.
//!
//! A batch is cut into as many parts as there are threads; a part is read into memory of its own and copied, since a thread that outlives
//! the call cannot borrow its buffers. Cost: that copy, and two messages a part. The threads are made at first use and wait for work until the
//! process ends. Never more than [`READER_THREADS_MAX`].

use crate::ReadRequest;
use crate::limits::READER_THREADS_MAX;
use crate::many::{Failure, fill};
use std::fs::File;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

/// Parts that wait for a thread; beyond it callers wait.
const JOBS_MAX: usize = 64;

struct Pool {
    jobs: SyncSender<Job>,
    thread_count: usize,
}

/// Consecutive requests of a batch, the first of them number `start`.
struct Job {
    file: Arc<File>,
    start: usize,
    spans: Vec<(u64, usize)>,
    answer: SyncSender<Answer>,
}

/// The bytes of a job's requests one after another, or the number of the one that failed.
struct Answer {
    start: usize,
    result: Result<Vec<u8>, (usize, Failure)>,
}

/// None if there are no threads.
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
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        let result = read(&job);
        // The caller may have left at the failure of another part.
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
