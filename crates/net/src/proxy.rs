//! Connects to a peer directly or through a proxy.
//!
//! Input: a target and the configured proxies. Output: a connection, or a failure of either the target or the proxy.
//!
//! Core's `ConnectDirectly` and `ConnectThroughProxy`. A proxy that cannot be reached is logged once, and again when it
//! is back; connections through it are still attempted all the time. Names are sent to the proxy unchanged and are not
//! resolved anywhere else.

use crate::socks::SocksError;
use crate::{Host, socks};
use lydian_engine::LogLevel;
use lydian_p2p::manager::AttemptFailure;
use lydian_p2p::proxies::{Proxies, Proxy, ProxyAddress, Target, Way};
use lydian_stdx::lock;
use lydian_wire::Endpoint;
use std::collections::HashSet;
use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, Ready};
use tokio::net::{TcpStream, UnixStream, tcp, unix};
use tokio::time::timeout;

/// Random bytes at the start of all credentials of one run: Core's `PREFIX_BYTE_LENGTH`.
const PREFIX_BYTES: usize = 8;

/// A connection to a peer, direct or through a proxy.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

pub(crate) type Reader = Box<dyn PeerReader>;
pub(crate) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The receiving half of a connection.
pub(crate) trait PeerReader: AsyncRead + Send + Unpin {
    /// Whether the peer has closed the connection, even if received bytes have not been read yet. Not seen while the
    /// peer's last bytes do not fit into the socket's buffer.
    fn is_closed(&self) -> bool;
}

impl PeerReader for tcp::OwnedReadHalf {
    fn is_closed(&self) -> bool {
        is_read_closed(self.ready(Interest::READABLE))
    }
}

impl PeerReader for unix::OwnedReadHalf {
    fn is_closed(&self) -> bool {
        is_read_closed(self.ready(Interest::READABLE))
    }
}

/// Returns what is known now, without waiting.
fn is_read_closed(ready: impl Future<Output = io::Result<Ready>>) -> bool {
    match pin!(ready).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Ok(ready)) => ready.is_read_closed(),
        Poll::Ready(Err(_)) => true,
        Poll::Pending => false,
    }
}

impl Stream {
    /// The local address; the default for a Unix socket.
    pub(crate) fn local(&self) -> io::Result<Endpoint> {
        match self {
            Stream::Tcp(stream) => stream.local_addr().map(Endpoint::from),
            Stream::Unix(_) => Ok(Endpoint::default()),
        }
    }

    pub(crate) fn split(self) -> (Reader, Writer) {
        match self {
            Stream::Tcp(stream) => {
                // Messages are small and wait for answers.
                let _ = stream.set_nodelay(true);
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
            Stream::Unix(stream) => {
                let (reader, writer) = stream.into_split();
                (Box::new(reader), Box::new(writer))
            }
        }
    }
}

/// Opens connections to targets.
#[derive(Debug)]
pub(crate) struct Ways {
    proxies: Proxies,
    connect_timeout: Duration,
    /// Starts all credentials, so that no other run shares its circuits.
    prefix: String,
    next_credentials: AtomicU64,
    /// Proxies that could not be reached at the last attempt.
    lost: Mutex<HashSet<String>>,
    host: Arc<dyn Host>,
}

impl Ways {
    pub(crate) fn new(proxies: Proxies, connect_timeout: Duration, host: Arc<dyn Host>) -> Ways {
        let mut bytes = [0; PREFIX_BYTES];
        host.fill_random(&mut bytes);
        let mut prefix = String::new();
        for byte in bytes {
            // Writing to memory does not fail.
            let _ = write!(prefix, "{byte:02x}");
        }
        Ways { proxies, connect_timeout, prefix, next_credentials: AtomicU64::new(0), lost: Mutex::default(), host }
    }

    /// Connects to the target.
    pub(crate) async fn find(&self, target: &Target) -> Result<Stream, AttemptFailure> {
        match (self.proxies.way(target), target) {
            (Way::Proxy(proxy), Target::Name { host, port }) => self.through(proxy, host, *port).await,
            (Way::Proxy(proxy), Target::Endpoint(endpoint)) => {
                self.through(proxy, &endpoint.addr.to_string(), endpoint.port).await
            }
            (Way::Direct(address), _) => {
                let stream = self.direct(address).await.map_err(|reason| AttemptFailure::Target { reason })?;
                Ok(Stream::Tcp(stream))
            }
            (Way::None, _) => Err(AttemptFailure::Target { reason: "there is no proxy for its network".to_owned() }),
        }
    }

    async fn direct(&self, address: SocketAddr) -> Result<TcpStream, String> {
        self.in_time(TcpStream::connect(address)).await
    }

    async fn in_time<S>(&self, opening: impl Future<Output = io::Result<S>>) -> Result<S, String> {
        match timeout(self.connect_timeout, opening).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("timeout".to_owned()),
        }
    }

    async fn through(&self, proxy: &Proxy, host: &str, port: u16) -> Result<Stream, AttemptFailure> {
        let opened = match &proxy.address {
            ProxyAddress::Tcp(endpoint) => match endpoint.socket_addr() {
                Some(address) => self.direct(address).await.map(Stream::Tcp),
                None => Err("its address is not an IP address".to_owned()),
            },
            ProxyAddress::Unix(path) => self.in_time(UnixStream::connect::<&Path>(path)).await.map(Stream::Unix),
        };
        self.note(proxy, opened.as_ref().err());
        let mut stream = opened.map_err(|reason| AttemptFailure::Proxy { reason })?;
        let credentials = proxy.isolates_streams.then(|| {
            let number = self.next_credentials.fetch_add(1, Ordering::Relaxed);
            format!("{}-{number}", self.prefix)
        });
        self.host.debug(|| format!("SOCKS5 connecting {host}"));
        let connected = match &mut stream {
            Stream::Tcp(stream) => socks::connect(stream, host, port, credentials.as_deref()).await,
            Stream::Unix(stream) => socks::connect(stream, host, port, credentials.as_deref()).await,
        };
        match connected {
            Ok(()) => {
                self.host.debug(|| format!("SOCKS5 connected {host}"));
                Ok(stream)
            }
            Err(error) => {
                self.log_socks_error(&error, host, port);
                Err(AttemptFailure::Target { reason: format!("proxy {}: {error}", proxy.address) })
            }
        }
    }

    /// Logs an error as Core's `Socks5` does.
    fn log_socks_error(&self, error: &SocksError, host: &str, port: u16) {
        match error {
            SocksError::Refused(_) => {
                self.host.debug(|| format!("Socks5() connect to {host}:{port} failed: {error}"));
            }
            SocksError::Timeout => self.host.log(
                LogLevel::Info,
                format!("Socks5() connect to {host}:{port} failed: InterruptibleRecv() timeout or other failure"),
            ),
            error => self.host.log(LogLevel::Error, error.to_string()),
        }
    }

    /// Logs that a proxy became unreachable or reachable again.
    fn note(&self, proxy: &Proxy, failure: Option<&String>) {
        let name = proxy.address.to_string();
        let mut lost = lock(&self.lost);
        match failure {
            Some(reason) => {
                if lost.insert(name.clone()) {
                    let text = format!("Proxy {name} cannot be reached ({reason}): connections through it fail");
                    self.host.log(LogLevel::Info, text);
                }
            }
            None => {
                if lost.remove(&name) {
                    self.host.log(LogLevel::Info, format!("Proxy {name} can be reached again"));
                }
            }
        }
    }
}
