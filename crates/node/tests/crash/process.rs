//! The program as a process: started, killed after a while, asked for the hash of its coins.

use lydian_chains::rng::Random;
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The longest time that a process may take to stop on request: on a busy machine, and in `make crash`.
const STOP_SECONDS_MAX: (u64, u64) = (120, 10);

pub fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: a number")))
}

/// Without peers, unless the arguments say otherwise.
pub fn lydian(datadir: &Path, arguments: &[String]) -> Command {
    // A different build, for measurements.
    let program = std::env::var_os("LYDIAN_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_lydian").into());
    let mut command = Command::new(program);
    command.arg("-regtest").arg(format!("-datadir={}", datadir.display())).arg("-par=2").arg("-printtoconsole=0");
    let is_given = |option: &str| arguments.iter().any(|argument| argument.starts_with(option));
    for (option, default) in [("-server", "-server=0"), ("-bind", "-listen=0"), ("-connect", "-noconnect")] {
        if !is_given(option) {
            command.arg(default);
        }
    }
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

pub fn words(text: &[&str]) -> Vec<String> {
    text.iter().map(|word| (*word).to_owned()).collect()
}

pub fn utxohash(datadir: &Path) -> String {
    let mut command = lydian(datadir, &words(&["utxohash", "--json"]));
    let output = command.stdout(Stdio::piped()).output().unwrap();
    assert!(output.status.success(), "utxohash: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// How a process ended.
pub struct Killed {
    pub output: Output,
    pub was_killed: bool,
}

/// Waits a random time of up to 1.25 times `longest`, then kills the process, in most cases, or asks it to stop, if it
/// still runs.
#[allow(clippy::disallowed_methods, reason = "a test measures its own time")]
pub fn disturb(mut child: Child, longest: Duration, random: &mut Random) -> Killed {
    let longest = u64::try_from(longest.as_micros()).unwrap();
    let delay = Duration::from_micros(random.below(longest + longest / 4));
    let start = Instant::now();
    while start.elapsed() < delay {
        if child.try_wait().unwrap().is_some() {
            return Killed { output: child.wait_with_output().unwrap(), was_killed: false };
        }
        std::thread::sleep(Duration::from_millis(1).min(delay));
    }
    if random.chance(850) {
        child.kill().unwrap();
        return Killed { output: child.wait_with_output().unwrap(), was_killed: true };
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    // It may have ended at this very moment.
    let _ = kill_process(pid, Signal::TERM);
    let asked = Instant::now();
    let output = child.wait_with_output().unwrap();
    let seconds = asked.elapsed().as_secs();
    let most = if setting("LYDIAN_CRASH_RUNS").is_some() { STOP_SECONDS_MAX.1 } else { STOP_SECONDS_MAX.0 };
    assert!(seconds < most, "stopped after {seconds} s");
    Killed { output, was_killed: true }
}
