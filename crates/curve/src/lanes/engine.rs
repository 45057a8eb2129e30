//! The engine that decides checks in lanes, and sends the rest to the reference.
//!
//! Input: checks of all kinds, mixed. Output: their verdicts. Checks are sorted by kind; each kind goes through the
//! lanes in portions, many Schnorr checks by one equation. Checks that are unusual, exceptional or too few to fill
//! lanes go to libsecp256k1. Invariant: if the lanes reach no verdict, the reference decides. Cost:
//! `docs/benchmarks/lanes.md`; memory about 700 KB per portion, 0.5 MB more for affine additions (`avx2`), 5 MB for an
//! equation of 2,048 checks and 15 MB for 8,192. Must never: treat a kernel's "exceptional" as a verdict.

use super::Lanes;
#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
use super::batch::settle;
use super::decide::decide;
use super::failures::Failures;
use super::generator::{Group, secp256k1};
#[cfg(target_arch = "x86_64")]
use super::ifma512::Ifma512;
use super::known;
use super::lift::lift;
use super::memory::Spare;
#[cfg(target_arch = "aarch64")]
use super::neon::Neon;
use super::plain::Plain;
use super::prepare::{Kind, ORDER, Prepared, below_prime, is_below, prepare, words};
use super::sign::{Point, sign};
use super::word::Word;
#[cfg(target_arch = "x86_64")]
use super::ymm::{Ifma256Avx, Ifma256Vl};
use crate::limits::{BATCH_CHECKS_MAX, LANE_CHECKS_MIN, PORTION_CHECKS_MAX};
use crate::signing::ToSign;
use crate::test_signature::{PublicPoint, TestSignature};
use crate::{Check, Engine, Reference};
use std::sync::atomic::{AtomicU64, Ordering};

/// Square roots that share their memory, 32 KiB of points.
const LIFTED_AT_ONCE: usize = 512;

/// Checks in lanes, on one instruction set.
#[derive(Debug)]
pub struct LaneEngine {
    kernel: Kernel,
    /// The seed of the weights in equations.
    seed: [u8; 32],
    /// Minimum number of Schnorr checks for an equation.
    batch_checks_min: usize,
    failures: Failures,
    spare: Spare,
    lanes: AtomicU64,
    together: AtomicU64,
    reference: AtomicU64,
}

/// Numbers of checks decided so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// By the kernel itself.
    pub lanes: u64,
    /// By libsecp256k1: unusual, exceptional, or too few to fill lanes.
    pub reference: u64,
}

#[derive(Clone, Copy, Debug)]
enum Kernel {
    Plain(Plain),
    Word(Word),
    #[cfg(target_arch = "x86_64")]
    Ifma512(Ifma512),
    #[cfg(target_arch = "x86_64")]
    Ifma256Vl(Ifma256Vl),
    #[cfg(target_arch = "x86_64")]
    Ifma256Avx(Ifma256Avx),
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
}

impl Kernel {
    fn batch_checks_min(self) -> usize {
        match self {
            Kernel::Plain(_) => Plain::BATCH_CHECKS_MIN,
            Kernel::Word(_) => Word::BATCH_CHECKS_MIN,
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma512(_) => Ifma512::BATCH_CHECKS_MIN,
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Vl(_) => Ifma256Vl::BATCH_CHECKS_MIN,
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Avx(_) => Ifma256Avx::BATCH_CHECKS_MIN,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(_) => Avx2::BATCH_CHECKS_MIN,
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(_) => Neon::BATCH_CHECKS_MIN,
        }
    }
}

impl LaneEngine {
    /// The engine in portable Rust: slow, needs no CPU features; for tests.
    pub fn plain() -> LaneEngine {
        LaneEngine::new(Kernel::Plain(Plain))
    }

    /// Returns the engines that this CPU can run, the fastest first.
    pub fn available() -> Vec<LaneEngine> {
        let mut engines = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let vl = Ifma256Vl::detect().map(Kernel::Ifma256Vl);
            let ifma256 = vl.or_else(|| Ifma256Avx::detect().map(Kernel::Ifma256Avx));
            engines.extend(Ifma512::detect().map(Kernel::Ifma512).map(LaneEngine::new));
            engines.extend(ifma256.map(LaneEngine::new));
            engines.extend(Avx2::detect().map(Kernel::Avx2).map(LaneEngine::new));
        }
        #[cfg(target_arch = "aarch64")]
        engines.extend(Neon::detect().map(Kernel::Neon).map(LaneEngine::new));
        engines.push(LaneEngine::new(Kernel::Word(Word)));
        engines
    }

    fn new(kernel: Kernel) -> LaneEngine {
        LaneEngine {
            kernel,
            seed: [0; 32],
            batch_checks_min: kernel.batch_checks_min(),
            failures: Failures::default(),
            spare: Spare::default(),
            lanes: AtomicU64::new(0),
            together: AtomicU64::new(0),
            reference: AtomicU64::new(0),
        }
    }

    /// Returns the numbers of checks decided since the engine was created.
    pub fn tally(&self) -> Tally {
        Tally { lanes: self.lanes.load(Ordering::Relaxed), reference: self.reference.load(Ordering::Relaxed) }
    }

    /// Returns how many of the checks decided in lanes were decided together with others by one equation.
    pub fn together(&self) -> u64 {
        self.together.load(Ordering::Relaxed)
    }

    /// Sets the seed for the weights of Schnorr equations, drawn once per process. Without a seed the weights still
    /// depend on every byte of every check of a batch; with a secret seed no one else can compute them.
    #[must_use]
    pub fn seeded(self, seed: [u8; 32]) -> LaneEngine {
        LaneEngine { seed, ..self }
    }

    /// Sets the minimum number of Schnorr checks that one equation decides, instead of the kernel's.
    #[must_use]
    pub fn with_batch_checks_min(self, batch_checks_min: usize) -> LaneEngine {
        LaneEngine { batch_checks_min, ..self }
    }

    /// Returns the minimum number of Schnorr checks that one equation decides.
    pub fn batch_checks_min(&self) -> usize {
        self.batch_checks_min
    }

    /// Returns for each x whether it is that of a point on the curve.
    pub(crate) fn are_points(&self, xs: &[[u8; 32]]) -> Vec<bool> {
        let mut found = Vec::with_capacity(xs.len());
        let mut lines = Vec::new();
        for xs in xs.chunks(LIFTED_AT_ONCE) {
            let known: Vec<Option<[u64; 5]>> = xs.iter().map(|x| below_prime(words(x))).collect();
            let limbs: Vec<[u64; 5]> = known.iter().map(|limbs| limbs.unwrap_or_default()).collect();
            lines.clear();
            let lifted = match self.kernel {
                Kernel::Plain(l) => lift(l, &limbs, &mut lines),
                Kernel::Word(l) => lift(l, &limbs, &mut lines),
                #[cfg(target_arch = "x86_64")]
                Kernel::Ifma512(l) => lift(l, &limbs, &mut lines),
                #[cfg(target_arch = "x86_64")]
                Kernel::Ifma256Vl(l) => lift(l, &limbs, &mut lines),
                #[cfg(target_arch = "x86_64")]
                Kernel::Ifma256Avx(l) => lift(l, &limbs, &mut lines),
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx2(l) => lift(l, &limbs, &mut lines),
                #[cfg(target_arch = "aarch64")]
                Kernel::Neon(l) => lift(l, &limbs, &mut lines),
            };
            found.extend(known.iter().zip(lifted).map(|(limbs, is_point)| limbs.is_some() && is_point));
        }
        found
    }

    /// Returns the public key of each private key that protects nothing, in memory that depends on the keys; `None` if
    /// the lanes have none.
    pub(crate) fn public_keys(&self, secrets: &[[u8; 32]]) -> Vec<Option<PublicPoint>> {
        // Zero has no point, and neither has what is not below the order here.
        let known = |secret: &[u8; 32]| Some(words(secret)).filter(|k| is_below(k, &ORDER)).unwrap_or_default();
        let numbers: Vec<[u64; 4]> = secrets.iter().map(known).collect();
        let points = match self.kernel {
            Kernel::Plain(l) => known::points(l, &numbers),
            Kernel::Word(l) => known::points(l, &numbers),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma512(l) => known::points(l, &numbers),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Vl(l) => known::points(l, &numbers),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Avx(l) => known::points(l, &numbers),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(l) => known::points(l, &numbers),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(l) => known::points(l, &numbers),
        };
        let public = |Point { x, is_odd }| PublicPoint { x, is_odd };
        points.into_iter().map(|point| point.map(public)).collect()
    }

    /// Signs with keys that protect nothing, in memory that depends on the keys; `None` where libsecp256k1 must sign.
    pub(crate) fn sign_openly(&self, wanted: &[TestSignature]) -> Vec<Option<[u8; 64]>> {
        match self.kernel {
            Kernel::Plain(l) => known::sign(l, wanted),
            Kernel::Word(l) => known::sign(l, wanted),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma512(l) => known::sign(l, wanted),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Vl(l) => known::sign(l, wanted),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Avx(l) => known::sign(l, wanted),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(l) => known::sign(l, wanted),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(l) => known::sign(l, wanted),
        }
    }

    fn decide(&self, kind: Kind, checks: &[Prepared], verdict: &mut impl FnMut(usize, Option<bool>)) {
        let has_equation = kind == Kind::Schnorr && checks.len() >= self.batch_checks_min && !self.failures.is_alone();
        let least = if has_equation { self.batch_checks_min } else { usize::MAX };
        let (curve, seed, count) = (secp256k1(), &self.seed, checks.len() as u64);
        let checks = Waiting { checks, spare: &self.spare };
        let together = match self.kernel {
            Kernel::Plain(l) => decide_with(l, kind, checks, curve, (least, seed), verdict),
            Kernel::Word(l) => decide_with(l, kind, checks, curve, (least, seed), verdict),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma512(l) => decide_with(l, kind, checks, curve, (least, seed), verdict),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Vl(l) => decide_with(l, kind, checks, curve, (least, seed), verdict),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Avx(l) => decide_with(l, kind, checks, curve, (least, seed), verdict),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(l) => decide_with(l, kind, checks, curve, (least, seed), verdict),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(l) => decide_with(l, kind, checks, curve, (least, seed), verdict),
        };
        self.together.fetch_add(together, Ordering::Relaxed);
        if has_equation {
            self.failures.record(together == count);
        }
    }
}

/// Checks that wait for their verdict, and memory for it.
#[derive(Clone, Copy, Debug)]
struct Waiting<'a> {
    checks: &'a [Prepared],
    spare: &'a Spare,
}

/// Decides checks together where this is faster, and the remaining ones individually. Returns how many were decided
/// together.
fn decide_with<L: Lanes>(
    l: L,
    kind: Kind,
    Waiting { checks, spare }: Waiting<'_>,
    curve: Group<'static>,
    (batch_checks_min, seed): (usize, &[u8; 32]),
    verdict: &mut impl FnMut(usize, Option<bool>),
) -> u64 {
    spare.with(l, checks.len(), |memory| {
        let open: Vec<Prepared>;
        let alone = if kind == Kind::Schnorr && checks.len() >= batch_checks_min {
            open = settle(l, checks, curve.tables, seed, &mut memory.buckets, verdict);
            &open
        } else {
            checks
        };
        for portion in alone.chunks(PORTION_CHECKS_MAX) {
            decide(l, kind, portion, curve, &mut memory.sums, verdict);
        }
        (checks.len() - alone.len()) as u64
    })
}

impl Engine for LaneEngine {
    fn name(&self) -> &'static str {
        match self.kernel {
            Kernel::Plain(_) => Plain::NAME,
            Kernel::Word(_) => Word::NAME,
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma512(_) => Ifma512::NAME,
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Vl(_) => Ifma256Vl::NAME,
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Avx(_) => Ifma256Avx::NAME,
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(_) => Avx2::NAME,
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(_) => Neon::NAME,
        }
    }

    fn sign(&self, wanted: &[ToSign], seed: &[u8; 32]) -> Vec<Option<[u8; 64]>> {
        let mut made = match self.kernel {
            Kernel::Plain(l) => sign(l, wanted, seed),
            // It branches on values, and these are secret.
            Kernel::Word(_) => vec![None; wanted.len()],
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma512(l) => sign(l, wanted, seed),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Vl(l) => sign(l, wanted, seed),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ifma256Avx(l) => sign(l, wanted, seed),
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2(l) => sign(l, wanted, seed),
            #[cfg(target_arch = "aarch64")]
            Kernel::Neon(l) => sign(l, wanted, seed),
        };
        for (made, one) in made.iter_mut().zip(wanted) {
            *made = made.or_else(|| one.by_library());
        }
        made
    }

    fn verify(&self, checks: &[Check], verdicts: &mut [bool]) {
        assert_eq!(checks.len(), verdicts.len(), "one verdict for each check");
        let mut waiting: [(Kind, Vec<Prepared>); 3] =
            [Kind::Ecdsa, Kind::Schnorr, Kind::Tweak].map(|kind| (kind, Vec::new()));
        let (mut by_lanes, mut by_reference) = (0, 0);
        let mut settle = |index: usize, verdict: Option<bool>| {
            if let Some(holds) = verdict {
                verdicts[index] = holds;
                by_lanes += 1;
            } else {
                verdicts[index] = Reference.check(&checks[index]);
                by_reference += 1;
            }
        };
        for (index, check) in checks.iter().enumerate() {
            let Some((kind, prepared)) = prepare(index, check) else {
                settle(index, None);
                continue;
            };
            for (of, portion) in &mut waiting {
                if *of == kind {
                    portion.push(prepared);
                    let full = if kind == Kind::Schnorr { BATCH_CHECKS_MAX } else { PORTION_CHECKS_MAX };
                    if portion.len() == full {
                        self.decide(kind, portion, &mut settle);
                        portion.clear();
                    }
                }
            }
        }
        for (kind, portion) in &waiting {
            if portion.len() < LANE_CHECKS_MIN {
                portion.iter().for_each(|prepared| settle(prepared.index, None));
            } else {
                self.decide(*kind, portion, &mut settle);
            }
        }
        self.lanes.fetch_add(by_lanes, Ordering::Relaxed);
        self.reference.fetch_add(by_reference, Ordering::Relaxed);
    }
}
