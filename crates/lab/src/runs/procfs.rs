//! What Linux reports about processes and the machine, parsed from the texts under `/proc`.
//!
//! Input: the text of a file. Output: numbers, or `None` if the format is not the known one. Pure; `system.rs` reads
//! the files. Cost: one pass over a few hundred bytes. Must never: guess a missing number.

use lydian_report::results::Io;

/// `/proc/PID/stat`: the parent of the process and what it used, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTimes {
    pub state: char,
    pub parent: u32,
    /// Its process group, identified by the PID of the leader.
    pub group: u32,
    /// User and system time of its threads.
    pub own_ticks: u64,
    /// The same for its children that have ended and been waited for.
    pub children_ticks: u64,
}

/// `/proc/PID/status`: current and peak resident memory. A process that has ended has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    pub rss_bytes: u64,
    pub peak_bytes: u64,
}

/// The first line of `/proc/stat`, in clock ticks of all cores together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MachineTimes {
    pub total: u64,
    /// Includes waiting for the disk.
    pub idle: u64,
    /// Time that the host gave to other virtual machines.
    pub steal: u64,
}

pub fn process_times(stat: &str) -> Option<ProcessTimes> {
    // The name may contain anything, even brackets and spaces; after its last bracket there are only numbers.
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    Some(ProcessTimes {
        state: fields.first()?.chars().next()?,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        own_ticks: number(11)? + number(12)?,
        children_ticks: number(13)? + number(14)?,
    })
}

pub fn io(text: &str) -> Option<Io> {
    let value = |name: &str| line_value(text, name)?.parse().ok();
    Some(Io {
        rchar: value("rchar")?,
        wchar: value("wchar")?,
        read_bytes: value("read_bytes")?,
        write_bytes: value("write_bytes")?,
        cancelled_write_bytes: value("cancelled_write_bytes")?,
    })
}

pub fn memory(status: &str) -> Option<Memory> {
    Some(Memory { rss_bytes: kib_value(status, "VmRSS")?, peak_bytes: kib_value(status, "VmHWM")? })
}

/// `/proc/PID/task/TID/children`; anything that is not a number is skipped.
pub fn children(text: &str) -> Vec<u32> {
    text.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect()
}

pub fn machine_times(stat: &str) -> Option<MachineTimes> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks = fields.split_ascii_whitespace().map(|field| field.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let at = |index: usize| ticks.get(index).copied();
    // user nice system idle iowait irq softirq steal; the guest times after them are part of user and nice.
    let total = ticks.iter().take(8).sum();
    Some(MachineTimes { total, idle: at(3)? + at(4)?, steal: at(7)? })
}

/// `MemTotal` of `/proc/meminfo`.
pub fn memory_total_bytes(meminfo: &str) -> Option<u64> {
    kib_value(meminfo, "MemTotal")
}

/// The first `model name` of `/proc/cpuinfo`.
pub fn cpu_model(cpuinfo: &str) -> Option<&str> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim())
}

/// Type and source of the file system that holds an absolute path, from `/proc/self/mountinfo`.
pub fn filesystem_of(mountinfo: &str, path: &str) -> Option<(String, String)> {
    let mut best: Option<(usize, (String, String))> = None;
    for line in mountinfo.lines() {
        let (Some(point), Some((_, rest))) = (line.split(' ').nth(4), line.split_once(" - ")) else { continue };
        let mut rest = rest.split(' ');
        let (Some(kind), Some(source)) = (rest.next(), rest.next()) else { continue };
        let below = path.strip_prefix(point.trim_end_matches('/'));
        let covers = below.is_some_and(|below| below.is_empty() || below.starts_with('/'));
        // Of two mounts on the same point the later one is on top.
        if covers && best.as_ref().is_none_or(|(length, _)| point.len() >= *length) {
            best = Some((point.len(), (kind.to_owned(), source.to_owned())));
        }
    }
    best.map(|(_, found)| found)
}

fn line_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

fn kib_value(text: &str, name: &str) -> Option<u64> {
    let kib: u64 = line_value(text, name)?.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded on Linux 6.18: a process that has ended and was not waited for yet, and a variant with a misleading
    /// name.
    #[test]
    fn a_process_is_read_from_its_last_bracket() {
        let zombie = "8972 (python3) Z 8931 8922 992 0 -1 4227148 12489 0 0 0 30 4 7 2 20 0 1 0 1096083 0 0 18446744073709551615 0 0\n";
        let times = ProcessTimes { state: 'Z', parent: 8931, group: 8922, own_ticks: 34, children_ticks: 9 };
        assert_eq!(process_times(zombie), Some(times));
        let liar = zombie.replace("(python3)", "(a) S 1 2 3) b)");
        assert_eq!(process_times(&liar), Some(times));
        for end in [0, 4, 14, 16, 60] {
            assert_eq!(process_times(&zombie[..end]), None, "{end}");
        }
    }

    /// Complete files of a real node in the middle of its work, as Linux provided them.
    #[test]
    fn recorded_files_are_read() {
        const STAT: &str = include_str!("../../tests/vectors/proc/process-stat.txt");
        const IO: &str = include_str!("../../tests/vectors/proc/process-io.txt");
        const STATUS: &str = include_str!("../../tests/vectors/proc/process-status.txt");
        const CHILDREN: &str = include_str!("../../tests/vectors/proc/task-children.txt");
        const MACHINE: &str = include_str!("../../tests/vectors/proc/machine-stat.txt");
        let times = ProcessTimes { state: 'S', parent: 19_377, group: 19_377, own_ticks: 103, children_ticks: 0 };
        assert_eq!(process_times(STAT), Some(times));
        let expected =
            Io { rchar: 16_991_536, wchar: 939_033, read_bytes: 0, write_bytes: 806_912, cancelled_write_bytes: 8_192 };
        assert_eq!(io(IO), Some(expected));
        assert_eq!(memory(STATUS), Some(Memory { rss_bytes: 65_544 << 10, peak_bytes: 65_544 << 10 }));
        assert_eq!(machine_times(MACHINE), Some(MachineTimes { total: 9_534_162, idle: 2_498_485, steal: 4_695 }));
        assert_eq!(children(CHILDREN), [19_376]);
        assert!(children("").is_empty() && children("1 x -2 99999999999").len() == 1);
        // Truncated anywhere before its last number, a file yields nothing or the same values.
        for end in 0..STAT.trim_end().len() {
            assert!(process_times(&STAT[..end]).is_none_or(|found| found == times), "{end}");
        }
        for end in 0..IO.trim_end().len() - 4 {
            assert_eq!(io(&IO[..end]), None, "{end}");
        }
    }

    #[test]
    fn io_needs_every_line() {
        let text = "rchar: 6976\nwchar: 12\nsyscr: 10\nsyscw: 0\nread_bytes: 4096\nwrite_bytes: 50003968\ncancelled_write_bytes: 1\n";
        let read = io(text).unwrap();
        let expected =
            Io { rchar: 6976, wchar: 12, read_bytes: 4096, write_bytes: 50_003_968, cancelled_write_bytes: 1 };
        assert_eq!(read, expected);
        assert_eq!(io(&text.replace("read_bytes: 4096\n", "")), None);
        assert_eq!(io(""), None);
    }

    #[test]
    fn memory_is_in_kib_and_absent_for_the_dead() {
        let text = "Name:\tbitcoind\nVmPeak:\t 1202592 kB\nVmHWM:\t  203112 kB\nVmRSS:\t  199000 kB\nThreads:\t21\n";
        assert_eq!(memory(text), Some(Memory { rss_bytes: 199_000 << 10, peak_bytes: 203_112 << 10 }));
        assert_eq!(memory("Name:\tpython3\nState:\tZ (zombie)\nThreads:\t1\n"), None);
        assert_eq!(memory("VmRSS:\t 99999999999999999999 kB\nVmHWM:\t 1 kB\n"), None);
    }

    #[test]
    fn the_machine_is_the_first_line() {
        let text =
            "cpu  639495 566456 74395 899965 6167 0 1354 660 0 0\ncpu0 318903 265977 35806 471211 1563 0 441 332 0 0\n";
        let times = machine_times(text).unwrap();
        assert_eq!((times.total, times.idle, times.steal), (2_188_492, 906_132, 660));
        assert_eq!(machine_times("cpu  1 2 x 4"), None);
        assert_eq!(machine_times("intr 5"), None);
        assert_eq!(memory_total_bytes("MemTotal:       24675640 kB\nMemFree: 1 kB\n"), Some(24_675_640 << 10));
        assert_eq!(cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n"), Some("Some CPU @ 2 GHz"));
    }

    #[test]
    fn the_longest_mount_point_holds_the_path() {
        let text = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n30 22 0:5 / /srv rw - xfs /dev/vdb rw\n\
                    31 30 0:6 / /srv/a rw master:1 - tmpfs tmpfs rw\n";
        let kind = |path| filesystem_of(text, path).unwrap().0;
        assert_eq!(kind("/srv/a/x"), "tmpfs");
        assert_eq!(kind("/srv/a"), "tmpfs");
        assert_eq!(kind("/srv/ab"), "xfs");
        assert_eq!(kind("/srvs"), "ext4");
        assert_eq!(filesystem_of("", "/"), None);
    }
}
