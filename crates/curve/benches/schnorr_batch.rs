//! Schnorr checks by one equation compared with the same checks individually, both in lanes.
//!
//! Includes the cost of a false check. Time is thread CPU time; the two ways alternate, so that both run under the same
//! conditions. Every verdict is asserted.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench fails on bad data and prints its ratios")]

use lydian_curve::{Check, Engine, LaneEngine};
use rustix::time::{ClockId, clock_gettime};
use secp256k1::{Keypair, SecretKey, schnorr};
use std::time::Duration;

/// Sizes of batches, in checks.
const SIZES: [u32; 9] = [64, 96, 128, 256, 512, 1_024, 2_048, 4_096, 8_192];
/// Number of rounds; the median is reported.
const ROUNDS: usize = 31;

fn main() {
    let rounds = if std::env::args().any(|argument| argument == "--test") { 1 } else { ROUNDS };
    println!("| kernel | checks | keys | one by one, us | one equation, us | times |");
    println!("|---|---|---|---|---|---|");
    let alone = LaneEngine::available().into_iter().map(|engine| engine.with_batch_checks_min(usize::MAX));
    let together = LaneEngine::available().into_iter().map(|engine| engine.with_batch_checks_min(1));
    for engines in alone.zip(together) {
        for size in if rounds == 1 { &SIZES[..1] } else { &SIZES[..] } {
            for (name, keys) in
                [("all distinct", u32::MAX), ("4 checks a key", size / 4), ("64 checks a key", size / 64)]
            {
                let checks: Vec<Check> = (0..*size).map(|number| check(number, number % keys)).collect();
                report(&engines, name, &checks, None, rounds);
            }
            let mut checks: Vec<Check> = (0..*size).map(|number| check(number, number)).collect();
            let culprit = checks.len() / 3;
            let Check::Schnorr { message, .. } = &mut checks[culprit] else { unreachable!() };
            message[31] ^= 1;
            report(&engines, "all distinct, one check false", &checks, Some(culprit), rounds);
        }
    }
}

fn report(
    (one_by_one, equation): &(LaneEngine, LaneEngine),
    name: &str,
    checks: &[Check],
    culprit: Option<usize>,
    rounds: usize,
) {
    let mut verdicts = vec![false; checks.len()];
    let mut samples: Vec<[f64; 2]> = Vec::new();
    for _ in 0..rounds {
        let alone = time(|| one_by_one.verify(checks, &mut verdicts));
        assert!(verdicts.iter().enumerate().all(|(i, verdict)| *verdict == (Some(i) != culprit)), "{name}");
        verdicts.fill(false);
        let together = time(|| equation.verify(checks, &mut verdicts));
        assert!(verdicts.iter().enumerate().all(|(i, verdict)| *verdict == (Some(i) != culprit)), "{name}");
        let count = f64::from(u32::try_from(checks.len()).unwrap());
        samples.push([alone, together].map(|time| time.as_secs_f64() * 1e6 / count));
    }
    let median = |of: &dyn Fn(&[f64; 2]) -> f64| {
        let mut values: Vec<f64> = samples.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (alone, together, times) = (median(&|s| s[0]), median(&|s| s[1]), median(&|s| s[0] / s[1]));
    println!("| {} | {} | {name} | {alone:.2} | {together:.2} | {times:.2} |", equation.name(), checks.len());
}

/// Measures the CPU time of this thread.
fn time(work: impl FnOnce()) -> Duration {
    let now = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
    let start = now();
    work();
    now().checked_sub(start).unwrap()
}

fn check(number: u32, key: u32) -> Check {
    // No two sums of keys may be equal, because the equation would then meet equal points.
    let secret = lydian_hash::sha256(&key.to_be_bytes());
    let pair = Keypair::from_secret_key(&SecretKey::from_secret_bytes(secret).unwrap());
    let mut message = [7; 32];
    message[..4].copy_from_slice(&number.to_be_bytes());
    let signature = schnorr::sign_no_aux_rand(&message, &pair).to_byte_array();
    Check::Schnorr { key: pair.x_only_public_key().0.to_byte_array(), message, signature }
}
