//! Disconnects the tip: Core's `DisconnectTip` and `DisconnectBlock`.
//!
//! Input: the block and its undo data, from their files. No block may be in the pipeline. Only memory changes, as with
//! everything between two checkpoints: after a crash in the middle the node starts from the last checkpoint (checklist
//! 88). The plain validator's `undo` is the specification: an overwritten coin (two coinbases of 2010) is not restored,
//! and outputs of the block that overwrote it may be missing.

use crate::chainstate::blocks::read_connected;
use crate::chainstate::checked::memory_with_coins;
use crate::chainstate::followers::{Place, Standing};
use crate::chainstate::journal::{Change, Wanted};
use crate::chainstate::links::Links;
use crate::chainstate::manager::ChainstateManager;
use crate::error::EngineError;
use crate::event::{Event, Observer, TipUpdate};
use crate::follower::ConnectedBlock;
use crate::meter::Stage;
use lydian_coins::{Key, PARTITIONS};
use lydian_consensus::Coin;
use lydian_consensus::deployment::is_bip30_unspendable;
use lydian_primitives::{Block, Height};
use std::sync::Arc;

pub(crate) fn disconnect_tip(chainstate: &ChainstateManager, observer: &dyn Observer) -> Result<(), EngineError> {
    chainstate.meter.time(Stage::Disconnect, || {
        let id = chainstate.tree().tip();
        let (block, spent) = read_connected(chainstate, id)?;
        let height = chainstate.tree().height(id);
        let parent = chainstate.tree().parent(id).unwrap_or(id);
        let links = Links::new(&block, false, &chainstate.active.coins);
        let disconnected = Arc::new(Disconnected { block, height, spent, links });
        chainstate.active.journal.publish(parent, Arc::clone(&disconnected) as Arc<dyn Change>);
        unapply(chainstate, &disconnected)?;
        let (tip, below) = {
            let mut tree = chainstate.tree_mut();
            tree.pop_active();
            (tree.node(tree.tip()), tree.totals())
        };
        let connected = ConnectedBlock { height, block: &disconnected.block, spent: &disconnected.spent, below };
        for index in chainstate.followers.with(Standing::InStep) {
            let place = |durable| Place::behind(&chainstate.tree(), durable);
            chainstate.followers.disconnect(
                index,
                Some(parent),
                &connected,
                place,
                &*chainstate.settings.background,
            )?;
        }
        chainstate.meter.disconnected();
        chainstate.meter.at_height(tip.height.0);
        observer.event(&Event::UpdateTip(TipUpdate {
            hash: tip.hash,
            height: tip.height,
            header: tip.header,
            chain_work: tip.chain_work,
            transactions: below.transactions,
            cache_bytes: chainstate.active.coins.memory_bytes(),
            coins: chainstate.active.coins.len(),
            is_disconnect: true,
        }));
        chainstate.settle(observer);
        Ok(())
    })
}

/// A block that leaves the chain.
#[derive(Debug)]
struct Disconnected {
    block: Block,
    height: Height,
    spent: Vec<Coin>,
    links: Links,
}

impl Disconnected {
    /// Whether some of its outputs may not be there, because another block has overwritten them.
    fn may_miss_outputs(&self) -> bool {
        is_bip30_unspendable(self.height, &self.block.hash())
    }
}

impl Change for Disconnected {
    fn decide(&self, partition: usize, wanted: &mut Wanted) {
        // A coin that was created was there before, whatever the block had spent with the same outpoint.
        for create in self.links.creates(partition) {
            let coin = || self.links.coin(partition, create, &self.block, self.height).to_coin();
            wanted.decide(&create.key(), || Some(coin()));
        }
        for spend in self.links.spends(partition) {
            wanted.decide(&spend.key(), || None);
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Disconnected>() + memory_with_coins(&self.block, &self.spent, &self.links)
    }

    fn is_exact(&self) -> bool {
        !self.may_miss_outputs()
    }
}

/// Removes the coins that the block created from the store, and restores those it spent.
fn unapply(chainstate: &ChainstateManager, disconnected: &Disconnected) -> Result<(), EngineError> {
    let (coins, links) = (&chainstate.active.coins, &disconnected.links);
    for partition in 0..PARTITIONS {
        let mut created: Vec<Key> = links.creates(partition).iter().map(|create| create.key()).collect();
        if disconnected.may_miss_outputs() {
            let mut is_there = Vec::with_capacity(created.len());
            coins.contains(partition, &created, &mut is_there)?;
            let mut is_there = is_there.into_iter();
            created.retain(|_| is_there.next() == Some(true));
        }
        let restored = links.spends(partition).iter();
        let restored = restored.map(|spend| (spend.key(), disconnected.spent[spend.flat as usize].as_ref()));
        coins.apply(partition, created.into_iter(), restored)?;
        chainstate.active.journal.applied(partition, 1);
    }
    Ok(())
}
