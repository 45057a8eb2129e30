//! The topic `peers`: every connected peer as in `getpeerinfo`, bans, added nodes, the state and the totals of the
//! network, and a short history of each peer.
//!
//! Input: the answers of RPC methods, so that the page shows the numbers of RPC; the time. Output: the keys `peer:ID`,
//! `history:ID`, `ban:SUBNET`, `added:NAME`, `network` and `totals`; during the start only `problem`. Invariants: the
//! history of a peer has at most [`POINTS_MAX`] points and ends with the peer. Cost: four questions to the peer manager
//! for each reading, about 4 KB of memory for each peer.

use super::rows::{self, Ask};
use crate::page::PageNode;
use lydian_stdx::lock;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

/// Time between two points of a history.
const STEP: Duration = Duration::from_secs(5);

/// The points of a history: 10 minutes.
const POINTS_MAX: usize = 120;

/// What is remembered between two readings.
#[derive(Debug, Default)]
pub(in crate::page) struct Peers(Mutex<History>);

pub(super) fn read(node: &PageNode) -> Map<String, Value> {
    node.peers.read(&|method| node.ask(method), node.steady())
}

impl Peers {
    /// `now`: time since an arbitrary start.
    fn read(&self, ask: &Ask<'_>, now: Duration) -> Map<String, Value> {
        match self.try_read(ask, now) {
            Ok(values) => values,
            Err(problem) => rows::problem(&problem),
        }
    }

    fn try_read(&self, ask: &Ask<'_>, now: Duration) -> Result<Map<String, Value>, String> {
        let peers = ask("getpeerinfo")?;
        let mut values = Map::new();
        rows::add(&mut values, "peer", &peers, |peer| Some(peer.get("id")?.to_string()));
        rows::add(&mut values, "ban", &ask("listbanned")?, |ban| rows::text(ban, "address"));
        rows::add(&mut values, "added", &ask("getaddednodeinfo")?, |node| rows::text(node, "addednode"));
        values.insert("network".to_owned(), ask("getnetworkinfo")?);
        values.insert("totals".to_owned(), ask("getnettotals")?);
        let mut history = lock(&self.0);
        history.note(peers.as_array().map_or(&[], Vec::as_slice), now);
        values.extend(history.rows());
        Ok(values)
    }
}

/// Points of all peers. They have the same times.
#[derive(Debug, Default)]
struct History {
    /// The number of the current step.
    step: u64,
    peers: BTreeMap<u64, Series>,
}

/// The points of a peer. `None`: nothing is known of that time.
#[derive(Debug, Default)]
struct Series {
    points: VecDeque<Option<Point>>,
    /// The totals when the last step began.
    received: u64,
    sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// The last ping in milliseconds, if there was one.
    ping: Option<f64>,
    /// Bytes a second.
    received: u64,
    sent: u64,
}

impl History {
    /// Adds a point for each peer if a step is over. A peer that has left is forgotten.
    fn note(&mut self, peers: &[Value], now: Duration) {
        let step = now.as_secs() / STEP.as_secs();
        let steps = step - self.step.min(step);
        self.step = step;
        let mut before = std::mem::take(&mut self.peers);
        for peer in peers {
            let number = |name: &str| peer.get(name).and_then(Value::as_u64).unwrap_or(0);
            let (id, received, sent) = (number("id"), number("bytesrecv"), number("bytessent"));
            let Some(mut series) = before.remove(&id) else {
                self.peers.insert(id, Series { points: VecDeque::new(), received, sent });
                continue;
            };
            if steps > 0 {
                // Nothing was read in the steps before the last one, and its rate would be their mean.
                let missing = usize::try_from(steps - 1).unwrap_or(POINTS_MAX).min(POINTS_MAX);
                series.points.extend(std::iter::repeat_n(None, missing));
                let rate = |total: u64, before: u64| total.saturating_sub(before) / (steps * STEP.as_secs());
                let point = Point {
                    ping: peer.get("pingtime").and_then(Value::as_f64).map(|seconds| (seconds * 1e6).round() / 1e3),
                    received: rate(received, series.received),
                    sent: rate(sent, series.sent),
                };
                series.points.push_back(Some(point));
                let excess = series.points.len().saturating_sub(POINTS_MAX);
                series.points.drain(..excess);
                (series.received, series.sent) = (received, sent);
            }
            self.peers.insert(id, series);
        }
    }

    /// The keys `history:ID`. The last point is that of the last step.
    fn rows(&self) -> impl Iterator<Item = (String, Value)> {
        self.peers.iter().map(|(id, series)| {
            let each = |of: &dyn Fn(&Point) -> Value| -> Vec<Value> {
                series.points.iter().map(|point| point.as_ref().map_or(Value::Null, of)).collect()
            };
            let row = json!({
                "step": STEP.as_secs(),
                "ping": each(&|point| json!(point.ping)),
                "received": each(&|point| json!(point.received)),
                "sent": each(&|point| json!(point.sent)),
            });
            (format!("history:{id}"), row)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(id: u64, ping: Option<f64>, received: u64, sent: u64) -> Value {
        json!({"id": id, "pingtime": ping, "bytesrecv": received, "bytessent": sent, "subver": "<b>/x/"})
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn row(history: &History, id: u64) -> Value {
        history.rows().find(|(key, _)| *key == format!("history:{id}")).map_or(Value::Null, |(_, row)| row)
    }

    #[test]
    fn points_are_rates_between_steps() {
        let mut history = History::default();
        history.note(&[peer(1, None, 100, 10)], at(1_001));
        assert_eq!(row(&history, 1), json!({"step": 5, "ping": [], "received": [], "sent": []}));
        history.note(&[peer(1, Some(0.012_345_6), 600, 15)], at(1_004));
        assert_eq!(row(&history, 1)["received"], json!([]), "the step is not over");
        history.note(&[peer(1, Some(0.012_345_6), 1_100, 60), peer(2, None, 0, 0)], at(1_006));
        let expected = json!({"step": 5, "ping": [12.346], "received": [200], "sent": [10]});
        assert_eq!(row(&history, 1), expected);
        // No reader for two steps.
        history.note(&[peer(1, None, 4_100, 60), peer(2, Some(1.0), 15, 0)], at(1_020));
        let expected = json!({"step": 5, "ping": [12.346, null, null, null], "received": [200, null, null, 200], "sent": [10, null, null, 0]});
        assert_eq!(row(&history, 1), expected);
        // A peer that left and one that stays. A clock that goes backwards adds nothing.
        history.note(&[peer(2, None, 15, 0)], at(1_010));
        assert_eq!(row(&history, 1), Value::Null);
        assert_eq!(row(&history, 2)["ping"], json!([null, null, 1000.0]));
    }

    #[test]
    fn a_history_has_an_end() {
        let mut history = History::default();
        let points = |history: &History| row(history, 1)["received"].as_array().map(Vec::len);
        let max = u64::try_from(POINTS_MAX).unwrap();
        for step in 0..=max {
            history.note(&[peer(1, None, step * 5, 0)], at(1_000 + step * 5));
        }
        assert_eq!(points(&history), Some(POINTS_MAX));
        history.note(&[peer(1, None, max * 5 + 10, 0)], at(1_000 + max * 5 + 5));
        assert_eq!(points(&history), Some(POINTS_MAX));
        assert_eq!(row(&history, 1)["received"][POINTS_MAX - 1], 2, "the newest stays");
        // A day without a reader.
        history.note(&[peer(1, None, max * 5 + 10, 0)], at(100_000));
        assert_eq!(points(&history), Some(POINTS_MAX));
        assert_eq!(row(&history, 1)["received"][0], Value::Null);
    }

    #[test]
    fn every_answer_has_its_keys() {
        let peers = Peers::default();
        let ask = |method: &str| match method {
            "getpeerinfo" => Ok(json!([peer(7, None, 1, 2)])),
            "listbanned" => Ok(json!([{"address": "192.0.2.0/24", "ban_created": 1}])),
            "getaddednodeinfo" => Ok(json!([{"addednode": "a.example", "connected": false, "addresses": []}])),
            "getnetworkinfo" => Ok(json!({"networkactive": true})),
            "getnettotals" => Ok(json!({"totalbytesrecv": 1})),
            other => Err(other.to_owned()),
        };
        let values = peers.read(&ask, at(1));
        let keys: Vec<&String> = values.keys().collect();
        assert_eq!(keys, ["added:a.example", "ban:192.0.2.0/24", "history:7", "network", "peer:7", "totals"]);
        assert_eq!(values["peer:7"], peer(7, None, 1, 2));
        let starting = peers.read(&|_| Err("Loading block index…".to_owned()), at(2));
        assert_eq!(Value::Object(starting), json!({"problem": "Loading block index…"}));
    }
}
