//! A peer on another branch with as much work as the node's chain.
//!
//! The node must download the branch although it does not switch to it, so that it has the blocks if the branch grows.

use crate::actor::{Body, Nature, Shown, Stage};
use crate::ground::{BRANCH_FORK, HONEST_HEIGHT};
use lydian_primitives::BlockHash;
use lydian_wire::Message;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Shows the branch, and records which of its blocks are requested.
#[derive(Debug, Default)]
pub struct Branching {
    asked: BTreeSet<BlockHash>,
    is_asked_twice: bool,
}

impl Nature for Branching {
    fn begin(&mut self, body: &mut Body, stage: &mut Stage<'_>) {
        body.shown = Shown::all(&Arc::clone(&stage.ground.branch));
    }

    fn message(&mut self, message: &Message, _: &mut Body, _: &mut Stage<'_>) -> bool {
        if let Message::GetData(inventory) = message {
            for item in inventory {
                self.is_asked_twice |= !self.asked.insert(BlockHash(item.hash));
            }
        }
        false
    }

    fn is_done(&self) -> bool {
        !self.is_asked_twice && self.asked.len() == (HONEST_HEIGHT - BRANCH_FORK) as usize
    }
}
