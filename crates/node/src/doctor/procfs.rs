//! Reads `/proc` and the files of control groups. Input: process numbers, paths. Output: plain values, `None` or empty
//! if the system does not report them. Changes nothing.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The text of a file of the kernel.
#[allow(clippy::disallowed_methods, reason = "/proc is no file on a disk; it has no size that `disk` could read")]
pub(crate) fn text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// The number after a name at the begin of a line.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// A field of `/proc/meminfo` or `/proc/PID/status` in KiB, as bytes.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    Some(field(text, name)? * 1024)
}

/// The command of a process.
pub(crate) fn name_of(process: u32) -> Option<String> {
    Some(text(format!("/proc/{process}/comm"))?.trim().to_owned())
}

/// "process 12 (lydian)".
pub(crate) fn words_of(process: u32) -> String {
    let name = name_of(process).map(|name| format!(" ({name})")).unwrap_or_default();
    format!("process {process}{name}")
}

/// The real user of a process.
pub(crate) fn user_of(process: u32) -> Option<u32> {
    let status = text(format!("/proc/{process}/status"))?;
    u32::try_from(field(&status, "Uid:")?).ok()
}

/// A limit of a process: the soft and the hard one; `u64::MAX` if there is none. `name` is that of `/proc/PID/limits`.
pub(crate) fn limit_of(process: u32, name: &str) -> Option<(u64, u64)> {
    let limits = text(format!("/proc/{process}/limits"))?;
    let rest = limits.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = rest.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        word => word.parse().ok(),
    });
    Some((words.next()??, words.next()??))
}

/// Open files of a process: what their links name.
pub(crate) fn open_files(process: u32) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect()
}

/// A process that has a file open that its links name like this; only those that this user may look into.
pub(crate) fn process_with(file: &Path) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?;
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    numbers.filter(|process| *process != own).find(|process| open_files(*process).iter().any(|open| open == file))
}

/// A socket that waits for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) inode: u64,
}

impl Listener {
    /// The process that has it, if this user may know.
    pub(crate) fn process(&self) -> Option<u32> {
        process_with(Path::new(&format!("socket:[{}]", self.inode)))
    }

    /// Whether nothing else can listen at the address.
    pub(crate) fn takes(&self, address: SocketAddr) -> bool {
        let (ours, theirs) = (address.ip(), self.address.ip());
        let is_same = ours == theirs || ours.is_unspecified() || theirs.is_unspecified();
        self.address.port() == address.port() && ours.is_ipv4() == theirs.is_ipv4() && is_same
    }
}

/// All sockets of this network namespace that wait for connections.
pub(crate) fn listeners() -> Vec<Listener> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| text(path).unwrap_or_default());
    tables.iter().flat_map(|table| table.lines().skip(1).filter_map(listener)).collect()
}

/// The state of a socket that waits for connections: `TCP_LISTEN`.
const LISTEN: &str = "0A";

/// A line of `/proc/net/tcp`; `None` if it is no socket that waits.
fn listener(line: &str) -> Option<Listener> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (address, state, inode) = (words.get(1)?, words.get(3)?, words.get(9)?);
    let (ip, port) = address.split_once(':')?;
    let socket = SocketAddr::new(ip_of(ip)?, u16::from_str_radix(port, 16).ok()?);
    (*state == LISTEN).then_some(Listener { address: socket, inode: inode.parse().ok()? })
}

/// The kernel prints an address as numbers of 32 bits in the order of the machine's bytes.
fn ip_of(digits: &str) -> Option<IpAddr> {
    let words: Vec<[u8; 4]> = (0..digits.len() / 8)
        .map(|word| u32::from_str_radix(digits.get(8 * word..8 * word + 8)?, 16).ok())
        .map(|word| word.map(if cfg!(target_endian = "little") { u32::to_le_bytes } else { u32::to_be_bytes }))
        .collect::<Option<_>>()?;
    match words[..] {
        [word] => Some(Ipv4Addr::from(word).into()),
        [_, _, _, _] => Some(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn addresses_of_the_kernel() {
        if cfg!(target_endian = "little") {
            assert_eq!(ip_of("0100007F"), Some([127, 0, 0, 1].into()));
            assert_eq!(ip_of("00000000000000000000000001000000"), Some(Ipv6Addr::LOCALHOST.into()));
        }
        for nonsense in ["", "01", "0100007G", "0100007F0100007F", "ä100007F"] {
            assert_eq!(ip_of(nonsense), None, "{nonsense}");
        }
        assert_eq!(listener("nothing"), None);
    }

    #[test]
    fn a_listener_and_its_process_are_found() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let found: Vec<Listener> = listeners().into_iter().filter(|one| one.takes(address)).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        let everywhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), address.port());
        assert!(
            found[0].takes(everywhere) && !found[0].takes(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), address.port()))
        );
        // This process is left out, so the socket has no other one.
        assert_eq!(found[0].process(), None);
        assert!(open_files(std::process::id()).contains(&PathBuf::from(format!("socket:[{}]", found[0].inode))));
        assert!(words_of(std::process::id()).starts_with(&format!("process {} (", std::process::id())));
    }

    #[test]
    fn limits_of_a_process() {
        let (soft, hard) = limit_of(std::process::id(), "Max open files").unwrap();
        assert!(soft > 0 && hard >= soft);
        assert_eq!(limit_of(std::process::id(), "Max nonsense"), None);
        assert_eq!(kib_field("A: 1 kB\nMemTotal:  2 kB\n", "MemTotal:"), Some(2_048));
    }
}
