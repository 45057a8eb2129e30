//! A connection to one server that is told every change: when did the server announce what.
//!
//! Input: the port of a server, scripts. Output: the times of its notifications, and of the gaps between connections.
//! Invariants: it connects again after each end; times are those of the bytes received. Cost: one thread, 100 bytes for
//! each notification.

use crate::electrum::client::request;
use crate::runs::system;
use crate::scale::history::hello;
use crate::scale::node::PROTOCOL_MAX;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const AGAIN: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(100);
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Everything is subscribed.
    Ready,
    /// The connection ended.
    Gap,
    Header(u64),
    Script {
        hash: String,
        status: Value,
    },
}

/// What one server announced, in order.
#[derive(Clone, Debug, Default)]
pub struct Heard(pub Vec<(Instant, Event)>);

impl Heard {
    /// Whether everything was subscribed at that moment, and the connection lasted until then.
    pub fn lasted(&self, from: Instant, until: Instant) -> bool {
        let before = self.0.iter().take_while(|(at, _)| *at < from);
        let last = before.filter(|(_, event)| matches!(event, Event::Ready | Event::Gap)).last();
        let is_ready = matches!(last, Some((_, Event::Ready)));
        is_ready && !self.0.iter().any(|(at, event)| *event == Event::Gap && (from..=until).contains(at))
    }

    /// When a block of this height or above was announced, at this moment or after it.
    pub fn header(&self, height: u64, from: Instant) -> Option<Instant> {
        let is_it = |event: &Event| matches!(event, Event::Header(found) if *found >= height);
        self.0.iter().find(|(at, event)| *at >= from && is_it(event)).map(|(at, _)| *at)
    }

    /// When a script was announced with one of these statuses.
    pub fn script(&self, hash: &str, statuses: &[&Value], from: Instant) -> Option<Instant> {
        let is_it = |event: &Event| match event {
            Event::Script { hash: found, status } => found == hash && statuses.contains(&status),
            Event::Ready | Event::Gap | Event::Header(_) => false,
        };
        self.0.iter().find(|(at, event)| *at >= from && is_it(event)).map(|(at, _)| *at)
    }

    /// The status with which a script was announced last before this moment.
    pub fn known(&self, hash: &str, before: Instant) -> Option<&Value> {
        let events = self.0.iter().take_while(|(at, _)| *at < before);
        let statuses = events.filter_map(|(_, event)| match event {
            Event::Script { hash: found, status } if found == hash => Some(status),
            Event::Script { .. } | Event::Ready | Event::Gap | Event::Header(_) => None,
        });
        statuses.last()
    }
}

/// Listens until the end.
pub fn listen(port: u16, hashes: &[&str], is_over: &AtomicBool) -> Heard {
    let mut heard = Heard::default();
    while !is_over.load(Ordering::Relaxed) {
        if let Ok(stream) = connect(port, hashes) {
            // The end of the connection is in what was heard.
            let _ = follow(stream, hashes.len(), is_over, &mut heard);
            heard.0.push((system::now(), Event::Gap));
        }
        thread::sleep(AGAIN);
    }
    heard
}

fn connect(port: u16, hashes: &[&str]) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_read_timeout(Some(STEP))?;
    let mut message = hello(PROTOCOL_MAX);
    message.extend(request("blockchain.headers.subscribe", &json!([])));
    for hash in hashes {
        message.extend(request("blockchain.scripthash.subscribe", &json!([hash])));
    }
    stream.write_all(&message)?;
    Ok(stream)
}

fn follow(stream: TcpStream, scripts: usize, is_over: &AtomicBool, heard: &mut Heard) -> std::io::Result<()> {
    let (mut reader, mut line) = (BufReader::new(stream), Vec::new());
    // The handshake and the headers are answered, too.
    let mut due = scripts + 2;
    while !is_over.load(Ordering::Relaxed) {
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            // What was read so far stays in the line.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let at = system::now();
        let message: Value = serde_json::from_slice(&line).map_err(|_| ErrorKind::InvalidData)?;
        line.clear();
        match message["method"].as_str() {
            Some("blockchain.headers.subscribe") => {
                heard.0.push((at, Event::Header(message["params"][0]["height"].as_u64().unwrap_or(0))));
            }
            Some("blockchain.scripthash.subscribe") => {
                let hash = message["params"][0].as_str().unwrap_or_default().to_owned();
                heard.0.push((at, Event::Script { hash, status: message["params"][1].clone() }));
            }
            _ if message.get("error").is_some_and(|error| !error.is_null()) => {
                return Err(ErrorKind::InvalidData.into());
            }
            _ => {
                due = due.saturating_sub(1);
                if due == 0 {
                    heard.0.push((at, Event::Ready));
                    due = usize::MAX;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_heard_is_found() {
        let start = system::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let script = |status: &str| Event::Script { hash: "a".to_owned(), status: status.into() };
        let heard = Heard(vec![
            (at(1), Event::Ready),
            (at(3), Event::Header(7)),
            (at(4), script("x")),
            (at(6), Event::Gap),
            (at(8), Event::Ready),
            (at(9), Event::Header(9)),
        ]);
        assert!(heard.lasted(at(2), at(5)) && heard.lasted(at(9), at(20)));
        assert!(!heard.lasted(at(0), at(5)) && !heard.lasted(at(2), at(7)) && !heard.lasted(at(7), at(10)));
        assert_eq!((heard.header(7, at(2)), heard.header(8, at(2))), (Some(at(3)), Some(at(9))));
        assert_eq!((heard.header(7, at(4)), heard.header(10, at(0))), (Some(at(9)), None));
        let (x, y): (Value, Value) = ("x".into(), "y".into());
        assert_eq!(heard.script("a", &[&y, &x], at(2)), Some(at(4)));
        assert_eq!((heard.known("a", at(9)), heard.known("a", at(4)), heard.known("b", at(9))), (Some(&x), None, None));
        assert_eq!((heard.script("a", &[&y], at(2)), heard.script("b", &[&x], at(2))), (None, None));
    }
}
