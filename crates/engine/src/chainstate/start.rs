//! The start of the engine from the data on disk: the coins' tip becomes the active chain, and every follower is
//! brought to it from block and undo files.
//!
//! Blocks above the coins' tip are not lost: they are in the tree, and [`crate::Engine::advance`] connects them again
//! without running scripts that succeeded before. While a reindex is in progress, the tree has only the genesis block
//! and the coins are empty.

use super::blocks::read_connected;
use super::checked::CheckedBlocks;
use super::manager::ChainstateManager;
use super::settings::{Layout, Settings};
use super::{totals, wipe};
use crate::error::EngineError;
use crate::follower::{ConnectedBlock, Follower, FollowerError};
use crate::meter::{Meter, NoClock};
use lydian_chain::{BlockStore, HeaderId, HeaderTree, IndexEntry, StoreRemark};
use lydian_coins::{Coins, Tip};
use lydian_consensus::Params;
use lydian_disk::Disk;
use lydian_primitives::Height;
use lydian_stdx::lock;
use std::path::Path;
use std::sync::atomic::AtomicU64;
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
    let coins_settings =
        lydian_coins::Settings { cache_bytes: settings.cache_bytes, pending_bytes_max: settings.pending_bytes_max };
    let coins = Coins::open(Arc::clone(&disk), &layout.coins, coins_settings, settings.seed, settings.workers)?;
    opened.store.set_block_file_size_max(settings.block_file_size_max);
    let mut tree = opened.tree;
    if !opened.is_reindexing {
        store_genesis(&opened.store, &mut tree, &params)?;
    }
    activate(&mut tree, &coins)?;
    let checked_bytes = settings.checked_bytes;
    let clock = std::mem::replace(&mut settings.clock, Box::new(NoClock));
    let tip = coins.tip().unwrap_or(Tip { height: Height(0), hash: params.genesis_hash });
    let transactions = totals::read(&*disk, &layout.totals(), tip)?;
    let active = tree.tip();
    let chainstate = ChainstateManager {
        disk,
        layout: layout.clone(),
        params,
        settings,
        store: opened.store,
        tree: RwLock::new(tree),
        coins,
        followers: followers.into_iter().map(Mutex::new).collect(),
        meter: Arc::new(Meter::new(clock)),
        reviews: Arc::default(),
        checked: CheckedBlocks::new(checked_bytes),
        other_places: Mutex::default(),
        found_invalid: Mutex::default(),
        applied: std::array::from_fn(|_| Mutex::new(active)),
        transaction_counts: Mutex::default(),
        coins_gate: RwLock::default(),
        transactions: Mutex::new(transactions),
        best_invalid: Mutex::new(lydian_consensus::U256::ZERO),
        script_reason: Mutex::default(),
        checkpointed: AtomicU64::default(),
    };
    chainstate.meter.mark(&chainstate.checkpointed);
    chainstate.meter.at_height(chainstate.tip().height.0);
    (0..chainstate.followers.len()).try_for_each(|follower| catch_up(&chainstate, follower))?;
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

/// Rewinds a follower to the fork with the active chain, then replays the blocks from there.
fn catch_up(chainstate: &ChainstateManager, index: usize) -> Result<(), EngineError> {
    let mut follower = lock(&chainstate.followers[index]);
    let name = follower.name().to_owned();
    let fail = |reason| EngineError::Follower { name: name.clone(), reason };
    let (mut at, fork, path) = {
        let tree = chainstate.tree();
        let at = match follower.durable_tip() {
            None => tree.active(Height(0)),
            Some(tip) => tree.find(&tip.hash),
        };
        let unknown =
            || fail("its tip is a block that the block index does not know; delete it to build it anew".into());
        let at: HeaderId = at.ok_or_else(unknown)?;
        let fork = tree.fork(at, tree.tip());
        (at, fork, tree.path(fork, tree.tip()))
    };
    while at != fork {
        // A reindex deletes undo data.
        let (block, spent) = read_connected(chainstate, at).map_err(|error| match error {
            EngineError::MissingBlock { .. } => {
                fail(format!("it cannot leave the block it stands at ({error}); delete it to build it anew"))
            }
            other => other,
        })?;
        let (height, parent) = (chainstate.tree().height(at), chainstate.tree().parent(at));
        let connected = ConnectedBlock { height, block: &block, spent: &spent };
        follower.disconnect(&connected).map_err(|FollowerError(reason)| fail(reason))?;
        match parent {
            Some(parent) => at = parent,
            None => panic!("a fork is an ancestor"),
        }
    }
    for id in path {
        let (block, spent) = read_connected(chainstate, id)?;
        let connected = ConnectedBlock { height: chainstate.tree().height(id), block: &block, spent: &spent };
        follower.connect(&connected).map_err(|FollowerError(reason)| fail(reason))?;
    }
    Ok(())
}
