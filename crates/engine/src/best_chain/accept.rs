//! Acceptance of a block or a header into the tree: Core's `AcceptBlock` and `AcceptBlockHeader`.
//!
//! Input: a parsed block or header, and the time. Output: its node in the tree, the block stored; or why it is refused,
//! which is logged for a block. Runs the checks that need no coins; the run takes over their result while it is in
//! memory. It must never change the active chain.

use super::invalid::report_invalid_chain;
use super::refusal;
use crate::chainstate::arrivals::Origin;
use crate::chainstate::manager::ChainstateManager;
use crate::error::EngineError;
use crate::event::Arrival;
use lydian_chain::{HeaderId, IndexEntry};
use lydian_consensus::{CheckedBlock, Parent, Rejected, Step, check_block};
use lydian_primitives::{Block, Header};
use std::sync::Arc;

/// Enters one header and records it before any other can be entered: see [`crate::Engine::accept_headers`].
pub(crate) fn accept_header(chainstate: &ChainstateManager, header: &Header, now: i64) -> Result<HeaderId, Rejected> {
    let mut tree = chainstate.tree_mut();
    let known = tree.find(&header.hash());
    let id = tree.accept_header(header, now, &chainstate.params)?;
    if known.is_none() {
        chainstate.store.record(&[IndexEntry::Header { id, header: *header }]);
    }
    Ok(id)
}

/// Runs the checks that need no coins, stores the block and enters it into the tree: Core's `AcceptBlock`.
pub(crate) fn store_block(
    chainstate: &ChainstateManager,
    block: Arc<Block>,
    now: i64,
    origin: Option<Origin>,
) -> Result<Result<HeaderId, Rejected>, EngineError> {
    let (hash, header) = (block.hash(), *block.header());
    let known = chainstate.tree().find(&hash);
    if let Some(Err(rejected)) = known.map(|id| refuse_known(chainstate, id, &block)) {
        refusal::log_refused_block(chainstate, &block, &rejected);
        return Ok(Err(rejected));
    }
    // A known header was not from the future when it was accepted, and its other rules give the same answer again.
    let now = if known.is_some() { i64::from(header.time) } else { now };
    // A separate lock for each query: a validation may be running.
    let parent = {
        let tree = chainstate.tree();
        tree.find(&header.prev_block).map(|parent| (parent, tree.node(parent).is_invalid))
    };
    let headers = parent.map(|(parent, _)| chainstate.headers_to(parent));
    let parent = match (&headers, parent) {
        (Some(headers), Some((_, false))) => Parent::At(headers.height(), headers),
        (_, Some((_, true))) => Parent::Invalid,
        _ => Parent::Unknown,
    };
    let result = CheckedBlock::check(Arc::clone(&block), parent, now, &chainstate.params);
    let checked_at = chainstate.meter.now_ns();
    match result {
        Ok(checked) => {
            let id = match accept_header(chainstate, &header, now) {
                Ok(id) => id,
                Err(rejected) => return Ok(Err(rejected)),
            };
            let position = chainstate.store.append_block(checked.block().as_bytes())?;
            chainstate.store.record(&[IndexEntry::Block { id, position }]);
            chainstate.store.flush()?;
            chainstate.checked.keep(checked);
            if let Some(Origin { source, received, begun, parsed }) = origin {
                let (checked, stored) = (checked_at, chainstate.meter.now_ns());
                chainstate.arrivals.note(hash, Arrival { source, received, begun, parsed, checked, stored });
            }
            chainstate.tree_mut().set_block(id, position);
            Ok(Ok(id))
        }
        Err(violation) => {
            // The header was valid if the check reached the body. It is kept, and marked invalid if the block hash
            // commits to the fault.
            if violation.rule.info().step == Step::BlockInChain
                && let Ok(id) = accept_header(chainstate, &header, now)
                && !violation.rule.is_of_the_bytes()
            {
                chainstate.tree_mut().invalidate(id);
                chainstate.note_invalid(hash, &violation);
                chainstate.store.record(&[IndexEntry::Invalid { id }]);
                report_invalid_chain(chainstate, id, &*chainstate.settings.background);
            }
            let rejected = Rejected::from(violation);
            refusal::log_refused_block(chainstate, &block, &rejected);
            Ok(Err(rejected))
        }
    }
}

/// Core checks the bytes first, then looks up the hash.
fn refuse_known(chainstate: &ChainstateManager, id: HeaderId, block: &Block) -> Result<(), Rejected> {
    let node = chainstate.tree().node(id);
    if node.parent.is_none() {
        return Err(Rejected::Duplicate);
    }
    if node.is_invalid || node.block.is_some() {
        check_block(block, &chainstate.params)?;
        return Err(if node.is_invalid { Rejected::DuplicateInvalid } else { Rejected::Duplicate });
    }
    Ok(())
}
