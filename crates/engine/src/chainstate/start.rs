//! The start of the engine from the data on disk: the coins' tip becomes the active chain, and every follower stands
//! where it is durable, from which the catch-up brings it to the tip.
//!
//! Blocks above the coins' tip are not lost: they are in the tree, and [`crate::Engine::advance`] connects them again
//! without running scripts that succeeded before. While a reindex is in progress, the tree has only the genesis block
//! and the coins are empty.

use super::arrivals::Arrivals;
use super::blocks::{genesis_block, read_block_of};
use super::checked::CheckedBlocks;
use super::coins::Chainstate;
use super::followers::{Followers, Place, Standing};
use super::manager::ChainstateManager;
use super::settings::{Layout, Settings};
use super::turns::Turns;
use super::wipe;
use crate::error::EngineError;
use crate::event::log;
use crate::follower::{ConnectedBlock, Follower};
use crate::limits::LEAVE_BLOCKS_MAX;
use crate::log::LogLevel;
use crate::meter::{Meter, NoClock};
use lydian_chain::{BlockCounts, BlockStore, ChainTotals, HeaderId, HeaderTree, IndexEntry, StoreRemark};
use lydian_coins::Coins;
use lydian_consensus::Params;
use lydian_disk::Disk;
use lydian_primitives::Height;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

/// Opens the stores and brings them to the tip of the coins, which are the last to become durable.
pub(crate) fn open(
    disk: Arc<dyn Disk>,
    layout: &Layout,
    params: Params,
    mut settings: Settings,
    followers: Vec<Box<dyn Follower>>,
    progress: &mut dyn FnMut(&Path, usize),
) -> Result<(ChainstateManager, Vec<StoreRemark>), EngineError> {
    wipe::check_owner(&*disk, layout)?;
    wipe::resume(&*disk, layout)?;
    let blocks = layout.chain(settings.block_key);
    let opened = BlockStore::open_with(Arc::clone(&disk), &blocks, &params, progress)?;
    if opened.is_reindexing {
        // Also if the wipe was interrupted before it reached the coins, or if blocks were connected before the reindex
        // was interrupted: their undo data and index entries were deleted when the store was opened.
        wipe::wipe_coins(&*disk, &layout.coins)?;
    }
    disk.create_dir(&layout.coins)?;
    lydian_chain::mark(&*disk, &layout.coins, params.chain.name())?;
    let coins_settings = lydian_coins::Settings {
        cache_bytes: settings.cache_bytes,
        pending_bytes_max: settings.pending_bytes_max,
        is_low_memory: settings.is_low_memory,
    };
    let coins = Coins::open(Arc::clone(&disk), &layout.coins, coins_settings, settings.seed, settings.workers)?;
    opened.store.set_block_file_size_max(settings.block_file_size_max);
    let mut tree = opened.tree;
    if !opened.is_reindexing {
        store_genesis(&opened.store, &mut tree, &params)?;
    }
    activate(&mut tree, &coins)?;
    count_blocks(&opened.store, &mut tree)?;
    let followers = place_followers(&tree, &params, &settings, followers)?;
    check_blocks(&tree, &followers)?;
    let checked_bytes = settings.checked_bytes;
    let clock = std::mem::replace(&mut settings.clock, Box::new(NoClock));
    let active = tree.tip();
    let chainstate = ChainstateManager {
        disk,
        params,
        settings,
        store: opened.store,
        tree: RwLock::new(tree),
        active: Chainstate::new(coins, active),
        followers,
        turns: Turns::default(),
        arrivals: Arrivals::default(),
        meter: Arc::new(Meter::new(clock)),
        reviews: Arc::default(),
        checked: CheckedBlocks::new(checked_bytes),
        other_places: Mutex::default(),
        found_invalid: Mutex::default(),
        transaction_counts: Mutex::default(),
        best_invalid: Mutex::new(lydian_consensus::U256::ZERO),
        is_known_distrusted: AtomicBool::new(false),
        script_reason: Mutex::default(),
    };
    chainstate.meter.mark(&chainstate.active.checkpointed);
    chainstate.meter.at_height(chainstate.tip().height.0);
    Ok((chainstate, opened.remarks))
}

/// Starts the first file of a new directory with the genesis block, as Core does: Core cannot read the files without
/// it.
pub(crate) fn store_genesis(store: &BlockStore, tree: &mut HeaderTree, params: &Params) -> Result<(), EngineError> {
    let id = HeaderId::GENESIS;
    if tree.len() > 1 || tree.node(id).block.is_some() {
        return Ok(());
    }
    let position = store.append_block(params.genesis_block().as_bytes())?;
    store.record(&[IndexEntry::Block { id, position }]);
    store.flush()?;
    tree.set_block(id, position);
    Ok(())
}

fn activate(tree: &mut HeaderTree, coins: &Coins) -> Result<(), EngineError> {
    let Some(tip) = coins.tip() else { return Ok(()) };
    match tree.find(&tip.hash) {
        Some(id) if tree.height(id) == tip.height => {
            tree.activate(id);
            Ok(())
        }
        _ => Err(EngineError::UnknownCoinsTip { hash: tip.hash, height: tip.height }),
    }
}

/// Enters the counts of the active chain's blocks that were connected before the index log had them (version 1). If one
/// of them was pruned, only a reindex helps.
fn count_blocks(store: &BlockStore, tree: &mut HeaderTree) -> Result<(), EngineError> {
    let unknown: Vec<HeaderId> =
        tree.path(HeaderId::GENESIS, tree.tip()).into_iter().filter(|id| tree.counts(*id).is_none()).collect();
    for id in &unknown {
        let node = tree.node(*id);
        let what = "the data (the number of its transactions is not in the block index, whose format is older)";
        let missing = || EngineError::MissingBlock { hash: node.hash, height: node.height, what };
        let block = read_block_of(store, node.block.ok_or_else(missing)?)?.map_err(|_| missing())?;
        let counts = BlockCounts::of(&block);
        tree.set_counts(*id, counts);
        store.record(&[IndexEntry::Counts { id: *id, counts }]);
    }
    if unknown.is_empty() { Ok(()) } else { Ok(store.flush()?) }
}

/// Places the followers. One without files begins at the tip. One whose tip is not in the tree (after a reindex) begins
/// anew. A new one in a new directory gets the genesis block at once, so that it is in step.
fn place_followers(
    tree: &HeaderTree,
    params: &Params,
    settings: &Settings,
    followers: Vec<Box<dyn Follower>>,
) -> Result<Followers, EngineError> {
    let observer = &*settings.background;
    let tip = Place { at: Some(tree.tip()), totals: tree.totals(), standing: Standing::InStep };
    let mut unknown = Vec::new();
    let mut placed = Vec::new();
    for (index, follower) in followers.into_iter().enumerate() {
        let place = match follower.durable_tip() {
            _ if !follower.has_files() => tip,
            durable => match (Place::behind(tree, durable), durable) {
                (Some(place), _) if place.at == tip.at => tip,
                (Some(place), _) => place,
                (None, durable) => {
                    unknown.extend(durable.map(|durable| (index, durable)));
                    Place::START
                }
            },
        };
        placed.push((follower, place));
    }
    let followers = Followers::new(placed, settings.followers_required);
    for (index, durable) in unknown {
        let name = &followers.slots()[index].name;
        let text = format_args!(
            "{name}: block {} at height {} is not in the block index; it is built anew",
            durable.hash, durable.height.0
        );
        log(observer, LogLevel::Warning, text);
        followers.clear(index, observer)?;
    }
    if tree.tip() == HeaderId::GENESIS {
        let genesis = genesis_block(params);
        let connected =
            ConnectedBlock { height: Height(0), block: &genesis, spent: &[], below: ChainTotals::default() };
        for index in followers.with(Standing::Behind) {
            if followers.place(index).at.is_none() {
                let rows = followers.prepare(index, &connected.with_spent());
                followers.connect(index, HeaderId::GENESIS, &connected, rows, observer)?;
                followers.change(index, Standing::Behind, Standing::InStep);
            }
        }
    }
    Ok(followers)
}

/// Every follower that is behind finds the blocks that it needs: the check of Core's `StartIndexBackgroundSync`.
fn check_blocks(tree: &HeaderTree, followers: &Followers) -> Result<(), EngineError> {
    for index in followers.with(Standing::Behind) {
        let from = last_kept(tree, followers.place(index).at);
        let mut needed = tree.path(from, tree.tip()).into_iter();
        if needed.any(|id| !is_readable(tree, id)) {
            return Err(EngineError::BeyondPruned { name: followers.slots()[index].name.clone() });
        }
    }
    Ok(())
}

/// The block from which a follower at `at` is brought to the tip: one that cannot leave its block begins anew.
fn last_kept(tree: &HeaderTree, at: Option<HeaderId>) -> HeaderId {
    let Some(at) = at else { return HeaderId::GENESIS };
    let fork = tree.fork(at, tree.tip());
    let left = tree.path(fork, at);
    let is_near = u32::try_from(left.len()).is_ok_and(|count| count <= LEAVE_BLOCKS_MAX);
    if is_near && left.iter().all(|id| is_readable(tree, *id)) { fork } else { HeaderId::GENESIS }
}

fn is_readable(tree: &HeaderTree, id: HeaderId) -> bool {
    tree.block(id).is_some() && tree.undo(id).is_some()
}
