//! The topics of the page: live data, each with its period and the function that reads it.
//!
//! A topic is a map of keys; readers get the keys whose values changed. Reading must be cheap and must make nothing
//! wait: it takes snapshots that other modules keep.

mod blocks;
mod chain;
mod connect;
mod guides;
mod log;
mod machine;
mod map;
pub(super) mod mempool;
mod miners;
pub(super) mod overview;
mod peers;
mod rows;
mod serving;
mod sessions;
mod settings;
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

#[rustfmt::skip]
const ENTRIES: &[Entry] = &[
    entry("overview", QUICK, false, &["getblockchaininfo", "getnetworkinfo"], overview::read),
    entry("sync", QUICK, false, &["getblockchaininfo"], sync::read),
    entry("map", SECOND, false, &["getblockchaininfo"], map::read),
    entry("blocks", SECOND, false, &["getblockstats"], blocks::read),
    entry("chain", SECOND, false, &["getchaintips"], chain::read),
    entry("miners", SECOND, false, &["getmininginfo"], miners::read),
    entry("peers", SECOND, false, &["getpeerinfo"], peers::read),
    entry("serving", SECOND, false, &["getrpcinfo"], serving::read),
    entry("sessions", SECOND, true, &["listelectrumsessions"], sessions::read),
    entry("connect", SLOW, false, &["getnetworkinfo"], connect::read),
    entry("mempool", SECOND, false, &["getmempoolinfo"], mempool::read),
    entry("machine", SECOND, false, &["getmemoryinfo"], machine::read),
    entry("log", SECOND, true, &["logging"], log::read),
    entry("settings", SLOW, true, &["lydian_settings"], settings::read),
];

const fn entry(
    name: &'static str,
    period: Duration,
    is_private: bool,
    methods: &'static [&'static str],
    read: fn(&PageNode) -> Map<String, Value>,
) -> Entry {
    Entry { topic: Topic { name, period, is_private, methods }, read }
}

/// The version of a topic, which is read only if that has changed.
type Version = fn(&PageNode) -> u64;

/// The topics that cost more to read than to ask for their version.
const VERSIONS: &[(&str, Version)] =
    &[("blocks", blocks::version), ("miners", miners::version), ("log", log::version), ("settings", settings::version)];

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

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_dashboard::{ACTIONS, PRIVATE, READING};

    #[test]
    fn a_topic_has_what_methods_of_the_page_return() {
        for Entry { topic, .. } in ENTRIES {
            assert!(!topic.methods.is_empty(), "{}", topic.name);
            for method in topic.methods {
                let is_known = [READING, PRIVATE, ACTIONS].iter().any(|table| table.contains(method));
                assert!(is_known || method.starts_with("lydian_"), "{}: {method}", topic.name);
            }
        }
    }
}
