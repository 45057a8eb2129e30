//! The row `notifications`: many subscriptions on one connection, and blocks that touch some of them.
//!
//! Input: a running node, a coin of each script. Output: memory per subscription, the time to subscribe, and for each
//! block the time from the call of `submitblock` to the first and to the last notification. Invariants: a round is over
//! when every script that the block touches was announced with the status that follows from the blocks and the mempool;
//! what is announced besides is counted as wrong. Cost: the lab has the history of each script in memory.

use super::history::handshake;
use super::model::{Model, Round, TOUCHED_PER_GROUP};
use super::node::Node;
use crate::error::LabError;
use crate::runs::system;
use lydian_chains::presets::maker::Maker;
use lydian_primitives::{OutPoint, to_hex};
use lydian_report::results::rounded;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

/// Requests in a batch.
const BATCH: usize = 1_000;
const READ_BYTES: usize = 1 << 16;
/// After the last notification of a round, time for those that should not come.
const QUIET: Duration = Duration::from_millis(200);
const SUBSCRIBE: &str = "blockchain.scripthash.subscribe";

/// What subscribing took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subscribed {
    pub subscriptions: usize,
    pub seconds: f64,
    /// Growth of the node's memory by a subscription.
    pub bytes_per_subscription: f64,
    /// Statuses that do not follow from the blocks.
    pub wrong: usize,
}

/// Blocks that touch about the same number of scripts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Notified {
    /// The number of scripts that was asked for.
    pub touched: u32,
    /// Of each block: subscribed scripts whose status it changed.
    pub changed: Vec<usize>,
    /// Milliseconds from the call of `submitblock` until it returned.
    pub submit_ms: Vec<f64>,
    /// Until the notification of the header.
    pub header_ms: Vec<f64>,
    /// Until the first notification of a script, and until the last one that was due.
    pub first_ms: Vec<f64>,
    pub last_ms: Vec<f64>,
    /// From the return of `submitblock`, when the block is connected, until that last one.
    pub connected_ms: Vec<f64>,
    /// Notifications in addition to one for each script.
    pub repeated: usize,
    /// Notifications of scripts that the block does not touch, or whose last status is not the right one.
    pub wrong: usize,
}

/// A connection whose lines are received with their times.
#[derive(Debug)]
struct Lines {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// Start of what was not returned.
    start: usize,
    /// When the last bytes of the buffer came.
    at: Instant,
}

impl Lines {
    fn new(stream: TcpStream) -> Lines {
        Lines { stream, buffer: Vec::new(), start: 0, at: system::now() }
    }

    /// The next line, or `None` if there is none until then.
    fn next(&mut self, until: Instant) -> Result<Option<(Instant, Value)>, LabError> {
        let failed = |reason: String| LabError::program("lydian", format!("notifications: {reason}"));
        let mut searched = self.start;
        loop {
            let found = self.buffer.get(searched..).and_then(|rest| rest.iter().position(|byte| *byte == b'\n'));
            if let Some(found) = found {
                let line = self.buffer.get(self.start..searched + found).unwrap_or_default();
                let line = serde_json::from_slice(line).map_err(|error| failed(error.to_string()))?;
                self.start = searched + found + 1;
                return Ok(Some((self.at, line)));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            searched = self.buffer.len();
            let left = until.saturating_duration_since(system::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left)).map_err(|error| failed(error.to_string()))?;
            self.buffer.resize(searched + READ_BYTES, 0);
            let read = self.stream.read(&mut self.buffer[searched..]);
            self.at = system::now();
            self.buffer.truncate(searched + read.as_ref().map_or(0, |&size| size));
            match read {
                Ok(0) => return Err(failed("the connection ended".to_owned())),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error.to_string())),
            }
        }
    }

    /// Sends a batch of a method for these scripts; returns the results in their order.
    fn batch(&mut self, method: &str, hashes: &[&str], timeout: Duration) -> Result<Vec<Value>, LabError> {
        let failed = |reason: String| LabError::program("lydian", format!("{method}: {reason}"));
        let call = |(id, hash): (usize, &&str)| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": [hash]});
        let mut message = Value::from(hashes.iter().enumerate().map(call).collect::<Vec<Value>>()).to_string();
        message.push('\n');
        self.stream.write_all(message.as_bytes()).map_err(|error| failed(error.to_string()))?;
        let until = system::now() + timeout;
        loop {
            let Some((_, line)) = self.next(until)? else { return Err(failed("no answer in time".to_owned())) };
            let Value::Array(answers) = line else { continue };
            let mut results = vec![Value::Null; hashes.len()];
            for mut answer in answers {
                let id = answer["id"].as_u64().and_then(|id| usize::try_from(id).ok());
                let place = id.and_then(|id| results.get_mut(id));
                match (place, answer.get_mut("result")) {
                    (Some(place), Some(result)) => *place = result.take(),
                    _ => return Err(failed(answer.to_string())),
                }
            }
            return Ok(results);
        }
    }
}

/// The subscriptions and what is known of them.
#[derive(Debug)]
pub struct Watch<'a> {
    node: &'a Node<'a>,
    lines: Lines,
    model: Model,
    maker: Maker,
}

/// What came in a round.
#[derive(Debug, Default)]
struct Heard {
    header: Option<Instant>,
    first: Option<Instant>,
    last: Option<Instant>,
    /// How often each script was announced, and its last status.
    scripts: HashMap<usize, (usize, Value)>,
    foreign: usize,
}

impl<'a> Watch<'a> {
    /// Subscribes to all scripts on one connection. Caches are filled before, and are not counted as subscriptions.
    pub fn new(
        node: &'a Node<'a>,
        coins: &[(u32, OutPoint)],
        maker: Maker,
    ) -> Result<(Watch<'a>, Subscribed), LabError> {
        let model = Model::new(coins);
        let timeout = node.home().timeout;
        let hashes: Vec<&str> = model.hashes().collect();
        let mut warm = Lines::new(handshake(node)?);
        for part in hashes.chunks(BATCH) {
            warm.batch("blockchain.scripthash.get_history", part, timeout)?;
        }
        drop(warm);
        let mut lines = Lines::new(handshake(node)?);
        let headers = b"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"blockchain.headers.subscribe\",\"params\":[]}\n";
        lines.stream.write_all(headers).map_err(|error| LabError::program("lydian", error))?;
        let before = node.rss_bytes();
        let start = system::now();
        let (mut wrong, mut number) = (0, 0);
        for part in hashes.chunks(BATCH) {
            node.home().check_interrupted()?;
            for status in lines.batch(SUBSCRIBE, part, timeout)? {
                wrong += usize::from(status != model.status(number));
                number += 1;
            }
        }
        let seconds = rounded(start.elapsed().as_secs_f64());
        let growth = node.rss_bytes().saturating_sub(before);
        let bytes_per_subscription = per(growth, hashes.len());
        let subscribed = Subscribed { subscriptions: hashes.len(), seconds, bytes_per_subscription, wrong };
        Ok((Watch { node, lines, model, maker }, subscribed))
    }

    /// Connects blocks that touch about this many scripts each.
    pub fn blocks(&mut self, touched: u32, rounds: u32) -> Result<Notified, LabError> {
        let mut notified = Notified { touched, ..Notified::default() };
        // The first block has no children of an earlier one.
        for round in 0..=rounds {
            let one = self.block(touched)?;
            if round > 0 {
                notified.add(one);
            } else {
                notified.wrong += one.wrong;
            }
        }
        Ok(notified)
    }

    /// Connects one of them.
    pub fn block(&mut self, touched: u32) -> Result<Notified, LabError> {
        self.node.home().check_interrupted()?;
        let planned = self.model.plan((touched as usize).div_ceil(TOUCHED_PER_GROUP));
        self.wait_in_mempool(&planned)?;
        self.connect(&planned)
    }

    /// The hashes of the scripts.
    pub fn hashes(&self) -> impl Iterator<Item = &str> {
        self.model.hashes()
    }

    /// Sends the transactions that wait, and receives their notifications.
    fn wait_in_mempool(&mut self, round: &Round) -> Result<(), LabError> {
        for moved in round.waiting.iter().chain(&round.children) {
            self.node.call("sendrawtransaction", &json!([to_hex(&moved.tx.encode())]))?;
        }
        let due = self.model.accept(round);
        let heard = self.hear(&due)?;
        match self.wrong(&heard, &due) {
            0 => Ok(()),
            wrong => Err(self.node.home().error(format!("{wrong} notifications of the mempool are wrong"))),
        }
    }

    fn connect(&mut self, round: &Round) -> Result<Notified, LabError> {
        let txs = self.model.block(round).map(|moved| moved.tx.clone()).collect();
        let block = self.maker.block(txs);
        self.maker.advance(&block);
        let params = json!([to_hex(&block.encode())]);
        let due = self.model.connect(round, self.maker.height);
        let node = self.node;
        let (start, submitted, heard) = thread::scope(|scope| -> Result<_, LabError> {
            let start = system::now();
            let caller = scope.spawn(|| node.call("submitblock", &params).map(|answer| (system::now(), answer)));
            let heard = self.hear(&due)?;
            let joined = caller.join().map_err(|_| LabError::program("submitblock", "its thread ended"))?;
            let (submitted, answer) = joined?;
            match answer {
                Value::Null => Ok((start, submitted, heard)),
                reason => Err(LabError::program("submitblock", reason)),
            }
        })?;
        let wrong = self.wrong(&heard, &due);
        let since = |at: Option<Instant>| {
            at.map(|at| rounded(at.saturating_duration_since(start).as_secs_f64() * 1e3)).into_iter().collect()
        };
        let connected = heard.last.map(|last| rounded(last.saturating_duration_since(submitted).as_secs_f64() * 1e3));
        let count: usize = heard.scripts.values().map(|(count, _)| count).sum();
        Ok(Notified {
            touched: 0,
            changed: vec![due.len()],
            submit_ms: since(Some(submitted)),
            header_ms: since(heard.header),
            first_ms: since(heard.first),
            last_ms: since(heard.last),
            connected_ms: connected.into_iter().collect(),
            repeated: count.saturating_sub(heard.scripts.len()),
            wrong,
        })
    }

    /// Receives notifications until each of these scripts was announced with its present status, and a moment longer.
    fn hear(&mut self, due: &BTreeSet<usize>) -> Result<Heard, LabError> {
        let statuses: HashMap<usize, Value> = due.iter().map(|&script| (script, self.model.status(script))).collect();
        let mut left: BTreeSet<usize> = due.clone();
        let mut heard = Heard::default();
        let mut until = system::now() + self.node.home().timeout;
        loop {
            let Some((at, line)) = self.lines.next(until)? else {
                return match left.len() {
                    0 => Ok(heard),
                    left => Err(self.node.home().error(format!("{left} scripts were not announced"))),
                };
            };
            if line["method"] == "blockchain.headers.subscribe" {
                heard.header.get_or_insert(at);
            }
            if line["method"] != SUBSCRIBE {
                continue;
            }
            let Some(script) = line["params"][0].as_str().and_then(|hash| self.model.number(hash)) else {
                heard.foreign += 1;
                continue;
            };
            let status = line["params"][1].clone();
            heard.first.get_or_insert(at);
            if statuses.get(&script) == Some(&status) && left.remove(&script) && left.is_empty() {
                heard.last = Some(at);
                until = at + QUIET;
            }
            let entry = heard.scripts.entry(script).or_default();
            *entry = (entry.0 + 1, status);
        }
    }

    fn wrong(&self, heard: &Heard, due: &BTreeSet<usize>) -> usize {
        let is_wrong = |(script, (_, status)): &(&usize, &(usize, Value))| {
            !due.contains(script) || *status != self.model.status(**script)
        };
        heard.foreign + heard.scripts.iter().filter(is_wrong).count()
    }
}

impl Notified {
    /// Adds the figures of another block.
    pub(super) fn add(&mut self, mut one: Notified) {
        self.changed.append(&mut one.changed);
        self.submit_ms.append(&mut one.submit_ms);
        self.header_ms.append(&mut one.header_ms);
        self.first_ms.append(&mut one.first_ms);
        self.last_ms.append(&mut one.last_ms);
        self.connected_ms.append(&mut one.connected_ms);
        self.repeated += one.repeated;
        self.wrong += one.wrong;
    }
}

#[allow(clippy::cast_precision_loss, reason = "bytes of a process lie far below 2^52")]
fn per(bytes: u64, count: usize) -> f64 {
    rounded(bytes as f64 / count.max(1) as f64)
}
