//! Blocks: those requested from peers and received from them, what happened to them, and those sent to peers.
//!
//! Input: messages, verdicts of the engine, the chains of peers, the time. Output: requests, blocks for the engine,
//! violations. [`crate::download`] selects the peers to request blocks from.
//!
//! Invariant: this part is the only owner of block requests: of the download, of those aside from its path
//! (`requests`), of what is in flight from each peer (`state`), and of blocks that wait for a verdict.

mod branches;
mod compact;
mod fetch;
mod memory;
mod requests;
mod serve;
mod state;
mod target;
mod upload;
mod window;

pub(super) use state::PeerBlocks;

use super::context::Context;
use super::headers::{Headers, TipChange};
use super::{Action, ManagerSettings, PeerId, StoreOutcome, Violation};
use crate::download::{Arrival, Download, DownloadSettings, RequestTime};
use crate::headers::anti_dos_work;
use crate::limits::REQUESTS_PER_BLOCK_MAX;
use lydian_chain::HeaderId;
use lydian_consensus::U256;
use lydian_consensus::pow::block_proof;
use lydian_primitives::{BlockHash, HEADER_SIZE, HashedHeader, Header, Height};
use lydian_wire::Inv;
use std::collections::{BTreeMap, HashMap};
use upload::Upload;

/// How far above the tip an unrequested block may be: Core's `MIN_BLOCKS_TO_KEEP`.
const UNREQUESTED_HEIGHT_MAX: u32 = 288;

/// The sender of a block, and how it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Source {
    peer: PeerId,
    /// As a compact block, which its sender may have relayed before validating it.
    is_compact: bool,
    /// Validation found the block invalid before the engine reported it as stored.
    has_verdict: bool,
}

/// All blocks that are requested, received or served.
#[derive(Debug)]
pub(super) struct Blocks {
    download: Download,
    /// Peers that were asked for blocks outside the path of the download, and when.
    aside: BTreeMap<BlockHash, Vec<(PeerId, RequestTime)>>,
    /// The senders of blocks that were passed to the engine and not yet reported as stored or refused, in order of
    /// their deliveries.
    pending: HashMap<BlockHash, Vec<Source>>,
    /// The senders of blocks that are stored and not yet validated: Core's `mapBlockSource`.
    sources: HashMap<BlockHash, Source>,
    /// Peers that may send compact blocks unrequested, the latest last: Core's `lNodesAnnouncingHeaderAndIDs`.
    announcers: Vec<PeerId>,
    /// The last block of the path that was passed to the download.
    path_end: HeaderId,
    /// Blocks with known headers that no peer delivers.
    withheld: target::Withheld,
    upload: Upload,
}

impl Blocks {
    /// Starts at a tip of this height.
    pub(super) fn new(settings: &ManagerSettings, tip: HeaderId, height: Height) -> Blocks {
        let download = DownloadSettings { window_bytes: settings.download_bytes };
        Blocks {
            download: Download::new(download, height),
            aside: BTreeMap::new(),
            pending: HashMap::new(),
            sources: HashMap::new(),
            announcers: Vec::new(),
            path_end: tip,
            withheld: target::Withheld::default(),
            upload: Upload::new(settings.connect.upload_target),
        }
    }

    pub(super) fn download(&self) -> &Download {
        &self.download
    }

    /// Returns the number of blocks with a remembered sender.
    pub(super) fn sources(&self) -> usize {
        self.sources.len()
    }

    pub(super) fn upload(&self) -> &Upload {
        &self.upload
    }

    pub(super) fn upload_mut(&mut self) -> &mut Upload {
        &mut self.upload
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, context: &mut Context) {
        Self::charge_peers(context);
        self.check_requests_aside(context);
        self.upload.note(context);
    }

    /// A part of a block was received.
    pub(super) fn note_progress(&mut self, context: &Context, id: PeerId, bytes: u64) {
        if context.peers.get(&id).is_some_and(|peer| !peer.blocks.is_idle()) {
            self.download.progress(id, bytes, context.now.elapsed);
        }
    }

    /// A block was received. Core's `ProcessMessage`, `ProcessBlock` and the first part of `AcceptBlock`.
    pub(super) fn take_block(&mut self, context: &mut Context, id: PeerId, bytes: Vec<u8>) {
        let Some(header) = bytes.first_chunk::<HEADER_SIZE>().map(Header::parse) else { return };
        let (hash, size) = (header.hash(), bytes.len());
        context.log_debug(format!("received block {hash} peer={id}"));
        // The same block may arrive twice before the first was checked, and the first may be something else.
        let is_requested = !self.asked(&hash).is_empty() || self.pending.contains_key(&hash);
        if is_requested || self.is_welcome(context, id, &header, &hash, &bytes) {
            self.deliver(context, id, hash, bytes, false);
        } else {
            let size = u32::try_from(size).unwrap_or(u32::MAX);
            self.download.unneeded(id, &hash, size, context.now.elapsed);
        }
        context.with(id, |peer| {
            peer.blocks.in_flight.remove(&hash);
        });
        self.request_blocks(context);
    }

    /// Passes a block on to be stored, once, or again as long as it is not verified that the first bytes were right.
    pub(super) fn deliver(
        &mut self,
        context: &mut Context,
        id: PeerId,
        hash: BlockHash,
        bytes: Vec<u8>,
        is_compact: bool,
    ) {
        let size = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let arrival = self.download.arrived(id, &hash, size, context.now.elapsed);
        self.forget_request(context, id, &hash);
        let source = Source { peer: id, is_compact, has_verdict: false };
        let pending = self.pending.entry(hash).or_default();
        if arrival == Arrival::Duplicate && pending.is_empty() || pending.len() >= REQUESTS_PER_BLOCK_MAX {
            if pending.is_empty() {
                self.pending.remove(&hash);
            }
            return;
        }
        pending.push(source);
        context.actions.push(Action::Store { from: id, hash, bytes });
    }

    /// Returns whether an unrequested block is worth storing: its chain has as much work as ours and enough to rule out
    /// an attack, and is not far above our tip. A peer that sends a mutated block or an invalid header is punished as
    /// for a requested block.
    fn is_welcome(
        &mut self,
        context: &mut Context,
        id: PeerId,
        header: &Header,
        hash: &BlockHash,
        bytes: &[u8],
    ) -> bool {
        let minimum = context.settings.minimum_chain_work;
        if context.chain.with_tree(|tree| tree.find(hash).is_some_and(|id| tree.parent(id).is_none())) {
            // The genesis block has no parent and is already here; Core ignores it.
            return false;
        }
        let found = context.chain.with_tree(|tree| {
            let parent = tree.node(tree.find(&header.prev_block)?);
            let work = parent.chain_work.checked_add(block_proof(header.bits)).unwrap_or(U256::ZERO);
            let is_known = tree.find(hash).is_some();
            Some((parent.height, work, is_known, is_known || work >= anti_dos_work(tree, minimum)))
        });
        let Some((parent_height, work, is_known, is_enough)) = found else {
            // Core punishes it whatever else is wrong with it. So it is not kept until its parent is known.
            if Self::is_the_block(context, bytes).is_some() {
                context.misbehaving(id, &Violation::InvalidBlock);
            }
            return false;
        };
        match Self::is_the_block(context, bytes) {
            Some(true) => {}
            Some(false) => {
                context.log_debug(format!("Received mutated block from peer={id}"));
                context.misbehaving(id, &Violation::MutatedBlock);
                return false;
            }
            None => return false,
        }
        if !is_known && is_enough {
            let unix = context.unix();
            match context.chain.accept_headers(&HashedHeader::many(std::slice::from_ref(header)), unix) {
                Ok(accepted) => {
                    if let Some((hash, rejected)) = accepted.refused {
                        Headers::punish_header(context, id, &hash, &rejected, false);
                        return false;
                    }
                }
                Err(error) => context.log_info(format!("Headers could not be stored: {error}")),
            }
        }
        let tip = context.tip();
        let was_here = context.chain.with_tree(|tree| {
            let node = tree.find(hash).map(|found| tree.node(found));
            node.is_some_and(|node| node.block.is_some() || node.is_verified)
        });
        let is_near = parent_height.0 < tip.height.0.saturating_add(UNREQUESTED_HEIGHT_MAX);
        is_enough && !was_here && work >= tip.work && is_near && work >= minimum
    }

    /// The engine reported the result of storing a block. Core's `MaybePunishNodeForBlock`.
    pub(super) fn take_outcome(
        &mut self,
        context: &mut Context,
        from: PeerId,
        hash: &BlockHash,
        outcome: &StoreOutcome,
    ) {
        let (source, is_last) = self.take_pending(from, hash);
        match outcome {
            StoreOutcome::Stored | StoreOutcome::Known => self.settle_block(context, source, hash, outcome),
            StoreOutcome::Invalid { is_mutated, .. } => {
                if *is_mutated && !source.is_compact {
                    context.log_debug(format!("Received mutated block from peer={from}"));
                    context.misbehaving(from, &Violation::MutatedBlock);
                } else if !source.is_compact {
                    context.misbehaving(from, &Violation::InvalidBlock);
                }
            }
            StoreOutcome::KnownInvalid { .. } => {
                // An inbound peer may follow rules that were valid once.
                let is_outbound = context.peers.get(&from).is_some_and(|peer| !peer.kind().is_inbound());
                if is_outbound && !source.is_compact {
                    context.misbehaving(from, &Violation::InvalidBlock);
                }
            }
            StoreOutcome::Malformed { reason } => {
                context.log_debug(format!(
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
                context.with(from, |peer| peer.blocks.failed_branch = peer.best_known);
            }
            self.download.spoiled(is_bad.then_some(from), hash);
        }
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
    fn settle_block(&mut self, context: &mut Context, source: Source, hash: &BlockHash, outcome: &StoreOutcome) {
        self.download.stored(hash);
        for (peer, _) in self.aside.remove(hash).unwrap_or_default() {
            self.forget_request(context, peer, hash);
        }
        if *outcome == StoreOutcome::Stored {
            let unix = context.now.unix;
            context.with(source.peer, |peer| peer.blocks.last_block_time = unix);
            if !source.has_verdict {
                self.sources.insert(*hash, source);
            }
        }
    }

    /// Returns the sender of a block without a verdict, as `take_source` does.
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
    /// Returns its sender if that must be punished.
    pub(super) fn take_invalid(&mut self, context: &mut Context, hash: &BlockHash) -> Option<PeerId> {
        let source = self.take_source(hash).filter(|source| !source.is_compact)?;
        context.misbehaving(source.peer, &Violation::InvalidBlock);
        Some(source.peer)
    }

    /// The stored bytes of a block turned out to be unusable.
    pub(super) fn take_unreadable(&mut self, hash: &BlockHash) {
        self.download.spoiled(None, hash);
    }

    /// A peer that sent a valid block while no other block is in flight may send the next ones unrequested: Core's
    /// `BlockChecked`.
    pub(super) fn choose_announcers(&mut self, context: &mut Context, change: &TipChange) {
        if change.is_initial {
            return;
        }
        let hashes: Vec<BlockHash> =
            context.chain.with_tree(|tree| change.fresh.iter().map(|id| *tree.hash(*id)).collect());
        for hash in hashes {
            let Some(source) = self.source(&hash) else { continue };
            let is_last = context.peers.values().all(|peer| peer.blocks.in_flight.iter().all(|other| *other == hash));
            if is_last {
                self.choose_announcer(context, source.peer);
            }
        }
    }

    /// A peer sent headers: what it announces may be requested from it.
    pub(super) fn take_announced_headers(&mut self, context: &mut Context, id: PeerId, last: HeaderId) {
        self.download.announced(id, context.now.mockable);
        context.with(id, |peer| peer.blocks.failed_branch = None);
        self.fetch_directly(context, id, last);
        self.request_blocks(context);
    }

    pub(super) fn take_notfound(&mut self, context: &mut Context, id: PeerId, inventory: &[Inv]) {
        for item in inventory.iter().filter(|item| item.kind.is_gen_block()) {
            let hash = BlockHash(item.hash);
            self.download.failed(id, &hash);
            self.forget_request(context, id, &hash);
            context.with(id, |peer| peer.blocks.failed_branch = peer.best_known);
        }
        self.request_blocks(context);
    }

    /// Blocks with a known verdict need no source any more.
    pub(super) fn forget_sources(&mut self, context: &mut Context) {
        let engine = context.chain.clone();
        engine.with_tree(|tree| {
            self.sources.retain(|hash, _| tree.find(hash).is_none_or(|id| !tree.is_active(id)));
        });
        for peer in context.peers.values_mut() {
            engine.with_tree(|tree| {
                peer.blocks.in_flight.retain(|hash| tree.find(hash).is_some_and(|id| tree.node(id).block.is_none()));
            });
        }
    }
}
