//! The catch-up: brings followers that stand below the tip to it, from block and undo files, while the node works. A
//! follower is behind when the engine is opened, or after a deep reorganisation that it cannot undo block by block.
//!
//! Input: the followers that are behind. Output: their calls, and in the end each one in step. Blocks are taken in legs
//! ([`leg`]); between two legs the active chain is looked at again, so that a follower leaves blocks that left the
//! chain. A follower at the tip is handed over: at once while nothing changes the active chain, else by the run in
//! progress, which takes it over if its next block is still in the pipeline.
//!
//! Invariants: followers at the same block are fed together, so that a block is read once for all of them; a follower
//! records only a tip that the coins have made durable; nothing waits for the catch-up. It uses as many threads as a
//! run if there is none, else one. It stops between two blocks when the engine is closed, and goes on there at the next
//! start. Cost: reading and parsing of each block and its undo data. It must never hold a lock of the engine while it
//! reads a block.

mod leg;

use crate::chainstate::blocks::read_connected;
use crate::chainstate::followers::{Followers, Place, Standing};
use crate::chainstate::manager::ChainstateManager;
use crate::chainstate::shared::EngineShared;
use crate::error::EngineError;
use crate::event::log;
use crate::follower::{ConnectedBlock, FollowerError};
use crate::limits::LEAVE_BLOCKS_MAX;
use crate::log::LogLevel;
use leg::{Leg, LegError};
use lydian_chain::{BlockCounts, ChainError, HeaderId};
use lydian_coins::Tip;
use lydian_primitives::Height;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// The longest wait for a run to take over a follower, which then catches up again.
const JOIN_WAIT: Duration = Duration::from_millis(20);

/// Starts the thread, if there are followers with files: the others never fall behind.
pub(crate) fn start(shared: &Arc<EngineShared>) -> Result<Option<JoinHandle<()>>, EngineError> {
    if !shared.chainstate.followers.slots().iter().any(|slot| slot.has_files) {
        return Ok(None);
    }
    let shared = Arc::clone(shared);
    let body = move || {
        let _ending = Ending(&shared);
        if let Err(error) = work(&shared) {
            shared.fail(&error);
            log(&*shared.chainstate.settings.background, LogLevel::Error, format_args!("{error}"));
        }
    };
    let thread = Builder::new().name("catch-up".to_owned()).spawn(body);
    thread.map(Some).map_err(|error| EngineError::Thread { reason: error.to_string() })
}

/// However the thread ends, no caller waits for it any longer.
struct Ending<'a>(&'a EngineShared);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(&EngineError::Thread { reason: "a follower panicked".to_owned() });
        }
        self.0.chainstate.followers.catch_up_is_over();
    }
}

/// Followers that stand at the same block.
#[derive(Debug)]
struct Group {
    followers: Vec<usize>,
    place: Place,
    /// The height of the next follower above that is behind, at which it is joined.
    next_height: Height,
}

fn work(shared: &EngineShared) -> Result<(), EngineError> {
    while shared.chainstate.followers.wait_until_behind() {
        bring_to_tip(shared)?;
    }
    Ok(())
}

/// Works until no follower is behind, or the catch-up is to end.
fn bring_to_tip(shared: &EngineShared) -> Result<(), EngineError> {
    let chainstate = &shared.chainstate;
    let followers = &chainstate.followers;
    for index in followers.with(Standing::Behind) {
        let (name, from) = (&followers.slots()[index].name, height_of(chainstate, followers.place(index)));
        let from = from.map_or(0, |height| height.0);
        let text = format_args!("Syncing {name} with block chain from height {from}");
        log(&*chainstate.settings.background, LogLevel::Info, text);
    }
    let recorded = AtomicU64::new(0);
    chainstate.meter.mark(&recorded);
    while !followers.cancel.is_cancelled() {
        let Some(group) = lowest(chainstate) else { break };
        step(shared, &group)?;
        if chainstate.meter.is_past(&recorded, chainstate.settings.checkpoint_seconds) {
            record_all(chainstate)?;
            chainstate.meter.mark(&recorded);
        }
    }
    record_all(chainstate)
}

/// The lowest followers that are behind.
fn lowest(chainstate: &ChainstateManager) -> Option<Group> {
    let followers = &chainstate.followers;
    let behind: Vec<(usize, Place)> =
        followers.with(Standing::Behind).into_iter().map(|index| (index, followers.place(index))).collect();
    let height = |place: Place| height_of(chainstate, place);
    let place = behind.iter().map(|(_, place)| *place).min_by_key(|place| height(*place))?;
    let is_here = |(_, other): &&(usize, Place)| other.at == place.at;
    let above = behind.iter().filter_map(|(_, other)| height(*other).filter(|above| Some(*above) > height(place)));
    let next_height = above.min().unwrap_or(Height(u32::MAX));
    Some(Group { followers: behind.iter().filter(is_here).map(|(index, _)| *index).collect(), place, next_height })
}

/// `None` before the genesis block.
fn height_of(chainstate: &ChainstateManager, place: Place) -> Option<Height> {
    place.at.map(|at| chainstate.tree().height(at))
}

/// One leg, one block left, or the hand-over.
fn step(shared: &EngineShared, group: &Group) -> Result<(), EngineError> {
    let chainstate = &shared.chainstate;
    let path = {
        let tree = chainstate.tree();
        match group.place.at {
            Some(at) if !tree.is_active(at) => {
                let (height, fork) = (tree.height(at), tree.height(tree.fork(at, tree.tip())));
                drop(tree);
                return leave(chainstate, group, at, height.0 - fork.0);
            }
            Some(at) if at == tree.tip() => {
                drop(tree);
                return group.followers.iter().try_for_each(|index| hand_over(shared, *index, at));
            }
            at => {
                let from = at.map_or(0, |at| tree.height(at).0 + 1);
                let blocks = u32::try_from(chainstate.settings.catch_up_blocks.max(1)).unwrap_or(u32::MAX);
                let last = tree.height(tree.tip()).min(group.next_height).0.min(from.saturating_add(blocks - 1));
                (from..=last).filter_map(|height| tree.active(Height(height))).collect()
            }
        }
    };
    let threads = if shared.while_idle(|_| ()).is_some() { chainstate.settings.workers } else { 1 };
    match Leg::new(chainstate, &group.followers, path, group.place.totals).run(threads) {
        Ok(()) => Ok(()),
        Err(LegError::Engine(error)) => Err(error),
        Err(LegError::Block(reason)) => fail_all(&chainstate.followers, group, &reason, chainstate),
    }
}

fn fail_all(
    followers: &Followers,
    group: &Group,
    reason: &str,
    chainstate: &ChainstateManager,
) -> Result<(), EngineError> {
    let is_left = |index: &&usize| followers.place(**index).standing != Standing::Failed;
    let mut left = group.followers.iter().filter(is_left);
    left.try_for_each(|index| followers.fail(*index, FollowerError::new(reason), &*chainstate.settings.background))
}

/// Takes the block at which followers stand from them: it left the active chain, `depth` blocks above the fork. If that
/// is far, or the block's data are no longer here (a reindex deletes undo data), they begin anew.
fn leave(chainstate: &ChainstateManager, group: &Group, at: HeaderId, depth: u32) -> Result<(), EngineError> {
    let (followers, observer) = (&chainstate.followers, &*chainstate.settings.background);
    let node = chainstate.tree().node(at);
    let read = match read_connected(chainstate, at) {
        _ if depth > LEAVE_BLOCKS_MAX => None,
        Ok(read) => Some(read),
        Err(
            EngineError::MissingBlock { .. }
            | EngineError::Chain(ChainError::UndoDamaged { .. } | ChainError::UndoMissing { .. }),
        ) => None,
        // A failing disk is no reason to throw the index away.
        Err(error) => return fail_all(followers, group, &error.to_string(), chainstate),
    };
    let Some((block, spent)) = read else {
        for index in &group.followers {
            let name = &followers.slots()[*index].name;
            let text = format_args!(
                "{name}: block {} at height {} is no longer on the active chain; it is built anew",
                node.hash, node.height.0
            );
            log(observer, LogLevel::Warning, text);
            followers.clear(*index, observer)?;
        }
        return Ok(());
    };
    let below = group.place.totals.without(BlockCounts::of(&block));
    let connected = ConnectedBlock { height: node.height, block: &block, spent: &spent, below };
    for index in &group.followers {
        let place = |durable| Place::behind(&chainstate.tree(), durable);
        followers.disconnect(*index, node.parent, &connected, place, observer)?;
    }
    Ok(())
}

/// Hands over a follower that stands at the tip. If the tip has moved, or the run is past its next block, it stays
/// behind.
fn hand_over(shared: &EngineShared, index: usize, at: HeaderId) -> Result<(), EngineError> {
    // It may have taken hours to get here.
    record(&shared.chainstate, index)?;
    let followers = &shared.chainstate.followers;
    let is_at_rest = shared.while_idle(|chainstate| {
        if chainstate.tree().tip() == at {
            followers.change(index, Standing::Behind, Standing::InStep);
        }
    });
    if is_at_rest.is_none() && followers.change(index, Standing::Behind, Standing::Joining) {
        followers.wait_until(JOIN_WAIT, |places| places[index].standing != Standing::Joining);
        followers.change(index, Standing::Joining, Standing::Behind);
    }
    if followers.place(index).standing == Standing::InStep {
        let height = shared.chainstate.tree().height(at).0;
        let text = format_args!("{} is enabled at height {height}", followers.slots()[index].name);
        log(&*shared.chainstate.settings.background, LogLevel::Info, text);
    }
    Ok(())
}

/// Lets every follower that is behind record where it stands.
fn record_all(chainstate: &ChainstateManager) -> Result<(), EngineError> {
    chainstate.followers.with(Standing::Behind).into_iter().try_for_each(|index| record(chainstate, index))
}

/// Lets a follower record where it stands, if the coins have made that durable.
fn record(chainstate: &ChainstateManager, index: usize) -> Result<(), EngineError> {
    let Some((at, durable)) = chainstate.followers.place(index).at.zip(chainstate.active.coins.tip()) else {
        return Ok(());
    };
    let tip = {
        let tree = chainstate.tree();
        let height = tree.height(at);
        let is_durable = tree.find(&durable.hash).is_some_and(|top| tree.ancestor(top, height) == Some(at));
        is_durable.then(|| Tip { height, hash: *tree.hash(at) })
    };
    let Some(tip) = tip.filter(|tip| chainstate.followers.lock(index).durable_tip() != Some(*tip)) else {
        return Ok(());
    };
    chainstate.followers.checkpoint(index, tip, &*chainstate.settings.background).map(|_| ())
}
