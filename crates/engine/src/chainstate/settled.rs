//! The settled block: the one up to which every follower that is in step has the chain. It is what the node announces.
//!
//! Input: a change of the active chain, or of a follower's place. Output: the settled block, with an event when it
//! moves. Events come in the order of the moves. Invariants: the settled block is on the active chain, except between
//! the two steps of a change; it goes back only when a block is disconnected, so a follower that joins below it is
//! waited for by the next blocks only. Followers that catch up or have failed do not count. Cost: a lock and a few
//! comparisons. It must never wait for a follower.

use super::followers::Standing;
use super::manager::ChainstateManager;
use crate::event::{Event, Observer};
use lydian_chain::HeaderId;
use lydian_coins::Tip;
use lydian_stdx::lock;

/// The settled block, and how often it has moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) id: HeaderId,
    pub(crate) sequence: u64,
}

impl ChainstateManager {
    /// The settled block.
    pub(crate) fn settled(&self) -> Settled {
        *lock(&self.settled)
    }

    /// Moves the settled block as far as the followers allow. To be called after each change that it depends on.
    pub(crate) fn settle(&self, observer: &dyn Observer) {
        // Held during the event, so that the events of two threads come in their order.
        let mut settled = lock(&self.settled);
        let places: Vec<HeaderId> = self
            .followers
            .with(Standing::InStep)
            .into_iter()
            .filter_map(|index| self.followers.place(index).at)
            .collect();
        let (lowest, tip) = {
            let tree = self.tree();
            let all = places.into_iter().filter(|at| tree.is_active(*at)).chain([tree.tip()]);
            let Some(lowest) = all.min_by_key(|id| tree.height(*id)) else { return };
            if lowest == settled.id || tree.is_active(settled.id) && tree.height(lowest) < tree.height(settled.id) {
                return;
            }
            (lowest, Tip { height: tree.height(lowest), hash: *tree.hash(lowest) })
        };
        *settled = Settled { id: lowest, sequence: settled.sequence + 1 };
        observer.event(&Event::Settled { tip, sequence: settled.sequence });
    }
}
