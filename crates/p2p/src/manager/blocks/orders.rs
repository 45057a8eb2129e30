//! Blocks that readers of this node order: those that pruning has deleted ([`crate::order`]).
//!
//! Input: orders, blocks, the chains of peers, the time. Output: a request to one peer, and to another one if the first
//! does not send the block soon; a result for each order. The block is compared with its header where blocks are parsed
//! ([`Intake::Ordered`]); it is not stored.
//!
//! Invariants: the orders change nothing of the download; a block counts as ordered only from a peer that was asked for
//! it and has not sent it, so that no block becomes welcome by an order; a peer that sends other bytes under the header
//! is punished as in Core, and one that sends nothing is disconnected after ten minutes, as for `getblockfrompeer`.
//! Cost: a look at each peer for each request.

use super::Blocks;
use crate::limits::{
    BLOCK_TIMEOUT, COMPACT_BLOCKS_PER_PEER_MAX, ORDER_PATIENCE, ORDER_TIMEOUT, ORDERS_MAX, REQUESTS_PER_BLOCK_MAX,
};
use crate::manager::context::Context;
use crate::manager::peer::PeerState;
use crate::manager::{Action, Intake, PeerId, ReceivedBlock, StoreOutcome, Violation};
use crate::order::{BlockTaker, Order, OrderFailure};
use crate::peer::ConnectionKind;
use lydian_chain::HeaderId;
use lydian_engine::LogLevel;
use lydian_primitives::{Block, BlockHash};
use lydian_wire::{Inv, InvType, Message, Services};
use rand_chacha::rand_core::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// All ordered blocks that peers were asked for.
#[derive(Debug, Default)]
pub(super) struct Orders {
    blocks: BTreeMap<BlockHash, Ordered>,
}

/// A block that is ordered, or was until the time limit.
#[derive(Debug)]
struct Ordered {
    id: HeaderId,
    /// Not answered yet.
    orders: Vec<Order>,
    /// Gets the block if it arrives after the time limit.
    taker: Arc<dyn BlockTaker>,
    /// When the first order was placed, of those that are not answered.
    since: Duration,
    /// Peers that were asked and have not answered.
    asked: Vec<Asked>,
    /// All peers that were asked since the first order was placed.
    tried: BTreeSet<PeerId>,
    /// Received copies that wait to be compared with the header.
    arriving: usize,
    /// It was received: other copies are not needed.
    is_here: bool,
}

/// A request to a peer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    peer: PeerId,
    /// The time by [`crate::Moment::elapsed`].
    sent: Duration,
    /// The time by Core's `NodeClock`, for the end of a peer that sends nothing.
    asked: Duration,
}

/// Who is to be asked for a block.
#[derive(Clone, Copy, Debug)]
enum Choice {
    Peer(PeerId),
    /// Peers have it that were not asked, and none of them may be asked now.
    NoneFree,
    NoneAble,
}

impl Ordered {
    fn is_idle(&self) -> bool {
        self.asked.is_empty() && self.arriving == 0
    }

    /// Takes the note that a peer was asked.
    fn take_asked(&mut self, id: PeerId) -> bool {
        let at = self.asked.iter().position(|asked| asked.peer == id);
        at.map(|at| self.asked.remove(at)).is_some()
    }

    fn answer(&mut self, result: Result<Arc<Block>, OrderFailure>) {
        self.orders.drain(..).for_each(|order| order.answer(result.clone()));
    }
}

impl Orders {
    /// The blocks that were ordered from a peer and did not arrive.
    fn open_of(&self, id: PeerId) -> usize {
        self.blocks.values().filter(|ordered| ordered.asked.iter().any(|asked| asked.peer == id)).count()
    }

    /// Whether a peer has let a reader wait.
    fn is_late(&self, id: PeerId, now: Duration) -> bool {
        let is_late = |asked: &Asked| asked.peer == id && now.saturating_sub(asked.sent) >= ORDER_PATIENCE;
        self.blocks.values().any(|ordered| ordered.asked.iter().any(is_late))
    }
}

impl Blocks {
    /// A reader orders a block.
    pub(in crate::manager) fn order(&mut self, context: &mut Context, order: Order) {
        let (hash, now) = (order.hash(), context.now.elapsed);
        if context.is_loading() {
            return order.answer(Err(OrderFailure::Loading));
        }
        let Some(id) = context.chain.with_tree(|tree| tree.find(&hash)) else {
            return order.answer(Err(OrderFailure::NoPeer));
        };
        let open = self.orders.blocks.values().map(|ordered| ordered.orders.len()).sum::<usize>();
        if open >= ORDERS_MAX {
            return order.answer(Err(OrderFailure::TooMany));
        }
        let taker = Arc::clone(order.taker());
        let ordered = self.orders.blocks.entry(hash).or_insert_with(|| Ordered {
            id,
            orders: Vec::new(),
            taker,
            since: now,
            asked: Vec::new(),
            tried: BTreeSet::new(),
            arriving: 0,
            is_here: false,
        });
        if ordered.orders.is_empty() {
            // Requests of an order that was not answered in time may still be open.
            ordered.since = now;
            ordered.tried = ordered.asked.iter().map(|asked| asked.peer).collect();
            ordered.is_here = false;
        }
        ordered.taker = Arc::clone(order.taker());
        ordered.orders.push(order);
        self.see_to_order(context, &hash);
    }

    /// Answers the orders of a block, or asks another peer, if it is time to.
    fn see_to_order(&mut self, context: &mut Context, hash: &BlockHash) {
        let now = context.now.elapsed;
        let Some(ordered) = self.orders.blocks.get_mut(hash) else { return };
        if !ordered.orders.is_empty() {
            let asked = ordered.tried.len();
            if now.saturating_sub(ordered.since) >= ORDER_TIMEOUT {
                ordered.answer(Err(if asked == 0 { OrderFailure::NoneFree } else { OrderFailure::TimedOut { asked } }));
            } else if ordered.arriving == 0 {
                let is_patient = |asked: &Asked| now.saturating_sub(asked.sent) < ORDER_PATIENCE;
                let may_ask = ordered.asked.len() < REQUESTS_PER_BLOCK_MAX && !ordered.asked.iter().any(is_patient);
                if may_ask && matches!(self.ask_for_order(context, hash), Choice::NoneAble) {
                    let failure = if asked == 0 { OrderFailure::NoPeer } else { OrderFailure::NotSent { asked } };
                    if let Some(ordered) = self.orders.blocks.get_mut(hash).filter(|ordered| ordered.is_idle()) {
                        ordered.answer(Err(failure));
                    }
                }
            }
        }
        self.orders.blocks.retain(|_, ordered| !ordered.orders.is_empty() || !ordered.is_idle());
    }

    /// Asks one more peer for an ordered block, if there is one that may be asked now.
    fn ask_for_order(&mut self, context: &mut Context, hash: &BlockHash) -> Choice {
        let choice = self.choose_for_order(context, hash);
        let Choice::Peer(peer) = choice else { return choice };
        let Some(ordered) = self.orders.blocks.get_mut(hash) else { return Choice::NoneAble };
        ordered.tried.insert(peer);
        ordered.asked.push(Asked { peer, sent: context.now.elapsed, asked: context.now.mockable });
        context.with(peer, |peer| {
            peer.blocks.ordered += 1;
            peer.blocks.is_asked = true;
            peer.memory.set_asked(true);
        });
        context.log_debug(format!("Requesting block {hash} from peer={peer}"));
        context.send(peer, Message::GetData(vec![Inv::block(InvType::WITNESS_BLOCK, *hash)]));
        choice
    }

    /// Chooses a peer that has the block and was not asked: one that keeps no reader waiting, with few open requests,
    /// rather one that we chose than one that chose us; at random among equals, so that no peer learns of all of them.
    fn choose_for_order(&self, context: &mut Context, hash: &BlockHash) -> Choice {
        let Some(ordered) = self.orders.blocks.get(hash) else { return Choice::NoneAble };
        let now = context.now.elapsed;
        let ready: Vec<PeerId> = context.peers.values().filter(|peer| peer.is_ready()).map(|peer| peer.id).collect();
        ready.iter().for_each(|id| context.look_up_unknown(*id));
        let has_all = |peer: &&PeerState| {
            let serves_all = peer.talk.services.contains(Services::NETWORK) && peer.serves_witnesses();
            serves_all && peer.kind() != ConnectionKind::AddrFetch && !ordered.tried.contains(&peer.id)
        };
        let of_tree = |peer: &&PeerState| {
            let Some(best) = peer.best_known else { return false };
            context.chain.with_tree(|tree| tree.ancestor(best, tree.height(ordered.id)) == Some(ordered.id))
        };
        let is_free = |peer: &&PeerState| {
            let is_asked = peer.blocks.in_flight().contains(hash);
            self.orders.open_of(peer.id) < COMPACT_BLOCKS_PER_PEER_MAX && !is_asked && peer.memory.has_block_room()
        };
        let able = context.peers.values().filter(|peer| peer.is_ready()).filter(has_all).filter(of_tree);
        let mut able = able.peekable();
        if able.peek().is_none() {
            return Choice::NoneAble;
        }
        let free = able.filter(is_free).map(|peer| {
            let (is_late, open) = (self.orders.is_late(peer.id, now), self.orders.open_of(peer.id));
            (is_late, peer.kind().is_inbound(), open, peer.id)
        });
        let free: Vec<(bool, bool, usize, PeerId)> = free.collect();
        let Some((is_late, is_inbound, open, _)) = free.iter().min().copied() else { return Choice::NoneFree };
        let best: Vec<PeerId> = free
            .iter()
            .filter(|(late, inbound, requests, _)| (*late, *inbound, *requests) == (is_late, is_inbound, open))
            .map(|(.., id)| *id)
            .collect();
        let at = context.random.next_u64() % u64::try_from(best.len()).unwrap_or(1).max(1);
        best.get(usize::try_from(at).unwrap_or(0)).map_or(Choice::NoneFree, |peer| Choice::Peer(*peer))
    }

    /// Returns whether this peer was asked for the block for a reader only.
    pub(super) fn is_ordered_from(&self, id: PeerId, hash: &BlockHash) -> bool {
        let ordered = self.orders.blocks.get(hash);
        ordered.is_some_and(|ordered| ordered.asked.iter().any(|asked| asked.peer == id))
            && !self.asked(hash).contains(&id)
    }

    /// An ordered block was received: it is passed on to be compared with its header, unless it is here already.
    pub(super) fn take_ordered(&mut self, context: &mut Context, id: PeerId, hash: BlockHash, bytes: Vec<u8>) {
        self.note_order_answered(context, id, &hash);
        let Some(ordered) = self.orders.blocks.get_mut(&hash).filter(|ordered| !ordered.is_here) else { return };
        ordered.arriving += 1;
        let (block, intake) = (ReceivedBlock::Whole(bytes), Intake::Ordered);
        context.actions.push(Action::Store { from: id, hash, block, intake, is_next: false });
    }

    /// The peer has answered, or will not answer.
    fn note_order_answered(&mut self, context: &mut Context, id: PeerId, hash: &BlockHash) {
        let was_asked = self.orders.blocks.get_mut(hash).is_some_and(|ordered| ordered.take_asked(id));
        if was_asked {
            context.with(id, |peer| peer.blocks.ordered = peer.blocks.ordered.saturating_sub(1));
        }
    }

    /// The result of the comparison with the header.
    pub(in crate::manager) fn take_order_outcome(
        &mut self,
        context: &mut Context,
        (from, hash): (PeerId, &BlockHash),
        outcome: &StoreOutcome,
        block: Option<Arc<Block>>,
    ) {
        if let Some(ordered) = self.orders.blocks.get_mut(hash) {
            ordered.arriving = ordered.arriving.saturating_sub(1);
            if let Some(block) = block {
                ordered.is_here = true;
                match ordered.orders.is_empty() {
                    true => ordered.taker.take(hash, Ok(block)),
                    false => ordered.answer(Ok(block)),
                }
            }
        }
        match outcome {
            StoreOutcome::Mutated => {
                context.log_debug(format!("Received mutated block from peer={from}"));
                context.misbehaving(from, &Violation::MutatedBlock);
            }
            StoreOutcome::Malformed { reason } => context.log_debug(format!(
                "ProcessMessages(block): Exception '{reason}' caught for block {hash} from peer={from}"
            )),
            _ => {}
        }
        self.see_to_order(context, hash);
    }

    /// The peer does not have the block.
    pub(super) fn take_order_notfound(&mut self, context: &mut Context, id: PeerId, hash: &BlockHash) {
        self.note_order_answered(context, id, hash);
        self.see_to_order(context, hash);
    }

    /// The peer left. The next tick asks others.
    pub(super) fn forget_orders_of(&mut self, id: PeerId) {
        self.orders.blocks.values_mut().for_each(|ordered| {
            ordered.take_asked(id);
        });
    }

    /// Time has passed: asks other peers, answers orders, and disconnects a peer that does not send a block within ten
    /// minutes.
    pub(super) fn check_orders(&mut self, context: &mut Context) {
        let now = context.now.mockable;
        let hashes: Vec<BlockHash> = self.orders.blocks.keys().copied().collect();
        for hash in hashes {
            let asked = self.orders.blocks.get(&hash).map_or(&[][..], |ordered| &ordered.asked);
            let is_overdue = |asked: &&Asked| now.saturating_sub(asked.asked) > BLOCK_TIMEOUT;
            if let Some(peer) = asked.iter().find(is_overdue).map(|asked| asked.peer) {
                context.leave_at(peer, LogLevel::Info, format!("Timeout downloading block {hash}"));
                self.forget_peer(peer);
            }
            self.see_to_order(context, &hash);
        }
    }
}
