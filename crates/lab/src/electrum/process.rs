//! A program that runs until it receives a stop signal: a server, or the node below it.
//!
//! Input: a command. Output: what it and its children use while they run; a clean stop on request. The process leads
//! its own process group: a Ctrl-C does not reach it, and none of its processes survives the value. Cost: four looks a
//! second while it is watched. Must never: wait without limit.

use crate::error::LabError;
use crate::limits::SAMPLES_MAX;
use crate::runs::procfs::MachineTimes;
use crate::runs::{capture, system};
use lydian_report::results::Io;
use lydian_report::results::{Machine, Sample, rounded};
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LOOK_PERIOD: Duration = Duration::from_millis(250);
/// The folder is walked only at every fourth look.
const DISK_PERIOD: u64 = 4;
const END_POLL: Duration = Duration::from_millis(20);

/// Killed when dropped, with everything it started.
#[derive(Debug)]
pub struct Process {
    child: Child,
    program: String,
    start: Instant,
}

/// What a process and its children had used at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub cpu_seconds: f64,
    pub rss_bytes: u64,
    /// The highest peak that the kernel recorded for one of the processes, or the current sum if it is larger.
    pub peak_rss_bytes: u64,
    pub io: Io,
}

impl Process {
    /// The program's output is appended to `output`.
    pub fn start(mut command: Command, output: &Path) -> Result<Process, LabError> {
        capture(&mut command, output)?;
        let program = command.get_program().to_string_lossy().into_owned();
        let start = system::now();
        let child = command.process_group(0).spawn().map_err(|error| LabError::program(&program, error))?;
        Ok(Process { child, program, start })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    pub fn has_ended(&self) -> bool {
        system::has_ended(self.pid())
    }

    pub fn used(&self) -> Used {
        used(self.pid())
    }

    /// The CPU time of the threads with this name, as far as they still run.
    pub fn cpu_seconds_of(&self, thread: &str) -> f64 {
        seconds_of(system::thread_ticks(self.pid(), thread))
    }

    /// Asks the process to stop and waits. If it does not stop in time, that is an error, and dropping the value kills
    /// it.
    pub fn stop(&mut self, signal: Signal, patience: Duration) -> Result<(), LabError> {
        let failed = |reason: String| Err(LabError::program(&self.program, reason));
        if let Some(pid) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            // A process that has already ended is handled below.
            let _ = kill_process(pid, signal);
        }
        let start = system::now();
        while !self.has_ended() {
            if start.elapsed() > patience {
                return failed(format!("it did not end within {} s of being asked to", patience.as_secs()));
            }
            thread::sleep(END_POLL);
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        system::kill_group(self.pid());
        let _ = self.child.wait();
    }
}

fn used(pid: u32) -> Used {
    let mut sum = Used::default();
    let mut ticks = 0;
    for pid in system::family(pid) {
        ticks += system::process_times(pid).map_or(0, |times| times.own_ticks + times.children_ticks);
        sum.io += system::process_io(pid).unwrap_or_default();
        if let Some(memory) = system::process_memory(pid) {
            sum.rss_bytes += memory.rss_bytes;
            sum.peak_rss_bytes = sum.peak_rss_bytes.max(memory.peak_bytes);
        }
    }
    sum.peak_rss_bytes = sum.peak_rss_bytes.max(sum.rss_bytes);
    sum.cpu_seconds = seconds_of(ticks);
    sum
}

/// What was seen of a process since its start, while it still runs.
#[derive(Debug, Default)]
pub struct Watched {
    pub samples: Vec<Sample>,
    pub peak_rss_bytes: u64,
}

/// Looks at the process four times a second while `work` runs.
pub fn watch<T>(process: &Process, folder: &Path, work: impl FnOnce() -> T) -> (T, Watched) {
    let is_done = AtomicBool::new(false);
    let (pid, start) = (process.pid(), process.start);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut watched = Watched::default();
            let mut looks = 0_u64;
            while !is_done.load(Ordering::Relaxed) {
                look(pid, start, folder, looks, &mut watched);
                looks += 1;
                thread::park_timeout(LOOK_PERIOD);
            }
            watched
        });
        let given = work();
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        (given, watcher.join().unwrap_or_default())
    })
}

fn look(pid: u32, start: Instant, folder: &Path, looks: u64, watched: &mut Watched) {
    let used = used(pid);
    watched.peak_rss_bytes = watched.peak_rss_bytes.max(used.peak_rss_bytes);
    if watched.samples.len() == SAMPLES_MAX {
        // A long build: every second sample is dropped.
        let mut index = 0;
        watched.samples.retain(|_| {
            index += 1;
            index % 2 == 1
        });
    }
    watched.samples.push(Sample {
        seconds: rounded(start.elapsed().as_secs_f64()),
        height: None,
        rss_bytes: used.rss_bytes,
        cpu_seconds: rounded(used.cpu_seconds),
        read_bytes: used.io.read_bytes,
        write_bytes: used.io.write_bytes,
        disk_bytes: looks.is_multiple_of(DISK_PERIOD).then(|| system::disk_bytes(folder)),
    });
}

/// The machine's times at one moment, to compute shares from then on.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    machine: Option<MachineTimes>,
    own_ticks: u64,
}

impl Shares {
    pub fn now() -> Shares {
        let own = system::process_times(std::process::id()).map_or(0, |times| times.own_ticks);
        Shares { machine: system::machine_times(), own_ticks: own }
    }

    /// The shares since then; `ours` is what the server and the node used.
    pub fn until_now(&self, ours: f64) -> Machine {
        let end = Shares::now();
        let (Some(before), Some(after)) = (self.machine, end.machine) else { return Machine::default() };
        let total = seconds_of(after.total.saturating_sub(before.total));
        if total <= 0.0 {
            return Machine::default();
        }
        let idle = seconds_of(after.idle.saturating_sub(before.idle));
        let own = seconds_of(end.own_ticks.saturating_sub(self.own_ticks));
        let share = |seconds: f64| Some(rounded((seconds / total).clamp(0.0, 1.0)));
        Machine {
            idle_share: share(idle),
            node_share: share(ours),
            others_share: share(total - idle - own - ours),
            steal_share: share(seconds_of(after.steal.saturating_sub(before.steal))),
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "ticks of a measurement lie far below 2^52")]
fn seconds_of(ticks: u64) -> f64 {
    ticks as f64 / system::ticks_per_second()
}
