//! New blocks told to peers: by header, by compact block, or by hash, whichever the peer wants and can use. Core's `UpdatedBlockTip` and `SendMessages`.

use super::{PeerId, PeerManager};
use crate::time::Moment;
use lydian_chain::{HeaderTree, NodeId};
use lydian_primitives::BlockHash;
use lydian_wire::{CompactBlock, Inv, InvType, Message};

/// Blocks told of at once; who lacks more asks: Core's `MAX_BLOCKS_TO_ANNOUNCE`.
const ANNOUNCED_BLOCKS_MAX: usize = 8;

impl PeerManager {
    /// Validation went on, and the active chain may have another tip.
    pub fn chain_changed(&mut self, now: Moment) {
        self.now = now;
        let is_initial = self.is_initial_download();
        self.note_tip();
        let tip = self.engine.with_tree(|tree| tree.tip());
        if tip != self.last_tip {
            let fresh = self.fresh_blocks(tip);
            self.choose_announcers(&fresh, is_initial);
            self.last_tip = tip;
            self.last_tip_change = now.elapsed;
            self.forget_sources();
            if !self.is_initial_download() {
                let ids: Vec<_> = self.peers.values().filter(|peer| peer.is_ready()).map(|peer| peer.id).collect();
                let mut compact = None;
                ids.into_iter().for_each(|id| self.announce(id, &fresh, &mut compact));
            }
        }
        self.request_blocks();
    }

    /// Who brought a block that is good, while nothing else is on its way, may bring the next ones unasked: Core's `BlockChecked`.
    fn choose_announcers(&mut self, fresh: &[NodeId], is_initial: bool) {
        if is_initial {
            return;
        }
        let hashes: Vec<BlockHash> = self.engine.with_tree(|tree| fresh.iter().map(|id| *tree.hash(*id)).collect());
        for hash in hashes {
            let Some(source) = self.sources.get(&hash).copied() else { continue };
            let is_last = self.peers.values().all(|peer| peer.in_flight.iter().all(|other| *other == hash));
            if is_last {
                self.choose_announcer(source.peer);
            }
        }
    }

    /// The blocks of the new chain that the old one had not, lowest first, the last few.
    fn fresh_blocks(&self, tip: NodeId) -> Vec<NodeId> {
        self.engine.with_tree(|tree| {
            let fork = tree.fork(self.last_tip, tip);
            let mut fresh = tree.path(fork, tip);
            fresh.drain(..fresh.len().saturating_sub(ANNOUNCED_BLOCKS_MAX));
            fresh
        })
    }

    /// `compact`: the last block as a compact one, made once for all.
    fn announce(&mut self, id: PeerId, fresh: &[NodeId], compact: &mut Option<CompactBlock>) {
        let Some(peer) = self.peers.get(&id) else { return };
        let Some(last) = fresh.last().copied() else { return };
        let knows = |tree: &HeaderTree, block: NodeId| {
            let has =
                |end: Option<NodeId>| end.is_some_and(|end| tree.ancestor(end, tree.height(block)) == Some(block));
            has(peer.best_known) || has(peer.best_header_sent)
        };
        let (unknown, connects, is_known) = self.engine.with_tree(|tree| {
            let unknown: Vec<NodeId> = fresh.iter().copied().filter(|block| !knows(tree, *block)).collect();
            let parent = unknown.first().and_then(|first| tree.parent(*first));
            (unknown, parent.is_none_or(|parent| knows(tree, parent)), knows(tree, last))
        });
        if unknown.is_empty() {
            return;
        }
        let (wants_compact, prefers_headers) = (peer.talk.high_bandwidth_from, peer.talk.prefers_headers);
        let info = self.engine.with_tree(|tree| *tree.hash(last));
        match self.engine.header_info(&info) {
            Some(info) if connects && unknown.len() == 1 && wants_compact && (prefers_headers || fresh.len() == 1) => {
                self.send_compact(id, &info, compact);
                self.with(id, |peer| peer.best_header_sent = Some(last));
            }
            Some(_) if connects && prefers_headers => {
                let headers =
                    self.engine.with_tree(|tree| unknown.iter().map(|block| tree.node(*block).header).collect());
                self.send(id, Message::Headers(headers));
                self.with(id, |peer| peer.best_header_sent = Some(last));
            }
            Some(info) if !is_known => self.send(id, Message::Inv(vec![Inv::block(InvType::BLOCK, info.node.hash)])),
            _ => {}
        }
    }
}
