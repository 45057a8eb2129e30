//! The operating system's figures for this process: memory, threads, open files, bytes read and written, CPU time of a
//! thread; also the memory of the machine. Output: numbers, `None` if the system does not report them.

use crate::clock::now_nanos;
use lydian_engine::StageClock;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The clock of the engine's stages.
#[derive(Debug)]
pub(crate) struct NodeClock;

impl StageClock for NodeClock {
    fn wall_ns(&self) -> u64 {
        now_nanos()
    }

    fn thread_cpu_ns(&self) -> u64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
    }
}

/// The peak memory use of this process.
pub(crate) fn peak_memory_bytes() -> Option<u64> {
    let kib = field("/proc/self/status", "VmHWM:")?;
    Some(kib * 1024)
}

/// What this process uses now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Processor time since the start.
    pub(crate) cpu: Duration,
    /// Resident memory.
    pub(crate) memory_bytes: Option<u64>,
    /// See [`disk_bytes`].
    pub(crate) disk_bytes: Option<(u64, u64)>,
    /// Read and written by all calls since the start, with the page cache and sockets.
    pub(crate) called_bytes: Option<(u64, u64)>,
    pub(crate) threads: Option<u64>,
    /// Files and sockets.
    pub(crate) open_files: Option<u64>,
}

pub(crate) fn usage() -> Usage {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
    let [resident, threads] = fields("/proc/self/status", ["VmRSS:", "Threads:"]);
    let [read, written, called_read, called_written] =
        fields("/proc/self/io", ["read_bytes:", "write_bytes:", "rchar:", "wchar:"]);
    // The entry that this look itself opens does not count.
    let open_files = std::fs::read_dir("/proc/self/fd").ok().map(|entries| (entries.count() as u64).saturating_sub(1));
    Usage {
        cpu: Duration::new(seconds, nanos),
        memory_bytes: resident.map(|kib| kib * 1024),
        disk_bytes: read.zip(written),
        called_bytes: called_read.zip(called_written),
        threads,
        open_files,
    }
}

/// Total memory of the machine.
pub(crate) fn memory_bytes() -> Option<u64> {
    let kib = field("/proc/meminfo", "MemTotal:")?;
    Some(kib * 1024)
}

/// Bytes read from and written to disks, without those served from the page cache.
pub(crate) fn disk_bytes() -> Option<(u64, u64)> {
    let [read, written] = fields("/proc/self/io", ["read_bytes:", "write_bytes:"]);
    read.zip(written)
}

fn field(path: &str, name: &str) -> Option<u64> {
    let [value] = fields(path, [name]);
    value
}

#[allow(clippy::disallowed_methods, reason = "/proc is no file on a disk; it has no size that `disk` could read")]
fn fields<const COUNT: usize>(path: &str, names: [&str; COUNT]) -> [Option<u64>; COUNT] {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    names.map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    })
}
