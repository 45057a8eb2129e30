//! The referee: a kernel that is watched by the reference while it works.
//!
//! Input: checks, as any [`Engine`] takes them. Output: verdicts. The kernel decides; a keyed sample of its checks is decided again by the
//! reference, and [`Refereed::review`] does so for all checks it is given. One disagreement is enough: from then on the reference decides
//! everything in this process, the batch in hand included, the case is kept and the alarm is told. Invariants: once
//! [`Refereed::is_trusted`] is false it stays so, and no verdict of the kernel is given out after that; which checks are sampled depends on
//! the seed and on how many came before, never on a check, so that nobody who makes checks can avoid it; a kernel that is the reference is
//! not watched and costs nothing more. Cost: one SHA-256 and one check by the reference for each [`Sampling::interval`] checks, together
//! about 30 us, so 7 ns a check with the default. Must never: let a disagreement pass, whoever else was quicker with another one.

use crate::limits::DISAGREEMENTS_MAX;
use crate::{Check, Engine, Reference};
use lydian_hash::sha256;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A kernel and who watches it.
pub struct Refereed {
    kernel: Box<dyn Engine + Send>,
    sampling: Sampling,
    alarm: Box<Alarm>,
    is_trusted: AtomicBool,
    /// Checks that the kernel has decided.
    position: AtomicU64,
    sampled: AtomicU64,
    reviewed: AtomicU64,
    disagreements: AtomicU64,
    /// The first of them.
    kept: Mutex<Vec<Disagreement>>,
}

/// Told of each disagreement that is kept, by the thread that found it and before its verdicts are given out. It must not ask the engine
/// to verify.
pub type Alarm = dyn Fn(&Disagreement) + Send + Sync;

/// Which checks are decided twice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// Of so many checks one.
    pub interval: NonZeroU64,
    /// Nobody else may know it.
    pub seed: [u8; 32],
}

impl Sampling {
    /// Of 4,096 checks one.
    pub const INTERVAL: NonZeroU64 = match NonZeroU64::new(4_096) {
        Some(interval) => interval,
        None => unreachable!(),
    };

    pub fn new(seed: [u8; 32]) -> Sampling {
        Sampling { interval: Sampling::INTERVAL, seed }
    }

    /// The places of the sample among `count` checks from `start` on: one place in each stretch of `interval` checks.
    fn places(&self, start: u64, count: u64) -> impl Iterator<Item = u64> {
        let (interval, seed) = (self.interval.get(), self.seed);
        let end = start.saturating_add(count);
        let stretches = start / interval..end.div_ceil(interval);
        let places = stretches
            .map(move |stretch| stretch.saturating_mul(interval).saturating_add(offset(&seed, stretch, interval)));
        places.filter(move |place| (start..end).contains(place)).map(move |place| place - start)
    }
}

impl fmt::Debug for Sampling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampling").field("interval", &self.interval).finish_non_exhaustive()
    }
}

/// The place in a stretch, below `interval`.
fn offset(seed: &[u8; 32], stretch: u64, interval: u64) -> u64 {
    if interval == 1 {
        return 0;
    }
    let mut message = [0; 40];
    message[..32].copy_from_slice(seed);
    message[32..].copy_from_slice(&stretch.to_le_bytes());
    let digest = sha256(&message);
    let mut low = [0; 8];
    low.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(low) % interval
}

/// A kernel and the reference do not say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// Name of the kernel.
    pub kernel: &'static str,
    pub evidence: Evidence,
}

/// About what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Two verdicts on one check.
    Check { check: Check, kernel: bool, reference: bool },
    /// Something that was accepted with the kernel's verdicts and that the reference refuses, in the caller's words.
    Accepted { what: String },
}

/// What the referee has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefereeCounts {
    /// Checks of the sample.
    pub sampled: u64,
    /// Checks decided again by [`Refereed::review`].
    pub reviewed: u64,
    pub disagreements: u64,
}

impl Refereed {
    /// Watches a kernel. `alarm` is told of disagreements, at most [`DISAGREEMENTS_MAX`] of them.
    pub fn new(kernel: Box<dyn Engine + Send>, sampling: Sampling, alarm: Box<Alarm>) -> Refereed {
        Refereed {
            kernel,
            sampling,
            alarm,
            is_trusted: AtomicBool::new(true),
            position: AtomicU64::new(0),
            sampled: AtomicU64::new(0),
            reviewed: AtomicU64::new(0),
            disagreements: AtomicU64::new(0),
            kept: Mutex::default(),
        }
    }

    /// The reference, which nobody need watch.
    pub fn reference() -> Refereed {
        Refereed::new(Box::new(Reference), Sampling::new([0; 32]), Box::new(|_| {}))
    }

    /// The kernel itself, for measurements: nobody watches what it says there.
    pub fn kernel(&self) -> &dyn Engine {
        &*self.kernel
    }

    /// Whether the kernel still decides.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted.load(Ordering::Acquire)
    }

    /// Whether verdicts come from something else than the reference.
    pub fn is_watched(&self) -> bool {
        !self.is_reference() && self.is_trusted()
    }

    pub fn counts(&self) -> RefereeCounts {
        RefereeCounts {
            sampled: self.sampled.load(Ordering::Relaxed),
            reviewed: self.reviewed.load(Ordering::Relaxed),
            disagreements: self.disagreements.load(Ordering::Relaxed),
        }
    }

    /// The first disagreements.
    pub fn disagreements(&self) -> Vec<Disagreement> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Decides all checks by the reference and, as long as the kernel is trusted, holds what it says against that. Returns how often it
    /// says something else.
    ///
    /// # Panics
    /// If the two slices differ in length.
    pub fn review(&self, checks: &[Check], verdicts: &mut [bool]) -> u64 {
        Reference.verify(checks, verdicts);
        if !self.is_watched() {
            return 0;
        }
        let mut of_kernel = vec![false; checks.len()];
        self.kernel.verify(checks, &mut of_kernel);
        self.reviewed.fetch_add(checks.len() as u64, Ordering::Relaxed);
        self.compare(checks, &of_kernel, verdicts)
    }

    /// The reference refuses what was accepted with the kernel's verdicts: the kernel has said something wrong once, whatever it says now.
    pub fn distrust(&self, what: String) {
        self.disagree(Evidence::Accepted { what });
    }

    fn is_reference(&self) -> bool {
        self.kernel.name() == Reference.name()
    }

    /// Whether the kernel is wrong about a check of the sample.
    fn sample_differs(&self, checks: &[Check], verdicts: &[bool]) -> bool {
        let count = checks.len() as u64;
        let start = self.position.fetch_add(count, Ordering::Relaxed);
        let mut differs = false;
        for place in self.sampling.places(start, count) {
            let index = usize::try_from(place).unwrap_or(usize::MAX);
            self.sampled.fetch_add(1, Ordering::Relaxed);
            differs |= Reference.check(&checks[index]) != verdicts[index];
        }
        differs
    }

    /// Enters every difference; gives how many there are.
    fn compare(&self, checks: &[Check], of_kernel: &[bool], of_reference: &[bool]) -> u64 {
        let mut count = 0;
        for (check, (kernel, reference)) in checks.iter().zip(of_kernel.iter().zip(of_reference)) {
            if kernel != reference {
                count += 1;
                self.disagree(Evidence::Check { check: *check, kernel: *kernel, reference: *reference });
            }
        }
        count
    }

    fn disagree(&self, evidence: Evidence) {
        self.is_trusted.store(false, Ordering::Release);
        self.disagreements.fetch_add(1, Ordering::Relaxed);
        let disagreement = Disagreement { kernel: self.kernel.name(), evidence };
        let is_kept = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let has_room = kept.len() < DISAGREEMENTS_MAX;
            if has_room {
                kept.push(disagreement.clone());
            }
            has_room
        };
        if is_kept {
            (self.alarm)(&disagreement);
        }
    }
}

impl Engine for Refereed {
    /// Of whoever decides now.
    fn name(&self) -> &'static str {
        if self.is_trusted() { self.kernel.name() } else { Reference.name() }
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        if !self.is_trusted() {
            return Reference.verify(checks, verdicts);
        }
        self.kernel.verify(checks, verdicts);
        if self.is_reference() {
            return;
        }
        let differs = self.sample_differs(checks, verdicts);
        // Another thread may have found something meanwhile.
        if differs || !self.is_trusted() {
            let of_kernel = verdicts.to_vec();
            Reference.verify(checks, verdicts);
            if self.compare(checks, &of_kernel, verdicts) == 0 && differs {
                self.distrust("a check of the sample, about which the reference said two things".to_owned());
            }
        }
    }
}

impl fmt::Debug for Refereed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refereed")
            .field("kernel", &self.kernel.name())
            .field("is_trusted", &self.is_trusted())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}
