//! Blocks found to be invalid: Core's `InvalidBlockFound` and `InvalidChainFound`.
//!
//! Input: a node of the header tree. Output: the mark in the tree and in the index log, log lines and events. It must
//! never disconnect a block: the next search for the best chain does.

use crate::chainstate::blocks::read_block;
use crate::chainstate::manager::ChainstateManager;
use crate::error::EngineError;
use crate::event::{BranchTip, Event, Observer, log};
use crate::log::LogLevel;
use lydian_chain::{HeaderId, IndexEntry, Node};
use lydian_consensus::Violation;
use lydian_consensus::pow::block_proof;
use lydian_stdx::lock;

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
