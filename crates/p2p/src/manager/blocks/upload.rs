//! What was sent to peers, and the limit of `-maxuploadtarget`, which blocks count against.
//!
//! Input: the byte counters of the connections, the time. Output: whether old blocks are still served.

use crate::manager::context::Context;
use crate::traffic::TrafficTotals;
use crate::upload::{UploadInfo, UploadLimit};
use std::sync::Arc;

/// The bytes sent, and their limit.
#[derive(Debug)]
pub(in crate::manager) struct Upload {
    traffic: Arc<TrafficTotals>,
    limit: UploadLimit,
}

impl Upload {
    pub(super) fn new(target: u64) -> Upload {
        Upload { traffic: Arc::default(), limit: UploadLimit::new(target) }
    }

    /// Counts what was sent since the last call.
    pub(in crate::manager) fn note(&mut self, context: &Context) {
        self.limit.note(self.traffic.sent(), context.now.unix);
    }

    /// Returns the state of the limit.
    pub(in crate::manager) fn info(&mut self, context: &Context) -> UploadInfo {
        self.note(context);
        self.limit.info(context.now.unix)
    }

    /// Returns the byte counters of all connections.
    pub(in crate::manager) fn traffic(&self) -> &Arc<TrafficTotals> {
        &self.traffic
    }

    pub(super) fn is_reached_for_historical_blocks(&self, context: &Context) -> bool {
        self.limit.is_reached_for_historical_blocks(context.now.unix)
    }
}
