//! The row `history`: a script with very many transactions, over one connection.
//!
//! Input: a running node, the expected answers. Output: for history and coins, the time until the first byte and until
//! the last; for the status, the time of the answer; the growth of the node's memory. Invariants: answers are kept as
//! received and checked outside the clock. Cost: an answer in memory, with its entries while it is checked.

use super::expected::{Expected, LongCoin, StatusText};
use super::node::Node;
use crate::electrum::client::{Client, request};
use crate::error::LabError;
use crate::runs::system;
use lydian_primitives::Txid;
use lydian_report::results::rounded;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 18;

/// One query of the long history.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LongQuery {
    pub name: &'static str,
    /// Entries of the answer.
    pub entries: usize,
    pub bytes: usize,
    /// Milliseconds of each round; the first one is right after the start of the node.
    pub first_byte_ms: Vec<f64>,
    pub all_ms: Vec<f64>,
    /// How far the node's memory rose above what it was before; `None` if the kernel does not report the peak.
    pub growth_bytes: Vec<u64>,
    pub is_right: bool,
}

#[derive(Deserialize)]
struct Answer<T> {
    result: Option<Vec<T>>,
}

#[derive(Deserialize)]
struct HistoryEntry<'a> {
    height: i64,
    tx_hash: &'a str,
}

#[derive(Deserialize)]
struct CoinEntry<'a> {
    height: i64,
    tx_hash: &'a str,
    tx_pos: u32,
    value: i64,
}

/// Whether the line is the right answer.
type Check = fn(&[u8], &Expected) -> bool;

/// What is asked: a name, a method, the number of entries, and the check of the answer.
type Question = (&'static str, &'static str, usize, Check);

/// Asks for the history, the coins and the status.
pub fn measure(node: &Node<'_>, expected: &Expected, rounds: u32) -> Result<Vec<LongQuery>, LabError> {
    let questions: [Question; 3] = [
        ("history", "blockchain.scripthash.get_history", expected.history.len(), is_history),
        ("coins", "blockchain.scripthash.listunspent", expected.coins.len(), are_coins),
        ("status", "blockchain.scripthash.subscribe", 1, is_status),
    ];
    let mut asked = Vec::new();
    // The memory of the answers is touched once, outside the clock.
    let mut answer = vec![0; (expected.history.len() + expected.coins.len()) * 128 + READ_BYTES];
    for (name, method, entries, is_right) in questions {
        let mut query = LongQuery {
            name,
            entries,
            bytes: 0,
            first_byte_ms: Vec::new(),
            all_ms: Vec::new(),
            growth_bytes: Vec::new(),
            is_right: true,
        };
        let request = request(method, &json!([expected.long]));
        for _ in 0..rounds {
            node.home().check_interrupted()?;
            round(node, &request, &mut answer, &mut query)?;
            let line = answer.get(..query.bytes.saturating_sub(1)).unwrap_or_default();
            query.is_right &= is_right(line, expected);
        }
        asked.push(query);
    }
    Ok(asked)
}

fn is_history(line: &[u8], expected: &Expected) -> bool {
    let Ok(Answer { result: Some(found) }) = serde_json::from_slice::<Answer<HistoryEntry<'_>>>(line) else {
        return false;
    };
    let is_same = |(found, (height, txid)): (&HistoryEntry<'_>, &(u32, Txid))| {
        found.height == i64::from(*height) && found.tx_hash == txid.to_string()
    };
    found.len() == expected.history.len() && found.iter().zip(&expected.history).all(is_same)
}

fn are_coins(line: &[u8], expected: &Expected) -> bool {
    let Ok(Answer { result: Some(found) }) = serde_json::from_slice::<Answer<CoinEntry<'_>>>(line) else {
        return false;
    };
    let is_same = |(found, coin): (&CoinEntry<'_>, &LongCoin)| {
        let place = (found.tx_hash, found.tx_pos, found.height, found.value);
        place == (&coin.outpoint.txid.to_string(), coin.outpoint.vout, i64::from(coin.height), coin.value)
    };
    found.len() == expected.coins.len() && found.iter().zip(&expected.coins).all(is_same)
}

fn is_status(line: &[u8], expected: &Expected) -> bool {
    let mut status = StatusText::default();
    expected.history.iter().for_each(|(height, txid)| status.add(txid, i64::from(*height)));
    let status = status.finish();
    serde_json::from_slice::<Value>(line).is_ok_and(|line| line["result"] == status)
}

/// One query over a connection of its own.
fn round(node: &Node<'_>, request: &[u8], answer: &mut Vec<u8>, query: &mut LongQuery) -> Result<(), LabError> {
    let mut stream = handshake(node)?;
    let failed = |error: std::io::Error| node.home().error(format!("{}: {error}", query.name));
    let before = node.rss_bytes();
    let knows_peak = node.forget_peak();
    let (start, mut first, mut filled) = (system::now(), None, 0);
    stream.write_all(request).map_err(failed)?;
    while filled == 0 || answer.get(filled - 1) != Some(&b'\n') {
        if answer.len() < filled + READ_BYTES {
            answer.resize(filled + 16 * READ_BYTES, 0);
        }
        let size = stream.read(&mut answer[filled..filled + READ_BYTES]).map_err(failed)?;
        first.get_or_insert_with(|| start.elapsed());
        if size == 0 {
            return Err(node.home().error(format!("{}: the connection ended within the answer", query.name)));
        }
        filled += size;
    }
    let all = start.elapsed();
    query.bytes = filled;
    query.first_byte_ms.push(rounded(first.unwrap_or(all).as_secs_f64() * 1e3));
    query.all_ms.push(rounded(all.as_secs_f64() * 1e3));
    query.growth_bytes.extend(knows_peak.then(|| node.peak_bytes().saturating_sub(before)));
    Ok(())
}

/// A connection after the handshake.
pub fn handshake(node: &Node<'_>) -> Result<TcpStream, LabError> {
    let place = node.place();
    let failed = |error: std::io::Error| LabError::program("lydian", format!("connect: {error}"));
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, place.port)).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_read_timeout(Some(place.timeout)).map_err(failed)?;
    stream.set_write_timeout(Some(place.timeout)).map_err(failed)?;
    stream.write_all(&hello(&place.protocol_max)).map_err(failed)?;
    let mut said = Vec::new();
    let mut byte = [0];
    while byte != [b'\n'] {
        stream.read_exact(&mut byte).map_err(failed)?;
        said.extend(byte);
    }
    match crate::electrum::client::result_of(&said) {
        Ok(_) => Ok(stream),
        Err(fault) => Err(place.error("server.version", fault).into()),
    }
}

/// The request of the handshake.
pub fn hello(protocol_max: &str) -> Vec<u8> {
    request("server.version", &json!(["lydian-lab", [crate::electrum::client::PROTOCOL_MIN, protocol_max]]))
}

/// The whole history by an ordinary client, for what is not timed.
pub fn is_whole(client: &mut Client, expected: &Expected) -> Result<bool, LabError> {
    let balance = client.call("blockchain.scripthash.get_balance", &json!([expected.long]))?;
    let value: i64 = expected.coins.iter().map(|coin| coin.value).sum();
    Ok(balance["confirmed"] == value)
}
