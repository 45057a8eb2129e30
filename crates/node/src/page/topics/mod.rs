//! The topics of the page: live data, each with its period and the function that reads it.
//!
//! A topic is a map of keys; readers get the keys whose values changed. Reading must be cheap and must make nothing
//! wait: it takes snapshots that other modules keep.

mod blocks;
mod chain;
mod connect;
mod map;
pub(super) mod mempool;
mod miners;
mod overview;
mod peers;
mod rows;
mod sessions;
mod sync;

pub(super) use connect::Connect;
pub(super) use peers::Peers;

use super::PageNode;
use lydian_dashboard::{Reading, Topic, Topics};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A topic and what reads it.
struct Entry {
    topic: Topic,
    read: fn(&PageNode) -> Map<String, Value>,
}

const QUICK: Duration = Duration::from_millis(250);
const SECOND: Duration = Duration::from_secs(1);
const SLOW: Duration = Duration::from_secs(5);

const ENTRIES: &[Entry] = &[
    Entry { topic: Topic { name: "overview", period: QUICK, is_private: false }, read: overview::read },
    Entry { topic: Topic { name: "sync", period: QUICK, is_private: false }, read: sync::read },
    Entry { topic: Topic { name: "map", period: SECOND, is_private: false }, read: map::read },
    Entry { topic: Topic { name: "blocks", period: SECOND, is_private: false }, read: blocks::read },
    Entry { topic: Topic { name: "chain", period: SECOND, is_private: false }, read: chain::read },
    Entry { topic: Topic { name: "miners", period: SECOND, is_private: false }, read: miners::read },
    Entry { topic: Topic { name: "peers", period: SECOND, is_private: false }, read: peers::read },
    Entry { topic: Topic { name: "sessions", period: SECOND, is_private: true }, read: sessions::read },
    Entry { topic: Topic { name: "connect", period: SLOW, is_private: false }, read: connect::read },
    Entry { topic: Topic { name: "mempool", period: SECOND, is_private: false }, read: mempool::read },
];

/// The version of a topic, which is read only if that has changed.
type Version = fn(&PageNode) -> u64;

/// The topics that cost more to read than to ask for their version.
const VERSIONS: &[(&str, Version)] = &[("blocks", blocks::version), ("miners", miners::version)];

/// The topics of a node.
#[derive(Debug)]
pub(super) struct NodeTopics {
    node: Arc<PageNode>,
    all: Vec<Topic>,
    version: AtomicU64,
}

impl NodeTopics {
    pub(super) fn new(node: Arc<PageNode>) -> NodeTopics {
        NodeTopics { node, all: ENTRIES.iter().map(|entry| entry.topic).collect(), version: AtomicU64::new(0) }
    }
}

impl Topics for NodeTopics {
    fn all(&self) -> &[Topic] {
        &self.all
    }

    fn read(&self, topic: usize, seen: Option<u64>) -> Option<Reading> {
        let entry = ENTRIES.get(topic)?;
        let known = VERSIONS.iter().find(|(name, _)| *name == entry.topic.name);
        // Asked for first: what changes meanwhile is read next time.
        let version = match known {
            Some((_, version)) => version(&self.node),
            None => self.version.fetch_add(1, Ordering::Relaxed),
        };
        if known.is_some() && seen == Some(version) {
            return None;
        }
        Some(Reading { version, values: (entry.read)(&self.node) })
    }
}

/// A JSON object as a map.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
