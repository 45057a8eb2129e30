//! [`SecondOpinion`]: the follower that chooses blocks, and the thread that has them verified.
//!
//! Input: connected blocks. Output: reports. Invariant: a call of the engine takes as long as the copy of a block, at
//! most. A block that leaves the chain is verified all the same if it was chosen: the engine had accepted it.

use crate::examine::{Finding, examine};
use crate::queue::{Job, Queue, cost};
use crate::report::{Counts, Listener, Report, Why};
use crate::sample::Sample;
use crate::verifier::Verifier;
use lydian_consensus::Params;
use lydian_consensus::deployment::script_flags;
use lydian_engine::{ConnectedBlock, Follower, FollowerError, InitialDownload, Left, Rows, Tip};
use lydian_primitives::RawBlock;
use lydian_stdx::lock;
use std::fmt::{self, Debug};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

/// The name of the follower.
pub const SECOND_OPINION_NAME: &str = "second opinion";

/// Settings of a second opinion.
#[derive(Clone)]
pub struct Settings {
    /// The chain, which decides the script flags of a block.
    pub params: Params,
    /// Whether blocks are at the tip.
    pub initial_download: Arc<InitialDownload>,
    /// Decides which blocks of the sync are in the sample; not known outside this process.
    pub secret: [u8; 16],
    /// One block of the sync in this number is in the sample.
    pub sampled_one_in: u64,
}

/// The secret stays secret.
impl Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings").field("sampled_one_in", &self.sampled_one_in).finish_non_exhaustive()
    }
}

/// The second opinion: a follower of the chain. Dropping it ends its thread.
#[derive(Debug)]
pub struct SecondOpinion {
    initial_download: Arc<InitialDownload>,
    sample: Sample,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// The counts of a second opinion, while the engine has it.
#[derive(Clone, Debug)]
pub struct Monitor(Arc<Shared>);

/// What the engine's threads and the thread of the verifier share.
#[derive(Debug)]
struct Shared {
    queue: Queue,
    counts: Mutex<Counts>,
    listener: Arc<dyn Listener>,
}

impl SecondOpinion {
    /// Starts the thread.
    pub fn start(
        verifier: Box<dyn Verifier>,
        settings: Settings,
        listener: Arc<dyn Listener>,
    ) -> io::Result<SecondOpinion> {
        let shared = Arc::new(Shared { queue: Queue::default(), counts: Mutex::default(), listener });
        let Settings { params, initial_download, secret, sampled_one_in } = settings;
        let (its, mut verifier) = (Arc::clone(&shared), verifier);
        let thread = Builder::new().name("opinion".to_owned()).spawn(move || its.work(&mut *verifier, &params))?;
        let sample = Sample::new(secret, sampled_one_in);
        Ok(SecondOpinion { initial_download, sample, shared, thread: Some(thread) })
    }

    /// For the time when the engine owns this value.
    pub fn monitor(&self) -> Monitor {
        Monitor(Arc::clone(&self.shared))
    }

    fn choose(&self, block: &ConnectedBlock<'_>) -> Option<Why> {
        match self.initial_download.is_on() {
            false => Some(Why::Tip),
            true => self.sample.contains(&block.block.hash()).then_some(Why::Sample),
        }
    }
}

impl Follower for SecondOpinion {
    fn name(&self) -> &str {
        SECOND_OPINION_NAME
    }

    fn has_files(&self) -> bool {
        false
    }

    fn durable_tip(&self) -> Option<Tip> {
        None
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, _: Option<Rows>) -> Result<(), FollowerError> {
        let Some(why) = self.choose(block) else { return Ok(()) };
        let (height, hash) = (block.height, block.block.hash());
        let raw = || RawBlock::new(block.block.as_bytes());
        let job = || Job { why, height, hash, block: raw(), spent: block.spent.to_vec() };
        if !self.shared.queue.offer(why, cost(block.block, block.spent), job) {
            self.shared.leave_out(why);
            if why == Why::Tip {
                self.shared.listener.report(&Report::LeftOut { height, hash });
            }
        }
        Ok(())
    }

    fn disconnect(&mut self, _: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, _: Tip) -> Result<(), FollowerError> {
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        Ok(())
    }
}

impl Drop for SecondOpinion {
    fn drop(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // If the thread panicked, it has already reported it.
            let _ = thread.join();
        }
        let counts = *lock(&self.shared.counts);
        self.shared.listener.report(&Report::Ended(counts));
    }
}

impl Monitor {
    pub fn counts(&self) -> Counts {
        *lock(&self.0.counts)
    }

    /// Waits until every block chosen so far was verified or left out.
    pub fn wait_until_idle(&self) {
        self.0.queue.wait_until_idle();
    }
}

impl Shared {
    /// Verifies blocks until the end. However the thread ends, no caller waits for it any longer.
    fn work(&self, verifier: &mut dyn Verifier, params: &Params) {
        struct Ending<'a>(&'a Shared);
        impl Drop for Ending<'_> {
            fn drop(&mut self) {
                self.0.end();
            }
        }
        let _ending = Ending(self);
        while let Some(job) = self.queue.take() {
            self.decide(job, verifier, params);
            self.queue.done();
        }
    }

    fn decide(&self, job: Job, verifier: &mut dyn Verifier, params: &Params) {
        let Job { why, height, hash, block, spent } = job;
        let flags = script_flags(height, &hash, params);
        let finding = match block.parse() {
            Ok(block) => examine(verifier, &block, &spent, flags, &|| self.queue.is_ended()),
            Err(error) => Finding::Failed { reason: error.to_string() },
        };
        let report = match finding {
            Finding::Ended => return self.leave_out(why),
            Finding::Valid => Report::Verified { height, hash, inputs: spent.len() },
            Finding::Invalid { txid, rejection } => Report::Rejected { height, hash, txid, rejection },
            Finding::Failed { reason } => Report::Failed { height, hash, reason },
        };
        {
            let mut counts = lock(&self.counts);
            match (&report, why) {
                (Report::Failed { .. }, _) => counts.failed += 1,
                (_, Why::Tip) => counts.tip += 1,
                (_, Why::Sample) => counts.sampled += 1,
            }
            counts.rejected += u64::from(matches!(report, Report::Rejected { .. }));
        }
        self.listener.report(&report);
    }

    fn leave_out(&self, why: Why) {
        let mut counts = lock(&self.counts);
        match why {
            Why::Tip => counts.left_out += 1,
            Why::Sample => counts.skipped += 1,
        }
    }

    /// Ends the queue, and counts what still waited.
    fn end(&self) {
        self.queue.end().into_iter().for_each(|why| self.leave_out(why));
    }
}
