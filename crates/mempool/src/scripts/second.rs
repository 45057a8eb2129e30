//! [`SecondCheck`]: libsecp256k1 verifies again what the SIMD lanes accepted.
//!
//! Input: transactions that were accepted. Output: a call for each that is not valid after all, and the referee's trust
//! in the kernel. A thread of the lowest priority does it, for at most [`SECOND_CHECK_MAX`] transactions a second: for
//! all if fewer come, else for a sample that no peer can predict. Blocks at the tip are verified a second time
//! in any case (`lydian_engine`'s review), so this only shortens the time until a broken kernel is noticed.
//!
//! Invariants: acceptance never waits for it; at most [`SECOND_CHECK_MAX`] transactions wait. Cost: the signatures at
//! the speed of libsecp256k1, 70 us for a transaction with two inputs; a pause of a second follows each sample.

use super::verify::{InputFailure, Spend, verify_many};
use crate::limits::SECOND_CHECK_MAX;
use lydian_curve::{Check, Engine, Refereed, Reference};
use lydian_script::{CheckCounts, Flags};
use lydian_stdx::{IgnorePoison, SplitMix64, lock};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(1);

/// Called with a transaction that was accepted and is not valid, and with `None` for a disagreement about a check that
/// decides nothing. Every cached verdict may be wrong then.
pub type OnWrong = dyn Fn(Option<(&Spend, InputFailure)>) + Send + Sync;

/// Verifies accepted transactions again until it is dropped.
pub struct SecondCheck {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    signatures: Arc<Refereed>,
    flags: Flags,
    on_wrong: Box<OnWrong>,
    waiting: Mutex<Waiting>,
    changed: Condvar,
    ended: Condvar,
    verified: AtomicU64,
    left_out: AtomicU64,
}

/// The transactions of the current second, or a sample of them.
struct Waiting {
    sample: Vec<Spend>,
    /// How many the sample is taken from.
    seen: usize,
    random: SplitMix64,
    is_busy: bool,
    is_ended: bool,
}

impl Waiting {
    /// Adds a transaction to the sample, or not. Returns whether one is left out, this one or another.
    fn add(&mut self, spend: &Spend) -> bool {
        self.seen += 1;
        if self.sample.len() < SECOND_CHECK_MAX {
            self.sample.push(spend.clone());
            return false;
        }
        // Each of those seen is in the sample with the same probability.
        let place = self.random.below(self.seen);
        if let Some(replaced) = self.sample.get_mut(place) {
            *replaced = spend.clone();
        }
        true
    }
}

/// Numbers of transactions since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SecondCounts {
    pub verified: u64,
    /// Not in the sample.
    pub left_out: u64,
}

impl SecondCheck {
    /// Starts the thread. `seed` must be secret: it decides about the sample.
    pub fn start(
        signatures: Arc<Refereed>,
        flags: Flags,
        seed: u64,
        on_wrong: Box<OnWrong>,
    ) -> io::Result<SecondCheck> {
        let random = SplitMix64::new(seed);
        let waiting = Waiting { sample: Vec::new(), seen: 0, random, is_busy: false, is_ended: false };
        let shared = Arc::new(Shared {
            signatures,
            flags,
            on_wrong,
            waiting: Mutex::new(waiting),
            changed: Condvar::new(),
            ended: Condvar::new(),
            verified: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
        });
        let body = Arc::clone(&shared);
        let thread = Builder::new().name("mempool-second".to_owned()).spawn(move || body.run())?;
        Ok(SecondCheck { shared, thread: Some(thread) })
    }

    /// Adds an accepted transaction, unless the kernel is no longer trusted: then the cache forgets what it verified.
    pub fn push(&self, spend: &Spend) {
        if !self.shared.signatures.is_watched() {
            return;
        }
        let mut waiting = lock(&self.shared.waiting);
        if waiting.add(spend) {
            self.shared.left_out.fetch_add(1, Ordering::Relaxed);
        }
        self.shared.changed.notify_all();
    }

    /// Waits until nothing waits.
    pub fn finish(&self) {
        let mut waiting = lock(&self.shared.waiting);
        while !waiting.is_ended && (waiting.is_busy || !waiting.sample.is_empty()) {
            waiting = self.shared.changed.wait(waiting).ignore_poison();
        }
    }

    pub fn counts(&self) -> SecondCounts {
        SecondCounts {
            verified: self.shared.verified.load(Ordering::Relaxed),
            left_out: self.shared.left_out.load(Ordering::Relaxed),
        }
    }
}

impl Drop for SecondCheck {
    fn drop(&mut self) {
        self.shared.end();
        if let Some(thread) = self.thread.take() {
            // A panic was printed by then.
            let _ = thread.join();
        }
    }
}

/// Reports the end however the thread ends, so that no caller waits forever.
struct Ending<'a>(&'a Shared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Shared {
    fn end(&self) {
        lock(&self.waiting).is_ended = true;
        self.changed.notify_all();
        self.ended.notify_all();
    }

    fn run(&self) {
        let _ending = Ending(self);
        // If it fails, the thread has the priority of all others.
        let _ = rustix::process::nice(LOWEST_PRIORITY);
        while let Some(sample) = self.take() {
            for spend in &sample {
                if lock(&self.waiting).is_ended {
                    return;
                }
                self.verify(spend);
            }
            lock(&self.waiting).is_busy = false;
            self.changed.notify_all();
            // What comes meanwhile is one sample.
            let waiting = lock(&self.waiting);
            drop(self.ended.wait_timeout_while(waiting, WINDOW, |waiting| !waiting.is_ended).ignore_poison());
        }
    }

    /// Waits for transactions and takes them; `None` at the end.
    fn take(&self) -> Option<Vec<Spend>> {
        let mut waiting = lock(&self.waiting);
        loop {
            if waiting.is_ended {
                return None;
            }
            if !waiting.sample.is_empty() {
                waiting.seen = 0;
                waiting.is_busy = true;
                return Some(std::mem::take(&mut waiting.sample));
            }
            waiting = self.changed.wait(waiting).ignore_poison();
        }
    }

    fn verify(&self, spend: &Spend) {
        let second = Second { referee: &self.signatures, disagreements: AtomicU64::new(0) };
        let mut counts = CheckCounts::default();
        let verdicts = verify_many(&[spend], self.flags, &second, &mut counts);
        let disagreements = second.disagreements.load(Ordering::Relaxed);
        self.verified.fetch_add(1, Ordering::Relaxed);
        match verdicts.into_iter().find_map(Result::err) {
            Some(failure) => {
                if disagreements == 0 {
                    let what = format!("transaction {}, accepted to the mempool,", spend.tx().view().txid());
                    self.signatures.distrust(what);
                }
                (self.on_wrong)(Some((spend, failure)));
            }
            None if disagreements > 0 => (self.on_wrong)(None),
            None => {}
        }
    }
}

/// Verifies with the reference and compares the kernel with it.
struct Second<'a> {
    referee: &'a Refereed,
    disagreements: AtomicU64,
}

impl Engine for Second<'_> {
    fn name(&self) -> &'static str {
        Reference.name()
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        let count = self.referee.review(checks, verdicts);
        self.disagreements.fetch_add(count, Ordering::Relaxed);
    }
}

impl fmt::Debug for SecondCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecondCheck").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

/// The niceness added: the most that there is.
const LOWEST_PRIORITY: i32 = 19;

#[cfg(test)]
mod tests;
