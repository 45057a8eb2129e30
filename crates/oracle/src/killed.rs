//! Tests whose own process saves files until it is killed.
//!
//! Input: the name of a test that saves for ever if a variable of the environment names its folder. Output: none; the
//! folder has what the killed process left behind.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The process prints this to stderr when it has saved each of its files once.
pub const SAVED: &str = "saved twice";

/// The number of kills: `LYDIAN_CRASH_RUNS`, or a few.
pub fn kill_count() -> usize {
    std::env::var("LYDIAN_CRASH_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(12)
}

/// Starts this test program again to run one test, and kills it with SIGKILL some time after it reported [`SAVED`]. An
/// error: the process cannot be started, or ended by itself.
pub fn kill_while_saving(test: &str, variable: &str, folder: &Path, delay: Duration) -> io::Result<()> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", test, "--nocapture"])
        .env(variable, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut lines = child.stderr.take().map(|stderr| BufReader::new(stderr).lines());
    let mut lines = lines.iter_mut().flatten().map_while(Result::ok);
    if !lines.any(|line| line.contains(SAVED)) {
        return Err(io::Error::other("the process ended by itself"));
    }
    std::thread::sleep(delay);
    child.kill()?;
    child.wait().map(drop)
}
