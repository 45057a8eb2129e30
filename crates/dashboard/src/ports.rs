//! What the page needs from the node.

use crate::history::History;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// The RPC methods of the node.
pub trait Calls: Debug + Send + Sync {
    /// Calls a method for a user, with parameters as JSON, and returns its result as JSON. What `-rpcwhitelist` says
    /// of the user counts. Runs on a thread that may block.
    fn call(&self, user: &str, method: &str, params: &str) -> Result<String, CallError>;

    /// Whether `-rpcwhitelist` lets the user call a method.
    fn allows(&self, user: &str, method: &str) -> bool;
}

/// An error of RPC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallError {
    pub code: i32,
    pub message: String,
}

/// Live data of one kind, such as the peers.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    pub name: &'static str,
    /// Time between two readings.
    pub period: Duration,
    /// Only for users that have logged in, even if reading is open to all.
    pub is_private: bool,
    /// Only for users who may call all these methods, whose results it has.
    pub methods: &'static [&'static str],
}

/// The live data of the node.
pub trait Topics: Debug + Send + Sync {
    /// The topics; their order never changes.
    fn all(&self) -> &[Topic];

    /// Reads the topic at this place of the list. `seen`: the version that was read last. `None`: it is still current.
    fn read(&self, topic: usize, seen: Option<u64>) -> Option<Reading>;
}

/// A topic as it is now.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub version: u64,
    /// Readers get the keys whose values changed, so a list is a map by key.
    pub values: Map<String, Value>,
}

/// The figures of the node.
pub trait Metrics: Debug + Send + Sync {
    /// The figures now, in Prometheus' text format. Takes milliseconds; runs on a thread that may block.
    fn text(&self) -> String;

    /// The same for the page: by name an object with `kind`, `unit` and `samples`.
    fn json(&self) -> Map<String, Value>;
}

/// What the node recorded.
pub trait Past: Debug + Send + Sync {
    /// `None` if there is no history, or not yet.
    fn history(&self) -> Option<Arc<History>>;
}

/// The clock and the log.
pub trait Host: Debug + Send + Sync {
    /// Seconds since 1970.
    fn now(&self) -> u64;

    /// Milliseconds since an arbitrary start; never goes backwards.
    fn steady_millis(&self) -> u64;

    /// Something that the operator should find in the log: a login, an action, a refusal.
    fn note(&self, words: String);

    /// Something that only matters while a problem is looked for.
    fn debug(&self, words: String);
}
