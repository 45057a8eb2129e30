//! The second part of a reindex: enters the blocks of our own files into the tree after the engine was opened. Core's
//! `ImportBlocks` with `-reindex`, in its thread `initload`.
//!
//! Input: the block files that existed when the engine was opened. Output: headers in the tree and positions for their
//! blocks; only headers are checked, and no block is connected. If it is cancelled or interrupted, the next start
//! begins it again. Cost: 88 bytes read and one header checked per block.

use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::settings::Cancel;
use crate::chainstate::start::store_genesis;
use crate::error::EngineError;
use lydian_chain::{Reindexed, StoreRemark};
use lydian_stdx::lock;
use std::path::Path;

/// The result of a reindex.
#[derive(Debug, Default)]
pub struct Reindex {
    /// Number of blocks found.
    pub blocks: usize,
    pub remarks: Vec<StoreRemark>,
    /// The reindex was stopped before the end of the files.
    pub is_cancelled: bool,
}

pub(crate) fn reindex(
    chainstate: &ChainstateManager,
    cancel: &Cancel,
    progress: &mut dyn FnMut(&Path, usize),
) -> Result<Reindex, EngineError> {
    let store = &chainstate.store;
    if !store.is_reindexing() {
        return Ok(Reindex::default());
    }
    let may_prune = chainstate.settings.may_prune;
    let Reindexed { blocks, remarks, other_places, is_cancelled } =
        store.reindex(&chainstate.tree, &chainstate.params, may_prune, &|| cancel.is_cancelled(), progress)?;
    if is_cancelled {
        return Ok(Reindex { is_cancelled, ..Reindex::default() });
    }
    for (id, position) in other_places {
        lock(&chainstate.other_places).entry(id).or_default().push_back(position);
    }
    store.finish_reindex()?;
    store_genesis(store, &mut chainstate.tree_mut(), &chainstate.params)?;
    Ok(Reindex { blocks, remarks, is_cancelled })
}
