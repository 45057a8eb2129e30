//! What several benchmarks of the engine use: [`free`], signatures that cost nothing.

use lydian_curve::{Check, Engine, Refereed, Sampling};
use std::num::NonZeroU64;

/// An engine that accepts every signature, to measure all other costs. For benchmarks only.
struct Free;

impl Engine for Free {
    fn name(&self) -> &'static str {
        "none"
    }

    fn verify(&self, _: &[Check], verdicts: &mut [bool]) {
        verdicts.fill(true);
    }
}

/// Accepts every signature. Without sampling: the reference would report the false pairs of multisigs as disagreements.
pub(crate) fn free() -> Refereed {
    let sampling = Sampling { interval: NonZeroU64::MAX, seed: [0; 32] };
    Refereed::new(Box::new(Free), sampling, Box::new(|_| {}))
}
