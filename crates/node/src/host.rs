//! The host: home, working directory, cores, memory, name lookup, open files. Output: plain values and functions, so
//! that settings can be resolved against any host.

use lydian_wire::NetAddr;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::thread;

/// A machine, and a process on it.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) home: Option<PathBuf>,
    /// The working directory.
    pub(crate) directory: PathBuf,
    pub(crate) cores: usize,
    /// All memory of the machine: Core's `GetTotalRAM`.
    pub(crate) memory_bytes: Option<u64>,
    /// Returns the first address of a name.
    pub(crate) lookup: fn(&str) -> Option<IpAddr>,
    /// Raises the limit on open files towards this number; returns the limit that holds.
    pub(crate) descriptors: fn(u64) -> u64,
}

impl Host {
    pub(crate) fn this() -> Host {
        Host {
            home: env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            directory: env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: crate::process::memory_bytes(),
            lookup,
            descriptors,
        }
    }

    /// Makes a path absolute, without "." components, so that each path has one spelling.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.directory.join(path).components().collect()
    }

    pub(crate) fn default_datadir(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(".lydian"))
    }
}

/// Addresses of this machine's interfaces except loopback: Core's `GetLocalAddresses`. Empty if the system does not
/// report them.
pub(crate) fn interfaces() -> Vec<NetAddr> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    all.iter().filter(|interface| !interface.is_loopback()).map(|interface| NetAddr::from(interface.ip())).collect()
}

fn lookup(name: &str) -> Option<IpAddr> {
    (name, 0).to_socket_addrs().ok()?.next().map(|address| address.ip())
}

/// Raises the limit on open files as far as the system permits: Core's `RaiseFileDescriptorLimit`.
fn descriptors(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // `None` means no limit.
    let current = limit.current.unwrap_or(u64::MAX);
    if current >= wanted {
        return current;
    }
    let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
    match setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum: limit.maximum }) {
        Ok(()) => raised,
        Err(_) => current,
    }
}
