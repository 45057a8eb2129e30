//! Selects the chain to download.
//!
//! Usually it is the chain of the header with the most work. But headers are cheap if no peer sends the blocks. So a
//! chain whose next block no peer delivers is replaced by the best chain that can be downloaded. Core gets the same
//! result by requesting from each peer the blocks of that peer's own best chain.
//!
//! Input: the header tree, the chains of peers, the block that the download waits for. Output: the header to download
//! up to. Invariant: as long as no block is withheld, it is the best header. Memory: a few words for each withheld
//! block, at most [`WITHHELD_MAX`] of them.

use super::Blocks;
use crate::limits::WITHHELD_MAX;
use crate::manager::context::Context;
use lydian_chain::{HeaderId, HeaderTree};
use std::time::Duration;

/// How long to wait for a block that no peer delivers before another chain is downloaded.
const PATIENCE: Duration = Duration::from_secs(2);

/// After this time it is requested again, if its chain still has the most work.
const WITHHELD_TIME: Duration = Duration::from_secs(10 * 60);

/// Blocks that no peer delivers.
#[derive(Debug, Default)]
pub(in crate::manager) struct Withheld {
    /// Each block, and until when it is not requested.
    blocks: Vec<(HeaderId, Duration)>,
    /// The block that is being waited for, and since when.
    suspect: Option<(HeaderId, Duration)>,
}

impl Blocks {
    /// Returns the header up to which blocks are downloaded.
    pub(in crate::manager) fn target(&mut self, context: &mut Context) -> HeaderId {
        self.note_withheld(context);
        let best = context.chain.with_tree(HeaderTree::best_header);
        if self.withheld.blocks.is_empty() {
            return best;
        }
        let known: Vec<HeaderId> =
            context.peers.values().filter(|peer| peer.is_ready()).filter_map(|peer| peer.best_known).collect();
        let withheld = &self.withheld.blocks;
        context.chain.with_tree(|tree| {
            let tip_work = tree.node(tree.tip()).chain_work;
            let can_be_had = |end: &HeaderId| {
                let node = tree.node(*end);
                let lacks = |block: HeaderId| tree.ancestor(*end, tree.height(block)) == Some(block);
                !node.is_invalid && node.chain_work > tip_work && !withheld.iter().any(|(block, _)| lacks(*block))
            };
            let ends = std::iter::once(best).chain(known).filter(can_be_had);
            ends.max_by_key(|end| tree.node(*end).chain_work).unwrap_or(best)
        })
    }

    /// Checks whether the block that validation waits for is delivered by no peer.
    fn note_withheld(&mut self, context: &mut Context) {
        let now = context.now.elapsed;
        let missing = self.download.missing(now);
        let engine = context.chain.clone();
        engine.with_tree(|tree| {
            self.withheld.blocks.retain(|(block, until)| *until > now && tree.node(*block).block.is_none());
            let missing = missing.and_then(|hash| tree.find(&hash));
            self.withheld.suspect = match (missing, self.withheld.suspect) {
                (Some(block), Some((suspect, since))) if suspect == block => Some((block, since)),
                (Some(block), _) => Some((block, now)),
                (None, _) => None,
            };
        });
        if let Some((block, since)) = self.withheld.suspect
            && now.saturating_sub(since) >= PATIENCE
        {
            self.withheld.note(block, now + WITHHELD_TIME);
        }
    }
}

impl Withheld {
    fn note(&mut self, block: HeaderId, until: Duration) {
        if self.blocks.iter().any(|(other, _)| *other == block) {
            return;
        }
        if self.blocks.len() >= WITHHELD_MAX {
            self.blocks.remove(0);
        }
        self.blocks.push((block, until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lydian_chain::HeaderTree;
    use lydian_consensus::{Chain, Params};
    use lydian_primitives::Header;

    /// limit: WITHHELD_MAX at
    /// limit: WITHHELD_MAX above
    #[test]
    fn the_oldest_is_forgotten() {
        let params = Params::new(Chain::Regtest);
        let genesis = *params.genesis_block().parse().unwrap().header();
        let mut tree = HeaderTree::new(&params);
        let mut last = genesis.hash();
        let mut enter = || {
            let mut header = Header { prev_block: last, time: genesis.time + 1, version: 4, ..genesis };
            header.time = tree.node(tree.best_header()).header.time + 1;
            while header.hash().0[31] >= 0x7f {
                header.nonce = header.nonce.wrapping_add(1);
            }
            last = header.hash();
            tree.accept_header(&header, i64::from(header.time), &params).unwrap()
        };
        let ids: Vec<HeaderId> = (0..=WITHHELD_MAX).map(|_| enter()).collect();
        let mut withheld = Withheld::default();
        let until = Duration::from_secs(9);
        ids[..WITHHELD_MAX].iter().for_each(|id| withheld.note(*id, until));
        withheld.note(ids[0], until);
        assert_eq!((withheld.blocks.len(), withheld.blocks[0].0), (WITHHELD_MAX, ids[0]));
        withheld.note(ids[WITHHELD_MAX], until);
        assert_eq!((withheld.blocks.len(), withheld.blocks[0].0), (WITHHELD_MAX, ids[1]));
    }
}
