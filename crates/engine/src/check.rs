//! A look at the last blocks and the coins when a node starts: `-checkblocks` and `-checklevel`, Core's `CVerifyDB`.
//!
//! Input: how many blocks from the tip down, and how deep to look. Output: what was found wrong first. Reads only; the coins
//! are seen through an overlay that takes the blocks off one after the other.

use crate::core::Core;
use crate::disconnect::{read_block, read_connected};
use crate::error::EngineError;
use crate::links::Links;
use lydian_chain::NodeId;
use lydian_coins::PARTITIONS;
use lydian_consensus::deployment::is_bip30_unspendable;
use lydian_consensus::{CheckedBlock, Coin, Found, Mode, Parent, Violation, check_block, judge, verify_scripts};
use lydian_primitives::{Block, BlockHash, Height, OutPoint};
use std::collections::HashMap;
use std::fmt;

/// What is wrong with what lies on the disk: at which block, and what.
#[derive(Debug)]
pub enum Inconsistency {
    /// A block of the active chain, or its undo data, cannot be read.
    Unreadable(EngineError),
    /// It breaks a rule after all.
    Violation { hash: BlockHash, height: Height, violation: Violation },
    /// The coins are not those that the block left.
    Coins { hash: BlockHash, height: Height, outpoint: OutPoint },
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inconsistency::Unreadable(error) => error.fmt(f),
            Inconsistency::Violation { hash, height, violation } => {
                write!(f, "the stored block {hash} at height {height} breaks a rule: {violation}; -reindex is needed")
            }
            Inconsistency::Coins { hash, height, outpoint } => write!(
                f,
                "the coins do not fit block {hash} at height {height}: {outpoint} is not as it left it; \
                 -reindex-chainstate makes them anew"
            ),
        }
    }
}

impl std::error::Error for Inconsistency {}

impl From<EngineError> for Inconsistency {
    fn from(error: EngineError) -> Inconsistency {
        Inconsistency::Unreadable(error)
    }
}

/// What blocks that were taken off say of an outpoint.
type Overlay = HashMap<OutPoint, Option<Coin>>;

/// Looks at `blocks` blocks. Levels, each with those below it: 0 the block can be read; 1 it breaks no rule of its own; 2 its
/// undo data can be read; 3 the coins are those it left; 4 it breaks no rule, its scripts included. Returns how many it saw.
pub(crate) fn check_last_blocks(core: &Core, blocks: u32, level: u32) -> Result<u32, Inconsistency> {
    let mut overlay = Overlay::new();
    let mut at = core.tree().tip();
    for seen in 0..blocks {
        let node = core.tree().node(at);
        let Some(parent) = node.parent else { return Ok(seen) };
        if node.block.is_none() {
            // Pruned: what lies deeper is gone as well.
            return Ok(seen);
        }
        check_one(core, at, level, &mut overlay)?;
        at = parent;
    }
    Ok(blocks)
}

fn check_one(core: &Core, id: NodeId, level: u32, overlay: &mut Overlay) -> Result<(), Inconsistency> {
    let node = core.tree().node(id);
    let (hash, height) = (node.hash, node.height);
    let broken = |violation| Inconsistency::Violation { hash, height, violation };
    if level < 2 {
        let Some(position) = node.block else { return Ok(()) };
        let missing = || EngineError::MissingBlock { hash, height, what: "the data" };
        let parsed = read_block(core, position).map_err(EngineError::from)?;
        let block = parsed.ok().filter(|block| block.hash() == hash).ok_or_else(missing)?;
        return if level == 1 { check_block(&block, &core.params).map_err(broken) } else { Ok(()) };
    }
    let (block, spent) = read_connected(core, id)?;
    check_block(&block, &core.params).map_err(broken)?;
    if level >= 3 {
        take_off(core, &block, height, &spent, overlay)
            .map_err(EngineError::from)?
            .map_or(Ok(()), |outpoint| Err(Inconsistency::Coins { hash, height, outpoint }))?;
    }
    if level >= 4 {
        let headers = core.headers_below(id);
        let now = i64::from(block.header().time);
        let found = Found { coins: spent.into_iter().map(Some).collect(), repeated_tx: None };
        let verified = CheckedBlock::check(block, Parent::At(headers.height(), &headers), now, &core.params)
            .and_then(|checked| judge(checked, found, &headers, &core.params))
            .and_then(|funded| verify_scripts(funded, Mode::Capture(&*core.settings.signatures)));
        verified.map_err(broken)?;
    }
    Ok(())
}

/// Takes a block off the overlay; gives the first outpoint that is not as the block left it.
fn take_off(
    core: &Core,
    block: &Block,
    height: Height,
    spent: &[Coin],
    overlay: &mut Overlay,
) -> Result<Option<OutPoint>, lydian_coins::CoinsError> {
    let links = Links::new(block, false, &core.coins);
    for partition in 0..PARTITIONS {
        let keys: Vec<_> = links.creates(partition).iter().map(|create| create.key()).collect();
        let mut stored = Vec::with_capacity(keys.len());
        core.coins.get(partition, &keys, &mut stored)?;
        for ((create, key), stored) in links.creates(partition).iter().zip(keys).zip(stored) {
            let now = overlay.get(&key.outpoint).cloned().unwrap_or(stored);
            let is_right = now.is_some_and(|coin| coin.as_ref() == create.coin(block, height));
            if !is_right && !is_bip30_unspendable(height, &block.hash()) {
                return Ok(Some(key.outpoint));
            }
            overlay.insert(key.outpoint, None);
        }
        for spend in links.spends(partition) {
            overlay.insert(spend.key().outpoint, Some(spent[spend.flat as usize].clone()));
        }
    }
    Ok(None)
}
