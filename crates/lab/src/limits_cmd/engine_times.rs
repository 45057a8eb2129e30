//! Measures the cost of a check with each engine of this machine, in batches, and computes the cost of a chain's
//! checks.
//!
//! Input: valid checks, number of rounds. Output: CPU time of one thread per check of each kind, in batches of 1,024
//! and of 16, for every kernel this CPU supports and for the reference; medians with minimum and maximum. Asserted:
//! every check is valid, and a kernel decided each itself. Cost: some rounds of the checks for each engine. It must
//! never report the reference's time as a kernel's.

use super::measure::{Measure, as_f64, cpu_seconds_of};
use lydian_chains::chain_files::CheckCounts;
use lydian_curve::{Check, Engine, LaneEngine, Reference};
use serde::Serialize;

/// The batch sizes measured: a full batch, and that of a small block.
const LARGE_BATCH: usize = 1_024;
const SMALL_BATCH: usize = 16;

/// Nanoseconds per check, on one core.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct KindTimes {
    pub ecdsa_ns: Measure,
    pub schnorr_ns: Measure,
    pub tweak_ns: Measure,
}

/// One engine's figures.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EngineTimes {
    pub engine: &'static str,
    pub batch_1024: KindTimes,
    pub batch_16: KindTimes,
    /// The core seconds for a chain's checks at the times of the large batch, if a chain was given.
    pub floor_core_seconds: Option<f64>,
}

/// Valid checks of each kind.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) ecdsa: Vec<Check>,
    pub(crate) schnorr: Vec<Check>,
    pub(crate) tweak: Vec<Check>,
}

/// Measures every kernel this CPU supports, the fastest first, then the reference.
pub(crate) fn measure_engines(samples: &Samples, rounds: usize, chain: Option<CheckCounts>) -> Vec<EngineTimes> {
    let mut times: Vec<EngineTimes> = LaneEngine::available()
        .iter()
        .map(|engine| {
            let times = measure(engine, samples, rounds, chain);
            let tally = engine.tally();
            assert_eq!(tally.reference, 0, "{}: the reference decided a check for it", engine.name());
            times
        })
        .collect();
    times.push(measure(&Reference, samples, rounds, chain));
    times
}

fn measure(engine: &dyn Engine, samples: &Samples, rounds: usize, chain: Option<CheckCounts>) -> EngineTimes {
    let kinds = |batch| KindTimes {
        ecdsa_ns: check_ns(engine, &samples.ecdsa, batch, rounds),
        schnorr_ns: check_ns(engine, &samples.schnorr, batch, rounds),
        tweak_ns: check_ns(engine, &samples.tweak, batch, rounds),
    };
    let (batch_1024, batch_16) = (kinds(LARGE_BATCH), kinds(SMALL_BATCH));
    let floor_core_seconds = chain.map(|counts| floor_seconds(&batch_1024, counts));
    EngineTimes { engine: engine.name(), batch_1024, batch_16, floor_core_seconds }
}

fn floor_seconds(times: &KindTimes, counts: CheckCounts) -> f64 {
    let of = |count, measure: &Measure| as_f64(count) * measure.median / 1e9;
    of(counts.ecdsa, &times.ecdsa_ns) + of(counts.schnorr, &times.schnorr_ns) + of(counts.tweaks, &times.tweak_ns)
}

/// Uses full batches only, at least one: if there are too few checks, they repeat. The first round is a warm-up and is
/// discarded.
fn check_ns(engine: &dyn Engine, checks: &[Check], batch: usize, rounds: usize) -> Measure {
    let count = (checks.len() / batch).max(1) * batch;
    let checks: Vec<Check> = checks.iter().copied().cycle().take(count).collect();
    let mut verdicts = vec![false; batch];
    let round = || {
        cpu_seconds_of(|| {
            for checks in checks.chunks_exact(batch) {
                verdicts.fill(false);
                engine.verify(checks, &mut verdicts);
                assert!(verdicts.iter().all(|&verdict| verdict), "{}: a valid check was rejected", engine.name());
            }
        })
    };
    let seconds: Vec<f64> = std::iter::repeat_with(round).take(rounds + 1).skip(1).collect();
    Measure::of(seconds.iter().map(|seconds| seconds * 1e9 / as_f64(count as u64)).collect())
}

impl EngineTimes {
    /// Two lines of text; the last figure is the speed relative to the reference.
    pub(crate) fn lines(&self, reference: &EngineTimes) -> Vec<String> {
        let batches = [
            (LARGE_BATCH, &self.batch_1024, &reference.batch_1024),
            (SMALL_BATCH, &self.batch_16, &reference.batch_16),
        ];
        let mut lines = Vec::new();
        for (batch, times, reference) in batches {
            let one = |name: &str, measure: &Measure, reference: &Measure| {
                let (us, times) = (measure.median / 1e3, reference.median / measure.median);
                format!("{name} {us:.2} us [{:.2} - {:.2}] x{times:.1}", measure.min / 1e3, measure.max / 1e3)
            };
            lines.push(format!(
                "{:9} batches of {batch:5}: {}; {}; {}",
                self.engine,
                one("ECDSA", &times.ecdsa_ns, &reference.ecdsa_ns),
                one("Schnorr", &times.schnorr_ns, &reference.schnorr_ns),
                one("tweak", &times.tweak_ns, &reference.tweak_ns)
            ));
        }
        if let Some(seconds) = self.floor_core_seconds {
            lines.push(format!("{:9} floor of the chain: {seconds:.2} core seconds", self.engine));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_is_counts_times_prices() {
        let ns = |median| Measure { median, min: median, max: median };
        let times = KindTimes { ecdsa_ns: ns(2_000.0), schnorr_ns: ns(3_000.0), tweak_ns: ns(500.0) };
        let seconds = floor_seconds(&times, CheckCounts { ecdsa: 1_000_000, schnorr: 10_000, tweaks: 2_000 });
        assert!((seconds - 2.031).abs() < 1e-9, "{seconds}");
    }
}
