//! The bytes that pass a proxy of the lab, as a node's own counters report them.
//!
//! Input: sizes of pieces, from any thread. Output: totals. Must never: count a byte twice.

use lydian_report::results::NetworkBytes;
use std::io::Read;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};

/// The bytes since the proxy began.
#[derive(Debug, Default)]
pub struct Traffic {
    pub from_server: AtomicU64,
    pub from_clients: AtomicU64,
}

impl Traffic {
    /// From the server's point of view.
    pub fn totals(&self) -> NetworkBytes {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        NetworkBytes { received: of(&self.from_clients), sent: of(&self.from_server) }
    }
}

/// A stream whose received bytes are counted.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a>(pub &'a TcpStream, pub &'a AtomicU64);

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = self.0.read(buffer)?;
        self.1.fetch_add(size as u64, Ordering::Relaxed);
        Ok(size)
    }
}
