//! The notifications of `-zmqpub...`. Input: a session. Output: a publisher, which runs until it is dropped, or why it
//! cannot. Wiring only: `lydian_zmq` does the rest.
//!
//! Core goes on without notifications if an address cannot be used; programs that rely on them would wait for ever.

use super::Task;
use super::failure::Failure;
use crate::log::{Category, Log};
use crate::run::Session;
use lydian_zmq::Publisher;
use std::sync::Arc;

/// Starts the publisher, if an option asks for it and the node runs.
pub(super) fn start(session: &Session<'_>, task: &Task) -> Result<Option<Publisher>, Failure> {
    let notifiers = session.settings.zmq.notifiers();
    if notifiers.is_empty() || !matches!(task, Task::Run) {
        return Ok(None);
    }
    let log = Arc::new(ToLog(Arc::clone(&session.log)));
    let initial_download = Arc::clone(&session.initial_download);
    Publisher::start(notifiers, initial_download, &session.disk, log).map(Some).map_err(Failure::Zmq)
}

#[derive(Debug)]
struct ToLog(Arc<Log>);

impl lydian_zmq::Log for ToLog {
    fn is_on(&self) -> bool {
        self.0.is_debug_on(Category::ZMQ)
    }

    fn debug(&self, line: &str) {
        self.0.debug(Category::ZMQ, || line);
    }
}
