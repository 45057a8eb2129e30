//! Runs one process from start to end and measures everything that it and its children use.
//!
//! Input: a command and a guard. Output: how the process ended, wall time, CPU, memory, bytes, samples over time, and
//! the load of the machine meanwhile. The exact figures are read at the end. The end of the process is detected before
//! it is reaped, so that `/proc/PID/io` is still readable. CPU time and peak resident memory come from `wait4`. The CPU
//! time of workers that the process left behind without waiting for them is read before they are reaped, and counts as
//! user time. The process leads its own process group: a Ctrl-C does not reach it, and none of its processes survives.
//! Cost: forty glances a second at one file, and four looks, each reading a few files per thread. Must never: let a
//! process outlive the call.

use super::procfs::MachineTimes;
use super::system;
use crate::error::LabError;
use crate::limits::SAMPLES_MAX;
use lydian_report::results::Io;
use lydian_report::results::{Machine, Sample, rounded};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use wait4::Wait4;

/// Time between two glances at the peak memory; a glance reads one small file.
const GLANCE_PERIOD: Duration = Duration::from_millis(25);
/// Every tenth glance is a look, which takes a sample; once the samples are thinned out, fewer of them are kept.
const LOOK_PERIOD: u64 = 10;
/// The folder is walked only at every fourth look.
const DISK_PERIOD: u64 = 4;

/// Ticks of all cores together below which a run is not assessed. The system counts whole ticks of 10 ms. In a shorter
/// run one or two ticks too many or too few would exceed the share at which it counts as disturbed: ticks cannot assess
/// a run of 30 ms.
const TICKS_MIN: u64 = 50;

/// The conditions under which a process is ended.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'a> {
    pub timeout: Duration,
    /// Resident memory of the process and its children.
    pub memory_max_bytes: u64,
    /// Free space that must remain on the disk of the folder.
    pub disk_free_min_bytes: u64,
    pub interrupted: &'a AtomicBool,
    /// Processes that work for this one: their use does not count as use by others, and if one of them ends, this
    /// process is ended.
    pub servers: &'a [u32],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited { code: i32 },
    Killed { signal: i32 },
    TimedOut,
    MemoryExceeded,
    DiskFull,
    ServerEnded,
    Interrupted,
}

/// What one process did and used.
#[derive(Clone, Debug)]
pub struct Measured {
    pub end: End,
    /// Start time in seconds since 1970.
    pub started: f64,
    pub wall_seconds: f64,
    pub user_seconds: f64,
    pub system_seconds: f64,
    pub peak_rss_bytes: u64,
    pub io: Io,
    pub machine: Machine,
    /// Whether other processes disturbed the run; `false` for a run too short to tell.
    pub is_disturbed: bool,
    pub samples: Vec<Sample>,
}

/// Runs the command to its end. `folder` is where the command writes; the samples include its size.
pub fn measure(mut command: Command, folder: &std::path::Path, guard: &Guard<'_>) -> Result<Measured, LabError> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.process_group(0);
    system::adopt_orphans();
    let before = Shares::now(guard.servers);
    // What the child's record inherits from this process when it executes the program.
    let inherited = system::process_memory(std::process::id()).map_or(0, |memory| memory.peak_bytes);
    let (started, start) = (system::unix_seconds(), system::now());
    let child = command.spawn().map_err(|error| LabError::program(&program, error))?;
    let pid = child.id();
    let ended = watch(pid);
    let mut watcher = Watcher::new(pid, folder, start);
    let stop = watcher.until_end(&ended, guard);
    if stop.is_some() {
        system::kill_group(pid);
        let _ = ended.recv();
    }
    let wall_seconds = start.elapsed().as_secs_f64();
    let io = system::process_io(pid).unwrap_or(watcher.last_io);
    // The leader has ended; kill everything it left behind.
    system::kill_group(pid);
    // Workers that the process did not wait for are not in any total yet.
    let orphans_seconds = seconds_of(system::reap_orphans(pid));
    let (status, usage) = reap(child, &program)?;
    let (user_seconds, system_seconds) = (usage.utime.as_secs_f64() + orphans_seconds, usage.stime.as_secs_f64());
    let (machine, is_disturbed) = before.until_now(user_seconds + system_seconds, guard.servers);
    let own_peak = if usage.maxrss > inherited { usage.maxrss } else { 0 };
    Ok(Measured {
        end: stop.unwrap_or_else(|| end_of(status)),
        started,
        wall_seconds,
        user_seconds,
        system_seconds,
        peak_rss_bytes: watcher.peak_rss_bytes.max(own_peak),
        io,
        machine,
        is_disturbed,
        samples: watcher.samples.kept,
    })
}

/// Starts a thread that reports the moment at which the process ends.
fn watch(pid: u32) -> Receiver<()> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        system::wait_for_end(pid);
        let _ = sender.send(());
    });
    receiver
}

fn reap(child: Child, program: &str) -> Result<(ExitStatus, wait4::ResourceUsage), LabError> {
    let used = child.wait4().map_err(|error| LabError::program(program, error))?;
    Ok((used.status, used.rusage))
}

fn end_of(status: ExitStatus) -> End {
    match (status.code(), status.signal()) {
        (Some(code), _) => End::Exited { code },
        (None, signal) => End::Killed { signal: signal.unwrap_or(0) },
    }
}

/// Observes the process while it runs.
struct Watcher<'a> {
    pid: u32,
    folder: &'a std::path::Path,
    start: Instant,
    glances: u64,
    looks: u64,
    samples: Samples,
    last_io: Io,
    peak_rss_bytes: u64,
}

impl<'a> Watcher<'a> {
    fn new(pid: u32, folder: &'a std::path::Path, start: Instant) -> Watcher<'a> {
        let samples = Samples::default();
        Watcher { pid, folder, start, glances: 0, looks: 0, samples, last_io: Io::default(), peak_rss_bytes: 0 }
    }

    /// `None` if the process ended by itself.
    fn until_end(&mut self, ended: &Receiver<()>, guard: &Guard<'_>) -> Option<End> {
        loop {
            match ended.recv_timeout(GLANCE_PERIOD) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let is_look = self.glances.is_multiple_of(LOOK_PERIOD);
            self.glances += 1;
            let rss_bytes = if is_look { self.look() } else { self.glance() };
            if guard.interrupted.load(Ordering::Relaxed) {
                return Some(End::Interrupted);
            }
            if is_look && guard.servers.iter().any(|&pid| system::has_ended(pid)) {
                return Some(End::ServerEnded);
            }
            if is_look && system::disk_free_bytes(self.folder).is_some_and(|free| free < guard.disk_free_min_bytes) {
                return Some(End::DiskFull);
            }
            if rss_bytes > guard.memory_max_bytes {
                return Some(End::MemoryExceeded);
            }
            if self.start.elapsed() >= guard.timeout {
                return Some(End::TimedOut);
            }
        }
    }

    /// Returns the resident memory of the process alone.
    fn glance(&mut self) -> u64 {
        let Some(memory) = system::process_memory(self.pid) else { return 0 };
        self.peak_rss_bytes = self.peak_rss_bytes.max(memory.peak_bytes);
        memory.rss_bytes
    }

    /// Takes a sample and returns the resident memory of the process and its children.
    fn look(&mut self) -> u64 {
        let mut sample = Sample { seconds: rounded(self.start.elapsed().as_secs_f64()), ..Sample::default() };
        let (mut ticks, mut io) = (0, Io::default());
        let family = system::family(self.pid);
        for &pid in &family {
            ticks += system::process_times(pid).map_or(0, |times| times.own_ticks + times.children_ticks);
            io += system::process_io(pid).unwrap_or_default();
            if let Some(memory) = system::process_memory(pid) {
                sample.rss_bytes += memory.rss_bytes;
                self.peak_rss_bytes = self.peak_rss_bytes.max(memory.peak_bytes);
            }
        }
        self.peak_rss_bytes = self.peak_rss_bytes.max(sample.rss_bytes);
        self.last_io = io;
        sample.cpu_seconds = seconds_of(ticks);
        sample.read_bytes = io.read_bytes;
        sample.write_bytes = io.write_bytes;
        sample.disk_bytes = self.looks.is_multiple_of(DISK_PERIOD).then(|| system::disk_bytes(self.folder));
        self.looks += 1;
        self.samples.push(sample);
        sample.rss_bytes
    }
}

/// At most [`SAMPLES_MAX`] samples: when they are full, every second one is dropped, and from then on half as many are
/// kept.
#[derive(Default)]
struct Samples {
    kept: Vec<Sample>,
    offered: u64,
    halvings: u32,
}

impl Samples {
    fn push(&mut self, sample: Sample) {
        if self.offered.is_multiple_of(1 << self.halvings) {
            if self.kept.len() == SAMPLES_MAX {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.halvings += 1;
            }
            self.kept.push(sample);
        }
        self.offered += 1;
    }
}

/// What the machine, and the lab with its servers, had used at one moment.
struct Shares {
    machine: Option<MachineTimes>,
    own_ticks: u64,
}

impl Shares {
    fn now(servers: &[u32]) -> Shares {
        let ours = std::iter::once(std::process::id()).chain(servers.iter().copied());
        let own_ticks = ours.filter_map(system::process_times).map(|times| times.own_ticks).sum();
        Shares { machine: system::machine_times(), own_ticks }
    }

    /// The shares of the time since then, and whether other processes disturbed the run.
    fn until_now(&self, node_seconds: f64, servers: &[u32]) -> (Machine, bool) {
        let end = Shares::now(servers);
        let own_ticks = end.own_ticks.saturating_sub(self.own_ticks);
        shares(self.machine.zip(end.machine), own_ticks, node_seconds)
    }
}

/// Use by neither the node nor the lab with its servers is use by others. With fewer than [`TICKS_MIN`] ticks nothing
/// is known, and the run is not called disturbed: otherwise it would be, whatever the machine did.
fn shares(times: Option<(MachineTimes, MachineTimes)>, own_ticks: u64, node_seconds: f64) -> (Machine, bool) {
    let Some((before, after)) = times else { return (Machine::default(), true) };
    let ticks = after.total.saturating_sub(before.total);
    if ticks < TICKS_MIN {
        return (Machine::default(), false);
    }
    let total = seconds_of(ticks);
    let idle = seconds_of(after.idle.saturating_sub(before.idle));
    let own = seconds_of(own_ticks);
    let share = |seconds: f64| Some(rounded((seconds / total).clamp(0.0, 1.0)));
    let machine = Machine {
        idle_share: share(idle),
        node_share: share(node_seconds),
        others_share: share(total - idle - own - node_seconds),
        steal_share: share(seconds_of(after.steal.saturating_sub(before.steal))),
    };
    (machine, machine.is_disturbed())
}

#[allow(clippy::cast_precision_loss, reason = "ticks of a measurement lie far below 2^52")]
fn seconds_of(ticks: u64) -> f64 {
    ticks as f64 / system::ticks_per_second()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_a_few_ticks_is_not_marked_by_them() {
        let times = |total| {
            let before = MachineTimes { total: 1_000, idle: 500, steal: 0 };
            Some((before, MachineTimes { total: before.total + total, ..before }))
        };
        // Nothing idle and nothing ours: others used all of it.
        assert_eq!(shares(times(TICKS_MIN - 1), 0, 0.0), (Machine::default(), false));
        let (machine, is_disturbed) = shares(times(TICKS_MIN), 0, 0.0);
        assert_eq!((machine.others_share, machine.idle_share, is_disturbed), (Some(1.0), Some(0.0), true));
        let (machine, is_disturbed) = shares(times(200), 200, 0.0);
        assert_eq!((machine.others_share, is_disturbed), (Some(0.0), false));
        assert_eq!(shares(None, 0, 0.0), (Machine::default(), true), "an unknown load does not pass as quiet");
    }

    /// limit: SAMPLES_MAX at
    /// limit: SAMPLES_MAX above
    #[test]
    fn samples_are_thinned_when_they_are_full() {
        let mut samples = Samples::default();
        let mut push = |count: usize| {
            for _ in 0..count {
                let seconds = f64::from(u32::try_from(samples.offered).unwrap());
                samples.push(Sample { seconds, ..Sample::default() });
            }
            samples.kept.clone()
        };
        let full = push(SAMPLES_MAX);
        assert_eq!(full.len(), SAMPLES_MAX);
        // One more: half of them stay, evenly spaced, plus the new one.
        let thinned = push(1);
        assert_eq!(thinned.len(), SAMPLES_MAX / 2 + 1);
        assert!(thinned.windows(2).all(|pair| (pair[1].seconds - pair[0].seconds - 2.0).abs() < 1e-9));
        let later = push(10 * SAMPLES_MAX);
        assert!(later.len() <= SAMPLES_MAX && later.len() >= SAMPLES_MAX / 2, "{}", later.len());
        let gaps: Vec<f64> = later.windows(2).map(|pair| pair[1].seconds - pair[0].seconds).collect();
        assert!(gaps.iter().all(|gap| (gap - gaps[0]).abs() < 1e-9), "evenly spaced");
    }
}
