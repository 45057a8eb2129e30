//! SIGTERM at random moments: of a sync, of a sync with a checkpoint every few blocks, of a change to a chain with
//! more work, and of the building of every index. A container engine kills after ten seconds. The exit is clean, and
//! the next start connects no block again. See the parent.
//!
//! `LYDIAN_STOPS`: the number of stops (by default a few; `make crash` uses 200); with it the limit of 8 seconds
//! applies, which the load of other tests could exceed.

use crate::indexes;
use crate::peers::{ADDRESS, Peer, copy, fresh};
use crate::process::{lydian, setting, words};
use lydian_chains::plan::MixSettings;
use lydian_chains::presets::mainnet_mix;
use lydian_chains::rng::Random;
use lydian_oracle::Scratch;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Default number of stops.
const STOPS: u64 = 4;

/// The target for the exit, and the limit beside other tests.
const TARGET: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(120);

/// The log of a stop that takes longer is printed, with microseconds.
const REPORTED: Duration = Duration::from_secs(2);

const BLOCKS: u32 = 440;
const FORK: u32 = 380;

/// What the node does when it is stopped.
struct Work {
    name: &'static str,
    /// The data directory that it starts with; none if it is new.
    base: Option<PathBuf>,
    arguments: Vec<String>,
    /// How long it takes.
    duration: Duration,
}

/// What was found at one stop.
struct Stopped {
    took: Duration,
    /// The height of the durable tip; `None` before the first block.
    height: Option<u64>,
}

impl Work {
    fn datadir(&self, folder: &Path) -> PathBuf {
        match &self.base {
            Some(base) => copy(base, folder),
            None => fresh(folder),
        }
    }

    /// Stops the node after this time, and looks at what it left.
    #[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
    fn stop_after(&self, delay: Duration, datadir: &Path) -> Stopped {
        let mut child = lydian(datadir, &self.arguments).arg("-logtimemicros").spawn().unwrap();
        std::thread::sleep(delay);
        assert!(child.try_wait().unwrap().is_none(), "{}: it runs until it is stopped", self.name);
        // Before signals are caught, the process ends at once and has written nothing that counts.
        let is_early = !catches_term(child.id());
        let asked = Instant::now();
        kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::TERM).unwrap();
        let output = child.wait_with_output().unwrap();
        let took = asked.elapsed();
        let code = output.status.code();
        assert!(code == Some(0) || code.is_none() && is_early, "{}: {output:?}", self.name);
        Stopped { took, height: durable_height(self.name, datadir) }
    }
}

/// Whether a process catches SIGTERM, as the kernel says.
#[allow(clippy::disallowed_methods, reason = "a test looks at the process that it started")]
fn catches_term(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
    caught >> (Signal::TERM.as_raw() - 1) & 1 == 1
}

/// The height up to which everything is durable, which is that of the tip.
fn durable_height(name: &str, datadir: &Path) -> Option<u64> {
    let output = lydian(datadir, &words(&["info", "--json"])).stdout(Stdio::piped()).output().unwrap();
    if output.status.code() == Some(3) {
        return None;
    }
    assert!(output.status.success(), "{name}: {output:?}");
    let info: Value = serde_json::from_slice(&output.stdout).unwrap();
    let height = info["durable_height"].as_u64()?;
    assert_eq!(info["height"].as_u64(), Some(height), "{name}: {info}");
    Some(height)
}

/// What the node logged after it was asked to stop.
#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
fn shutdown_lines(datadir: &Path) -> String {
    let text = std::fs::read_to_string(datadir.join("regtest/debug.log")).unwrap_or_default();
    text[text.rfind("Shutdown requested").map_or(0, |at| text[..at].rfind('\n').unwrap_or(0))..].to_owned()
}

/// Heights and hashes of the tips that were logged.
#[allow(clippy::disallowed_methods, reason = "a test reads its own files")]
fn tips(log: &Path) -> Vec<(u64, String)> {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let word = |line: &str, name: &str| line.split(' ').find_map(|word| word.strip_prefix(name).map(str::to_owned));
    let of = |line: &str| Some((word(line, "height=")?.parse().unwrap(), word(line, "best=")?));
    text.lines().filter(|line| line.contains("UpdateTip: new best=")).filter_map(of).collect()
}

/// Starts the node again: it goes on from this height, and no block that was connected before is connected a second
/// time. It may go on with a reorganisation: leave blocks, and connect others at their heights.
#[allow(clippy::disallowed_methods, reason = "a test removes its own files")]
fn start_again(name: &str, datadir: &Path, height: Option<u64>) {
    let log = datadir.join("regtest/debug.log");
    let before: BTreeSet<String> = tips(&log).into_iter().map(|(_, hash)| hash).collect();
    let _ = std::fs::remove_file(&log);
    let output = lydian(datadir, &words(&["-stopafterblockimport"])).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{name}: {output:?}");
    let Some(mut at) = height else { return };
    for (height, hash) in tips(&log) {
        let is_left = height + 1 == at;
        let is_next = height == at + 1 && !before.contains(&hash);
        assert!(is_left || is_next, "{name}: block {hash} at height {height} is connected again after {at}");
        at = height;
    }
}

/// How long the node takes for all of its work: until it is at this height and its indexes too.
#[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
fn duration(arguments: &[String], datadir: &Path, height: u32) -> Duration {
    let options: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let began = Instant::now();
    let node = Peer::start_with(datadir, &options);
    let is_done = || {
        let is_at_height = node.call("getblockcount", "[]").is_some_and(|count| count == height);
        let indexes = node.call("getindexinfo", "[]").unwrap();
        is_at_height && indexes.as_object().unwrap().values().all(|index| index["synced"] == true)
    };
    while !is_done() {
        assert!(began.elapsed() < PATIENCE, "height {height}");
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = began.elapsed();
    node.stop();
    took
}

fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    sorted[(sorted.len() * percent).div_ceil(100).saturating_sub(1)].as_secs_f64()
}

/// checklist: 86
#[test]
fn stopped_at_random_moments() {
    let scratch = Scratch::new("crash-stops");
    let place = |name: &str| scratch.path().join(name);
    let chain = place("chain");
    // Three full blocks take longer; that is left to `make crash`.
    let full = if setting("LYDIAN_STOPS").is_some() { 3 } else { 1 };
    mainnet_mix::write(MixSettings { blocks: BLOCKS, full, seed: 7, reuse_per_mille: 50 }, 2, &chain).unwrap();
    let first = fresh(&place("first"));
    let output = lydian(&first, &words(&["-copy", "import", &chain.display().to_string()])).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");

    // A chain with more work, made from the first.
    let other = copy(&first, &place("other"));
    let maker = Peer::start(&other);
    let fork = maker.call("getblockhash", &format!("[{}]", FORK + 1)).unwrap();
    maker.call("invalidateblock", &format!("[{fork}]")).unwrap();
    maker.call("generatetoaddress", &format!("[{}, \"{ADDRESS}\"]", BLOCKS + 10 - FORK)).unwrap();
    maker.stop();
    let (peer, rival) = (Peer::start(&copy(&first, &place("peer"))), Peer::start(&other));
    let from = |peer: &Peer, more: &[&str]| [vec![format!("-connect=127.0.0.1:{}", peer.port)], words(more)].concat();
    let works = [
        ("sync", None, from(&peer, &[]), BLOCKS),
        ("sync with many checkpoints", None, from(&peer, &["-dbcache=4"]), BLOCKS),
        ("reorganisation", Some(first.clone()), from(&rival, &[]), BLOCKS + 10),
        ("indexes", Some(first), indexes::options(), BLOCKS),
    ];
    let client = place("client");
    let mut random = Random::new(setting("LYDIAN_CRASH_SEED").unwrap_or(1), "crash-stops");
    let (stops, limit) = setting("LYDIAN_STOPS").map_or((STOPS, PATIENCE), |stops| (stops, TARGET));
    let mut all = Vec::new();
    for (name, base, arguments, height) in works {
        let mut work = Work { name, base, arguments, duration: Duration::ZERO };
        work.duration = duration(&work.arguments, &work.datadir(&client), height);
        let mut times = Vec::new();
        for _ in 0..stops.div_ceil(4) {
            let datadir = work.datadir(&client);
            let longest = u64::try_from(work.duration.as_micros()).unwrap();
            let Stopped { took, height } = work.stop_after(Duration::from_micros(random.below(longest)), &datadir);
            if took > REPORTED {
                eprintln!("stop: {name}: {took:?}\n{}", shutdown_lines(&datadir));
            }
            assert!(took < limit, "{name}: stopped after {took:?}");
            start_again(name, &datadir, height);
            times.push(took);
        }
        report(name, &mut times);
        all.extend(times);
    }
    report("all", &mut all);
}

fn report(name: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let [p50, p99, max] = [50, 99, 100].map(|percent| percentile(times, percent));
    eprintln!("stop: {name}: {} stops, p50 {p50:.3} s, p99 {p99:.3} s, max {max:.3} s", times.len());
}
