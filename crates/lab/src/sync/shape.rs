//! Connections of poor quality: a loopback port that makes a server appear slow, far away, or silent after a while; and
//! the bytes that pass.
//!
//! Input: a server's address, a shape. Output: an address that behaves like that. Bytes are forwarded unchanged and in
//! order; only their timing changes. A rate applies to what the server sends. Half of a latency is added in each
//! direction, so that the latency is the round-trip time. A stall begins after a number of bytes from the server, and
//! the connection stays open. Cost: two threads per connection, four with a latency, and copies of its bytes. Must
//! never: lose or add a byte of a connection that lasts, or hold more than [`QUEUE_BYTES_MAX`] in one direction.

use crate::error::LabError;
use crate::runs::system::now;
use crate::runs::traffic::{Counted, Traffic};
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

const CHUNK_BYTES: usize = 64 << 10;
/// Bytes in transit in one direction: large enough that a latency does not limit the rate.
const QUEUE_BYTES_MAX: usize = 64 << 20;
/// A slow link forwards little at a time.
const SLOW_CHUNK_BYTES: usize = 8 << 10;

/// How a connection behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Good,
    /// The server goes silent after this number of bytes.
    Stall {
        after_bytes: u64,
    },
    Rate {
        bytes_per_second: u64,
    },
    /// Round trip.
    Latency {
        milliseconds: u64,
    },
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Good => f.write_str("good"),
            Shape::Stall { after_bytes } => write!(f, "stall@{after_bytes}"),
            Shape::Rate { bytes_per_second } => write!(f, "{}kBps", bytes_per_second / 1_000),
            Shape::Latency { milliseconds } => write!(f, "{milliseconds}ms"),
        }
    }
}

impl FromStr for Shape {
    type Err = String;

    /// Parses `good`, `stall` (after 256 KiB; or with a number as in `stall@1000000`), `1MBps`, `500kBps`, `200ms`.
    fn from_str(text: &str) -> Result<Shape, String> {
        let number = |digits: &str| digits.parse::<u64>().ok().filter(|&value| value > 0 && value < 1 << 32);
        let shape = match text {
            "good" => Some(Shape::Good),
            "stall" => Some(Shape::Stall { after_bytes: 256 << 10 }),
            _ => None,
        };
        let stall = || Some(Shape::Stall { after_bytes: number(text.strip_prefix("stall@")?)? });
        let rate = |unit: &str, factor: u64| {
            Some(Shape::Rate { bytes_per_second: number(text.strip_suffix(unit)?)?.checked_mul(factor)? })
        };
        let latency = || Some(Shape::Latency { milliseconds: number(text.strip_suffix("ms")?)? });
        shape
            .or_else(stall)
            .or_else(|| rate("MBps", 1_000_000))
            .or_else(|| rate("kBps", 1_000))
            .or_else(latency)
            .ok_or_else(|| format!("{text} is none of good, stall, stall@BYTES, 1MBps, 500kBps, 200ms"))
    }
}

/// Listens until it is dropped; a connection lasts until one of its ends closes it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddrV4,
    traffic: Arc<Traffic>,
    is_over: Arc<AtomicBool>,
}

impl Proxy {
    pub fn start(server: SocketAddr, shape: Shape) -> Result<Proxy, LabError> {
        let failed = |error| LabError::program("loopback", error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let SocketAddr::V4(address) = listener.local_addr().map_err(failed)? else {
            return Err(LabError::program("loopback", "the address is not of version 4"));
        };
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let traffic = Arc::new(Traffic::default());
        let counted = Arc::clone(&traffic);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                // If a connection fails, the peers must handle it.
                let _ = stream.and_then(|client| connect(client, server, shape, &counted));
            }
        });
        Ok(Proxy { address, traffic, is_over })
    }

    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }

    pub fn traffic(&self) -> Arc<Traffic> {
        Arc::clone(&self.traffic)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the listening thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn connect(client: TcpStream, server: SocketAddr, shape: Shape, traffic: &Arc<Traffic>) -> std::io::Result<()> {
    let server = TcpStream::connect(server)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, from_server) = (client.try_clone()?, server.try_clone()?);
    let (of_client, of_server) = (Arc::clone(traffic), Arc::clone(traffic));
    thread::spawn(move || {
        let (from, to) = (Counted(&from_client, &of_client.from_clients), &server);
        match shape {
            Shape::Latency { milliseconds } => late(from, to, Duration::from_micros(milliseconds * 500)),
            Shape::Good | Shape::Stall { .. } | Shape::Rate { .. } => pass(from, to, CHUNK_BYTES, |_| true),
        }
        let _ = (from.0.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
    thread::spawn(move || {
        let (from, to) = (Counted(&from_server, &of_server.from_server), &client);
        match shape {
            Shape::Good => pass(from, to, CHUNK_BYTES, |_| true),
            Shape::Latency { milliseconds } => late(from, to, Duration::from_micros(milliseconds * 500)),
            Shape::Rate { bytes_per_second } => {
                let mut due = now();
                pass(from, to, SLOW_CHUNK_BYTES, |bytes| {
                    due = due.max(now()) + time_of(bytes, bytes_per_second);
                    sleep_until(due);
                    true
                });
            }
            Shape::Stall { after_bytes } => {
                let mut left = after_bytes;
                pass(from, to, SLOW_CHUNK_BYTES, |bytes| {
                    left = left.saturating_sub(bytes as u64);
                    left > 0
                });
                if left == 0 {
                    // The other direction closes both.
                    return;
                }
            }
        }
        let _ = (from.0.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
    Ok(())
}

/// Forwards data until one side ends, or until `goes_on`, called before each piece is written, returns `false`.
fn pass(mut from: Counted<'_>, mut to: &TcpStream, chunk: usize, mut goes_on: impl FnMut(usize) -> bool) {
    let mut buffer = vec![0; chunk];
    while let Some(size) = read(&mut from, &mut buffer) {
        if !goes_on(size) || to.write_all(&buffer[..size]).is_err() {
            return;
        }
    }
}

/// Forwards everything with this delay.
fn late(mut from: Counted<'_>, to: &TcpStream, delay: Duration) {
    let (sender, receiver): (SyncSender<(Instant, Vec<u8>)>, Receiver<_>) = sync_channel(QUEUE_BYTES_MAX / CHUNK_BYTES);
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut to = to;
            for (due, bytes) in receiver {
                sleep_until(due);
                if to.write_all(&bytes).is_err() {
                    let _ = to.shutdown(Shutdown::Both);
                    return;
                }
            }
        });
        let mut buffer = vec![0; CHUNK_BYTES];
        while let Some(size) = read(&mut from, &mut buffer) {
            if sender.send((now() + delay, buffer[..size].to_vec())).is_err() {
                break;
            }
        }
        drop(sender);
    });
}

/// `None` at the end of the stream or after an error.
fn read(from: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match from.read(buffer) {
            Ok(0) => return None,
            Ok(size) => return Some(size),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

fn time_of(bytes: usize, bytes_per_second: u64) -> Duration {
    Duration::from_nanos((bytes as u64).saturating_mul(1_000_000_000) / bytes_per_second)
}

fn sleep_until(due: Instant) {
    thread::sleep(due.saturating_duration_since(now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that sends this number of bytes to every client, then the four bytes that it received.
    fn server(bytes: usize) -> SocketAddrV4 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let SocketAddr::V4(address) = listener.local_addr().unwrap() else { panic!("not version 4") };
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    let mut asked = [0; 4];
                    let _ = stream.read_exact(&mut asked);
                    let _ = stream.write_all(&pattern(bytes));
                    let _ = stream.write_all(&asked);
                });
            }
        });
        address
    }

    fn pattern(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|index| u8::try_from(index % 251).unwrap()).collect()
    }

    /// A busy machine may take this long to forward the next piece.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// Waits for `expected` bytes, and then until nothing more arrives for a second. Returns what came through, and the
    /// times of the first and the last byte.
    fn through(shape: Shape, bytes: usize, expected: usize) -> (Vec<u8>, Duration, Duration) {
        let proxy = Proxy::start(server(bytes).into(), shape).unwrap();
        let began = now();
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"ping").unwrap();
        let (mut all, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
        let (mut first, mut last) = (Duration::ZERO, Duration::ZERO);
        while let Some(size) = stream.read(&mut buffer).ok().filter(|&size| size > 0) {
            last = began.elapsed();
            if all.is_empty() {
                first = last;
            }
            all.extend_from_slice(&buffer[..size]);
            if all.len() >= expected {
                stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            }
        }
        (all, first, last)
    }

    fn whole(bytes: usize) -> Vec<u8> {
        [pattern(bytes), b"ping".to_vec()].concat()
    }

    #[test]
    fn bytes_come_through_as_they_are() {
        for shape in [Shape::Good, Shape::Latency { milliseconds: 20 }, Shape::Rate { bytes_per_second: 4_000_000 }] {
            let (all, ..) = through(shape, 1_000_001, 1_000_005);
            assert!(all == whole(1_000_001), "{shape:?}: {} bytes", all.len());
        }
    }

    #[test]
    fn a_latency_delays_and_does_not_throttle() {
        let (all, first, last) = through(Shape::Latency { milliseconds: 300 }, 8_000_000, 8_000_004);
        assert_eq!(all.len(), 8_000_004);
        assert!(first >= Duration::from_millis(300), "{first:?}");
        // One piece of 64 KiB at a time would take 37 s.
        assert!(last - first < Duration::from_secs(20), "{first:?} {last:?}");
    }

    #[test]
    fn a_rate_throttles() {
        let (all, _, last) = through(Shape::Rate { bytes_per_second: 1_000_000 }, 1_000_000, 1_000_004);
        assert_eq!(all.len(), 1_000_004);
        assert!(last >= Duration::from_millis(980), "{last:?}");
    }

    #[test]
    fn a_stall_comes_after_its_bytes_and_keeps_the_connection() {
        let (all, ..) = through(Shape::Stall { after_bytes: 100_000 }, 1_000_000, 100_000 - SLOW_CHUNK_BYTES);
        assert!(!all.is_empty() && all.len() < 100_000 && all.len() + SLOW_CHUNK_BYTES >= 100_000, "{}", all.len());
        assert!(whole(1_000_000).starts_with(&all));
        // Fewer bytes arrive completely.
        assert_eq!(through(Shape::Stall { after_bytes: 100_000 }, 50_000, 50_004).0, whole(50_000));
    }

    #[test]
    fn shapes_have_names() {
        let shape = |text: &str| text.parse::<Shape>();
        assert_eq!(shape("good"), Ok(Shape::Good));
        assert_eq!(shape("stall@7"), Ok(Shape::Stall { after_bytes: 7 }));
        assert_eq!(shape("2MBps"), Ok(Shape::Rate { bytes_per_second: 2_000_000 }));
        assert_eq!(shape("500kBps"), Ok(Shape::Rate { bytes_per_second: 500_000 }));
        assert_eq!(shape("200ms"), Ok(Shape::Latency { milliseconds: 200 }));
        for text in ["good", "stall@7", "500kBps", "200ms"] {
            assert_eq!(shape(text).unwrap().to_string(), text);
        }
        for wrong in ["", "bad", "0ms", "-1ms", "1MB", "stall@", "99999999999999999999ms"] {
            assert!(shape(wrong).is_err(), "{wrong}");
        }
    }
}
