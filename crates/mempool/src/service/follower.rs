//! The pool as a follower of the chain. Input: blocks that join and leave the chain. Output: the pool at the new tip.
//!
//! It has no files: the pool begins at the tip. Cost: without transactions in the pool, a lock and a snapshot for each
//! block.

use super::Shared;
use lydian_engine::{ConnectedBlock, Follower, FollowerError, Left, Rows, Tip};
use lydian_primitives::Height;
use lydian_stdx::lock;
use std::fmt;
use std::sync::Arc;

pub(super) struct PoolFollower {
    shared: Arc<Shared>,
}

impl PoolFollower {
    pub(super) fn new(shared: Arc<Shared>) -> PoolFollower {
        PoolFollower { shared }
    }
}

impl Follower for PoolFollower {
    fn name(&self) -> &str {
        "mempool"
    }

    fn has_files(&self) -> bool {
        false
    }

    fn durable_tip(&self) -> Option<Tip> {
        None
    }

    fn connect(&mut self, block: &ConnectedBlock<'_>, _: Option<Rows>) -> Result<(), FollowerError> {
        if self.shared.records.is_on() {
            let before = Arc::clone(&lock(&self.shared.published));
            self.shared.records.mined(block, before);
        }
        let mut pool = lock(&self.shared.pool);
        pool.connect(block.block, block.height, self.shared.now());
        self.shared.publish(pool);
        self.shared.moved.notify_all();
        Ok(())
    }

    fn disconnect(&mut self, block: &ConnectedBlock<'_>) -> Result<Left, FollowerError> {
        let below = Tip { height: Height(block.height.0 - 1), hash: block.block.header().prev_block };
        let mut pool = lock(&self.shared.pool);
        pool.disconnect(block.block, below);
        self.shared.publish(pool);
        self.shared.moved.notify_all();
        Ok(Left::Block)
    }

    fn checkpoint(&mut self, _: Tip) -> Result<(), FollowerError> {
        Ok(())
    }

    fn clear(&mut self) -> Result<(), FollowerError> {
        Ok(())
    }
}

impl fmt::Debug for PoolFollower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolFollower").finish_non_exhaustive()
    }
}
