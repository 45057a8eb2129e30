//! The floor of this machine: how long the checks of a run would take if there were nothing else to do. Input: the
//! number of checks and of workers. Output: seconds, from a measurement of about 50 ms with the reference or with a
//! kernel in batches. Decides nothing.

use crate::process::NodeClock;
use lydian_curve::{Check, Engine, PublicKeyBytes, Reference};
use lydian_engine::StageClock;
use lydian_script::CheckCounts;

/// Checks of one kind in a measurement of the reference.
const COUNT: usize = 256;

/// The same for a kernel, which needs large batches.
const KERNEL_COUNT: usize = 1_024;

/// A key, a message, and signatures and a tweak that are valid for them; made for this measurement.
const KEY: &str = "ea92b517c5cec8c7816c4b3d724bc5b90315b3b96f83e79be10b427acb0b7c49";
const MESSAGE: &str = "2f9fdaa9427284e917401782d47af088d679c1e35c86c1d457f093c534b97c2d";
const ECDSA: &str = "fac46cbc3acee5032f2a4d01a6baf3b3c2b787df0a5d927ade58cffd8216658a14b2414f1e94d4524e3fedde95207511b3de8d396d7924c5a982f07895e52284";
const SCHNORR: &str = "ebd1aa936320fb8438ec16dbb7c0ad97f64988450615de786e6d285baa5de52e5e7e381a05244f6e1a6a778eebbb34fc96916f30309fd244fbea3a4635b0bd5e";
const TWEAK: &str = "d16b82faa34d791c63ffdc01c1afe879ef16c4f1600fa7b8f6b7c041867c019c";
const OUTPUT: &str = "69f372e0d298f32801f99fbf749664cc4b3033f173889a52f7363eedfab7108e";

/// Nanoseconds that a check takes on one core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Floor {
    pub(crate) signature_ns: f64,
    pub(crate) tweak_ns: f64,
}

impl Floor {
    /// Measures three times and keeps the fastest, because other processes may interfere.
    pub(crate) fn measure(engine: &dyn Engine) -> Floor {
        let [ecdsa, schnorr, tweak] =
            checks().map(|check| (0..3).map(|_| measure(engine, check)).fold(f64::INFINITY, f64::min));
        Floor { signature_ns: f64::midpoint(ecdsa, schnorr), tweak_ns: tweak }
    }

    /// Seconds that this number of workers needs for the checks alone.
    pub(crate) fn seconds(&self, counts: &CheckCounts, workers: usize) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
        let [signatures, tweaks, workers] =
            [(counts.ecdsa + counts.schnorr) as f64, counts.tweak as f64, workers.max(1) as f64];
        (signatures * self.signature_ns + tweaks * self.tweak_ns) / workers / 1e9
    }
}

fn measure(engine: &dyn Engine, check: Check) -> f64 {
    let count = if engine.name() == Reference.name() { COUNT } else { KERNEL_COUNT };
    let (checks, mut verdicts) = (vec![check; count], vec![false; count]);
    let start = NodeClock.thread_cpu_ns();
    engine.verify(&checks, &mut verdicts);
    let nanos = NodeClock.thread_cpu_ns().saturating_sub(start);
    assert!(verdicts.iter().all(|holds| *holds), "the checks of the measurement hold");
    #[allow(clippy::cast_precision_loss, reason = "shown with one digit")]
    let nanos = nanos as f64 / count as f64;
    nanos
}

fn checks() -> [Check; 3] {
    let (key, message) = (bytes(KEY), bytes(MESSAGE));
    let compressed = [&[3], &key[..]].concat();
    let tweak = Check::Tweak { output: bytes(OUTPUT), is_odd: true, internal: key, tweak: bytes(TWEAK) };
    let schnorr = Check::Schnorr { key, message, signature: bytes(SCHNORR) };
    match PublicKeyBytes::new(&compressed) {
        Some(key) => [Check::Ecdsa { key, message, signature: bytes(ECDSA) }, schnorr, tweak],
        None => [schnorr, schnorr, tweak],
    }
}

fn bytes<const SIZE: usize>(digits: &str) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    for (index, digit) in digits.chars().enumerate() {
        let value = digit.to_digit(16).and_then(|value| u8::try_from(value).ok()).unwrap_or(0);
        bytes[index / 2] |= value << (4 * (1 - index % 2));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_checks_hold_and_are_of_three_kinds() {
        let checks = checks();
        let mut verdicts = [false; 3];
        Reference.verify(&checks, &mut verdicts);
        assert_eq!(verdicts, [true; 3]);
        assert!(matches!(checks, [Check::Ecdsa { .. }, Check::Schnorr { .. }, Check::Tweak { .. }]));
    }

    #[test]
    fn the_floor_is_checks_times_nanoseconds_by_workers() {
        let floor = Floor { signature_ns: 30_000.0, tweak_ns: 20_000.0 };
        let counts = CheckCounts { ecdsa: 600_000, schnorr: 7_000, tweak: 23_000 };
        assert!((floor.seconds(&counts, 2) - 9.335).abs() < 1e-9);
        for engine in lydian_curve::engines() {
            let measured = Floor::measure(&*engine);
            assert!(measured.signature_ns > 200.0 && measured.tweak_ns > 200.0, "{}: {measured:?}", engine.name());
        }
    }
}
