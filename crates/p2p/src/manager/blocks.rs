//! Blocks of peers: which are wanted, what became of them, who is to blame. The choice of who is asked for what is [`crate::download`]'s.

use super::{Action, BlockFate, PeerId, PeerManager};
use crate::download::{Arrival, DownloadAction, DownloadPeer, PeerChain, PeerLimits, WantedBlock};
use crate::headers::anti_dos_work;
use crate::time::UnixTime;
use lydian_chain::NodeId;
use lydian_consensus::pow::block_proof;
use lydian_primitives::{BlockHash, HEADER_SIZE, Header, Height};
use lydian_wire::{Inv, InvType, Message};

/// A guess for a block that nobody has seen: what blocks of its time have at most, by and large.
const BLOCK_BYTES_GUESS: u32 = 1_000_000;

/// Blocks above the tip from which one that nobody asked for is not taken: Core's `MIN_BLOCKS_TO_KEEP`.
const UNREQUESTED_HEIGHT_MAX: u32 = 288;

impl PeerManager {
    /// A block came. Core's `ProcessMessage`, `ProcessBlock` and the first part of `AcceptBlock`.
    pub(super) fn take_block(&mut self, id: PeerId, bytes: Vec<u8>) {
        let Some(header) = bytes.first_chunk::<HEADER_SIZE>().map(Header::parse) else { return };
        let hash = header.hash();
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let arrival = self.download.arrived(DownloadPeer(id.0), &hash, size, self.now.elapsed);
        let unix = self.now.unix;
        self.with(id, |peer| {
            peer.in_flight.remove(&hash);
        });
        let is_taken = match arrival {
            Arrival::First { .. } => true,
            Arrival::Duplicate => false,
            Arrival::Unwanted => self.is_welcome(&header, &hash),
        };
        if is_taken {
            self.with(id, |peer| peer.last_block_time = unix);
            self.sources.insert(hash, id);
            self.actions.push(Action::Store { from: id, hash, bytes });
        } else {
            self.log(format!("block {hash} from peer={id} was not asked for or is here"));
        }
        self.request_blocks();
    }

    /// Whether a block that nobody asked for is worth a place on the disk: its chain has more work than ours and enough to be no attack, and is not
    /// far above us.
    fn is_welcome(&self, header: &Header, hash: &BlockHash) -> bool {
        let minimum = self.settings.minimum_chain_work;
        self.engine.with_tree(|tree| {
            let Some(parent) = tree.find(&header.prev_block).map(|parent| tree.node(parent)) else {
                // The engine says what Core says of it.
                return true;
            };
            if tree.find(hash).is_some_and(|known| tree.node(known).block.is_some()) {
                return false;
            }
            let Some(work) = parent.chain_work.checked_add(block_proof(header.bits)) else { return false };
            let tip = tree.node(tree.tip());
            work >= anti_dos_work(tree, minimum)
                && work > tip.chain_work
                && parent.height.0 < tip.height.0.saturating_add(UNREQUESTED_HEIGHT_MAX)
        })
    }

    /// What the engine said of a block when it was to be stored. Core's `MaybePunishNodeForBlock`.
    pub fn block_stored(&mut self, from: PeerId, hash: &BlockHash, fate: &BlockFate, now: crate::time::Moment) {
        self.now = now;
        match fate {
            BlockFate::Stored | BlockFate::Known => {}
            BlockFate::Invalid { reason, is_mutated } => {
                self.sources.remove(hash);
                self.misbehaving(from, &format!("invalid block {hash}: {reason}"));
                if *is_mutated {
                    self.download.spoiled(Some(DownloadPeer(from.0)), hash);
                }
                self.settle(from);
            }
            BlockFate::KnownInvalid { reason } => {
                self.sources.remove(hash);
                // Who connected to us may follow rules that were good once.
                if self.peers.get(&from).is_some_and(|peer| !peer.kind().is_inbound()) {
                    self.misbehaving(from, &format!("invalid block {hash}: {reason}"));
                    self.settle(from);
                }
            }
            BlockFate::Malformed { reason } => {
                self.sources.remove(hash);
                self.log(format!("peer={from}: block {hash} cannot be read: {reason}"));
                self.download.spoiled(Some(DownloadPeer(from.0)), hash);
            }
            BlockFate::TooEarly => {
                self.sources.remove(hash);
                self.download.spoiled(Some(DownloadPeer(from.0)), hash);
            }
        }
        self.request_blocks();
    }

    /// Validation found that a stored block breaks a rule.
    pub fn block_invalid(&mut self, hash: &BlockHash, reason: &str, now: crate::time::Moment) {
        self.now = now;
        if let Some(from) = self.sources.remove(hash) {
            self.misbehaving(from, &format!("invalid block {hash}: {reason}"));
            self.settle(from);
        }
        self.request_blocks();
    }

    /// The stored bytes of a block turned out to be of no use.
    pub fn block_unreadable(&mut self, hash: &BlockHash, now: crate::time::Moment) {
        self.now = now;
        self.download.spoiled(None, hash);
        self.request_blocks();
    }

    pub(super) fn take_notfound(&mut self, id: PeerId, inventory: &[Inv]) {
        for item in inventory.iter().filter(|item| item.kind.is_gen_block()) {
            self.download.failed(DownloadPeer(id.0), &BlockHash(item.hash));
        }
        self.request_blocks();
    }

    pub(super) fn is_requested(&self, hash: &BlockHash) -> bool {
        self.peers.values().any(|peer| peer.in_flight.contains(hash))
    }

    pub(super) fn forget_downloads(&mut self, id: PeerId) {
        self.download.remove_peer(DownloadPeer(id.0));
    }

    /// Brings the download up to date and sends what it asks for.
    pub(super) fn request_blocks(&mut self) {
        self.follow_best_chain();
        self.introduce_peers();
        for action in self.download.poll(self.now.elapsed) {
            match action {
                DownloadAction::Request { peer, blocks } => self.request(PeerId(peer.0), &blocks),
                DownloadAction::Cancel { peer, block } => {
                    self.with(PeerId(peer.0), |peer| {
                        peer.in_flight.remove(&block);
                    });
                }
                DownloadAction::Disconnect { peer } => self.leave(PeerId(peer.0), "peer is stalling block download"),
            }
        }
    }

    fn request(&mut self, id: PeerId, blocks: &[BlockHash]) {
        let inventory: Vec<_> = blocks.iter().map(|hash| Inv::block(InvType::WITNESS_BLOCK, *hash)).collect();
        self.with(id, |peer| peer.in_flight.extend(blocks));
        self.log(format!(
            "Requesting {} blocks from {} on, peer={id}",
            blocks.len(),
            blocks.first().map_or(String::new(), BlockHash::to_string)
        ));
        self.send(id, Message::GetData(inventory));
    }

    /// The path of blocks that are wanted is the way to the header with most work, if that has enough.
    fn follow_best_chain(&mut self) {
        let minimum = self.settings.minimum_chain_work;
        let (engine, now, end) = (self.engine.clone(), self.now.elapsed, self.path_end);
        let wanted = engine.with_tree(|tree| {
            let (tip, best) = (tree.tip(), tree.best_header());
            let fork = tree.fork(tip, best);
            (tree.node(best).chain_work >= minimum).then(|| {
                let (common, fork_height) = (tree.fork(end, best), tree.height(fork));
                (best, common, tree.height(common), fork, fork_height)
            })
        });
        let Some((best, common, common_height, fork, fork_height)) = wanted else { return };
        // Where our chain leaves theirs below the path, everything from there on is wanted.
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
        }
        let count = u32::try_from(self.download.path_wanted()).unwrap_or(u32::MAX);
        let (blocks, end) = engine.with_tree(|tree| {
            let from = tree.height(self.path_end).0;
            let to = tree.height(best).0.min(from.saturating_add(count));
            let ids: Vec<NodeId> = (from + 1..=to).filter_map(|height| tree.ancestor(best, Height(height))).collect();
            let wanted = |id: &NodeId| {
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

    /// Tells the download who has what: Core asks inbound peers only if there is nobody else.
    fn introduce_peers(&mut self) {
        let has_preferred = self.peers.values().any(|peer| peer.is_ready() && peer.is_preferred());
        let ids: Vec<_> = self.peers.values().filter(|peer| peer.is_ready()).map(|peer| peer.id).collect();
        for id in ids {
            self.look_up_unknown(id);
            let Some(peer) = self.peers.get(&id) else { continue };
            let is_asked = peer.serves_blocks()
                && peer.serves_witnesses()
                && (peer.is_preferred() || !has_preferred || !self.is_initial_download());
            let (Some(best), true) = (peer.best_known, is_asked) else { continue };
            let limits = PeerLimits { is_limited: peer.is_limited(), ..PeerLimits::default() };
            self.download.add_peer(DownloadPeer(id.0), limits, self.now.elapsed);
            let chain = self.engine.with_tree(|tree| PeerChain::of(tree, best, self.path_end));
            self.download.set_peer_chain(DownloadPeer(id.0), chain);
        }
    }

    /// Blocks whose verdict is known have no source any more.
    pub(super) fn forget_sources(&mut self) {
        let engine = self.engine.clone();
        engine.with_tree(|tree| {
            self.sources.retain(|hash, _| tree.find(hash).is_none_or(|id| !tree.is_active(id)));
        });
        for peer in self.peers.values_mut() {
            engine.with_tree(|tree| {
                peer.in_flight.retain(|hash| tree.find(hash).is_some_and(|id| tree.node(id).block.is_none()));
            });
        }
    }

    pub(super) fn tip_age(&self) -> i64 {
        self.now.unix.since(UnixTime::from(self.tip().time))
    }
}
