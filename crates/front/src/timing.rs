//! The times of a front end. Constants only.

use std::time::Duration;

/// How long a front end answers without any stream, or while index and mempool are on different blocks.
pub const STALE_MAX: Duration = Duration::from_secs(60);

/// How often the commit row of the store is read.
pub const POLL: Duration = Duration::from_millis(200);

/// How often the commit row is read while a node is on a block that the index does not have.
pub const POLL_SOON: Duration = Duration::from_millis(20);

/// How long a node may be on another block than the index before another node is followed.
pub const APART_MAX: Duration = Duration::from_secs(10);

/// How long the start waits for the mempool of a node.
pub const START_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long a front end waits for an answer of a node.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);

/// After this time without an answer, the next node is asked too.
pub const HEDGE_WAIT: Duration = Duration::from_secs(1);

/// How long a node that did not answer in time is not asked while another one is left.
pub const REST: Duration = Duration::from_secs(5);

/// How long a connection to a node may take, with TLS.
pub const CONNECT_WAIT_MAX: Duration = Duration::from_secs(2);
