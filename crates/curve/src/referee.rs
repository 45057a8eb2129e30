//! The referee: a kernel, and the reference that verifies a sample of its verdicts.
//!
//! Input: checks, as for any [`Engine`]. Output: verdicts. The kernel decides; the reference decides a keyed sample of
//! the checks again, and [`Refereed::review`] does so for all checks passed to it. After the first disagreement, the
//! reference decides everything until the process exits, including the current batch; the disagreement is kept and the
//! alarm is called.
//!
//! Invariants: once [`Refereed::is_trusted`] is false it stays false, and no verdict of the kernel is returned after
//! that. The sample depends on the seed and on the number of earlier checks, never on a check, so that the author of a
//! check cannot avoid it. If the kernel is the reference, it is not watched and has no extra cost. Cost: one SHA-256
//! and one check by the reference for each [`Sampling::interval`] checks, together about 30 us, so 7 ns per check with
//! the default. Must never: ignore a disagreement, even if another thread reported one first.

use crate::limits::DISAGREEMENTS_MAX;
use crate::signing::ToSign;
use crate::{Check, Engine, Reference};
use lydian_hash::sha256;
use lydian_stdx::{lock, saturating_usize};
use std::fmt;
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A kernel watched by the reference.
pub struct Refereed {
    kernel: Box<dyn Engine + Send>,
    sampling: Sampling,
    alarm: Box<Alarm>,
    is_trusted: AtomicBool,
    /// Number of checks that the kernel has decided.
    position: AtomicU64,
    sampled: AtomicU64,
    reviewed: AtomicU64,
    disagreements: AtomicU64,
    /// The first disagreements.
    kept: Mutex<Vec<Disagreement>>,
}

/// Called with each disagreement that is kept, by the thread that found it and before its verdicts are returned. It
/// must not call the engine.
pub type Alarm = dyn Fn(&Disagreement) + Send + Sync;

/// The selection of the checks that are decided twice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// One check is sampled out of this number.
    pub interval: NonZeroU64,
    /// Must be kept secret.
    pub seed: [u8; 32],
}

impl Sampling {
    /// The default interval: one of 4,096 checks.
    pub const INTERVAL: NonZeroU64 = match NonZeroU64::new(4_096) {
        Some(interval) => interval,
        None => unreachable!(),
    };

    pub fn new(seed: [u8; 32]) -> Sampling {
        Sampling { interval: Sampling::INTERVAL, seed }
    }

    /// Returns the indices of the sample among `count` checks from `start` on: one place in each stretch of `interval`
    /// checks.
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

/// Returns the sampled place in a stretch, below `interval`.
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

/// A disagreement of a kernel with the reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The name of the kernel.
    pub kernel: &'static str,
    pub evidence: Evidence,
}

/// The subject of a disagreement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Different verdicts on one check.
    Check { check: Check, kernel: bool, reference: bool },
    /// Something that was accepted with the kernel's verdicts and that the reference rejects, described by the caller.
    Accepted { what: String },
}

/// Counters of the referee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefereeCounts {
    /// Checks in the sample.
    pub sampled: u64,
    /// Checks decided again by [`Refereed::review`].
    pub reviewed: u64,
    pub disagreements: u64,
}

impl Refereed {
    /// Watches a kernel. `alarm` is called for each of the first [`DISAGREEMENTS_MAX`] disagreements.
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

    /// The reference itself, which is not watched.
    pub fn reference() -> Refereed {
        Refereed::new(Box::new(Reference), Sampling::new([0; 32]), Box::new(|_| {}))
    }

    /// The kernel itself, for measurements: its verdicts are not watched.
    pub fn kernel(&self) -> &dyn Engine {
        &*self.kernel
    }

    /// Whether the kernel still decides.
    pub fn is_trusted(&self) -> bool {
        self.is_trusted.load(Ordering::Acquire)
    }

    /// Whether verdicts come from a kernel other than the reference.
    pub fn is_watched(&self) -> bool {
        self.has_kernel() && self.is_trusted()
    }

    /// Whether verdicts came from a kernel other than the reference, now or before it was distrusted.
    pub fn has_kernel(&self) -> bool {
        self.kernel.name() != Reference.name()
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
        lock(&self.kept).clone()
    }

    /// Decides all checks with the reference and, while the kernel is trusted, compares its verdicts. Returns the
    /// number of disagreements.
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

    /// Records that the reference rejects something that was accepted with the kernel's verdicts.
    ///
    /// The kernel returned a wrong verdict once, even if it returns the right one now.
    pub fn distrust(&self, what: String) {
        self.disagree(Evidence::Accepted { what });
    }

    /// Whether the verdict of the kernel on any check in the sample is wrong.
    fn sample_differs(&self, checks: &[Check], verdicts: &[bool]) -> bool {
        let count = checks.len() as u64;
        let start = self.position.fetch_add(count, Ordering::Relaxed);
        let mut differs = false;
        for place in self.sampling.places(start, count) {
            let index = saturating_usize(place);
            self.sampled.fetch_add(1, Ordering::Relaxed);
            differs |= Reference.check(&checks[index]) != verdicts[index];
        }
        differs
    }

    /// Records every difference and returns their number.
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
            let mut kept = lock(&self.kept);
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
    /// The name of the engine that decides now.
    fn name(&self) -> &'static str {
        if self.is_trusted() { self.kernel.name() } else { Reference.name() }
    }

    /// Not compared with the reference: callers verify each signature.
    fn sign(&self, wanted: &[ToSign], seed: &[u8; 32]) -> Vec<Option<[u8; 64]>> {
        if self.is_trusted() { self.kernel.sign(wanted, seed) } else { Reference.sign(wanted, seed) }
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        if !self.is_trusted() {
            return Reference.verify(checks, verdicts);
        }
        self.kernel.verify(checks, verdicts);
        if !self.has_kernel() {
            return;
        }
        let differs = self.sample_differs(checks, verdicts);
        // Another thread may have found a disagreement in the meantime.
        if differs || !self.is_trusted() {
            let of_kernel = verdicts.to_vec();
            Reference.verify(checks, verdicts);
            if self.compare(checks, &of_kernel, verdicts) == 0 && differs {
                self.distrust("a sampled check, for which the reference returned two different verdicts".to_owned());
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
