//! The row `load`: blocks while wallets keep the Electrum server busy, beside the same blocks without them.
//!
//! Input: the subscriptions of the row `notifications`, a number of connections. Output: for both, the times of blocks
//! that touch about the same number of scripts; one block without load and one with it in turn. Each connection asks
//! for the history of one script after another. Invariant: an answer that is no list is counted as failed. Cost: one
//! thread per connection.

use super::history::handshake;
use super::node::Node;
use super::notifications::{Notified, Watch};
use crate::error::LabError;
use crate::runs::system;
use lydian_chains::rng::Random;
use lydian_report::results::rounded;
use serde::Serialize;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The load lasts so long before a block comes.
const BEFORE: Duration = Duration::from_millis(300);

/// The same blocks with and without load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UnderLoad {
    pub connections: u32,
    /// Answers in a second, over all connections.
    pub per_second: f64,
    /// Answers that were none, and connections that ended.
    pub failed: u64,
    pub idle: Notified,
    pub loaded: Notified,
}

/// What the connections share.
#[derive(Debug, Default)]
struct Counts {
    is_over: AtomicBool,
    answered: AtomicU64,
    failed: AtomicU64,
}

/// Connects `rounds` blocks without load and as many with it.
pub fn measure(
    node: &Node<'_>,
    watch: &mut Watch<'_>,
    connections: u32,
    touched: u32,
    rounds: u32,
) -> Result<UnderLoad, LabError> {
    let hashes: Vec<String> = watch.hashes().map(str::to_owned).collect();
    let none = Notified { touched, ..Notified::default() };
    let (mut idle, mut loaded, mut answered, mut failed, mut seconds) = (none.clone(), none, 0, 0, 0.0);
    for _ in 0..rounds {
        idle.add(watch.block(touched)?);
        let mut streams = Vec::new();
        for _ in 0..connections {
            streams.push(handshake(node)?);
        }
        let counts = Counts::default();
        let start = system::now();
        let block = thread::scope(|scope| {
            for (number, stream) in (0..).zip(streams) {
                let (counts, hashes) = (&counts, &hashes);
                scope.spawn(move || ask(stream, number, hashes, counts));
            }
            thread::sleep(BEFORE);
            let block = watch.block(touched);
            counts.is_over.store(true, Ordering::Relaxed);
            block
        });
        loaded.add(block?);
        seconds += start.elapsed().as_secs_f64();
        answered += counts.answered.load(Ordering::Relaxed);
        failed += counts.failed.load(Ordering::Relaxed);
    }
    let per_second = rounded(per(answered, seconds));
    Ok(UnderLoad { connections, per_second, failed, idle, loaded })
}

/// One connection.
fn ask(stream: TcpStream, number: u64, hashes: &[String], counts: &Counts) {
    let mut random = Random::new(number, "scale load");
    let (mut reader, mut line) = (BufReader::new(stream), Vec::new());
    while !counts.is_over.load(Ordering::Relaxed) {
        let hash = &hashes[random.index(hashes.len())];
        let request =
            format!("{{\"id\":1,\"method\":\"blockchain.scripthash.get_history\",\"params\":[\"{hash}\"]}}\n");
        line.clear();
        let sent = reader.get_mut().write_all(request.as_bytes());
        let is_list = |line: &[u8]| line.windows(10).any(|part| part == b"\"result\":[");
        match sent.and_then(|()| reader.read_until(b'\n', &mut line)) {
            Ok(1..) if is_list(&line) => counts.answered.fetch_add(1, Ordering::Relaxed),
            Ok(1..) => counts.failed.fetch_add(1, Ordering::Relaxed),
            Ok(0) | Err(_) => {
                counts.failed.fetch_add(1, Ordering::Relaxed);
                return;
            }
        };
    }
}

#[allow(clippy::cast_precision_loss, reason = "requests of some seconds lie far below 2^52")]
fn per(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
