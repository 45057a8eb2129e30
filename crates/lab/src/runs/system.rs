//! What the runner needs from the operating system: `/proc`, the clock, the page cache, processes.
//!
//! Input: process ids and paths. Output: numbers as `procfs.rs` parses them. The only file here that reads a clock.
//! Must never: fail because a process went away between two reads; it returns `None` instead.

use super::procfs::{self, MachineTimes, Memory, ProcessTimes};
use crate::error::LabError;
use lydian_report::results::Io;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[allow(clippy::disallowed_methods, reason = "a measurement reads the clock")]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970, as in a node's log.
#[allow(clippy::disallowed_methods, reason = "log lines carry the time of day")]
pub fn unix_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}

/// Reads a text under `/proc`, where file sizes are not known in advance.
pub fn read_proc(path: &str) -> Option<String> {
    let mut text = Vec::new();
    OpenOptions::new().read(true).open(path).ok()?.read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

pub fn process_times(pid: u32) -> Option<ProcessTimes> {
    procfs::process_times(&read_proc(&format!("/proc/{pid}/stat"))?)
}

/// The CPU time of the threads of a process that have this name, in ticks.
pub fn thread_ticks(pid: u32, name: &str) -> u64 {
    let folder = format!("/proc/{pid}/task");
    let threads = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let paths = threads.map(|thread| thread.path().display().to_string());
    let has_name = |path: &String| read_proc(&format!("{path}/comm")).is_some_and(|comm| comm.trim_end() == name);
    let times = |path: String| procfs::process_times(&read_proc(&format!("{path}/stat"))?);
    paths.filter(has_name).filter_map(times).map(|times| times.own_ticks).sum()
}

pub fn process_io(pid: u32) -> Option<Io> {
    procfs::io(&read_proc(&format!("/proc/{pid}/io"))?)
}

pub fn process_memory(pid: u32) -> Option<Memory> {
    procfs::memory(&read_proc(&format!("/proc/{pid}/status"))?)
}

/// Sets the recorded peak of a process's memory back to its current memory. False if the kernel does not allow it.
pub fn forget_peak(pid: u32) -> bool {
    let reset = |mut file: std::fs::File| io::Write::write_all(&mut file, b"5");
    OpenOptions::new().write(true).open(format!("/proc/{pid}/clear_refs")).and_then(reset).is_ok()
}

pub fn machine_times() -> Option<MachineTimes> {
    procfs::machine_times(&read_proc("/proc/stat")?)
}

/// Clock ticks per second in the files above.
#[allow(clippy::cast_precision_loss, reason = "100 on every Linux we know")]
pub fn ticks_per_second() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// The process and its descendants. A child that started and ended between two looks is in its parent's totals.
pub fn family(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        next += 1;
        let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { continue };
        for task in tasks.flatten() {
            let children = read_proc(&format!("{}/children", task.path().display())).unwrap_or_default();
            found.extend(procfs::children(&children));
        }
    }
    found
}

/// Whether a child of this process has ended; it may still have to be waited for.
pub fn has_ended(pid: u32) -> bool {
    process_times(pid).is_none_or(|times| matches!(times.state, 'Z' | 'X'))
}

/// Returns when the process has ended. Does not reap it, so that its figures can still be read.
pub fn wait_for_end(pid: u32) {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return };
    let ended = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    while matches!(ended(), Err(rustix::io::Errno::INTR)) {}
}

/// The program and its arguments, separated by spaces; empty for a process that has ended.
pub fn command_line(pid: u32) -> Option<String> {
    read_proc(&format!("/proc/{pid}/cmdline")).map(|line| line.replace('\0', " "))
}

/// Asks a process to exit.
pub fn terminate(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

/// Kills a whole process group. Does nothing if the group no longer exists.
pub fn kill_group(leader: u32) {
    if let Some(pid) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(pid, Signal::KILL);
    }
}

/// Makes this process the new parent of descendants whose parent ends, so that their use can still be read. If the
/// system refuses this, the use of such processes is lost.
pub fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Reaps the processes of the leader's group that are children of this process by now, and returns their clock ticks.
///
/// The ticks include those of children that they waited for. Call it after [`kill_group`] and before the leader is
/// reaped; the leader itself is not reaped.
pub fn reap_orphans(leader: u32) -> u64 {
    let own = std::process::id();
    let mut ticks = 0;
    for pid in all_processes() {
        let is_orphan = |times: &ProcessTimes| (times.group, times.parent) == (leader, own) && pid != leader;
        if process_times(pid).as_ref().is_some_and(is_orphan) {
            wait_for_end(pid);
            ticks += process_times(pid).map_or(0, |times| times.own_ticks + times.children_ticks);
            let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
            let _ = rustix::process::waitpid(id, rustix::process::WaitOptions::empty());
        }
    }
    ticks
}

fn all_processes() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Bytes that the files below a folder occupy. Files removed meanwhile are not counted.
pub fn disk_bytes(folder: &Path) -> u64 {
    files_below(folder).iter().filter_map(|path| path.symlink_metadata().ok()).map(|meta| meta.blocks() * 512).sum()
}

/// Bytes that a user may still write to the disk of this folder.
pub fn disk_free_bytes(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

/// Every file below a folder; symbolic links are not followed.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}

/// The control file that empties the page cache.
pub const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Empties the page cache, if permitted; `control` is [`DROP_CACHES`].
pub fn drop_caches(control: &Path) -> bool {
    rustix::fs::sync();
    let drop = |mut file: std::fs::File| io::Write::write_all(&mut file, b"3\n");
    OpenOptions::new().write(true).open(control).and_then(drop).is_ok()
}

/// Drops the files below a folder from the page cache. Data that is not on disk yet cannot be dropped, so everything is
/// written first.
pub fn forget_files(folder: &Path) {
    rustix::fs::sync();
    for path in files_below(folder) {
        if let Ok(file) = OpenOptions::new().read(true).open(path) {
            // Only a hint: pages that another process has mapped stay.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }
}

/// Reads the files below a folder once, so that the page cache contains them.
pub fn fill_cache(folder: &Path) {
    let mut buffer = vec![0; 1 << 20];
    for path in files_below(folder) {
        let Ok(mut file) = OpenOptions::new().read(true).open(path) else { continue };
        while file.read(&mut buffer).is_ok_and(|size| size > 0) {}
    }
}

/// Copies a file and waits until it is on disk, so that no measurement pays for it.
pub fn copy_durably(from: &Path, to: &Path) -> Result<(), LabError> {
    std::fs::copy(from, to).map_err(|error| LabError::io("copy", from, error))?;
    let file = OpenOptions::new().write(true).open(to).map_err(|error| LabError::io("open", to, error))?;
    file.sync_all().map_err(|error| LabError::io("sync", to, error))
}

pub fn create_dir(path: &Path) -> Result<(), LabError> {
    std::fs::create_dir_all(path).map_err(|error| LabError::io("create", path, error))
}

/// Removes a folder with everything below it; does nothing if it does not exist.
pub fn remove_dir(path: &Path) -> Result<(), LabError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LabError::io("remove", path, error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_right_the_cache_is_not_emptied_and_nothing_fails() {
        // Neither a missing path nor a folder can be written.
        assert!(!drop_caches(Path::new("/proc/sys/vm/no_such_control")));
        assert!(!drop_caches(&std::env::temp_dir()));
    }

    #[test]
    fn a_disk_has_room_and_what_is_no_folder_has_none() {
        assert!(disk_free_bytes(&std::env::temp_dir()).is_some_and(|bytes| bytes > 0));
        assert_eq!(disk_free_bytes(Path::new("/no/such/folder")), None);
    }
}
