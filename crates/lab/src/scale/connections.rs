//! The row `connections`: very many connections opened and closed, and a wallet that asks meanwhile.
//!
//! Input: a running node, how many connections, how many of them at once. Output: the memory of the node before, with
//! the first and the last wave open, and after; the wallet's waiting times. Each connection makes the handshake and
//! subscribes to the headers and to a script. Cost: two sockets per open connection. Must never: open more connections
//! at once than the server accepts.

use super::history::hello;
use super::node::{Node, PROTOCOL_MAX};
use crate::electrum::client::request;
use crate::error::LabError;
use crate::runs::system;
use lydian_report::results::rounded;
use serde::Serialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Answers that a connection waits for.
const ANSWERS: usize = 3;
/// Between two questions of the wallet.
const PAUSE: Duration = Duration::from_millis(5);
/// After the last connection was closed, time for the server to notice it.
const SETTLES: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connections {
    pub connections: u32,
    pub at_once: u32,
    pub seconds: f64,
    pub before_bytes: u64,
    /// With the first and the last wave open.
    pub first_wave_bytes: u64,
    pub last_wave_bytes: u64,
    pub after_bytes: u64,
    /// Connections that did not get their answers.
    pub failed: u32,
    /// Sessions that the server still has at the end, without that of the wallet.
    pub left: u64,
    /// Of each question of the wallet.
    #[serde(skip)]
    pub wallet_ms: Vec<f64>,
    pub wallet_p50_ms: f64,
    pub wallet_max_ms: f64,
    /// Questions of the wallet that were not answered rightly.
    pub wallet_wrong: u32,
}

/// Opens and closes connections. The wallet asks for the balance of a script, which must be `balance`.
pub fn measure(node: &Node<'_>, script: &str, balance: i64, count: u32, at_once: u32) -> Result<Connections, LabError> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let wallet = scope.spawn(|| wallet(node, script, balance, &is_over));
        let waves = waves(node, script, count, at_once);
        is_over.store(true, Ordering::Relaxed);
        let wallet = wallet.join().map_err(|_| LabError::program("wallet", "its thread ended"))?;
        let (mut all, (mut wallet_ms, wrong)) = (waves?, wallet?);
        wallet_ms.sort_by(f64::total_cmp);
        all.wallet_p50_ms = wallet_ms.get(wallet_ms.len() / 2).copied().unwrap_or_default();
        all.wallet_max_ms = wallet_ms.last().copied().unwrap_or_default();
        (all.wallet_ms, all.wallet_wrong) = (wallet_ms, wrong);
        Ok(all)
    })
}

fn waves(node: &Node<'_>, script: &str, count: u32, at_once: u32) -> Result<Connections, LabError> {
    let mut message = hello(PROTOCOL_MAX);
    message.extend(request("blockchain.headers.subscribe", &json!([])));
    message.extend(request("blockchain.scripthash.subscribe", &json!([script])));
    let port = node.place().port;
    let (mut left, mut failed, mut first_wave, mut last_wave) = (count, 0, None, 0);
    let before_bytes = node.rss_bytes();
    let start = system::now();
    while left > 0 {
        node.home().check_interrupted()?;
        let wave = left.min(at_once.max(1));
        left -= wave;
        let open: Vec<Option<TcpStream>> = (0..wave).map(|_| open(port, &message, node.home().timeout)).collect();
        let is_answered = |stream: &Option<TcpStream>| {
            stream.as_ref().is_some_and(|stream| {
                let lines = BufReader::new(stream).lines().take(ANSWERS);
                lines.filter(|line| line.as_ref().is_ok_and(|line| line.contains("\"result\""))).count() == ANSWERS
            })
        };
        failed += u32::try_from(open.iter().filter(|stream| !is_answered(stream)).count()).unwrap_or(u32::MAX);
        last_wave = node.rss_bytes();
        first_wave.get_or_insert(last_wave);
    }
    let seconds = rounded(start.elapsed().as_secs_f64());
    thread::sleep(SETTLES);
    let sessions = node.call("listelectrumsessions", &json!([]))?;
    let sessions = sessions.as_array().map_or(0, |sessions| sessions.len() as u64);
    Ok(Connections {
        connections: count,
        at_once,
        seconds,
        before_bytes,
        first_wave_bytes: first_wave.unwrap_or(before_bytes),
        last_wave_bytes: last_wave,
        after_bytes: node.rss_bytes(),
        failed,
        left: sessions.saturating_sub(1),
        wallet_ms: Vec::new(),
        wallet_p50_ms: 0.0,
        wallet_max_ms: 0.0,
        wallet_wrong: 0,
    })
}

fn open(port: u16, message: &[u8], timeout: Duration) -> Option<TcpStream> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()?;
    stream.set_read_timeout(Some(timeout)).ok()?;
    stream.write_all(message).ok()?;
    Some(stream)
}

/// Asks until it is over; returns the waiting times in milliseconds and the number of wrong answers.
fn wallet(node: &Node<'_>, script: &str, balance: i64, is_over: &AtomicBool) -> Result<(Vec<f64>, u32), LabError> {
    let mut client = node.connect()?;
    let (mut waited, mut wrong) = (Vec::new(), 0);
    while !is_over.load(Ordering::Relaxed) {
        let start = system::now();
        let answer = client.call("blockchain.scripthash.get_balance", &json!([script]))?;
        waited.push(rounded(start.elapsed().as_secs_f64() * 1e3));
        wrong += u32::from(answer["confirmed"] != balance);
        thread::sleep(PAUSE);
    }
    Ok((waited, wrong))
}
