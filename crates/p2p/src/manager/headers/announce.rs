//! Announces new blocks to peers by header, compact block or hash, depending on what the peer wants and can use.
//!
//! Core's `UpdatedBlockTip`, `NewPoWValidBlock` and `SendMessages`. Input: the active chain, the blocks of each peer.
//! Output: announcements. Invariant: a peer gets the blocks that became active while it was connected, including those
//! during its handshake, and no older ones. Compact blocks are built from validated blocks.

use crate::manager::context::Place;
use crate::manager::{PeerId, PeerManager};
use crate::time::Moment;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_primitives::BlockHash;
use lydian_wire::{Inv, InvType, Message};

/// The maximum number of blocks announced at once; a peer that lacks more requests them: Core's
/// `MAX_BLOCKS_TO_ANNOUNCE`.
const ANNOUNCED_BLOCKS_MAX: usize = 8;

/// How the queued blocks are announced to a peer.
enum Announcement {
    Compact(HeaderId),
    Headers(Vec<HeaderId>),
    Hash,
    /// The peer already has them.
    Nothing,
}

impl PeerManager {
    /// Validation made progress, and the active chain may have a new tip.
    pub fn chain_changed(&mut self, now: Moment) {
        self.context.now = now;
        self.note_chain();
        self.request_blocks();
    }

    /// Announces the new blocks of the active chain to the connected peers.
    pub(in crate::manager) fn note_chain(&mut self) {
        let is_initial = self.context.is_initial_download();
        let tip = self.context.chain.with_tree(|tree| tree.tip());
        self.note_tip(tip);
        if tip == self.last_tip {
            return;
        }
        let (fresh, is_extension) = self.fresh_blocks(tip);
        self.choose_announcers(&fresh, is_initial);
        self.last_tip = tip;
        self.connections.note_tip_change(&self.context);
        self.forget_sources();
        if self.context.is_initial_download() {
            return;
        }
        if is_extension {
            self.announce_quickly(&fresh);
        }
        for peer in self.context.peers.values_mut().filter(|peer| !peer.is_leaving) {
            peer.announcements.extend(&fresh);
            // One more than can be announced by headers is kept, to show that there are too many.
            let excess = peer.announcements.len().saturating_sub(ANNOUNCED_BLOCKS_MAX + 1);
            peer.announcements.drain(..excess);
        }
        let ids: Vec<_> = self.context.peers.values().filter(|peer| peer.is_ready()).map(|peer| peer.id).collect();
        ids.into_iter().for_each(|id| self.announce_queued(id));
    }

    /// A peer that sent a valid block while no other block is in flight may send the next ones unrequested: Core's
    /// `BlockChecked`.
    fn choose_announcers(&mut self, fresh: &[HeaderId], is_initial: bool) {
        if is_initial {
            return;
        }
        let hashes: Vec<BlockHash> =
            self.context.chain.with_tree(|tree| fresh.iter().map(|id| *tree.hash(*id)).collect());
        for hash in hashes {
            let Some(source) = self.source(&hash) else { continue };
            let is_last = self.context.peers.values().all(|peer| peer.in_flight.iter().all(|other| *other == hash));
            if is_last {
                self.choose_announcer(source.peer);
            }
        }
    }

    /// Returns the last few blocks of the new chain that were not in the old one, lowest first. Also returns whether
    /// these are all new blocks and extend the old tip.
    fn fresh_blocks(&self, tip: HeaderId) -> (Vec<HeaderId>, bool) {
        self.context.chain.with_tree(|tree| {
            let fork = tree.fork(self.last_tip, tip);
            let mut fresh = tree.path(fork, tip);
            let is_extension = fork == self.last_tip && fresh.len() <= ANNOUNCED_BLOCKS_MAX;
            fresh.drain(..fresh.len().saturating_sub(ANNOUNCED_BLOCKS_MAX));
            (fresh, is_extension)
        })
    }

    /// Sends each new tip as a compact block to the peers that want it and have its parent, even if the next block
    /// arrived before the announcement: Core's `NewPoWValidBlock`.
    fn announce_quickly(&mut self, fresh: &[HeaderId]) {
        let wants = self.context.peers.values().filter(|peer| peer.is_ready() && peer.talk.high_bandwidth_from);
        let ids: Vec<_> = wants.map(|peer| peer.id).collect();
        for block in fresh {
            for id in &ids {
                self.context.look_up_unknown(*id);
                let is_next = self.context.chain.with_tree(|tree| {
                    let parent = tree.parent(*block);
                    !self.has_header(tree, *id, *block)
                        && parent.is_some_and(|parent| self.has_header(tree, *id, parent))
                });
                if is_next {
                    self.announce_compact(*id, *block);
                }
            }
        }
    }

    /// Announces the changes of the active chain since the last call: Core's part of `SendMessages`.
    pub(in crate::manager) fn announce_queued(&mut self, id: PeerId) {
        self.context.look_up_unknown(id);
        let Some(peer) = self.context.peers.get_mut(&id).filter(|peer| peer.is_ready()) else { return };
        let queued = std::mem::take(&mut peer.announcements);
        let Some(last) = queued.last().copied() else { return };
        match self.announcement(id, &queued) {
            Announcement::Nothing => {}
            Announcement::Compact(block) => self.announce_compact(id, block),
            Announcement::Headers(blocks) => {
                let header = |tree: &HeaderTree, block: &HeaderId| tree.node(*block).header;
                let headers =
                    self.context.chain.with_tree(|tree| blocks.iter().map(|block| header(tree, block)).collect());
                self.log_announced_headers(id, &blocks);
                self.context.send(id, Message::Headers(headers));
                self.context.with(id, |peer| peer.best_header_sent = Some(last));
            }
            Announcement::Hash => {
                let Place { hash, .. } = self.context.place(last);
                if !self.context.chain.with_tree(|tree| tree.is_active(last)) {
                    let tip = self.context.tip().hash;
                    self.context.log_debug(format!("Announcing block {hash} not on main chain (tip={tip})"));
                }
                if !self.context.chain.with_tree(|tree| self.has_header(tree, id, last)) {
                    self.context.log_debug(format!("SendMessages: sending inv peer={id} hash={hash}"));
                    self.context.send(id, Message::Inv(vec![Inv::block(InvType::BLOCK, hash)]));
                }
            }
        }
    }

    fn log_announced_headers(&mut self, id: PeerId, blocks: &[HeaderId]) {
        let hash = |block: Option<&HeaderId>| block.map(|block| self.context.place(*block).hash);
        let Some((first, last)) = hash(blocks.first()).zip(hash(blocks.last())) else { return };
        self.context.log_debug(match blocks.len() {
            1 => format!("SendMessages: sending header {first} to peer={id}"),
            count => format!("SendMessages: {count} headers, range ({first}, {last}), to peer={id}"),
        });
    }

    fn announcement(&self, id: PeerId, queued: &[HeaderId]) -> Announcement {
        let Some(peer) = self.context.peers.get(&id) else { return Announcement::Nothing };
        let (wants_compact, prefers_headers) = (peer.talk.high_bandwidth_from, peer.talk.prefers_headers);
        let takes_headers = prefers_headers || wants_compact && queued.len() == 1;
        if !takes_headers || queued.len() > ANNOUNCED_BLOCKS_MAX {
            return Announcement::Hash;
        }
        self.context.chain.with_tree(|tree| {
            let follows = |pair: &[HeaderId]| matches!(pair, [first, next] if tree.parent(*next) == Some(*first));
            if !queued.iter().all(|block| tree.is_active(*block)) || !queued.windows(2).all(follows) {
                return Announcement::Hash;
            }
            let known = queued.iter().take_while(|block| self.has_header(tree, id, **block)).count();
            let Some(first) = queued.get(known) else { return Announcement::Nothing };
            let connects = tree.parent(*first).is_none_or(|parent| self.has_header(tree, id, parent));
            match &queued[known..] {
                _ if !connects => Announcement::Hash,
                [block] if wants_compact => Announcement::Compact(*block),
                unknown if prefers_headers => Announcement::Headers(unknown.to_vec()),
                _ => Announcement::Hash,
            }
        })
    }

    fn announce_compact(&mut self, id: PeerId, block: HeaderId) {
        let Place { hash, .. } = self.context.place(block);
        if let Some(info) = self.context.chain.header_info(&hash) {
            self.context.log_debug(format!("SendMessages sending header-and-ids {hash} to peer={id}"));
            self.send_compact(id, &info);
            self.context.with(id, |peer| peer.best_header_sent = Some(block));
        }
    }

    /// Core's `PeerHasHeader`.
    fn has_header(&self, tree: &HeaderTree, id: PeerId, block: HeaderId) -> bool {
        let has = |end: Option<HeaderId>| end.is_some_and(|end| tree.ancestor(end, tree.height(block)) == Some(block));
        self.context.peers.get(&id).is_some_and(|peer| has(peer.best_known) || has(peer.best_header_sent))
    }
}
