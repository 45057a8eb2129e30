//! Tests over many seeds within a time limit. Input: settings from the environment. Output: calls of a test with each
//! seed; if one fails or hangs, the command that reproduces it.
//!
//! * `LYDIAN_ENGINE_SECONDS`: how long each test runs with new seeds (default [`SECONDS`]);
//! * `LYDIAN_ENGINE_HANG_SECONDS`: how long one seed may take (default [`HANG_SECONDS`]), for slow machines;
//! * `LYDIAN_ENGINE_SEED`: only this seed; `LYDIAN_ENGINE_FIRST_SEED`: the first one.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

/// Default running time of a test, in seconds.
const SECONDS: u64 = 10;

/// Default time after which a seed counts as hanging, in seconds.
const HANG_SECONDS: u64 = 120;

pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: a number")))
}

/// Runs `test` with seed after seed; returns their number. `share` is the percentage of the usual time that this test
/// takes.
#[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
pub fn for_seeds(name: &str, share: u64, mut test: impl FnMut(u64)) -> u64 {
    let (first, last) = match setting("LYDIAN_ENGINE_SEED") {
        Some(seed) => (seed, seed),
        None => (setting("LYDIAN_ENGINE_FIRST_SEED").unwrap_or(0), u64::MAX - 1),
    };
    let allowed = Duration::from_millis(setting("LYDIAN_ENGINE_SECONDS").unwrap_or(SECONDS) * 10 * share);
    let start = Instant::now();
    let mut count = 0;
    for seed in first..=last {
        let label = format!("seed {seed}: LYDIAN_ENGINE_SEED={seed} cargo test -p lydian-engine --test chains {name}");
        watched(&label, || test(seed));
        count += 1;
        if start.elapsed() > allowed {
            break;
        }
    }
    eprintln!("{name}: {count} seeds from {first}");
    count
}

/// Prints the label if the work fails, and aborts the process if it hangs.
fn watched(label: &str, work: impl FnOnce()) {
    let (done, is_done) = sync_channel::<()>(1);
    let text = label.to_owned();
    let hang = Duration::from_secs(setting("LYDIAN_ENGINE_HANG_SECONDS").unwrap_or(HANG_SECONDS));
    let watcher = std::thread::spawn(move || {
        if is_done.recv_timeout(hang) == Err(RecvTimeoutError::Timeout) {
            // Not by eprintln!, whose output the test harness keeps and loses when the process is aborted.
            let _ = writeln!(std::io::stderr(), "hangs for {} s: {text}", hang.as_secs());
            std::process::abort();
        }
    });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    drop(done);
    let _ = watcher.join();
    if let Err(panic) = result {
        eprintln!("failed: {label}");
        std::panic::resume_unwind(panic);
    }
}
