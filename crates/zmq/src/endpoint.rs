//! The address of a notifier: parsed as libzmq does, and bound.
//!
//! Input: `tcp://HOST:PORT` with a numeric address or `*`, or `ipc://PATH`. Output: a listening socket. Invariants: a
//! socket file is replaced only if no process listens there, and no other file ever is (libzmq deletes whatever has the
//! path); the socket file is removed at the end.
//!
//! As in Core's use of libzmq, `*` means all IPv4 addresses, and `[::]` accepts IPv4 connections too.

use lydian_disk::{Change, Disk, DiskError, OwnDir, OwnFile, Proof};
use socket2::{Domain, Protocol, Socket, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pending connections: libzmq's `ZMQ_BACKLOG`.
const BACKLOG: i32 = 100;

/// The socket file. An option sets its name.
pub const SOCKET_FILES: &[OwnFile] = &[OwnFile { name: "*", proof: Proof::Option }];

/// Why an address cannot be used.
#[derive(Debug)]
pub enum BindError {
    /// It is not of a form that is supported.
    Address,
    /// A process listens there, or the system refuses.
    System(io::Error),
    /// The path of a socket names another file.
    NotASocket,
    /// The file of a socket that no process uses cannot be removed.
    Leftover(DiskError),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BindError::Address => f.write_str("not of the form tcp://ADDRESS:PORT or unix:PATH"),
            BindError::System(error) if error.kind() == io::ErrorKind::AddrInUse => {
                f.write_str("Address already in use")
            }
            BindError::System(error) => error.fmt(f),
            BindError::NotASocket => f.write_str("the path names a file that is not a socket"),
            BindError::Leftover(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BindError {}

impl From<io::Error> for BindError {
    fn from(error: io::Error) -> BindError {
        BindError::System(error)
    }
}

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Endpoint {
    Tcp(SocketAddr),
    Ipc(PathBuf),
}

fn parse(address: &str) -> Option<Endpoint> {
    if let Some(path) = address.strip_prefix("ipc://") {
        return (!path.is_empty()).then(|| Endpoint::Ipc(path.into()));
    }
    let (host, port) = address.strip_prefix("tcp://")?.rsplit_once(':')?;
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    let ip = match host {
        "*" => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        host if is_bracketed => IpAddr::V6(host[1..host.len() - 1].parse().ok()?),
        host => host.parse().ok()?,
    };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    Some(Endpoint::Tcp(SocketAddr::new(ip, port)))
}

/// A listening socket.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    Ipc(UnixListener, SocketFile),
}

/// The file of a socket; removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    disk: Arc<dyn Disk>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // If it stays, the next start removes it.
        let _ = remove(&*self.disk, &self.path);
    }
}

fn remove(disk: &dyn Disk, path: &Path) -> Result<(), DiskError> {
    OwnDir::of(path, SOCKET_FILES).change(disk, path, Change::Remove)
}

/// Opens a non-blocking listening socket.
pub(crate) fn bind(address: &str, disk: &Arc<dyn Disk>) -> Result<Listener, BindError> {
    match parse(address).ok_or(BindError::Address)? {
        Endpoint::Tcp(address) => Ok(Listener::Tcp(bind_tcp(address)?)),
        Endpoint::Ipc(path) => {
            clear(&**disk, &path)?;
            let listener = UnixListener::bind(&path)?;
            let file = SocketFile { path, disk: Arc::clone(disk) };
            listener.set_nonblocking(true)?;
            Ok(Listener::Ipc(listener, file))
        }
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Removes the socket file that a process left behind when it was killed.
fn clear(disk: &dyn Disk, path: &Path) -> Result<(), BindError> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
        Ok(metadata) if !metadata.file_type().is_socket() => Err(BindError::NotASocket),
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                remove(disk, path).map_err(BindError::Leftover)
            }
            Ok(_) => Err(io::Error::from(io::ErrorKind::AddrInUse).into()),
            Err(error) => Err(error.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_disk::RealDisk;

    #[test]
    fn forms_of_addresses() {
        let tcp = |text: &str| match parse(text) {
            Some(Endpoint::Tcp(address)) => address.to_string(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(tcp("tcp://127.0.0.1:28332"), "127.0.0.1:28332");
        assert_eq!(tcp("tcp://*:28332"), "0.0.0.0:28332");
        assert_eq!(tcp("tcp://[::1]:28332"), "[::1]:28332");
        assert_eq!(tcp("tcp://::1:28332"), "[::1]:28332");
        assert_eq!(parse("ipc:///run/a b"), Some(Endpoint::Ipc("/run/a b".into())));
        for bad in
            ["", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:0", "tcp://127.0.0.1:65536", "tcp://here:1", "ipc://"]
                .into_iter()
                .chain([
                    "127.0.0.1:28332",
                    "udp://127.0.0.1:1",
                    "tcp://[127.0.0.1]:1",
                    "tcp://[:1",
                    "inproc://a",
                    "tcp://*:*",
                ])
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    /// A killed node leaves its socket file. libzmq deletes whatever has the path, even another node's socket.
    #[test]
    fn only_a_socket_without_a_listener_is_replaced() {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let path = std::env::temp_dir().join(format!("lydian-zmq-bind-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let address = format!("ipc://{}", path.display());
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.symlink_metadata().is_ok(), "a leftover");
        let listener = bind(&address, &disk).unwrap();
        let second = bind(&address, &disk).unwrap_err();
        assert_eq!(second.to_string(), "Address already in use");
        drop(listener);
        assert!(path.symlink_metadata().is_err(), "removed at the end");
        disk.write_whole(&path, b"precious").unwrap();
        assert!(matches!(bind(&address, &disk), Err(BindError::NotASocket)));
        assert_eq!(lydian_disk::read_whole(&*disk, &path, 100).unwrap(), b"precious");
        disk.remove_file(&path).unwrap();
        assert!(matches!(bind("ipc:///nowhere/at/all", &disk), Err(BindError::System(_))));
    }
}
