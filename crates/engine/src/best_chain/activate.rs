//! The search for the best chain: Core's `ActivateBestChain`.
//!
//! Activates the chain with the most work. If a block on the way breaks a rule, it tries the chain with the next most
//! work, and returns to the original tip if no better chain is valid. The function of the same name in the plain
//! validator is the specification.

use super::connect::{path_to, what_follows};
use super::disconnect::disconnect_tip;
use super::invalid::{mark_invalid, report_invalid_chain};
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::error::EngineError;
use crate::event::{Event, Observer, UnreadableReason};
use crate::run::{Failure, PathBlock, run};
use lydian_chain::{HeaderId, HeaderTree, IndexEntry};
use lydian_consensus::{U256, Violation};
use lydian_primitives::{BlockHash, Height};
use lydian_stdx::lock;
use std::collections::VecDeque;

/// The most blocks that Core connects in one step.
const STEP_BLOCKS: u32 = 32;

/// The result of a search for the best chain.
#[derive(Debug, Default)]
pub struct Advance {
    pub connected: u64,
    pub disconnected: u64,
    /// Blocks found to break a rule, in the order in which they were found.
    pub invalid: Vec<(BlockHash, Violation)>,
    /// Stored blocks whose bytes are unusable. They count as missing until they are received again.
    pub unreadable: Vec<(BlockHash, UnreadableReason)>,
    pub is_cancelled: bool,
    /// The height of `-stopatheight` was reached.
    pub is_stopped: bool,
}

pub(crate) fn activate_best_chain(
    chainstate: &ChainstateManager,
    cancel: &Cancel,
    observer: &dyn Observer,
) -> Result<Advance, EngineError> {
    let mut advance = Advance::default();
    loop {
        if cancel.is_cancelled() {
            advance.is_cancelled = true;
            return Ok(advance);
        }
        if leave_invalid(chainstate, cancel, observer, &mut advance)? {
            continue;
        }
        let Some(candidate) = chainstate.tree().best_candidate() else { return Ok(advance) };
        let search = {
            let tree = chainstate.tree();
            let (tip, fork) = (tree.tip(), tree.fork(tree.tip(), candidate));
            Search { tip_work: tree.node(tip).chain_work, fork_height: tree.height(fork), candidate }
        };
        let path = leave_for(chainstate, candidate, cancel, observer, &mut advance)?;
        if advance.is_cancelled || advance.is_stopped {
            return Ok(advance);
        }
        let outcome = run(chainstate, path, &|last| what_follows(chainstate, last), cancel, observer)?;
        advance.connected += outcome.committed as u64;
        match outcome.failure {
            Some((id, failure)) => enter_failure(chainstate, id, failure, search, observer, &mut advance)?,
            None if !outcome.is_whole => {
                assert!(cancel.is_cancelled(), "a run ends with its path, a failure or a stop");
                advance.is_cancelled = true;
                return Ok(advance);
            }
            None => {}
        }
    }
}

/// Disconnects blocks at the tip that a review found to be invalid. Returns whether any block was disconnected.
///
/// The invalid mark is durable: after a restart in between, the next search for the best chain starts here.
fn leave_invalid(
    chainstate: &ChainstateManager,
    cancel: &Cancel,
    observer: &dyn Observer,
    advance: &mut Advance,
) -> Result<bool, EngineError> {
    let is_invalid = || {
        let tree = chainstate.tree();
        tree.node(tree.tip()).is_invalid
    };
    let mut count = 0;
    while is_invalid() && !cancel.is_cancelled() {
        disconnect_tip(chainstate, observer)?;
        advance.disconnected += 1;
        count += 1;
        if chainstate.needs_checkpoint() {
            chainstate.checkpoint(observer)?;
        }
    }
    Ok(count > 0)
}

/// Disconnects blocks down to the fork and returns the path from there; both stop at the `-stopatheight` height.
fn leave_for(
    chainstate: &ChainstateManager,
    candidate: HeaderId,
    cancel: &Cancel,
    observer: &dyn Observer,
    advance: &mut Advance,
) -> Result<Vec<PathBlock>, EngineError> {
    let (fork, tip_height, fork_height, target) = {
        let tree = chainstate.tree();
        let fork = tree.fork(tree.tip(), candidate);
        (fork, tree.height(tree.tip()), tree.height(fork), *tree.hash(candidate))
    };
    let last = chainstate.settings.stop_at.unwrap_or(Height(u32::MAX));
    if tip_height >= last {
        advance.is_stopped = true;
        return Ok(Vec::new());
    }
    if fork_height < tip_height {
        let disconnected = tip_height.0 - fork_height.0;
        observer.event(&Event::Reorganisation { fork_height, disconnected, target });
    }
    while chainstate.tree().tip() != fork {
        if cancel.is_cancelled() {
            advance.is_cancelled = true;
            return Ok(Vec::new());
        }
        disconnect_tip(chainstate, observer)?;
        advance.disconnected += 1;
        if chainstate.needs_checkpoint() {
            chainstate.checkpoint(observer)?;
        }
    }
    Ok(path_to(chainstate, fork, candidate))
}

/// One search for the best chain: its starting point and its target.
#[derive(Clone, Copy, Debug)]
struct Search {
    tip_work: U256,
    fork_height: Height,
    candidate: HeaderId,
}

impl Search {
    /// The last of the blocks that Core would have connected in the same step: at most 32, or one with more work than
    /// the old tip.
    fn last_of_step(&self, tree: &HeaderTree, id: HeaderId) -> HeaderId {
        let (height, end) = (tree.height(id), tree.height(self.candidate));
        let is_ahead = tree.parent(id).is_some_and(|parent| tree.node(parent).chain_work > self.tip_work);
        let begin = match is_ahead {
            true => height.0.saturating_sub(1),
            false => {
                let before = height.0.saturating_sub(self.fork_height.0 + 1);
                self.fork_height.0 + before / STEP_BLOCKS * STEP_BLOCKS
            }
        };
        let last = tree.ancestor(self.candidate, Height(begin + STEP_BLOCKS).min(end));
        last.filter(|last| tree.ancestor(*last, height) == Some(id)).unwrap_or(id)
    }
}

fn enter_failure(
    chainstate: &ChainstateManager,
    id: HeaderId,
    failure: Failure,
    search: Search,
    observer: &dyn Observer,
    advance: &mut Advance,
) -> Result<(), EngineError> {
    let (hash, height) = {
        let tree = chainstate.tree();
        (*tree.hash(id), tree.height(id))
    };
    match failure {
        Failure::Invalid(violation) => {
            mark_invalid(chainstate, id, observer, &violation)?;
            // Core's `ActivateBestChainStep` reports the last block of the step.
            let last = search.last_of_step(&chainstate.tree(), id);
            report_invalid_chain(chainstate, last, observer);
            advance.invalid.push((hash, violation));
        }
        Failure::Unreadable(reason) => {
            chainstate.tree_mut().clear_block(id);
            take_other_place(chainstate, id);
            observer.event(&Event::UnreadableBlock { hash, height, reason: &reason });
            advance.unreadable.push((hash, reason));
        }
    }
    Ok(())
}

/// Points a block to the next stored copy, if there is one.
fn take_other_place(chainstate: &ChainstateManager, id: HeaderId) {
    let other = lock(&chainstate.other_places).get_mut(&id).and_then(VecDeque::pop_front);
    if let Some(position) = other {
        chainstate.store.record(&[IndexEntry::Block { id, position }]);
        chainstate.tree_mut().set_block(id, position);
    }
}
