//! The same node on other machines: more cores of this processor, a Raspberry Pi 5, the machine of the published
//! benchmarks.
//!
//! Input: a node's projection, its checks at libsecp256k1's price, and that of Bitcoin Core from the same experiment.
//! Output: wall hours with bounds, and the formula. Another processor may lack the instructions of the measured lanes:
//! the checks then cost their price at libsecp256k1 divided by the speed of the lanes that it has. A node that took
//! less than that price used lanes. On the machine of the published benchmarks, a node takes Core's published time
//! times its share of Core's projected CPU time. Invariant: a speed that is not measured has bounds, and the text says
//! so.

use super::{NodeProjection, Projection, Range};
use crate::history::{Entry, History, Outcome};
use serde::Serialize;

/// The node whose published time is known.
const CORE: &str = "bitcoind";
/// Its name in the published benchmarks, and the year.
const PUBLISHED: (&str, u32) = ("Bitcoin Core", 2025);

/// More cores of the processor of the runs.
const CORES: [usize; 2] = [8, 16];

/// Speed of the lanes of another processor, compared with libsecp256k1 on it: AVX2 as measured for ECDSA
/// (`docs/benchmarks/lanes.md`).
const AVX2_SPEED: Range = Range { low: 2.0, middle: 2.1, high: 2.3 };
/// From libsecp256k1 itself to the estimate for NEON in 26-bit limbs.
const NEON_SPEED: Range = Range { low: 1.0, middle: 1.5, high: 2.5 };

const PI_CORES: usize = 4;
/// Time of one core of a Raspberry Pi 5 (Cortex-A76 at 2.4 GHz), compared with the processor of the runs: an
/// assumption, since no measurement was found.
const PI_TIME: Range = Range { low: 3.0, middle: 4.0, high: 6.0 };

/// A node on another machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OnMachine {
    pub machine: String,
    pub wall_seconds: Range,
    pub formula: String,
    /// The published time of the node itself on this machine, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published_seconds: Option<f64>,
}

/// What a node's CPU time consists of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Parts {
    pub(super) all: Range,
    /// Without the checks.
    pub(super) rest: Range,
    /// The checks at libsecp256k1's measured price; zero if it is unknown.
    pub(super) checks: Range,
}

impl Parts {
    /// Whether it took less than libsecp256k1 takes for the checks.
    fn has_lanes(&self) -> bool {
        self.all.middle < self.checks.middle
    }

    /// CPU seconds with lanes of this speed instead of the measured ones, and the formula.
    fn with_lanes(&self, speed: Range) -> (Range, String) {
        if !self.has_lanes() {
            return (self.all, format!("{} h of CPU", hours(self.all)));
        }
        // The slowest lanes are at the high bound.
        let seconds = Range {
            low: self.rest.low + self.checks.low / speed.high,
            middle: self.rest.middle + self.checks.middle / speed.middle,
            high: self.rest.high + self.checks.high / speed.low,
        };
        let speed = format!("{} [{}-{}]", speed.middle, speed.low, speed.high);
        (seconds, format!("({} h + checks {} h / {speed}) of CPU", hours(self.rest), hours(self.checks)))
    }
}

/// Adds the machines to every node.
pub(super) fn add(projection: &mut Projection) {
    let core = |node: &NodeProjection| {
        let of = projection.nodes.iter().find(|core| core.node == CORE && core.experiment == node.experiment);
        of.map(|core| core.parts.all)
    };
    let cores: Vec<Option<Range>> = projection.nodes.iter().map(core).collect();
    let height = projection.counts.target.height;
    for (node, core) in projection.nodes.iter_mut().zip(cores) {
        let Some(largest) = node.measured.iter().max_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds)) else {
            continue;
        };
        let share = |cores: usize| super::wall_share(largest, cores);
        let mut found: Vec<OnMachine> = CORES
            .into_iter()
            .map(|cores| {
                let (fast, slow) = share(cores);
                OnMachine {
                    machine: format!("{cores} cores of this processor"),
                    wall_seconds: spread(node.parts.all, fast, slow),
                    formula: format!("{} h of CPU x [{fast:.4}-{slow:.4}]", hours(node.parts.all)),
                    published_seconds: None,
                }
            })
            .collect();
        found.push(on_pi(&node.parts, share(PI_CORES)));
        found.extend(core.and_then(|core| on_published(&node.node, &node.parts, core, height)));
        node.machines = found;
    }
}

/// The time of `cpu` on cores that make it take between these shares.
fn spread(cpu: Range, fast: f64, slow: f64) -> Range {
    Range { low: cpu.low * fast, middle: cpu.middle * f64::midpoint(fast, slow), high: cpu.high * slow }
}

fn on_pi(parts: &Parts, (fast, slow): (f64, f64)) -> OnMachine {
    let (cpu, formula) = parts.with_lanes(NEON_SPEED);
    let here = spread(cpu, fast, slow);
    let wall_seconds =
        Range { low: here.low * PI_TIME.low, middle: here.middle * PI_TIME.middle, high: here.high * PI_TIME.high };
    let Range { low, middle, high } = PI_TIME;
    OnMachine {
        machine: "Raspberry Pi 5, 4 cores".to_owned(),
        wall_seconds,
        formula: format!("{formula} x [{fast:.4}-{slow:.4}] x {middle} [{low}-{high}], assumed"),
        published_seconds: None,
    }
}

/// `None` if nothing is published for this height.
fn on_published(node: &str, parts: &Parts, core: Range, height: u32) -> Option<OnMachine> {
    let edition = History::load().edition(PUBLISHED.1)?;
    let is_core = |entry: &&Entry| entry.system == PUBLISHED.0 && entry.outcome == Outcome::Finished;
    let entry = edition.entries.iter().find(is_core)?;
    if edition.height.as_ref().is_none_or(|figure| figure.value != f64::from(height)) || core.low <= 0.0 {
        return None;
    }
    let published = entry.minutes.value * 60.0;
    let (cpu, formula) = parts.with_lanes(AVX2_SPEED);
    let is_itself = node == CORE;
    let ratio = if is_itself {
        Range::exactly(1.0)
    } else {
        // Both projections contain the same counts, whose bounds need not be applied twice.
        Range { low: cpu.low / core.low, middle: cpu.middle / core.middle, high: cpu.high / core.high }
    };
    let version = entry.version.as_deref().unwrap_or_default();
    let formula = if is_itself {
        format!("{} {version} as published", PUBLISHED.0)
    } else {
        format!("{:.2} h, published for {} {version}, x {formula} / {} h", published / 3600.0, PUBLISHED.0, hours(core))
    };
    Some(OnMachine {
        machine: edition.machine.clone(),
        wall_seconds: Range {
            low: published * ratio.low.min(ratio.high),
            middle: published * ratio.middle,
            high: published * ratio.high.max(ratio.low),
        },
        formula,
        published_seconds: is_itself.then_some(published),
    })
}

fn hours(range: Range) -> String {
    format!("{:.2}", range.middle / 3600.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: Parts = Parts {
        all: Range { low: 9_000.0, middle: 10_000.0, high: 12_000.0 },
        rest: Range { low: 3_000.0, middle: 4_000.0, high: 5_000.0 },
        checks: Range { low: 40_000.0, middle: 42_000.0, high: 46_000.0 },
    };

    #[test]
    fn other_lanes_cost_the_reference_price_over_their_speed() {
        let (cpu, formula) = PARTS.with_lanes(AVX2_SPEED);
        assert!((cpu.low - (3_000.0 + 40_000.0 / 2.3)).abs() < 1e-6, "{cpu:?}");
        assert!((cpu.middle - 24_000.0).abs() < 1e-6, "{cpu:?}");
        assert!((cpu.high - 28_000.0).abs() < 1e-6, "{cpu:?}");
        assert_eq!(formula, "(1.11 h + checks 11.67 h / 2.1 [2-2.3]) of CPU");
        // A node that took the price of the checks or more had no lanes.
        let without = Parts { all: Range::exactly(42_000.0), ..PARTS };
        assert_eq!(without.with_lanes(AVX2_SPEED).0, without.all);
    }

    #[test]
    fn a_pi_takes_the_shares_of_four_slower_cores() {
        let on = on_pi(&PARTS, (0.25, 0.3));
        // 4,000 + 42,000 / 1.5 seconds of CPU, 0.275 of them as wall time, four times as slow.
        assert!((on.wall_seconds.middle - 32_000.0 * 0.275 * 4.0).abs() < 1e-6, "{on:?}");
        assert!((on.wall_seconds.low - (3_000.0 + 16_000.0) * 0.25 * 3.0).abs() < 1e-6, "{on:?}");
        assert!((on.wall_seconds.high - 51_000.0 * 0.3 * 6.0).abs() < 1e-6, "{on:?}");
        assert!(on.formula.ends_with("x [0.2500-0.3000] x 4 [3-6], assumed"), "{}", on.formula);
    }

    #[test]
    fn the_published_time_is_scaled_by_the_ratio_to_core() {
        let core = Range { low: 50_000.0, middle: 60_000.0, high: 70_000.0 };
        let on = on_published("lydian", &PARTS, core, 928_000).unwrap();
        // 727 minutes times 24,000 / 60,000.
        assert!((on.wall_seconds.middle - 43_620.0 * 0.4).abs() < 1e-6, "{on:?}");
        assert!(on.wall_seconds.low <= on.wall_seconds.middle && on.wall_seconds.middle <= on.wall_seconds.high);
        assert!(on.machine.contains("i7-8700") && on.published_seconds.is_none());
        let itself = on_published("bitcoind", &Parts { all: core, ..PARTS }, core, 928_000).unwrap();
        assert_eq!((itself.wall_seconds, itself.published_seconds), (Range::exactly(43_620.0), Some(43_620.0)));
        assert_eq!(on_published("lydian", &PARTS, core, 900_000), None, "nothing is published for this height");
    }
}
