//! Announces new blocks to peers by header, compact block or hash, depending on what the peer wants and can use.
//!
//! Core's `UpdatedBlockTip`, `NewPoWValidBlock` and `SendMessages`. Input: the active chain, the blocks of each peer.
//! Output: announcements. Invariant: a peer gets the blocks that became active while it was connected, including those
//! during its handshake, and no older ones; a compact block may be sent before the block is validated, and the block is
//! not announced again then.

use super::Headers;
use crate::manager::PeerId;
use crate::manager::context::{Context, Place};
use lydian_chain::{HeaderId, HeaderTree};
use lydian_consensus::Deployment;
use lydian_engine::{HeaderInfo, INITIAL_DOWNLOAD_OVER, LogLevel};
use lydian_primitives::{Block, BlockHash};
use lydian_wire::{CompactBlock, Inv, InvType, Message};
use rand_chacha::rand_core::Rng;

/// The maximum number of blocks announced at once; a peer that lacks more requests them: Core's
/// `MAX_BLOCKS_TO_ANNOUNCE`.
const ANNOUNCED_BLOCKS_MAX: usize = 8;

/// The function of Core that announces blocks of the active chain, for the log.
const SEND_MESSAGES: &str = "SendMessages";

/// A change of the active chain.
#[derive(Clone, Debug)]
pub(in crate::manager) struct TipChange {
    /// The last few new blocks, lowest first.
    pub(in crate::manager) fresh: Vec<HeaderId>,
    /// These are all new blocks, and they extend the old tip.
    is_extension: bool,
    /// Blocks have left the active chain.
    pub(in crate::manager) is_reorganisation: bool,
    /// It happened during the initial download.
    pub(in crate::manager) is_initial: bool,
}

/// How the queued blocks are announced to a peer.
enum Announcement {
    Compact(HeaderId),
    Headers(Vec<HeaderId>),
    Hash,
    /// The peer already has them.
    Nothing,
}

impl Headers {
    /// Returns the change of the active chain since the last call, if there is one.
    pub(in crate::manager) fn note_chain(&mut self, context: &mut Context) -> Option<TipChange> {
        let is_initial = context.is_initial_download();
        let tip = context.chain.with_tree(|tree| tree.tip());
        Self::note_tip(context, tip);
        if tip == self.last_tip {
            return None;
        }
        let (fresh, is_extension, is_reorganisation) = self.fresh_blocks(context, tip);
        self.last_tip = tip;
        Some(TipChange { fresh, is_extension, is_reorganisation, is_initial })
    }

    /// Announces the new blocks of the active chain to the connected peers.
    pub(in crate::manager) fn announce(&mut self, context: &mut Context, change: &TipChange) {
        if context.is_initial_download() {
            return;
        }
        if change.is_extension {
            self.announce_quickly(context, &change.fresh, SEND_MESSAGES);
        }
        for peer in context.peers.values_mut().filter(|peer| !peer.is_leaving) {
            peer.sync.announcements.extend(&change.fresh);
            // One more than can be announced by headers is kept, to show that there are too many.
            let excess = peer.sync.announcements.len().saturating_sub(ANNOUNCED_BLOCKS_MAX + 1);
            peer.sync.announcements.drain(..excess);
        }
        let ids: Vec<_> = context.peers.values().filter(|peer| peer.is_ready()).map(|peer| peer.id).collect();
        ids.into_iter().for_each(|id| self.announce_queued(context, id));
    }

    /// Returns the last few blocks of the new chain that were not in the old one, lowest first. Also returns whether
    /// these are all new blocks and extend the old tip, and whether blocks have left the chain.
    fn fresh_blocks(&self, context: &Context, tip: HeaderId) -> (Vec<HeaderId>, bool, bool) {
        context.chain.with_tree(|tree| {
            let fork = tree.fork(self.last_tip, tip);
            let mut fresh = tree.path(fork, tip);
            let is_extension = fork == self.last_tip && fresh.len() <= ANNOUNCED_BLOCKS_MAX;
            fresh.drain(..fresh.len().saturating_sub(ANNOUNCED_BLOCKS_MAX));
            (fresh, is_extension, fork != self.last_tip)
        })
    }

    /// A block that extends the tip is stored, but not validated yet: sends it as a compact block to the peers that
    /// want it and have its parent. Core's `NewPoWValidBlock`.
    pub(in crate::manager) fn announce_new(&mut self, context: &mut Context, block: &Block) {
        let hash = block.hash();
        let found = context.chain.with_tree(|tree| {
            let (found, tip) = (tree.find(&hash)?, tree.tip());
            // Validation may have finished by now.
            let is_next = tree.parent(found) == Some(tip) || found == tip;
            is_next.then(|| (found, tree.height(found)))
        });
        let Some((id, height)) = found else { return };
        let is_repeated = self.announced_height.is_some_and(|announced| height <= announced);
        if context.is_initial_download() || is_repeated {
            return;
        }
        self.announced_height = Some(height);
        if context.settings.params.is_active(Deployment::Segwit, height) {
            self.recent_compact = Some((hash, CompactBlock::new(block, context.random.next_u64())));
            self.announce_quickly(context, &[id], "PeerManager::NewPoWValidBlock");
        }
    }

    /// Returns whether an item is the last block that was announced before its validation, which is not over yet. Core
    /// validates it before it answers a request for it.
    pub(in crate::manager) fn is_being_validated(&self, context: &Context, item: &Inv) -> bool {
        let hash = BlockHash(item.hash);
        self.recent_compact.as_ref().is_some_and(|(recent, _)| *recent == hash)
            && context.chain.with_tree(|tree| {
                let found = tree.find(&hash).filter(|found| tree.parent(*found) == Some(tree.tip()));
                found.is_some_and(|found| !tree.node(found).is_verified && !tree.node(found).is_invalid)
            })
    }

    /// Sends each new block as a compact block to the peers that want it and have its parent, even if the next block
    /// arrived before the announcement.
    fn announce_quickly(&mut self, context: &mut Context, fresh: &[HeaderId], caller: &str) {
        let wants = context.peers.values().filter(|peer| peer.is_ready() && peer.talk.high_bandwidth_from);
        let ids: Vec<_> = wants.map(|peer| peer.id).collect();
        for block in fresh {
            for id in &ids {
                context.look_up_unknown(*id);
                let is_next = context.chain.with_tree(|tree| {
                    let parent = tree.parent(*block);
                    !Self::has_header(context, tree, *id, *block)
                        && parent.is_some_and(|parent| Self::has_header(context, tree, *id, parent))
                });
                if is_next {
                    self.announce_compact(context, *id, *block, caller);
                }
            }
        }
    }

    /// Announces the changes of the active chain since the last call: Core's part of `SendMessages`.
    pub(in crate::manager) fn announce_queued(&mut self, context: &mut Context, id: PeerId) {
        context.look_up_unknown(id);
        let Some(peer) = context.peers.get_mut(&id).filter(|peer| peer.is_ready()) else { return };
        let queued = std::mem::take(&mut peer.sync.announcements);
        let Some(last) = queued.last().copied() else { return };
        match Self::announcement(context, id, &queued) {
            Announcement::Nothing => {}
            Announcement::Compact(block) => self.announce_compact(context, id, block, SEND_MESSAGES),
            Announcement::Headers(blocks) => {
                let header = |tree: &HeaderTree, block: &HeaderId| tree.node(*block).header;
                let headers = context.chain.with_tree(|tree| blocks.iter().map(|block| header(tree, block)).collect());
                Self::log_announced_headers(context, id, &blocks);
                context.send(id, Message::Headers(headers));
                context.with(id, |peer| peer.sync.best_header_sent = Some(last));
            }
            Announcement::Hash => {
                let Place { hash, .. } = context.place(last);
                if !context.chain.with_tree(|tree| tree.is_active(last)) {
                    let tip = context.tip().hash;
                    context.log_debug(format!("Announcing block {hash} not on main chain (tip={tip})"));
                }
                if !context.chain.with_tree(|tree| Self::has_header(context, tree, id, last)) {
                    context.log_debug(format!("SendMessages: sending inv peer={id} hash={hash}"));
                    context.send(id, Message::Inv(vec![Inv::block(InvType::BLOCK, hash)]));
                }
            }
        }
    }

    fn log_announced_headers(context: &mut Context, id: PeerId, blocks: &[HeaderId]) {
        let hash = |block: Option<&HeaderId>| block.map(|block| context.place(*block).hash);
        let Some((first, last)) = hash(blocks.first()).zip(hash(blocks.last())) else { return };
        context.log_debug(match blocks.len() {
            1 => format!("SendMessages: sending header {first} to peer={id}"),
            count => format!("SendMessages: {count} headers, range ({first}, {last}), to peer={id}"),
        });
    }

    fn announcement(context: &Context, id: PeerId, queued: &[HeaderId]) -> Announcement {
        let Some(peer) = context.peers.get(&id) else { return Announcement::Nothing };
        let (wants_compact, prefers_headers) = (peer.talk.high_bandwidth_from, peer.talk.prefers_headers);
        let takes_headers = prefers_headers || wants_compact && queued.len() == 1;
        if !takes_headers || queued.len() > ANNOUNCED_BLOCKS_MAX {
            return Announcement::Hash;
        }
        context.chain.with_tree(|tree| {
            let follows = |pair: &[HeaderId]| matches!(pair, [first, next] if tree.parent(*next) == Some(*first));
            if !queued.iter().all(|block| tree.is_active(*block)) || !queued.windows(2).all(follows) {
                return Announcement::Hash;
            }
            let known = queued.iter().take_while(|block| Self::has_header(context, tree, id, **block)).count();
            let Some(first) = queued.get(known) else { return Announcement::Nothing };
            let connects = tree.parent(*first).is_none_or(|parent| Self::has_header(context, tree, id, parent));
            match &queued[known..] {
                _ if !connects => Announcement::Hash,
                [block] if wants_compact => Announcement::Compact(*block),
                unknown if prefers_headers => Announcement::Headers(unknown.to_vec()),
                _ => Announcement::Hash,
            }
        })
    }

    fn announce_compact(&mut self, context: &mut Context, id: PeerId, block: HeaderId, caller: &str) {
        let Place { hash, .. } = context.place(block);
        if let Some(info) = context.chain.header_info(&hash) {
            context.log_debug(format!("{caller} sending header-and-ids {hash} to peer={id}"));
            self.send_compact(context, id, &info);
            context.with(id, |peer| peer.sync.best_header_sent = Some(block));
        }
    }

    /// Core's `PeerHasHeader`.
    fn has_header(context: &Context, tree: &HeaderTree, id: PeerId, block: HeaderId) -> bool {
        let has = |end: Option<HeaderId>| end.is_some_and(|end| tree.ancestor(end, tree.height(block)) == Some(block));
        context.peers.get(&id).is_some_and(|peer| has(peer.best_known) || has(peer.sync.best_header_sent))
    }

    /// Reads the block unless this was done for another peer; all get the same nonce, as in Core.
    fn send_compact(&mut self, context: &mut Context, id: PeerId, info: &HeaderInfo) {
        let hash = info.node.hash;
        if self.recent_compact.as_ref().is_none_or(|(recent, _)| *recent != hash) {
            match context.chain.block(info) {
                Ok(Some(block)) => {
                    self.recent_compact = Some((hash, CompactBlock::new(&block, context.random.next_u64())))
                }
                Ok(None) => return context.leave(id, "Block was pruned before it could be read"),
                Err(_) => return context.leave_at(id, LogLevel::Error, "Cannot load block from disk".to_owned()),
            }
        }
        if let Some((_, compact)) = self.recent_compact.clone() {
            context.send(id, Message::CmpctBlock(Box::new(compact)));
        }
    }

    /// Core's `UpdateIBDStatus`.
    fn note_tip(context: &mut Context, tip: HeaderId) {
        let (tip, now) = (context.place(tip), context.unix());
        if context.settings.initial_download.note_tip(tip.time, tip.work, now) {
            context.log_info(INITIAL_DOWNLOAD_OVER.to_owned());
        }
    }
}
