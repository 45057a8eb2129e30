//! What the host is: home, working directory, cores, terminal. Output: plain values, so that settings can be resolved against any host.

use lydian_wire::NetAddr;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::env;
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::thread;

/// A machine and a process on it.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) home: Option<PathBuf>,
    /// The working directory.
    pub(crate) directory: PathBuf,
    pub(crate) cores: usize,
    /// All memory of the machine: Core's `GetTotalRAM`.
    pub(crate) memory_bytes: Option<u64>,
    /// The first address of a name.
    pub(crate) lookup: fn(&str) -> Option<IpAddr>,
    /// How many files may be open, of so many that are wanted.
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

    /// Without "." parts, so that a path is written in one way.
    pub(crate) fn absolute(&self, path: &Path) -> PathBuf {
        self.directory.join(path).components().collect()
    }

    pub(crate) fn default_datadir(&self) -> Option<PathBuf> {
        self.home.as_ref().map(|home| home.join(".lydian"))
    }
}

/// Addresses of this machine's interfaces, but those that lead back to it: Core's `GetLocalAddresses`. None where the system does not tell.
pub(crate) fn interfaces() -> Vec<NetAddr> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    all.iter().filter(|interface| !interface.is_loopback()).map(|interface| NetAddr::from(interface.ip())).collect()
}

fn lookup(name: &str) -> Option<IpAddr> {
    (name, 0).to_socket_addrs().ok()?.next().map(|address| address.ip())
}

/// Raises the limit as far as the system permits: Core's `RaiseFileDescriptorLimit`.
fn descriptors(wanted: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile);
    // Without a number there is no limit.
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
