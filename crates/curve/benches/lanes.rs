//! Checks in lanes compared with libsecp256k1, including parsing of keys on both sides.
//!
//! Covers every kind of check, large and small batches, and the batches that an adversary would send. Time is thread
//! CPU time. Data: signatures made with hashed secrets, because sums of the keys of consecutive ones meet in the
//! equation of Schnorr checks, which then fails; every verdict is asserted.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench fails on bad data and prints its ratios")]

#[path = "../tests/common/equal_points.rs"]
mod equal_points;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use equal_points::equal_points;
use lydian_curve::{Check, Engine, LaneEngine, PublicKeyBytes, Reference};
use rustix::time::{ClockId, clock_gettime};
use secp256k1::{Keypair, Message, Parity, PublicKey, Scalar, SecretKey, ecdsa, schnorr};
use std::time::Duration;

/// Number of checks in the large batches.
const LARGE: u32 = 1_024;

/// `ENGINE KIND SIZE ROUNDS`: verify one batch this number of times, and do nothing else, so that an emulator can count
/// the instructions (`tools/arm64.sh instructions`).
const COUNT: &str = "LYDIAN_COUNT";

fn counted(_: &mut Criterion) {
    let Ok(wanted) = std::env::var(COUNT) else { return };
    let words: Vec<&str> = wanted.split(' ').collect();
    let [engine, kind, size, rounds] = words[..] else { panic!("{COUNT}=ENGINE KIND SIZE ROUNDS") };
    let check = check_of(COUNT, kind);
    let engines = lydian_curve::engines();
    let engine = engines.iter().find(|known| known.name() == engine).unwrap();
    let checks: Vec<Check> = (1..=size.parse().unwrap()).map(check).collect();
    let mut verdicts = vec![false; checks.len()];
    for _ in 0..rounds.parse::<u32>().unwrap() {
        engine.verify(&checks, &mut verdicts);
        assert!(verdicts.iter().all(|verdict| *verdict));
    }
}

/// `KIND SIZE ROUNDS`: every engine verifies the batch once a round, and nothing else is done. On a machine whose speed
/// changes, the ratios within rounds tell more than the times.
const TURNS: &str = "LYDIAN_TURNS";

fn in_turn(_: &mut Criterion) {
    let Ok(wanted) = std::env::var(TURNS) else { return };
    let words: Vec<&str> = wanted.split(' ').collect();
    let [kind, size, rounds] = words[..] else { panic!("{TURNS}=KIND SIZE ROUNDS") };
    let check = check_of(TURNS, kind);
    let size: u32 = size.parse().unwrap();
    let checks: Vec<Check> = (1..=size).map(check).collect();
    let mut verdicts = vec![false; checks.len()];
    let engines = lydian_curve::engines();
    let mut times = vec![Vec::new(); engines.len()];
    for round in 0..rounds.parse::<usize>().unwrap() {
        for turn in 0..engines.len() {
            let at = (round + turn) % engines.len();
            let before = cpu_time();
            engines[at].verify(&checks, &mut verdicts);
            times[at].push(cpu_time().checked_sub(before).unwrap().as_secs_f64() * 1e6 / f64::from(size));
            assert!(verdicts.iter().all(|verdict| *verdict));
        }
    }
    let lowest_and_median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[0], values[values.len() / 2])
    };
    // The last one is the reference.
    let reference = times[times.len() - 1].clone();
    for (engine, times) in engines.iter().zip(times) {
        let ratios = reference.iter().zip(&times).map(|(of_reference, time)| of_reference / time).collect();
        let ((_, ratio), (lowest, time)) = (lowest_and_median(ratios), lowest_and_median(times));
        println!("{:9} {time:.2} us a check, lowest {lowest:.2}; reference / this {ratio:.2}", engine.name());
    }
}

fn check_of(variable: &str, kind: &str) -> fn(u32) -> Check {
    match kind {
        "ecdsa" => ecdsa_check,
        "schnorr" => schnorr_check,
        "tweak" => tweak_check,
        other => panic!("{variable}: no kind of check is named {other}"),
    }
}

fn bench(c: &mut Criterion) {
    if std::env::var_os(COUNT).is_some() || std::env::var_os(TURNS).is_some() {
        return;
    }
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(Reference)];
    engines.extend(LaneEngine::available().into_iter().map(|engine| Box::new(engine) as Box<dyn Engine>));
    let data = [
        ("ecdsa", (1..=LARGE).map(ecdsa_check).collect::<Vec<_>>()),
        ("schnorr", (1..=LARGE).map(schnorr_check).collect()),
        ("tweak", (1..=LARGE).map(tweak_check).collect()),
        ("ecdsa of 16", (1..=16).map(ecdsa_check).collect()),
        ("schnorr of 16", (1..=16).map(schnorr_check).collect()),
        ("worst: equal points", (1..=LARGE).map(equal_points_check).collect()),
        (
            "worst: equal points, every second portion",
            (1..=4 * LARGE).map(|i| mixed_check(i, (i - 1) & LARGE == 0)).collect(),
        ),
        ("worst: equal points, every second check", (1..=LARGE).map(|i| mixed_check(i, i % 2 == 0)).collect()),
        ("worst: equal points, one lane in eight", (1..=LARGE).map(|i| mixed_check(i, i % 8 == 0)).collect()),
        ("worst: equal points, of 16", (1..=16).map(equal_points_check).collect()),
        ("uncompressed", (1..=LARGE).map(uncompressed_check).collect()),
    ];
    for (name, checks) in &data {
        let mut group = c.benchmark_group(*name);
        group.throughput(Throughput::Elements(u64::try_from(checks.len()).unwrap()));
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2)).sample_size(20);
        for engine in &engines {
            let mut verdicts = vec![false; checks.len()];
            group.bench_function(engine.name(), |bencher| {
                bencher.iter_custom(|rounds| {
                    let start = cpu_time();
                    for _ in 0..rounds {
                        engine.verify(checks, &mut verdicts);
                    }
                    cpu_time().checked_sub(start).unwrap()
                });
                assert!(verdicts.iter().all(|verdict| *verdict), "{name}");
            });
        }
        group.finish();
    }
}

/// Number of rounds; in each, one thread runs first, then two.
const ROUNDS: usize = 15;

/// Runs the same batch on one thread, and on each of two threads at once: medians of the wall-clock time, and of the
/// CPU time per thread. Only with the argument `threads`, because the result is meaningful only on an otherwise idle
/// machine.
fn two_threads(_: &mut Criterion) {
    if !std::env::args().any(|argument| argument == "threads") {
        return;
    }
    let checks: Vec<Check> = (1..=8 * LARGE).map(ecdsa_check).collect();
    for engine in LaneEngine::available() {
        let work = || {
            let (mut verdicts, start) = (vec![false; checks.len()], cpu_time());
            engine.verify(&checks, &mut verdicts);
            assert!(verdicts.iter().all(|verdict| *verdict));
            cpu_time().checked_sub(start).unwrap()
        };
        let mut times: [Vec<Duration>; 4] = Default::default();
        for _ in 0..ROUNDS {
            let start = wall_time();
            let cpu = std::thread::scope(|scope| scope.spawn(work).join().unwrap());
            times[0].push(wall_time().checked_sub(start).unwrap());
            times[1].push(cpu);
            let start = wall_time();
            let cpu = std::thread::scope(|scope| {
                let other = scope.spawn(work);
                (scope.spawn(work).join().unwrap() + other.join().unwrap()) / 2
            });
            times[2].push(wall_time().checked_sub(start).unwrap());
            times[3].push(cpu);
        }
        let [one_wall, one_cpu, two_wall, two_cpu] = times.map(|mut times| {
            times.sort();
            times[ROUNDS / 2].as_secs_f64()
        });
        let (by_wall, by_cpu) = (2.0 * one_wall / two_wall, 2.0 * one_cpu / two_cpu);
        println!("two threads at once, {}: {by_wall:.2} times one by the wall, {by_cpu:.2} by CPU time", engine.name());
    }
}

fn wall_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Monotonic)).unwrap()
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}

fn secret(number: u32) -> SecretKey {
    SecretKey::from_secret_bytes(lydian_hash::sha256(&number.to_be_bytes())).unwrap()
}

fn message(number: u32) -> [u8; 32] {
    let mut message = [7; 32];
    message[..4].copy_from_slice(&number.to_be_bytes());
    message
}

fn ecdsa_check(number: u32) -> Check {
    let (key, message) = (secret(number), message(number));
    let signature = ecdsa::sign(Message::from_digest(message), &key).serialize_compact();
    let key = PublicKeyBytes::new(&PublicKey::from_secret_key(&key).serialize()).unwrap();
    Check::Ecdsa { key, message, signature }
}

/// A check with an uncompressed key.
fn uncompressed_check(number: u32) -> Check {
    let Check::Ecdsa { message, signature, .. } = ecdsa_check(number) else { unreachable!() };
    let key = PublicKey::from_secret_key(&secret(number)).serialize_uncompressed();
    Check::Ecdsa { key: PublicKeyBytes::new(&key).unwrap(), message, signature }
}

fn equal_points_check(number: u32) -> Check {
    equal_points(&secret(number), true)
}

fn mixed_check(number: u32, is_exceptional: bool) -> Check {
    if is_exceptional { equal_points_check(number) } else { ecdsa_check(number) }
}

fn schnorr_check(number: u32) -> Check {
    let (pair, message) = (Keypair::from_secret_key(&secret(number)), message(number));
    let signature = schnorr::sign_no_aux_rand(&message, &pair).to_byte_array();
    Check::Schnorr { key: pair.x_only_public_key().0.to_byte_array(), message, signature }
}

fn tweak_check(number: u32) -> Check {
    let (internal, tweak) = (Keypair::from_secret_key(&secret(number)).x_only_public_key().0, message(number));
    let (output, parity) = internal.add_tweak(&Scalar::from_be_bytes(tweak).unwrap()).unwrap();
    let (output, internal) = (output.to_byte_array(), internal.to_byte_array());
    Check::Tweak { output, is_odd: parity == Parity::Odd, internal, tweak }
}

criterion_group!(benches, counted, in_turn, bench, two_threads);
criterion_main!(benches);
