//! Compact blocks from peers (BIP-0152): which peers may send them unrequested, their reconstruction, requests for
//! missing transactions.
//!
//! Bitcoin Core's `cmpctblock` and `blocktxn`: a block is reconstructed from the transactions in the message, those in
//! the mempool, those kept besides it, and those requested from its sender.
//!
//! Invariants: at most [`REQUESTS_PER_BLOCK_MAX`] peers are asked for a block, and the last request is reserved for
//! outbound peers until one of them was asked; messages of one peer change nothing for others until the block is
//! stored; a block whose transactions do not match its header is fetched whole, without punishment; the sender of a
//! compact block is not punished for an invalid block, because it may relay the block before validation. Here only the
//! places of the transactions are assigned; another thread puts the block together and compares it with its header, and
//! until its result arrives, the request to the sender stays open. Cost: sorting the short ids and copying the
//! transactions of the message, only near the tip.

use super::Blocks;
use crate::headers::anti_dos_work;
use crate::limits::{COMPACT_BLOCKS_PER_PEER_MAX, HIGH_BANDWIDTH_PEERS_MAX, REQUESTS_PER_BLOCK_MAX};
use crate::manager::context::Context;
use crate::manager::event::Event;
use crate::manager::headers::Headers;
use crate::manager::{Intake, PeerId, ReceivedBlock, StoreOutcome, Violation};
use crate::memory::Charge;
use lydian_consensus::pow::block_proof;
use lydian_primitives::{BlockHash, HashedHeader, Height};
use lydian_wire::message::{CMPCTBLOCKS_VERSION, SendCmpct};
use lydian_wire::{BlockTransactions, CompactBlock, CompactError, Inv, InvType, Message, PartialBlock};

/// How far above the tip a compact block may be; for a higher one, only its header is processed.
const COMPACT_HEIGHT_MAX: u32 = 2;

/// A compact block that a peer sent.
#[derive(Debug)]
pub(in crate::manager) enum Partial {
    /// Its sender was asked for the missing transactions. It is charged to the sender's memory.
    Waiting(PartialBlock, Charge),
    /// All transactions are here, and the block is being put together. `is_repeated`: its sender sent transactions
    /// again, which is a violation only if they do not make the block.
    Checking { is_repeated: bool },
    /// The reconstruction failed: another compact block with this hash is not accepted from this peer.
    Failed,
}

/// The state of a block when its compact form arrives.
#[derive(Clone, Copy, Debug)]
struct Standing {
    hash: BlockHash,
    height: Height,
    /// `asked`: the number of peers asked for it. `is_first`: this peer is the first of them, or none was asked.
    /// `is_asked`: this peer is one of them.
    asked: usize,
    is_first: bool,
    is_asked: bool,
}

impl Blocks {
    /// Core's processing of `cmpctblock`.
    pub(in crate::manager) fn take_compact(&mut self, context: &mut Context, id: PeerId, compact: &CompactBlock) {
        let Some(peer) = context.peers.get(&id) else { return };
        if context.settings.blocks_only {
            return context.log_debug(format!("peer={id} sent us a compact block even though we are blocksonly!"));
        }
        if !peer.talk.provides_compact_blocks {
            return context
                .log_debug(format!("peer={id} sent us a compact block despite never having sent us a SENDCMPCT!"));
        }
        let Some(standing) = self.take_compact_header(context, id, compact) else { return };
        context.look_up_unknown(id);
        let Standing { hash, height, .. } = standing;
        let tip = context.tip();
        let (work, was_here, is_here) = context.chain.with_tree(|tree| {
            let node = tree.find(&hash).map(|found| tree.node(found));
            node.map_or((tip.work, false, true), |node| (node.chain_work, node.is_verified, node.block.is_some()))
        });
        let is_announcer = context.peers.get(&id).is_some_and(|peer| peer.talk.high_bandwidth_to);
        // A block passed to the engine counts as here until the engine says otherwise. Then it is requested again,
        // because this message is not kept.
        if is_here || self.is_pending(&hash) {
            context.sent_blocks.add_copy(&hash);
            return self.forget_request(context, id, &hash);
        }
        if !standing.is_asked && !is_announcer {
            return context
                .log_debug(format!("peer={id}, not marked as high-bandwidth, sent us an unsolicited compact block!"));
        }
        if work <= tip.work || was_here {
            if standing.is_asked {
                Self::request_whole(context, id, hash);
            }
            return;
        }
        if standing.asked == 0 && !context.can_fetch_directly() {
            return;
        }
        if height.0 <= tip.height.0.saturating_add(COMPACT_HEIGHT_MAX) {
            self.begin_compact(context, id, compact, standing, is_announcer);
        } else if standing.is_asked {
            Self::request_whole(context, id, hash);
        } else {
            let header = compact.header;
            context.events.push_back(Event::HeaderOfCompact { id, header });
        }
    }

    /// Inserts the header. Returns `None` if nothing more can be done with the block.
    fn take_compact_header(&mut self, context: &mut Context, id: PeerId, compact: &CompactBlock) -> Option<Standing> {
        let (header, minimum) = (compact.header, context.settings.minimum_chain_work);
        let hashed = HashedHeader::many(&[header]);
        let hash = hashed.first()?.hash();
        let found = context.chain.with_tree(|tree| {
            let parent = tree.find(&header.prev_block)?;
            let work = tree.node(parent).chain_work.checked_add(block_proof(header.bits));
            let is_enough = work.is_some_and(|work| work >= anti_dos_work(tree, minimum));
            Some((tree.height(parent).0 + 1, is_enough, tree.find(&hash).is_none()))
        });
        let Some((height, is_enough, is_new)) = found else {
            if !context.is_initial_download() {
                let best = context.best_header().id;
                Headers::ask_for_headers(context, id, best);
            }
            return None;
        };
        if !is_enough {
            context.log_debug(format!("Ignoring low-work compact block from peer {id}"));
            return None;
        }
        let unix = context.unix();
        match context.chain.accept_headers(&hashed, unix) {
            Ok(accepted) => {
                if let Some((hash, rejected)) = accepted.refused {
                    Headers::punish_header(context, id, &hash, &rejected, true);
                    return None;
                }
            }
            Err(error) => {
                context.log_info(format!("Headers could not be stored: {error}"));
                return None;
            }
        }
        if is_new {
            Headers::log_new_header(context, id, &hash, Height(height), true);
        }
        context.note_block(id, &hash);
        let (tip, unix) = (context.tip(), context.now.unix);
        let has_more =
            context.chain.with_tree(|tree| tree.find(&hash).map(|id| tree.node(id).chain_work)) > Some(tip.work);
        if is_new && has_more {
            context.with(id, |peer| peer.last_block_announcement = unix);
        }
        self.plan_downloads(context);
        let asked = self.asked(&hash);
        let is_first = asked.first().is_none_or(|first| *first == id);
        Some(Standing { hash, height: Height(height), asked: asked.len(), is_first, is_asked: asked.contains(&id) })
    }

    /// Starts the reconstruction, and requests the missing transactions if it is this peer's turn.
    fn begin_compact(
        &mut self,
        context: &mut Context,
        id: PeerId,
        compact: &CompactBlock,
        standing: Standing,
        is_announcer: bool,
    ) {
        let Standing { hash, asked, is_first, is_asked, .. } = standing;
        let Some(peer) = context.peers.get(&id) else { return };
        let has_room = asked < REQUESTS_PER_BLOCK_MAX
            && peer.blocks.in_flight.len() < COMPACT_BLOCKS_PER_PEER_MAX
            && peer.memory.has_block_room();
        if !has_room && !is_asked {
            return self.try_compact(context, id, hash, compact);
        }
        if is_asked && peer.blocks.partials.contains_key(&hash) {
            return context.log_debug("Peer sent us compact block we were already syncing!".to_owned());
        }
        let is_inbound = peer.kind().is_inbound();
        let may_follow = !is_inbound || self.is_asked_of_outbound(context, &hash) || asked < REQUESTS_PER_BLOCK_MAX - 1;
        self.note_request(context, id, hash);
        match context.pool.place(compact) {
            Err(CompactError::Invalid) => {
                self.forget_request(context, id, &hash);
                context.misbehaving(id, &Violation::InvalidCompactBlock);
            }
            Err(CompactError::Failed) => {
                context.with(id, |peer| drop(peer.blocks.partials.insert(hash, Partial::Failed)));
                self.fall_back(context, id, hash, is_first);
            }
            Ok(partial) => {
                let request = partial.request();
                context.with(id, |peer| {
                    let charge = peer.memory.charge_received(partial.memory_bytes());
                    peer.blocks.partials.insert(hash, Partial::Waiting(partial, charge));
                });
                if request.indexes.is_empty() {
                    self.take_block_transactions(context, id, BlockTransactions { block_hash: hash, txs: Vec::new() });
                } else if is_first || (is_announcer && may_follow) {
                    context.send(id, Message::GetBlockTxn(request));
                } else {
                    self.forget_request(context, id, &hash);
                }
            }
        }
    }

    /// Enough others were already asked for the block. If no transaction is missing, it is used anyway.
    fn try_compact(&mut self, context: &mut Context, id: PeerId, hash: BlockHash, compact: &CompactBlock) {
        let waiting = self.pending.get(&hash).into_iter().flatten().filter(|source| source.is_compact());
        if waiting.count() < REQUESTS_PER_BLOCK_MAX
            && let Ok(partial) = context.pool.place(compact)
            && let Ok(size) = partial.block_size(&[])
        {
            let parts = ReceivedBlock::Parts(Box::new(partial), Vec::new());
            self.pass_on(context, (id, hash, None), parts, size, Intake::Compact);
        }
    }

    /// The first part of Core's `ProcessCompactBlockTxns`. The request stays open until the block is put together.
    pub(in crate::manager) fn take_block_transactions(
        &mut self,
        context: &mut Context,
        id: PeerId,
        answer: BlockTransactions,
    ) {
        let hash = answer.block_hash;
        let partial = context.peers.get_mut(&id).filter(|peer| peer.blocks.in_flight.contains(&hash));
        let Some(partial) = partial.and_then(|peer| peer.blocks.partials.get_mut(&hash)) else {
            if !context.peers.get(&id).is_some_and(|peer| peer.blocks.in_flight.contains(&hash)) {
                // Another peer was faster. This one has answered too and must not count as stalling.
                self.download.forget_request(id, &hash);
            }
            return Self::log_unexpected(context, id);
        };
        match std::mem::replace(partial, Partial::Checking { is_repeated: false }) {
            Partial::Waiting(waiting, _charge) => match waiting.block_size(&answer.txs) {
                Ok(size) => {
                    let parts = ReceivedBlock::Parts(Box::new(waiting), answer.txs);
                    let download = self.waited(context, id, &hash);
                    self.pass_on(context, (id, hash, download), parts, size, Intake::Compact);
                }
                Err(_) => {
                    self.forget_request(context, id, &hash);
                    context.misbehaving(id, &Violation::InvalidBlockTransactions);
                }
            },
            Partial::Checking { .. } => *partial = Partial::Checking { is_repeated: true },
            Partial::Failed => self.punish_repeated(context, id, &hash),
        }
    }

    /// The second part of Core's `ProcessCompactBlockTxns`. Returns whether the block is what its header commits to; if
    /// not, the whole block is requested.
    pub(super) fn is_put_together(
        &mut self,
        context: &mut Context,
        id: PeerId,
        hash: &BlockHash,
        outcome: &StoreOutcome,
    ) -> bool {
        let is_whole = !matches!(outcome, StoreOutcome::Mutated | StoreOutcome::Malformed { .. });
        let is_first = self.asked(hash).first().is_none_or(|first| *first == id);
        let Some(peer) = context.peers.get_mut(&id) else { return is_whole };
        let Some(partial @ Partial::Checking { .. }) = peer.blocks.partials.get_mut(hash) else { return is_whole };
        let is_repeated = matches!(*partial, Partial::Checking { is_repeated: true });
        *partial = Partial::Failed;
        if !peer.blocks.in_flight.contains(hash) {
            // The block came from elsewhere meanwhile.
            peer.blocks.partials.remove(hash);
        } else if is_repeated && is_whole {
            Self::log_unexpected(context, id);
        } else if is_repeated {
            self.punish_repeated(context, id, hash);
        } else if !is_whole {
            self.fall_back(context, id, *hash, is_first);
        }
        is_whole
    }

    fn log_unexpected(context: &mut Context, id: PeerId) {
        context.log_debug(format!("Peer {id} sent us block transactions for block we weren't expecting"));
    }

    /// The peer sent transactions again after they did not make the block.
    fn punish_repeated(&mut self, context: &mut Context, id: PeerId, hash: &BlockHash) {
        context.log_debug(format!("Peer {id} sent compact block transactions multiple times"));
        self.forget_request(context, id, hash);
        context.misbehaving(id, &Violation::RepeatedBlockTransactions);
    }

    /// Short ids collided, by chance or not: requests the whole block if no other peer was asked before.
    fn fall_back(&mut self, context: &mut Context, id: PeerId, hash: BlockHash, is_first: bool) {
        if is_first {
            Self::request_whole(context, id, hash);
        } else {
            self.forget_request(context, id, &hash);
            context.log_debug(format!(
                "Peer {id} sent us a compact block but it failed to reconstruct, waiting on first download to complete"
            ));
        }
    }

    fn request_whole(context: &mut Context, id: PeerId, hash: BlockHash) {
        context.send(id, Message::GetData(vec![Inv::block(InvType::WITNESS_BLOCK, hash)]));
    }

    fn is_asked_of_outbound(&self, context: &Context, hash: &BlockHash) -> bool {
        let is_outbound = |id: &PeerId| context.peers.get(id).is_some_and(|peer| !peer.kind().is_inbound());
        self.asked(hash).iter().any(is_outbound)
    }

    /// The peer sent a valid block: it may send the next ones unrequested. Core's
    /// `MaybeSetPeerAsAnnouncingHeaderAndIDs`.
    pub(super) fn choose_announcer(&mut self, context: &mut Context, id: PeerId) {
        let Some(peer) = context.peers.get(&id).filter(|peer| peer.is_ready() && peer.talk.provides_compact_blocks)
        else {
            return;
        };
        if context.settings.blocks_only {
            return;
        }
        if let Some(at) = self.announcers.iter().position(|announcer| *announcer == id) {
            self.announcers.remove(at);
            return self.announcers.push(id);
        }
        let is_outbound = |id: &PeerId| context.peers.get(id).is_some_and(|peer| !peer.kind().is_inbound());
        let outbound = self.announcers.iter().filter(|id| is_outbound(id)).count();
        let is_last_outbound = outbound == 1 && self.announcers.first().is_some_and(is_outbound);
        if peer.kind().is_inbound() && self.announcers.len() >= HIGH_BANDWIDTH_PEERS_MAX && is_last_outbound {
            // An inbound peer does not replace the only outbound one.
            self.announcers.swap(0, 1);
        }
        Self::set_high_bandwidth(context, id, true);
        self.announcers.push(id);
        if self.announcers.len() > HIGH_BANDWIDTH_PEERS_MAX {
            let oldest = self.announcers.remove(0);
            Self::set_high_bandwidth(context, oldest, false);
        }
    }

    fn set_high_bandwidth(context: &mut Context, id: PeerId, high_bandwidth: bool) {
        context.with(id, |peer| peer.talk.high_bandwidth_to = high_bandwidth);
        context.send(id, Message::SendCmpct(SendCmpct { high_bandwidth, version: CMPCTBLOCKS_VERSION }));
    }
}
