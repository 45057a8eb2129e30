//! The topics of the page: live data, each with its period and the function that reads it.
//!
//! A topic is a map of keys; readers get the keys whose values changed. Reading must be cheap and must make nothing
//! wait: it takes snapshots that other modules keep.

mod map;
mod overview;
mod sync;

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

const ENTRIES: &[Entry] = &[
    Entry { topic: Topic { name: "overview", period: QUICK, is_private: false }, read: overview::read },
    Entry { topic: Topic { name: "sync", period: QUICK, is_private: false }, read: sync::read },
    Entry { topic: Topic { name: "map", period: SECOND, is_private: false }, read: map::read },
];

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

    fn read(&self, topic: usize, _: Option<u64>) -> Option<Reading> {
        let values = (ENTRIES.get(topic)?.read)(&self.node);
        Some(Reading { version: self.version.fetch_add(1, Ordering::Relaxed), values })
    }
}

/// A JSON object as a map.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}
