//! The search for the best chain: Core's `ActivateBestChain`.
//!
//! Activates the chain with the most work. If a block on the way breaks a rule, it tries the chain with the next most
//! work, and returns to the original tip if no better chain is valid. The function of the same name in the plain
//! validator is the specification.

use super::disconnect::disconnect_tip;
use crate::chainstate::assumed::{is_assumed_valid, script_check_reason};
use crate::chainstate::blocks::read_block;
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::error::EngineError;
use crate::event::{BranchTip, Event, Observer, UnreadableReason, log};
use crate::lock::lock;
use crate::log::LogLevel;
use crate::run::{Failure, PathBlock, run};
use lydian_chain::{HeaderId, HeaderTree, IndexEntry, Node};
use lydian_consensus::pow::block_proof;
use lydian_consensus::{U256, Violation};
use lydian_primitives::{BlockHash, Height};
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
    let (fork, tip_height, fork_height) = {
        let tree = chainstate.tree();
        let fork = tree.fork(tree.tip(), candidate);
        (fork, tree.height(tree.tip()), tree.height(fork))
    };
    let last = chainstate.settings.stop_at.unwrap_or(Height(u32::MAX));
    if tip_height >= last {
        advance.is_stopped = true;
        return Ok(Vec::new());
    }
    if fork_height < tip_height {
        let disconnected = tip_height.0 - fork_height.0;
        observer.event(&Event::Reorganisation { fork_height, disconnected });
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
    let tree = chainstate.tree();
    let path_blocks = path_blocks(chainstate, &tree, fork, candidate);
    chainstate.meter.aims_at(fork_height.0 + height_count(&path_blocks), bytes(&path_blocks));
    log_script_checks(chainstate, &tree, &path_blocks);
    Ok(path_blocks)
}

/// The path from a block to a descendant, as far as block data is stored and the `-stopatheight` height allows.
fn path_blocks(chainstate: &ChainstateManager, tree: &HeaderTree, from: HeaderId, to: HeaderId) -> Vec<PathBlock> {
    let last = chainstate.settings.stop_at.unwrap_or(Height(u32::MAX));
    let path_blocks = tree.path(from, to).into_iter().map_while(|id| {
        let node = tree.node(id);
        let position = node.block?;
        let is_assumed = |assumed| is_assumed_valid(tree, id, assumed, &chainstate.params);
        let is_trusted = node.is_verified || chainstate.settings.assume_valid.is_some_and(is_assumed);
        (node.height <= last).then_some(PathBlock { id, position, is_trusted })
    });
    path_blocks.collect()
}

/// The blocks that arrived meanwhile and extend the path being validated, if the chain with the most work still runs
/// through it.
fn what_follows(chainstate: &ChainstateManager, end: HeaderId) -> Vec<PathBlock> {
    let tree = chainstate.tree();
    let Some(candidate) = tree.best_candidate().filter(|candidate| *candidate != end) else { return Vec::new() };
    if tree.fork(end, candidate) != end {
        return Vec::new();
    }
    let path_blocks = path_blocks(chainstate, &tree, end, candidate);
    chainstate.meter.aims_further(tree.height(end).0 + height_count(&path_blocks), bytes(&path_blocks));
    log_script_checks(chainstate, &tree, &path_blocks);
    path_blocks
}

/// Logs where script verification begins and ends, and why: as Core's `ConnectBlock` does, but some blocks earlier.
fn log_script_checks(chainstate: &ChainstateManager, tree: &HeaderTree, path_blocks: &[PathBlock]) {
    let observer = &*chainstate.settings.background;
    let mut last = lock(&chainstate.script_reason);
    for path_block in path_blocks {
        let reason = script_check_reason(tree, path_block.id, chainstate.settings.assume_valid, &chainstate.params);
        if last.replace(reason) == Some(reason) {
            continue;
        }
        let (hash, height) = place(tree, path_block.id);
        match reason {
            Some(reason) => log(
                observer,
                LogLevel::Info,
                format_args!("Enabling script verification at block #{height} ({hash}): {reason}."),
            ),
            None => log(
                observer,
                LogLevel::Info,
                format_args!("Disabling script verification at block #{height} ({hash})."),
            ),
        }
    }
}

fn bytes(path_blocks: &[PathBlock]) -> u64 {
    path_blocks.iter().map(|path_block| u64::from(path_block.position.size)).sum()
}

fn height_count(path_blocks: &[PathBlock]) -> u32 {
    u32::try_from(path_blocks.len()).unwrap_or(u32::MAX)
}

/// Marks a block that breaks a rule: Core's `InvalidBlockFound`.
pub(crate) fn mark_invalid(
    chainstate: &ChainstateManager,
    id: HeaderId,
    observer: &dyn Observer,
    violation: &Violation,
) -> Result<(), EngineError> {
    let node = chainstate.tree().node(id);
    chainstate.tree_mut().invalidate(id);
    chainstate.store.record(&[IndexEntry::Invalid { id }]);
    chainstate.store.flush()?;
    chainstate.note_invalid(node.hash, violation);
    // For the wording only: a block that cannot be read is invalid all the same.
    let block = node.block.and_then(|position| read_block(chainstate, position).ok()?.ok());
    let state = violation.state(block.as_ref());
    log(observer, LogLevel::Info, format_args!("Block validation error: {state}"));
    report_invalid_chain(chainstate, id, observer);
    observer.event(&Event::InvalidBlock { hash: node.hash, height: node.height, violation, state: &state });
    Ok(())
}

/// The logging part of Core's `InvalidChainFound`.
pub(crate) fn report_invalid_chain(chainstate: &ChainstateManager, id: HeaderId, observer: &dyn Observer) {
    let (invalid, best, proof) = {
        let tree = chainstate.tree();
        let (invalid, best) = (tree.node(id), tree.node(tree.tip()));
        (invalid, best, block_proof(best.header.bits))
    };
    let tip = |node: &Node| BranchTip {
        hash: node.hash,
        height: node.height,
        chain_work: node.chain_work,
        time: node.header.time,
    };
    observer.event(&Event::InvalidChain { invalid: tip(&invalid), best: tip(&best) });
    let most_invalid = {
        let mut most = lock(&chainstate.best_invalid);
        *most = invalid.chain_work.max(*most);
        *most
    };
    let six_blocks = (0..6).try_fold(best.chain_work, |work, _| work.checked_add(proof));
    if six_blocks.is_some_and(|work| most_invalid > work) {
        let text = format_args!(
            "Found invalid chain more than 6 blocks longer than our best chain. This could be due to database corruption or consensus incompatibility with peers."
        );
        log(observer, LogLevel::Warning, text);
    }
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
    let (hash, height) = place(&chainstate.tree(), id);
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

fn place(tree: &HeaderTree, id: HeaderId) -> (BlockHash, Height) {
    (*tree.hash(id), tree.height(id))
}
