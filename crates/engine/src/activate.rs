//! The search for the best chain: Core's `ActivateBestChain`.
//!
//! Moves to the chain with most work; where a block on the way breaks a rule, to the next best, and back in the end to where
//! it was if none is better. The plain validator's function of the same name is the specification.

use crate::assumed::is_assumed_valid;
use crate::core::Core;
use crate::disconnect::disconnect_tip;
use crate::error::EngineError;
use crate::event::{Event, Observer, UnreadableReason};
use crate::job::lock;
use crate::pipeline::{Failure, Stop, run};
use crate::settings::Cancel;
use lydian_chain::{HeaderTree, IndexEntry, NodeId};
use lydian_consensus::Violation;
use lydian_primitives::{BlockHash, Height};
use std::collections::VecDeque;

/// What became of the chain.
#[derive(Debug, Default)]
pub struct Advance {
    pub connected: u64,
    pub disconnected: u64,
    /// Blocks that turned out to break a rule, in the order in which they were found.
    pub invalid: Vec<(BlockHash, Violation)>,
    /// Stored blocks whose bytes are of no use. They count as not here until they come again.
    pub unreadable: Vec<(BlockHash, UnreadableReason)>,
    pub is_cancelled: bool,
    /// The height of `-stopatheight` is reached.
    pub is_stopped: bool,
}

pub(crate) fn activate_best_chain(
    core: &Core,
    cancel: &Cancel,
    observer: &dyn Observer,
) -> Result<Advance, EngineError> {
    let mut advance = Advance::default();
    loop {
        if cancel.is_cancelled() {
            advance.is_cancelled = true;
            return Ok(advance);
        }
        if leave_invalid(core, cancel, observer, &mut advance)? {
            continue;
        }
        let Some(candidate) = core.tree().best_candidate() else { return Ok(advance) };
        let path = leave_for(core, candidate, cancel, observer, &mut advance)?;
        if advance.is_cancelled || advance.is_stopped {
            return Ok(advance);
        }
        let outcome = run(core, path, &|last| what_follows(core, last), cancel, observer)?;
        advance.connected += outcome.committed as u64;
        match outcome.failure {
            Some((id, failure)) => enter_failure(core, id, failure, observer, &mut advance)?,
            None if !outcome.is_whole => {
                assert!(cancel.is_cancelled(), "a run ends with its path, a failure or a stop");
                advance.is_cancelled = true;
                return Ok(advance);
            }
            None => {}
        }
    }
}

/// Takes off the chain what a review found to break a rule. Gives whether anything was taken off.
///
/// The mark is what lasts: a process that ends in between finds it, and the next search for the best chain begins here.
fn leave_invalid(
    core: &Core,
    cancel: &Cancel,
    observer: &dyn Observer,
    advance: &mut Advance,
) -> Result<bool, EngineError> {
    let is_invalid = || {
        let tree = core.tree();
        tree.node(tree.tip()).is_invalid
    };
    let mut count = 0;
    while is_invalid() && !cancel.is_cancelled() {
        disconnect_tip(core, observer)?;
        advance.disconnected += 1;
        count += 1;
        if core.needs_checkpoint() {
            core.checkpoint(observer)?;
        }
    }
    Ok(count > 0)
}

/// Disconnects to the fork, and tells the way from there; both only up to the height to stop at.
fn leave_for(
    core: &Core,
    candidate: NodeId,
    cancel: &Cancel,
    observer: &dyn Observer,
    advance: &mut Advance,
) -> Result<Vec<Stop>, EngineError> {
    let (fork, tip_height, fork_height) = {
        let tree = core.tree();
        let fork = tree.fork(tree.tip(), candidate);
        (fork, tree.height(tree.tip()), tree.height(fork))
    };
    let last = core.settings.stop_at.unwrap_or(Height(u32::MAX));
    if tip_height >= last {
        advance.is_stopped = true;
        return Ok(Vec::new());
    }
    if fork_height < tip_height {
        let disconnected = tip_height.0 - fork_height.0;
        observer.event(&Event::Reorganisation { fork_height, disconnected });
    }
    while core.tree().tip() != fork {
        if cancel.is_cancelled() {
            advance.is_cancelled = true;
            return Ok(Vec::new());
        }
        disconnect_tip(core, observer)?;
        advance.disconnected += 1;
        if core.needs_checkpoint() {
            core.checkpoint(observer)?;
        }
    }
    let tree = core.tree();
    let stops = stops(core, &tree, fork, candidate);
    core.meter.aims_at(fork_height.0 + height_count(&stops), bytes(&stops));
    Ok(stops)
}

/// The way from a block to its descendant, as far as bodies are here and the height to stop at allows.
fn stops(core: &Core, tree: &HeaderTree, from: NodeId, to: NodeId) -> Vec<Stop> {
    let last = core.settings.stop_at.unwrap_or(Height(u32::MAX));
    let stops = tree.path(from, to).into_iter().map_while(|id| {
        let node = tree.node(id);
        let position = node.block?;
        let is_assumed = |assumed| is_assumed_valid(tree, id, assumed, &core.params);
        let is_trusted = node.is_verified || core.settings.assume_valid.is_some_and(is_assumed);
        (node.height <= last).then_some(Stop { id, position, is_trusted })
    });
    stops.collect()
}

/// The blocks that came meanwhile and stand on the end of a path that is being validated, if the chain with most work still goes this way.
fn what_follows(core: &Core, end: NodeId) -> Vec<Stop> {
    let tree = core.tree();
    let Some(candidate) = tree.best_candidate().filter(|candidate| *candidate != end) else { return Vec::new() };
    if tree.fork(end, candidate) != end {
        return Vec::new();
    }
    let stops = stops(core, &tree, end, candidate);
    core.meter.aims_further(tree.height(end).0 + height_count(&stops), bytes(&stops));
    stops
}

fn bytes(stops: &[Stop]) -> u64 {
    stops.iter().map(|stop| u64::from(stop.position.size)).sum()
}

fn height_count(stops: &[Stop]) -> u32 {
    u32::try_from(stops.len()).unwrap_or(u32::MAX)
}

fn enter_failure(
    core: &Core,
    id: NodeId,
    failure: Failure,
    observer: &dyn Observer,
    advance: &mut Advance,
) -> Result<(), EngineError> {
    let (hash, height) = place(&core.tree(), id);
    match failure {
        Failure::Invalid(violation) => {
            core.tree_mut().invalidate(id);
            core.store.record(&[IndexEntry::Invalid { id }]);
            core.store.flush()?;
            core.note_invalid(hash, &violation);
            observer.event(&Event::InvalidBlock { hash, height, violation: &violation });
            advance.invalid.push((hash, violation));
        }
        Failure::Unreadable(reason) => {
            core.tree_mut().clear_block(id);
            take_other_place(core, id);
            observer.event(&Event::UnreadableBlock { hash, height, reason: &reason });
            advance.unreadable.push((hash, reason));
        }
    }
    Ok(())
}

/// Lets a block be read from the next place where it lies, if there is one.
fn take_other_place(core: &Core, id: NodeId) {
    let other = lock(&core.other_places).get_mut(&id).and_then(VecDeque::pop_front);
    if let Some(position) = other {
        core.store.record(&[IndexEntry::Block { id, position }]);
        core.tree_mut().set_block(id, position);
    }
}

fn place(tree: &HeaderTree, id: NodeId) -> (BlockHash, Height) {
    (*tree.hash(id), tree.height(id))
}
