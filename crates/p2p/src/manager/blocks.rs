//! Blocks: those requested from peers and received from them, what happened to them, and those sent to peers.
//!
//! Input: messages, verdicts of the engine, the chains of peers, the time. Output: requests, blocks to be looked into
//! and stored, violations. [`crate::download`] selects the peers to request blocks from.
//!
//! Invariant: this part is the only owner of block requests: of the download, of those aside from its path
//! (`requests`), of those for readers (`orders`), of what is in flight from each peer (`state`), and of blocks that
//! wait for a verdict. Of a received
//! block, only the header is read; what depends on its transactions waits for the result of [`Action::Store`]. Cost: a
//! look at the header tree per message.

mod branches;
mod compact;
mod fetch;
mod memory;
mod orders;
mod requests;
mod serve;
mod state;
mod target;
mod upload;
mod window;

pub(super) use state::PeerBlocks;

use super::context::Context;
use super::headers::{Headers, TipChange};
use super::{Action, Intake, ManagerSettings, PeerId, ReceivedBlock, StoreOutcome, Violation};
use crate::SentBlock;
use crate::download::{Arrival, Download, DownloadSettings, RequestTime};
use crate::headers::anti_dos_work;
use crate::limits::{REQUESTS_PER_BLOCK_MAX, UNREQUESTED_BLOCKS_MAX};
use lydian_chain::HeaderId;
use lydian_consensus::U256;
use lydian_consensus::pow::block_proof;
use lydian_primitives::{BlockHash, HEADER_SIZE, HashedHeader, Header, Height};
use lydian_wire::Inv;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use upload::Upload;

/// How far above the tip an unrequested block may be: Core's `MIN_BLOCKS_TO_KEEP`.
const UNREQUESTED_HEIGHT_MAX: u32 = 288;

/// The sender of a block, and how it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Source {
    peer: PeerId,
    intake: Intake,
    size: u32,
    /// The transactions that were missing in a compact block.
    missing: Option<u32>,
    /// From the request to the last byte.
    download: Option<Duration>,
    /// Validation found the block invalid before the engine reported it as stored.
    has_verdict: bool,
}

impl Source {
    /// Sent as a compact block, which its sender may have relayed before validating it.
    fn is_compact(&self) -> bool {
        self.intake == Intake::Compact
    }
}

/// The place of an unrequested block in the header tree.
#[derive(Clone, Copy, Debug)]
struct Branch {
    parent_height: Height,
    /// The work of the chain that ends with the block.
    work: U256,
    /// Its header is in the tree.
    is_known: bool,
    /// The block is here or was.
    was_here: bool,
    /// The work rules out that the header costs us more than its sender.
    is_enough: bool,
}

impl Branch {
    /// Returns `None` if the parent is unknown.
    fn of(context: &Context, header: &Header, hash: &BlockHash) -> Option<Branch> {
        let minimum = context.settings.minimum_chain_work;
        context.chain.with_tree(|tree| {
            let parent = tree.node(tree.find(&header.prev_block)?);
            let work = parent.chain_work.checked_add(block_proof(header.bits)).unwrap_or(U256::ZERO);
            let node = tree.find(hash).map(|found| tree.node(found));
            let was_here = node.is_some_and(|node| node.block.is_some() || node.is_verified);
            let is_enough = node.is_some() || work >= anti_dos_work(tree, minimum);
            Some(Branch { parent_height: parent.height, work, is_known: node.is_some(), was_here, is_enough })
        })
    }
}

/// All blocks that are requested, received or served.
#[derive(Debug)]
pub(super) struct Blocks {
    download: Download,
    /// Peers that were asked for blocks outside the path of the download, and when.
    aside: BTreeMap<BlockHash, Vec<(PeerId, RequestTime)>>,
    /// Deleted blocks that readers of this node wait for.
    orders: orders::Orders,
    /// The senders of blocks that were passed on and not yet reported as stored or refused, in order of their
    /// deliveries.
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
            orders: orders::Orders::default(),
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

    /// Returns the number of received blocks that wait for their result.
    pub(super) fn pending(&self) -> usize {
        self.pending.values().map(Vec::len).sum()
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
        self.check_orders(context);
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
        if self.is_ordered_from(id, &hash) {
            return self.take_ordered(context, id, hash, bytes);
        }
        match self.intake(context, &header, &hash) {
            Some(Intake::Requested) => self.deliver(context, id, hash, bytes),
            intake => {
                if intake != Some(Intake::Unrequested) {
                    context.sent_blocks.add_copy(&hash);
                    let size = u32::try_from(size).unwrap_or(u32::MAX);
                    self.download.unneeded(id, &hash, size, context.now.elapsed);
                }
                if let Some(intake) = intake {
                    self.pass_on(context, (id, hash, None), ReceivedBlock::Whole(bytes), size, intake);
                }
            }
        }
        context.with(id, |peer| {
            peer.blocks.in_flight.remove(&hash);
        });
        self.request_blocks(context);
    }

    /// Returns what to do with a block with this header; `None` if nothing.
    fn intake(&self, context: &Context, header: &Header, hash: &BlockHash) -> Option<Intake> {
        // The same block may arrive twice before the first was checked, and the first may be something else.
        if !self.asked(hash).is_empty() || self.is_pending(hash) {
            return Some(Intake::Requested);
        }
        if context.chain.with_tree(|tree| tree.find(hash).is_some_and(|id| tree.parent(id).is_none())) {
            // The genesis block has no parent and is already here; Core ignores it.
            return None;
        }
        let unrequested = |source: &&Source| matches!(source.intake, Intake::Unrequested | Intake::Unneeded);
        if self.pending.values().flatten().filter(unrequested).count() >= UNREQUESTED_BLOCKS_MAX {
            return None;
        }
        Some(if Self::is_welcome(context, header, hash) { Intake::Unrequested } else { Intake::Unneeded })
    }

    /// Passes a requested block on to be stored, once, or again as long as it is not verified that the first bytes were
    /// right. It counts as received until they turn out to be wrong.
    fn deliver(&mut self, context: &mut Context, id: PeerId, hash: BlockHash, bytes: Vec<u8>) {
        let (size, download) = (bytes.len(), self.waited(context, id, &hash));
        let arrival = self.download.arrived(id, &hash, u32::try_from(size).unwrap_or(u32::MAX), context.now.elapsed);
        self.forget_request(context, id, &hash);
        let waiting = self.pending_requested(&hash);
        if arrival == Arrival::Duplicate && waiting == 0 || waiting >= REQUESTS_PER_BLOCK_MAX {
            return context.sent_blocks.add_copy(&hash);
        }
        self.pass_on(context, (id, hash, download), ReceivedBlock::Whole(bytes), size, Intake::Requested);
    }

    /// Passes a block on to the thread that looks into it.
    fn pass_on(
        &mut self,
        context: &mut Context,
        (id, hash, download): (PeerId, BlockHash, Option<Duration>),
        block: ReceivedBlock,
        size: usize,
        intake: Intake,
    ) {
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        let missing = match &block {
            ReceivedBlock::Whole(_) => None,
            ReceivedBlock::Parts(_, txs) => Some(u32::try_from(txs.len()).unwrap_or(u32::MAX)),
        };
        let source = Source { peer: id, intake, size, missing, download, has_verdict: false };
        self.pending.entry(hash).or_default().push(source);
        let is_next =
            intake != Intake::Unneeded && !context.is_initial_download() && block.parent() == Some(context.tip().hash);
        context.actions.push(Action::Store { from: id, hash, block, intake, is_next });
    }

    /// The number of copies of a requested block that wait to be stored.
    fn pending_requested(&self, hash: &BlockHash) -> usize {
        let sources = self.pending.get(hash).into_iter().flatten();
        sources.filter(|source| source.intake == Intake::Requested).count()
    }

    /// Returns whether the block was received and is about to be stored. A block that may be mutated and that no peer
    /// answers for does not count: it must not keep others from sending it.
    fn is_pending(&self, hash: &BlockHash) -> bool {
        self.pending_requested(hash) > 0
    }

    /// Returns whether an unrequested block is worth storing: its chain has as much work as ours and enough to rule out
    /// an attack, and is not far above our tip.
    fn is_welcome(context: &Context, header: &Header, hash: &BlockHash) -> bool {
        let Some(branch) = Branch::of(context, header, hash) else { return false };
        let tip = context.tip();
        let is_near = branch.parent_height.0 < tip.height.0.saturating_add(UNREQUESTED_HEIGHT_MAX);
        let minimum = context.settings.minimum_chain_work;
        branch.is_enough && !branch.was_here && branch.work >= tip.work && is_near && branch.work >= minimum
    }

    /// An unrequested block that is not needed is what its header commits to. Only the header is processed: the first
    /// part of Core's `AcceptBlock`. A peer that sends an invalid header is punished as for a requested block.
    fn take_unneeded(context: &mut Context, id: PeerId, header: &Header) {
        let Some(branch) = Branch::of(context, header, &header.hash()) else {
            // Core punishes it whatever else is wrong with it. So it is not kept until its parent is known.
            return context.misbehaving(id, &Violation::InvalidBlock);
        };
        if branch.is_known || !branch.is_enough {
            return;
        }
        let unix = context.unix();
        match context.chain.accept_headers(&HashedHeader::many(std::slice::from_ref(header)), unix) {
            Ok(accepted) => {
                if let Some((hash, rejected)) = accepted.refused {
                    Headers::punish_header(context, id, &hash, &rejected, false);
                }
            }
            Err(error) => context.log_info(format!("Headers could not be stored: {error}")),
        }
    }

    /// The result of storing a block. Core's `MaybePunishNodeForBlock`.
    pub(super) fn take_outcome(
        &mut self,
        context: &mut Context,
        from: PeerId,
        hash: &BlockHash,
        intake: Intake,
        outcome: &StoreOutcome,
    ) {
        let source = self.take_pending(from, hash, intake);
        self.log_outcome(context, &source, hash, outcome);
        if intake == Intake::Compact && !self.is_put_together(context, from, hash, outcome) {
            return;
        }
        match (intake, outcome) {
            // Those of readers have a result of their own.
            (Intake::Requested | Intake::Ordered, _) => {}
            // It proves nothing about the block with this hash.
            (_, StoreOutcome::Mutated) => return context.misbehaving(from, &Violation::MutatedBlock),
            (_, StoreOutcome::Unneeded { header }) => return Self::take_unneeded(context, from, header),
            (Intake::Unneeded, _) | (_, StoreOutcome::Malformed { .. }) => return,
            // Now it is the block that it claimed to be, and counts as received.
            (Intake::Unrequested | Intake::Compact, _) => {
                self.download.arrived(from, hash, source.size, context.now.elapsed);
                self.forget_request(context, from, hash);
            }
        }
        match outcome {
            StoreOutcome::Stored | StoreOutcome::Known => self.settle_block(context, source, hash, outcome),
            StoreOutcome::Invalid { is_mutated, .. } if !source.is_compact() => {
                let violation = if *is_mutated { Violation::MutatedBlock } else { Violation::InvalidBlock };
                context.misbehaving(from, &violation);
            }
            StoreOutcome::KnownInvalid { .. } => {
                // An inbound peer may follow rules that were valid once.
                let is_outbound = context.peers.get(&from).is_some_and(|peer| !peer.kind().is_inbound());
                if is_outbound && !source.is_compact() {
                    context.misbehaving(from, &Violation::InvalidBlock);
                }
            }
            _ => {}
        }
        // Even then the header may not be marked as invalid: as in Core, a broken rule of the block alone says nothing
        // about the header.
        let is_useless =
            matches!(outcome, StoreOutcome::Invalid { .. } | StoreOutcome::Malformed { .. } | StoreOutcome::TooEarly);
        if is_useless && !self.is_pending(hash) {
            let is_bad = *outcome != StoreOutcome::TooEarly;
            if is_bad {
                context.with(from, |peer| peer.blocks.failed_branch = peer.best_known);
            }
            self.download.spoiled(is_bad.then_some(from), hash);
        }
    }

    fn log_outcome(&self, context: &mut Context, source: &Source, hash: &BlockHash, outcome: &StoreOutcome) {
        let from = source.peer;
        match outcome {
            StoreOutcome::Mutated | StoreOutcome::Invalid { is_mutated: true, .. } if !source.is_compact() => {
                context.log_debug(format!("Received mutated block from peer={from}"));
            }
            StoreOutcome::Malformed { reason } if !source.is_compact() => context.log_debug(format!(
                "ProcessMessages(block): Exception '{reason}' caught for block {hash} from peer={from}"
            )),
            _ => {}
        }
    }

    /// Removes the delivery that a result is about.
    fn take_pending(&mut self, from: PeerId, hash: &BlockHash, intake: Intake) -> Source {
        let unknown = Source { peer: from, intake, size: 0, missing: None, download: None, has_verdict: false };
        let Some(pending) = self.pending.get_mut(hash) else { return unknown };
        let at = pending.iter().position(|source| source.peer == from && source.intake == intake);
        let source = at.map_or(unknown, |at| pending.remove(at));
        if pending.is_empty() {
            self.pending.remove(hash);
        }
        source
    }

    /// The block is stored; no other peer needs to send it.
    fn settle_block(&mut self, context: &mut Context, source: Source, hash: &BlockHash, outcome: &StoreOutcome) {
        self.download.stored(hash);
        for (peer, _) in self.aside.remove(hash).unwrap_or_default() {
            self.forget_request(context, peer, hash);
        }
        if *outcome == StoreOutcome::Known {
            context.sent_blocks.add_copy(hash);
        }
        if *outcome == StoreOutcome::Stored {
            let unix = context.now.unix;
            context.with(source.peer, |peer| peer.blocks.last_block_time = unix);
            Self::note_sender(context, &source, hash);
            if !source.has_verdict {
                self.sources.insert(*hash, source);
            }
        }
    }

    fn note_sender(context: &Context, source: &Source, hash: &BlockHash) {
        // Peers that left meanwhile are not known any more.
        let Some(peer) = context.peers.get(&source.peer).filter(|_| context.sent_blocks.is_on()) else { return };
        context.sent_blocks.add(SentBlock {
            hash: *hash,
            peer: source.peer,
            name: peer.link.name.clone(),
            user_agent: peer.talk.user_agent.clone(),
            missing: source.missing,
            download: source.download,
            extra: 0,
        });
    }

    /// Returns the sender of a block without a verdict, as `take_source` does.
    pub(super) fn source(&self, hash: &BlockHash) -> Option<Source> {
        let pending = || self.pending.get(hash)?.iter().find(|source| source.intake != Intake::Unneeded);
        self.sources.get(hash).or_else(pending).copied()
    }

    /// Returns the sender of a block whose verdict is known. Validation may finish before the report that the block is
    /// stored: then the verdict is about the first pending delivery.
    fn take_source(&mut self, hash: &BlockHash) -> Option<Source> {
        let mut pending = self.pending.get_mut(hash).into_iter().flatten();
        let pending = pending.find(|source| source.intake != Intake::Unneeded);
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
        let source = self.take_source(hash).filter(|source| !source.is_compact())?;
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
            if self.is_ordered_from(id, &hash) {
                self.take_order_notfound(context, id, &hash);
                continue;
            }
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
