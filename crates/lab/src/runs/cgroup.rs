//! A control group that limits a node's memory together with its page cache, as a small machine would.
//!
//! Input: bytes. Output: a group into which a command starts its program; whether the kernel killed a process in it.
//! Both versions of control groups are supported, since container hosts still mount version 1. Needs root. Must never:
//! change a group that this process did not make, or leave one behind.

use super::system;
use crate::error::LabError;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Arguments: the file of the group's processes, the program, its arguments.
const ENTER_AND_START: &str = r#"echo $$ > "$0" && exec "$@""#;
const UNAVAILABLE: &str =
    "--cgroup-memory needs root and a control group with the memory controller, which this machine does not give";

/// Tells the groups of one process apart.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Removed when dropped; its processes must have ended.
#[derive(Debug)]
pub struct Group {
    folder: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Group {
    /// Makes a group with this limit. No swap, if the kernel counts it.
    pub fn with_memory(bytes: u64) -> Result<Group, LabError> {
        let mounts = system::read_proc("/proc/mounts").unwrap_or_default();
        let unavailable = |reason: &str| LabError::Usage(format!("{UNAVAILABLE}: {reason}"));
        let (root, version) = hierarchy(&mounts, &|path| system::read_proc(path))
            .ok_or_else(|| unavailable("no hierarchy with it is mounted"))?;
        let name = format!("lydian-lab-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        if version == Version::Two {
            // Until a group enables it for its children, they have no limit to set.
            let _ = write(&root.join("cgroup.subtree_control"), "+memory");
        }
        let folder = root.join(name);
        std::fs::create_dir(&folder).map_err(|error| unavailable(&format!("{}: {error}", folder.display())))?;
        let group = Group { folder, version };
        let (limit, swap, no_swap) = match version {
            Version::Two => ("memory.max", "memory.swap.max", 0),
            Version::One => ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", bytes),
        };
        write(&group.folder.join(limit), &bytes.to_string()).map_err(|error| unavailable(&error.to_string()))?;
        // A kernel without swap accounting has no such file.
        let _ = write(&group.folder.join(swap), &no_swap.to_string());
        Ok(group)
    }

    /// The same command, started inside the group. The program replaces the shell that enters it, so that it has the
    /// process number of the command.
    pub fn command(&self, inner: &Command) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", ENTER_AND_START]).arg(self.folder.join("cgroup.procs")).arg(inner.get_program());
        command.args(inner.get_args()).stdin(Stdio::null());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(folder) = inner.get_current_dir() {
            command.current_dir(folder);
        }
        command
    }

    /// Whether the kernel killed a process of the group because it needed more memory.
    pub fn has_killed(&self) -> bool {
        let file = match self.version {
            Version::Two => "memory.events",
            Version::One => "memory.oom_control",
        };
        let text = system::read_proc(&self.folder.join(file).to_string_lossy()).unwrap_or_default();
        kills_in(&text) > 0
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // A process that has just been killed may still be counted; the next group has another name.
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// The mounted hierarchy with the memory controller; version 2 goes first.
fn hierarchy(mounts: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<(PathBuf, Version)> {
    let fields = |line: &str| line.split_ascii_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = mounts.lines().map(fields).filter(|fields| fields.len() >= 4).collect();
    let two = lines.iter().filter(|fields| fields[2] == "cgroup2").find(|fields| {
        let has = read(&format!("{}/cgroup.controllers", fields[1]));
        has.is_some_and(|text| text.split_ascii_whitespace().any(|name| name == "memory"))
    });
    let one = || lines.iter().find(|fields| fields[2] == "cgroup" && fields[3].split(',').any(|name| name == "memory"));
    two.map(|fields| (PathBuf::from(&fields[1]), Version::Two))
        .or_else(|| one().map(|fields| (PathBuf::from(&fields[1]), Version::One)))
}

/// The number after `oom_kill` in `memory.events` or `memory.oom_control`.
fn kills_in(text: &str) -> u64 {
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

/// These files take one write and cannot be replaced.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// Parses a size such as `2G`, `512M` or `4096K`, in powers of 1,024.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size; for instance 2G or 512M");
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let shift = match unit {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return Err(wrong()),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_two_goes_first_if_it_has_the_controller() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let with = |controllers: &'static str| {
            hierarchy(mounts, &move |path| {
                assert_eq!(path, "/sys/fs/cgroup/unified/cgroup.controllers");
                Some(controllers.to_owned())
            })
        };
        assert_eq!(with("cpu memory io\n"), Some(("/sys/fs/cgroup/unified".into(), Version::Two)));
        assert_eq!(with("hugetlb\n"), Some(("/sys/fs/cgroup/memory".into(), Version::One)));
        assert_eq!(hierarchy("cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", &|_| None), None);
    }

    #[test]
    fn kills_are_counted_and_sizes_parsed() {
        assert_eq!(kills_in("low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n"), 2);
        assert_eq!((kills_in("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), kills_in("")), (1, 0));
        assert_eq!(["2G", "512M", "4K", "7"].map(|text| parse_bytes(text).unwrap()), [2 << 30, 512 << 20, 4 << 10, 7]);
        for wrong in ["", "G", "0", "0G", "2g", "2GB", "-1", "1.5G", "99999999999G"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }
}
