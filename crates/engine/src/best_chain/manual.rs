//! Decisions of a person against the rules: Core's `InvalidateBlock`, `ResetBlockFailureFlags`, `PreciousBlock` and
//! `PruneBlockFilesManual`. Input: a block. Output: the chain, changed where the decision requires it.
//!
//! Invariants: an invalidated block is disconnected before anything is marked, so that a crash in between leaves a
//! state that the rules allow; each mark is in the index log.

use super::activate::{Advance, activate_best_chain};
use super::disconnect::disconnect_tip;
use super::invalid::report_invalid_chain;
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::error::EngineError;
use crate::event::{Observer, log};
use crate::log::LogLevel;
use lydian_chain::{HeaderId, IndexEntry, Pruned};
use lydian_primitives::Height;
use lydian_stdx::lock;

/// Marks a block and its descendants as invalid, and disconnects them. The genesis block cannot be invalidated.
pub(crate) fn invalidate_block(
    chainstate: &ChainstateManager,
    id: HeaderId,
    observer: &dyn Observer,
) -> Result<Advance, EngineError> {
    if id == HeaderId::GENESIS {
        return activate_best_chain(chainstate, &Cancel::new(), observer);
    }
    while chainstate.tree().is_active(id) {
        disconnect_tip(chainstate, observer)?;
        if chainstate.needs_checkpoint() {
            chainstate.checkpoint(observer)?;
        }
    }
    chainstate.tree_mut().invalidate(id);
    chainstate.store.record(&[IndexEntry::Invalid { id }]);
    chainstate.store.flush()?;
    report_invalid_chain(chainstate, id, observer);
    activate_best_chain(chainstate, &Cancel::new(), observer)
}

/// Removes the mark from a block, its ancestors and its descendants, and searches for the best chain again.
pub(crate) fn reconsider_block(
    chainstate: &ChainstateManager,
    id: HeaderId,
    observer: &dyn Observer,
) -> Result<Advance, EngineError> {
    chainstate.tree_mut().reconsider(id);
    lock(&chainstate.found_invalid).clear();
    chainstate.store.record(&[IndexEntry::Reconsidered { id }]);
    chainstate.store.flush()?;
    activate_best_chain(chainstate, &Cancel::new(), observer)
}

/// Treats a block as if it had arrived before others with the same work. Does nothing if it has less work than the
/// tip.
pub(crate) fn precious_block(
    chainstate: &ChainstateManager,
    id: HeaderId,
    observer: &dyn Observer,
) -> Result<Advance, EngineError> {
    {
        let mut tree = chainstate.tree_mut();
        let (work, tip_work) = (tree.node(id).chain_work, tree.node(tree.tip()).chain_work);
        if work < tip_work {
            return Ok(Advance::default());
        }
        tree.set_precious(id);
    }
    activate_best_chain(chainstate, &Cancel::new(), observer)
}

/// Removes block files whose blocks are all at or below a height and 288 blocks below what is durable. Makes
/// everything durable first.
pub(crate) fn prune_to(
    chainstate: &ChainstateManager,
    height: Height,
    observer: &dyn Observer,
) -> Result<Pruned, EngineError> {
    chainstate.checkpoint(observer)?;
    let keep_from = Height(height.0.saturating_add(1)).min(chainstate.needed_by_followers());
    let tip = chainstate.tip();
    let pruned = chainstate.store.prune(&mut chainstate.tree_mut(), keep_from, 0, tip.height)?;
    let (last, files) = (height.0.min(tip.height.0), pruned.files);
    let text = format_args!("[{}] Prune (Manual): prune_height={last} removed {files} blk/rev pairs", "normal");
    log(observer, LogLevel::Info, text);
    Ok(pruned)
}
