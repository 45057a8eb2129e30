//! What the engine, the mempool and the thread of the publisher share.

use crate::log::Log;
use crate::queue::{Item, Queue};
use crate::tip::TipRule;
use crate::topic::Topic;
use lydian_engine::InitialDownload;
use lydian_primitives::BlockHash;
use std::fmt;
use std::sync::{Arc, Mutex};

/// The state of a publisher.
pub(crate) struct Shared {
    pub(crate) queue: Queue,
    pub(crate) initial_download: Arc<InitialDownload>,
    pub(crate) tip_rule: Mutex<TipRule>,
    /// The topics that a notifier publishes.
    pub(crate) topics: Vec<Topic>,
    pub(crate) log: Arc<dyn Log>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("topics", &self.topics).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn has(&self, topic: Topic) -> bool {
        self.topics.contains(&topic)
    }

    pub(crate) fn push(&self, item: Item, tip: Option<BlockHash>) {
        if self.queue.push(item, tip) && self.log.is_on() {
            self.log.debug("Messages are made more slowly than blocks are validated: validation waits");
        }
    }
}
