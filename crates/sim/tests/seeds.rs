//! Runs many seeds on all cores and reports those that fail.
//!
//! `LYDIAN_SIM_SEEDS=N` runs N seeds; `LYDIAN_SIM_SEED=S` runs one seed and prints the node's log.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and prints what it did")]

use lydian_sim::{Met, Report, run};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const SEEDS: u64 = 1_000;

#[test]
fn the_node_comes_through_every_seed() {
    if let Some(seed) = number("LYDIAN_SIM_SEED") {
        let report = run(seed, true);
        report.log.iter().for_each(|line| eprintln!("{line}"));
        eprintln!("reached {:?}, ran for {:?}, trace {:016x}", report.reached, report.lived, report.trace);
        assert!(report.failures.is_empty(), "{:#?}", report.failures);
        return;
    }
    let count = number("LYDIAN_SIM_SEEDS").unwrap_or(SEEDS);
    let (next, reports) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    let work = || loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= count {
            return;
        }
        let report = attempt(seed);
        reports.lock().unwrap().push(report);
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let reports = reports.into_inner().unwrap();
    let lived: Duration = reports.iter().map(|report| report.lived).sum();
    let slowest = reports.iter().filter_map(|report| Some((report.reached?, report.seed))).max();
    eprintln!("{count} seeds, {} s of virtual time, the last to reach the honest chain: {slowest:?}", lived.as_secs());
    let met = reports.iter().fold(Met::default(), |sum, report| Met {
        evicted: sum.evicted + report.met.evicted,
        retries: sum.retries + report.met.retries,
        progress: sum.progress + report.met.progress,
        buffered_headers: sum.buffered_headers.max(report.met.buffered_headers),
        shortages: sum.shortages + report.met.shortages,
        memory_peak: sum.memory_peak.max(report.met.memory_peak),
    });
    eprintln!("{met:?}");
    let mut failed: Vec<_> = reports.iter().filter(|report| !report.failures.is_empty()).collect();
    failed.sort_by_key(|report| report.seed);
    for report in failed.iter().take(20) {
        eprintln!("seed {}: {:#?}", report.seed, report.failures);
    }
    let seeds: Vec<_> = failed.iter().map(|report| report.seed).collect();
    assert!(
        seeds.is_empty(),
        "{} of {count} seeds failed: {seeds:?}\nreproduce with: LYDIAN_SIM_SEED={} cargo test -p lydian-sim --test seeds -- --nocapture",
        seeds.len(),
        seeds[0]
    );
    if count >= SEEDS {
        assert!(met.evicted > 0 && met.retries > 0 && met.progress > 0 && met.buffered_headers > 7_017, "{met:?}");
    }
}

#[test]
fn a_seed_does_the_same_again() {
    for seed in [0, 1, 2, 7, 13, 17] {
        let (once, again) = (run(seed, true), run(seed, true));
        let differ = once.log.iter().zip(&again.log).find(|(a, b)| a != b);
        assert_eq!(once.trace, again.trace, "seed {seed}: {differ:?}");
        assert_eq!(once.log, again.log, "seed {seed}");
    }
    assert_ne!(run(1, false).trace, run(2, false).trace);
    assert_eq!(run(3, false).trace, run(3, true).trace, "a log changes nothing");
}

/// Runs a seed; a panic counts as a failure.
fn attempt(seed: u64) -> Report {
    catch_unwind(AssertUnwindSafe(|| run(seed, false))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let failures = vec![format!("a panic: {}", text.unwrap_or_default())];
        Report { seed, trace: 0, reached: None, lived: Duration::ZERO, failures, met: Met::default(), log: Vec::new() }
    })
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}
