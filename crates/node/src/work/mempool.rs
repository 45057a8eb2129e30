//! The mempool of a running node. Input: a session; the engine, once it is open. Output: the mempool, which accepts
//! transactions. Wiring only: `lydian_mempool` does the rest.

use super::Task;
use super::opening::secret;
use crate::clock::mockable_now;
use crate::run::Session;
use lydian_engine::Engine;
use lydian_mempool::{Clock, Mempool, Secrets};
use std::io;
use std::sync::Arc;

/// An empty mempool, if the node runs: tasks that end by themselves have none. Its follower and its verified scripts go
/// to the engine before it is opened.
pub(super) fn new(session: &Session<'_>, task: &Task) -> Option<Arc<Mempool>> {
    let is_running = matches!(task, Task::Run);
    let secrets = || Secrets { salt: secret(), seed: u64::from_le_bytes(secret()) };
    is_running.then(|| Arc::new(Mempool::new(session.settings.mempool.clone(), Arc::new(NodeClock), secrets())))
}

/// Lets it accept transactions.
pub(super) fn start(session: &Session<'_>, mempool: &Mempool, engine: &Arc<Engine>) -> io::Result<()> {
    mempool.start(Arc::clone(engine), session.settings.threads)
}

/// Ends the mempool when the node ends, whatever ends it: its thread keeps the engine open.
#[derive(Debug)]
pub(super) struct End(pub(super) Arc<Mempool>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The time of Core's `GetTime`, which `setmocktime` sets.
#[derive(Debug)]
struct NodeClock;

impl Clock for NodeClock {
    fn unix_seconds(&self) -> i64 {
        i64::try_from(mockable_now()).unwrap_or(i64::MAX)
    }
}
