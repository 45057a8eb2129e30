//! Disconnects the tip: Core's `DisconnectTip` and `DisconnectBlock`.
//!
//! Input: the block and its undo data, from their files. No block may be in the pipeline. Only memory changes, as with
//! everything between two checkpoints: after a crash in the middle the node starts from the last checkpoint (checklist
//! 88). The plain validator's `undo` is the specification: an overwritten coin (two coinbases of 2010) is not restored,
//! and outputs of the block that overwrote it may be missing.

use crate::chainstate::blocks::read_connected;
use crate::chainstate::followers::Standing;
use crate::chainstate::links::Links;
use crate::chainstate::manager::ChainstateManager;
use crate::error::EngineError;
use crate::event::{Event, Observer, TipUpdate};
use crate::follower::ConnectedBlock;
use crate::meter::Stage;
use lydian_chain::HeaderId;
use lydian_coins::{Key, PARTITIONS};
use lydian_consensus::Coin;
use lydian_consensus::deployment::is_bip30_unspendable;
use lydian_primitives::{Block, Height};
use lydian_stdx::lock;

pub(crate) fn disconnect_tip(chainstate: &ChainstateManager, observer: &dyn Observer) -> Result<(), EngineError> {
    chainstate.meter.time(Stage::Disconnect, || {
        let id = chainstate.tree().tip();
        let (block, spent) = read_connected(chainstate, id)?;
        let height = chainstate.tree().height(id);
        let parent = chainstate.tree().parent(id).unwrap_or(id);
        unapply(chainstate, &block, height, &spent, parent)?;
        let (tip, below) = {
            let mut tree = chainstate.tree_mut();
            tree.pop_active();
            (tree.node(tree.tip()), tree.totals())
        };
        let connected = ConnectedBlock { height, block: &block, spent: &spent, below };
        for index in chainstate.followers.with(Standing::InStep) {
            chainstate.followers.disconnect(index, Some(parent), &connected, &*chainstate.settings.background)?;
        }
        chainstate.meter.disconnected();
        chainstate.meter.at_height(tip.height.0);
        observer.event(&Event::UpdateTip(TipUpdate {
            hash: tip.hash,
            height: tip.height,
            header: tip.header,
            chain_work: tip.chain_work,
            transactions: below.transactions,
            cache_bytes: chainstate.coins.memory_bytes(),
            coins: chainstate.coins.len(),
            is_disconnect: true,
        }));
        chainstate.settle(observer);
        Ok(())
    })
}

/// Removes the coins that the block created from the store, and restores those it spent.
fn unapply(
    chainstate: &ChainstateManager,
    block: &Block,
    height: Height,
    spent: &[Coin],
    parent: HeaderId,
) -> Result<(), EngineError> {
    let coins = &chainstate.coins;
    let links = Links::new(block, false, coins);
    let may_miss_outputs = is_bip30_unspendable(height, &block.hash());
    for partition in 0..PARTITIONS {
        let mut created: Vec<Key> = links.creates(partition).iter().map(|create| create.key()).collect();
        if may_miss_outputs {
            let mut is_there = Vec::with_capacity(created.len());
            coins.contains(partition, &created, &mut is_there)?;
            let mut is_there = is_there.into_iter();
            created.retain(|_| is_there.next() == Some(true));
        }
        let restored = links.spends(partition).iter();
        let restored = restored.map(|spend| (spend.key(), spent[spend.flat as usize].as_ref()));
        let mut applied = lock(&chainstate.applied[partition]);
        coins.apply(partition, created.into_iter(), restored)?;
        *applied = parent;
    }
    Ok(())
}
