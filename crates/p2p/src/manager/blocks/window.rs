//! The download: the path of wanted blocks, the peers that have them, the requests. [`crate::download`] selects the
//! peers to request them from.
//!
//! Core's `FindNextBlocksToDownload` and `HeadersDirectFetchBlocks`. Input: the header tree, the chains of peers, the
//! time. Output: `getdata` messages, peers that stall.

use super::Blocks;
use crate::download::{DownloadAction, PeerChain, PeerLimits, WantedBlock};
use crate::limits::COMPACT_BLOCKS_PER_PEER_MAX;
use crate::manager::PeerId;
use crate::manager::context::Context;
use crate::manager::peer::PeerState;
use crate::peer::ConnectionKind;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_engine::LogLevel;
use lydian_primitives::{BlockHash, Height};
use lydian_wire::{Inv, InvType, Message};

/// The size estimate for an unknown block, which few blocks exceed.
const BLOCK_BYTES_GUESS: u32 = 1_000_000;

impl Blocks {
    /// Requests the blocks up to the last header that a peer just announced from it, whatever services it offers, if
    /// that chain has as much work as ours: Core's `HeadersDirectFetchBlocks`. Those on the path then belong to the
    /// download and must fit into its window.
    pub(super) fn fetch_directly(&mut self, context: &mut Context, id: PeerId, last: HeaderId) {
        let may_ask = |peer: &PeerState| peer.is_ready() && peer.serves_witnesses() && peer.memory.has_block_room();
        if !context.peers.get(&id).is_some_and(may_ask) || !context.can_fetch_directly() {
            return;
        }
        let Some(missing) = self.missing_of_branch(context, last) else {
            let place = context.place(last);
            let (hash, height) = (place.hash, place.height);
            return context.log_debug(format!("Large reorg, won't direct fetch to {hash} ({height})"));
        };
        if missing.is_empty() {
            return;
        }
        self.plan_downloads(context);
        let mut blocks = Vec::new();
        for hash in missing {
            let has_room =
                context.peers.get(&id).is_some_and(|peer| peer.blocks.in_flight.len() < COMPACT_BLOCKS_PER_PEER_MAX);
            if has_room && self.download.may_request(&hash) {
                self.note_request(context, id, hash);
                blocks.push(hash);
            }
        }
        if !blocks.is_empty() {
            let place = context.place(last);
            Self::send_request(context, id, &blocks);
            let (hash, height) = (place.hash, place.height);
            context.log_debug(format!("Downloading blocks toward {hash} ({height}) via headers direct fetch"));
        }
    }

    /// Returns the blocks from our chain to `last` that are neither here nor requested, lowest first; none if the
    /// branch has less work than our chain. Returns `None` if there are too many.
    fn missing_of_branch(&self, context: &Context, last: HeaderId) -> Option<Vec<BlockHash>> {
        let tip = context.tip();
        context.chain.with_tree(|tree| {
            let (mut missing, mut walk) = (Vec::new(), last);
            if tree.node(last).is_invalid || tree.node(last).chain_work < tip.work {
                return Some(missing);
            }
            while !tree.is_active(walk) {
                let node = tree.node(walk);
                if node.block.is_none() && !self.is_coming(&node.hash) {
                    missing.push(node.hash);
                }
                if missing.len() > COMPACT_BLOCKS_PER_PEER_MAX {
                    return None;
                }
                walk = tree.parent(walk)?;
            }
            missing.reverse();
            Some(missing)
        })
    }

    /// Updates the download and sends its requests.
    pub(in crate::manager) fn request_blocks(&mut self, context: &mut Context) {
        Self::charge_peers(context);
        if context.is_loading() {
            // Blocks on disk need not be fetched.
            return;
        }
        self.plan_downloads(context);
        self.carry_out_requests(context);
        if self.introduce_reserves(context) {
            self.carry_out_requests(context);
        }
        self.fetch_branches(context);
    }

    /// Updates the download: the wanted blocks, the peers that have them, the open requests.
    pub(super) fn plan_downloads(&mut self, context: &mut Context) {
        self.follow_best_chain(context);
        self.introduce_peers(context);
        self.adopt_requests();
    }

    fn carry_out_requests(&mut self, context: &mut Context) {
        self.download.set_timeout_clock(context.now.mockable);
        for action in self.download.poll(context.now.elapsed) {
            match action {
                DownloadAction::Request { peer, blocks } => Self::request(context, peer, &blocks),
                DownloadAction::Cancel { peer, block } => context.with(peer, |peer| {
                    peer.blocks.in_flight.remove(&block);
                    peer.blocks.partials.remove(&block);
                }),
                DownloadAction::Disconnect { peer } => {
                    context.leave_at(peer, LogLevel::Info, "Peer is stalling block download".to_owned());
                    self.forget_peer(peer);
                }
            }
        }
    }

    pub(in crate::manager) fn request(context: &mut Context, id: PeerId, blocks: &[BlockHash]) {
        context.with(id, |peer| {
            peer.blocks.in_flight.extend(blocks);
            peer.blocks.is_asked = true;
            peer.memory.set_asked(true);
        });
        Self::send_request(context, id, blocks);
    }

    pub(super) fn send_request(context: &mut Context, id: PeerId, blocks: &[BlockHash]) {
        let kind = if Self::wants_compact(context, id, blocks) { InvType::CMPCT_BLOCK } else { InvType::WITNESS_BLOCK };
        let inventory: Vec<_> = blocks.iter().map(|hash| Inv::block(kind, *hash)).collect();
        for hash in blocks {
            context.debug(|context| {
                let height = context.chain.with_tree(|tree| tree.find(hash).map_or(0, |found| tree.height(found).0));
                format!("Requesting block {hash} ({height}) peer={id}")
            });
        }
        context.send(id, Message::GetData(inventory));
    }

    /// Returns whether a new block at the tip is requested as a compact block, if no other block is in flight: see
    /// Core's `HeadersDirectFetchBlocks`.
    pub(in crate::manager) fn wants_compact(context: &Context, id: PeerId, blocks: &[BlockHash]) -> bool {
        let [hash] = blocks else { return false };
        let provides = context.peers.get(&id).is_some_and(|peer| peer.talk.provides_compact_blocks);
        let on_their_way: usize = context.peers.values().map(|peer| peer.blocks.in_flight.len()).sum();
        !context.settings.blocks_only
            && provides
            && on_their_way == 1
            && context.can_fetch_directly()
            && context.chain.with_tree(|tree| {
                let parent = tree.find(hash).and_then(|found| tree.parent(found));
                parent.is_some_and(|parent| tree.is_active(parent) || tree.node(parent).is_verified)
            })
    }

    /// Updates the path of wanted blocks: it leads to the header with the most work that can be downloaded, if that has
    /// enough work.
    fn follow_best_chain(&mut self, context: &mut Context) {
        let minimum = context.settings.minimum_chain_work;
        let best = self.target(context);
        let (engine, now, end) = (context.chain.clone(), context.now.elapsed, self.path_end);
        let wanted = engine.with_tree(|tree| {
            let fork = stored_end(tree, best);
            (tree.node(best).chain_work >= minimum).then(|| {
                let (common, fork_height) = (tree.fork(end, best), tree.height(fork));
                (best, common, tree.height(common), fork, fork_height)
            })
        });
        let Some((best, common, common_height, fork, fork_height)) = wanted else { return };
        // If our chain forks off below the path, everything above the fork is wanted.
        let (keep, keep_height) = if fork_height < self.download.validated() && fork_height < common_height {
            (fork, fork_height)
        } else {
            (common, common_height)
        };
        if keep != end || keep_height < self.download.validated() {
            self.download.cut_path(keep_height);
            self.path_end = keep;
        }
        if fork_height > self.download.validated() {
            self.download.set_validated(fork_height, now);
            if keep_height < fork_height {
                // Blocks that did not arrive through the path: by RPC, or unrequested from peers.
                self.path_end = fork;
            }
        }
        let count = u32::try_from(self.download.path_wanted()).unwrap_or(u32::MAX);
        let (blocks, end) = engine.with_tree(|tree| {
            let from = tree.height(self.path_end).0;
            let to = tree.height(best).0.min(from.saturating_add(count));
            let ids: Vec<HeaderId> = (from + 1..=to).filter_map(|height| tree.ancestor(best, Height(height))).collect();
            let wanted = |id: &HeaderId| {
                let node = tree.node(*id);
                WantedBlock {
                    hash: node.hash,
                    size_bytes: node.block.map_or(BLOCK_BYTES_GUESS, |position| position.size),
                    is_here: node.block.is_some(),
                }
            };
            (ids.iter().map(wanted).collect::<Vec<_>>(), ids.last().copied())
        });
        self.download.extend_path(&blocks);
        self.path_end = end.unwrap_or(self.path_end);
    }

    /// Adds the peers that may be asked to the download, with the blocks that they have.
    fn introduce_peers(&mut self, context: &mut Context) {
        let has_preferred = context.peers.values().any(|peer| peer.is_ready() && peer.is_preferred());
        let is_initial = context.is_initial_download();
        let ids: Vec<_> = context.peers.values().filter(|peer| peer.is_ready()).map(|peer| peer.id).collect();
        let with_room = self.peers_with_room(context);
        for id in ids {
            context.look_up_unknown(id);
            let Some(peer) = context.peers.get(&id) else { continue };
            let may_follow = !has_preferred && peer.kind() != ConnectionKind::AddrFetch;
            if peer.serves_all() && (peer.is_preferred() || may_follow || !is_initial) {
                self.introduce(context, id, with_room.contains(&id));
            }
        }
    }

    /// During the initial download, peers that are not preferred are asked only while no block from a preferred one is
    /// in flight: Core's `sync_blocks_and_headers_from_peer`. Returns whether any of them may be asked now. Call this
    /// after the others were asked for what they have.
    fn introduce_reserves(&mut self, context: &mut Context) -> bool {
        let ready = || context.peers.values().filter(|peer| peer.is_ready());
        let preferred: Vec<_> = ready().filter(|peer| peer.is_preferred()).map(|peer| peer.id).collect();
        if preferred.is_empty() || !context.is_initial_download() {
            return false;
        }
        let is_reserve =
            |peer: &&PeerState| peer.serves_all() && !peer.is_preferred() && peer.kind() != ConnectionKind::AddrFetch;
        let reserves: Vec<_> = ready().filter(is_reserve).map(|peer| peer.id).collect();
        let now = context.now.elapsed;
        let is_wanted = !preferred.iter().any(|id| self.download.is_sending(*id, now));
        let with_room = self.peers_with_room(context);
        for id in &reserves {
            match is_wanted {
                true => self.introduce(context, *id, with_room.contains(id)),
                false => self.download.set_peer_chain(*id, PeerChain::default()),
            }
        }
        is_wanted && !reserves.is_empty()
    }

    /// Adds the peer to the download with the blocks that it has. `has_room`: the shared memory has room for another
    /// block from it.
    fn introduce(&mut self, context: &mut Context, id: PeerId, has_room: bool) {
        let Some(peer) = context.peers.get(&id) else { return };
        let (Some(best), limits) = (peer.best_known, limits_of(peer)) else { return };
        self.download.add_peer(id, limits, context.now.elapsed);
        self.download.set_room(id, has_room);
        let chain = context.chain.with_tree(|tree| PeerChain::of(tree, best, self.path_end));
        self.download.set_peer_chain(id, chain);
    }
}

pub(super) fn limits_of(peer: &PeerState) -> PeerLimits {
    PeerLimits { is_limited: peer.is_limited(), ..PeerLimits::default() }
}

/// Returns the last block on the way to `best` up to which nothing needs to be fetched for now: where it leaves the
/// active chain, or the last of the stored blocks after that which have too little work to be activated. Those wait for
/// more blocks of the branch and not for validation, so they must not fill the window.
fn stored_end(tree: &HeaderTree, best: HeaderId) -> HeaderId {
    let (tip, fork) = (tree.tip(), tree.fork(tree.tip(), best));
    if fork == tip {
        return tip;
    }
    let work = tree.node(tip).chain_work;
    let is_waiting = |id: &HeaderId| {
        let node = tree.node(*id);
        node.block.is_some() && node.chain_work <= work
    };
    let mut end = fork;
    for height in tree.height(fork).0 + 1..=tree.height(best).0 {
        match tree.ancestor(best, Height(height)).filter(is_waiting) {
            Some(next) => end = next,
            None => break,
        }
    }
    end
}
