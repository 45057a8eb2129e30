//! The settled block: the one up to which the coins are applied and every follower that is in step has the chain. It is
//! what the node announces, and what snapshots see.
//!
//! Input: a change of the active chain, of a partition of the coins, or of a follower's place. Output: the settled
//! block, with events when it moves. Events come in the order of the moves. Invariants: the settled block is on the
//! active chain, except between the two steps of a change; it goes back only when a block is disconnected, so a
//! follower that joins below it is waited for by the next blocks only. Followers that catch up or have failed do not
//! count. Cost: a lock and a few comparisons. It must never wait for a follower.

use super::followers::Standing;
use super::manager::ChainstateManager;
use crate::event::{BlockTimes, Event, Observer, SettledBlock};
use lydian_chain::HeaderId;
use lydian_coins::Tip;
use lydian_stdx::lock;

impl ChainstateManager {
    /// Moves the settled block as far as the coins and the followers allow. To be called after each change that it
    /// depends on.
    pub(crate) fn settle(&self, observer: &dyn Observer) {
        // Held during the events, so that those of two threads come in their order.
        let _in_order = lock(&self.active.settling);
        let applied = self.active.journal.applied_tip();
        let places: Vec<HeaderId> = self
            .followers
            .with(Standing::InStep)
            .into_iter()
            .filter_map(|index| self.followers.place(index).at)
            .collect();
        let settled = self.active.journal.settled();
        let (lowest, tip) = {
            let tree = self.tree();
            let all = places.into_iter().chain([applied]).filter(|at| tree.is_active(*at));
            let Some(lowest) = all.min_by_key(|id| tree.height(*id)) else { return };
            if lowest == settled.id || tree.is_active(settled.id) && tree.height(lowest) < tree.height(settled.id) {
                return;
            }
            (lowest, Tip { height: tree.height(lowest), hash: *tree.hash(lowest) })
        };
        let Some((settled, changes)) = self.active.journal.settle(lowest) else { return };
        self.active.settled_moved.notify_all();
        let now = self.meter.now_ns();
        for block in changes.iter().filter_map(|change| change.connected()) {
            let times = BlockTimes { settled: now, ..block.times };
            observer.event(&Event::BlockSettled(&SettledBlock { times, ..block }));
        }
        observer.event(&Event::Settled { tip, sequence: settled.sequence });
    }
}
