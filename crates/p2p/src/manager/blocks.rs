//! Blocks from peers: which are wanted, what happened to them, and which peer is punished. [`crate::download`] selects
//! the peers to request them from.

mod branches;
pub(super) mod compact;
mod fetch;
mod memory;
mod serve;
pub(super) mod target;

use super::headers::{Headers, TipChange};
use super::peer::PeerState;
use super::{Action, PeerId, PeerManager, Source, StoreOutcome, Violation};
use crate::download::{Arrival, DownloadAction, DownloadPeer, PeerChain, PeerLimits, RequestTime, WantedBlock};
use crate::headers::anti_dos_work;
use crate::limits::{BLOCK_TIMEOUT, COMPACT_BLOCKS_PER_PEER_MAX, REQUESTS_PER_BLOCK_MAX};
use crate::peer::ConnectionKind;
use lydian_chain::{HeaderId, HeaderTree};
use lydian_consensus::U256;
use lydian_consensus::pow::block_proof;
use lydian_engine::LogLevel;
use lydian_primitives::{BlockHash, HEADER_SIZE, HashedHeader, Header, Height};
use lydian_wire::{Inv, InvType, Message};

/// The size estimate for an unknown block, which few blocks exceed.
const BLOCK_BYTES_GUESS: u32 = 1_000_000;

/// How far above the tip an unrequested block may be: Core's `MIN_BLOCKS_TO_KEEP`.
const UNREQUESTED_HEIGHT_MAX: u32 = 288;

impl PeerManager {
    /// A block was received. Core's `ProcessMessage`, `ProcessBlock` and the first part of `AcceptBlock`.
    pub(super) fn take_block(&mut self, id: PeerId, bytes: Vec<u8>) {
        let Some(header) = bytes.first_chunk::<HEADER_SIZE>().map(Header::parse) else { return };
        let (hash, size) = (header.hash(), bytes.len());
        self.context.log_debug(format!("received block {hash} peer={id}"));
        // The same block may arrive twice before the first was checked, and the first may be something else.
        let is_requested = !self.asked(&hash).is_empty() || self.pending.contains_key(&hash);
        if is_requested || self.is_welcome(id, &header, &hash, &bytes) {
            self.deliver(id, hash, bytes, false);
        } else {
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            self.download.unneeded(DownloadPeer(id.0), &hash, size, self.context.now.elapsed);
        }
        self.context.with(id, |peer| {
            peer.in_flight.remove(&hash);
        });
        self.request_blocks();
    }

    /// Passes a block on to be stored, once, or again as long as it is not verified that the first bytes were right.
    pub(super) fn deliver(&mut self, id: PeerId, hash: BlockHash, bytes: Vec<u8>, is_compact: bool) {
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let arrival = self.download.arrived(DownloadPeer(id.0), &hash, size, self.context.now.elapsed);
        self.forget_request(id, &hash);
        let source = Source { peer: id, is_compact, has_verdict: false };
        let pending = self.pending.entry(hash).or_default();
        if arrival == Arrival::Duplicate && pending.is_empty() || pending.len() >= REQUESTS_PER_BLOCK_MAX {
            if pending.is_empty() {
                self.pending.remove(&hash);
            }
            return;
        }
        pending.push(source);
        self.context.actions.push(Action::Store { from: id, hash, bytes });
    }

    /// Returns whether an unrequested block is worth storing: its chain has as much work as ours and enough to rule out
    /// an attack, and is not far above our tip. A peer that sends a mutated block or an invalid header is punished as
    /// for a requested block.
    fn is_welcome(&mut self, id: PeerId, header: &Header, hash: &BlockHash, bytes: &[u8]) -> bool {
        let minimum = self.context.settings.minimum_chain_work;
        if self.context.chain.with_tree(|tree| tree.find(hash).is_some_and(|id| tree.parent(id).is_none())) {
            // The genesis block has no parent and is already here; Core ignores it.
            return false;
        }
        let found = self.context.chain.with_tree(|tree| {
            let parent = tree.node(tree.find(&header.prev_block)?);
            let work = parent.chain_work.checked_add(block_proof(header.bits)).unwrap_or(U256::ZERO);
            let is_known = tree.find(hash).is_some();
            Some((parent.height, work, is_known, is_known || work >= anti_dos_work(tree, minimum)))
        });
        let Some((parent_height, work, is_known, is_enough)) = found else {
            // Core punishes it whatever else is wrong with it. So it is not kept until its parent is known.
            if self.is_the_block(bytes).is_some() {
                self.context.misbehaving(id, &Violation::InvalidBlock);
            }
            return false;
        };
        match self.is_the_block(bytes) {
            Some(true) => {}
            Some(false) => {
                self.context.log_debug(format!("Received mutated block from peer={id}"));
                self.context.misbehaving(id, &Violation::MutatedBlock);
                return false;
            }
            None => return false,
        }
        if !is_known && is_enough {
            let unix = self.context.unix();
            match self.context.chain.accept_headers(&HashedHeader::many(std::slice::from_ref(header)), unix) {
                Ok(accepted) => {
                    if let Some((hash, rejected)) = accepted.refused {
                        Headers::punish_header(&mut self.context, id, &hash, &rejected, false);
                        return false;
                    }
                }
                Err(error) => self.context.log_info(format!("Headers could not be stored: {error}")),
            }
        }
        let tip = self.context.tip();
        let was_here = self.context.chain.with_tree(|tree| {
            let node = tree.find(hash).map(|found| tree.node(found));
            node.is_some_and(|node| node.block.is_some() || node.is_verified)
        });
        let is_near = parent_height.0 < tip.height.0.saturating_add(UNREQUESTED_HEIGHT_MAX);
        is_enough && !was_here && work >= tip.work && is_near && work >= minimum
    }

    /// The engine reported the result of storing a block. Core's `MaybePunishNodeForBlock`.
    pub fn block_stored(&mut self, from: PeerId, hash: &BlockHash, outcome: &StoreOutcome, now: crate::time::Moment) {
        self.context.now = now;
        let (source, is_last) = self.take_pending(from, hash);
        match outcome {
            StoreOutcome::Stored | StoreOutcome::Known => self.settle_block(source, hash, outcome),
            StoreOutcome::Invalid { is_mutated, .. } => {
                if *is_mutated && !source.is_compact {
                    self.context.log_debug(format!("Received mutated block from peer={from}"));
                    self.context.misbehaving(from, &Violation::MutatedBlock);
                } else if !source.is_compact {
                    self.context.misbehaving(from, &Violation::InvalidBlock);
                }
            }
            StoreOutcome::KnownInvalid { .. } => {
                // An inbound peer may follow rules that were valid once.
                let is_outbound = self.context.peers.get(&from).is_some_and(|peer| !peer.kind().is_inbound());
                if is_outbound && !source.is_compact {
                    self.context.misbehaving(from, &Violation::InvalidBlock);
                }
            }
            StoreOutcome::Malformed { reason } => {
                self.context.log_debug(format!(
                    "ProcessMessages(block): Exception '{reason}' caught for block {hash} from peer={from}"
                ));
            }
            StoreOutcome::TooEarly => {}
        }
        // Even then the header may not be marked as invalid: as in Core, a broken rule of the block alone says nothing
        // about the header.
        let is_useless =
            matches!(outcome, StoreOutcome::Invalid { .. } | StoreOutcome::Malformed { .. } | StoreOutcome::TooEarly);
        if is_last && is_useless {
            let is_bad = *outcome != StoreOutcome::TooEarly;
            if is_bad {
                self.context.with(from, |peer| peer.failed_branch = peer.best_known);
            }
            self.download.spoiled(is_bad.then_some(DownloadPeer(from.0)), hash);
        }
        self.settle(from);
        self.request_blocks();
    }

    /// Removes the delivery that a verdict is about. Also returns whether no other one is pending.
    fn take_pending(&mut self, from: PeerId, hash: &BlockHash) -> (Source, bool) {
        let unknown = Source { peer: from, is_compact: false, has_verdict: false };
        let Some(pending) = self.pending.get_mut(hash) else { return (unknown, true) };
        let at = pending.iter().position(|source| source.peer == from);
        let source = at.map_or(unknown, |at| pending.remove(at));
        let is_last = pending.is_empty();
        if is_last {
            self.pending.remove(hash);
        }
        (source, is_last)
    }

    /// The block is stored; no other peer needs to send it.
    fn settle_block(&mut self, source: Source, hash: &BlockHash, outcome: &StoreOutcome) {
        self.download.stored(hash);
        for (peer, _) in self.aside.remove(hash).unwrap_or_default() {
            self.forget_request(peer, hash);
        }
        if *outcome == StoreOutcome::Stored {
            let unix = self.context.now.unix;
            self.context.with(source.peer, |peer| peer.last_block_time = unix);
            if !source.has_verdict {
                self.sources.insert(*hash, source);
            }
        }
    }

    /// Returns the sender of a block without a verdict, as [`PeerManager::take_source`] does.
    pub(super) fn source(&self, hash: &BlockHash) -> Option<Source> {
        let pending = || self.pending.get(hash)?.first();
        self.sources.get(hash).or_else(pending).copied()
    }

    /// Returns the sender of a block whose verdict is known. Validation may finish before the report that the block is
    /// stored: then the verdict is about the first pending delivery.
    fn take_source(&mut self, hash: &BlockHash) -> Option<Source> {
        let pending = self.pending.get_mut(hash).and_then(|pending| pending.first_mut());
        self.sources.remove(hash).or_else(|| {
            pending.map(|source| {
                source.has_verdict = true;
                *source
            })
        })
    }

    /// Validation found that a stored block breaks a rule.
    pub fn block_invalid(&mut self, hash: &BlockHash, _reason: &str, now: crate::time::Moment) {
        self.context.now = now;
        if let Some(source) = self.take_source(hash).filter(|source| !source.is_compact) {
            self.context.misbehaving(source.peer, &Violation::InvalidBlock);
            self.settle(source.peer);
        }
        self.request_blocks();
    }

    /// The stored bytes of a block turned out to be unusable.
    pub fn block_unreadable(&mut self, hash: &BlockHash, now: crate::time::Moment) {
        self.context.now = now;
        self.download.spoiled(None, hash);
        self.request_blocks();
    }

    /// A peer that sent a valid block while no other block is in flight may send the next ones unrequested: Core's
    /// `BlockChecked`.
    pub(super) fn choose_announcers(&mut self, change: &TipChange) {
        if change.is_initial {
            return;
        }
        let hashes: Vec<BlockHash> =
            self.context.chain.with_tree(|tree| change.fresh.iter().map(|id| *tree.hash(*id)).collect());
        for hash in hashes {
            let Some(source) = self.source(&hash) else { continue };
            let is_last = self.context.peers.values().all(|peer| peer.in_flight.iter().all(|other| *other == hash));
            if is_last {
                self.choose_announcer(source.peer);
            }
        }
    }

    /// A peer sent headers: what it announces may be requested from it.
    pub(super) fn take_announced_headers(&mut self, id: PeerId, last: HeaderId) {
        self.download.announced(DownloadPeer(id.0), self.context.now.mockable);
        self.context.with(id, |peer| peer.failed_branch = None);
        self.fetch_directly(id, last);
        self.request_blocks();
    }

    pub(super) fn take_notfound(&mut self, id: PeerId, inventory: &[Inv]) {
        for item in inventory.iter().filter(|item| item.kind.is_gen_block()) {
            let hash = BlockHash(item.hash);
            self.download.failed(DownloadPeer(id.0), &hash);
            self.forget_request(id, &hash);
            self.context.with(id, |peer| peer.failed_branch = peer.best_known);
        }
        self.request_blocks();
    }

    /// Returns the peers that were asked for a block and have not answered, in order of the requests.
    pub(super) fn asked(&self, hash: &BlockHash) -> Vec<PeerId> {
        let on_path = self.download.asked(hash).iter().map(|peer| PeerId(peer.0));
        let aside = self.aside.get(hash).into_iter().flatten().map(|(peer, _)| *peer);
        on_path.chain(aside).collect()
    }

    /// The caller, not the download, requests a block from the peer. The download must know about it, so that it does
    /// not request the block too.
    pub(super) fn note_request(&mut self, id: PeerId, hash: BlockHash) {
        self.download.set_timeout_clock(self.context.now.mockable);
        let at = self.download.request_time(self.context.now.elapsed);
        let Some(peer) = self.context.peers.get_mut(&id).filter(|peer| !peer.is_leaving) else { return };
        if !peer.in_flight.insert(hash) {
            return;
        }
        peer.is_asked = true;
        peer.memory.set_asked(true);
        let limits = limits_of(peer);
        self.download.add_peer(DownloadPeer(id.0), limits, at.sent);
        if !self.download.note_request(DownloadPeer(id.0), &hash, at) {
            self.aside.entry(hash).or_default().push((id, at));
        }
    }

    /// The peer has answered or will not answer: Core's `RemoveBlockRequest`.
    pub(super) fn forget_request(&mut self, id: PeerId, hash: &BlockHash) {
        self.context.with(id, |peer| {
            peer.in_flight.remove(hash);
            peer.partials.remove(hash);
        });
        self.download.forget_request(DownloadPeer(id.0), hash);
        let Some(asked) = self.aside.get_mut(hash) else { return };
        let was_asked = asked.extract_if(.., |(peer, _)| *peer == id).count() > 0;
        if asked.is_empty() {
            self.aside.remove(hash);
        }
        // The time for the next block starts: Core's `m_downloading_since`.
        let now = self.context.now.mockable;
        let others = self.aside.values_mut().flatten().filter(|(peer, _)| was_asked && *peer == id);
        others.for_each(|(_, at)| at.asked = now);
    }

    pub(super) fn is_requested(&self, hash: &BlockHash) -> bool {
        !self.asked(hash).is_empty()
    }

    /// Returns whether the block was requested, or was received and is about to be stored.
    pub(super) fn is_coming(&self, hash: &BlockHash) -> bool {
        self.is_requested(hash) || self.pending.contains_key(hash)
    }

    pub(super) fn forget_downloads(&mut self, id: PeerId) {
        self.download.remove_peer(DownloadPeer(id.0));
        self.aside.retain(|_, asked| {
            asked.retain(|(peer, _)| *peer != id);
            !asked.is_empty()
        });
    }

    /// Requests the blocks up to the last header that a peer just announced from it, whatever services it offers, if
    /// that chain has as much work as ours: Core's `HeadersDirectFetchBlocks`. Those on the path then belong to the
    /// download and must fit into its window.
    pub(super) fn fetch_directly(&mut self, id: PeerId, last: HeaderId) {
        let may_ask = |peer: &PeerState| peer.is_ready() && peer.serves_witnesses() && peer.memory.has_block_room();
        if !self.context.peers.get(&id).is_some_and(may_ask) || !self.context.can_fetch_directly() {
            return;
        }
        let Some(missing) = self.missing_of_branch(last) else {
            let place = self.context.place(last);
            let (hash, height) = (place.hash, place.height);
            return self.context.log_debug(format!("Large reorg, won't direct fetch to {hash} ({height})"));
        };
        if missing.is_empty() {
            return;
        }
        self.plan_downloads();
        let mut blocks = Vec::new();
        for hash in missing {
            let has_room =
                self.context.peers.get(&id).is_some_and(|peer| peer.in_flight.len() < COMPACT_BLOCKS_PER_PEER_MAX);
            if has_room && self.download.may_request(&hash) {
                self.note_request(id, hash);
                blocks.push(hash);
            }
        }
        if !blocks.is_empty() {
            let place = self.context.place(last);
            self.send_request(id, &blocks);
            let (hash, height) = (place.hash, place.height);
            self.context.log_debug(format!("Downloading blocks toward {hash} ({height}) via headers direct fetch"));
        }
    }

    /// Returns the blocks from our chain to `last` that are neither here nor requested, lowest first; none if the
    /// branch has less work than our chain. Returns `None` if there are too many.
    fn missing_of_branch(&self, last: HeaderId) -> Option<Vec<BlockHash>> {
        let tip = self.context.tip();
        self.context.chain.with_tree(|tree| {
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

    /// Disconnects a peer that does not send a block requested outside the path within ten minutes, like for blocks on
    /// the path.
    pub(super) fn check_requests_aside(&mut self) {
        let now = self.context.now.mockable;
        let is_late = |at: &RequestTime| now.saturating_sub(at.asked) > BLOCK_TIMEOUT;
        let late = self
            .aside
            .iter()
            .find_map(|(hash, asked)| asked.iter().find(|(_, asked)| is_late(asked)).map(|(peer, _)| (*hash, *peer)));
        if let Some((hash, peer)) = late {
            self.forget_request(peer, &hash);
            self.leave_at(peer, LogLevel::Info, format!("Timeout downloading block {hash}"));
        }
    }

    /// Updates the download and sends its requests.
    pub(super) fn request_blocks(&mut self) {
        self.charge_peers();
        if self.context.is_loading() {
            // Blocks on disk need not be fetched.
            return;
        }
        self.plan_downloads();
        self.carry_out_requests();
        if self.introduce_reserves() {
            self.carry_out_requests();
        }
        self.fetch_branches();
    }

    /// Updates the download: the wanted blocks, the peers that have them, the open requests.
    pub(super) fn plan_downloads(&mut self) {
        self.follow_best_chain();
        self.introduce_peers();
        self.adopt_requests();
    }

    fn carry_out_requests(&mut self) {
        self.download.set_timeout_clock(self.context.now.mockable);
        for action in self.download.poll(self.context.now.elapsed) {
            match action {
                DownloadAction::Request { peer, blocks } => self.request(PeerId(peer.0), &blocks),
                DownloadAction::Cancel { peer, block } => self.context.with(PeerId(peer.0), |peer| {
                    peer.in_flight.remove(&block);
                    peer.partials.remove(&block);
                }),
                DownloadAction::Disconnect { peer } => {
                    self.leave_at(PeerId(peer.0), LogLevel::Info, "Peer is stalling block download".to_owned());
                }
            }
        }
    }

    fn request(&mut self, id: PeerId, blocks: &[BlockHash]) {
        self.context.with(id, |peer| {
            peer.in_flight.extend(blocks);
            peer.is_asked = true;
            peer.memory.set_asked(true);
        });
        self.send_request(id, blocks);
    }

    pub(super) fn send_request(&mut self, id: PeerId, blocks: &[BlockHash]) {
        let kind = if self.wants_compact(id, blocks) { InvType::CMPCT_BLOCK } else { InvType::WITNESS_BLOCK };
        let inventory: Vec<_> = blocks.iter().map(|hash| Inv::block(kind, *hash)).collect();
        for hash in blocks {
            self.context.debug(|context| {
                let height = context.chain.with_tree(|tree| tree.find(hash).map_or(0, |found| tree.height(found).0));
                format!("Requesting block {hash} ({height}) peer={id}")
            });
        }
        self.context.send(id, Message::GetData(inventory));
    }

    /// Returns whether a new block at the tip is requested as a compact block, if no other block is in flight: see
    /// Core's `HeadersDirectFetchBlocks`.
    fn wants_compact(&self, id: PeerId, blocks: &[BlockHash]) -> bool {
        let [hash] = blocks else { return false };
        let provides = self.context.peers.get(&id).is_some_and(|peer| peer.talk.provides_compact_blocks);
        let on_their_way: usize = self.context.peers.values().map(|peer| peer.in_flight.len()).sum();
        !self.context.settings.blocks_only
            && provides
            && on_their_way == 1
            && self.context.can_fetch_directly()
            && self.context.chain.with_tree(|tree| {
                let parent = tree.find(hash).and_then(|found| tree.parent(found));
                parent.is_some_and(|parent| tree.is_active(parent) || tree.node(parent).is_verified)
            })
    }

    /// Updates the path of wanted blocks: it leads to the header with the most work that can be downloaded, if that has
    /// enough work.
    pub(super) fn follow_best_chain(&mut self) {
        let minimum = self.context.settings.minimum_chain_work;
        let best = self.target();
        let (engine, now, end) = (self.context.chain.clone(), self.context.now.elapsed, self.path_end);
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

    /// Requests outside the path may be on it now.
    fn adopt_requests(&mut self) {
        if self.aside.is_empty() {
            return;
        }
        let download = &mut self.download;
        self.aside.retain(|hash, asked| {
            asked.retain(|(peer, at)| !download.note_request(DownloadPeer(peer.0), hash, *at));
            !asked.is_empty()
        });
    }

    /// Adds the peers that may be asked to the download, with the blocks that they have.
    pub(super) fn introduce_peers(&mut self) {
        let has_preferred = self.context.peers.values().any(|peer| peer.is_ready() && peer.is_preferred());
        let is_initial = self.context.is_initial_download();
        let ids: Vec<_> = self.context.peers.values().filter(|peer| peer.is_ready()).map(|peer| peer.id).collect();
        let with_room = self.peers_with_room();
        for id in ids {
            self.context.look_up_unknown(id);
            let Some(peer) = self.context.peers.get(&id) else { continue };
            let may_follow = !has_preferred && peer.kind() != ConnectionKind::AddrFetch;
            if peer.serves_all() && (peer.is_preferred() || may_follow || !is_initial) {
                self.introduce(id, with_room.contains(&id));
            }
        }
    }

    /// During the initial download, peers that are not preferred are asked only while no block from a preferred one is
    /// in flight: Core's `sync_blocks_and_headers_from_peer`. Returns whether any of them may be asked now. Call this
    /// after the others were asked for what they have.
    fn introduce_reserves(&mut self) -> bool {
        let ready = || self.context.peers.values().filter(|peer| peer.is_ready());
        let preferred: Vec<_> = ready().filter(|peer| peer.is_preferred()).map(|peer| peer.id).collect();
        if preferred.is_empty() || !self.context.is_initial_download() {
            return false;
        }
        let is_reserve =
            |peer: &&PeerState| peer.serves_all() && !peer.is_preferred() && peer.kind() != ConnectionKind::AddrFetch;
        let reserves: Vec<_> = ready().filter(is_reserve).map(|peer| peer.id).collect();
        let now = self.context.now.elapsed;
        let is_wanted = !preferred.iter().any(|id| self.download.is_sending(DownloadPeer(id.0), now));
        let with_room = self.peers_with_room();
        for id in &reserves {
            match is_wanted {
                true => self.introduce(*id, with_room.contains(id)),
                false => self.download.set_peer_chain(DownloadPeer(id.0), PeerChain::default()),
            }
        }
        is_wanted && !reserves.is_empty()
    }

    /// Adds the peer to the download with the blocks that it has. `has_room`: the shared memory has room for another
    /// block from it.
    fn introduce(&mut self, id: PeerId, has_room: bool) {
        let Some(peer) = self.context.peers.get(&id) else { return };
        let (Some(best), limits) = (peer.best_known, limits_of(peer)) else { return };
        self.download.add_peer(DownloadPeer(id.0), limits, self.context.now.elapsed);
        self.download.set_room(DownloadPeer(id.0), has_room);
        let chain = self.context.chain.with_tree(|tree| PeerChain::of(tree, best, self.path_end));
        self.download.set_peer_chain(DownloadPeer(id.0), chain);
    }

    /// Blocks with a known verdict need no source any more.
    pub(super) fn forget_sources(&mut self) {
        let engine = self.context.chain.clone();
        engine.with_tree(|tree| {
            self.sources.retain(|hash, _| tree.find(hash).is_none_or(|id| !tree.is_active(id)));
        });
        for peer in self.context.peers.values_mut() {
            engine.with_tree(|tree| {
                peer.in_flight.retain(|hash| tree.find(hash).is_some_and(|id| tree.node(id).block.is_none()));
            });
        }
    }
}

fn limits_of(peer: &PeerState) -> PeerLimits {
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
