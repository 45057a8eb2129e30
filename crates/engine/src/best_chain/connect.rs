//! The path of blocks that a run connects: from the fork to the end of the best chain, as far as their data is stored.
//!
//! Input: the fork and the target, or the end of the path so far. Output: the blocks, each with its position and
//! whether its scripts are trusted; the meter gets the new target. The run itself is [`crate::run`]. Only reads the
//! tree.

use crate::chainstate::assumed::{is_assumed_valid, script_check_reason};
use crate::chainstate::manager::ChainstateManager;
use crate::event::log;
use crate::log::LogLevel;
use crate::run::PathBlock;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_primitives::Height;
use lydian_stdx::lock;

/// The path from the fork to the target. The counts of the meter start anew.
pub(super) fn path_to(chainstate: &ChainstateManager, fork: HeaderId, candidate: HeaderId) -> Vec<PathBlock> {
    let tree = chainstate.tree();
    let path_blocks = path_blocks(chainstate, &tree, fork, candidate);
    chainstate.meter.aims_at(tree.height(fork).0 + height_count(&path_blocks), bytes(&path_blocks));
    log_script_checks(chainstate, &tree, &path_blocks);
    path_blocks
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
pub(super) fn what_follows(chainstate: &ChainstateManager, end: HeaderId) -> Vec<PathBlock> {
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
        let (hash, height) = (*tree.hash(path_block.id), tree.height(path_block.id));
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
