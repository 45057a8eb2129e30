//! The state of the followers: Core's `getindexinfo`. Input: the followers of the engine. Output: the name, block and
//! standing of each; or the moment at which one that is in step has a block, or all of them have the tip.

use crate::chainstate::followers::{Slot, Standing};
use crate::engine::Engine;
use lydian_coins::Tip;
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::lock;
use std::time::Duration;

/// The longest wait for a follower that is in step: it has the block within milliseconds, unless its disk hangs.
const FOLLOW_WAIT_MAX: Duration = Duration::from_secs(10);

/// A follower, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowerInfo {
    pub name: String,
    pub has_files: bool,
    /// The last block that it was given; `None` before the genesis block.
    pub tip: Option<Tip>,
    pub standing: Standing,
    /// The reason, if it failed.
    pub error: Option<String>,
}

impl FollowerInfo {
    /// Why an index that failed, shown to users under `name`, has no answers: one sentence. `None` if it did not fail.
    pub fn failure(&self, name: &str) -> Option<String> {
        if self.standing != Standing::Failed {
            return None;
        }
        let at = self.tip.map_or_else(String::new, |tip| format!(" at height {}", tip.height));
        let reason = self.error.as_deref().unwrap_or("the log has the reason");
        Some(format!("the index {name} is stopped{at}: {reason}; a restart of the node tries again"))
    }
}

impl Engine {
    /// The followers, in the order in which they were given.
    pub fn followers(&self) -> Vec<FollowerInfo> {
        let slots = self.chainstate().followers.slots();
        slots.iter().enumerate().map(|(index, slot)| self.follower_info(index, slot)).collect()
    }

    /// The follower with a name.
    pub fn follower(&self, name: &str) -> Option<FollowerInfo> {
        let mut slots = self.chainstate().followers.slots().iter().enumerate();
        slots.find(|(_, slot)| slot.name == name).map(|(index, slot)| self.follower_info(index, slot))
    }

    fn follower_info(&self, index: usize, slot: &Slot) -> FollowerInfo {
        let chainstate = self.chainstate();
        let place = chainstate.followers.place(index);
        let tree = chainstate.tree();
        FollowerInfo {
            name: slot.name.clone(),
            has_files: slot.has_files,
            tip: place.at.map(|at| Tip { height: tree.height(at), hash: *tree.hash(at) }),
            standing: place.standing,
            error: chainstate.followers.reason(index),
        }
    }

    /// Waits until a follower that is in step was given the block at a height, which is committed. Returns at once if
    /// it is not in step. Core's `BlockUntilSyncedToCurrentChain`.
    pub fn wait_for_follower(&self, name: &str, height: Height) {
        let chainstate = self.chainstate();
        let followers = &chainstate.followers;
        let Some(index) = followers.slots().iter().position(|slot| slot.name == name) else { return };
        followers.wait_until(FOLLOW_WAIT_MAX, |places| {
            let place = places[index];
            let reached = || place.at.is_some_and(|at| chainstate.tree().height(at) >= height);
            place.standing != Standing::InStep || reached()
        });
    }

    /// Waits until a block is settled, if it is the tip. Returns whether it is settled: not if another block is the
    /// tip, or if a follower in step does not get the block, as on a disk that hangs.
    pub fn wait_until_settled(&self, hash: &BlockHash) -> bool {
        let active = &self.chainstate().active;
        let is_pending = |(): &mut ()| self.settled_tip().hash != *hash && self.tip().hash == *hash;
        if is_pending(&mut ()) {
            let _ = active.settled_moved.wait_timeout_while(lock(&active.settling), FOLLOW_WAIT_MAX, is_pending);
        }
        self.settled_tip().hash == *hash
    }
}
